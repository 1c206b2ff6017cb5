"""What a provider answers at one instant, and what it has to see for that: the shape that every kind has in common."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

import attrs

from fivespot.core.api.scheduled_machine import ScheduleReference
from fivespot.core.decision.knowledge import Known
from fivespot.core.decision.observation import ProviderView


@attrs.frozen(kw_only=True)
class Answer:
    """One answer.

    Attributes:
        active: None when there is none now: `Ready` is False then, and what was published before stands.
        reason: of the condition `Ready`.
        message: one sentence for people, likewise.
        next_transition: when the answer changes, by all that is known; None for never, or when nobody knows.
        timezone: the zone that was used, None where the kind has none.
        wake_at: when time alone makes it worth asking again, None for never.
        settled: False for a moment's uncertainty that is not worth a write; what was published is left as it is.
    """

    active: bool | None
    reason: str
    message: str
    next_transition: datetime | None = None
    timezone: str | None = None
    wake_at: datetime | None = None
    settled: bool = True


class Members(Protocol):
    """The other providers of a provider's namespace, as far as they are seen now."""

    def seen(self, reference: ScheduleReference) -> Known[ProviderView]:
        """What a provider publishes."""

    def members(self, reference: ScheduleReference) -> tuple[ScheduleReference, ...]:
        """What a provider itself refers to; nothing for kinds that refer to none, and for those that are not there."""


class Logic(Protocol):
    """A spec that has been read: made once for each generation, asked at every change and every boundary."""

    @property
    def references(self) -> tuple[ScheduleReference, ...]:
        """The providers whose answers it is made of."""

    def answer(self, now: datetime, members: Members) -> Answer:
        """The answer at `now` (UTC, whole seconds)."""


class Reads(Protocol):
    """Makes the Logic of a spec."""

    def __call__(self, spec: Mapping[str, Any]) -> Logic:
        """Read a spec that the schema has let through, or that nobody has looked at yet.

        Raises:
            InvalidSpec: it is refused; the field is relative to the spec.
        """


class Alone:
    """For logic that needs nobody else: there is nobody."""

    def seen(self, reference: ScheduleReference) -> Known[ProviderView]:
        """Nothing is asked for."""
        raise LookupError(reference)

    def members(self, reference: ScheduleReference) -> tuple[ScheduleReference, ...]:
        """Nothing is asked for."""
        raise LookupError(reference)
