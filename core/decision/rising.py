"""How a machine comes up, and what it is said to be while it is up.

The rows below are tried in order; the first that fits is the answer. Nothing is created while anything of the life before
is left, while the Cluster cannot be seen, or while a stray Node could be taken for the new one.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import attrs

from fivespot.core.api import reasons
from fivespot.core.api.scheduled_machine import Provisioning, Reclaim
from fivespot.core.decision import reclaim as reclaims
from fivespot.core.decision import stray
from fivespot.core.decision.actions import Delete, Event, Role, Severity
from fivespot.core.decision.knowledge import Absent, Present, Unknown, value_of
from fivespot.core.decision.manifest import creations, drift
from fivespot.core.decision.observation import CapiMachineView, DependentView, NodeView, Slot
from fivespot.core.decision.phase import RESTING, Phase
from fivespot.core.decision.plan import Plan, ask, best_effort, groups_of, required
from fivespot.core.decision.remains import remains
from fivespot.core.decision.scene import Scene, last_node, node_reference, reclaim_record, reference, taken
from fivespot.core.decision.upkeep import machine_actions, node_upkeep, undone_shutdown, unpause
from fivespot.core.instant import later


def plan_up(scene: Scene) -> Plan:
    """The rows of the phase table for a machine that should exist."""
    capi = scene.capi.value if isinstance(scene.capi, Present) else None
    if capi is None or capi.metadata.deleting:
        return next(plan for row in _WITHOUT if (plan := row(scene)) is not None)
    return next(plan for row in _STANDING if (plan := row(scene, capi)) is not None)


def _pending(scene: Scene, reason: str, message: str, **more: Any) -> Plan:
    """Wanted, and not there yet."""
    plan = Plan(
        phase=Phase.PENDING,
        reason=reason,
        message=message,
        reclaim=reclaim_record(scene),
        shutdown=scene.status.shutdown,
        provisioning=scene.status.provisioning,
        last_node=scene.status.last_node,
        node_ref=scene.status.node_ref,
    )
    return attrs.evolve(plan, **more) if more else plan


# Rows without a Machine of ours that stands


def _unreadable(scene: Scene) -> Plan | None:
    unknown = scene.unknown
    if unknown is None or isinstance(scene.capi, Present):
        return None
    text = f"could not be read: {unknown.why}"
    return _pending(
        scene, unknown.reason, text, phase=None, machine_ready=("Unknown", unknown.reason, unknown.why)
    )


def _life_before(scene: Scene) -> Plan | None:
    """A Machine that is going, and what Cluster API leaves of it."""
    capi = value_of(scene.capi)
    if capi is not None:
        text = f"waits until Machine {capi.metadata.name} is gone{_during_pause(scene)}"
        return _pending(
            scene, reasons.WAITING_FOR_PREVIOUS, text, groups=groups_of(best_effort(*unpause(scene, capi)))
        )
    left = remains(
        scene,
        lambda role, view: _of_the_life_before(scene, role, view),
        hands_off=scene.paused_by is not None,
    )
    if left is None:
        return None
    if left.confirm:
        return ask(*left.confirm)
    text = f"waits until {left.what} of the life before is gone{_during_pause(scene)}"
    return _pending(scene, reasons.WAITING_FOR_PREVIOUS, text, groups=left.groups)


def _during_pause(scene: Scene) -> str:
    return f"; it waits for the end of a pause: {scene.paused_by}" if scene.paused_by else ""


def _of_the_life_before(scene: Scene, role: Role, view: DependentView) -> bool:
    """Going, taken by a Machine, or of a kind that the spec no longer names; anything else is a half-done create."""
    return view.metadata.deleting or taken(view) or view.kind != _wanted_kind(scene, role, view)


def _wanted_kind(scene: Scene, role: Role, view: DependentView) -> str:
    spec = scene.machine.spec
    if spec is None:
        return view.kind
    return spec.bootstrap_spec.kind if role is Role.BOOTSTRAP else spec.infrastructure_spec.kind


def _shutdown_is_over(scene: Scene) -> Plan | None:
    """A removal that ended while the mind was changed: forget it as if it had come to rest."""
    if scene.status.shutdown is None or not scene.nothing_exists:
        return None
    return _forget(scene, "the machine was removed; creating it again", ())


def _vanished(scene: Scene) -> Plan | None:
    """The Machine that status names is gone though nobody here removed it."""
    recorded = scene.status.machine_ref
    if recorded is None:
        return None
    stored = scene.status.provisioning
    if stored is not None and stored.replacing is not None and stored.replacing == recorded.uid:
        return _forget(scene, "the failed Machine is gone; creating another", ())
    text = f"Machine {recorded.name} has vanished; creating it again"
    event = Event(severity=Severity.WARNING, reason=reasons.MACHINE_MISSING, message=text)
    return _forget(scene, text, (event,))


def _forget(scene: Scene, message: str, events: tuple[Event, ...]) -> Plan:
    """Clear what status recorded of a machine that is gone; the next pass creates."""
    confirm = tuple(part for part, seen in scene.parts if isinstance(seen, Absent) and not seen.live)
    if confirm:
        return ask(*confirm)
    return _pending(
        scene,
        reasons.MACHINE_MISSING if events else reasons.PROVISIONING,
        message,
        clear=True,
        shutdown=None,
        node_ref=None,
        provisioning=_next_attempt(scene),
        events=events,
    )


def _paused(scene: Scene) -> Plan | None:
    if scene.paused_by is None:
        return None
    return _pending(scene, reasons.PAUSED, f"nothing is created during a pause: {scene.paused_by}")


def _invalid(scene: Scene) -> Plan | None:
    """An invalid spec blocks creation only."""
    if scene.machine.spec is not None:
        return None
    problems = scene.machine.problems
    return _pending(
        scene, reasons.REFERENCES_INVALID, str(problems[0]) if problems else "the spec is invalid"
    )


def _conflict(scene: Scene) -> Plan | None:
    """What has our name and is not ours is never adopted."""
    if not scene.foreign:
        return None
    what = " and ".join(role.value for role in scene.foreign)
    name = scene.machine.metadata.name
    return _pending(
        scene, reasons.NAME_CONFLICT, f"{what} {name} exists and is not ours; rename it or this machine"
    )


def _no_cluster(scene: Scene) -> Plan | None:
    if scene.cluster is not None:
        return None
    name = scene.machine.intent.cluster_name
    if isinstance(scene.obs.cluster, Unknown):
        why = scene.obs.cluster
        return _pending(scene, why.reason, f"Cluster {name} could not be read: {why.why}")
    return _pending(scene, reasons.PROVISIONING, f"waits for Cluster {name}, which does not exist")


def _stray_node(scene: Scene) -> Plan | None:
    settled = stray.settle(scene)
    if settled.confirm:
        return ask(*settled.confirm)
    if settled.elsewhere:
        settled = stray.Settlement(last_node=scene.status.last_node)
    if settled.unknown is not None:
        unknown = settled.unknown
        text = f"whether the last Node is still there could not be read: {unknown.why}"
        return _pending(scene, unknown.reason, text, phase=None)
    if settled.pending:
        return _pending(
            scene,
            reasons.WAITING_FOR_PREVIOUS,
            settled.message,
            groups=settled.groups,
            events=settled.events,
            last_node=settled.last_node,
            node_ref=settled.node_ref,
        )
    if (settled.last_node, settled.node_ref) != (scene.status.last_node, scene.status.node_ref):
        # A new Machine must not find the Node of the life before on record.
        return _pending(
            scene, reasons.PROVISIONING, "creating the machine", last_node=settled.last_node, node_ref=None
        )
    return None


def _waits_for_slot(scene: Scene) -> Plan | None:
    if scene.obs.slot is Slot.GRANTED:
        return None
    return _pending(scene, reasons.WAITING_FOR_SLOT, "waits for a slot: --max-provisioning is reached")


def _create(scene: Scene) -> Plan | None:
    """Create by POST what is missing, bootstrap first.

    The status is left alone: once the three are seen, one write says it all. Unless it still says a hold that has just been
    released, which would take the new machine down again.
    """
    spec = scene.machine.spec
    if spec is None:
        return None
    present = {
        Role.BOOTSTRAP: value_of(scene.bootstrap) is not None,
        Role.INFRASTRUCTURE: value_of(scene.infrastructure) is not None,
        Role.MACHINE: False,
    }
    wanted = creations(scene.machine.metadata, spec, scene.obs.capi_version)
    elsewhere = stray.settle(scene)
    return _pending(
        scene,
        reasons.PROVISIONING,
        "creating the machine",
        groups=(
            *(elsewhere.groups if elsewhere.elsewhere else ()),
            *(required(action) for action in wanted if not present[action.role]),
        ),
        write_status=scene.obs.failure is not None or reclaim_record(scene) is not scene.status.reclaim,
        provisioning=_next_attempt(scene),
    )


def _next_attempt(scene: Scene) -> Provisioning | None:
    """The count of replacements outlives the Machine that failed."""
    stored = scene.status.provisioning
    if stored is None or not stored.attempt:
        return None
    return Provisioning(attempt=stored.attempt)


_WITHOUT: tuple[Callable[[Scene], Plan | None], ...] = (
    _unreadable,
    _life_before,
    _shutdown_is_over,
    _vanished,
    _paused,
    _invalid,
    _conflict,
    _no_cluster,
    _stray_node,
    _waits_for_slot,
    _create,
)


# Rows with a Machine of ours that stands


def _active(scene: Scene, capi: CapiMachineView) -> Plan | None:
    node = scene.node.value if isinstance(scene.node, Present) else None
    if node is None or not node.ready:
        return None
    return _standing(
        scene, capi, node, Phase.ACTIVE, reasons.RECONCILE_SUCCEEDED, f"Node {node.name} is Ready"
    )


def _node_unknown(scene: Scene, capi: CapiMachineView) -> Plan | None:
    """An unreadable Node changes a condition, and the phase only where what is stored is wrong either way."""
    if not isinstance(scene.node, Unknown):
        return None
    why = scene.node
    text = f"Machine {capi.metadata.name} has failed: {capi.failure}; {why.why}" if capi.failure else why.why
    possible = {Phase.PENDING.value, Phase.ACTIVE.value, *((Phase.ERROR.value,) if capi.failure else ())}
    phase = Phase.ACTIVE if _was_ready(scene) else Phase.PENDING
    plan = _standing(scene, capi, None, None if scene.status.phase in possible else phase, why.reason, text)
    return attrs.evolve(plan, machine_ready=("Unknown", why.reason, why.why))


def _terminal_failure(scene: Scene, capi: CapiMachineView) -> Plan | None:
    if not capi.failure:
        return None
    node = value_of(scene.node)
    message = f"Machine {capi.metadata.name} has failed: {capi.failure}"
    plan = _standing(scene, capi, node, Phase.ERROR, reasons.MACHINE_CREATION_FAILED, message)
    had_node = scene.status.node_ref is not None or capi.node_name or node is not None
    return plan if had_node or scene.paused_by else _replace(scene, capi, plan)


def _replace(scene: Scene, capi: CapiMachineView, plan: Plan) -> Plan:
    """A Machine that failed for good and never had a Node is replaced, later each time."""
    stored = scene.status.provisioning or Provisioning()
    uid = capi.metadata.uid
    if stored.replacing != uid or stored.not_before is None:
        attempt = max(0, stored.attempt or 0) + 1
        delay = min(scene.policy.replace_after * 2 ** min(attempt - 1, 16), scene.policy.replace_at_most)
        due = later(scene.now, delay)
        entry = Provisioning(
            started_at=capi.metadata.created_at, attempt=attempt, replacing=uid, not_before=due
        )
        return attrs.evolve(plan, provisioning=entry, wakes=(due,))
    if scene.now < stored.not_before:
        return attrs.evolve(plan, wakes=(stored.not_before,))
    delete = required(Delete(role=Role.MACHINE, target=reference(capi)))
    return attrs.evolve(plan, groups=(*plan.groups, delete))


def _provisioning(scene: Scene, capi: CapiMachineView) -> Plan:
    node = value_of(scene.node)
    if _was_ready(scene):
        message = f"Node {node.name} is not Ready" if node else "its Node is not there"
        return _standing(scene, capi, node, Phase.ACTIVE, reasons.NODE_NOT_READY, message)
    if node is not None or scene.status.node_ref is not None:
        text = f"waits for Node {node.name} to be Ready" if node else "waits for its Node to come back"
        return _standing(scene, capi, node, Phase.PENDING, reasons.PROVISIONING, text)
    started = capi.metadata.created_at
    due = later(started, scene.policy.provisioning_timeout) if started is not None else None
    if due is not None and scene.now >= due:
        minutes = int(scene.policy.provisioning_timeout.total_seconds() // 60)
        text = f"no Node after {minutes} minutes: is the host switched on and reachable?"
        return _standing(scene, capi, node, Phase.PENDING, reasons.PROVISIONING_TIMED_OUT, text)
    wakes = (due,) if due is not None else ()
    return _standing(scene, capi, node, Phase.PENDING, reasons.PROVISIONING, "waits for the Node", wakes)


def _was_ready(scene: Scene) -> bool:
    """Whether the Node was Ready before: `provisioning` is kept until it is."""
    return scene.status.node_ref is not None and scene.status.provisioning is None


_STANDING: tuple[Callable[[Scene, CapiMachineView], Plan | None], ...] = (
    _active,
    _node_unknown,
    _terminal_failure,
    _provisioning,
)


def _standing(
    scene: Scene,
    capi: CapiMachineView,
    node: NodeView | None,
    phase: Phase | None,
    reason: str,
    message: str,
    wakes: tuple[datetime, ...] = (),
) -> Plan:
    """A Machine that stands: what is kept right about it and its Node, whatever the row."""
    ready = node is not None and node.ready
    upkeep = node_upkeep(scene, node, capi)
    if scene.paused_by is not None:
        message = f"{message}; paused by {scene.paused_by}"
    record, events = _stale_request(scene, capi)
    if _is_orphan(scene, capi):
        text = f"Machine {capi.metadata.name} of ours runs although status did not know it; taken up"
        events = (*events, Event(severity=Severity.NORMAL, reason=reasons.ORPHAN_ADOPTED, message=text))
    actions = machine_actions(scene, capi) + upkeep.actions
    return Plan(
        phase=phase,
        reason=reason,
        message=message + drift(scene.machine.made_of, capi.metadata.annotations),
        groups=tuple([best_effort(action) for action in actions]),
        events=events,
        shutdown=undone_shutdown(scene, capi),
        reclaim=record,
        provisioning=None if ready or _was_ready(scene) else _coming_up(scene, capi, node),
        last_node=last_node(scene, node),
        node_ref=node_reference(scene, node),
        machine_ready=("True" if ready else "False", reasons.MACHINE_READY if ready else reason, message),
        taints=upkeep.taints,
        wakes=wakes,
    )


def _coming_up(scene: Scene, capi: CapiMachineView, node: NodeView | None) -> Provisioning:
    """The first Node ends the count of replacements; its first Ready ends provisioning."""
    stored = scene.status.provisioning
    if stored is None or node is not None:
        return Provisioning(started_at=capi.metadata.created_at)
    if capi.failure and stored.replacing == capi.metadata.uid:
        return stored
    return Provisioning(started_at=capi.metadata.created_at, attempt=stored.attempt)


def _is_orphan(scene: Scene, capi: CapiMachineView) -> bool:
    """A Machine with a Node that status knows nothing of: one that was just created has none yet."""
    status = scene.status
    if status.machine_ref is not None or not capi.node_name:
        return False
    return status.phase is None or status.phase in _RESTING


_RESTING = frozenset(phase.value for phase in RESTING)


def _stale_request(scene: Scene, capi: CapiMachineView) -> tuple[Reclaim | None, tuple[Event, ...]]:
    """Store that a request of the life before is being cleared, before it is."""
    record = reclaim_record(scene)
    request, uid = scene.stale, capi.metadata.uid
    if request is None or (record is not None and record.stale_cleared_for == uid):
        return record, ()
    text = f"a reclaim request from before this machine existed is cleared: {request.reason}"
    event = Event(severity=Severity.NORMAL, reason=reasons.RECLAIM_REQUEST_STALE, message=text)
    return reclaims.clear_stale(record, request, uid), (event,)
