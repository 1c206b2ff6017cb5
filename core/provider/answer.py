"""What a provider answers at one instant, and what it has to see for that: the shape that every kind has in common."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

import attrs

from fivespot.core.api.scheduled_machine import ScheduleReference
from fivespot.core.decision.knowledge import Known
from fivespot.core.decision.observation import ProviderView
from fivespot.core.provider.question import Question, Reading


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


class Alone:
    """For logic that needs nobody else: there is nobody."""

    def seen(self, reference: ScheduleReference) -> Known[ProviderView]:
        """Nothing is asked for."""
        raise LookupError(reference)

    def members(self, reference: ScheduleReference) -> tuple[ScheduleReference, ...]:
        """Nothing is asked for."""
        raise LookupError(reference)


@attrs.frozen(kw_only=True)
class Inputs:
    """What an answer may be made of, besides the spec and the instant.

    Attributes:
        members: the other providers of its namespace.
        reading: what was last heard to the logic's question; None before the first answer, and where nothing is asked.
        published: what the provider says until now; None when it never said anything.
    """

    members: Members = attrs.field(factory=Alone)
    reading: Reading | None = None
    published: bool | None = None


class Logic(Protocol):
    """A spec that has been read: made once for each generation, asked at every change and every boundary."""

    @property
    def references(self) -> tuple[ScheduleReference, ...]:
        """The providers whose answers it is made of."""

    @property
    def question(self) -> Question | None:
        """What has to be asked outside the cluster; None for what the cluster and the clock can tell."""

    def answer(self, now: datetime, inputs: Inputs) -> Answer:
        """The answer at `now` (UTC, whole seconds)."""


class Unaided:
    """The part of a Logic that needs neither other providers nor anybody outside: a base class."""

    @property
    def references(self) -> tuple[ScheduleReference, ...]:
        """None."""
        return ()

    @property
    def question(self) -> Question | None:
        """None."""
        return None


class Reads(Protocol):
    """Makes the Logic of a spec."""

    def __call__(self, spec: Mapping[str, Any]) -> Logic:
        """Read a spec that the schema has let through, or that nobody has looked at yet.

        Raises:
            InvalidSpec: it is refused; the field is relative to the spec.
        """
