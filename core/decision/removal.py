"""How a machine goes down: the intent first, then one small level-triggered step per pass.

A decision that starts a removal, or makes it more urgent, only stores `status.shutdown`. Whatever cannot be undone is
decided from a stored intent alone, so a conflict on the status write, a crash or a second replica never deletes on a
decision that nobody can read afterwards.
"""

from datetime import timedelta

import attrs

from fivespot.core.api import reasons
from fivespot.core.api.scheduled_machine import Manner, Reclaim, Shutdown
from fivespot.core.decision import reclaim as reclaims
from fivespot.core.decision.actions import Event, Severity
from fivespot.core.decision.drain import has_to_go
from fivespot.core.decision.emergency import now
from fivespot.core.decision.graceful import graceful
from fivespot.core.decision.knowledge import Present, Unknown, value_of
from fivespot.core.decision.observation import Slot
from fivespot.core.decision.plan import Plan
from fivespot.core.decision.rest import finish
from fivespot.core.decision.scene import Scene, reclaim_record
from fivespot.core.decision.steps import leaving, waiting_message
from fivespot.core.decision.target import Decider
from fivespot.core.instant import later

_NEVER_WAITS = frozenset({Decider.DELETED, Decider.KILL_SWITCH, Decider.RECLAIM, Decider.CLUSTER_DELETING})


def plan_down(scene: Scene) -> Plan:
    """The rows of the phase table for a machine that should not exist."""
    if scene.nothing_exists:
        return finish(scene)
    stored = scene.status.shutdown
    if stored is None and _out_of_sight(scene):
        return _unseen(scene)
    wanted = _wanted(scene)
    if stored is None or _is_new_intent(stored, wanted):
        return _intent(scene, wanted)
    if wanted.manner is Manner.GRACEFUL:
        return graceful(scene, wanted)
    if scene.facts.requested is None:
        return now(scene, wanted)
    # A kill does not wait for the reclaim that was asked for meanwhile to be noted.
    return _noted(scene, now(scene, wanted)) if scene.machine.intent.kill_switch else _intent(scene, wanted)


def _out_of_sight(scene: Scene) -> bool:
    """Whether nothing of ours is seen and something could not be read: nothing begins on account of an Unknown.

    Except what can go on blindly: an urgent removal of a Machine that status recorded.
    """
    if any(isinstance(part, Present) for _, part in scene.parts):
        return False
    blindly = isinstance(scene.capi, Unknown) and scene.status.machine_ref is not None
    return not (blindly and scene.target.manner is Manner.NOW)


def _unseen(scene: Scene) -> Plan:
    """Phase and references stay as stored."""
    unknown = scene.unknown or Unknown(reasons.MACHINE_MISSING)
    text = f"could not be read: {unknown.why}"
    return Plan(
        phase=None,
        reason=unknown.reason,
        message=text,
        reclaim=reclaim_record(scene),
        provisioning=scene.status.provisioning,
        last_node=scene.status.last_node,
        node_ref=scene.status.node_ref,
        machine_ready=("Unknown", unknown.reason, unknown.why),
    )


def _wanted(scene: Scene) -> Shutdown:
    """The stored removal, brought up to date: its manner tightens, its bounds start, stop or wait."""
    cause = scene.target.decider.value
    stored = scene.status.shutdown or Shutdown(cause=cause)
    if scene.target.manner is Manner.NOW and stored.manner is not Manner.NOW:
        stored = attrs.evolve(stored, manner=Manner.NOW, cause=cause, remaining_pods=None, blocked_by=())
    return _stamp(scene, stored)


def _stamp(scene: Scene, shutdown: Shutdown) -> Shutdown:
    """Run the bounds: from when a slot is granted and nothing is paused, and as long as the spec says now."""
    if scene.paused_by is not None:
        return _stopped(shutdown) if _stands(scene) else shutdown
    if shutdown.started_at is None and _waits(scene, shutdown):
        return shutdown
    started = shutdown.started_at or scene.now
    if shutdown.deadline is not None and scene.machine.spec is None:
        return shutdown  # an edit that cannot be read shortens nothing
    intent = scene.machine.intent
    whole = timedelta(seconds=intent.graceful_shutdown_timeout.seconds)
    drain = min(whole, timedelta(seconds=intent.node_drain_timeout.seconds))
    bounds = (started, later(started, drain), later(started, whole))
    if bounds == (shutdown.started_at, shutdown.drain_deadline, shutdown.deadline):
        return shutdown
    return attrs.evolve(shutdown, started_at=started, drain_deadline=bounds[1], deadline=bounds[2])


