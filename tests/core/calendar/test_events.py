"""Events as overrides: whole days, mornings and evenings, windows of their own; the rest is refused by day."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.core import zones
from fivespot.core.calendar.events import (
    CalendarEvent,
    EventCalendar,
    events_drift,
    overrides_of,
    spec_of_events,
)
from fivespot.core.errors import InvalidSpec
from fivespot.core.schedule import TIME_BASED, compile_schedule

LONDON = zones.zone("Europe/London")
FIRST, LAST = date(2026, 1, 1), date(2026, 12, 31)
SECOND = timedelta(seconds=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=LONDON).astimezone(UTC)


def event(start: str, end: str, name: str = "freeze") -> CalendarEvent:
    """Dates for whole days, else London's clock."""
    if "T" in start:
        return CalendarEvent(name=name, start=at(start), end=at(end))
    return CalendarEvent(name=name, start=date.fromisoformat(start), end=date.fromisoformat(end))


def calendar(*events: CalendarEvent, active: bool, zone: ZoneInfo = LONDON) -> EventCalendar:
    return EventCalendar(events=events, zone=zone, first=FIRST, last=LAST, active=active)


def closed(*events: CalendarEvent) -> list[dict[str, Any]]:
    return overrides_of(calendar(*events, active=False))


def opened(*events: CalendarEvent) -> list[dict[str, Any]]:
    return overrides_of(calendar(*events, active=True))


def test_whole_days_are_closed_and_neighbours_are_a_range() -> None:
    assert closed(event("2026-12-24", "2026-12-28"), event("2026-05-01", "2026-05-02")) == [
        {"dates": ["2026-05-01", "2026-12-24/2026-12-27"], "name": "freeze", "windows": []}
    ]


@pytest.mark.parametrize(
    ("start", "end", "change"),
    [
        ("2026-03-02T00:00", "2026-03-02T09:30", {"open": "09:30"}),
        ("2026-03-02T17:00", "2026-03-03T00:00", {"close": "17:00"}),
        ("2026-03-02T00:00", "2026-03-03T00:00", {"windows": []}),
    ],
)
def test_a_morning_an_evening_and_a_day_by_the_clock(start: str, end: str, change: dict[str, Any]) -> None:
    assert closed(event(start, end)) == [{"dates": ["2026-03-02"], "name": "freeze", **change}]


def test_a_night_is_an_evening_and_a_morning() -> None:
    assert closed(event("2026-03-02T22:00", "2026-03-04T06:00")) == [
        {"dates": ["2026-03-02"], "name": "freeze", "close": "22:00"},
        {"dates": ["2026-03-03"], "name": "freeze", "windows": []},
        {"dates": ["2026-03-04"], "name": "freeze", "open": "06:00"},
    ]


def test_events_of_one_day_are_told_together_by_all_their_names() -> None:
    found = closed(
        event("2026-03-02T00:00", "2026-03-02T08:00", "a"), event("2026-03-02T18:00", "2026-03-03T00:00", "b")
    )
    assert found == [{"dates": ["2026-03-02"], "name": "a; b", "open": "08:00", "close": "18:00"}]


def test_the_middle_of_a_day_cannot_be_closed_and_is_named() -> None:
    with pytest.raises(InvalidSpec, match="morning") as refused:
        closed(event("2026-03-02T12:00", "2026-03-02T13:00", "lunch"))
    assert refused.value.field == "2026-03-02"
    assert "lunch" in str(refused.value)


def test_in_open_mode_a_day_has_the_windows_of_its_events() -> None:
    found = opened(
        event("2026-03-02T12:00", "2026-03-02T13:00", "x"),
        event("2026-03-02T12:30", "2026-03-02T14:00", "x"),
        event("2026-03-02T20:00", "2026-03-03T00:00", "x"),
    )
    windows = [{"start": "12:00", "end": "14:00"}, {"start": "20:00", "end": "24:00"}]
    assert found == [{"dates": ["2026-03-02"], "name": "x", "windows": windows}]


def test_days_outside_of_the_range_and_events_without_length_say_nothing() -> None:
    assert closed(event("2025-12-30", "2026-01-01"), event("2027-01-01", "2027-01-05")) == []
    assert closed(event("2026-03-02T12:00", "2026-03-02T12:00")) == []


