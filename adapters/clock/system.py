"""The machine's own clock."""

import asyncio
import time
from datetime import UTC, datetime

SLICE = 60.0
"""Seconds that one sleep lasts at most: timers stand still while a machine is suspended, and know no clock steps."""


class SystemClock:
    """Wall time and monotonic time of this machine (`core.ports.Clock`)."""

    def now(self) -> datetime:
        """The instant, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds since some moment; they stand still while the machine is suspended."""
        return time.monotonic()

    async def sleep_until(self, when: datetime | float) -> None:
        """Sleep to an instant of `now()` or a reading of `monotonic()`, looking again at least every SLICE."""
        # Time is the event here, there is nothing else to wait for.
        while (left := self._left(when)) > 0:  # noqa: ASYNC110
            await asyncio.sleep(min(left, SLICE))

    def _left(self, when: datetime | float) -> float:
        if isinstance(when, datetime):
            return (when - self.now()).total_seconds()
        return when - self.monotonic()


class BootClock(SystemClock):
    """The same, but its monotonic time goes on while the machine is suspended: for what others wait for meanwhile."""

    def monotonic(self) -> float:
        """Seconds since the machine was started."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)
