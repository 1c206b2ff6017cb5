"""CompositeSpotSchedule: Kleene's three-valued logic over the answers of other providers.

An answer that cannot be read is unknown, and stays unknown unless the others decide. `firstOf` passes over a member only
when it abstains on purpose: a calendar below an override must not take over for the moment in which the override is edited.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import attrs

from fivespot.core.api import reasons
from fivespot.core.api.common import condition
from fivespot.core.api.providers import CompositeSpec
from fivespot.core.api.scheduled_machine import ScheduleReference
from fivespot.core.decision.knowledge import value_of
from fivespot.core.decision.verdict import Verdict, stale_until, verdict_of
from fivespot.core.provider.answer import Answer, Inputs, Members
from fivespot.core.provider.publish import stored_status
from fivespot.core.provider.reading import read

DEPTH: Final = 8
"""So many composites may stand above one another."""
_NAMED: Final = 5
"""So many members without an answer are told of by name."""
_SEARCHED: Final = 64
"""So deep a circle is looked for; what reaches deeper is too deep anyhow."""


@attrs.frozen
class _Member:
    """A member, and what it says; `stale` is its verdict as long as that is about an older spec."""

    name: str
    verdict: Verdict
    abstains: bool
    stale: Verdict | None


@attrs.frozen(kw_only=True)
class _Outcome:
    """What an operator makes of its members: those that decide, and when the outcome could change."""

    active: bool | None
    by: tuple[_Member, ...]
    next_transition: datetime | None = None
    abstains: bool = False


@attrs.frozen
class Composite:
    """One operator over some references."""

    operator: str
    references: tuple[ScheduleReference, ...]
    question: None = None

    def answer(self, now: datetime, inputs: Inputs) -> Answer:
        """Known when the members decide it, whatever the others would say."""
        members = inputs.members
        seen = [_member(reference, members) for reference in self.references]
        wrong = _tangled(self.references, members)
        if wrong is not None:
            return wrong
        outcome = _OPERATORS[self.operator](seen)
        if outcome.active is None:
            return self._unknown(outcome, now)
        word = "active" if outcome.active else "inactive"
        told = ", ".join(f"{member.name} says {_word(member.verdict)}" for member in outcome.by)
        return Answer(
            active=outcome.active,
            reason=reasons.MEMBERS_ACTIVE if outcome.active else reasons.MEMBERS_INACTIVE,
            message=f"{word} by {self.operator}: {told}",
            next_transition=outcome.next_transition,
        )

    def _unknown(self, outcome: _Outcome, now: datetime) -> Answer:
        if outcome.abstains:
            text = f"every member of {self.operator} abstains"
            return Answer(active=None, reason=reasons.EXPIRED, message=text)
        told = "; ".join(f"{member.name}: {member.verdict.message}" for member in outcome.by[:_NAMED])
        told += f"; and {rest} more" if (rest := len(outcome.by) - _NAMED) > 0 else ""
        # Every edit of a member passes through staleness.
        young = [stale_until(member.stale or member.verdict, now) for member in outcome.by]
        waits = [until for until in young if until is not None]
        settled = len(waits) < len(young)
        return Answer(
            active=None,
            reason=reasons.MEMBER_UNRESOLVED,
            message=f"{self.operator} cannot be decided: {told}",
            wake_at=None if settled else min(waits),
            settled=settled,
        )


def _member(reference: ScheduleReference, members: Members) -> _Member:
    provider = members.seen(reference)
    verdict = verdict_of(provider, reference)
    view = value_of(provider)
    ready = condition(stored_status(view.status).conditions, reasons.READY) if view is not None else None
    # It may have abstained before it ever said anything else.
    abstains = (
        view is not None
        and not view.stale
        and ready is not None
        and (ready.status, ready.reason) == ("False", reasons.EXPIRED)
    )
    stale = (
        attrs.evolve(verdict, reason=reasons.PROVIDER_STALE, stale_since=view.stale_since)
        if view and view.stale
        else None
    )
    return _Member(reference.label, verdict, abstains, stale)


def _all_of(seen: Sequence[_Member]) -> _Outcome:
    return _unless(seen, exception=False)


def _any_of(seen: Sequence[_Member]) -> _Outcome:
    return _unless(seen, exception=True)


def _unless(seen: Sequence[_Member], *, exception: bool) -> _Outcome:
    """One member that answers `exception` decides; else all that are unknown leave it unknown; else it is the opposite."""
    deciding = tuple(member for member in seen if member.verdict.active is exception)
    if deciding:
        # It lasts until the last of them has changed its mind.
        return _Outcome(active=exception, by=deciding, next_transition=_latest(deciding))
    unknown = tuple(member for member in seen if member.verdict.active is None)
    if unknown:
        return _Outcome(active=None, by=unknown)
    return _Outcome(active=not exception, by=tuple(seen), next_transition=_earliest(seen))


def _not(seen: Sequence[_Member]) -> _Outcome:
    (only,) = seen
    active = None if only.verdict.active is None else not only.verdict.active
    return _Outcome(active=active, by=(only,), next_transition=only.verdict.next_transition)


def _first_of(seen: Sequence[_Member]) -> _Outcome:
    for member in seen:
        if not member.abstains:
            verdict = member.verdict
            return _Outcome(active=verdict.active, by=(member,), next_transition=verdict.next_transition)
    return _Outcome(active=None, by=tuple(seen), abstains=True)


_OPERATORS: Final[Mapping[str, Callable[[Sequence[_Member]], _Outcome]]] = {
    "allOf": _all_of,
    "anyOf": _any_of,
    "not": _not,
    "firstOf": _first_of,
}


def _earliest(members: Iterable[_Member]) -> datetime | None:
    """The first change among them."""
    found = [member.verdict.next_transition for member in members]
    return min((due for due in found if due is not None), default=None)


def _latest(members: Iterable[_Member]) -> datetime | None:
    """When all of them have changed; None as soon as one never does."""
    found = [member.verdict.next_transition for member in members]
    known = [due for due in found if due is not None]
    return max(known) if len(known) == len(found) else None


def _word(verdict: Verdict) -> str:
    return "active" if verdict.active else "inactive"


class _Circle(Exception):  # noqa: N818 - it never leaves this module
    """The way from a composite back to itself."""


def _tangled(references: Iterable[ScheduleReference], members: Members) -> Answer | None:
    """Why there is no answer at all: references that come back to themselves, or reach too deep; None when all is well.

    A circle anywhere below is enough: what hangs on it has no answer either.
    """
    known: dict[str, int] = {}
    try:
        height = 1 + max((_height(reference, members, (), known) for reference in references), default=0)
    except _Circle as circle:
        text = f"the references run in a circle: {circle}"
        return Answer(active=None, reason=reasons.REFERENCE_CYCLE, message=text)
    if height > DEPTH:
        text = f"more than {DEPTH} composites stand above one another"
        return Answer(active=None, reason=reasons.REFERENCES_TOO_DEEP, message=text)
    return None


def _height(
    reference: ScheduleReference, members: Members, above: tuple[str, ...], known: dict[str, int]
) -> int:
    """How many composites stand above one another from here down; each is looked at once.

    Raises:
        _Circle: it stands above itself.
    """
    name = reference.label
    if name in above:
        raise _Circle(" -> ".join([*above, name]))
    if len(above) > _SEARCHED:
        return 1
    if name not in known:
        below = members.members(reference)
        heights = (_height(member, members, (*above, name), known) for member in below)
        known[name] = 1 + max(heights) if below else 0
    return known[name]


def read_composite(spec: Mapping[str, Any]) -> Composite:
    """Read a CompositeSpotSchedule's spec; InvalidSpec when it is refused."""
    found = read(spec, CompositeSpec)
    operators = {"allOf": found.all_of, "anyOf": found.any_of, "not": found.not_, "firstOf": found.first_of}
    operator, references = next((name, given) for name, given in operators.items() if given is not None)
    return Composite(operator, references or ())