def test_seconds_are_refused() -> None:
    with pytest.raises(InvalidSpec, match="whole minutes"):
        closed(CalendarEvent(name="x", start=at("2026-03-02T00:00:30"), end=at("2026-03-02T01:00")))


def test_nobody_has_to_call_an_event_anything() -> None:
    assert closed(event("2026-03-02", "2026-03-03", "")) == [{"dates": ["2026-03-02"], "windows": []}]


MOMENTS = st.integers(0, 60 * 24).map(
    lambda quarter: datetime(2026, 1, 5, tzinfo=UTC) + timedelta(minutes=15 * quarter)
)


@given(st.lists(st.tuples(MOMENTS, st.integers(1, 400)), min_size=1, max_size=5))
def test_open_only_during_the_events(spans: list[tuple[datetime, int]]) -> None:
    """In winter, on the days of events; the schedule says nothing else."""
    events = [
        CalendarEvent(name="", start=start, end=start + timedelta(minutes=15 * long)) for start, long in spans
    ]
    spec = {"timezone": "Europe/London", "windows": [], "overrides": opened(*events)}
    schedule = compile_schedule(TIME_BASED, spec)
    begin, end = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 3, 20, tzinfo=UTC)
    for quarter in range(0, int((end - begin) / timedelta(minutes=15)), 7):
        now = begin + timedelta(minutes=15 * quarter)
        assert schedule.active(now) is any(event.start <= now < event.end for event in events)


def test_whole_days_that_end_on_the_day_of_their_start_are_a_day() -> None:
    assert closed(event("2026-05-01", "2026-05-01")) == [
        {"dates": ["2026-05-01"], "name": "freeze", "windows": []}
    ]


NEW_YORK = zones.zone("America/New_York")


def odd(begins: str, ends: str) -> CalendarEvent:
    """On the day on which half past one comes twice in New York, at 05:30Z and at 06:30Z."""
    edges = [datetime.fromisoformat(f"2026-11-{text}Z") for text in (begins, ends)]
    return CalendarEvent(name="odd", start=edges[0], end=edges[1])


@pytest.mark.parametrize("active", [True, False])
@pytest.mark.parametrize("make", [overrides_of, spec_of_events])
@pytest.mark.parametrize(
    ("begins", "ends", "middle"),
    [
        ("01T05:30", "01T06:30", False),
        ("01T05:45", "01T06:15", False),
        # An hour of it comes again after the event has ended, or has come before it began.
        ("01T05:00", "01T05:30", True),
        ("01T06:00", "01T07:00", True),
        ("01T05:30", "02T05:00", False),
        ("01T04:00", "01T05:30", False),
    ],
)
def test_minutes_that_the_clock_reads_twice_are_refused_and_not_dropped(
    begins: str, ends: str, make: Callable[[EventCalendar], object], *, middle: bool, active: bool
) -> None:
    # Beside windows of others the middle of a day cannot be closed anyway.
    words = "closes a day's morning" if middle and not active and make is overrides_of else "twice"
    with pytest.raises(InvalidSpec, match=words) as refused:
        make(calendar(odd(begins, ends), active=active, zone=NEW_YORK))
    assert refused.value.field == "2026-11-01"
    assert "odd" in str(refused.value)


@pytest.mark.parametrize(
    ("zone", "day", "first", "last"),
    [
        # The clock goes back at midnight, over midnight, by half an hour; a day is left out.
        ("America/Havana", "2026-11-01", date(2026, 1, 1), date(2026, 12, 31)),
        ("America/St_Johns", "2010-11-07", date(2010, 1, 1), date(2010, 12, 31)),
        ("Australia/Lord_Howe", "2026-04-05", date(2026, 1, 1), date(2026, 12, 31)),
        ("Pacific/Apia", "2011-12-30", date(2011, 1, 1), date(2012, 12, 31)),
    ],
)
@pytest.mark.parametrize("active", [True, False])
@pytest.mark.parametrize("hours", [1, 3, 30])
def test_around_the_oddest_days_it_is_exact_or_refused(
    zone: str, day: str, first: date, last: date, hours: int, *, active: bool
) -> None:
    where, noon = zones.zone(zone), datetime.fromisoformat(f"{day}T12:00Z")
    said, refused = 0, list[str]()
    for quarter in range(-24 * 4 * 2, 24 * 4 * 2):
        start = noon + timedelta(minutes=15 * quarter)
        events = EventCalendar(
            events=(CalendarEvent(name="x", start=start, end=start + timedelta(hours=hours)),),
            zone=where,
            first=first,
            last=last,
            active=active,
        )
        try:
            spec = spec_of_events(events)
        except InvalidSpec as error:
            refused.append(str(error))
            continue
        said += 1
        schedule = compile_schedule(TIME_BASED, spec)
        for moment in (
            start - SECOND,
            start,
            start + timedelta(hours=hours) - SECOND,
            start + timedelta(hours=hours),
        ):
            during = start <= moment < start + timedelta(hours=hours)
            assert schedule.active(moment) is (during is active)
    assert said > 300
    assert all("twice" in told for told in refused)


