"""Calendar dates as day numbers: days since 1970-01-01 in whatever calendar a local clock shows.

A day number is not an instant. Day `n` is the local seconds `n * 86400` to `(n + 1) * 86400`.
"""

import re
from datetime import date

from attrs import frozen

from fivespot.core.schedule import bounds
from fivespot.core.schedule.fields import entries, refuse, text

_EPOCH = date(1970, 1, 1).toordinal()
_DATE = re.compile(bounds.DATE_PATTERN)
_EXAMPLE = '"2026-12-25"'


@frozen(order=True)
class Days:
    """The days `first` to `last`, both included, as day numbers."""

    first: int
    last: int


def weekday(day: int) -> int:
    """0 for a Monday; 1970-01-01 was a Thursday."""
    return (day + 3) % 7


def format_day(day: int) -> str:
    """The date of `day`, as a manifest writes it."""
    return date.fromordinal(day + _EPOCH).isoformat()


def one_date(value: object, field: str) -> int:
    """The day that a text such as `2026-12-25` names."""
    return _day(text(value, field, bounds.MAX_DATE_LENGTH, _EXAMPLE), value, field)


def dates(value: object, field: str, limit: int) -> list[Days]:
    """The days that a list of dates and ranges `a/b` names, one `Days` per entry, in the order written."""
    return [
        _dates(entry, f"{field}[{index}]")
        for index, entry in enumerate(entries(value, field, limit, '["2026-12-25", "2026-12-24/2026-12-26"]'))
    ]


def _dates(value: object, field: str) -> Days:
    whole = text(value, field, bounds.MAX_DATES_LENGTH, f'{_EXAMPLE} or "2026-12-24/2026-12-26"')
    first, slash, last = whole.partition("/")
    start = _day(first, value, field)
    end = _day(last, value, field) if slash else start
    if end < start:
        refuse(field, value, f"the range runs backwards; write {last}/{first}")
    return Days(start, end)


def _day(part: str, value: object, field: str) -> int:
    if not _DATE.fullmatch(part):
        refuse(field, value, f"write a date as YYYY-MM-DD in quotes, such as {_EXAMPLE}")
    try:
        ordinal = date.fromisoformat(part).toordinal()
    except ValueError:
        refuse(field, value, f"{part} is not in the calendar; write a real date, such as {_EXAMPLE}")
    return ordinal - _EPOCH
