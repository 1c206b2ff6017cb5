"""What the core and its drivers need of the outside world, as Protocols that adapters implement.

Nothing here knows how: no port names a client library, a process or a socket.
"""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Where time comes from. Decisions never ask it: whoever drives them does, and hands the instant in."""

    def now(self) -> datetime:
        """The instant, aware, UTC. It may step either way when somebody corrects the machine's clock."""

    def monotonic(self) -> float:
        """Seconds that only grow, from an origin that means nothing; for intervals, deadlines and ages."""

    async def sleep_until(self, when: datetime | float) -> None:
        """Return once `now()` has reached an instant, or `monotonic()` a reading; at once when it has already.

        A step of the clock, or a suspended machine, is noticed within 60 s.
        """
