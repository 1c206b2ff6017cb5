"""A line that is the same every week: what hour fields and windows come to as long as no date is special.

Sorted edges within one week, and a parity; no horizon and no stored calendar.
"""

from bisect import bisect_right

from attrs import frozen

from fivespot.core.schedule.line import DAY, WEEK, Segments, edges_of

_MONDAY = 3 * DAY
"""Seconds from a Monday 00:00 to 1970-01-01 00:00, a Thursday."""

SevenDays = tuple[Segments, ...]
"""The segments of each weekday, Monday first."""


@frozen
class Week:
    """A weekly line.

    Attributes:
        days: the segments that belong to each weekday, for whoever cuts a single date out of the week.
        edges: readings within the week, from Monday 00:00, ascending and below WEEK; an even number of them.
        wraps: whether the last second of the week is active (with no edges: whether everything is).
    """

    days: SevenDays
    edges: tuple[int, ...]
    wraps: bool

    def state(self, reading: int) -> bool:
        """Whether `reading` is active."""
        return self.wraps ^ (bisect_right(self.edges, (reading + _MONDAY) % WEEK) & 1 == 1)

    def after(self, reading: int) -> int | None:
        """The first edge later than `reading`."""
        edges = self.edges
        if not edges:
            return None
        second = (reading + _MONDAY) % WEEK
        index = bisect_right(edges, second)
        return reading - second + (edges[index] if index < len(edges) else edges[0] + WEEK)

    def before(self, reading: int) -> int | None:
        """The last edge not later than `reading`."""
        edges = self.edges
        if not edges:
            return None
        second = (reading + _MONDAY) % WEEK
        index = bisect_right(edges, second)
        return reading - second + (edges[index - 1] if index else edges[-1] - WEEK)


def week_of(days: SevenDays) -> Week:
    """The week in which every date has the segments of its weekday."""
    placed = [
        (weekday * DAY + start, weekday * DAY + end)
        for weekday, segments in enumerate(days)
        for start, end in segments
    ]
    # A segment may reach out of the week on either side; three copies fill the middle one completely.
    turned = [(start + turn, end + turn) for turn in (-WEEK, 0, WEEK) for start, end in placed]
    edges = edges_of(turned)
    inside = tuple(edge for edge in edges if 0 <= edge < WEEK)
    return Week(days, inside, wraps=bisect_right(edges, WEEK - 1) & 1 == 1)


NEVER = week_of(((),) * 7)
"""The line without an active reading."""
