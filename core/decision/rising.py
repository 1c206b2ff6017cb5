"""How a machine comes up, and what is kept right while it is up.

The rows below are tried in order; the first that fits is the answer. Nothing is created while anything of the life before
is left, while the Cluster cannot be seen, or while a stray Node could be taken for the new one.
"""

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from fivespot.core.api.scheduled_machine import (
    LastNode,
    NodeReference,
    Provisioning,
    Reclaim,
    ReclaimedNode,
)
from fivespot.core.decision import reclaim as reclaims
from fivespot.core.decision import stray
from fivespot.core.decision.actions import (
    Action,
    AnnotateMachine,
    ClearReclaimRequest,
    Delete,
    Event,
    LabelMachine,
    Part,
    Role,
    SetTaints,
    Severity,
    Uncordon,
)
from fivespot.core.decision.knowledge import Absent, Unknown, gone, value_of
from fivespot.core.decision.manifest import creations
from fivespot.core.decision.observation import CapiMachineView, NodeView, Slot
from fivespot.core.decision.phase import Phase
from fivespot.core.decision.plan import Plan, best_effort, groups_of, listed, required
from fivespot.core.decision.scene import Scene, cordoned_by_us, reference, taken
from fivespot.core.decision.taints import TaintPlan, applied_taints, plan_taints
from fivespot.core.names import (
    EXCLUDE_NODE_DRAINING,
    EXCLUDE_VOLUME_DETACH,
    SKIP_REMEDIATION,
    UNPAUSED,
)


def plan_up(scene: Scene) -> Plan:
    """The rows of the phase table for a machine that should exist."""
    return next(plan for row in _ROWS if (plan := row(scene)) is not None)


def _pending(scene: Scene, reason: str, message: str, **more: Any) -> Plan:
    """Wanted, and not there yet."""
    plan = Plan(
        phase=Phase.PENDING,
        reason=reason,
        message=message,
        reclaim=_reclaim(scene),
        shutdown=scene.status.shutdown,
        provisioning=scene.status.provisioning,
        last_node=scene.status.last_node,
        node_ref=scene.status.node_ref,
        machine_ready=("False", reason, message),
    )
    return attrs.evolve(plan, **more)


def _reclaim(scene: Scene) -> Reclaim | None:
    """A hold that was released leaves its history only."""
    record = scene.status.reclaim
    return reclaims.release(record) if record is not None and reclaims.held(record) else record


# Rows without a Machine of ours that stands


def _unreadable(scene: Scene) -> Plan | None:
    unknown = scene.unknown
    if unknown is None or value_of(scene.capi) is not None:
        return None
    plan = _pending(scene, unknown.reason, f"could not be read: {unknown.why}")
    return attrs.evolve(plan, phase=None, machine_ready=("Unknown", unknown.reason, unknown.why))


def _life_before(scene: Scene) -> Plan | None:
    """A Machine that is going, and what Cluster API leaves of it."""
    capi = value_of(scene.capi)
    if capi is not None:
        if not capi.metadata.deleting:
            return None
        return _pending(scene, "WaitingForPrevious", f"waits until Machine {capi.metadata.name} is gone")
    for role, part in ((Role.INFRASTRUCTURE, scene.infrastructure), (Role.BOOTSTRAP, scene.bootstrap)):
        view = value_of(part)
        if view is None or not (view.metadata.deleting or taken(view)):
            continue
        message = f"waits until {view.kind} {view.metadata.name} of the life before is gone"
        if view.metadata.deleting:
            return _pending(scene, "WaitingForPrevious", message)
        if scene.paused_by is not None:
            return _pending(scene, "Paused", f"{message}, after the end of a pause: {scene.paused_by}")
        if not gone(scene.capi):
            return _pending(scene, "", "", confirm=(Part.MACHINE,))
        delete = required(Delete(role=role, target=reference(view)))
        return _pending(scene, "WaitingForPrevious", message, groups=groups_of(delete))
    return None


def _shutdown_is_over(scene: Scene) -> Plan | None:
    """A removal that ended while the mind was changed: forget it as if it had come to rest."""
    if scene.status.shutdown is None or not scene.nothing_exists:
        return None
    return _forget(scene, "the machine was removed; creating it again", ())


def _vanished(scene: Scene) -> Plan | None:
    """The Machine that status names is gone though nobody here removed it."""
    recorded = scene.status.machine_ref
    if recorded is None or not isinstance(scene.capi, Absent):
        return None
    replacing = scene.status.provisioning.replacing if scene.status.provisioning else None
    if replacing is not None and replacing == recorded.uid:
        return _forget(scene, "the failed Machine is gone; creating another", ())
    text = f"Machine {recorded.name} has vanished; creating it again"
    event = Event(severity=Severity.WARNING, reason="MachineMissing", message=text)
    return _forget(scene, text, (event,))


