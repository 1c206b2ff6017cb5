"""Every golden vector: instants, whole years, real exchanges."""

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fivespot.core.instant import format_instant, parse_instant, seconds
from fivespot.core.schedule import CAPITAL_MARKETS, Schedule, compile_schedule
from fivespot.core.zones import tzdata_version
from tests.core.schedule import oracle
from tests.vectors import HORIZON, RELEASE, instants, kind_of, rows

# With room for the local readings of any zone.
FIRST, LAST = datetime(1, 1, 3, tzinfo=UTC), datetime(9999, 12, 29, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def compiled(spec: dict[str, Any]) -> Schedule:
    return compile_schedule(kind_of(spec), spec)


VECTORS = instants()


@pytest.mark.parametrize("row", VECTORS, ids=lambda row: row["id"])
def test_the_answer_and_the_next_transition_are_those_of_the_vector(row):
    if not row.get("tz_stable", True) and tzdata_version() < RELEASE:
        pytest.skip("depends on newer zone data")
    schedule, at = compiled(row["spec"]), parse_instant(row["instant"])
    assert schedule.active(at) is row["active"], row["why"]
    found = schedule.next_transition(at)
    if row["next_transition"] is None:
        assert found is None or found - at > HORIZON, row["why"]
    else:
        assert found == parse_instant(row["next_transition"]), row["why"]


@pytest.mark.parametrize("row", VECTORS, ids=lambda row: row["id"])
def test_around_the_vector_transitions_are_the_same_backwards_and_divide_what_is_active(row):
    schedule, at = compiled(row["spec"]), parse_instant(row["instant"])
    start = max(at, FIRST + timedelta(days=9)) - timedelta(days=9)
    end = min(at, LAST - timedelta(days=9)) + timedelta(days=9)
    forwards, probe = [], start
    while (after := schedule.next_transition(probe)) is not None and after <= end:
        forwards.append(after)
        probe = after
    backwards, probe = [], end
    while (before := schedule.prev_transition(probe)) is not None and before > start:
        backwards.insert(0, before)
        probe = before - SECOND
    assert backwards == forwards
    for edge in forwards:
        assert schedule.active(edge) is not schedule.active(edge - SECOND)
        assert schedule.active(edge) is oracle.active(row["spec"], edge)


@pytest.mark.parametrize("row", rows("year_totals"), ids=lambda row: row["spec"].get("timezone", "UTC"))
def test_a_years_transitions_and_active_seconds_are_those_of_the_vector(row):
    schedule = compiled(row["spec"])
    start, end = parse_instant(row["from"]), parse_instant(row["to"])
    at, found = start, []
    while (after := schedule.next_transition(at)) is not None and after < end:
        found.append(format_instant(after))
        at = after
    intervals = schedule.intervals(start, end)
    assert schedule.active(start) is row["active_at_from"]
    assert len(found) == row["transitions"]
    assert hashlib.sha256("".join(f"{instant}\n" for instant in found).encode()).hexdigest() == row["sha256"]
    assert (
        sum((interval.end - interval.start).total_seconds() for interval in intervals)
        == row["active_seconds"]
    )


@pytest.mark.parametrize("row", rows("exchange_specs"), ids=lambda row: row["exchange"])
def test_three_years_of_a_real_exchange_come_out_to_the_second(row):
    truth = next(other for other in rows("exchange_truth") if other["exchange"] == row["exchange"])
    start, end = seconds(parse_instant(row["from"])), seconds(parse_instant(row["to"]))
    schedule = compile_schedule(CAPITAL_MARKETS, row["spec"])
    assert [list(interval) for interval in schedule.intervals_s(start, end)] == truth["open"]
