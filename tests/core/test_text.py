"""What strangers write, on one line."""

import pytest

from fivespot.core.text import one_line


@pytest.mark.parametrize("end", ["\n", "\r\n", "\x85", "\u2028", "\v", "\x00", "\x1b", "\t"])
def test_no_line_ends_and_nothing_that_moves_the_cursor(end: str) -> None:
    assert one_line(f" one{end}two ") == "one two"


def test_letters_of_every_script_stay() -> None:
    assert one_line("Zürich: 東京, कृष्ण") == "Zürich: 東京, कृष्ण"


def test_what_is_too_long_is_cut_and_looks_so() -> None:
    assert one_line("a" * 10, 10) == "a" * 10
    assert one_line("a" * 11, 10) == "aaaaaaa..."
