"""The overrides that say what a list of events says: days on which a schedule is closed, or open, while they last.

An override cuts the morning or the evening off a day, or has windows of its own; what it cannot say is refused by day. Nothing is
dropped in silence: what is made is read again by the schedule engine, and has to open and close as the events do.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta
from itertools import groupby
from typing import Any, Final
from zoneinfo import ZoneInfo

import attrs

from fivespot.core.calendar.derive import Difference, differences, entries_of
from fivespot.core.calendar.sessions import DAY_MINUTES, Hours, Interval, clipped, days, gaps, merged, span
from fivespot.core.errors import InvalidSpec
from fivespot.core.schedule import TIME_BASED
from fivespot.core.schedule.bounds import MAX_NAME_LENGTH
from fivespot.core.text import one_line

Segment = tuple[int, int]
"""Minutes of a local day, half-open."""
_WHOLE_DAY: Final[Segment] = (0, DAY_MINUTES)
_ALWAYS: Final = ({"days": ["mon-sun"], **Hours(*_WHOLE_DAY).window()},)
_MOMENT: Final = timedelta(microseconds=1)
_DAY: Final = timedelta(days=1)


@attrs.frozen(kw_only=True)
class CalendarEvent:
    """One occurrence.

    Attributes:
        name: what it is called; may be empty.
        start: a date for whole days, whatever the zone; else an aware instant.
        end: the same kind, half-open; whole days are one at least.
    """

    name: str
    start: date | datetime
    end: date | datetime

    @property
    def last_day(self) -> date:
        """Of whole days, the last one."""
        return max(self.start, self.end - _DAY)

    @property
    def empty(self) -> bool:
        """Whether it has no length; a day has."""
        return isinstance(self.start, datetime) and self.start >= self.end

    def touches(self, first: date, last: date, zone: ZoneInfo) -> bool:
        """Whether any of it, be it a moment, lies on the days from `first` to `last` (included) of a zone."""
        if isinstance(self.start, datetime) and isinstance(self.end, datetime):
            start, end = span(first, last, zone)
            return self.start < end and (self.end > start or self.start >= start)
        return self.start <= last and self.last_day >= first


@attrs.frozen(kw_only=True)
class EventCalendar:
    """Events over a range of days, and what a schedule does while they last.

    Attributes:
        events: occurrences, in any order.
        zone: whose clock and dates count.
        first: the first day of interest.
        last: the last, included.
        active: whether the schedule is open during the events, and then only; else it is closed while they last.
    """

    events: tuple[CalendarEvent, ...]
    zone: ZoneInfo
    first: date
    last: date
    active: bool

    def known(self) -> Interval:
        """From when until when the events are all that there is."""
        return span(self.first, self.last, self.zone)

    def taken(self) -> list[Interval]:
        """The union of the events, within the days of interest."""
        return clipped(merged(self._stretch(event) for event in self.concerned()), *self.known())

    def concerned(self) -> Iterator[CalendarEvent]:
        """The events that touch the days of interest."""
        return (event for event in self.events if event.touches(self.first, self.last, self.zone))

    def open(self) -> list[Interval]:
        """When a schedule is open that knows nothing but the events."""
        return self.taken() if self.active else gaps(self.taken(), *self.known())

    def _stretch(self, event: CalendarEvent) -> Interval:
        if isinstance(event.start, datetime) and isinstance(event.end, datetime):
            return event.start, event.end
        # As far as it concerns us: what goes on for ever ends in a year that has no date.
        return span(max(self.first, event.start), min(self.last, event.last_day), self.zone)


@attrs.define
class _Day:
    segments: list[Segment] = attrs.field(factory=list)
    names: dict[str, None] = attrs.field(factory=dict)


def overrides_of(calendar: EventCalendar) -> list[dict[str, Any]]:
    """The overrides to put into a schedule with windows of its own: one entry for all days that are alike in name and change.

    Raises:
        InvalidSpec: naming the day that cannot be said, and the events on it.
    """
    by_day = _by_day(calendar)
    made = _overrides(by_day, calendar, alone=False)
    wanted = calendar.open()
    # It is read beside windows that are always open, which show whatever an override says.
    if calendar.active:
        others = (day for day in days(calendar.first, calendar.last) if day not in by_day)
        wanted = merged([*wanted, *(span(day, day, calendar.zone) for day in others)])
    _prove(_spec(calendar, _ALWAYS, made), wanted, by_day, calendar)
    return made


def spec_of_events(calendar: EventCalendar) -> dict[str, Any]:
    """The spec of a TimeBasedSpotSchedule that knows nothing but the events: open during them, or always but during them.

    Raises:
        InvalidSpec: naming the day that cannot be said, and the events on it.
    """
    by_day = _by_day(calendar)
    spec = _spec(calendar, () if calendar.active else _ALWAYS, _overrides(by_day, calendar, alone=True))
    _prove(spec, calendar.open(), by_day, calendar)
    return spec


def events_drift(kind: str, spec: Mapping[str, Any], calendar: EventCalendar) -> list[Difference]:
    """Where the spec of a schedule of this kind and the events disagree, within the days of interest, in order.

    Raises:
        InvalidSpec: the spec is refused.
    """
    return differences(kind, spec, calendar.open(), *calendar.known())


def _spec(
    calendar: EventCalendar, windows: Iterable[dict[str, Any]], overrides: list[dict[str, Any]]
) -> dict[str, Any]:
    return {"timezone": str(calendar.zone), "windows": list(windows), "overrides": overrides}


def _overrides(by_day: Mapping[date, _Day], calendar: EventCalendar, *, alone: bool) -> list[dict[str, Any]]:
    """The entries, in order of their first day; `alone` where the schedule's windows are known, since it is always open."""

    def change(day: date, found: _Day) -> dict[str, Any]:
        taken = merged(found.segments)
        name = one_line("; ".join(found.names), MAX_NAME_LENGTH)
        said = _open(taken) if calendar.active else _closed(day, taken, found, alone=alone)
        return {**({"name": name} if name else {}), **said}

    return entries_of(((day, change(day, found)) for day, found in sorted(by_day.items())), _ranges)