def _forget(scene: Scene, message: str, events: tuple[Event, ...]) -> Plan:
    """Clear what status recorded of a machine that is gone; the next pass creates."""
    confirm = tuple(part for part, seen in scene.parts if isinstance(seen, Absent) and not seen.live)
    if confirm:
        return _pending(scene, "", "", confirm=confirm)
    return _pending(
        scene,
        "MachineMissing" if events else "Provisioning",
        message,
        clear=True,
        shutdown=None,
        node_ref=None,
        events=events,
    )


def _paused(scene: Scene) -> Plan | None:
    if scene.paused_by is None or value_of(scene.capi) is not None:
        return None
    return _pending(scene, "Paused", f"nothing is created during a pause: {scene.paused_by}")


def _invalid(scene: Scene) -> Plan | None:
    """An invalid spec blocks creation only."""
    if scene.machine.spec is not None or value_of(scene.capi) is not None:
        return None
    return _pending(
        scene, "ReferencesInvalid", str(scene.machine.problems[0]) if scene.machine.problems else "invalid"
    )


def _no_cluster(scene: Scene) -> Plan | None:
    if value_of(scene.capi) is not None or scene.cluster is not None:
        return None
    name = scene.machine.intent.cluster_name
    if isinstance(scene.obs.cluster, Unknown):
        why = scene.obs.cluster
        return _pending(scene, why.reason, f"Cluster {name} could not be read: {why.why}")
    return _pending(scene, "Provisioning", f"waits for Cluster {name}, which does not exist")


def _stray_node(scene: Scene) -> Plan | None:
    if value_of(scene.capi) is not None:
        return None
    settled = stray.settle(scene)
    if not settled.pending:
        return None
    return _pending(
        scene,
        "WaitingForPrevious",
        settled.message,
        groups=settled.groups,
        events=settled.events,
        last_node=settled.last_node,
        node_ref=settled.node_ref,
    )


def _waits_for_slot(scene: Scene) -> Plan | None:
    if value_of(scene.capi) is not None or scene.obs.slot is Slot.GRANTED:
        return None
    return _pending(scene, "WaitingForSlot", "waits for a slot: --max-provisioning is reached")


def _create(scene: Scene) -> Plan | None:
    """Create by POST what is missing, bootstrap first.

    The status is left alone, since once the three are seen one write says it all; but a verdict is held before it is
    acted on, or a provider that stops answering right after the create would take the machine down again.
    """
    spec = scene.machine.spec
    if value_of(scene.capi) is not None or spec is None:
        return None
    present = {
        Role.BOOTSTRAP: value_of(scene.bootstrap) is not None,
        Role.INFRASTRUCTURE: value_of(scene.infrastructure) is not None,
        Role.MACHINE: False,
    }
    wanted = creations(scene.machine.metadata, spec, scene.obs.capi_version)
    return _pending(
        scene,
        "Provisioning",
        "creating the machine",
        groups=tuple(required(action) for action in wanted if not present[action.role]),
        write_status=scene.obs.failure is not None or not _verdict_is_held(scene),
        provisioning=_next_attempt(scene),
    )


def _verdict_is_held(scene: Scene) -> bool:
    held = scene.status.spot_schedule
    return scene.verdict.active is None or (held is not None and held.active is scene.verdict.active)


def _next_attempt(scene: Scene) -> Provisioning | None:
    """The count of replacements outlives the Machine that failed."""
    stored = scene.status.provisioning
    if stored is None or not stored.attempt:
        return None
    return Provisioning(attempt=stored.attempt)


# Rows with a Machine of ours that stands


def _terminal_failure(scene: Scene) -> Plan | None:
    capi = value_of(scene.capi)
    node = value_of(scene.node)
    if capi is None or not capi.failure or (node is not None and node.ready):
        return None
    message = f"Machine {capi.metadata.name} has failed: {capi.failure}"
    plan = _standing(scene, capi, Phase.ERROR, "MachineCreationFailed", message)
    had_node = scene.status.node_ref is not None or capi.node_name or node is not None
    if had_node or isinstance(scene.node, Unknown) or scene.paused_by:
        return plan
    return _replace(scene, capi, plan)


