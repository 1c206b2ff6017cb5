"""The status that says what was observed and decided: derived last, from facts, and never from the clock alone."""

from datetime import datetime, timedelta
from typing import Final, TypeAlias

import attrs

from fivespot.core.api import reasons
from fivespot.core.api.common import Condition, ObjectReference, in_brief
from fivespot.core.api.common import condition as condition_of
from fivespot.core.api.scheduled_machine import ScheduledMachineStatus, Taint
from fivespot.core.decision import reclaim as reclaims
from fivespot.core.decision import verdict as verdicts
from fivespot.core.decision.actions import Event, Severity
from fivespot.core.decision.knowledge import CHILD_OUT_OF_REACH, Absent, Present, Unknown, value_of
from fivespot.core.decision.observation import CapiMachineView, DependentView, Failure
from fivespot.core.decision.phase import Phase
from fivespot.core.decision.plan import Plan
from fivespot.core.decision.scene import Scene, reference
from fivespot.core.decision.target import Decider
from fivespot.core.instant import later

_AT_ONCE: Final = frozenset({"Forbidden", "Invalid"})
"""Reasons that no retry cures: they are reported as Error without waiting."""
_ACTIVE: Final = Phase.ACTIVE.value
_NAME_CONFLICT: Final = reasons.NAME_CONFLICT
_WARNINGS: Final = frozenset(
    {
        reasons.MACHINE_CREATION_FAILED, reasons.MACHINE_DELETION_FAILED, reasons.MACHINE_MISSING, reasons.PROVISIONING_TIMED_OUT,
        reasons.FINALIZER_CLEANUP_TIMED_OUT, reasons.NODE_DRAIN_TIMED_OUT, reasons.NODE_DRAIN_FAILED, reasons.KILL_SWITCH_ACTIVATED, reasons.NAME_CONFLICT,
        reasons.PERMISSION_DENIED, reasons.REFERENCES_INVALID, reasons.TAINT_OWNERSHIP_CONFLICT, reasons.PATCH_FAILED, reasons.NODE_NOT_READY,
        reasons.CHILD_CLUSTER_UNREACHABLE,
    }
)  # fmt: skip
_NEXT_FIELDS: Final = ("next_transition", "next_activation", "next_cleanup")
_OF_A_MACHINE: Final = (reasons.NODE_TAINTED, reasons.CHILD_CLUSTER_REACHABLE, reasons.RECLAIM_HONOURED)
"""Conditions that describe a machine that exists; they go with it."""

_Wanted: TypeAlias = tuple[str, str, str, str]
"""Type, status, reason and message of a condition."""


@attrs.frozen(kw_only=True)
class Report:
    """The new status, the events its changes are worth, and when to look again because of it."""

    status: ScheduledMachineStatus
    events: tuple[Event, ...]
    wakes: tuple[datetime | None, ...]


def report(scene: Scene, plan: Plan) -> Report:
    """Derive the status. A part that cannot be known stays as stored."""
    failed_until = None
    if scene.obs.failure is not None:
        plan, failed_until = _overlay_failure(scene, plan, scene.obs.failure)
    stored = scene.status
    phase = plan.phase.value if plan.phase is not None else stored.phase
    ready = phase == _ACTIVE and _node_ready(scene, plan)
    capi = scene.capi.value if isinstance(scene.capi, Present) else None
    upcoming, opens, closes = _next(scene)
    message = plan.message or stored.message
    conditions, told = _conditions(scene, plan, ready=ready, message=message or "")
    status = ScheduledMachineStatus(
        phase=phase,
        ready=ready,
        in_schedule=scene.schedule.active,
        message=message,
        observed_generation=scene.machine.metadata.generation,
        decided_by=scene.target.decider.value,
        conditions=conditions,
        machine_ref=_reference(plan, capi, stored.machine_ref),
        bootstrap_ref=_reference(plan, value_of(scene.bootstrap), stored.bootstrap_ref),
        infrastructure_ref=_reference(plan, value_of(scene.infrastructure), stored.infrastructure_ref),
        node_ref=plan.node_ref,
        last_node=plan.last_node,
        provider_id=_provider_id(plan, capi, stored.provider_id),
        applied_node_taints=_taints(plan, stored),
        last_scheduled_time=(capi.metadata.created_at if capi else None) or stored.last_scheduled_time,
        next_activation=opens,
        next_cleanup=closes,
        next_transition=upcoming,
        spot_schedule=scene.spot,
        shutdown=plan.shutdown,
        reclaim=plan.reclaim,
        provisioning=plan.provisioning,
    )
    changed = status != stored
    throttled_until = _throttled_until(scene, status) if changed else None
    if throttled_until is not None:
        status, changed = stored, False
    return Report(
        status=status,
        events=_change_events(scene, status, plan, told) if changed else (),
        wakes=(failed_until, throttled_until, verdicts.stale_until(scene.verdict, scene.now)),
    )