def _prove(
    spec: Mapping[str, Any], wanted: list[Interval], by_day: Mapping[date, _Day], calendar: EventCalendar
) -> None:
    """Read the spec as its controller will.

    Raises:
        InvalidSpec: it is refused, or opens or closes at another instant than the events.
    """
    found = differences(TIME_BASED, spec, wanted, *calendar.known())
    if found:
        day = found[0].start.astimezone(calendar.zone).date()
        names = ", ".join(by_day[day].names if day in by_day else ()) or "an event"
        remedy = "the clock reads these minutes twice, so no window can say which; move the event by an hour"
        raise InvalidSpec(day.isoformat(), f"{names}: {found[0]}, and should not be", remedy)


def _by_day(calendar: EventCalendar) -> dict[date, _Day]:
    """What the events take of each day of interest that they touch."""
    by_day: dict[date, _Day] = {}
    for event in calendar.concerned():
        for day, segment in _segments(event, calendar):
            found = by_day.setdefault(day, _Day())
            found.segments.append(_whole_minutes(day, event, segment))
            if event.name:
                found.names[event.name] = None
    return by_day


def _segments(event: CalendarEvent, calendar: EventCalendar) -> Iterator[tuple[date, tuple[float, float]]]:
    """The days of interest that an event touches, and the minutes that the clock of the zone reads at its edges.

    In a fold an end may be before a start.
    """
    first, last = calendar.first, calendar.last
    if not isinstance(event.start, datetime) or not isinstance(event.end, datetime):
        yield from ((day, _WHOLE_DAY) for day in days(max(first, event.start), min(last, event.last_day)))
        return
    if event.empty:
        return
    # What goes on for ever ends in a year that has no date.
    known = calendar.known()
    start, end = max(event.start, known[0] - _DAY), min(event.end, known[1] + _DAY)
    begins, ends = start.astimezone(calendar.zone), end.astimezone(calendar.zone)
    for day in days(max(first, begins.date()), min(last, (end - _MOMENT).astimezone(calendar.zone).date())):
        yield (
            day,
            (
                _reading(begins) if day == begins.date() else 0,
                _reading(ends) if day == ends.date() else DAY_MINUTES,
            ),
        )


def _reading(local: datetime) -> float:
    return local.hour * 60 + local.minute + local.second / 60 + local.microsecond / 60e6


def _whole_minutes(day: date, event: CalendarEvent, segment: tuple[float, float]) -> Segment:
    begins, ends = int(segment[0]), int(segment[1])
    if begins != segment[0] or ends != segment[1]:
        shown = f"{event.name} from {event.start.isoformat()} to {event.end.isoformat()}"
        raise InvalidSpec(day.isoformat(), shown, "overrides have whole minutes")
    return begins, ends


def _open(segments: list[Segment]) -> dict[str, Any]:
    return {"windows": [Hours(*segment).window() for segment in segments]}


def _closed(day: date, segments: list[Segment], of: _Day, *, alone: bool) -> dict[str, Any]:
    if segments == [_WHOLE_DAY]:
        return {"windows": []}
    change: dict[str, Any] = {}
    middle = []
    for begins, ends in segments:
        if begins == 0:
            change["open"] = Hours(ends, DAY_MINUTES).window()["start"]
        elif ends == DAY_MINUTES:
            change["close"] = Hours(0, begins).window()["end"]
        else:
            middle.append((begins, ends))
    if not middle:
        return change
    if alone:
        return _open(gaps(segments, *_WHOLE_DAY))
    shown = ", ".join(f"{Hours(*segment).window()}" for segment in middle)
    remedy = (
        "an override closes a day's morning, its evening or all of it; make it one of these, write the day's windows by hand, "
        "or take a schedule of the events alone (--name)"
    )
    raise InvalidSpec(day.isoformat(), f"{', '.join(of.names)}: {shown}", remedy)


def _ranges(alike: list[date]) -> list[str]:
    """Dates in order, neighbours as `a/b`."""
    found = []
    for _, run in groupby(enumerate(alike), key=lambda entry: entry[1] - timedelta(days=entry[0])):
        together = [day for _, day in run]
        found.append(
            together[0].isoformat()
            if len(together) == 1
            else f"{together[0].isoformat()}/{together[-1].isoformat()}"
        )
    return found
