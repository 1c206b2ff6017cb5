"""What the controller of a schedule writes, and when it looks again.

Level-triggered: it states the present and replays nothing. A status that already says so is not written again.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Protocol

import attrs

from fivespot.core.api.codec import decode
from fivespot.core.api.common import Condition, condition
from fivespot.core.api.providers import ProviderStatus
from fivespot.core.errors import InvalidSpec

INVALID_SPEC: Final = "InvalidSpec"
CLOCK_UNTRUSTED: Final = "ClockUntrusted"
_REASONS: Final[Mapping[str, tuple[str, str]]] = {
    "TimeBasedSpotSchedule": ("WindowOpen", "WindowClosed"),
    "CapitalMarketsSchedule": ("SessionOpen", "SessionClosed"),
}


class Answers(Protocol):
    """A compiled schedule, as far as publishing needs it."""

    @property
    def timezone(self) -> str:
        """The zone in which it is read."""

    def active(self, at: datetime) -> bool:
        """Whether it is open at that instant."""

    def next_transition(self, at: datetime) -> datetime | None:
        """The next instant at which the answer differs, None for never."""


@attrs.frozen(kw_only=True)
class Publication:
    """What to write, and when to look again.

    Attributes:
        status: the complete new status; equal to the stored one when nothing is to be written.
        wake_at: the boundary at which it must be looked at again, None for never.
    """

    status: ProviderStatus
    wake_at: datetime | None


def publish(
    kind: str,
    schedule: Answers | InvalidSpec,
    generation: int,
    stored: ProviderStatus,
    now: datetime,
    *,
    clock_trusted_from: datetime | None = None,
) -> Publication:
    """State what a schedule says now.

    Args:
        kind: the provider kind, for the words of its conditions.
        schedule: compiled, or why it is refused.
        generation: `metadata.generation` of the spec that was compiled.
        stored: the status as it is.
        now: the present instant, aware.
        clock_trusted_from: a clock before this instant is wrong, and answering by it would flip machines; None where
            time is virtual.
    """
    if isinstance(schedule, InvalidSpec):
        return Publication(
            status=_refused(stored, generation, INVALID_SPEC, str(schedule), now.replace(microsecond=0)),
            wake_at=None,
        )
    now = now.replace(microsecond=0)  # metav1.Time has whole seconds
    if clock_trusted_from is not None and now < clock_trusted_from:
        text = f"the clock says {now:%Y-%m-%d}, before this program was built: set it right"
        return Publication(
            status=_refused(stored, generation, CLOCK_UNTRUSTED, text, now), wake_at=clock_trusted_from
        )
    active, due = schedule.active(now), schedule.next_transition(now)
    opened, closed = _REASONS.get(kind, ("Open", "Closed"))
    ready = _merge(
        stored,
        generation,
        now,
        status="True",
        reason=opened if active else closed,
        message=_message(active, due),
    )
    return Publication(
        status=attrs.evolve(
            stored,
            active=active,
            observed_generation=generation,
            last_transition_time=stored.last_transition_time if stored.active is active else now,
            next_transition_time=due,
            effective_timezone=schedule.timezone,
            conditions=ready,
        ),
        wake_at=due,
    )


def _message(active: bool, due: datetime | None) -> str:  # noqa: FBT001 - a value, not a flag
    answer = "open" if active else "closed"
    return f"{answer} until {due:%Y-%m-%dT%H:%M:%SZ}" if due else f"{answer} for ever"


def _refused(
    stored: ProviderStatus, generation: int, reason: str, message: str, now: datetime
) -> ProviderStatus:
    """Not Ready, and `active` left as it was: consumers hold."""
    conditions = _merge(stored, generation, now, status="False", reason=reason, message=message)
    return attrs.evolve(stored, observed_generation=generation, conditions=conditions)


def _merge(
    stored: ProviderStatus, generation: int, now: datetime, *, status: str, reason: str, message: str
) -> tuple[Condition, ...]:
    before = condition(stored.conditions, "Ready")
    since = before.last_transition_time if before is not None and before.status == status else now
    ready = Condition(
        type="Ready",
        status=status,
        reason=reason,
        message=message,
        last_transition_time=since,
        observed_generation=generation,
    )
    others = tuple(entry for entry in stored.conditions if entry.type != "Ready")
    return (*others, ready)


def stored_status(status: Mapping[str, Any] | None) -> ProviderStatus:
    """The status as stored; one that cannot be read counts as none, and is written anew."""
    try:
        return decode(dict(status or {}), ProviderStatus)
    except InvalidSpec:
        return ProviderStatus()
