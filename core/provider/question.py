"""What a provider has to ask outside the cluster, and what is made of the answers that come in.

Nothing here knows the clock: times are readings of one that only grows, in seconds.
"""

from typing import Final

import attrs

from fivespot.core.api.scheduled_machine import SecretKeyReference

_UNTOLD: Final = 1
"""So many failures in a row after an answer are nobody's business: the next attempt comes within seconds."""
_FIRST_RETRY: Final = 1.0
_LONGEST_RETRY: Final = 300.0
_MOST_DOUBLINGS: Final = 16
_SPREAD: Final = 0.1
"""How far an interval is stretched or shortened by chance, so that a thousand questions do not stay in step."""


@attrs.frozen(kw_only=True)
class Question:
    """A PromQL instant query, and the server that answers it.

    Attributes:
        url: of the server, without a slash at its end.
        query: PromQL.
        interval: seconds between two askings.
        confirm: seconds for which another answer than before must have been heard, without a break, to be believed.
        ca: the Secret with the certificate authority; None for those that are publicly known.
        server_name: the name in the server's certificate; None for the URL's host.
        token: the Secret with a bearer token.
    """

    url: str
    query: str
    interval: int
    confirm: int
    ca: SecretKeyReference | None = None
    server_name: str | None = None
    token: SecretKeyReference | None = None

    @property
    def secrets(self) -> tuple[SecretKeyReference, ...]:
        """The Secrets that it takes to ask it."""
        return tuple(reference for reference in (self.ca, self.token) if reference is not None)


@attrs.frozen
class Heard:
    """One answer to a question.

    Attributes:
        active: None when there was none.
        reason: why there was none, as the condition `Ready` says it.
        message: likewise, for people; the same words for the same fault.
        detail: the other side's own words about it, which may be others each time: only the first are told.
    """

    active: bool | None
    reason: str = ""
    message: str = ""
    detail: str = attrs.field(default="", eq=False)

    @property
    def told(self) -> str:
        """The message, with the detail."""
        return f"{self.message}: {self.detail}" if self.detail else self.message


@attrs.frozen(kw_only=True)
class Reading:
    """Everything that was heard to a question, as far as it matters.

    Attributes:
        heard: the last of it that counts.
        since: when it was first heard, without a break since.
        at: when it was last heard.
        failures: attempts in a row that brought no answer.
    """

    heard: Heard
    since: float
    at: float
    failures: int = 0

    @property
    def held(self) -> float:
        """Seconds for which this has been heard, from the first time to the last."""
        return self.at - self.since


def taken_in(before: Reading | None, heard: Heard, at: float) -> Reading:
    """What is known after one more attempt. A single one that fails after an answer changes nothing."""
    if heard.active is None:
        failures = before.failures + 1 if before is not None else 1
        if before is not None and before.heard.active is not None and failures <= _UNTOLD:
            return attrs.evolve(before, failures=failures)
        since = before.since if before is not None and before.heard.active is None else at
        # The same fault in other words would be another status, at every attempt.
        said = before.heard if before is not None and before.heard == heard else heard
        return Reading(heard=said, since=since, at=at, failures=failures)
    lasting = before is not None and before.heard.active is heard.active
    return Reading(heard=heard, since=before.since if before is not None and lasting else at, at=at)


def pause(question: Question, reading: Reading, chance: float) -> float:
    """Seconds until the next attempt.

    Args:
        question: what is asked.
        reading: with the last attempt in it.
        chance: 0 to 1, for jitter.
    """
    if reading.failures:
        longest = min(max(question.interval, 30.0), _LONGEST_RETRY)
        doubled = _FIRST_RETRY * 2.0 ** min(reading.failures - 1, _MOST_DOUBLINGS)
        return min(doubled, longest) * (0.5 + chance / 2)
    usual = question.interval * (1 - _SPREAD + 2 * _SPREAD * chance)
    # What has to be confirmed is confirmed as soon as it can be.
    missing = question.confirm - reading.held
    return min(usual, missing) if missing > 0 else usual
