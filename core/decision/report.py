"""The status that says what was observed and decided: derived last, from facts, and never from the clock alone."""

from datetime import datetime, timedelta

import attrs

from fivespot.core.api.common import Condition, ObjectReference
from fivespot.core.api.common import condition as condition_of
from fivespot.core.api.scheduled_machine import ScheduledMachineStatus, SpotScheduleStatus
from fivespot.core.decision import verdict as verdicts
from fivespot.core.decision.actions import Event, Severity
from fivespot.core.decision.knowledge import Unknown, value_of
from fivespot.core.decision.observation import Failure
from fivespot.core.decision.phase import Phase
from fivespot.core.decision.plan import Plan
from fivespot.core.decision.scene import Scene, reference
from fivespot.core.decision.target import Decider

_AT_ONCE = frozenset({"Forbidden", "Invalid"})
"""Reasons that no retry cures: they are reported as Error without waiting."""
_WARNINGS = frozenset(
    {
        "MachineCreationFailed", "MachineDeletionFailed", "MachineMissing", "ProvisioningTimedOut",
        "FinalizerCleanupTimedOut", "NodeDrainTimedOut", "NodeDrainFailed", "KillSwitchActivated", "NameConflict",
        "PermissionDenied", "ReferencesInvalid", "TaintOwnershipConflict", "PatchFailed", "NodeNotReady",
    }
)  # fmt: skip
_NEXT_FIELDS = ("next_transition", "next_activation", "next_cleanup")
_CHILD_REASONS = frozenset(
    {"KubeconfigMissing", "KubeconfigRejected", "ChildClusterUnreachable", "PermissionDenied"}
)


@attrs.frozen(kw_only=True)
class Report:
    """The new status, the events its changes are worth, and when to look again because of it."""

    status: ScheduledMachineStatus
    events: tuple[Event, ...]
    wakes: tuple[datetime, ...]


def report(scene: Scene, plan: Plan) -> Report:
    """Derive the status. A part that cannot be known stays as stored."""
    plan, failed_until = _overlay_failure(scene, plan)
    stored = scene.status
    phase = plan.phase.value if plan.phase is not None else stored.phase
    spot, spot_wakes = _spot_schedule(scene)
    ready = phase == Phase.ACTIVE.value and _node_ready(scene, plan)
    machine, bootstrap, infrastructure, provider_id = _references(scene, plan)
    capi = value_of(scene.capi)
    upcoming, opens, closes = _next(scene)
    message = plan.message or stored.message
    status = ScheduledMachineStatus(
        phase=phase,
        ready=ready,
        in_schedule=scene.schedule.active,
        message=message,
        observed_generation=scene.machine.metadata.generation,
        decided_by=scene.target.decider.value,
        conditions=_conditions(scene, plan, spot, ready=ready, message=message or ""),
        machine_ref=machine,
        bootstrap_ref=bootstrap,
        infrastructure_ref=infrastructure,
        node_ref=plan.node_ref,
        last_node=plan.last_node,
        provider_id=provider_id,
        applied_node_taints=plan.taints,
        last_scheduled_time=(capi.metadata.created_at if capi else None) or stored.last_scheduled_time,
        next_activation=opens,
        next_cleanup=closes,
        next_transition=upcoming,
        spot_schedule=spot,
        shutdown=plan.shutdown,
        reclaim=plan.reclaim,
        provisioning=plan.provisioning,
    )
    status, throttled_until = _throttle(scene, status)
    wakes = tuple(at for at in (failed_until, throttled_until, *spot_wakes) if at is not None)
    return Report(status=status, events=_change_events(scene, status, plan), wakes=wakes)


def _overlay_failure(scene: Scene, plan: Plan) -> tuple[Plan, datetime | None]:
    """Error lies over any row while the same step keeps failing; the actions stay the same, so it is never a trap."""
    failure = scene.obs.failure
    if failure is None:
        return plan, None
    until = failure.since + scene.policy.error_after
    if failure.reason not in _AT_ONCE and scene.now < until:
        return plan, until
    reason = _failure_reason(failure)
    message = f"{failure.step} fails: {failure.message}"
    return attrs.evolve(plan, phase=Phase.ERROR, reason=reason, message=message), None


