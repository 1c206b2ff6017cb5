"""What a schedule's spec says, as values: read and checked once, field by field, with the manifest's own names.

Not the meaning on a clock (`plan.py`), and not advice about things that are allowed (`lint.py`).
"""

import itertools
from collections.abc import Mapping
from typing import Final

from attrs import frozen

from fivespot.core import zones
from fivespot.core.schedule import bounds, grammar
from fivespot.core.schedule.dates import Days, dates, format_day, one_date
from fivespot.core.schedule.fields import at, entries, flag, mapping, refuse, text, whole

TIME_BASED: Final = "TimeBasedSpotSchedule"
CAPITAL_MARKETS: Final = "CapitalMarketsSchedule"
KINDS: Final = (TIME_BASED, CAPITAL_MARKETS)

_DAY = 86400
_HOUR_FIELDS = ("daysOfWeek", "hoursOfDay")
_EXACT_FIELDS = ("windows", "holidays", "overrides", "validFrom", "validThrough")
_KNOWN = {
    TIME_BASED: ("timezone", *_HOUR_FIELDS, "enabled", *_EXACT_FIELDS),
    CAPITAL_MARKETS: ("timezone", "sessions", "earlyCloses", *_EXACT_FIELDS),
}
_HINTS = {
    TIME_BASED: {
        "sessions": f"sessions belong to {CAPITAL_MARKETS}; write daysOfWeek and hoursOfDay",
        "earlyCloses": f"earlyCloses belong to {CAPITAL_MARKETS}; write overrides with close",
    },
    CAPITAL_MARKETS: {
        "enabled": f"only {TIME_BASED} has enabled; to stop a machine, set enabled on the machine",
        "daysOfWeek": "write it inside an entry of sessions",
        "hoursOfDay": "write it inside an entry of sessions",
    },
}
_WINDOW = ("days", "start", "end", "startDay")
_OVERRIDE_WINDOW = _WINDOW[1:]


@frozen
class Session:
    """Hours that count on some weekdays (0 is Monday); both are read off the clock at the instant itself."""

    days: frozenset[int]
    hours: frozenset[int]


@frozen
class Window:
    """A stretch of local clock readings that belongs to a date.

    Attributes:
        days: the weekdays of that date; None in an override, which names its dates itself.
        start: seconds after the midnight of that date, negative for the evening before.
        end: seconds after the same midnight, exclusive; above 86400 it runs into the next day.
    """

    days: frozenset[int] | None
    start: int
    end: int


@frozen
class Override:
    """What is different on some dates.

    Attributes:
        dates: the dates, in the order written; no date is in two entries.
        name: for people.
        windows: instead of the usual ones; empty is closed, None is the usual ones.
        opens: seconds after midnight of the date before which nothing counts, or None.
        closes: seconds after midnight of the date from which nothing counts, or None.
    """

    dates: tuple[Days, ...]
    name: str
    windows: tuple[Window, ...] | None
    opens: int | None
    closes: int | None


@frozen
class EarlyClose:
    """On `day` the hour fields count to the end of `hour`."""

    day: int
    hour: int


@frozen
class ScheduleSpec:
    """A checked spec of either kind.

    Attributes:
        kind: one of KINDS.
        timezone: a listed zone name.
        enabled: always true for CapitalMarketsSchedule.
        sessions: the hour fields, a TimeBasedSpotSchedule's as one session; None when left out.
        windows: None when left out; otherwise they replace `sessions`.
        holidays: as written.
        overrides: as written.
        early_closes: as written; the first for a date counts.
        valid_from: first date that counts, or None.
        valid_through: last date that counts, or None.
    """

    kind: str
    timezone: str
    enabled: bool
    sessions: tuple[Session, ...] | None
    windows: tuple[Window, ...] | None
    holidays: tuple[Days, ...]
    overrides: tuple[Override, ...]
    early_closes: tuple[EarlyClose, ...]
    valid_from: int | None
    valid_through: int | None


def read_spec(kind: object, spec: object) -> ScheduleSpec:
    """Check the `spec` of a schedule of this `kind`, all of it.

    Raises:
        InvalidSpec: whatever the input was; its field is a path inside `spec`, or `kind`.
    """
    if not isinstance(kind, str) or kind not in KINDS:
        refuse("kind", kind, f"write one of {', '.join(KINDS)}")
    fields = mapping(spec, "", _KNOWN[kind], _HINTS[kind])
    zone = fields.get("timezone", zones.DEFAULT)
    text(zone, "timezone", bounds.MAX_TIMEZONE_LENGTH, '"Europe/London"')
    sessions = _hour_fields(fields) if kind == TIME_BASED else _sessions(fields)
    windows = _windows(fields, "", bounds.MAX_WINDOWS, _WINDOW)
    if windows is None and sessions is None:
        _refuse_nothing(kind, fields)
    valid_from = one_date(fields["validFrom"], "validFrom") if "validFrom" in fields else None
    valid_through = one_date(fields["validThrough"], "validThrough") if "validThrough" in fields else None
    if valid_from is not None and valid_through is not None and valid_through < valid_from:
        refuse(
            "validThrough",
            fields["validThrough"],
            f"write a date not before validFrom, {format_day(valid_from)}",
        )
    return ScheduleSpec(
        kind=kind,
        timezone=zones.zone(zone).key,
        enabled=flag(fields["enabled"], "enabled") if "enabled" in fields else True,
        sessions=sessions,
        windows=windows,
        holidays=tuple(dates(fields.get("holidays", ()), "holidays", bounds.MAX_HOLIDAYS)),
        overrides=_overrides(fields),
        early_closes=_early_closes(fields),
        valid_from=valid_from,
        valid_through=valid_through,
    )


