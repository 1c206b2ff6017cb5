"""Day and hour tokens, clock times, dates; and the patterns that the CRD schema states for them."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fivespot.core.errors import InvalidSpec
from fivespot.core.schedule import bounds, grammar
from fivespot.core.schedule.dates import dates, format_day, one_date

VECTORS = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "golden" / "grammar.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]
READERS = {"days": grammar.days, "hours": grammar.hours}


@pytest.mark.parametrize("row", VECTORS, ids=lambda row: f"{row['kind']}-{row['input']}")
def test_a_token_means_what_the_vector_says(row):
    read = READERS[row["kind"]]
    if row["expect"] == "error":
        with pytest.raises(InvalidSpec) as refused:
            read(row["input"], "field")
        assert refused.value.field == "field[0]"
        assert refused.value.remedy
    else:
        assert read(row["input"], "field") == set(row["expect"])


def test_ordinals_of_days_are_refused_as_reserved():
    with pytest.raises(InvalidSpec, match="reserved"):
        grammar.days(["mon#1"], "daysOfWeek")


@pytest.mark.parametrize(
    "text", ["9:30", "+09:30", "09:30:00", "24:00", " 09:30", "09:30\n", "٠٩:30", "0930", ""]
)
def test_a_start_is_exactly_two_digits_colon_two_digits(text):
    with pytest.raises(InvalidSpec, match="HH:MM"):
        grammar.start_time(text, "start")


def test_an_end_may_be_24_00_and_nothing_later():
    assert grammar.end_time("24:00", "end") == 86400
    with pytest.raises(InvalidSpec):
        grammar.end_time("24:01", "end")


@pytest.mark.parametrize("value", [960, 9.5, None, True, ["09:30"], b"09:30"])
def test_a_time_that_yaml_read_as_something_else_asks_for_quotes(value):
    with pytest.raises(InvalidSpec, match="quotes"):
        grammar.start_time(value, "start")


@pytest.mark.parametrize("text", ["2026-02-30", "2025-02-29", "2100-02-29", "0000-01-01", "2026-04-31"])
def test_a_date_that_no_calendar_has_is_refused(text):
    with pytest.raises(InvalidSpec, match="not in the calendar"):
        one_date(text, "validFrom")


@pytest.mark.parametrize(
    "text", ["2026-1-1", "20260101", "2026-W01-1", "2026-01-01T00:00:00Z", "2026-01-01\n", "٢٠٢٦-01-01"]
)
def test_a_date_in_another_spelling_is_refused(text):
    with pytest.raises(InvalidSpec):
        one_date(text, "validFrom")


def test_a_range_backwards_is_refused_with_the_range_turned_round():
    with pytest.raises(InvalidSpec, match="2026-12-24/2026-12-26"):
        dates(["2026-12-26/2026-12-24"], "holidays", 10)


def test_a_range_of_one_day_is_a_day():
    (days,) = dates(["2026-12-24/2026-12-24"], "holidays", 10)
    assert days.first == days.last
    assert format_day(days.first) == "2026-12-24"


def near(alphabet: str, *words: str) -> st.SearchStrategy[str]:
    """Texts that are often right and often almost right."""
    pieces = st.sampled_from([*words, *alphabet])
    return st.lists(pieces, max_size=9).map("".join) | st.text(max_size=6)


def accepted(read, *arguments) -> bool:
    try:
        read(*arguments)
    except InvalidSpec:
        return False
    return True


BLANKS = "\t\n\v\f\r \x85\xa0\u2003\x1c"


@given(near(f"{BLANKS},-#M", *grammar.DAY_NAMES, "mon-fri"))
@example("mon\n")
@example("mon\x1c")
@example("\vmon\f")
def test_the_days_pattern_accepts_what_the_parser_accepts(text):
    matched = re.fullmatch(bounds.DAYS_PATTERN, text) is not None
    assert matched == accepted(grammar.days, [text], "days")


@given(near(f"{BLANKS},-+0123456789٣_", "22", "23", "24", "007"))
@example("9\n")
@example("+0")
@example("000")
@example("9 - +17")
def test_the_hours_pattern_accepts_what_the_parser_accepts(text):
    matched = re.fullmatch(bounds.HOURS_PATTERN, text) is not None
    assert matched == accepted(grammar.hours, [text], "hours")


@given(near("0123456789:+ \n٣", "09:30", "24:00", "23:59"))
def test_the_time_patterns_accept_what_the_parsers_accept(text):
    assert (re.fullmatch(bounds.START_PATTERN, text) is not None) == accepted(
        grammar.start_time, text, "start"
    )
    assert (re.fullmatch(bounds.END_PATTERN, text) is not None) == accepted(grammar.end_time, text, "end")


@given(near("0123456789-/ \n٣", "2026-12-25", "2026-12-31", "/"))
def test_the_date_patterns_accept_whatever_the_parsers_accept(text):
    if accepted(one_date, text, "validFrom"):
        assert re.fullmatch(bounds.DATE_PATTERN, text)
    if accepted(dates, [text], "holidays", 1):
        assert re.fullmatch(bounds.DATES_PATTERN, text)


@given(st.integers(1, 9999), st.integers(1, 12), st.integers(1, 28), st.booleans())
def test_the_date_patterns_accept_nothing_else_but_dates_that_do_not_exist(year, month, day, ranged):
    text = f"{year:04}-{month:02}-{day:02}"
    assert re.fullmatch(bounds.DATE_PATTERN, text)
    assert accepted(one_date, text, "validFrom")
    assert accepted(dates, [f"{text}/{text}" if ranged else text], "holidays", 1)


@pytest.mark.parametrize("name", [name for name in dir(bounds) if name.endswith("_PATTERN")])
def test_a_pattern_is_anchored_and_uses_nothing_that_go_reads_differently(name):
    pattern = getattr(bounds, name)
    assert pattern.startswith("^")
    assert pattern.endswith("$")
    assert not re.search(r"\\[^tnvfr+]|\(\?", pattern)
    assert pattern.isascii()