@pytest.mark.parametrize("active", [True, False])
@pytest.mark.parametrize(
    ("start", "end"),
    [
        (datetime(2026, 12, 30, 12, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)),
        (datetime.min.replace(tzinfo=UTC), datetime(2026, 1, 2, 12, tzinfo=UTC)),
        (date(2026, 12, 30), date.max),
        (date.min, date(2026, 1, 2)),
    ],
)
def test_what_goes_on_for_ever_is_told_as_far_as_it_concerns_us(
    start: date, end: date, *, active: bool
) -> None:
    events = calendar(
        CalendarEvent(name="x", start=start, end=end), active=active, zone=zones.zone("Pacific/Kiritimati")
    )
    assert events_drift(TIME_BASED, spec_of_events(events), events) == []
    begins, ends = events.taken()[0]
    assert ends - begins < timedelta(days=4)


@pytest.mark.parametrize("active", [True, False])
def test_an_event_around_what_the_clock_reads_twice_or_never_is_said_exactly(*, active: bool) -> None:
    spring = CalendarEvent(
        name="spring",
        start=datetime.fromisoformat("2026-03-08T06:00Z"),
        end=datetime.fromisoformat("2026-03-08T07:00Z"),
    )
    events = calendar(odd("01T04:30", "01T07:30"), spring, active=active, zone=NEW_YORK)
    assert events_drift(TIME_BASED, spec_of_events(events), events) == []


SPANS = st.lists(
    st.tuples(
        st.integers(0, 4 * 366).map(
            lambda quarter: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=6 * quarter)
        ),
        st.integers(1, 400).map(lambda quarter: timedelta(minutes=15 * quarter)),
    ),
    min_size=1,
    max_size=6,
)


@given(SPANS, st.booleans())
def test_a_schedule_of_the_events_alone_is_open_or_closed_while_they_last(
    spans: list[tuple[datetime, timedelta]],
    active: bool,
) -> None:
    """In a zone whose clock is never changed, so that nothing is refused; the middle of a day as well."""
    events = [CalendarEvent(name="", start=start, end=start + long) for start, long in spans]
    spec = spec_of_events(calendar(*events, active=active, zone=zones.zone("Asia/Kolkata")))
    schedule = compile_schedule(TIME_BASED, spec)
    edges = {edge for event in events for edge in (event.start, event.end)}
    for now in sorted(edges | {edge - timedelta(seconds=1) for edge in edges}):
        assert isinstance(now, datetime)
        if FIRST < now.date() < LAST:
            during = any(event.start <= now < event.end for event in events)
            assert schedule.active(now) is (during is active)


def test_what_has_drifted_from_the_events_is_told_by_stretch() -> None:
    lunch = calendar(event("2026-03-02T12:00", "2026-03-02T13:00", "lunch"), active=False)
    spec = spec_of_events(lunch)
    assert spec["overrides"] == [
        {
            "dates": ["2026-03-02"],
            "name": "lunch",
            "windows": [{"start": "00:00", "end": "12:00"}, {"start": "13:00", "end": "24:00"}],
        }
    ]
    later = calendar(event("2026-03-02T12:30", "2026-03-02T13:00", "lunch"), active=False)
    assert [str(found) for found in events_drift(TIME_BASED, spec, later)] == [
        "2026-03-02T12:00Z/2026-03-02T12:30Z is closed"
    ]


def test_more_than_the_grammar_holds_is_refused() -> None:
    crowd = [
        event(f"2026-03-02T{n // 6:02}:{n % 6}0", f"2026-03-02T{n // 6:02}:{n % 6}5") for n in range(6 * 20)
    ]
    with pytest.raises(InvalidSpec, match="windows"):
        opened(*crowd)
