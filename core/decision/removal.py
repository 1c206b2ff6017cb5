"""How a machine goes down: the intent first, then one small level-triggered step per pass.

A decision that starts a removal, or makes it more urgent, only stores `status.shutdown`. Whatever cannot be undone is
decided from a stored intent alone, so a conflict on the status write, a crash or a second replica never deletes on a
decision that nobody can read afterwards.
"""

from datetime import timedelta

import attrs

from fivespot.core.api.scheduled_machine import DrainTimeout, Manner, Reclaim, Shutdown
from fivespot.core.decision import reclaim as reclaims
from fivespot.core.decision import stray
from fivespot.core.decision.actions import (
    AnnotateMachine,
    ClearReclaimRequest,
    Cordon,
    Delete,
    DeletePod,
    Event,
    Group,
    Part,
    RemoveFinalizer,
    Role,
    Severity,
)
from fivespot.core.decision.drain import Drain, drain_of, has_to_go
from fivespot.core.decision.knowledge import Absent, Present, Unknown, gone, value_of
from fivespot.core.decision.observation import CapiMachineView, NodeView, Slot
from fivespot.core.decision.phase import Phase
from fivespot.core.decision.plan import Plan, best_effort, groups_of, listed, required
from fivespot.core.decision.scene import Reachable, Scene, cordoned_by_us, node_reach, reference
from fivespot.core.decision.target import Decider
from fivespot.core.names import EXCLUDE_NODE_DRAINING, EXCLUDE_VOLUME_DETACH, FINALIZER, SKIP_REMEDIATION

_NEVER_WAITS = frozenset({Decider.DELETED, Decider.KILL_SWITCH, Decider.RECLAIM, Decider.CLUSTER_DELETING})


def plan_down(scene: Scene) -> Plan:
    """The rows of the phase table for a machine that should not exist."""
    if scene.nothing_exists:
        return _finish(scene)
    stored = scene.status.shutdown
    wanted = _wanted_shutdown(scene)
    if stored is None and (unseen := _unseen(scene)) is not None:
        # Whether there is anything to remove is not known: no removal begins on account of that.
        return attrs.evolve(_hold(scene, wanted, unseen), shutdown=None)
    if stored is None or _is_new_intent(stored, wanted):
        return _intent(scene, wanted)
    if wanted.manner is Manner.NOW:
        return _now(scene, wanted)
    return _graceful(scene, wanted)


def _unseen(scene: Scene) -> Unknown | None:
    """What could not be read, when nothing of ours was seen; a recorded Machine can still be removed now, by its uid."""
    if any(isinstance(part, Present) for _, part in scene.parts):
        return None
    urgent = scene.target.manner is Manner.NOW and scene.status.machine_ref is not None
    return None if urgent else scene.unknown


def removal_phase(scene: Scene) -> Phase:
    """The phase while something of ours still exists."""
    if scene.target.manner is Manner.GRACEFUL:
        return Phase.SHUTTING_DOWN
    reclaiming = reclaims.in_progress(scene.status.reclaim) or _requested(scene) is not None
    return Phase.EMERGENCY_REMOVE if reclaiming and not scene.machine.intent.kill_switch else Phase.TERMINATED


# The intent


def _requested(scene: Scene) -> reclaims.Request | None:
    return reclaims.fresh_request(scene.obs, value_of(scene.node))


def _wanted_shutdown(scene: Scene) -> Shutdown:
    """The stored removal, brought up to date: its manner tightens, its bounds start, stop or wait."""
    stored = scene.status.shutdown or Shutdown(cause=scene.target.decider.value)
    manner = scene.target.manner
    if manner is Manner.NOW and stored.manner is not Manner.NOW:
        stored = attrs.evolve(stored, manner=manner, cause=scene.target.decider.value)
    return _stamp(scene, stored)