def _failure_reason(failure: Failure) -> str:
    if failure.reason == "Forbidden":
        return "PermissionDenied"
    if failure.reason == "NameConflict":
        return "NameConflict"
    verb = failure.step.partition(" ")[0]
    return {
        "create": "MachineCreationFailed",
        "delete": "MachineDeletionFailed",
        "evict": "NodeDrainFailed",
        "taint": "PatchFailed",
    }.get(verb, "PatchFailed")


def _node_ready(scene: Scene, plan: Plan) -> bool:
    node = value_of(scene.node)
    if plan.phase is None and isinstance(scene.node, Unknown):
        return bool(scene.status.ready)
    return node is not None and node.ready


def _spot_schedule(scene: Scene) -> tuple[SpotScheduleStatus, tuple[datetime, ...]]:
    """The provider's answer, and the verdict that is held: the last that resolved, whatever the reference says now."""
    stored = scene.status.spot_schedule or SpotScheduleStatus()
    verdict = scene.verdict
    if verdicts.is_recent_stale(verdict, scene.now):
        # Every edit of a provider passes through here for a moment; it holds, but is not worth a write.
        return stored, ((verdict.stale_since or scene.now) + verdicts.STALE_GRACE,)
    if verdict.active is None:
        return attrs.evolve(
            stored, resolved=False, reason=verdict.reason, message=_held_message(scene, stored)
        ), ()
    flipped = stored.active is not verdict.active
    fresh = SpotScheduleStatus(
        resolved=True,
        active=verdict.active,
        reason=verdict.reason,
        message=verdict.message,
        held_from=_reference_name(scene),
        last_transition_time=scene.now if flipped else stored.last_transition_time,
    )
    return fresh, ()


def _reference_name(scene: Scene) -> str | None:
    schedule = scene.machine.intent.schedule
    return f"{schedule.kind}/{schedule.name}" if schedule is not None else None


def _held_message(scene: Scene, stored: SpotScheduleStatus) -> str:
    text = scene.verdict.message
    if stored.active is None:
        return f"{text}; it never resolved"
    answer = "active" if stored.active else "inactive"
    return f"{text}; holding {answer} from {stored.held_from or 'before'}"


def _references(
    scene: Scene, plan: Plan
) -> tuple[ObjectReference | None, ObjectReference | None, ObjectReference | None, str | None]:
    """Machine, bootstrap, infrastructure and provider id; what is not seen stays as stored until it is cleared."""
    if plan.clear:
        return None, None, None, None
    stored = scene.status
    capi = value_of(scene.capi)
    bootstrap, infrastructure = value_of(scene.bootstrap), value_of(scene.infrastructure)
    return (
        reference(capi) if capi else stored.machine_ref,
        reference(bootstrap) if bootstrap else stored.bootstrap_ref,
        reference(infrastructure) if infrastructure else stored.infrastructure_ref,
        (capi.provider_id or None) if capi else stored.provider_id,
    )


def _next(scene: Scene) -> tuple[datetime | None, datetime | None, datetime | None]:
    """The provider's next transition, activation and cleanup; as stored while the provider cannot be read."""
    verdict = scene.verdict
    if verdict.active is None:
        stored = scene.status
        return stored.next_transition, stored.next_activation, stored.next_cleanup
    due = verdict.next_transition
    return due, None if verdict.active else due, due if verdict.active else None


def _throttle(scene: Scene, status: ScheduledMachineStatus) -> tuple[ScheduledMachineStatus, datetime | None]:
    """A mere change of the next transition is written at most once a minute."""
    stored, written = scene.status, scene.obs.status_written_at
    if status == stored or written is None:
        return status, None
    due = written + scene.policy.next_transition_interval
    if scene.now >= due or written > scene.now:
        return status, None
    as_stored = {name: getattr(stored, name) for name in _NEXT_FIELDS}
    return (stored, due) if attrs.evolve(status, **as_stored) == stored else (status, None)


# Conditions


def _conditions(
    scene: Scene, plan: Plan, spot: SpotScheduleStatus, *, ready: bool, message: str
) -> tuple[Condition, ...]:
    """Ours, merged by type into what is stored; those of others stay."""
    wanted = (
        ("Ready", "True" if ready else "False", plan.reason, message),
        _scheduled(scene, plan),
        _resolved(scene, spot),
        _machine_ready(scene, plan),
        _references_valid(scene),
        _named("NodeTainted", plan.taint_condition),
        _child_reachable(scene),
    )
    found = {entry.type: entry for entry in scene.status.conditions}
    for entry in wanted:
        if entry is not None:
            found[entry[0]] = _merge(scene, found.get(entry[0]), entry)
    if plan.taint_condition is None:
        found.pop("NodeTainted", None)
    return tuple(found.values())


