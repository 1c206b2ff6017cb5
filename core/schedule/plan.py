"""From a checked spec to its local line: whose windows count on which date.

Precedence: `enabled: false`, then validity, then an override's windows, then holidays, then the usual windows or hour
fields; clips act on whatever windows the date has. Hour fields are windows that belong to the date they are read on.
"""

import functools
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence

from fivespot.core.schedule.dated import BEGINNING, Span, line_of
from fivespot.core.schedule.dates import Days
from fivespot.core.schedule.line import DAY, Line, Segments, edges_of
from fivespot.core.schedule.spec import Override, ScheduleSpec, Session, Window
from fivespot.core.schedule.week import NEVER, SevenDays, Week, week_of

_HOUR = 3600
_ENDLESS = -BEGINNING


def line_for(spec: ScheduleSpec) -> Line:
    """The local readings at which `spec` is active."""
    if not spec.enabled:
        return NEVER
    valid = Days(
        BEGINNING if spec.valid_from is None else spec.valid_from,
        _ENDLESS if spec.valid_through is None else spec.valid_through,
    )
    usual = usual_days(spec)
    holidays = _disjoint(spec.holidays)
    placed = sorted((days, index) for index, override in enumerate(spec.overrides) for days in override.dates)
    override_days = [days for days, _ in placed]
    closes = _early_closes(spec)

    # Specs repeat the same half day dozens of times: one week for each rule, not one for each date.
    @functools.cache
    def week(overridden: int | None, closed: int | None) -> Week:
        override = None if overridden is None else spec.overrides[overridden]
        if override is not None and override.windows is not None:
            return _week((_segments(override.windows),) * 7, override, None)
        return _week(usual, override, closed)

    def week_on(day: int) -> Week:
        if not valid.first <= day <= valid.last:
            return NEVER
        position = _containing(override_days, day)
        overridden = None if position is None else placed[position][1]
        replaced = overridden is not None and spec.overrides[overridden].windows is not None
        if not replaced and _containing(holidays, day) is not None:
            return NEVER
        return week(overridden, closes.get(day))

    changes = _changes([valid, *holidays, *override_days, *(Days(day, day) for day in closes)])
    return line_of(_spans(changes, week_on))


def usual_days(spec: ScheduleSpec) -> SevenDays:
    """The segments of each weekday, Monday first, when nothing is special about the date."""
    if spec.windows is None:
        return tuple(_hours(spec.sessions or (), weekday) for weekday in range(7))
    return tuple(
        _segments(window for window in spec.windows if window.days is None or weekday in window.days)
        for weekday in range(7)
    )


def _segments(windows: Iterable[Window]) -> Segments:
    return tuple((window.start, window.end) for window in windows)


def _hours(sessions: Iterable[Session], weekday: int) -> Segments:
    hours = {hour for session in sessions if weekday in session.days for hour in session.hours}
    edges = edges_of((hour * _HOUR, (hour + 1) * _HOUR) for hour in hours)
    return tuple(zip(edges[::2], edges[1::2], strict=True))


def _early_closes(spec: ScheduleSpec) -> dict[int, int]:
    """Seconds after midnight at which a date closes; of several entries for one date the first counts."""
    # They say until which *hour field* to stay open; with windows there is nothing for them to act on.
    listed = spec.early_closes if spec.windows is None else ()
    return {close.day: (close.hour + 1) * _HOUR for close in reversed(listed)}


def _week(days: SevenDays, override: Override | None, closed: int | None) -> Week:
    """The week of `days`, cut to what an override and an early close (seconds after midnight) leave of each."""
    opens = -DAY if override is None or override.opens is None else override.opens
    closes = 2 * DAY if override is None or override.closes is None else override.closes
    if closed is not None:
        closes = min(closes, closed)
    return week_of(tuple(_clipped(segments, opens, closes) for segments in days))


def _clipped(segments: Segments, opens: int, closes: int) -> Segments:
    edges = edges_of(
        (max(start, opens), min(end, closes))
        for start, end in segments
        if max(start, opens) < min(end, closes)
    )
    return tuple(zip(edges[::2], edges[1::2], strict=True))


def _changes(special: Iterable[Days]) -> list[int]:
    """The dates at which another rule may begin, ascending, from BEGINNING."""
    found = {BEGINNING}
    for days in special:
        found |= {days.first, days.last + 1}
    return sorted(day for day in found if day <= _ENDLESS)


def _spans(changes: Iterable[int], week_on: Callable[[int], Week]) -> list[Span]:
    spans: list[Span] = []
    for first in changes:
        week = week_on(first)
        if not spans or spans[-1].week is not week:
            spans.append(Span(first, week))
    return spans


def _disjoint(ranges: Iterable[Days]) -> list[Days]:
    """The same days, ascending, none of them twice."""
    edges = edges_of((days.first, days.last + 1) for days in ranges)
    return [Days(first, end - 1) for first, end in zip(edges[::2], edges[1::2], strict=True)]


def _containing(ranges: Sequence[Days], day: int) -> int | None:
    """The index of the one of `ranges`, ascending and disjoint, that has `day` in it."""
    index = bisect_right(ranges, day, key=lambda days: days.first) - 1
    return index if index >= 0 and day <= ranges[index].last else None
