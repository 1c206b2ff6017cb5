"""Sessions in, a spec out, and the spec opens and closes as the sessions do; what cannot be said is refused."""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.core import zones
from fivespot.core.calendar.derive import Calendar, Difference, drift, spec_of
from fivespot.core.calendar.sessions import Hours, Interval, hours_of, merged
from fivespot.core.errors import InvalidSpec
from fivespot.core.schedule import CAPITAL_MARKETS

GOLDEN = Path(__file__).parents[2] / "golden"
SPECS = [json.loads(line) for line in (GOLDEN / "exchange_specs.jsonl").read_text().splitlines()]
FIRST, LAST = date(2026, 1, 1), date(2026, 12, 31)
LONDON, KOLKATA, NEW_YORK = (
    zones.zone(name) for name in ("Europe/London", "Asia/Kolkata", "America/New_York")
)


def local(zone: Any, day: date, start: str, end: str, *, shift: int = 0) -> Interval:
    """An interval by the clock of a zone; the start `shift` days from `day`."""

    def at(of: date, text: str) -> datetime:
        hour, minute = map(int, text.split(":"))
        return (
            datetime(of.year, of.month, of.day, tzinfo=zone) + timedelta(hours=hour, minutes=minute)
        ).astimezone(UTC)

    return at(day + timedelta(days=shift), start), at(day, end)


def weekdays(first: date = FIRST, last: date = LAST) -> Iterator[date]:
    for number in range((last - first).days + 1):
        day = first + timedelta(days=number)
        if day.weekday() < 5:
            yield day


def calendar(sessions: dict[date, tuple[Interval, ...]], zone: Any = LONDON, last: date = LAST) -> Calendar:
    return Calendar(zone=zone, first=FIRST, last=last, sessions=sessions)


def usual(zone: Any = LONDON) -> dict[date, tuple[Interval, ...]]:
    return {day: (local(zone, day, "08:00", "16:30"),) for day in weekdays()}


def test_a_plain_week_is_one_window() -> None:
    assert spec_of(calendar(usual())) == {
        "timezone": "Europe/London",
        "windows": [{"days": ["mon-fri"], "start": "08:00", "end": "16:30"}],
    }


def test_days_that_are_otherwise_are_holidays_clips_and_windows_of_their_own() -> None:
    sessions = usual()
    del sessions[date(2026, 12, 25)]
    for day in (date(2026, 12, 24), date(2026, 12, 31)):
        sessions[day] = (local(LONDON, day, "08:00", "12:30"),)
    sessions[date(2026, 1, 2)] = (local(LONDON, date(2026, 1, 2), "10:00", "16:30"),)
    sessions[date(2026, 3, 7)] = (local(LONDON, date(2026, 3, 7), "09:00", "11:00"),)
    spec = spec_of(calendar(sessions))
    assert spec["holidays"] == ["2026-12-25"]
    assert spec["overrides"] == [
        {"dates": ["2026-01-02"], "open": "10:00"},
        {"dates": ["2026-03-07"], "windows": [{"start": "09:00", "end": "11:00"}]},
        {"dates": ["2026-12-24", "2026-12-31"], "close": "12:30"},
    ]


def test_a_trading_day_that_begins_on_the_evening_before() -> None:
    sessions = {day: (local(LONDON, day, "17:00", "16:00", shift=-1),) for day in weekdays()}
    assert spec_of(calendar(sessions))["windows"] == [
        {"days": ["mon-fri"], "start": "17:00", "end": "16:00", "startDay": -1}
    ]


def test_open_all_day_long_is_until_24_00() -> None:
    every = [FIRST + timedelta(days=number) for number in range(365)]
    sessions = {day: (local(LONDON, day, "00:00", "24:00"),) for day in every}
    assert spec_of(calendar(sessions))["windows"] == [{"days": ["mon-sun"], "start": "00:00", "end": "24:00"}]


def test_breaks_and_weekdays_of_their_own_are_windows_of_their_own() -> None:
    sessions = {}
    for day in weekdays():
        morning, afternoon = local(KOLKATA, day, "09:00", "11:30"), local(KOLKATA, day, "12:30", "15:00")
        sessions[day] = (morning,) if day.weekday() == 4 else (morning, afternoon)
    assert spec_of(calendar(sessions, KOLKATA))["windows"] == [
        {"days": ["mon-fri"], "start": "09:00", "end": "11:30"},
        {"days": ["mon-thu"], "start": "12:30", "end": "15:00"},
    ]


def test_many_days_alike_are_as_many_entries_as_it_takes() -> None:
    """An override has at most 300 dates."""
    last = date(2028, 12, 31)
    sessions = {day: (local(LONDON, day, "08:00", "16:30"),) for day in weekdays(last=last)}
    short = [day for day in sessions if day.weekday() in (0, 2, 4) and day.month % 2]
    for day in short:
        sessions[day] = (local(LONDON, day, "08:00", "12:30"),)
    entries = spec_of(calendar(sessions, last=last))["overrides"]
    # A weekday that is short more often than not is usually short.
    assert all(len(entry["dates"]) <= 300 for entry in entries)
    assert (
        list(drift(CAPITAL_MARKETS, spec_of(calendar(sessions, last=last)), calendar(sessions, last=last)))
        == []
    )


