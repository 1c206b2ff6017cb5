"""Hypothesis strategies that more than one test module uses."""

from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any

from hypothesis import strategies as st

from fivespot.core import zones

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

ODD_ZONES = (
    "UTC",
    "America/New_York",
    "Europe/London",
    "Europe/Dublin",
    "Africa/Casablanca",
    "America/Havana",
    "America/St_Johns",
    "America/Santiago",
    "Antarctica/Troll",
    "Asia/Beirut",
    "Asia/Kathmandu",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Pacific/Chatham",
)
"""Zones whose clocks do something that others do not."""

FIRST_DATE = date(2026, 1, 1)
"""Generated dates lie in the 400 days from here."""


def timezones() -> st.SearchStrategy[str]:
    """Any listed zone, an odd one half of the time."""
    return st.sampled_from(ODD_ZONES) | st.sampled_from(sorted(zones.names()))


def instants(first: datetime | None = None, days: int = 430) -> st.SearchStrategy[datetime]:
    """Whole UTC seconds around the generated dates."""
    start = first or datetime(2025, 12, 15, tzinfo=UTC)
    return st.integers(0, days * 86400).map(lambda second: start + timedelta(seconds=second))


@st.composite
def instants_in(draw: st.DrawFn, timezone: str) -> datetime:
    """Instants as above; half of the time within a day of a change of the zone's clock, if it has any."""
    at = draw(instants())
    if draw(st.booleans()):
        return at
    zone = zones.zone(timezone)
    day, second = timedelta(days=1), timedelta(seconds=1)
    after = next(
        (
            probe
            for step in range(1, 366)
            if (probe := at + step * day).astimezone(zone).utcoffset() != _offset(at, zone)
        ),
        None,
    )
    if after is None:
        return at
    before = after - day
    while after - before > second:
        middle = before + (after - before) // 2 // second * second
        before, after = (middle, after) if _offset(middle, zone) == _offset(at, zone) else (before, middle)
    return after + draw(st.sampled_from((-3600, -1, 0, 1, 3600)) | st.integers(-86400, 86400)) * second


def _offset(at: datetime, zone: tzinfo) -> timedelta | None:
    return at.astimezone(zone).utcoffset()


def dates() -> st.SearchStrategy[str]:
    """Real dates, close enough together to meet."""
    return st.integers(0, 400).map(lambda day: (FIRST_DATE + timedelta(days=day)).isoformat())


@st.composite
def date_ranges(draw: st.DrawFn) -> str:
    """A date, or a range of up to ten days."""
    first = date.fromisoformat(draw(dates()))
    length = draw(st.integers(0, 9))
    return f"{first}/{first + timedelta(days=length)}" if length else str(first)


@st.composite
def day_tokens(draw: st.DrawFn) -> str:
    """A day or a range of days; ranges wrap."""
    first = draw(st.sampled_from(DAYS))
    return draw(st.sampled_from((first, f"{first}-{draw(st.sampled_from(DAYS))}")))


@st.composite
def hour_tokens(draw: st.DrawFn) -> str:
    """An hour or a range of hours; ranges wrap."""
    hours = st.integers(0, 4) | st.integers(0, 23)
    first, last = draw(hours), draw(hours)
    return draw(st.sampled_from((f"{first}", f"{first}-{last}")))


def day_lists() -> st.SearchStrategy[list[str]]:
    """The value of `daysOfWeek`."""
    return st.lists(day_tokens(), max_size=3)


def hour_lists() -> st.SearchStrategy[list[str]]:
    """The value of `hoursOfDay`."""
    return st.lists(hour_tokens(), max_size=3)


def start_times() -> st.SearchStrategy[str]:
    """Quarters of an hour, so that an oracle can walk the clock in quarters; often when clocks change, and midnight."""
    quarters = st.integers(0, 16) | st.integers(0, 95) | st.just(0)
    return quarters.map(lambda quarter: f"{quarter // 4:02}:{quarter % 4 * 15:02}")


def end_times() -> st.SearchStrategy[str]:
    """The same, and 24:00."""
    return start_times() | st.just("24:00")


def windows(*, named_days: bool = True) -> st.SearchStrategy[dict[str, Any]]:
    """One window; those of overrides name no days."""
    required: dict[str, st.SearchStrategy[Any]] = {"start": start_times(), "end": end_times()}
    if named_days:
        required["days"] = day_lists()
    return st.fixed_dictionaries(required, optional={"startDay": st.sampled_from((-1, 0))})


@st.composite
def overrides(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Overrides without a date in two entries."""
    taken: set[date] = set()
    found = []
    for written in draw(st.lists(date_ranges(), max_size=4)):
        first, _, last = written.partition("/")
        days = {date.fromisoformat(first) + timedelta(days=step) for step in range(10)}
        days = {day for day in days if day <= date.fromisoformat(last or first)}
        if taken & days:
            continue
        taken |= days
        entry = draw(
            st.fixed_dictionaries(
                {},
                optional={
                    "name": st.sampled_from(("half day", "")),
                    "windows": st.lists(windows(named_days=False), max_size=2),
                    "open": start_times(),
                    "close": end_times(),
                },
            )
        )
        found.append({"dates": [written], **entry})
    return found


def additions() -> st.SearchStrategy[dict[str, Any]]:
    """What both kinds may add to their windows or hours."""
    return st.fixed_dictionaries(
        {},
        optional={
            "holidays": st.lists(date_ranges(), max_size=4),
            "overrides": overrides(),
            "validFrom": st.just("2026-01-20") | st.dates(date(2026, 1, 1), date(2026, 6, 1)).map(str),
            "validThrough": st.just("2026-12-20") | st.dates(date(2026, 6, 1), date(2026, 12, 31)).map(str),
        },
    )


@st.composite
def asked(draw: st.DrawFn) -> tuple[str, dict[str, Any], datetime]:
    """A kind, a spec that it accepts, and an instant, often one that its zone makes interesting."""
    kind, spec = draw(schedules())
    return kind, spec, draw(instants_in(spec["timezone"]))


@st.composite
def schedules(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A kind and a spec that it accepts."""
    spec: dict[str, Any] = {"timezone": draw(timezones()), **draw(additions())}
    shape = draw(st.sampled_from(("hours", "sessions", "windows")))
    if shape == "windows":
        spec["windows"] = draw(st.lists(windows(), max_size=3))
        return draw(st.sampled_from(("TimeBasedSpotSchedule", "CapitalMarketsSchedule"))), spec
    if shape == "hours":
        spec |= {"daysOfWeek": draw(day_lists()), "hoursOfDay": draw(hour_lists())}
        return "TimeBasedSpotSchedule", spec
    session = st.fixed_dictionaries({"daysOfWeek": day_lists(), "hoursOfDay": hour_lists()})
    close = st.fixed_dictionaries({"date": dates(), "closeHour": st.integers(0, 23)})
    spec |= {
        "sessions": draw(st.lists(session, max_size=2)),
        "earlyCloses": draw(st.lists(close, max_size=3)),
    }
    return "CapitalMarketsSchedule", spec