def _named(of_type: str, facts: tuple[str, str, str] | None) -> tuple[str, str, str, str] | None:
    return (of_type, *facts) if facts is not None else None


def _merge(scene: Scene, before: Condition | None, wanted: tuple[str, str, str, str]) -> Condition:
    of_type, status, reason, message = wanted
    generation = scene.machine.metadata.generation
    if before is None or before.status != status:
        since: datetime | None = _whole_second(scene.now)
    elif (before.reason, before.message, before.observed_generation) == (reason, message, generation):
        return before
    else:
        since = before.last_transition_time
    return Condition(
        type=of_type,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=since,
        observed_generation=generation,
    )


def _whole_second(at: datetime) -> datetime:
    """metav1.Time has whole seconds: anything finer would come back different and be written again."""
    return at - timedelta(microseconds=at.microsecond)


_SCHEDULED = {
    Decider.DELETED: "MachineDeleted",
    Decider.KILL_SWITCH: "KillSwitchActivated",
    Decider.RECLAIM: "EmergencyReclaim",
    Decider.DISABLED: "ScheduleDisabled",
    Decider.CLUSTER_DELETING: "ScheduleInactive",
    Decider.NEVER_RESOLVED: "AwaitingSchedule",
}


def _scheduled(scene: Scene, plan: Plan) -> tuple[str, str, str, str]:
    decider = scene.target.decider
    text = scene.target.why
    if scene.target.up:
        return "Scheduled", "True", "ScheduleActive", text
    reason = _SCHEDULED.get(decider, "ScheduleInactive")
    if decider is Decider.RECLAIM and plan.clear:
        return "Scheduled", "False", "EmergencyReclaimDisabledSchedule", plan.message
    return "Scheduled", "False", reason, text


def _resolved(scene: Scene, spot: SpotScheduleStatus) -> tuple[str, str, str, str] | None:
    if spot.reason is None:
        return None
    overdue = verdicts.overdue_at(scene.verdict)
    if spot.resolved and overdue is not None and scene.now >= overdue:
        text = f"{spot.message}, but the transition it announced is overdue: is its controller running?"
        return "SpotScheduleResolved", "True", verdicts.STALE, text
    return "SpotScheduleResolved", "True" if spot.resolved else "False", spot.reason, spot.message or ""


def _machine_ready(scene: Scene, plan: Plan) -> tuple[str, str, str, str] | None:
    if plan.machine_ready is not None:
        return ("MachineReady", *plan.machine_ready)
    if plan.phase is None:
        return None
    return "MachineReady", "False", plan.reason, plan.message


def _references_valid(scene: Scene) -> tuple[str, str, str, str]:
    problems = scene.machine.problems
    if problems:
        return "ReferencesValid", "False", "ReferencesInvalid", str(problems[0])
    return "ReferencesValid", "True", "Resolved", "the spec is valid"


def _child_reachable(scene: Scene) -> tuple[str, str, str, str] | None:
    node = scene.node
    if isinstance(node, Unknown) and node.reason in _CHILD_REASONS:
        return "ChildClusterReachable", "Unknown", node.reason, node.why
    if value_of(scene.node) is not None:
        return "ChildClusterReachable", "True", "Resolved", "the child cluster answers"
    return None


# Events


def _change_events(scene: Scene, status: ScheduledMachineStatus, plan: Plan) -> tuple[Event, ...]:
    """One event when the phase or the reason changes; equal passes say nothing."""
    before = condition_of(scene.status.conditions, "Ready")
    after = condition_of(status.conditions, "Ready")
    changed = status != scene.status and (
        status.phase != scene.status.phase
        or (before.reason if before else None) != (after.reason if after else None)
    )
    if not changed or after is None or any(event.reason == after.reason for event in plan.events):
        return plan.events
    severity = Severity.WARNING if after.reason in _WARNINGS else Severity.NORMAL
    text = f"{status.phase}: {after.message}"
    return (*plan.events, Event(severity=severity, reason=after.reason, message=text))
