"""Processes that do not fire although a person may expect it, for `5spot-agent match`."""

import enum

import attrs

from fivespot.core.agent.config import AgentConfig, Scope
from fivespot.core.agent.match import COMM_BYTES, MISS, NOBODY, Hit, Matcher, Miss, mentions_only, names_of
from fivespot.core.agent.process import Exclusion, Itself, ProcessFacts, is_agent
from fivespot.core.agent.programs import INTERPRETERS, basename, interpreter, launches


class Nearness(enum.StrEnum):
    """Why a process does not fire."""

    CASE = "case"
    """What it is called differs in upper and lower case only."""
    TRUNCATED = "15-byte truncation"
    """The kernel's name for it is how a longer pattern begins, and no whole name says that it is the same."""
    WRAPPER = "wrapper"
    """It starts that program, or mentions it in a shell's code; the program fires by itself."""
    POD = "inside a pod"
    """It would fire, but the cluster's own work is no owner."""


@attrs.frozen
class NearMiss:
    """The pattern that a person may expect to hit, and why it does not."""

    pattern: str
    why: Nearness


class NearMisses:
    """A configuration, made ready to explain many processes."""

    def __init__(self, config: AgentConfig) -> None:
        self._strict = Matcher(config)
        self._folded = Matcher(attrs.evolve(config, ignore_case=True))
        self._everywhere = Matcher(attrs.evolve(config, scope=Scope.ALL))
        self._longer = [
            (pattern.encode()[:COMM_BYTES], pattern)
            for pattern in config.match_commands
            if len(pattern.encode()) > COMM_BYTES
        ]

    def of(self, facts: ProcessFacts, itself: Itself = NOBODY) -> NearMiss | None:
        """Why this process may surprise; None if it fires, or is nothing like a pattern."""
        answer = self._strict.match(facts, itself)
        if answer == Miss(Exclusion.POD):
            return self._hit_of(self._everywhere, facts, itself, Nearness.POD)
        if answer != MISS or is_agent(facts, itself):
            return None
        return (
            self._hit_of(self._folded, facts, itself, Nearness.CASE)
            or self._truncated(facts)
            or self._wrapper(facts)
        )

    @staticmethod
    def _hit_of(matcher: Matcher, facts: ProcessFacts, itself: Itself, why: Nearness) -> NearMiss | None:
        answer = matcher.match(facts, itself)
        return NearMiss(answer.pattern, why) if isinstance(answer, Hit) else None

    def _truncated(self, facts: ProcessFacts) -> NearMiss | None:
        found = next((pattern for start, pattern in self._longer if start == facts.comm), None)
        return NearMiss(found, Nearness.TRUNCATED) if found else None

    def _wrapper(self, facts: ProcessFacts) -> NearMiss | None:
        exe, _ = names_of(facts)
        name = basename(exe)
        if launches(name) or (interpreter(name) in INTERPRETERS and mentions_only(facts, exe)):
            found = next(self._strict.words_in(facts.argv[1:]), None)
            return NearMiss(found, Nearness.WRAPPER) if found else None
        return None
