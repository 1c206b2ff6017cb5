"""What lint says, and that it says nothing about a plain schedule."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings

from fivespot.core.errors import InvalidSpec
from fivespot.core.schedule import CAPITAL_MARKETS, TIME_BASED, compile_schedule, lint_schedule
from tests import strategies

NOW = datetime(2026, 6, 1, tzinfo=UTC)
WINDOW = {"days": ["mon-fri"], "start": "09:30", "end": "16:00"}
SESSION = {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-23"]}
PLAIN = {"timezone": "Europe/London", "windows": [WINDOW]}


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        (TIME_BASED, PLAIN),
        (TIME_BASED, SESSION),
        (TIME_BASED, {**SESSION, "timezone": "UTC", "hoursOfDay": ["9", "12-12", "0-23"]}),
        (TIME_BASED, {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["22-6"]}),
        (TIME_BASED, {**PLAIN, "overrides": [{"dates": ["2026-12-24"], "open": "10:00", "close": "12:00"}]}),
        (CAPITAL_MARKETS, {"sessions": [SESSION], "earlyCloses": [{"date": "2026-12-24", "closeHour": 12}]}),
    ],
)
def test_nothing_is_said_about_a_plain_schedule(kind, spec):
    assert lint_schedule(kind, spec, at=NOW) == []


@pytest.mark.parametrize(
    ("kind", "spec", "field", "text"),
    [
        (TIME_BASED, {**SESSION, "hoursOfDay": ["20", "9-17"]}, "hoursOfDay[1]", "17:59:59"),
        (TIME_BASED, {**SESSION, "hoursOfDay": ["22-6"]}, "hoursOfDay[0]", "last evening ends at midnight"),
        (
            CAPITAL_MARKETS,
            {"sessions": [{**SESSION, "hoursOfDay": ["9-15"]}]},
            "sessions[0].hoursOfDay[0]",
            "15:59:59",
        ),
        (TIME_BASED, {**PLAIN, "timezone": "US/Eastern"}, "timezone", "America/New_York"),
        (TIME_BASED, {**PLAIN, "timezone": "CET"}, "timezone", "without a slash"),
        (TIME_BASED, {**PLAIN, "timezone": "EST5EDT"}, "timezone", "without a slash"),
        (TIME_BASED, {"windows": [{**WINDOW, "end": "09:30"}]}, "windows[0].end", "24 hours"),
        (TIME_BASED, {**PLAIN, "hoursOfDay": ["9-17"]}, "hoursOfDay", "windows replace it"),
        (CAPITAL_MARKETS, {**PLAIN, "sessions": [SESSION]}, "sessions", "windows replace it"),
        (
            CAPITAL_MARKETS,
            {**PLAIN, "earlyCloses": [{"date": "2026-12-24", "closeHour": 12}]},
            "earlyCloses",
            "without effect",
        ),
        (
            CAPITAL_MARKETS,
            {
                "sessions": [SESSION],
                "earlyCloses": [{"date": "2026-12-24", "closeHour": hour} for hour in (12, 11)],
            },
            "earlyCloses[1].date",
            "the first counts",
        ),
        (
            TIME_BASED,
            {**PLAIN, "overrides": [{"dates": ["2026-12-24"], "name": "closed"}]},
            "overrides[0]",
            "windows: []",
        ),
        (
            TIME_BASED,
            {**PLAIN, "overrides": [{"dates": ["2026-12-24"], "open": "12:00", "close": "12:00"}]},
            "overrides[0].close",
            "nothing is left",
        ),
        (
            TIME_BASED,
            {
                **PLAIN,
                "holidays": ["2026-12-24"],
                "overrides": [{"dates": ["2026-12-23/2026-12-24"], "close": "12:00"}],
            },
            "overrides[0].dates[0]",
            "does not reopen",
        ),
        (TIME_BASED, {**PLAIN, "enabled": False}, "enabled", "never active"),
        (TIME_BASED, {**PLAIN, "windows": []}, "windows", "never active"),
        (TIME_BASED, {**SESSION, "daysOfWeek": []}, "hoursOfDay", "never active"),
        (CAPITAL_MARKETS, {"sessions": []}, "sessions", "never active"),
        (
            TIME_BASED,
            {**PLAIN, "validFrom": "2026-03-07", "validThrough": "2026-03-08"},
            "windows",
            "never active",
        ),
        (
            TIME_BASED,
            {**PLAIN, "validThrough": "2026-03-09"},
            "validThrough",
            "ended at 2026-03-09T16:00:00Z",
        ),
        (
            TIME_BASED,
            {
                "timezone": "America/New_York",
                "windows": [{"days": ["sat"], "start": "21:00", "end": "01:30"}],
            },
            "windows",
            "01:00 to 02:00 twice: the edge at 01:30",
        ),
        (
            TIME_BASED,
            {"timezone": "Pacific/Chatham", "daysOfWeek": ["sun"], "hoursOfDay": ["3"]},
            "hoursOfDay",
            "02:45 to 03:45 twice: the edge at 03:00",
        ),
    ],
)
def test_a_surprise_is_named_by_its_field(kind, spec, field, text):
    found = [advice for advice in lint_schedule(kind, spec, at=NOW) if advice.field == field]
    assert any(text in advice.text for advice in found), found


def test_a_window_that_exists_only_in_a_gap_is_never_active():
    window = {"days": ["sun"], "start": "02:15", "end": "02:45"}
    spec = {
        "timezone": "America/New_York",
        "windows": [window],
        "validFrom": "2026-03-08",
        "validThrough": "2026-03-08",
    }
    assert [advice.text for advice in lint_schedule(TIME_BASED, spec)] == [
        "never active: no reading of the local clock is inside"
    ]


def test_without_the_present_nothing_is_said_about_clock_changes_or_the_past():
    night = {"days": ["sat"], "start": "21:00", "end": "01:30"}
    spec = {"timezone": "America/New_York", "windows": [night], "validThrough": "2020-01-01"}
    assert lint_schedule(TIME_BASED, spec) == []


def test_an_edge_at_the_very_start_or_end_of_a_repeated_hour_is_no_surprise():
    window = {"days": ["sun"], "start": "01:00", "end": "02:00"}
    assert lint_schedule(TIME_BASED, {"timezone": "America/New_York", "windows": [window]}, at=NOW) == []


def test_a_refused_spec_is_refused_by_lint_too():
    with pytest.raises(InvalidSpec):
        lint_schedule(TIME_BASED, {})


@settings(max_examples=100, deadline=None)
@given(strategies.schedules())
def test_every_schedule_that_compiles_can_be_linted_and_only_those_without_intervals_are_called_never_active(
    schedule,
):
    kind, spec = schedule
    advice = lint_schedule(kind, spec, at=NOW)
    called = any(entry.text.startswith("never active:") for entry in advice)
    start, end = datetime(2025, 12, 1, tzinfo=UTC), datetime(2027, 6, 1, tzinfo=UTC)
    assert called == (next(compile_schedule(kind, spec).intervals(start, end), None) is None)
