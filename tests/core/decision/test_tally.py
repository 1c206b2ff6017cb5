"""What is counted: once, when it is entered."""

from datetime import UTC, datetime

import attrs
import pytest

from fivespot.core.api.common import Condition
from fivespot.core.api.scheduled_machine import ScheduledMachineStatus, Shutdown, SpotScheduleStatus
from fivespot.core.decision.actions import Event, Severity
from fivespot.core.decision.tally import DRAINED, TIMED_OUT, Tally, tally

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
NOTHING = ScheduledMachineStatus()


def answer(active: bool | None) -> ScheduledMachineStatus:
    return ScheduledMachineStatus(spot_schedule=SpotScheduleStatus(active=active))


def saying(reason: str) -> ScheduledMachineStatus:
    return ScheduledMachineStatus(conditions=(Condition(type="Ready", status="False", reason=reason),))


KILLED = ScheduledMachineStatus(decided_by="KillSwitch")
DRAINING = ScheduledMachineStatus(shutdown=Shutdown(started_at=NOON))
EMPTY = ScheduledMachineStatus(shutdown=Shutdown(started_at=NOON, drained_at=NOON))


@pytest.mark.parametrize(
    ("before", "after", "counted"),
    [
        (NOTHING, KILLED, Tally(killed=True)),
        (KILLED, KILLED, Tally()),
        (KILLED, NOTHING, Tally()),
        (answer(False), answer(True), Tally(transition=True)),
        (answer(True), answer(False), Tally(transition=True)),
        (answer(True), answer(True), Tally()),
        (answer(None), answer(True), Tally()),
        (answer(True), answer(None), Tally()),
        (NOTHING, answer(True), Tally()),
        (DRAINING, EMPTY, Tally(drain=DRAINED)),
        (NOTHING, EMPTY, Tally(drain=DRAINED)),
        (EMPTY, EMPTY, Tally()),
        (saying("NodeDraining"), saying("NodeDrainTimedOut"), Tally(drain=TIMED_OUT)),
        (saying("NodeDrainTimedOut"), saying("NodeDrainTimedOut"), Tally()),
        (saying("NodeDrainTimedOut"), saying("MachineDeleted"), Tally()),
    ],
)
def test_a_change_of_status_is_counted_when_it_is_entered(
    before: ScheduledMachineStatus, after: ScheduledMachineStatus, counted: Tally
) -> None:
    assert tally(before, after, ()) == counted


@pytest.mark.parametrize(
    ("reason", "field"),
    [
        ("EmergencyReclaim", "reclaim"),
        ("RapidReReclaim", "rapid_reclaim"),
        ("FinalizerCleanupTimedOut", "cleanup_timed_out"),
    ],
)
def test_what_is_told_once_is_counted_once(reason: str, field: str) -> None:
    event = Event(severity=Severity.WARNING, reason=reason, message="x")
    assert tally(NOTHING, NOTHING, [event]) == attrs.evolve(Tally(), **{field: True})
