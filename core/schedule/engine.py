"""A compiled schedule: active at an instant, and until when; exact to the second in every zone.

One rule makes every odd case fall out: cut time into stretches of constant UTC offset, work on local readings inside a
stretch, re-read the clock at each cut. A local time is never converted to UTC, so gaps and folds need no case of their
own: nothing happens in a gap, and what is read twice counts twice.

Datetimes at the door, integers inside: seconds since 1970-01-01T00:00:00Z, intervals half-open.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from attrs import frozen

from fivespot.core.instant import FIRST_SECOND, LAST_SECOND, from_seconds, require_aware
from fivespot.core.schedule.line import Line
from fivespot.core.schedule.offsets import SLACK, offsets
from fivespot.core.schedule.plan import line_for
from fivespot.core.schedule.spec import read_spec

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)
_FIRST: Final = datetime.min.replace(tzinfo=UTC)
_LAST: Final = datetime.max.replace(tzinfo=UTC)
_FOR_EVER: Final = 1 << 62


@frozen
class Interval:
    """An active stretch of time, from `start` up to but without `end`, both in UTC."""

    start: datetime
    end: datetime


class Schedule:
    """The answers of one spec. Immutable but for a memory of the last answer, which makes asking again cheap.

    Times are aware datetimes of any zone; a naive one raises TypeError. Fractions of a second are dropped, since edges
    lie on whole seconds; answers are UTC datetimes. The methods in `_s` take and give UTC seconds instead.
    """

    __slots__ = ("_door", "_line", "_offsets", "_run", "timezone")

    timezone: str

    def __init__(self, timezone: str, line: Line) -> None:
        self.timezone = timezone
        self._line = line
        self._offsets = offsets(timezone)
        # The answer from a second up to another, and the transition there if it is one; the same as datetimes. Each is
        # replaced as a whole, so threads may share a schedule.
        self._run: tuple[int, int, bool, int | None] = (0, 0, False, None)
        self._door: tuple[datetime, datetime, bool, datetime | None] = (_EPOCH, _EPOCH, False, None)

    def active(self, at: datetime) -> bool:
        """Whether the schedule is active at `at`."""
        if at.tzinfo is None:
            require_aware(at)
        start, end, state, _ = self._door
        return state if start <= at < end else self._enter(at)[2]

    def next_transition(self, at: datetime) -> datetime | None:
        """The first whole second after `at` at which the answer differs; None: never again, up to the year 9999."""
        if at.tzinfo is None:
            require_aware(at)
        start, end, _, transition = self._door
        return transition if start <= at < end else self._enter(at)[3]

    def prev_transition(self, at: datetime) -> datetime | None:
        """The second since which the answer has been what it is at `at`; None: since before the year 1."""
        return _instant(self.prev_transition_s(_seconds(at)))

    def next_open(self, at: datetime) -> datetime | None:
        """The first second after `at` at which the schedule becomes active, or None."""
        return self._next_into(at, wanted=True)

    def next_close(self, at: datetime) -> datetime | None:
        """The first second after `at` at which the schedule stops being active, or None."""
        return self._next_into(at, wanted=False)

    def intervals(self, start: datetime, end: datetime) -> Iterator[Interval]:
        """The active intervals between `start` and `end`, clipped to them, in order; none when `end` is not later."""
        first, last = _seconds(start), _seconds(end)
        # A fraction at the end belongs to the second that it is part of.
        last += (end - _EPOCH) > last * _SECOND
        return self._intervals(first, last, max(start, _FIRST), min(end, _LAST))

    def _intervals(self, first: int, last: int, start: datetime, end: datetime) -> Iterator[Interval]:
        for opens, closes in self.intervals_s(first, last):
            yield Interval(
                require_aware(start) if opens == first else from_seconds(opens),
                require_aware(end) if closes == last else from_seconds(closes),
            )

    def active_s(self, second: int) -> bool:
        """Whether the schedule is active at `second`."""
        start, end, state, _ = self._run
        return state if start <= second < end else self._look(second)[2]

    def next_transition_s(self, second: int) -> int | None:
        """The first second after `second` at which the answer differs, or None."""
        start, end, _, transition = self._run
        return transition if start <= second < end else self._look(second)[3]

    def prev_transition_s(self, second: int) -> int | None:
        """The second since which the answer has been what it is at `second`, or None."""
        return self._since(second, state=self.active_s(second))

    def intervals_s(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The active intervals in `[start, end)`, clipped to it, in order."""
        state = self.active_s(start)
        while start < end:
            transition = self._until(start, state=state)
            stop = end if transition is None else min(transition, end)
            if state:
                yield start, stop
            start, state = stop, not state

    def _next_into(self, at: datetime, *, wanted: bool) -> datetime | None:
        second = _seconds(at)
        transition = self.next_transition_s(second)
        if transition is not None and self.active_s(second) == wanted:
            transition = self.next_transition_s(transition)
        return _instant(transition)

    def _enter(self, at: datetime) -> tuple[datetime, datetime, bool, datetime | None]:
        second = _seconds(at)
        run = self._run
        start, end, state, transition = run if run[0] <= second < run[1] else self._look(second)
        self._door = (
            _FIRST if start < FIRST_SECOND else from_seconds(start),
            _LAST if end > LAST_SECOND else from_seconds(end),
            state,
            _instant(transition),
        )
        return self._door

    def _look(self, second: int) -> tuple[int, int, bool, int | None]:
        cut, _, offset = self._offsets.at(second)
        state = self._line.state(second + offset)
        # How long before `second` the answer holds for certain; going back further is for prev_transition.
        edge = self._line.before(second + offset)
        start = cut if edge is None else max(cut, edge - offset)
        transition = self._until(second, state=state)
        self._run = (start, _FOR_EVER if transition is None else transition, state, transition)
        return self._run

    def _until(self, second: int, *, state: bool) -> int | None:
        """The first second after `second`, where the answer is `state`, with another answer."""
        line = self._line
        while second <= LAST_SECOND:
            _, cut, offset = self._offsets.at(second)
            reading = second + offset
            if line.state(reading) != state:
                return second
            edge = line.after(reading)
            if edge is not None and edge - offset < cut:
                return edge - offset if edge - offset <= LAST_SECOND else None
            # Over the cut. The clock there may read anything within SLACK of what it would have read; where no edge is
            # that near, all the cuts up to the edge can be passed over, and without an edge that was the last answer.
            past = line.before(reading)
            if past is not None and past > reading - SLACK:
                second = cut
            elif edge is None:
                return None
            else:
                second = max(cut, edge - SLACK)
        return None

    def _since(self, second: int, *, state: bool) -> int | None:
        """The second, not after `second`, since which the answer has been `state`: `_until`, backwards."""
        line = self._line
        while second > FIRST_SECOND:
            cut, _, offset = self._offsets.at(second)
            reading = second + offset
            if line.state(reading) != state:
                return second + 1
            edge = line.before(reading)
            if edge is not None and edge - offset > cut:
                return edge - offset if edge - offset > FIRST_SECOND else None
            coming = line.after(reading)
            if coming is not None and coming < reading + SLACK:
                second = cut - 1
            elif edge is None:
                return None
            else:
                second = min(cut - 1, edge + SLACK)
        return None


def compile_schedule(kind: str, spec: object) -> Schedule:
    """The schedule that a manifest's `spec` describes.

    Args:
        kind: `TimeBasedSpotSchedule` or `CapitalMarketsSchedule`.
        spec: the manifest's mapping, as a YAML or JSON reader made it.

    Raises:
        InvalidSpec: with field, value and remedy, whatever else `spec` may be.
    """
    checked = read_spec(kind, spec)
    return Schedule(checked.timezone, line_for(checked))


def _seconds(at: datetime) -> int:
    # Unlike instant.seconds, not by way of a UTC datetime: other zones can write instants, within a day of the ends of
    # the range, that UTC cannot. They count as the nearest one that it can.
    if at.tzinfo is None:
        require_aware(at)
    return min(max((at - _EPOCH) // _SECOND, FIRST_SECOND), LAST_SECOND)


def _instant(second: int | None) -> datetime | None:
    return None if second is None else from_seconds(second)