def _refuse_nothing(kind: str, fields: Mapping[str, object]) -> None:
    wanted = _HOUR_FIELDS if kind == TIME_BASED else ("sessions",)
    missing = next(name for name in wanted if name not in fields)
    refuse(missing, None, f"this field is missing; write {' and '.join(wanted)}, or windows")


def _hour_fields(fields: Mapping[str, object]) -> tuple[Session, ...] | None:
    # Each is checked even when the other is missing, or when windows make both of them moot.
    days = grammar.days(fields["daysOfWeek"], "daysOfWeek") if "daysOfWeek" in fields else None
    hours = grammar.hours(fields["hoursOfDay"], "hoursOfDay") if "hoursOfDay" in fields else None
    return None if days is None or hours is None else (Session(days, hours),)


def _sessions(fields: Mapping[str, object]) -> tuple[Session, ...] | None:
    if "sessions" not in fields:
        return None
    found = []
    example = '[{daysOfWeek: ["mon-fri"], hoursOfDay: ["9-15"]}]'
    for index, entry in enumerate(entries(fields["sessions"], "sessions", bounds.MAX_SESSIONS, example)):
        field = f"sessions[{index}]"
        session = mapping(entry, field, _HOUR_FIELDS)
        days = grammar.days(_required(session, field, "daysOfWeek", '["mon-fri"]'), at(field, "daysOfWeek"))
        hours = grammar.hours(_required(session, field, "hoursOfDay", '["9-15"]'), at(field, "hoursOfDay"))
        found.append(Session(days, hours))
    return tuple(found)


def _windows(
    parent: Mapping[str, object], path: str, limit: int, known: tuple[str, ...]
) -> tuple[Window, ...] | None:
    if "windows" not in parent:
        return None
    field = at(path, "windows")
    example = '[{days: ["mon-fri"], start: "09:30", end: "16:00"}]'
    return tuple(
        _window(entry, f"{field}[{index}]", known)
        for index, entry in enumerate(entries(parent["windows"], field, limit, example))
    )


def _window(entry: object, field: str, known: tuple[str, ...]) -> Window:
    window = mapping(entry, field, known, {"days": "leave it out: an override already names its dates"})
    weekdays = None
    if "days" in known:
        weekdays = grammar.days(_required(window, field, "days", '["mon-fri"]'), at(field, "days"))
    start = grammar.start_time(_required(window, field, "start", '"09:30"'), at(field, "start"))
    end = grammar.end_time(_required(window, field, "end", '"16:00"'), at(field, "end"))
    low, high = bounds.START_DAYS
    start += _DAY * whole(window.get("startDay", 0), at(field, "startDay"), low, high)
    return Window(weekdays, start, end if end > start else end + _DAY)


def _overrides(fields: Mapping[str, object]) -> tuple[Override, ...]:
    listed = entries(
        fields.get("overrides", ()),
        "overrides",
        bounds.MAX_OVERRIDES,
        '[{dates: ["2026-12-24"], close: "13:00"}]',
    )
    found = tuple(_override(entry, f"overrides[{index}]") for index, entry in enumerate(listed))
    _refuse_repeated_dates(found)
    return found


def _override(entry: object, field: str) -> Override:
    override = mapping(entry, field, ("dates", "name", "windows", "open", "close"))
    named = override.get("name", "")
    listed = _required(override, field, "dates", '["2026-12-24"]')
    days = tuple(dates(listed, at(field, "dates"), bounds.MAX_DATES))
    if not days:
        refuse(at(field, "dates"), listed, 'write at least one date, such as ["2026-12-24"]')
    return Override(
        dates=days,
        name=text(named, at(field, "name"), bounds.MAX_NAME_LENGTH, '"half day"'),
        windows=_windows(override, field, bounds.MAX_OVERRIDE_WINDOWS, _OVERRIDE_WINDOW),
        opens=grammar.start_time(override["open"], at(field, "open")) if "open" in override else None,
        closes=grammar.end_time(override["close"], at(field, "close")) if "close" in override else None,
    )


def _refuse_repeated_dates(overrides: tuple[Override, ...]) -> None:
    """Two answers for one date would make the order of a list matter; whoever wrote the second must decide."""
    placed = sorted(
        (days, (index, position))
        for index, override in enumerate(overrides)
        for position, days in enumerate(override.dates)
    )
    for (before, place), (after, other) in itertools.pairwise(placed):
        if after.first <= before.last:
            # Sorted neighbours: if any two overlap, then so do two neighbours.
            index, position = max(place, other)
            days = after if (index, position) == other else before
            written = format_day(days.first) + (f"/{format_day(days.last)}" if days.last > days.first else "")
            refuse(
                f"overrides[{index}].dates[{position}]",
                written,
                f"{format_day(after.first)} has an entry already; write at most one per date",
            )


def _early_closes(fields: Mapping[str, object]) -> tuple[EarlyClose, ...]:
    example = '[{date: "2026-12-24", closeHour: 12}]'
    listed = entries(fields.get("earlyCloses", ()), "earlyCloses", bounds.MAX_EARLY_CLOSES, example)
    found = []
    for index, entry in enumerate(listed):
        field = f"earlyCloses[{index}]"
        close = mapping(entry, field, ("date", "closeHour"))
        day = one_date(_required(close, field, "date", '"2026-12-24"'), at(field, "date"))
        hour = _required(close, field, "closeHour", "12")
        found.append(
            EarlyClose(day, whole(hour, at(field, "closeHour"), bounds.MIN_CLOSE_HOUR, bounds.MAX_CLOSE_HOUR))
        )
    return tuple(found)


def _required(parent: Mapping[str, object], path: str, name: str, example: str) -> object:
    if name not in parent:
        refuse(at(path, name), None, f"this field is missing; write it, such as {name}: {example}")
    return parent[name]
