"""A clock that stands still until it is told to move: for tests, and for time that runs faster than real time."""

import asyncio
from datetime import datetime, timedelta

from fivespot.core.instant import require_aware


class FakeClock:
    """Wall and monotonic time that move together, by `advance` alone; `step` moves the wall clock only.

    Sleepers wake on the event loop's next turns after the clock has passed their moment, earliest first.
    """

    def __init__(self, now: datetime, *, monotonic: float = 0.0) -> None:
        self._now = require_aware(now)
        self._monotonic = monotonic
        self._sleepers: list[tuple[datetime | float, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        """The instant that it was set to."""
        return self._now

    def monotonic(self) -> float:
        """Seconds advanced so far, from the reading it was made with."""
        return self._monotonic

    @property
    def sleepers(self) -> int:
        """How many callers are asleep; a test waits for one before it moves the clock."""
        return len(self._sleepers)

    def advance(self, seconds: float) -> None:
        """Let time pass; negative is a mistake, since monotonic time never goes back."""
        if seconds < 0:
            message = f"cannot advance by {seconds} s; use step to set the wall clock back"
            raise ValueError(message)
        self._now += timedelta(seconds=seconds)
        self._monotonic += seconds
        self._wake()

    def step(self, seconds: float) -> None:
        """Correct the wall clock, as an operator or a time server would; monotonic time does not notice."""
        self._now += timedelta(seconds=seconds)
        self._wake()

    async def sleep_until(self, when: datetime | float) -> None:
        """Return once the clock has been moved to `when` or past it."""
        if self._left(when) <= 0:
            return
        sleeper = (when, asyncio.get_running_loop().create_future())
        self._sleepers.append(sleeper)
        try:
            await sleeper[1]
        finally:
            self._sleepers.remove(sleeper)

    def _wake(self) -> None:
        for when, future in sorted(self._sleepers, key=lambda sleeper: self._left(sleeper[0])):
            if self._left(when) <= 0 and not future.done():
                future.set_result(None)

    def _left(self, when: datetime | float) -> float:
        if isinstance(when, datetime):
            return (when - self._now).total_seconds()
        return when - self._monotonic
