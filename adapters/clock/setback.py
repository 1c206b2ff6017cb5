"""A wall clock that is set back: what was said by it until then is of a time that has yet to come."""

from datetime import datetime, timedelta
from typing import Final

from fivespot.core.ports import Clock

LOOK_AGAIN: Final = 60.0
"""Seconds between looks."""
_NOTICED: Final = timedelta(seconds=1)
"""A clock that is steered by a time server takes half an hour for so much."""


class SetBack:
    """Tells when a clock stands behind what it has been asked for. Set forward, it brings appointments; of this none tells."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # Before it was asked anything, nothing can be wrong.
        self._furthest: datetime | None = None

    def now(self) -> datetime:
        """The clock's instant, which is kept in mind."""
        now, zero = self._read()
        self._furthest = zero if self._furthest is None else max(self._furthest, zero)
        return now

    async def happened(self) -> None:
        """Return once the clock has been set back since it was asked here, within a minute of that."""
        while self._furthest is None or self._furthest - (zero := self._read()[1]) < _NOTICED:
            await self._clock.sleep_until(self._clock.monotonic() + LOOK_AGAIN)
        self._furthest = zero

    def _read(self) -> tuple[datetime, datetime]:
        """The instant, and that at which the monotonic clock would have begun: it changes when the wall clock is set."""
        now = self._clock.now()
        return now, now - timedelta(seconds=self._clock.monotonic())