def _stamp(scene: Scene, shutdown: Shutdown) -> Shutdown:
    if scene.paused_by is not None and not _machine_going(scene):
        return attrs.evolve(shutdown, started_at=None, drain_deadline=None, deadline=None)
    waits = scene.obs.slot is Slot.WAITING and scene.target.decider not in _NEVER_WAITS
    if shutdown.started_at is not None or (waits and shutdown.manner is Manner.GRACEFUL):
        return shutdown
    intent = scene.machine.intent
    whole = timedelta(seconds=intent.graceful_shutdown_timeout.seconds)
    drain = min(whole, timedelta(seconds=intent.node_drain_timeout.seconds))
    return attrs.evolve(
        shutdown, started_at=scene.now, drain_deadline=scene.now + drain, deadline=scene.now + whole
    )


def _machine_going(scene: Scene) -> bool:
    capi = value_of(scene.capi)
    return capi is None or capi.metadata.deleting


def _is_new_intent(stored: Shutdown, wanted: Shutdown) -> bool:
    if wanted.manner is Manner.NOW:
        # Bounds are nothing to a removal without grace: when they stop and start again, its steps go on.
        return stored.manner is not Manner.NOW
    return (stored.manner, stored.started_at) != (wanted.manner, wanted.started_at)


def _intent(scene: Scene, shutdown: Shutdown) -> Plan:
    """Store what is about to happen, and do nothing yet."""
    request = _requested(scene)
    node = value_of(scene.node)
    stored = scene.status.reclaim
    events: tuple[Event, ...] = ()
    if request is not None and node is not None:
        stored = reclaims.begin(request, stored, node, scene.now)
        events = _reclaim_events(scene, request)
    waiting = shutdown.started_at is None
    return Plan(
        phase=removal_phase(scene),
        reason=_reason(
            scene, "Paused" if scene.paused_by else "WaitingForSlot" if waiting else "GracePeriodActive"
        ),
        message=_waiting_message(scene) if waiting else f"leaving the cluster: {scene.target.why}",
        shutdown=shutdown,
        reclaim=stored,
        provisioning=None,
        events=events,
        last_node=scene.status.last_node,
        node_ref=scene.status.node_ref,
    )


def _reclaim_events(scene: Scene, request: reclaims.Request) -> tuple[Event, ...]:
    events = [Event(severity=Severity.WARNING, reason="EmergencyReclaim", message=request.reason)]
    node = value_of(scene.node)
    begun = reclaims.begin(request, scene.status.reclaim, node, scene.now) if node else None
    if begun is not None and reclaims.is_rapid(begun, scene.policy.rapid_reclaim_window):
        events.append(
            Event(
                severity=Severity.WARNING,
                reason="RapidReReclaim",
                message="reclaimed for the third time within ten minutes",
            )
        )
    return tuple(events)


def _reason(scene: Scene, graceful: str) -> str:
    """The reason of a removal: urgent ones name their cause."""
    phase = removal_phase(scene)
    return {Phase.TERMINATED: "KillSwitchActivated", Phase.EMERGENCY_REMOVE: "EmergencyReclaim"}.get(
        phase, graceful
    )


def _waiting_message(scene: Scene) -> str:
    if scene.paused_by:
        return f"waits for the end of a pause: {scene.paused_by}"
    return "waits for a drain slot: --max-draining is reached"


def _base(scene: Scene, shutdown: Shutdown, reason: str, message: str, *groups: Group | None) -> Plan:
    """A pass of a removal in progress."""
    return Plan(
        phase=removal_phase(scene),
        reason=_reason(scene, reason),
        message=message,
        groups=groups_of(*groups),
        shutdown=shutdown,
        reclaim=scene.status.reclaim,
        last_node=scene.status.last_node,
        node_ref=scene.status.node_ref,
        wakes=tuple(at for at in (shutdown.deadline,) if at is not None and at > scene.now),
    )


# Graceful


