"""The spec that says what a list of sessions says: the usual week, holidays, and the days that are otherwise.

Nothing is dropped in silence: the spec is read again by the schedule engine, and has to open and close as the sessions do.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Any, Final
from zoneinfo import ZoneInfo

import attrs

from fivespot.core.calendar.sessions import Hours, Interval, clipped, days, hours_of, merged, span
from fivespot.core.errors import InvalidSpec
from fivespot.core.schedule import CAPITAL_MARKETS, compile_schedule
from fivespot.core.schedule.bounds import MAX_DATES

_NAMES: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_SHOWN: Final = 5

Shape = tuple[Hours, ...]
"""The windows of one day, in order; empty: closed."""


@attrs.frozen(kw_only=True)
class Calendar:
    """What a source says about a range of days.

    Attributes:
        zone: whose clock the sessions are read by.
        first: the first day.
        last: the last day, included.
        sessions: the open intervals (UTC, half-open) that belong to each day; a day without any is closed.
    """

    zone: ZoneInfo
    first: date
    last: date
    sessions: Mapping[date, tuple[Interval, ...]]

    def known(self) -> Interval:
        """From when until when the sessions are all that there is.

        The day after the last may begin on the evening before, as others do, and nobody has said whether it does.
        """
        start, end = span(self.first, self.last, self.zone)
        leads = (
            span(day, day, self.zone)[0] - interval[0]
            for day, found in self.sessions.items()
            for interval in found
        )
        return start, end - max(timedelta(), *leads)

    def open(self) -> list[Interval]:
        """The union of all sessions, as far as they are all known."""
        every = (interval for found in self.sessions.values() for interval in found)
        return clipped(merged(every), *self.known())


def spec_of(calendar: Calendar) -> dict[str, Any]:
    """The spec of a CapitalMarketsSchedule that opens and closes as the calendar does.

    Raises:
        InvalidSpec: the grammar cannot say it: naming the day, or, where there are too many exceptions, the field.
    """
    shapes = {
        day: tuple(
            sorted(hours_of(day, interval, calendar.zone) for interval in calendar.sessions.get(day, ()))
        )
        for day in days(calendar.first, calendar.last)
    }
    week = _usual_week(shapes)
    spec: dict[str, Any] = {"timezone": str(calendar.zone), "windows": _windows(week)}
    odd = {day: shape for day, shape in shapes.items() if shape != week[day.weekday()]}
    if holidays := [day.isoformat() for day, shape in odd.items() if not shape]:
        spec["holidays"] = holidays
    if overrides := _overrides({day: shape for day, shape in odd.items() if shape}, week):
        spec["overrides"] = overrides
    _prove(spec, calendar)
    return spec


def _usual_week(shapes: Mapping[date, Shape]) -> list[Shape]:
    """For each weekday the commonest shape; of several, one that is open."""
    counted: list[Counter[Shape]] = [Counter() for _ in _NAMES]
    for day, shape in shapes.items():
        counted[day.weekday()][shape] += 1
    return [max(counts, key=lambda shape: (counts[shape], shape), default=()) for counts in counted]


def _windows(week: list[Shape]) -> list[dict[str, Any]]:
    """The windows of the week, each with all its days."""
    found: dict[Hours, list[int]] = {}
    for weekday, shape in enumerate(week):
        for hours in shape:
            found.setdefault(hours, []).append(weekday)
    return [{"days": _ranges(found[hours]), **hours.window()} for hours in sorted(found)]


def _ranges(weekdays: list[int]) -> list[str]:
    """`mon-fri`, or `mon, wed`: neighbours together."""
    runs: list[list[int]] = []
    for weekday in weekdays:
        if runs and runs[-1][-1] + 1 == weekday:
            runs[-1].append(weekday)
        else:
            runs.append([weekday])
    return [_NAMES[run[0]] if len(run) == 1 else f"{_NAMES[run[0]]}-{_NAMES[run[-1]]}" for run in runs]


def _overrides(odd: Mapping[date, Shape], week: list[Shape]) -> list[dict[str, Any]]:
    """The days that are open otherwise."""
    changes = ((day, _change(shape, week[day.weekday()])) for day, shape in odd.items())
    return entries_of(changes, lambda alike: [day.isoformat() for day in alike])


def entries_of(
    changes: Iterable[tuple[date, dict[str, Any]]], written: Callable[[list[date]], list[str]]
) -> list[dict[str, Any]]:
    """The entries of `overrides`: days that are alike together, in as many entries as an entry's limit asks for.

    Args:
        changes: days in order, and what an entry says of each beside its dates.
        written: how an entry writes days that are alike.
    """
    entries: dict[str, tuple[dict[str, Any], list[date]]] = {}
    for day, change in changes:
        entries.setdefault(str(change), (change, []))[1].append(day)
    return [
        {"dates": dates[start : start + MAX_DATES], **change}
        for change, alike in entries.values()
        for dates in [written(alike)]
        for start in range(0, len(dates), MAX_DATES)
    ]


def _change(shape: Shape, usual: Shape) -> dict[str, Any]:
    """How a day differs: it closes early, opens late, or has windows of its own."""
    opening, closing = shape[0], shape[-1]
    if 0 <= closing.end <= 24 * 60 and shape == _clip(usual, close=closing.end):
        return {"close": closing.window()["end"]}
    if opening.start >= 0 and shape == _clip(usual, open=opening.start):
        return {"open": opening.window()["start"]}
    return {"windows": [hours.window() for hours in shape]}


def _clip(shape: Shape, *, open: int = -(24 * 60), close: int = 48 * 60) -> Shape:  # noqa: A002 - the grammar's word
    cut = (Hours(max(hours.start, open), min(hours.end, close)) for hours in shape)
    return tuple(hours for hours in cut if hours.start < hours.end)


def _prove(spec: Mapping[str, Any], calendar: Calendar) -> None:
    """Read the spec as its controller will.

    Raises:
        InvalidSpec: it is refused, or opens or closes at another instant than the calendar.
    """
    found = drift(CAPITAL_MARKETS, spec, calendar)
    if found:
        shown = ", ".join(str(difference) for difference in found[:_SHOWN])
        raise InvalidSpec("windows", shown, "the grammar cannot say these days as they are; take other years")


@attrs.frozen(kw_only=True)
class Difference:
    """A stretch in which a spec and a calendar disagree.

    Attributes:
        start: UTC; `end`: UTC, half-open.
        active: what the spec says; the calendar says the opposite.
    """

    start: datetime
    end: datetime
    active: bool

    def __str__(self) -> str:
        word = "open" if self.active else "closed"
        return f"{self.start:%Y-%m-%dT%H:%MZ}/{self.end:%Y-%m-%dT%H:%MZ} is {word}"


def drift(kind: str, spec: Mapping[str, Any], calendar: Calendar) -> list[Difference]:
    """Where the spec of a schedule of this kind and a calendar disagree, within the days of the calendar, in order.

    Raises:
        InvalidSpec: the spec is refused.
    """
    return differences(kind, spec, calendar.open(), *calendar.known())


def differences(
    kind: str, spec: Mapping[str, Any], wanted: list[Interval], start: datetime, end: datetime
) -> list[Difference]:
    """Where the spec of a schedule of this kind is not open as wanted, in order.

    Args:
        kind: of the schedule.
        spec: as its controller reads it.
        wanted: when it should be open, in order and apart from each other, between `start` and `end`.
        start: UTC.
        end: UTC, half-open.

    Raises:
        InvalidSpec: the spec is refused.
    """
    schedule = compile_schedule(kind, spec)
    said = [(interval.start, interval.end) for interval in schedule.intervals(start, end)]
    edges = sorted({edge for interval in (*said, *wanted) for edge in interval})
    found: list[Difference] = []
    for begins, ends in pairwise(edges):
        active, wants = _covers(said, begins), _covers(wanted, begins)
        if active is wants:
            continue
        if found and found[-1].end == begins and found[-1].active is active:
            found[-1] = attrs.evolve(found[-1], end=ends)
        else:
            found.append(Difference(start=begins, end=ends, active=active))
    return found


def _covers(intervals: list[Interval], at: datetime) -> bool:
    index = bisect_right(intervals, at, key=lambda interval: interval[0]) - 1
    return index >= 0 and at < intervals[index][1]
