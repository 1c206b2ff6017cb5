"""Delays, and which errors of a read are worth another try."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.adapters.kube.backoff import REQUEST, STREAM, WORK, Backoff, before_retry
from fivespot.adapters.kube.errors import ApiError, Asked, Forbidden, Gone, NotFound, Throttled, Unavailable

GET = Asked("get", "pods", "ns", "p")


@given(st.integers(0, 10**9), st.integers(), st.sampled_from([REQUEST, STREAM, WORK]))
def test_a_delay_is_positive_and_bounded(failures: int, seed: int, backoff: Backoff) -> None:
    assert backoff.first / 2 <= backoff.delay(failures, Random(seed)) <= backoff.most


def test_streams_double_from_0_8_to_30_seconds() -> None:
    steps = [max(STREAM.delay(n, Random(seed)) for seed in range(200)) for n in range(1, 9)]
    assert steps == pytest.approx([0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0], rel=0.02)


@pytest.mark.parametrize("kind", [Throttled, Unavailable])
def test_a_few_tries_within_seconds(kind: type[ApiError]) -> None:
    error = kind(GET)
    assert before_retry(error, 1, 0.0, Random(0)) is not None
    assert before_retry(error, 4, 0.0, Random(0)) is None
    assert before_retry(error, 1, 9.95, Random(0)) is None


@pytest.mark.parametrize("kind", [Forbidden, NotFound, Gone, ApiError])
def test_an_answer_is_an_answer(kind: type[ApiError]) -> None:
    assert before_retry(kind(GET), 1, 0.0, Random(0)) is None


def test_retry_after_is_honoured_and_one_that_is_too_long_ends_it() -> None:
    delay = before_retry(Throttled(GET, retry_after=3.0), 1, 0.0, Random(0))
    assert delay is not None
    assert 3.0 < delay < 3.5
    assert before_retry(Throttled(GET, retry_after=30.0), 1, 0.0, Random(0)) is None
