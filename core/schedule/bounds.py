r"""How much a schedule may hold and how its texts may look; the CRD schema states the same numbers and patterns.

The patterns are written in what Go's RE2 and Python's `re` read alike: anchored, no classes such as `\d`, no lookaround.
Python's `$` also matches before a final newline, so use `re.fullmatch` with them. What a pattern cannot say (that
30 February is no date, that an end is before its start) is checked by the parsers alone.
"""

from typing import Final

from fivespot.core import zones

MAX_TIMEZONE_LENGTH: Final = zones.MAX_NAME_LENGTH
MAX_TOKENS: Final = 100
"""Entries of one `daysOfWeek`, `hoursOfDay` or `days`."""
MAX_TOKEN_LENGTH: Final = 256
"""Characters of one such entry; every hour of the day with blanks around it is about 120."""
MAX_SESSIONS: Final = 1000
MAX_WINDOWS: Final = 1000
MAX_HOLIDAYS: Final = 1000
MAX_EARLY_CLOSES: Final = 1000
MAX_OVERRIDES: Final = 1000
MAX_DATES: Final = 300
"""Entries of one override's `dates`; a range `a/b` counts once, however long. What the API server's limit on the cost of
a rule leaves: the order of each range is checked for each date of each override."""
MAX_OVERRIDE_WINDOWS: Final = 100
MAX_NAME_LENGTH: Final = 253
"""Characters of an override's `name`."""
MAX_CLOCK_LENGTH: Final = 5
MAX_DATE_LENGTH: Final = 10
MAX_DATES_LENGTH: Final = 21
"""Characters of a date, or of a range of two."""
MIN_CLOSE_HOUR: Final = 0
MAX_CLOSE_HOUR: Final = 23
START_DAYS: Final = (-1, 0)

BLANKS: Final = "\t\n\v\f\r "
"""What is trimmed around day and hour tokens."""

_BLANK = r"[\t\n\v\f\r ]*"
_DAY = "(mon|tue|wed|thu|fri|sat|sun)"
_HOUR = r"\+?0*([0-9]|1[0-9]|2[0-3])"
_DATE = "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_CLOCK = "([01][0-9]|2[0-3]):[0-5][0-9]"


def _entry(token: str) -> str:
    part = f"{_BLANK}{token}{_BLANK}(-{_BLANK}{token}{_BLANK})?"
    return f"^{part}(,{part})*$"


DAYS_PATTERN: Final = _entry(_DAY)
HOURS_PATTERN: Final = _entry(_HOUR)
START_PATTERN: Final = f"^{_CLOCK}$"
END_PATTERN: Final = f"^({_CLOCK}|24:00)$"
DATE_PATTERN: Final = f"^{_DATE}$"
DATES_PATTERN: Final = f"^{_DATE}(/{_DATE})?$"
