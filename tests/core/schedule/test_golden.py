"""Every golden vector: instants, whole years, real exchanges."""

import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fivespot.core.instant import format_instant, parse_instant, seconds
from fivespot.core.schedule import CAPITAL_MARKETS, TIME_BASED, Schedule, compile_schedule
from fivespot.core.zones import tzdata_version
from tests.core.schedule import oracle

GOLDEN = Path(__file__).parents[2] / "golden"
# With room for the local readings of any zone.
FIRST, LAST = datetime(1, 1, 3, tzinfo=UTC), datetime(9999, 12, 29, tzinfo=UTC)
SECOND = timedelta(seconds=1)
HORIZON = timedelta(days=400)
"""How far the vectors' author looked: null means none within it."""
RELEASE = "2026f"
"""The tzdata release of the vectors that depend on one."""


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (GOLDEN / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def compiled(spec: dict[str, Any]) -> Schedule:
    markets = "sessions" in spec or "earlyCloses" in spec
    return compile_schedule(CAPITAL_MARKETS if markets else TIME_BASED, spec)


VECTORS = [row for name in ("time_based", "capital_markets", "exact_proposal") for row in rows(name)]


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
