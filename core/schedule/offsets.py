"""When a zone's clock is how far from UTC: stretches of constant offset, read through the public `zoneinfo` API.

`zoneinfo` tells the offset at an instant but not where it changes. It is sampled every three days and each difference
narrowed down to the second; the closest two changes on record lie 6.96 days apart, so none can hide between two samples.
A block of about a year is read when somebody first asks about it (about 0.1 ms), and kept.
"""

import functools
from bisect import bisect_right
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from fivespot.core import zones
from fivespot.core.instant import FIRST_SECOND, LAST_SECOND
from fivespot.core.schedule.line import DAY

SLACK: Final = 2 * DAY
"""More than any two offsets can differ: each is less than a day."""

_STEP = 3 * DAY
_BLOCK = 122 * _STEP
# zoneinfo raises OverflowError where the local reading leaves the years 1 to 9999. No rule changes a clock there.
_FIRST_READABLE = FIRST_SECOND + DAY
_LAST_READABLE = LAST_SECOND - DAY


class Offsets:
    """The stretches of one zone."""

    def __init__(self, zone: ZoneInfo) -> None:
        self._zone = zone
        self._blocks: dict[int, tuple[list[int], list[int]]] = {}

    def at(self, second: int) -> tuple[int, int, int]:
        """The stretch around the UTC second `second`: `(start, end, offset)`, half-open, offset in seconds east.

        A stretch never reaches over the end of a block, so two that touch may have the same offset.
        """
        number = second // _BLOCK
        block = self._blocks.get(number)
        if block is None:
            block = self._blocks[number] = self._read(number * _BLOCK)
        starts, offsets = block
        index = bisect_right(starts, second) - 1
        return starts[index], starts[index + 1], offsets[index]

    def _read(self, start: int) -> tuple[list[int], list[int]]:
        offset = self._offset(start)
        starts, offsets = [start], [offset]
        for sample in range(start, start + _BLOCK, _STEP):
            after = self._offset(sample + _STEP)
            if after != offset:
                starts.append(self._first_with(after, sample, sample + _STEP))
                offsets.append(after)
                offset = after
        starts.append(start + _BLOCK)
        return starts, offsets

    def _first_with(self, offset: int, before: int, after: int) -> int:
        """The second after `before`, and not after `after`, at which the offset becomes `offset`."""
        while after - before > 1:
            middle = (before + after) // 2
            if self._offset(middle) == offset:
                after = middle
            else:
                before = middle
        return after

    def _offset(self, second: int) -> int:
        readable = min(max(second, _FIRST_READABLE), _LAST_READABLE)
        local = datetime.fromtimestamp(readable, self._zone)
        difference = local.utcoffset()
        assert difference is not None  # noqa: S101 - a ZoneInfo always knows
        return difference.days * DAY + difference.seconds


@functools.cache
def offsets(timezone: str) -> Offsets:
    """The stretches of the zone called `timezone`, shared by every schedule in it."""
    return Offsets(zones.zone(timezone))