def _overlay_failure(scene: Scene, plan: Plan, failure: Failure) -> tuple[Plan, datetime | None]:
    """Error lies over any row while the same step keeps failing; the actions stay the same, so it is never a trap."""
    until = later(failure.since, scene.policy.error_after)
    reason = _failure_reason(failure)
    message = f"{failure.step} fails: {failure.message}"
    if failure.reason in _AT_ONCE or scene.now >= until:
        return attrs.evolve(plan, phase=Phase.ERROR, reason=reason, message=message), None
    if failure.reason == _NAME_CONFLICT:
        return attrs.evolve(plan, reason=reason, message=message), until
    return plan, until


def _failure_reason(failure: Failure) -> str:
    if failure.reason == "Forbidden":
        return reasons.PERMISSION_DENIED
    if failure.reason == _NAME_CONFLICT:
        return _NAME_CONFLICT
    verb = failure.step.partition(" ")[0]
    return {
        "create": reasons.MACHINE_CREATION_FAILED,
        "delete": reasons.MACHINE_DELETION_FAILED,
        "evict": reasons.NODE_DRAIN_FAILED,
        "taint": reasons.PATCH_FAILED,
    }.get(verb, reasons.PATCH_FAILED)


def _node_ready(scene: Scene, plan: Plan) -> bool:
    node = value_of(scene.node)
    if plan.phase is None and isinstance(scene.node, Unknown):
        return bool(scene.status.ready)
    return node is not None and node.ready


def _reference(
    plan: Plan, view: CapiMachineView | DependentView | None, stored: ObjectReference | None
) -> ObjectReference | None:
    if plan.clear:
        return None
    if view is None:
        return stored
    if stored is not None and stored.uid == view.metadata.uid and stored.api_version == view.api_version:
        return stored
    return reference(view)


def _provider_id(plan: Plan, capi: CapiMachineView | None, stored: str | None) -> str | None:
    if plan.clear:
        return None
    return (capi.provider_id or None) if capi else stored


def _taints(plan: Plan, stored: ScheduledMachineStatus) -> tuple[Taint, ...]:
    if plan.taints is not None:
        return plan.taints.applied
    return () if plan.clear else stored.applied_node_taints


def _next(scene: Scene) -> tuple[datetime | None, datetime | None, datetime | None]:
    """The provider's next transition, activation and cleanup; as stored while the provider cannot be read."""
    verdict = scene.verdict
    if verdict.active is None:
        stored = scene.status
        return stored.next_transition, stored.next_activation, stored.next_cleanup
    due = verdict.next_transition
    return due, None if verdict.active else due, due if verdict.active else None


def _throttled_until(scene: Scene, status: ScheduledMachineStatus) -> datetime | None:
    """A mere change of the next transition is written at most once a minute: until when it waits."""
    stored, written = scene.status, scene.obs.status_written_at
    if written is None or written > scene.now:
        return None
    due = later(written, scene.policy.next_transition_interval)
    if scene.now >= due:
        return None
    as_stored = {name: getattr(stored, name) for name in _NEXT_FIELDS}
    return due if attrs.evolve(status, **as_stored) == stored else None


