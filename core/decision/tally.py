"""What a change of status is worth counting: a pure comparison of two statuses, and of what was told.

Each is counted when it is entered, once, however long it lasts and however often the status is written meanwhile.
"""

from collections.abc import Iterable

import attrs

from fivespot.core.api import reasons
from fivespot.core.api.common import condition
from fivespot.core.api.scheduled_machine import ScheduledMachineStatus
from fivespot.core.decision.actions import Event
from fivespot.core.decision.target import Decider

DRAINED = "drained"
TIMED_OUT = "timed_out"


@attrs.frozen(kw_only=True)
class Tally:
    """What happened with one write of a status.

    Attributes:
        killed: the kill switch began to decide.
        transition: the provider's answer went from on to off, or back.
        drain: how a drain ended, `drained` or `timed_out`; None when none did.
        reclaim: an emergency reclaim began.
        rapid_reclaim: it was the third within the window.
        cleanup_timed_out: a removal is overdue.
    """

    killed: bool = False
    transition: bool = False
    drain: str | None = None
    reclaim: bool = False
    rapid_reclaim: bool = False
    cleanup_timed_out: bool = False


def tally(before: ScheduledMachineStatus, after: ScheduledMachineStatus, events: Iterable[Event]) -> Tally:
    """What is to be counted when `after` was written over `before`, and `events` were told."""
    told = {event.reason for event in events}
    answered, answers = before.spot_schedule, after.spot_schedule
    was = answered.active if answered is not None else None
    now = answers.active if answers is not None else None
    return Tally(
        killed=after.decided_by == Decider.KILL_SWITCH.value != before.decided_by,
        transition=was is not None and now is not None and was is not now,
        drain=_drain(before, after),
        reclaim=reasons.EMERGENCY_RECLAIM in told,
        rapid_reclaim=reasons.RAPID_RE_RECLAIM in told,
        cleanup_timed_out=reasons.FINALIZER_CLEANUP_TIMED_OUT in told,
    )


def _drain(before: ScheduledMachineStatus, after: ScheduledMachineStatus) -> str | None:
    if after.shutdown is not None and after.shutdown.drained_at is not None:
        counted = before.shutdown is not None and before.shutdown.drained_at is not None
        return None if counted else DRAINED
    entered = _ready_reason(after) == reasons.NODE_DRAIN_TIMED_OUT != _ready_reason(before)
    return TIMED_OUT if entered else None


def _ready_reason(status: ScheduledMachineStatus) -> str:
    found = condition(status.conditions, reasons.READY)
    return found.reason if found is not None else ""
