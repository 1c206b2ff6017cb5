"""How fast a schedule answers, beside what a scan hour by hour costs. Prints figures and ratios; asserts no time."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from fivespot.core import zones
from fivespot.core.schedule import TIME_BASED, compile_schedule

YORK = "America/New_York"
NOW = datetime(2026, 6, 10, 3, tzinfo=UTC)
HOURS = {"timezone": YORK, "daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]}
WINDOWS = {
    "timezone": YORK,
    "windows": [{"days": ["mon-fri"], "start": "09:30", "end": "16:00"}],
    "holidays": ["2026-01-01", "2026-05-25", "2026-06-19", "2026-11-26", "2026-12-25"],
    "overrides": [{"dates": ["2026-11-27", "2026-12-24"], "close": "13:00"}],
}
SPECS = {"hours": HOURS, "windows": WINDOWS}
DAYS = {"mon", "tue", "wed", "thu", "fri"}


def scan(at: datetime) -> datetime:
    """The yardstick: step from hour to hour, ask zoneinfo for the local reading, compare with weekday and hour."""
    zone = zones.zone(YORK)

    def inside(moment: datetime) -> bool:
        local = moment.astimezone(zone)
        return local.strftime("%a").lower() in DAYS and 9 <= local.hour <= 17

    now = inside(at)
    probe = at.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    while inside(probe) is now:
        probe += timedelta(hours=1)
    return probe


def per_call(call: Callable[[], object], rounds: int) -> float:
    """Seconds of one call, the best of five tries."""
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(rounds):
            call()
        best = min(best, (time.perf_counter() - start) / rounds)
    return best


@pytest.mark.parametrize("shape", SPECS)
def test_whether_it_is_active(benchmark, shape):
    schedule = compile_schedule(TIME_BASED, SPECS[shape])
    schedule.active(NOW)
    benchmark(schedule.active, NOW)


@pytest.mark.parametrize("shape", SPECS)
def test_the_next_transition(benchmark, shape):
    schedule = compile_schedule(TIME_BASED, SPECS[shape])
    assert benchmark(schedule.next_transition, NOW) > NOW


@pytest.mark.parametrize("shape", SPECS)
def test_the_next_transition_of_an_instant_not_asked_before(benchmark, shape):
    schedule = compile_schedule(TIME_BASED, SPECS[shape])
    moments = [NOW, NOW + timedelta(days=2)]

    def both():
        return [schedule.next_transition(moment) for moment in moments]

    benchmark(both)


@pytest.mark.parametrize("shape", SPECS)
def test_the_intervals_of_a_year(benchmark, shape):
    schedule = compile_schedule(TIME_BASED, SPECS[shape])
    found = benchmark(lambda: list(schedule.intervals(NOW, NOW + timedelta(days=365))))
    assert len(found) > 250


@pytest.mark.parametrize("shape", SPECS)
def test_compiling(benchmark, shape):
    benchmark(compile_schedule, TIME_BASED, SPECS[shape])


@pytest.mark.parametrize("shape", SPECS)
def test_the_ratio_to_an_hour_scan(benchmark, shape):
    schedule = compile_schedule(TIME_BASED, SPECS[shape])
    ours = per_call(lambda: schedule.next_transition(NOW), 20_000)
    theirs = per_call(lambda: scan(NOW), 200)
    print(
        f"\nnext_transition, {shape}: {ours * 1e6:.2f} us; hour scan: {theirs * 1e6:.1f} us; {theirs / ours:.0f} times"
    )
    assert scan(NOW) == compile_schedule(TIME_BASED, HOURS).next_transition(NOW)
    benchmark(scan, NOW)
