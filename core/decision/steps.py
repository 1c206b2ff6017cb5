"""What every pass of a removal is made of: what it says, the deletion of the Machine, and the wait for what is left."""

from datetime import datetime

import attrs

from fivespot.core.api import reasons
from fivespot.core.api.scheduled_machine import DrainTimeout, Manner, Reclaim, Shutdown
from fivespot.core.decision import reclaim as reclaims
from fivespot.core.decision.actions import AnnotateMachine, Delete, Event, Group, Role
from fivespot.core.decision.knowledge import Unknown, value_of
from fivespot.core.decision.observation import CapiMachineView
from fivespot.core.decision.phase import Phase
from fivespot.core.decision.plan import Plan, ask, best_effort, groups_of, required
from fivespot.core.decision.remains import remains
from fivespot.core.decision.rest import drop_finalizer, finish
from fivespot.core.decision.scene import Scene, last_node, node_reference, reclaim_record, reference
from fivespot.core.decision.upkeep import unpause
from fivespot.core.instant import later
from fivespot.core.names import EXCLUDE_NODE_DRAINING, EXCLUDE_VOLUME_DETACH, SKIP_REMEDIATION

_URGENT = {Phase.TERMINATED: reasons.KILL_SWITCH_ACTIVATED, Phase.EMERGENCY_REMOVE: reasons.EMERGENCY_RECLAIM}


def removal_phase(scene: Scene) -> Phase:
    """The phase while something of ours still exists."""
    if scene.target.manner is Manner.GRACEFUL:
        return Phase.SHUTTING_DOWN
    reclaiming = reclaims.in_progress(scene.status.reclaim) or scene.facts.requested is not None
    return Phase.EMERGENCY_REMOVE if reclaiming and not scene.machine.intent.kill_switch else Phase.TERMINATED


def leaving(
    scene: Scene,
    shutdown: Shutdown,
    reason: str,
    message: str,
    *groups: Group | None,
    wakes: tuple[datetime | None, ...] = (),
    events: tuple[Event, ...] = (),
    reclaim: Reclaim | None = None,
    known: bool = True,
) -> Plan:
    """A pass of a removal. Urgent ones name their cause; `known` is False where phase must stay as stored."""
    phase = removal_phase(scene)
    node = value_of(scene.node)
    return Plan(
        phase=phase if known else None,
        reason=_URGENT.get(phase, reason),
        message=message,
        groups=groups_of(*groups),
        events=events,
        shutdown=shutdown,
        reclaim=reclaim if reclaim is not None else reclaim_record(scene),
        last_node=last_node(scene, node),
        node_ref=node_reference(scene, node),
        wakes=tuple([at for at in (shutdown.deadline, *wakes) if at is not None]),
    )


def waiting_message(scene: Scene) -> str:
    """What a removal that may not begin waits for."""
    if scene.paused_by:
        return f"waits for the end of a pause: {scene.paused_by}"
    return "waits for a drain slot: --max-draining is reached"


def annotate(capi: CapiMachineView, *keys: str) -> Group | None:
    """Set annotations of which any value counts, those that are not there yet."""
    missing: dict[str, str | None] = {key: "" for key in keys if key not in capi.metadata.annotations}
    return best_effort(AnnotateMachine(target=reference(capi), annotations=missing)) if missing else None


def deletion(capi: CapiMachineView) -> tuple[Group | None, Group]:
    """Only the Machine: Cluster API removes infrastructure, then bootstrap, then Node."""
    return (
        annotate(capi, SKIP_REMEDIATION, EXCLUDE_NODE_DRAINING, EXCLUDE_VOLUME_DETACH),
        required(Delete(role=Role.MACHINE, target=reference(capi))),
    )


def delete_machine(
    scene: Scene, shutdown: Shutdown, capi: CapiMachineView, why: str, reason: str = reasons.NODE_DRAINED
) -> Plan:
    """Delete the Machine, which has been drained or must not be."""
    text = f"deleting Machine {capi.metadata.name}: {why}"
    return leaving(scene, shutdown, reason, text, *deletion(capi))


def unreadable(scene: Scene, shutdown: Shutdown, unknown: Unknown) -> Plan:
    """Something that matters could not be read: phase and references stay as stored."""
    return _overdue(
        scene, shutdown, unknown.reason, f"could not be read: {unknown.why}", known=False, force=False
    )


def until_gone(scene: Scene, shutdown: Shutdown) -> Plan:
    """The Machine is going or gone: delete what Cluster API left behind, in its order, and wait."""
    capi = value_of(scene.capi)
    if capi is not None:
        wake = best_effort(*unpause(scene, capi))
        return _waiting_for(scene, shutdown, f"Machine {capi.metadata.name}", wake)
    hands_off = scene.paused_by is not None and shutdown.manner is Manner.GRACEFUL
    left = remains(scene, lambda _role, _view: True, hands_off=hands_off)
    if left is None:
        return finish(scene)
    if left.unknown is not None:
        return unreadable(scene, shutdown, left.unknown)
    return ask(*left.confirm) if left.confirm else _waiting_for(scene, shutdown, left.what, *left.groups)


def _waiting_for(scene: Scene, shutdown: Shutdown, what: str, *groups: Group) -> Plan:
    text = f"waits until {what} is gone"
    if scene.paused_by is not None:
        text = f"{text}; it waits for the end of a pause: {scene.paused_by}"
    return _overdue(scene, shutdown, reasons.MACHINE_DELETED, text, *groups)


def _overdue(
    scene: Scene,
    shutdown: Shutdown,
    reason: str,
    message: str,
    *groups: Group,
    known: bool = True,
    force: bool = True,
) -> Plan:
    """A wait, which is reported when it lasts too long.

    The finalizer may be forced off only where it is known that nothing is paused and nothing has to be held: without
    it, garbage collection deletes the Machine.
    """
    due = later(shutdown.deadline, scene.policy.cleanup_grace) if shutdown.deadline is not None else None
    if due is None or scene.now < due:
        return leaving(scene, shutdown, reason, message, *groups, wakes=(due,), known=known)
    forced = (
        force
        and scene.policy.force_finalizer_on_timeout
        and scene.machine.intent.on_drain_timeout is not DrainTimeout.HOLD
        and scene.paused_by is None
    )
    drop = drop_finalizer(scene) if forced else None
    plan = leaving(scene, shutdown, reason, message, *groups, drop, known=known)
    return attrs.evolve(plan, reason=reasons.FINALIZER_CLEANUP_TIMED_OUT)