@pytest.mark.parametrize(
    ("interval", "words"),
    [
        ((datetime(2026, 3, 2, 8, 0, 30, tzinfo=UTC), datetime(2026, 3, 2, 9, tzinfo=UTC)), "whole minutes"),
        ((datetime(2026, 3, 2, 8, tzinfo=UTC), datetime(2026, 3, 3, 9, tzinfo=UTC)), "ends within a day"),
        ((datetime(2026, 2, 28, 8, tzinfo=UTC), datetime(2026, 3, 2, 9, tzinfo=UTC)), "the evening before"),
        ((datetime(2026, 3, 1, 18, tzinfo=UTC), datetime(2026, 3, 3, 1, tzinfo=UTC)), "ends within a day"),
    ],
)
def test_what_the_grammar_cannot_say_is_refused_by_day(interval: Interval, words: str) -> None:
    with pytest.raises(InvalidSpec, match=words) as refused:
        spec_of(calendar({date(2026, 3, 2): (interval,)}))
    assert refused.value.field == "2026-03-02"


def test_an_edge_that_the_clock_reads_twice_cannot_be_said_and_is_refused() -> None:
    """Half past one comes twice in New York on 1 November: a window that ends there opens again."""
    day = date(2026, 11, 1)
    first = datetime(2026, 11, 1, 5, 30, tzinfo=UTC)
    assert [(first + timedelta(hours=n)).astimezone(NEW_YORK).strftime("%H:%M") for n in (0, 1)] == [
        "01:30"
    ] * 2
    sessions = {day: ((first - timedelta(minutes=30), first),)}
    with pytest.raises(InvalidSpec, match="as they are"):
        spec_of(calendar(sessions, NEW_YORK))


HOURS = st.tuples(st.integers(-1440, 1439), st.integers(1, 1440)).map(
    lambda pair: Hours(pair[0], max(0, min(pair[0] + pair[1], 1440)) if pair[0] < 0 else pair[0] + pair[1])
)


@given(
    st.dictionaries(st.sampled_from(list(weekdays(last=date(2026, 2, 28)))), HOURS, min_size=1),
    st.sampled_from([0, 1]),
)
def test_whatever_it_says_is_what_the_sessions_say(shapes: dict[date, Hours], which: int) -> None:
    """Or it is refused; in winter, so that no clock changes."""
    zone = (LONDON, KOLKATA)[which]
    last = date(2026, 2, 28)
    sessions = {}
    for day, hours in shapes.items():
        midnight = datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC)
        sessions[day] = (
            (midnight + timedelta(minutes=hours.start), midnight + timedelta(minutes=hours.end)),
        )
        assert hours_of(day, sessions[day][0], zone) == hours
    made = calendar(sessions, zone, last)
    assert list(drift(CAPITAL_MARKETS, spec_of(made), made)) == []


def test_drift_names_the_stretches() -> None:
    spec = spec_of(calendar(usual()))
    moved = usual()
    day = date(2026, 6, 1)
    moved[day] = (local(LONDON, day, "09:00", "16:30"),)
    del moved[date(2026, 6, 2)]
    found = list(drift(CAPITAL_MARKETS, spec, calendar(moved)))
    assert found == [
        Difference(
            start=datetime(2026, 6, 1, 7, tzinfo=UTC), end=datetime(2026, 6, 1, 8, tzinfo=UTC), active=True
        ),
        Difference(
            start=datetime(2026, 6, 2, 7, tzinfo=UTC),
            end=datetime(2026, 6, 2, 15, 30, tzinfo=UTC),
            active=True,
        ),
    ]
    assert str(found[0]) == "2026-06-01T07:00Z/2026-06-01T08:00Z is open"


def test_what_touches_is_one() -> None:
    at = [datetime(2026, 3, 2, hour, tzinfo=UTC) for hour in range(6)]
    assert merged([(at[2], at[3]), (at[0], at[1]), (at[1], at[2]), (at[4], at[5]), (at[4], at[4])]) == [
        (at[0], at[3]),
        (at[4], at[5]),
    ]


# The independent oracle: what the exchanges published, and specs that were found to say the same.


@pytest.mark.parametrize(
    "row",
    # The sessions of CMES touch, and the vectors have them merged: its days cannot be told apart.
    [row for row in SPECS if row["exchange"] != "CMES"],
    ids=lambda row: row["exchange"],
)
def test_the_published_spec_of_an_exchange_is_found_again(row: dict[str, Any]) -> None:
    (truth,) = [
        found
        for found in map(json.loads, (GOLDEN / "exchange_truth.jsonl").read_text().splitlines())
        if found["exchange"] == row["exchange"]
    ]
    zone = zones.zone(row["spec"]["timezone"])
    sessions: dict[date, list[Interval]] = {}
    for start, end in truth["open"]:
        begins, ends = (datetime.fromtimestamp(edge, UTC) for edge in (start, end))
        # A trading day is called after the date on which it closes.
        sessions.setdefault((ends - timedelta(seconds=1)).astimezone(zone).date(), []).append((begins, ends))
    made = Calendar(
        zone=zone,
        first=date(2025, 1, 2),
        last=date(2027, 12, 30),
        sessions={day: tuple(found) for day, found in sessions.items()},
    )
    spec = spec_of(made)
    assert spec["windows"] == row["spec"]["windows"]
    assert set(spec.get("holidays", [])) == set(row["spec"].get("holidays", [])) - {
        "2025-01-01",
        "2027-12-31",
    }