def _graceful(scene: Scene, shutdown: Shutdown) -> Plan:
    if shutdown.started_at is None:
        reason = "Paused" if scene.paused_by else "WaitingForSlot"
        return _base(scene, shutdown, reason, _waiting_message(scene))
    if scene.paused_by is not None:
        return _base(scene, shutdown, "Paused", _waiting_message(scene))
    unknown = scene.unknown
    if unknown is not None and not isinstance(scene.capi, Present):
        return _hold(scene, shutdown, unknown)
    capi = value_of(scene.capi)
    if capi is None or capi.metadata.deleting:
        return _wait_until_gone(scene, shutdown)
    return _node_steps(scene, shutdown, capi)


def _hold(scene: Scene, shutdown: Shutdown, unknown: Unknown) -> Plan:
    """Something that matters could not be read: phase and references stay as stored."""
    return attrs.evolve(
        _base(scene, shutdown, unknown.reason, f"could not be read: {unknown.why}"), phase=None
    )


def _node_steps(scene: Scene, shutdown: Shutdown, capi: CapiMachineView) -> Plan:
    reach = node_reach(scene)
    if isinstance(scene.obs.cluster, Absent) and not gone(scene.obs.cluster):
        return _confirm(scene, shutdown, Part.CLUSTER)
    if reach is Reachable.CLUSTER_GONE:
        return _delete_machine(scene, shutdown, capi, "its Cluster is gone or going: node steps are skipped")
    if reach is Reachable.NOTHING_THERE:
        if not gone(scene.node):
            return _confirm(scene, shutdown, Part.NODE)
        return _delete_machine(scene, shutdown, capi, "it has no Node to drain")
    node = value_of(scene.node)
    if reach is Reachable.UNKNOWN or node is None:
        return _unreachable(scene, shutdown, capi)
    return _drain(scene, shutdown, capi, node)


def _confirm(scene: Scene, shutdown: Shutdown, part: Part) -> Plan:
    return attrs.evolve(_base(scene, shutdown, "", ""), confirm=(part,))


def _unreachable(scene: Scene, shutdown: Shutdown, capi: CapiMachineView) -> Plan:
    """The child cannot be seen: wait for the whole bound, then go on; under Hold, stay."""
    why = scene.node if isinstance(scene.node, Unknown) else scene.obs.pods
    text = why.why if isinstance(why, Unknown) else "its pods have not been listed"
    if _passed(scene, shutdown, whole=True):
        return _delete_machine(
            scene, shutdown, capi, f"the bound passed while the node was out of sight: {text}"
        )
    reason = why.reason if isinstance(why, Unknown) else "NodeDraining"
    return _base(scene, shutdown, reason, f"waits for the node: {text}")


def _passed(scene: Scene, shutdown: Shutdown, *, whole: bool) -> bool:
    """Whether a bound is over; never under Hold."""
    if scene.machine.intent.on_drain_timeout is DrainTimeout.HOLD:
        return False
    bound = shutdown.deadline if whole else shutdown.drain_deadline
    return bound is not None and scene.now >= bound


def _drain(scene: Scene, shutdown: Shutdown, capi: CapiMachineView, node: NodeView) -> Plan:
    pods = value_of(scene.obs.pods) or ()
    drain = drain_of(node, pods, scene.obs.blocked, deadline=shutdown.drain_deadline, now=scene.now)
    shutdown = attrs.evolve(
        shutdown,
        cordoned=cordoned_by_us(node, scene.mark),
        remaining_pods=len(drain.remaining),
        blocked_by=drain.blocked_by,
    )
    if shutdown.drained_at is None and drain.done and node.unschedulable:
        # Written before the Machine is deleted: a crash in between must not drain again from the beginning.
        shutdown = attrs.evolve(shutdown, drained_at=scene.now)
        return _base(scene, shutdown, "NodeDrained", f"Node {node.name} is empty")
    if shutdown.drained_at is not None:
        return _after_drain(scene, shutdown, capi)
    if _passed(scene, shutdown, whole=False):
        left = _left(drain)
        return _delete_machine(
            scene, shutdown, capi, f"the drain bound passed with {left}", "NodeDrainTimedOut"
        )
    return _drain_step(scene, shutdown, capi, node, drain)


