"""The overrides that say what a list of events says: days on which a schedule is closed, or open, while they last.

An override cuts the morning or the evening off a day, or has windows of its own; what it cannot say is refused by day.
"""

from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta
from itertools import groupby
from typing import Any, Final
from zoneinfo import ZoneInfo

import attrs

from fivespot.core.calendar.sessions import DAY_MINUTES, Hours
from fivespot.core.errors import InvalidSpec
from fivespot.core.schedule.bounds import MAX_DATES, MAX_NAME_LENGTH

Segment = tuple[int, int]
"""Minutes of a local day, half-open."""
_WHOLE_DAY: Final[Segment] = (0, DAY_MINUTES)


@attrs.frozen(kw_only=True)
class CalendarEvent:
    """One occurrence.

    Attributes:
        name: what it is called; may be empty.
        start: a date for whole days, whatever the zone; else an aware instant.
        end: the same kind, half-open.
    """

    name: str
    start: date | datetime
    end: date | datetime


@attrs.define
class _Day:
    segments: list[Segment] = attrs.field(factory=list)
    names: dict[str, None] = attrs.field(factory=dict)


def overrides_of(
    events: Iterable[CalendarEvent], zone: ZoneInfo, first: date, last: date, *, active: bool
) -> list[dict[str, Any]]:
    """One entry for all days that are alike in name and change, in order.

    Args:
        events: occurrences, in any order.
        zone: whose clock and dates count.
        first: the first day of interest.
        last: the last, included.
        active: whether the schedule is open during the events, and then only; else it is closed while they last.

    Raises:
        InvalidSpec: naming the day that cannot be said, and the events on it.
    """
    by_day: dict[date, _Day] = {}
    for event in events:
        for day, segment in _segments(event, zone):
            if first <= day <= last:
                found = by_day.setdefault(day, _Day())
                found.segments.append(segment)
                if event.name:
                    found.names[event.name] = None
    entries: dict[str, tuple[dict[str, Any], list[date]]] = {}
    for day, found in sorted(by_day.items()):
        union = _union(found.segments)
        change = _open(union) if active else _closed(day, union, found)
        name = "; ".join(found.names)[:MAX_NAME_LENGTH]
        entry = {**({"name": name} if name else {}), **change}
        entries.setdefault(str(entry), (entry, []))[1].append(day)
    return [
        {"dates": dates[start : start + MAX_DATES], **entry}
        for entry, days in entries.values()
        for dates in [_ranges(days)]
        for start in range(0, len(dates), MAX_DATES)
    ]


def _segments(event: CalendarEvent, zone: ZoneInfo) -> Iterator[tuple[date, Segment]]:
    """The days of an event, and what of each it takes."""
    if not isinstance(event.start, datetime) or not isinstance(event.end, datetime):
        day = event.start
        yield day, _WHOLE_DAY  # one that ends on the day of its start is a day long all the same
        while (day := day + timedelta(days=1)) < event.end:
            yield day, _WHOLE_DAY
        return
    start, end = event.start.astimezone(zone), event.end.astimezone(zone)
    for edge in (start, end):
        if edge.second or edge.microsecond:
            raise InvalidSpec(
                edge.date().isoformat(), f"{event.name} at {edge.isoformat()}", "overrides have whole minutes"
            )
    day = start.date()
    while day <= end.date():
        begins = start.hour * 60 + start.minute if day == start.date() else 0
        ends = end.hour * 60 + end.minute if day == end.date() else DAY_MINUTES
        if begins < ends:
            yield day, (begins, ends)
        elif day == start.date() and event.start < event.end and ends != 0:
            shown = f"{event.name} from {start.isoformat()} to {end.isoformat()}"
            raise InvalidSpec(
                day.isoformat(), shown, "the clock reads these minutes twice, so no window can say which"
            )
        day += timedelta(days=1)


def _union(segments: list[Segment]) -> list[Segment]:
    found: list[Segment] = []
    for begins, ends in sorted(segments):
        if found and begins <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], ends))
        else:
            found.append((begins, ends))
    return found


def _open(segments: list[Segment]) -> dict[str, Any]:
    return {"windows": [Hours(*segment).window() for segment in segments]}


def _closed(day: date, segments: list[Segment], of: _Day) -> dict[str, Any]:
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
            middle.append(f"{Hours(begins, ends).window()}")
    if middle:
        remedy = "an override closes a day's morning, its evening or all of it; make it one of these, or write the day's windows by hand"
        raise InvalidSpec(day.isoformat(), f"{', '.join(of.names)}: {', '.join(middle)}", remedy)
    return change


def _ranges(days: list[date]) -> list[str]:
    """Dates in order, neighbours as `a/b`."""
    found = []
    for _, run in groupby(enumerate(days), key=lambda entry: entry[1] - timedelta(days=entry[0])):
        together = [day for _, day in run]
        found.append(
            together[0].isoformat()
            if len(together) == 1
            else f"{together[0].isoformat()}/{together[-1].isoformat()}"
        )
    return found
