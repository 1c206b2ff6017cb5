"""The local line: which readings of a local clock are active, forgetting which instants show them.

A reading is an integer: seconds from 1970-01-01 00:00 as the clock on the wall counts them, without any offset. On this
line every day has 86400 seconds and nothing is ever skipped or repeated; gaps and folds are the business of `engine.py`.
An edge is a reading at which the answer differs from the reading one second before.
"""

from collections.abc import Iterable
from typing import Final, Protocol

DAY: Final = 86400
WEEK: Final = 7 * DAY

Segments = tuple[tuple[int, int], ...]
"""Half-open stretches of seconds; those of a date count from its midnight and lie within [-86400, 172800]."""


class Line(Protocol):
    """Answers about local readings."""

    def state(self, reading: int) -> bool:
        """Whether `reading` is active."""

    def after(self, reading: int) -> int | None:
        """The first edge later than `reading`, or None when there is none up to the end of time."""

    def before(self, reading: int) -> int | None:
        """The last edge not later than `reading`, or None when there is none since the beginning of time."""


def edges_of(segments: Iterable[tuple[int, int]]) -> list[int]:
    """The ends of the union of `segments`, ascending: on, off, on, off. Touching segments join."""
    edges: list[int] = []
    for start, end in sorted(segments):
        if edges and start <= edges[-1]:
            edges[-1] = max(edges[-1], end)
        else:
            edges += (start, end)
    return edges
