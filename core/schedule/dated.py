"""A line on which some dates are special: holidays, overrides, early closes, validity.

Time is a row of spans of dates that each follow one week. A date's segments reach at most one day over its own midnights,
so inside a span, one day away from its ends, the line is exactly that week's line; only the days around the ends are put
together from single dates. A search hops over spans, so it ends however far apart the special dates are, and after the
last of them the week answers for ever.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

from attrs import frozen

from fivespot.core.schedule.dates import weekday
from fivespot.core.schedule.line import DAY, Line, edges_of
from fivespot.core.schedule.week import Week

BEGINNING: Final = -(10**12)
"""A day number before every date."""

_REACH = 1
"""How many days a date's segments may reach over its own midnights."""

_LONGEST_BORDER = 32
"""Days of one border."""


@frozen
class Span:
    """The dates from `first` up to the next span follow `week`."""

    first: int
    week: Week


@frozen
class Border:
    """A few days of the line, as plain edges: `edges` lie strictly inside them, `opening` is the state before the first."""

    edges: tuple[int, ...]
    opening: bool

    def state(self, reading: int) -> bool:
        """Whether `reading`, one of these days, is active."""
        return self.opening ^ (bisect_right(self.edges, reading) & 1 == 1)

    def after(self, reading: int) -> int | None:
        """The first edge later than `reading`, or None when there is none within these days."""
        index = bisect_right(self.edges, reading)
        return self.edges[index] if index < len(self.edges) else None

    def before(self, reading: int) -> int | None:
        """The last edge not later than `reading`, or None when there is none within these days."""
        index = bisect_right(self.edges, reading)
        return self.edges[index - 1] if index else None


class Dated:
    """Pieces in a row: piece `i` answers for readings from `starts[i]` up to `starts[i + 1]`; the first has no beginning.

    Borders are put together when a search first comes by, and kept.
    """

    __slots__ = ("_firsts", "_pieces", "_spans", "_starts")

    def __init__(self, spans: Sequence[Span]) -> None:
        self._spans = tuple(spans)
        self._firsts = tuple(span.first for span in spans)
        self._starts: list[int] = []
        self._pieces: list[Week | Border | None] = []
        for span, after in zip(spans, [*self._firsts[1:], None], strict=True):
            if after is not None and after - span.first <= _REACH * 2:
                continue
            self._cut(span.first + 1)
            self._add(span.first + 1, span.week)
            if after is not None:
                self._add(after - 1, None)

    def state(self, reading: int) -> bool:
        """Whether `reading` is active."""
        return self._piece(bisect_right(self._starts, reading) - 1).state(reading)

    def after(self, reading: int) -> int | None:
        """The first edge later than `reading`, or None: never again."""
        index = bisect_right(self._starts, reading) - 1
        piece = self._piece(index)
        state = piece.state(reading)
        while True:
            edge = piece.after(reading)
            index += 1
            if index == len(self._pieces):
                return edge
            start = self._starts[index]
            if edge is not None and edge < start:
                return edge
            piece = self._piece(index)
            if piece.state(start) != state:
                return start
            reading = start

    def before(self, reading: int) -> int | None:
        """The last edge not later than `reading`, or None: it was always so."""
        index = bisect_right(self._starts, reading) - 1
        piece = self._piece(index)
        state = piece.state(reading)
        while True:
            edge = piece.before(reading)
            if index == 0:
                return edge
            start = self._starts[index]
            # An edge at the very start is one of the piece's own week; what was really before is the piece before.
            if edge is not None and edge > start:
                return edge
            index -= 1
            piece = self._piece(index)
            if piece.state(start - 1) != state:
                return start
            reading = start - 1

    def _add(self, day: int, piece: Week | None) -> None:
        self._starts.append(day * DAY)
        self._pieces.append(piece)

    def _cut(self, end: int) -> None:
        """Divide the border that was begun last and goes up to the day `end`, so that none is long to put together."""
        if self._pieces and self._pieces[-1] is None:
            for day in range(self._starts[-1] // DAY + _LONGEST_BORDER, end, _LONGEST_BORDER):
                self._add(day, None)

    def _piece(self, index: int) -> Week | Border:
        piece = self._pieces[index]
        if piece is None:
            piece = self._pieces[index] = self._border(
                self._starts[index] // DAY, self._starts[index + 1] // DAY
            )
        return piece

    def _border(self, first: int, end: int) -> Border:
        """The days from `first` up to `end`, each following the span that it lies in."""
        edges = edges_of(self._segments(first - _REACH, end + _REACH))
        inside = tuple(edge for edge in edges if first * DAY < edge < end * DAY)
        return Border(inside, opening=bisect_right(edges, first * DAY) & 1 == 1)

    def _segments(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        for day in range(first, end):
            week = self._spans[bisect_right(self._firsts, day) - 1].week
            for start, stop in week.days[weekday(day)]:
                yield day * DAY + start, day * DAY + stop


def line_of(spans: Sequence[Span]) -> Line:
    """The line of `spans`, ascending, the first of which starts at BEGINNING."""
    return spans[0].week if len(spans) == 1 else Dated(spans)