# Conditions


def _conditions(
    scene: Scene, plan: Plan, *, ready: bool, message: str
) -> tuple[tuple[Condition, ...], tuple[Event, ...]]:
    """Ours, merged by type into what is stored; those of others stay. With the events that a new one is worth."""
    stored = scene.status.conditions
    taint, ignored = plan.taints.condition if plan.taints is not None else None, _ignored_request(scene)
    wanted = (
        (reasons.READY, "True" if ready else "False", plan.reason, message),
        _scheduled(scene, plan),
        _resolved(scene),
        _machine_ready(plan),
        _references_valid(scene),
        (reasons.NODE_TAINTED, *taint) if taint is not None else None,
        _child_reachable(scene),
        ignored,
    )
    generation = scene.machine.metadata.generation
    found = {entry.type: entry for entry in stored}
    news = False
    for entry in wanted:
        if entry is None:
            continue
        of_type, status, reason, text = entry
        before = found.get(of_type)
        if (
            before is None
            or before.message != text
            or before.reason != reason
            or before.status != status
            or before.observed_generation != generation
        ):
            found[of_type] = _condition(scene, before, entry)
            news = True
    for name in _outdated(scene, plan, ignored):
        news = found.pop(name, None) is not None or news
    if not news:
        return stored, ()
    return tuple(found.values()), _told(scene, ignored)


def _told(scene: Scene, ignored: _Wanted | None) -> tuple[Event, ...]:
    """A request that is not honoured is worth one event."""
    if ignored is None:
        return ()
    before = condition_of(scene.status.conditions, ignored[0])
    if before is not None and before.message == ignored[3]:
        return ()
    return (Event(severity=Severity.WARNING, reason=ignored[2], message=ignored[3]),)


def _outdated(scene: Scene, plan: Plan, ignored: _Wanted | None) -> tuple[str, ...]:
    """Conditions that describe nothing any more."""
    if plan.clear:
        return _OF_A_MACHINE
    taints = (reasons.NODE_TAINTED,) if plan.taints is not None and plan.taints.condition is None else ()
    request = (reasons.RECLAIM_HONOURED,) if ignored is None and isinstance(scene.node, Present) else ()
    return taints + request


def _condition(scene: Scene, before: Condition | None, wanted: _Wanted) -> Condition:
    """Its time moves only when its status does."""
    of_type, status, reason, message = wanted
    same = before is not None and before.status == status
    return Condition(
        type=of_type,
        status=status,
        reason=reason,
        message=in_brief(message),
        last_transition_time=before.last_transition_time if same and before else _whole_second(scene.now),
        observed_generation=scene.machine.metadata.generation,
    )


def _whole_second(at: datetime) -> datetime:
    """metav1.Time has whole seconds: anything finer would come back different and be written again."""
    return at - timedelta(microseconds=at.microsecond)


_SCHEDULED = {
    Decider.DELETED: reasons.MACHINE_DELETED,
    Decider.KILL_SWITCH: reasons.KILL_SWITCH_ACTIVATED,
    Decider.RECLAIM: reasons.EMERGENCY_RECLAIM,
    Decider.DISABLED: reasons.SCHEDULE_DISABLED,
    Decider.CLUSTER_DELETING: reasons.SCHEDULE_INACTIVE,
    Decider.NEVER_RESOLVED: reasons.AWAITING_SCHEDULE,
}


def _scheduled(scene: Scene, plan: Plan) -> _Wanted:
    decider = scene.target.decider
    text = plan.scheduled or scene.target.why
    if scene.target.up:
        return reasons.SCHEDULED, "True", reasons.SCHEDULE_ACTIVE, text
    reason = _SCHEDULED.get(decider, reasons.SCHEDULE_INACTIVE)
    if decider is Decider.RECLAIM and plan.clear:
        reason = reasons.EMERGENCY_RECLAIM_DISABLED_SCHEDULE
    return reasons.SCHEDULED, "False", reason, text


