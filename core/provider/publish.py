"""What the controller of a provider kind writes, and when it looks again.

Level-triggered: it states the present and replays nothing. A status that already says so is not written again.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import attrs

from fivespot.core.api import reasons
from fivespot.core.api.codec import decode
from fivespot.core.api.common import Condition, condition, in_brief
from fivespot.core.api.providers import ProviderStatus
from fivespot.core.decision.actions import Event, Severity
from fivespot.core.errors import InvalidSpec
from fivespot.core.provider.answer import Answer, Inputs, Logic, Members
from fivespot.core.provider.question import Reading


@attrs.frozen(kw_only=True)
class Publication:
    """What to write, and when to look again.

    Attributes:
        status: the complete new status; equal to the stored one when nothing is to be written.
        answer: what was answered; None without an answer, when `status.active` is what it was.
        events: what to tell people once it is written.
        wake_at: the boundary at which it must be looked at again, None for never.
    """

    status: ProviderStatus
    answer: bool | None
    events: tuple[Event, ...] = ()
    wake_at: datetime | None


def publish(
    logic: Logic | InvalidSpec,
    members: Members,
    generation: int,
    stored: ProviderStatus,
    now: datetime,
    *,
    reading: Reading | None = None,
    clock_trusted_from: datetime | None = None,
) -> Publication:
    """State what a provider says now.

    Args:
        logic: of its spec, or why that is refused.
        members: the other providers of its namespace.
        generation: `metadata.generation` of the spec that was read.
        stored: the status as it is.
        now: the present instant, aware.
        reading: what was last heard to the logic's question.
        clock_trusted_from: a clock before this instant is wrong, and answering by it would flip machines; None where
            time is virtual.
    """
    now = now.replace(microsecond=0)  # metav1.Time has whole seconds
    inputs = Inputs(members=members, reading=reading, published=stored.active)
    answer = _answer(logic, inputs, now, clock_trusted_from)
    if not answer.settled:
        return Publication(status=stored, answer=None, wake_at=answer.wake_at)
    active = stored.active if answer.active is None else answer.active
    return Publication(
        answer=answer.active,
        events=tuple(_events(stored, generation, answer)),
        status=attrs.evolve(
            stored,
            active=active,
            observed_generation=generation,
            last_transition_time=stored.last_transition_time if stored.active is active else now,
            next_transition_time=answer.next_transition,
            effective_timezone=answer.timezone,
            conditions=_merge(stored, generation, now, answer),
        ),
        wake_at=answer.wake_at,
    )


def _answer(
    logic: Logic | InvalidSpec, inputs: Inputs, now: datetime, clock_trusted_from: datetime | None
) -> Answer:
    if isinstance(logic, InvalidSpec):
        return Answer(active=None, reason=reasons.INVALID_SPEC, message=str(logic))
    if clock_trusted_from is not None and now < clock_trusted_from:
        text = f"the clock says {now:%Y-%m-%d}, before this program was built: set it right"
        return Answer(active=None, reason=reasons.CLOCK_UNTRUSTED, message=text, wake_at=clock_trusted_from)
    return logic.answer(now, inputs)


def _events(stored: ProviderStatus, generation: int, answer: Answer) -> Iterator[Event]:
    """What has changed since the stored status, for people: an answer, or that there is none, and why."""
    if answer.active is not None:
        if stored.active is not None and stored.active is not answer.active:
            reason = reasons.WINDOW_OPENED if answer.active else reasons.WINDOW_CLOSED
            yield Event(severity=Severity.NORMAL, reason=reason, message=answer.message)
        return
    before = condition(stored.conditions, reasons.READY)
    told = (before.status, before.reason) if before is not None else None
    # Another spec that is refused is another mistake.
    again = answer.reason == reasons.INVALID_SPEC and stored.observed_generation != generation
    if told != ("False", answer.reason) or again:
        severity = Severity.NORMAL if answer.reason == reasons.EXPIRED else Severity.WARNING
        yield Event(severity=severity, reason=answer.reason, message=answer.message)


def _merge(stored: ProviderStatus, generation: int, now: datetime, answer: Answer) -> tuple[Condition, ...]:
    """The conditions with our `Ready` among those of others; without an answer it is False, and consumers hold."""
    before = condition(stored.conditions, reasons.READY)
    status = "False" if answer.active is None else "True"
    since = before.last_transition_time if before is not None and before.status == status else now
    ready = Condition(
        type=reasons.READY,
        status=status,
        reason=answer.reason,
        message=in_brief(answer.message),
        last_transition_time=since,
        observed_generation=generation,
    )
    others = tuple(entry for entry in stored.conditions if entry.type != reasons.READY)
    return (*others, ready)


def stored_status(status: Mapping[str, Any] | None) -> ProviderStatus:
    """The status as stored; one that cannot be read counts as none, and is written anew."""
    try:
        return decode(dict(status or {}), ProviderStatus)
    except InvalidSpec:
        return ProviderStatus()