def _drain_step(
    scene: Scene, shutdown: Shutdown, capi: CapiMachineView, node: NodeView, drain: Drain
) -> Plan:
    over = shutdown.drain_deadline is not None and scene.now >= shutdown.drain_deadline
    reason = "NodeDrainTimedOut" if over else "NodeDraining"
    message = f"draining Node {node.name}: {_left(drain)}"
    if drain.blocked_by:
        message += f"; protected: {listed(drain.blocked_by)}"
    plan = _base(
        scene,
        shutdown,
        reason,
        message,
        required(*_cordon(scene, node)),
        best_effort(*_annotate(capi, {SKIP_REMEDIATION: ""})),
        best_effort(*drain.evictions),
    )
    events = _blocked_events(scene, drain)
    bounds = tuple(at for at in (shutdown.drain_deadline,) if at is not None and at > scene.now)
    return attrs.evolve(plan, wakes=plan.wakes + bounds, events=events)


def _blocked_events(scene: Scene, drain: Drain) -> tuple[Event, ...]:
    before = scene.status.shutdown.blocked_by if scene.status.shutdown else ()
    if not drain.blocked_by or before:
        return ()
    text = f"a budget protects {listed(drain.blocked_by)}"
    return (Event(severity=Severity.WARNING, reason="DrainBlocked", message=text),)


def _left(drain: Drain) -> str:
    parts = []
    if drain.remaining:
        names = listed([f"{pod.namespace}/{pod.name}" for pod in drain.remaining])
        parts.append(f"{len(drain.remaining)} pods left ({names})")
    if drain.volumes:
        parts.append(f"{len(drain.volumes)} volumes attached")
    return " and ".join(parts) or "nothing left"


def _cordon(scene: Scene, node: NodeView) -> tuple[Cordon, ...]:
    """Cordon with our mark, unless somebody else has cordoned already: that cordon is theirs."""
    if node.unschedulable:
        return ()
    return (Cordon(node=node.name, resource_version=node.resource_version, mark=scene.mark),)


def _after_drain(scene: Scene, shutdown: Shutdown, capi: CapiMachineView) -> Plan:
    until = (shutdown.drained_at or scene.now) + scene.policy.agent_grace
    if scene.obs.agent_present and scene.now < until:
        plan = _base(scene, shutdown, "NodeDrained", "waits for the agent to leave the host clean")
        return attrs.evolve(plan, wakes=(*plan.wakes, until))
    return _delete_machine(scene, shutdown, capi, "its node is empty")


def _annotate(capi: CapiMachineView, wanted: dict[str, str]) -> tuple[AnnotateMachine, ...]:
    missing: dict[str, str | None] = {
        key: value for key, value in wanted.items() if key not in capi.metadata.annotations
    }
    return (AnnotateMachine(target=reference(capi), annotations=missing),) if missing else ()


def _delete_machine(
    scene: Scene, shutdown: Shutdown, capi: CapiMachineView, why: str, reason: str = "NodeDrained"
) -> Plan:
    """Only the Machine: Cluster API removes infrastructure, then bootstrap, then Node."""
    exclude = {SKIP_REMEDIATION: "", EXCLUDE_NODE_DRAINING: "", EXCLUDE_VOLUME_DETACH: ""}
    return _base(
        scene,
        shutdown,
        reason,
        f"deleting Machine {capi.metadata.name}: {why}",
        best_effort(*_annotate(capi, exclude)),
        required(Delete(role=Role.MACHINE, target=reference(capi))),
    )


