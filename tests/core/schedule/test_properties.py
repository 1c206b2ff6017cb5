"""Laws that hold for every schedule, against an oracle that only ever reads the local clock."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fivespot.core import zones
from fivespot.core.schedule import CAPITAL_MARKETS, TIME_BASED, compile_schedule
from tests import strategies
from tests.core.schedule import oracle

QUARTER = timedelta(minutes=15)
SECOND = timedelta(seconds=1)
START = datetime(2026, 1, 1, tzinfo=UTC)
END = datetime(2027, 1, 1, tzinfo=UTC)
RANGE = (int(START.timestamp()), int(END.timestamp()))


def year(kind, spec):
    return list(compile_schedule(kind, spec).intervals_s(*RANGE))


@settings(max_examples=100, deadline=None)
@given(strategies.schedules(), st.lists(strategies.instants(), min_size=1, max_size=20))
def test_the_answer_is_what_the_local_clock_says(schedule, instants):
    kind, spec = schedule
    compiled = compile_schedule(kind, spec)
    for at in instants:
        assert compiled.active(at) is oracle.active(spec, at)


@settings(max_examples=80, deadline=None)
@given(strategies.asked())
def test_the_answer_differs_at_the_next_transition_and_nowhere_before(asked):
    kind, spec, at = asked
    compiled = compile_schedule(kind, spec)
    now = oracle.active(spec, at)
    after = compiled.next_transition(at)
    if after is not None:
        assert after > at
        assert oracle.active(spec, after - SECOND) is now
        assert oracle.active(spec, after) is not now
    # Edges lie on quarters of a local hour, and those on quarters of a UTC hour, in every zone of 2026.
    probe = at.replace(minute=at.minute // 15 * 15, second=0) + QUARTER
    limit = min(after or probe + timedelta(days=9), probe + timedelta(days=9))
    while probe < limit:
        assert oracle.active(spec, probe) is now
        probe += QUARTER


@settings(max_examples=100, deadline=None)
@given(strategies.schedules(), strategies.instants(datetime(1850, 1, 1, tzinfo=UTC), 550 * 365), st.randoms())
def test_in_any_century_the_answer_holds_up_to_the_next_transition(schedule, at, chance):
    kind, spec = schedule
    for name in ("validFrom", "validThrough"):
        spec.pop(name, None)
    compiled = compile_schedule(kind, spec)
    now = oracle.active(spec, at)
    after = compiled.next_transition(at)
    before = compiled.prev_transition(at)
    assert compiled.active(at) is now
    for edge, inside, outside in ((after, -SECOND, 0 * SECOND), (before, 0 * SECOND, -SECOND)):
        if edge is not None:
            assert oracle.active(spec, edge + inside) is now
            assert oracle.active(spec, edge + outside) is not now
    first = max(before or at, at - timedelta(days=9))
    seconds = (min(after or at, at + timedelta(days=9)) - first) // SECOND
    for _ in range(100):
        assert oracle.active(spec, first + chance.randrange(seconds or 1) * SECOND) is now


@settings(max_examples=100, deadline=None)
@given(strategies.asked())
def test_the_transition_before_the_next_one_is_the_start_of_the_present_answer(asked):
    kind, spec, at = asked
    compiled = compile_schedule(kind, spec)
    before, after = compiled.prev_transition(at), compiled.next_transition(at)
    if after is not None:
        assert compiled.prev_transition(after) == after
        assert compiled.prev_transition(after - SECOND) == before
    if before is not None:
        assert before <= at
        assert compiled.active(before) is compiled.active(at)
        assert compiled.active(before - SECOND) is not compiled.active(at)
        assert compiled.next_transition(before - SECOND) == before
        assert compiled.next_transition(before) == after


@settings(max_examples=100, deadline=None)
@given(strategies.asked(), st.integers(0, 40 * 86400))
def test_intervals_are_the_active_seconds_between_transitions_clipped_to_the_range(asked, length):
    kind, spec, start = asked
    compiled = compile_schedule(kind, spec)
    end = start + timedelta(seconds=length)
    expected = []
    at = start
    while at < end:
        after = min(compiled.next_transition(at) or end, end)
        if compiled.active(at):
            expected.append((at, after))
        at = after
    assert [(interval.start, interval.end) for interval in compiled.intervals(start, end)] == expected


@settings(max_examples=100, deadline=None)
@given(strategies.asked())
def test_the_next_open_and_the_next_close_are_the_next_two_transitions(asked):
    kind, spec, at = asked
    compiled = compile_schedule(kind, spec)
    first = compiled.next_transition(at)
    second = None if first is None else compiled.next_transition(first)
    opens, closes = (second, first) if compiled.active(at) else (first, second)
    assert compiled.next_open(at) == opens
    assert compiled.next_close(at) == closes


@settings(max_examples=100, deadline=None)
@given(strategies.asked(), st.lists(st.integers(-200, 200), min_size=2, max_size=30))
def test_what_was_asked_before_changes_no_answer(asked, quarters):
    kind, spec, middle = asked
    compiled = compile_schedule(kind, spec)
    for step in quarters:
        at = middle + step * QUARTER
        fresh = compile_schedule(kind, spec)
        assert compiled.active(at) is oracle.active(spec, at)
        assert compiled.next_transition(at) == fresh.next_transition(at)
        assert compiled.active_s(int(at.timestamp())) is compiled.active(at)


def merged(intervals):
    found = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


@settings(max_examples=60, deadline=None)
@given(
    strategies.timezones(),
    strategies.additions(),
    st.lists(strategies.windows(), max_size=2),
    st.lists(strategies.windows(), max_size=2),
)
def test_two_lists_of_windows_together_are_the_union_of_each(timezone, additions, some, others):
    spec = {"timezone": timezone, **additions}
    apart = [
        interval for windows in (some, others) for interval in year(TIME_BASED, {**spec, "windows": windows})
    ]
    assert year(TIME_BASED, {**spec, "windows": some + others}) == merged(apart)


@settings(max_examples=60, deadline=None)
@given(
    strategies.timezones(),
    strategies.day_lists(),
    st.lists(st.integers(0, 23), min_size=2, max_size=2, unique=True),
)
def test_a_range_of_hours_that_wraps_is_its_two_halves(timezone, days, ends):
    last, first = sorted(ends)
    spec = {"timezone": timezone, "daysOfWeek": days}
    halves = year(TIME_BASED, {**spec, "hoursOfDay": [f"{first}-23", f"0-{last}"]})
    assert year(TIME_BASED, {**spec, "hoursOfDay": [f"{first}-{last}"]}) == halves


@settings(max_examples=60, deadline=None)
@given(
    strategies.timezones(),
    strategies.day_lists(),
    st.lists(strategies.start_times(), min_size=3, max_size=3, unique=True),
)
def test_touching_windows_are_one_window_without_a_transition_at_the_seam(timezone, days, times):
    start, seam, end = sorted(times)
    one = [{"days": days, "start": start, "end": end}]
    two = [{"days": days, "start": seam, "end": end}, {"days": days, "start": start, "end": seam}]
    spec = {"timezone": timezone}
    assert year(TIME_BASED, {**spec, "windows": two}) == year(TIME_BASED, {**spec, "windows": one})


@pytest.mark.parametrize("timezone", sorted(zones.names()))
def test_windows_from_nine_to_six_equal_the_hours_nine_to_seventeen_in(timezone):
    windows = {"timezone": timezone, "windows": [{"days": ["mon-sun"], "start": "09:00", "end": "18:00"}]}
    hours = {"timezone": timezone, "daysOfWeek": ["mon-sun"], "hoursOfDay": ["9-17"]}
    assert year(TIME_BASED, windows) == year(TIME_BASED, hours)


@settings(max_examples=60, deadline=None)
@given(
    strategies.timezones(),
    strategies.day_lists(),
    st.integers(0, 23),
    st.integers(0, 23),
    strategies.additions(),
)
def test_hours_equal_the_windows_that_begin_and_end_with_them(timezone, days, first, last, additions):
    if last < first:
        first, last = last, first
    spec = {"timezone": timezone, **additions}
    hours = {**spec, "daysOfWeek": days, "hoursOfDay": [f"{first}-{last}"]}
    windows = {**spec, "windows": [{"days": days, "start": f"{first:02}:00", "end": f"{last + 1:02}:00"}]}
    assert year(TIME_BASED, hours) == year(TIME_BASED, windows)


@settings(max_examples=60, deadline=None)
@given(strategies.timezones(), strategies.day_lists(), strategies.hour_lists(), strategies.additions())
def test_both_kinds_give_the_same_answers_to_the_same_hours(timezone, days, hours, additions):
    session = {"daysOfWeek": days, "hoursOfDay": hours}
    spec = {"timezone": timezone, **additions}
    assert year(TIME_BASED, {**spec, **session}) == year(CAPITAL_MARKETS, {**spec, "sessions": [session]})
