"""The correlator against a naive one that remembers everything that was ever said, and counts it anew each time."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from fivespot.adapters.kube.correlating import (
    BURST,
    REFILL,
    SERIES,
    Correlator,
    Create,
    Extend,
    Occurrence,
)

UIDS = ("one", "two")
NOTES = ("a", "b")
_ROUNDING = 1e-6


def occurrences() -> st.SearchStrategy[Occurrence]:
    return st.builds(
        Occurrence,
        uid=st.sampled_from(UIDS),
        type=st.just("Normal"),
        reason=st.just("Reason"),
        note=st.sampled_from(NOTES),
    )


@dataclass
class Said:
    """One occurrence: when, and what was written of it."""

    occurrence: Occurrence
    at: float
    written: str = ""


@dataclass
class Naive:
    """What the rules say, from the whole past."""

    past: list[Said] = field(default_factory=list)
    lost: dict[Occurrence, int] = field(default_factory=dict)

    def tokens(self, uid: str, now: float) -> float:
        """What is left in an object's bucket, from everything that was ever written about it."""
        left, at = float(BURST), None
        for said in self.past:
            if said.occurrence.uid == uid:
                left = left if at is None else min(BURST, left + (said.at - at) / REFILL)
                left, at = left - bool(said.written), said.at
        return left if at is None else min(BURST, left + (now - at) / REFILL)

    def series(self, occurrence: Occurrence, now: float) -> list[Said]:
        """The occurrences of the series that goes on now, the earliest first."""
        begun = self.lost.get(occurrence, 0)
        equal = [said for said in self.past[begun:] if said.occurrence == occurrence]
        found: list[Said] = []
        for said in reversed(equal):
            if now - said.at >= SERIES:
                break
            found, now = [said, *found], said.at
        return found

    def occurred(
        self, occurrence: Occurrence, name: str, now: float, *, allowed: bool
    ) -> Create | Extend | None:
        before = self.series(occurrence, now)
        written = [said.written for said in before if said.written]
        if not allowed:
            self.past.append(Said(occurrence, now))
            return None
        count = len(before) + 1
        answer = Extend(name=written[0], count=count) if written else Create(name=name, count=count)
        self.past.append(Said(occurrence, now, answer.name))
        return answer


class CorrelatorModel(RuleBasedStateMachine):
    """Whatever is said, lost and waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.correlator = Correlator()
        self.naive = Naive()
        self.now = 0.0
        self.names = 0

    def say(self, occurrence: Occurrence) -> None:
        self.names += 1
        tokens = self.naive.tokens(occurrence.uid, self.now)
        answer = self.correlator.occurred(occurrence, f"event-{self.names}", self.now)
        # Where a token is whole but for rounding, either answer will do.
        allowed = answer is not None if abs(tokens - 1) < _ROUNDING else tokens > 1
        expected = self.naive.occurred(occurrence, f"event-{self.names}", self.now, allowed=allowed)
        if isinstance(expected, Create) and isinstance(answer, Create):
            # Which name a new Event gets is only a matter of when its series began.
            assert answer.count == expected.count
            self.naive.past[-1].written = answer.name
        else:
            assert answer == expected

    @rule(occurrence=occurrences())
    def says(self, occurrence: Occurrence) -> None:
        self.say(occurrence)

    @rule(occurrence=occurrences(), times=st.integers(2, 2 * BURST))
    def says_again_and_again(self, occurrence: Occurrence, times: int) -> None:
        for _ in range(times):
            self.say(occurrence)

    @rule(seconds=st.sampled_from((1.0, 60.0, REFILL - 1, REFILL, SERIES - 1, SERIES, SERIES + 1, 86400.0)))
    def waits(self, seconds: float) -> None:
        self.now += seconds

    @precondition(lambda self: self.naive.past)
    @rule(again=st.booleans())
    def loses_what_was_said_last(self, again: bool) -> None:
        occurrence = self.naive.past[-1].occurrence
        self.correlator.lost(occurrence)
        self.naive.lost[occurrence] = len(self.naive.past)
        if again:
            self.say(occurrence)

    @rule()
    def is_about_many_others(self) -> None:
        """So many that what has run out is thrown away, which makes no difference."""
        for number in range(1024):
            other = Occurrence(uid=f"other-{self.names}-{number}", type="Normal", reason="Reason", note="a")
            answer = self.correlator.occurred(other, "other", self.now)
            assert answer == Create(name="other")
        self.names += 1

    @rule()
    def remembers_nothing_that_is_over(self) -> None:
        """Whatever has ended is thrown away in the course of so many occurrences, however much it was."""
        self.now += 2 * BURST * REFILL
        self.is_about_many_others()
        self.is_about_many_others()
        assert len(self.correlator) <= 2 * 1024


CorrelatorModel.TestCase.settings = settings(
    max_examples=20, stateful_step_count=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestCorrelator = CorrelatorModel.TestCase
