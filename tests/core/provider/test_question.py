"""What is known after many attempts, and when the next one comes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.core.provider.question import Heard, Question, Reading, pause, taken_in

YES, NO = Heard(True), Heard(False)
OUT = Heard(None, "QueryFailed", "no connection")
ODD = Heard(None, "QueryUnusable", "NaN")


def asked(interval: int = 30, confirm: int = 0) -> Question:
    return Question(url="http://p", query="up", interval=interval, confirm=confirm)


def after(*answers: Heard, step: float = 10.0) -> Reading:
    found: Reading | None = None
    for number, heard in enumerate(answers):
        found = taken_in(found, heard, number * step)
    assert found is not None
    return found


def test_the_same_answer_again_and_again_holds_from_the_first() -> None:
    assert after(NO, YES, YES, YES).held == 20


def test_another_answer_begins_anew() -> None:
    assert after(YES, YES, NO).held == 0


def test_one_failure_after_an_answer_changes_nothing_but_is_counted() -> None:
    found = after(YES, YES, OUT)
    assert (found.heard, found.failures, found.held) == (YES, 1, 10)
    assert after(YES, OUT, YES).held == 20
    assert after(YES, OUT, YES).failures == 0


def test_the_second_failure_in_a_row_is_one() -> None:
    found = after(YES, OUT, OUT)
    assert (found.heard, found.failures) == (OUT, 2)
    assert after(YES, OUT, OUT, YES).held == 0


def test_a_failure_before_any_answer_counts_at_once() -> None:
    assert after(OUT).heard == OUT


def test_the_last_reason_is_the_one_that_is_told() -> None:
    assert after(OUT, ODD).heard == ODD


@given(st.lists(st.sampled_from([YES, NO, OUT, ODD]), min_size=1, max_size=30))
def test_what_is_known_is_the_last_unbroken_run_of_what_counts(answers: list[Heard]) -> None:
    counts = [
        (number * 10.0, heard)
        for number, heard in enumerate(answers)
        if heard.active is not None or number == 0 or answers[number - 1].active is None
    ]
    last, said = counts[-1]
    begun = last
    for at, heard in reversed(counts):
        if heard.active is not said.active:
            break
        begun = at
    found = after(*answers)
    assert (found.heard, found.since, found.at) == (said, begun, last)


@given(st.floats(0, 1))
def test_the_interval_is_kept_within_a_tenth(chance: float) -> None:
    assert 27 <= pause(asked(30), after(YES), chance) <= 33


@given(st.integers(1, 1000), st.floats(0, 1))
def test_failures_are_tried_again_soon_then_ever_later_and_never_more_rarely_than_every_five_minutes(
    failures: int, chance: float
) -> None:
    reading = Reading(heard=OUT, since=0.0, at=0.0, failures=failures)
    longest = pause(asked(24 * 3600), reading, 1.0)
    assert 0.5 * longest <= pause(asked(24 * 3600), reading, chance) <= longest
    assert longest == min(2.0 ** (failures - 1), 300)
    assert pause(asked(30), reading, 1.0) <= 30


@pytest.mark.parametrize(("held", "due"), [(0, 20), (10, 10), (20, 27), (40, 27)])
def test_what_has_to_be_confirmed_is_asked_again_as_soon_as_that_can_be(held: float, due: float) -> None:
    reading = Reading(heard=YES, since=0.0, at=held)
    assert pause(asked(30, confirm=20), reading, 0.0) == due
