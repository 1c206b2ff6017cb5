"""One day's sessions in the words of the grammar: windows on the clock of the zone, attributed to a date."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import TypeVar
from zoneinfo import ZoneInfo

import attrs

from fivespot.core.errors import InvalidSpec

DAY_MINUTES = 24 * 60
"""As the clock of a day reads that has no gap and no fold."""
Interval = tuple[datetime, datetime]
"""Half-open, UTC."""
E = TypeVar("E", datetime, int)
"""An edge: an instant, or a minute of a day."""


@attrs.frozen(order=True)
class Hours:
    """One window of a date D, in minutes of the local clock after the midnight with which D begins.

    Attributes:
        start: from -1440; negative on the evening before.
        end: greater than `start`, at most 2880; the grammar cannot say every combination, see `hours_of`.
    """

    start: int
    end: int

    @property
    def start_day(self) -> int:
        """-1 when it starts on the evening before."""
        return -1 if self.start < 0 else 0

    def window(self) -> dict[str, object]:
        """As the grammar writes it, without days."""
        found: dict[str, object] = {"start": _clock(self.start % DAY_MINUTES), "end": _end(self.end)}
        if self.start_day:
            found["startDay"] = self.start_day
        return found


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


def _end(minutes: int) -> str:
    return "24:00" if minutes == DAY_MINUTES else _clock(minutes % DAY_MINUTES)


def hours_of(day: date, interval: Interval, zone: ZoneInfo) -> Hours:
    """A session of `day` as the clock of the zone reads its edges.

    Raises:
        InvalidSpec: the grammar cannot say it: an edge between two minutes, a start before the day before, more than
            one day long.
    """
    start, end = (_reading(day, edge, zone) for edge in interval)
    # What ends on the next day does so by not being later than its start; what starts the evening before ends on the day.
    latest = DAY_MINUTES if start < 0 else start + DAY_MINUTES
    if not -DAY_MINUTES <= start < DAY_MINUTES or not max(start + 1, 0) <= end <= latest:
        shown = "/".join(f"{edge.astimezone(zone):%Y-%m-%dT%H:%M}" for edge in interval)
        raise InvalidSpec(
            day.isoformat(), shown, "a window begins on its day or the evening before, and ends within a day"
        )
    return Hours(start, end)


def _reading(day: date, edge: datetime, zone: ZoneInfo) -> int:
    local = edge.astimezone(zone)
    if local.second or local.microsecond:
        raise InvalidSpec(day.isoformat(), local.isoformat(), "windows have whole minutes")
    return (local.date() - day).days * DAY_MINUTES + local.hour * 60 + local.minute


def merged(intervals: Iterable[tuple[E, E]]) -> list[tuple[E, E]]:
    """The union, in order; what touches is one."""
    found: list[tuple[E, E]] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        elif start < end:
            found.append((start, end))
    return found


def gaps(intervals: Iterable[tuple[E, E]], start: E, end: E) -> list[tuple[E, E]]:
    """What a union leaves of a stretch that it lies in."""
    found: list[tuple[E, E]] = []
    for begins, ends in intervals:
        if start < begins:
            found.append((start, begins))
        start = ends
    if start < end:
        found.append((start, end))
    return found


def clipped(intervals: Iterable[Interval], start: datetime, end: datetime) -> list[Interval]:
    """What of them lies between two instants."""
    return [(max(a, start), min(b, end)) for a, b in intervals if a < end and b > start]


def days(first: date, last: date) -> Iterable[date]:
    """Every date, both included."""
    return (first + timedelta(days=number) for number in range((last - first).days + 1))


def span(first: date, last: date, zone: ZoneInfo) -> Interval:
    """From the midnight with which `first` begins to the one with which `last` ends, by the clock of the zone."""
    begins = datetime(first.year, first.month, first.day, tzinfo=zone)
    after = last + timedelta(days=1)
    ends = datetime(after.year, after.month, after.day, tzinfo=zone)
    return begins.astimezone(UTC), ends.astimezone(UTC)
