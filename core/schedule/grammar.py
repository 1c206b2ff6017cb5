"""The texts of a schedule: day tokens, hour tokens, clock times.

Grammar of finos/5-spot, unchanged, for days and hours; the patterns in `bounds.py` accept exactly the same texts. What
the numbers mean on a clock is not said here.
"""

import re
from collections.abc import Callable
from typing import Final

from attrs import frozen

from fivespot.core.schedule import bounds
from fivespot.core.schedule.fields import entries, refuse, text

DAY_NAMES: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
"""Index is the weekday as `date.weekday()` counts."""

_HOUR = re.compile(r"\+?0*(2[0-3]|1[0-9]|[0-9])", re.ASCII)
_START = re.compile(bounds.START_PATTERN)
_END = re.compile(bounds.END_PATTERN)


@frozen
class Tokens:
    """A cyclic vocabulary: how one word is read, how many there are, and how to speak of them."""

    read: Callable[[str], int | None]
    count: int
    example: str
    wanted: str


def _day(word: str) -> int | None:
    return DAY_NAMES.index(word) if word in DAY_NAMES else None


def _hour(word: str) -> int | None:
    match = _HOUR.fullmatch(word)
    return int(match[1]) if match else None


DAYS: Final = Tokens(
    read=_day,
    count=len(DAY_NAMES),
    example='"mon-fri"',
    wanted="days are mon tue wed thu fri sat sun, alone or as a range such as mon-fri; separate several by commas",
)
HOURS: Final = Tokens(
    read=_hour,
    count=24,
    example='"9-17"',
    wanted="hours are 0 to 23, alone or as a range with both ends included such as 9-17; separate several by commas",
)


def days(value: object, field: str) -> frozenset[int]:
    """Weekdays (0 is Monday) named by a list such as `["mon-fri", "sun"]`; ranges include both ends and wrap."""
    return _named(value, field, DAYS)


def hours(value: object, field: str) -> frozenset[int]:
    """Hours of the day named by a list such as `["9-17", "20"]`; ranges include both ends and wrap."""
    return _named(value, field, HOURS)


def ranges(entry: object, field: str, tokens: Tokens) -> list[tuple[int, int]]:
    """The `(first, last)` of each comma-separated part of one entry; `last < first` wraps, one word has them equal.

    Raises:
        InvalidSpec: with the whole entry as its value and the part at fault in the remedy.
    """
    whole = text(entry, field, bounds.MAX_TOKEN_LENGTH, tokens.example)
    return [_range(part, entry, field, tokens) for part in whole.split(",")]


def start_time(value: object, field: str) -> int:
    """Seconds after midnight of an `HH:MM` from 00:00 to 23:59."""
    return _clock(value, field, _START, 'HH:MM from 00:00 to 23:59 in quotes, such as "09:30"')


def end_time(value: object, field: str) -> int:
    """Seconds after midnight of an `HH:MM` from 00:00 to 24:00."""
    return _clock(value, field, _END, 'HH:MM from 00:00 to 24:00 in quotes, such as "16:00"')


def _clock(value: object, field: str, pattern: re.Pattern[str], wanted: str) -> int:
    # YAML 1.1 reads 16:00 without quotes as the number 960, so numbers must hear about quotes too.
    if not isinstance(value, str) or not pattern.fullmatch(value):
        refuse(field, value, f"write {wanted}")
    return int(value[:2]) * 3600 + int(value[3:]) * 60


def _named(value: object, field: str, tokens: Tokens) -> frozenset[int]:
    return frozenset(
        (first + step) % tokens.count
        for index, entry in enumerate(entries(value, field, bounds.MAX_TOKENS, f"[{tokens.example}]"))
        for first, last in ranges(entry, f"{field}[{index}]", tokens)
        for step in range((last - first) % tokens.count + 1)
    )


def _range(part: str, entry: object, field: str, tokens: Tokens) -> tuple[int, int]:
    first, dash, last = part.partition("-")
    start = tokens.read(first.strip(bounds.BLANKS))
    end = tokens.read(last.strip(bounds.BLANKS)) if dash else start
    if start is None or end is None:
        refuse(field, entry, _remedy(part.strip(bounds.BLANKS), tokens.wanted))
    return start, end


def _remedy(part: str, wanted: str) -> str:
    if not part:
        return f"there is nothing between two commas or at an end; {wanted}"
    if "#" in part:
        return f"# is reserved for a later version; {wanted}"
    return f"{part!r} is not understood; {wanted}"
