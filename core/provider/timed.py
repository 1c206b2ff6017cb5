"""TimeBasedSpotSchedule and CapitalMarketsSchedule: what the schedule engine says."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import attrs

from fivespot.core.api import reasons
from fivespot.core.provider.answer import Answer, Inputs, Unaided
from fivespot.core.schedule import CAPITAL_MARKETS, TIME_BASED, Schedule, compile_schedule


@attrs.frozen
class Timed(Unaided):
    """A compiled schedule, and how its kind calls open and closed."""

    schedule: Schedule
    opened: str
    closed: str

    def answer(self, now: datetime, inputs: Inputs) -> Answer:  # noqa: ARG002 - it needs none
        """Open or closed, and until when."""
        active, due = self.schedule.active(now), self.schedule.next_transition(now)
        word = "open" if active else "closed"
        return Answer(
            active=active,
            reason=self.opened if active else self.closed,
            message=f"{word} until {due:%Y-%m-%dT%H:%M:%SZ}" if due else f"{word} for ever",
            next_transition=due,
            timezone=self.schedule.timezone,
            wake_at=due,
        )


def read_time_based(spec: Mapping[str, Any]) -> Timed:
    """Read a TimeBasedSpotSchedule's spec; InvalidSpec when it is refused."""
    return Timed(compile_schedule(TIME_BASED, spec), reasons.WINDOW_OPEN, reasons.WINDOW_CLOSED)


def read_capital_markets(spec: Mapping[str, Any]) -> Timed:
    """Read a CapitalMarketsSchedule's spec; InvalidSpec when it is refused."""
    return Timed(compile_schedule(CAPITAL_MARKETS, spec), reasons.SESSION_OPEN, reasons.SESSION_CLOSED)
