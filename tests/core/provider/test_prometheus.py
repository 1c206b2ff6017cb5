"""What an answer of Prometheus means, and what a PrometheusSpotSchedule makes of its readings."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.core.api import reasons
from fivespot.core.api.providers import ProviderStatus
from fivespot.core.errors import InvalidSpec
from fivespot.core.provider.answer import Alone
from fivespot.core.provider.prometheus import Queried, filtered_to_zero, read_prometheus, truth_of
from fivespot.core.provider.publish import Publication, publish
from fivespot.core.provider.question import Heard, Question, Reading, taken_in

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
AT = NOW.timestamp()


def sample(value: object, at: float = AT) -> dict[str, Any]:
    return {"metric": {"job": "desk"}, "value": [at, value]}


def vector(*samples: object) -> dict[str, Any]:
    return success("vector", list(samples))


def success(kind: str, result: object, **more: Any) -> dict[str, Any]:
    return {"status": "success", "data": {"resultType": kind, "result": result}, **more}


@pytest.mark.parametrize(
    ("answer", "active"),
    [
        (vector(), False),
        (vector(sample("0")), False),
        (vector(sample("-0")), False),
        (vector(sample("0"), sample("0.000")), False),
        (vector(sample("1")), True),
        (vector(sample("0"), sample("0.1")), True),
        (vector(sample("-1")), True),
        (vector(sample("+Inf")), True),
        (vector(sample("-Inf")), True),
        (success("scalar", [AT, "0"]), False),
        (success("scalar", [AT, "3"]), True),
        (success("vector", [sample("1")], warnings=["PromQL info: metric might not be a counter"]), True),
        (success("vector", [sample("1")], warnings=[], infos=["any"]), True),
        ({**success("vector", [sample("1")]), "isPartial": False}, True),
    ],
)
def test_a_query_is_true_when_any_sample_is_not_zero(answer: object, active: bool) -> None:
    assert truth_of(answer, NOW) == Heard(active)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (vector(sample("NaN")), "NaN"),
        (vector(sample("1"), sample("NaN")), "NaN"),
        (success("scalar", [AT, "NaN"]), "NaN"),
        (success("matrix", []), "gives: matrix"),
        (success("string", [AT, "1"]), "gives: string"),
        (success("vector", {}), "gives: vector"),
        (success("scalar", None), "no number"),
        (vector({"metric": {}, "histogram": [AT, {}]}), "no number"),
        (vector(sample("one")), "no number"),
        (vector(sample(None)), "no number"),
        (vector("text"), "no number"),
        (vector(sample("1", at=AT - 301)), "300 s off"),
        (vector(sample("1", at=AT + 301)), "300 s off"),
        (vector(sample("1", at=float("nan"))), "300 s off"),
        (success("vector", [], warnings=["a store did not answer"]), "a store did not answer"),
        ({**success("vector", []), "isPartial": True}, "partial"),
        ({"status": "success"}, "gives: None"),
        ({"status": "success", "data": []}, "gives: None"),
        ({"status": "maybe"}, "no answer of Prometheus"),
        ({}, "no answer of Prometheus"),
        ([], "no answer of Prometheus"),
        ("up", "no answer of Prometheus"),
        (None, "no answer of Prometheus"),
    ],
)
def test_what_is_neither_true_nor_false_is_no_answer(answer: object, told: str) -> None:
    found = truth_of(answer, NOW)
    assert (found.active, found.reason) == (None, reasons.QUERY_UNUSABLE)
    assert told in found.told


def test_an_error_is_told_in_the_words_of_prometheus_and_not_too_many_of_them() -> None:
    found = truth_of({"status": "error", "errorType": "bad_data", "error": "no\nquery" + "x" * 1000}, NOW)
    assert (found.active, found.reason) == (None, reasons.QUERY_FAILED)
    assert found.told.startswith("Prometheus answers with an error: bad_data: no query")
    assert len(found.told) < 400


def test_a_fault_that_is_worded_anew_each_time_is_the_same_fault() -> None:
    """Else each attempt would be another status, and wake every machine on it."""
    first, second = (
        truth_of({"status": "error", "errorType": "internal", "error": f"from port {port}"}, NOW)
        for port in (40_001, 40_002)
    )
    known = taken_in(taken_in(None, first, 0.0), second, 1.0)
    assert known.heard.told == "Prometheus answers with an error: internal: from port 40001"


json = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["success", "vector", "scalar"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["status", "data", "resultType", "result", "value", "warnings"]),
            inner,
            max_size=6,
        )
    ),
    max_leaves=12,
)


@given(json)
def test_whatever_a_server_says_is_an_answer_or_the_reason_for_none(answer: object) -> None:
    found = truth_of(answer, NOW)
    assert (found.active is None) == bool(found.message)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("load < 1", "<"),
        ("load<=1", "<="),
        ("sum(desk_busy) == 0", "=="),
        ("load != 3 or load > 2", "!="),
        ("load < bool 1", None),
        ("load ==bool 0", None),
        ("load <= bool 1", None),
        ("load ==\n bool 0 and load < 2", "<"),
        ("load > 0", None),
        ("load >= 1", None),
        ('up{job!="a", mode=~"x<y"}', None),
        ("""label_replace(up, "a", "<1", 'b', "\\"<")""", None),
        ("up # < 1", None),
        ("up{} < boolean", "<"),
    ],
)
def test_a_comparison_that_may_leave_a_zero_is_found(query: str, found: str | None) -> None:
    assert filtered_to_zero(query) == found


