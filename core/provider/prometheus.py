"""PrometheusSpotSchedule: the truth of a PromQL query, as Prometheus's HTTP API answers it.

A query is true when any of its samples is not zero, and false when all are, or when there is none. What is not plainly one of
the two is no answer, and machines hold. A comparison filters, and what it leaves is the value itself: at a load of 0
`load < 1` leaves a 0, which is false. `load < bool 1` gives 1.

Source: the Prometheus documentation, "HTTP API": instant queries, expression query result formats.
"""

import math
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import attrs

from fivespot.core.api import reasons
from fivespot.core.api.providers import PrometheusSpec
from fivespot.core.api.scheduled_machine import ScheduleReference
from fivespot.core.provider.answer import Answer, Inputs
from fivespot.core.provider.question import Heard, Question
from fivespot.core.provider.reading import read
from fivespot.core.text import one_line

STALE: Final = 300.0
"""Seconds that a sample's time may be off ours: more, and somebody answers from a store, or a clock is wrong."""
_HARMLESS: Final = "PromQL info:"
"""How a warning begins that is about the style of a query; any other says that the answer may lack something."""
_NOT_CODE: Final = re.compile(r"""\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`[^`]*`|\{[^}]*\}|\#[^\n]*""")
"""Strings, label matchers and comments."""
_LETS_ZERO_THROUGH: Final = re.compile(r"(?:<=|<(?!=)|==|!=)(?!\s*bool\b)")
_SAID: Final = 300
"""Characters of what a server says that are told."""


@attrs.frozen
class Queried:
    """A query whose truth is the answer."""

    question: Question
    references: tuple[ScheduleReference, ...] = ()

    def answer(self, now: datetime, inputs: Inputs) -> Answer:  # noqa: ARG002 - its time is that of its readings
        """What was heard; until it has been heard for as long as the spec says, what was said before."""
        reading = inputs.reading
        if reading is None:
            return Answer(active=None, reason=reasons.QUERY_FAILED, message="not asked yet", settled=False)
        heard = reading.heard
        if heard.active is None:
            return Answer(active=None, reason=heard.reason, message=heard.told)
        unconfirmed = inputs.published is not None and reading.held < self.question.confirm
        active = inputs.published if unconfirmed else heard.active
        word, other = ("true", "false") if active else ("false", "true")
        # The same words for as long as the answer is the same: other ones would be written to the status.
        slow = f", or has not been {other} for {self.question.confirm} s yet" if self.question.confirm else ""
        return Answer(
            active=active,
            reason=reasons.QUERY_TRUE if active else reasons.QUERY_FALSE,
            message=f"the query is {word}{slow}",
        )


def truth_of(answer: object, now: datetime) -> Heard:
    """What Prometheus says to a query.

    Args:
        answer: the decoded JSON.
        now: the present instant, aware; samples of another time are not believed.
    """
    try:
        return _truth_of(answer, now)
    except _Unusable as error:
        return Heard(None, reasons.QUERY_UNUSABLE, str(error), error.detail)


class _Unusable(Exception):  # noqa: N818 - it never leaves this module
    """Why an answer is neither true nor false."""

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail


def _truth_of(answer: object, now: datetime) -> Heard:
    if not isinstance(answer, Mapping) or answer.get("status") not in ("success", "error"):
        message = "this is no answer of Prometheus's HTTP API: is the url its base, without /api/v1?"
        raise _Unusable(message)
    if answer["status"] == "error":
        said = printable(f"{answer.get('errorType')}: {answer.get('error')}")
        return Heard(None, reasons.QUERY_FAILED, "Prometheus answers with an error", said)
    # VictoriaMetrics' word for it, when a storage node did not answer.
    if answer.get("isPartial") is True:
        message = "the answer is partial, the server says"
        raise _Unusable(message)
    warnings = answer.get("warnings")
    for warning in warnings if isinstance(warnings, list) else ():
        if not str(warning).startswith(_HARMLESS):
            message = "the answer may be incomplete, Prometheus says"
            raise _Unusable(message, printable(str(warning)))
    data = answer.get("data")
    values = [_value(sample, now) for sample in _samples(data if isinstance(data, Mapping) else {})]
    return Heard(any(value != 0 for value in values))


def _samples(data: Mapping[str, Any]) -> Iterable[object]:
    found, result = data.get("resultType"), data.get("result")
    if found == "scalar":
        return [result]
    if found == "vector" and isinstance(result, list):
        return [sample.get("value") if isinstance(sample, Mapping) else None for sample in result]
    message = "write a query that gives an instant vector or a scalar; this one gives"
    raise _Unusable(message, printable(str(found)))


def _value(sample: object, now: datetime) -> float:
    """The value of a `[seconds, "text"]`."""
    pair = sample if isinstance(sample, list) else []
    try:
        at, text = pair
        value, off = float(text), abs(float(at) - now.timestamp())
    except (TypeError, ValueError, OverflowError) as error:
        # A native histogram has no value, for one.
        message = "a sample has no number; write a query that gives plain samples"
        raise _Unusable(message) from error
    if math.isnan(value):
        message = "a sample is NaN; guard the query, with `> 0` or `or vector(0)`"
        raise _Unusable(message)
    if not off <= STALE:
        message = f"a sample's time is more than {STALE:g} s off: compare the clocks, and look for a cache between us"
        raise _Unusable(message)
    return value


def filtered_to_zero(query: str) -> str | None:
    """The first comparison of a query that may let a 0 through, which then counts as false; None when there is none.

    Comparisons with `bool` give 1, and `>` lets nothing through that is 0, as a rule.
    """
    bare = _NOT_CODE.sub(" ", query)
    found = _LETS_ZERO_THROUGH.search(bare)
    return found[0] if found else None


def printable(said: str) -> str:
    """What a stranger says, on one line and not too much of it."""
    return one_line(said, _SAID)


def read_prometheus(spec: Mapping[str, Any]) -> Queried:
    """Read a PrometheusSpotSchedule's spec; InvalidSpec when it is refused."""
    found = read(spec, PrometheusSpec)
    tls = found.tls
    return Queried(
        Question(
            url=found.url.rstrip("/"),
            query=found.query,
            interval=found.interval.seconds,
            confirm=found.for_.seconds,
            ca=tls.ca_secret_ref if tls is not None else None,
            server_name=tls.server_name if tls is not None else None,
            token=found.bearer_token_secret_ref,
        )
    )