def _wait_until_gone(scene: Scene, shutdown: Shutdown) -> Plan:
    """The Machine is going or gone: delete what Cluster API left behind, in its order, and wait."""
    if isinstance(scene.capi, Unknown):
        return _hold(scene, shutdown, scene.capi)
    capi = value_of(scene.capi)
    if capi is not None:
        return _waiting_for(scene, shutdown, f"Machine {capi.metadata.name}")
    if not gone(scene.capi):
        return _confirm(scene, shutdown, Part.MACHINE)
    for role, part in ((Role.INFRASTRUCTURE, scene.infrastructure), (Role.BOOTSTRAP, scene.bootstrap)):
        if isinstance(part, Unknown):
            return _hold(scene, shutdown, part)
        view = value_of(part)
        if view is None:
            continue
        plan = _waiting_for(scene, shutdown, f"{view.kind} {view.metadata.name}")
        if view.metadata.deleting:
            return plan
        return attrs.evolve(plan, groups=groups_of(required(Delete(role=role, target=reference(view)))))
    return _finish(scene)


def _waiting_for(scene: Scene, shutdown: Shutdown, what: str) -> Plan:
    plan = _base(scene, shutdown, "MachineDeleted", f"waits until {what} is gone")
    if shutdown.deadline is None:
        return plan
    overdue_at = shutdown.deadline + scene.policy.cleanup_grace
    if scene.now < overdue_at:
        return attrs.evolve(plan, wakes=(*plan.wakes, overdue_at))
    # Without the finalizer, garbage collection deletes the Machine: never under Hold or during a pause.
    forced = (
        scene.policy.force_finalizer_on_timeout
        and scene.machine.intent.on_drain_timeout is not DrainTimeout.HOLD
        and scene.paused_by is None
    )
    groups = groups_of(_drop_finalizer(scene)) if forced else ()
    return attrs.evolve(plan, reason="FinalizerCleanupTimedOut", groups=groups)


# Now


def _now(scene: Scene, shutdown: Shutdown) -> Plan:
    """The kill switch and a reclaim: nothing about the node holds the deletion of the Machine up."""
    capi = value_of(scene.capi)
    reclaiming = reclaims.in_progress(scene.status.reclaim) and not scene.machine.intent.kill_switch
    if isinstance(scene.capi, Unknown):
        return _delete_recorded(scene, shutdown, scene.capi)
    if capi is None or capi.metadata.deleting:
        return _wait_until_gone(scene, shutdown)
    if reclaiming:
        return _free_node(scene, shutdown, capi)
    return _delete_machine(scene, shutdown, capi, scene.target.why)


def _delete_recorded(scene: Scene, shutdown: Shutdown, unknown: Unknown) -> Plan:
    """The Machine cannot be seen: delete what status recorded, by uid; if it is another one by now, nothing happens."""
    recorded = scene.status.machine_ref
    if recorded is None or recorded.uid is None:
        return _hold(scene, shutdown, unknown)
    return _base(
        scene,
        shutdown,
        "MachineDeleted",
        f"deleting Machine {recorded.name}, which could not be read",
        required(Delete(role=Role.MACHINE, target=recorded)),
    )


def _free_node(scene: Scene, shutdown: Shutdown, capi: CapiMachineView) -> Plan:
    """Get the pods off the host, then let Cluster API stop it.

    Only a living kubelet ends containers, and it takes up to 3.2 s after the objects are gone; hence the wait.
    """
    record = scene.status.reclaim
    node, pods = value_of(scene.node), value_of(scene.obs.pods)
    if record is None or node is None or pods is None:
        return _delete_machine(scene, shutdown, capi, "the node cannot be reached; the host is stopped")
    leaving = [pod for pod in pods if has_to_go(pod)]
    deletions = [
        DeletePod(namespace=pod.namespace, name=pod.name, uid=pod.uid) for pod in leaving if not pod.deleting
    ]
    if not leaving and record.pods_deleted_at is None:
        return _delete_machine(scene, shutdown, capi, "its node had no pod to stop")
    due = (record.pods_deleted_at or record.observed_at or scene.now) + scene.policy.pods_to_machine
    if scene.now >= due:
        return _delete_machine(scene, shutdown, capi, "the owner wants the host back")
    plan = _base(
        scene,
        shutdown,
        "EmergencyReclaim",
        f"freeing Node {node.name}: {len(leaving)} pods",
        best_effort(*_cordon(scene, node)),
        best_effort(*deletions),
    )
    if record.pods_deleted_at is None and node.unschedulable and not deletions:
        record = attrs.evolve(record, pods_deleted_at=scene.now)
        due = scene.now + scene.policy.pods_to_machine
    return attrs.evolve(plan, reclaim=record, wakes=(*plan.wakes, due))


