"""The duration grammar."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.core.api.duration import LIMIT_SECONDS, Duration
from fivespot.core.errors import InvalidSpec


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0s", 0), ("0h", 0), ("90s", 90), ("5m", 300), ("005m", 300), ("24h", 86400), ("1440m", 86400)],
)
def test_digits_and_a_unit_are_seconds(text: str, seconds: int) -> None:
    assert Duration.parse(text).seconds == seconds


@pytest.mark.parametrize("text", ["25h", "1441m", "86401s", "99999999h"])
def test_more_than_a_day_is_refused(text: str) -> None:
    with pytest.raises(InvalidSpec, match="at most 24h"):
        Duration.parse(text)


@pytest.mark.parametrize(
    "value", ["", "5", "+5m", "5 m", "1h30m", "1.5h", "\u0665m", "5m\n", 5, None, [], {}, True]
)
def test_everything_else_is_refused_whatever_its_type(value: object) -> None:
    with pytest.raises(InvalidSpec) as refusal:
        Duration.parse(value)
    assert refusal.value.value == value


def test_durations_of_the_same_length_are_equal_and_keep_what_was_written() -> None:
    assert Duration.parse("60s") == Duration.parse("1m")
    assert Duration.parse("1m").text == "1m"


@given(st.text(st.characters(codec="utf-8")) | st.from_regex(r"[0-9]{0,9}[smh]?"))
def test_any_text_is_a_duration_within_a_day_or_refused(text: str) -> None:
    try:
        duration = Duration.parse(text)
    except InvalidSpec:
        return
    assert 0 <= duration.seconds <= LIMIT_SECONDS
    assert duration.text == text