# From readings to the status


def queried(**spec: Any) -> Queried:
    return read_prometheus({"url": "https://p", "query": "up", **spec})


def heard(
    active: bool | None, held: float = 0.0, reason: str = "QueryFailed", message: str = "why"
) -> Reading:
    said = Heard(active) if active is not None else Heard(None, reason, message)
    return Reading(heard=said, since=100.0, at=100.0 + held)


def stated(
    logic: Queried, reading: Reading | None, stored: ProviderStatus | None = None, generation: int = 1
) -> Publication:
    before = stored or ProviderStatus()
    return publish(logic, Alone(), generation, before, NOW, reading=reading)


def ready(status: ProviderStatus) -> tuple[str, str]:
    (found,) = status.conditions
    return found.status, found.reason


def test_the_first_answer_is_published_at_once() -> None:
    made = stated(queried(**{"for": "10m"}), heard(True))
    assert made.status.active is True
    assert ready(made.status) == ("True", reasons.QUERY_TRUE)
    assert made.status.next_transition_time is None


def test_before_the_first_answer_nothing_is_written() -> None:
    stored = stated(queried(), heard(True)).status
    assert stated(queried(), None, stored, generation=2).status == stored
    assert stated(queried(), None).status == ProviderStatus()


def test_a_flip_is_published_once_it_has_been_heard_for_long_enough() -> None:
    logic = queried(**{"for": "2m"})
    stored = stated(logic, heard(True)).status
    assert stated(logic, heard(False, held=119.9), stored).status == stored
    made = stated(logic, heard(False, held=120), stored)
    assert made.status.active is False
    assert [event.reason for event in made.events] == ["WindowClosed"]


def test_an_edited_spec_is_answered_for_though_a_flip_has_to_wait() -> None:
    """Else consumers would take what is published for stale as long as `for` lasts."""
    logic = queried(**{"for": "2m"})
    stored = stated(logic, heard(True)).status
    made = stated(logic, heard(False), stored, generation=2)
    assert (made.status.active, made.status.observed_generation) == (True, 2)
    assert made.status.last_transition_time == stored.last_transition_time


def test_without_an_answer_what_was_published_stands_and_ready_says_why() -> None:
    stored = stated(queried(), heard(True)).status
    made = stated(queried(), heard(None, message="no connection"), stored)
    assert made.status.active is True
    assert ready(made.status) == ("False", "QueryFailed")
    assert [event.reason for event in made.events] == ["QueryFailed"]
    again = stated(queried(), heard(None, held=60, message="no connection"), made.status)
    assert again.status == made.status


def test_an_outage_that_ends_with_another_answer_is_a_flip_like_any_other() -> None:
    logic = queried(**{"for": "1m"})
    out = stated(logic, heard(None), stated(logic, heard(True)).status).status
    waiting = stated(logic, heard(False), out)
    assert (waiting.status.active, ready(waiting.status)) == (True, ("True", reasons.QUERY_TRUE))
    assert stated(logic, heard(False, held=60), waiting.status).status.active is False


def test_the_question_is_what_the_spec_says() -> None:
    logic = queried(
        url="https://p/base/",
        interval="1m",
        tls={"caSecretRef": {"name": "ca"}, "serverName": "s"},
        bearerTokenSecretRef={"name": "t", "key": "k"},
        **{"for": "5m"},
    )
    asked = logic.question
    assert (asked.url, asked.query, asked.interval, asked.confirm) == ("https://p/base", "up", 60, 300)
    assert [(secret.name, secret.key) for secret in asked.secrets] == [("ca", "value"), ("t", "k")]
    assert asked.server_name == "s"
    assert queried().question == Question(url="https://p", query="up", interval=30, confirm=0)


def test_a_token_never_goes_over_http() -> None:
    with pytest.raises(InvalidSpec, match=r"bearerTokenSecretRef.*https"):
        queried(url="http://p", bearerTokenSecretRef={"name": "t"})