# The end


def _finish(scene: Scene) -> Plan:
    """Nothing of ours exists, as far as was seen; what is concluded from that has to be confirmed."""
    confirm = _unconfirmed(scene)
    if confirm:
        return Plan(phase=None, reason="", message="", confirm=confirm)
    settle = stray.settle(scene)
    record = scene.status.reclaim
    events: tuple[Event, ...] = ()
    if reclaims.in_progress(record) and record is not None:
        after = scene.machine.intent.rejoin_after
        record = reclaims.hold(record, scene.now, timedelta(seconds=after.seconds) if after else None)
        text = f"out after a reclaim ({record.reason}); it stays out until released"
        events = (Event(severity=Severity.WARNING, reason="EmergencyReclaimDisabledSchedule", message=text),)
    elif reclaims.held(record) and record is not None:
        record = _held_or_released(scene, record)
    phase, reason, message = _rest(scene)
    until = record.hold_until if record is not None else None
    return Plan(
        phase=phase,
        reason=reason,
        message=settle.message or message,
        groups=groups_of(*settle.groups, _clear_request(scene), _drop_finalizer(scene)),
        events=events + settle.events,
        clear=True,
        reclaim=record,
        last_node=settle.last_node,
        node_ref=settle.node_ref,
        machine_ready=("False", "MachineDeleted", "no machine exists"),
        wakes=tuple(at for at in (until,) if at is not None and at > scene.now),
    )


def _held_or_released(scene: Scene, record: Reclaim) -> Reclaim:
    if reclaims.is_released(scene.machine, scene.now):
        return reclaims.release(record)
    return attrs.evolve(record, hold_until=reclaims.hold_until(scene.machine))


def _unconfirmed(scene: Scene) -> tuple[Part, ...]:
    """What has to be read live before references are cleared or the finalizer is dropped."""
    status = scene.status
    recorded = status.machine_ref or status.bootstrap_ref or status.infrastructure_ref or status.shutdown
    dropping = scene.machine.metadata.deleting and FINALIZER in scene.machine.metadata.finalizers
    if not recorded and not dropping:
        return ()
    return tuple(part for part, seen in scene.parts if not gone(seen))


def _clear_request(scene: Scene) -> Group | None:
    """The annotations are the last thing to go."""
    record = scene.status.reclaim
    if record is None or record.node is None or not reclaims.held(record):
        return None
    return (
        best_effort(ClearReclaimRequest(node=record.node))
        if reclaims.names_node(record, scene.obs.last_node)
        else None
    )


def _drop_finalizer(scene: Scene) -> Group | None:
    meta = scene.machine.metadata
    if not meta.deleting or FINALIZER not in meta.finalizers:
        return None
    return required(RemoveFinalizer(resource_version=meta.resource_version))


def _rest(scene: Scene) -> tuple[Phase, str, str]:
    """Phase, reason and message of a machine of which nothing exists."""
    intent, record = scene.machine.intent, scene.status.reclaim
    if intent.kill_switch:
        return Phase.TERMINATED, "KillSwitchActivated", "killed; set killSwitch to false to use it again"
    if scene.target.decider is Decider.RECLAIM and record is not None:
        reason = "EmergencyReclaimDisabledSchedule"
        held = (
            f"held after a reclaim ({record.reason}); release with: {reclaims.release_command(scene.machine)}"
        )
        return Phase.DISABLED, reason, held
    if not intent.enabled:
        return Phase.DISABLED, "ScheduleDisabled", "disabled: spec.enabled is false"
    if scene.target.decider is Decider.NEVER_RESOLVED:
        return Phase.INACTIVE, "AwaitingSchedule", scene.verdict.message
    return Phase.INACTIVE, "ScheduleInactive", scene.target.why