def _replace(scene: Scene, capi: CapiMachineView, plan: Plan) -> Plan:
    """A Machine that failed for good and never had a Node is replaced, later each time."""
    stored = scene.status.provisioning or Provisioning()
    uid = capi.metadata.uid
    if stored.replacing != uid:
        attempt = (stored.attempt or 0) + 1
        delay = min(scene.policy.replace_after * 2 ** min(attempt - 1, 16), scene.policy.replace_at_most)
        due = scene.now + delay
        entry = Provisioning(
            started_at=capi.metadata.created_at, attempt=attempt, replacing=uid, not_before=due
        )
        return attrs.evolve(plan, provisioning=entry, wakes=(due,))
    plan = attrs.evolve(plan, provisioning=stored)
    if stored.not_before is not None and scene.now < stored.not_before:
        return attrs.evolve(plan, wakes=(stored.not_before,))
    delete = required(Delete(role=Role.MACHINE, target=reference(capi)))
    return attrs.evolve(plan, groups=(*plan.groups, delete))


def _node_unknown(scene: Scene) -> Plan | None:
    """With a Machine, an unreadable Node changes a condition, never the phase."""
    capi = value_of(scene.capi)
    if capi is None or not isinstance(scene.node, Unknown):
        return None
    why = scene.node
    plan = _standing(scene, capi, None, why.reason, why.why)
    return attrs.evolve(plan, machine_ready=("Unknown", why.reason, why.why))