def _resolved(scene: Scene) -> _Wanted | None:
    spot = scene.spot
    if spot.reason is None or (scene.verdict.active is None and spot is scene.status.spot_schedule):
        return None
    message = spot.message or ""
    overdue = verdicts.overdue_at(scene.verdict)
    if overdue is not None and scene.now >= overdue:
        text = f"{message}, but the transition it announced is overdue: is its controller running?"
        return reasons.SPOT_SCHEDULE_RESOLVED, "True", reasons.PROVIDER_STALE, text
    return reasons.SPOT_SCHEDULE_RESOLVED, "True" if spot.resolved else "False", spot.reason, message


def _machine_ready(plan: Plan) -> _Wanted | None:
    if plan.machine_ready is not None:
        return (reasons.MACHINE_READY, *plan.machine_ready)
    if plan.phase is None:
        return None
    return reasons.MACHINE_READY, "False", plan.reason, plan.message


def _references_valid(scene: Scene) -> _Wanted:
    problems = scene.machine.problems
    if problems:
        return reasons.REFERENCES_VALID, "False", reasons.REFERENCES_INVALID, str(problems[0])
    if isinstance(scene.obs.cluster, Absent) and isinstance(scene.capi, Present):
        text = f"Cluster {scene.machine.intent.cluster_name} does not exist, and the Machine stands"
        return reasons.REFERENCES_VALID, "False", reasons.REFERENCES_INVALID, text
    for part in (scene.obs.cluster, scene.infrastructure, scene.bootstrap):
        # It holds nothing up while the Machine stands, and will when it has to go.
        if isinstance(part, Unknown) and part.reason == reasons.PERMISSION_DENIED:
            return reasons.REFERENCES_VALID, "Unknown", part.reason, part.why
    return reasons.REFERENCES_VALID, "True", reasons.RESOLVED, "the spec is valid"


def _child_reachable(scene: Scene) -> _Wanted | None:
    for part in (scene.node, scene.obs.pods):
        if isinstance(part, Unknown) and part.reason in CHILD_OUT_OF_REACH:
            return reasons.CHILD_CLUSTER_REACHABLE, "Unknown", part.reason, part.why
    # Nodes were read, and ours was not among them: what was said of the cluster before is over.
    doubted = condition_of(scene.status.conditions, reasons.CHILD_CLUSTER_REACHABLE) is not None
    if isinstance(scene.node, Present) or (isinstance(scene.node, Absent) and doubted):
        return reasons.CHILD_CLUSTER_REACHABLE, "True", reasons.RESOLVED, "the child cluster answers"
    return None


def _ignored_request(scene: Scene) -> _Wanted | None:
    """A reclaim request on the Node of a machine that honours none is left as it is, and reported once.

    Clearing it would make an agent that still sees the program write it again and again; opting in makes it live.
    """
    request, record = scene.request, scene.status.reclaim
    if request is None or scene.machine.intent.reclaim_enabled:
        return None
    if reclaims.in_progress(record) or reclaims.held(record):
        return None
    when = request.requested_at or "an unknown time"
    text = (
        f"requested at {when}: {request.reason}; set spec.killIfCommands or spec.reclaim to honour requests"
    )
    return reasons.RECLAIM_HONOURED, "False", reasons.RECLAIM_NOT_ENABLED, text


# Events


def _change_events(
    scene: Scene, status: ScheduledMachineStatus, plan: Plan, told: tuple[Event, ...]
) -> tuple[Event, ...]:
    """The plan's, and one when the phase or the reason changes; equal passes say nothing."""
    events = plan.events + told
    before = condition_of(scene.status.conditions, reasons.READY)
    after = condition_of(status.conditions, reasons.READY)
    changed = status.phase != scene.status.phase or (before.reason if before else None) != (
        after.reason if after else None
    )
    if not changed or after is None or any(event.reason == after.reason for event in events):
        return events
    severity = Severity.WARNING if after.reason in _WARNINGS else Severity.NORMAL
    text = f"{status.phase}: {after.message}"
    return (*events, Event(severity=severity, reason=after.reason, message=text))