def _stopped(shutdown: Shutdown) -> Shutdown:
    """A pause before the Machine's deletion ends the bounds, and whatever was found meanwhile."""
    return attrs.evolve(shutdown, started_at=None, drain_deadline=None, deadline=None, drained_at=None)


def _stands(scene: Scene) -> bool:
    return isinstance(scene.capi, Present) and not scene.capi.value.metadata.deleting


def _waits(scene: Scene, shutdown: Shutdown) -> bool:
    """Whether a cap holds the drain back; kill switch, deletion, ClusterDeleting and reclaim never wait."""
    return (
        scene.obs.slot is Slot.WAITING
        and shutdown.manner is Manner.GRACEFUL
        and scene.target.decider not in _NEVER_WAITS
    )


def _is_new_intent(stored: Shutdown, wanted: Shutdown) -> bool:
    """A removal that becomes more urgent, or whose bounds move while they matter, is stored before it is acted on."""
    if stored.manner is not wanted.manner:
        return True
    return wanted.manner is Manner.GRACEFUL and (
        (stored.started_at, stored.drain_deadline, stored.deadline)
        != (wanted.started_at, wanted.drain_deadline, wanted.deadline)
    )


def _intent(scene: Scene, shutdown: Shutdown) -> Plan:
    """Store what is about to happen, and do nothing yet."""
    if scene.facts.requested is not None:
        # As every later pass says it, so that the deletion of the pods does not wait for another write.
        why = f"reclaim in progress: {scene.facts.requested.reason}"
        plan = leaving(scene, _with_pods(scene, shutdown), "", f"leaving the cluster: {why}")
        plan = _noted(scene, attrs.evolve(plan, events=_orphan(scene)))
        return attrs.evolve(plan, scheduled=why) if scene.target.decider is Decider.RECLAIM else plan
    if shutdown.started_at is None and shutdown.manner is Manner.GRACEFUL:
        reason = reasons.PAUSED if scene.paused_by else reasons.WAITING_FOR_SLOT
        return leaving(scene, shutdown, reason, waiting_message(scene), events=_orphan(scene))
    text = f"leaving the cluster: {scene.target.why}"
    return leaving(scene, shutdown, reasons.GRACE_PERIOD_ACTIVE, text, events=_orphan(scene))


def _noted(scene: Scene, plan: Plan) -> Plan:
    """The plan with the requested reclaim on record."""
    request, node = scene.facts.requested, value_of(scene.node)
    if request is None or node is None or plan.confirm:
        return plan
    record = reclaims.begin(request, scene.status.reclaim, node, scene.now)
    events = _reclaim_events(record, scene.policy.rapid_reclaim_window)
    return attrs.evolve(plan, reclaim=record, events=plan.events + events)


def _with_pods(scene: Scene, shutdown: Shutdown) -> Shutdown:
    """Pods that are listed already are noted with the intent: whether there were any decides how long to wait."""
    pods = [pod for pod in value_of(scene.obs.pods) or () if has_to_go(pod)]
    stopping = any(not pod.deleting for pod in pods)
    return attrs.evolve(shutdown, remaining_pods=len(pods)) if stopping else shutdown


def _orphan(scene: Scene) -> tuple[Event, ...]:
    """A Machine of ours that status knew nothing of is taken out like any other."""
    capi = value_of(scene.capi)
    if capi is None or scene.status.shutdown is not None or scene.status.machine_ref is not None:
        return ()
    text = f"Machine {capi.metadata.name} of ours exists although status did not know it; taking it out"
    return (Event(severity=Severity.NORMAL, reason=reasons.ORPHAN_ADOPTED, message=text),)


def _reclaim_events(record: Reclaim, window: timedelta) -> tuple[Event, ...]:
    begun = Event(
        severity=Severity.WARNING,
        reason=reasons.EMERGENCY_RECLAIM,
        message=record.reason or "no reason given",
    )
    if not reclaims.is_rapid(record, window):
        return (begun,)
    text = f"reclaimed for the third time within {int(window.total_seconds() // 60)} minutes"
    return (begun, Event(severity=Severity.WARNING, reason=reasons.RAPID_RE_RECLAIM, message=text))