def _provisioning(scene: Scene) -> Plan | None:
    capi = value_of(scene.capi)
    node = value_of(scene.node)
    if capi is None or (node is not None and node.ready):
        return None
    if _was_ready(scene):
        reason = "NodeNotReady"
        message = f"Node {node.name} is not Ready" if node else "its Node is not there"
        return _standing(scene, capi, Phase.ACTIVE, reason, message)
    started = capi.metadata.created_at
    due = started + scene.policy.provisioning_timeout if started is not None else None
    if node is None and due is not None and scene.now >= due:
        minutes = int(scene.policy.provisioning_timeout.total_seconds() // 60)
        message = f"no Node after {minutes} minutes: is the host switched on and reachable?"
        return _standing(scene, capi, Phase.PENDING, "ProvisioningTimedOut", message)
    text = f"waits for Node {node.name} to be Ready" if node else "waits for the Node"
    plan = _standing(scene, capi, Phase.PENDING, "Provisioning", text)
    return attrs.evolve(plan, wakes=(due,) if node is None and due is not None else ())


def _was_ready(scene: Scene) -> bool:
    """Whether the Node was Ready before: `provisioning` is kept until it is."""
    return scene.status.node_ref is not None and scene.status.provisioning is None


def _active(scene: Scene) -> Plan | None:
    capi = value_of(scene.capi)
    node = value_of(scene.node)
    if capi is None or node is None:
        return None
    return _standing(scene, capi, Phase.ACTIVE, "ReconcileSucceeded", f"Node {node.name} is Ready")


def _standing(scene: Scene, capi: CapiMachineView, phase: Phase | None, reason: str, message: str) -> Plan:
    """A Machine that stands: what is kept right about it and its Node, whatever the row."""
    node = value_of(scene.node)
    ready = node is not None and node.ready
    taint_plan = _taints(scene, node)
    if scene.paused_by is not None:
        message = f"{message}; paused by {scene.paused_by}"
    # The first Node ends the count of replacements; its first Ready ends provisioning.
    stored = scene.status.provisioning
    attempt = stored.attempt if stored is not None and node is None else None
    kept = Provisioning(started_at=capi.metadata.created_at, attempt=attempt)
    actions = _machine_upkeep(scene, capi) + _node_upkeep(scene, node, taint_plan)
    return Plan(
        phase=phase,
        reason=reason,
        message=message,
        groups=groups_of(*(best_effort(action) for action in actions)),
        events=_stale_request(scene)[1],
        reclaim=_stale_request(scene)[0],
        provisioning=None if ready or _was_ready(scene) else kept,
        last_node=_last_node(scene, node),
        node_ref=_node_ref(scene, node),
        machine_ready=("True" if ready else "False", "MachineReady" if ready else reason, message),
        taints=taint_plan.applied if taint_plan else scene.status.applied_node_taints,
        taint_condition=_taint_condition(scene, node, taint_plan),
    )


def _node_ref(scene: Scene, node: NodeView | None) -> NodeReference | None:
    if node is None:
        return scene.status.node_ref
    return NodeReference(name=node.name, uid=node.uid, cluster=scene.machine.intent.cluster_name)


def _last_node(scene: Scene, node: NodeView | None) -> LastNode | None:
    if node is None:
        return scene.status.last_node
    return LastNode(
        cluster=scene.machine.intent.cluster_name, name=node.name, uid=node.uid, system_uuid=node.system_uuid
    )


# What is kept right about a Machine that stands


def _machine_upkeep(scene: Scene, capi: CapiMachineView) -> tuple[Action, ...]:
    found: list[Action] = []
    undone: dict[str, str | None] = {
        key: None
        for key in (SKIP_REMEDIATION, EXCLUDE_NODE_DRAINING, EXCLUDE_VOLUME_DETACH)
        if key in capi.metadata.annotations
    }
    if scene.status.shutdown is not None and undone:
        found.append(AnnotateMachine(target=reference(capi), annotations=undone))
    if capi.paused_condition and scene.paused_by is None and scene.cluster is not None:
        # Cluster API does not wake Machines when their Cluster is unpaused.
        wake = str(scene.cluster.generation)
        if capi.metadata.annotations.get(UNPAUSED) != wake:
            found.append(AnnotateMachine(target=reference(capi), annotations={UNPAUSED: wake}))
    spec = scene.machine.spec
    template = spec.machine_template if spec else None
    if template is not None and scene.paused_by is None:
        labels = _missing(template.labels, capi.metadata.labels)
        annotations = _missing(template.annotations, capi.metadata.annotations)
        if labels or annotations:
            found.append(LabelMachine(target=reference(capi), labels=labels, annotations=annotations))
    return tuple(found)


def _missing(wanted: Mapping[str, str], found: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in wanted.items() if found.get(key) != value}


def _node_upkeep(scene: Scene, node: NodeView | None, taint_plan: TaintPlan | None) -> tuple[Action, ...]:
    if node is None:
        return ()
    found: list[Action] = []
    if cordoned_by_us(node, scene.mark) and scene.paused_by is None:
        # A change of mind, or a machine that was taken up again: only our own cordon is taken off.
        found.append(Uncordon(node=node.name, resource_version=node.resource_version))
    elif taint_plan is not None and taint_plan.changed and node.ready:
        found.append(
            SetTaints(
                node=node.name,
                resource_version=node.resource_version,
                taints=taint_plan.taints,
                applied=taint_plan.applied,
            )
        )
    stale = _stale_request(scene)[2]
    return (*found, *((stale,) if stale else ()))


def _taints(scene: Scene, node: NodeView | None) -> TaintPlan | None:
    """None when neither is anything wanted nor recorded as ours, or when there is no Node to look at."""
    spec = scene.machine.spec
    if node is None or spec is None:
        return None
    recorded = applied_taints(node.annotations)
    if not spec.node_taints and not recorded:
        return None
    return plan_taints(spec.node_taints, node.taints, recorded)


def _taint_condition(
    scene: Scene, node: NodeView | None, plan: TaintPlan | None
) -> tuple[str, str, str] | None:
    spec = scene.machine.spec
    if plan is None:
        if spec is not None and spec.node_taints and node is None:
            return ("False", "NoNodeYet", "taints are applied once the Node is there")
        return None
    if plan.conflicts:
        names = listed([f"{taint.key}:{taint.effect}" for taint in plan.conflicts])
        return ("False", "TaintOwnershipConflict", f"somebody else owns {names}")
    if node is not None and not node.ready and plan.changed:
        return ("False", "NodeNotReady", "taints are applied once the Node is Ready")
    if plan.changed:
        return ("False", "Provisioning", "applying taints")
    return ("True", "Applied", f"{len(plan.applied)} taints")


def _stale_request(
    scene: Scene,
) -> tuple[Reclaim | None, tuple[Event, ...], ClearReclaimRequest | None]:
    """Reclaim requests that start nothing: meant for the life before, or for a machine without an emergency path."""
    record = _reclaim(scene)
    node, capi = value_of(scene.node), value_of(scene.capi)
    request = reclaims.request_on(node)
    if request is None or node is None or capi is None:
        return record, (), None
    if not scene.machine.intent.reclaim_enabled or not reclaims.is_stale(request, scene.machine, capi):
        return record, (), None
    clear = ClearReclaimRequest(node=ReclaimedNode(name=node.name, uid=node.uid))
    uid = capi.metadata.uid
    if record is not None and record.stale_cleared_for == uid:
        return record, (), None
    text = f"a reclaim request from before this machine existed is cleared: {request.reason}"
    event = Event(severity=Severity.NORMAL, reason="ReclaimRequestStale", message=text)
    return attrs.evolve(record or Reclaim(), stale_cleared_for=uid), (event,), clear


_Row = Callable[[Scene], Plan | None]
_ROWS: tuple[_Row, ...] = (
    _unreadable,
    _life_before,
    _shutdown_is_over,
    _vanished,
    _paused,
    _invalid,
    _no_cluster,
    _stray_node,
    _waits_for_slot,
    _create,
    _terminal_failure,
    _node_unknown,
    _provisioning,
    _active,
)
