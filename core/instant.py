"""Instants: aware UTC datetimes at the door, whole seconds inside, RFC 3339 on the wire.

Aware `datetime` arithmetic is wall-clock arithmetic and `fromtimestamp` rounds, so anything that computes does it on
integers (`seconds`) and converts at the edge.
"""

import functools
import re
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_RFC3339 = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))",
    re.ASCII,
)

FIRST_SECOND = int((datetime.min.replace(tzinfo=UTC) - _EPOCH) / _SECOND)
LAST_SECOND = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _SECOND
"""The range of seconds since 1970 that a datetime can express, both included."""


def require_aware(at: datetime) -> datetime:
    """Return `at` in UTC; a naive datetime raises TypeError, since nobody can know which instant it means."""
    if at.tzinfo is None or at.utcoffset() is None:
        message = (
            f"{at!r} has no time zone; say which instant is meant, e.g. "
            f"datetime({at.year}, {at.month}, {at.day}, {at.hour}, {at.minute}, tzinfo=UTC)"
        )
        raise TypeError(message)
    return at.astimezone(UTC)


def seconds(at: datetime) -> int:
    """Whole seconds from 1970-01-01T00:00:00Z to `at`, rounded down; naive datetimes raise TypeError."""
    return (require_aware(at) - _EPOCH) // _SECOND


def from_seconds(value: int) -> datetime:
    """The UTC instant `value` seconds after 1970-01-01T00:00:00Z; OverflowError outside years 1 to 9999."""
    return _EPOCH + timedelta(seconds=value)


def later(at: datetime, span: timedelta) -> datetime:
    """`at` plus `span`, or the last instant there is: what others publish may lie at the end of time."""
    try:
        return at + span
    except OverflowError:
        return _LAST


def format_instant(at: datetime) -> str:
    """RFC 3339 in UTC, with microseconds only where there are any: the form Kubernetes' Time and MicroTime read."""
    at = require_aware(at)
    text = f"{at.year:04}-{at.month:02}-{at.day:02}T{at.hour:02}:{at.minute:02}:{at.second:02}"
    return f"{text}.{at.microsecond:06}Z" if at.microsecond else f"{text}Z"


# Most instants of an object are those that it had before: a condition keeps its time for as long as it holds.
@functools.lru_cache(maxsize=8192)
def parse_instant(text: str) -> datetime:
    """The UTC instant that an RFC 3339 text names, to the microsecond.

    Raises:
        ValueError: when it is not RFC 3339 with seconds and an offset, or no real date.
    """
    match = _RFC3339.fullmatch(text)
    if not match:
        message = "not an RFC 3339 instant with an offset, such as 2026-03-02T09:00:00Z"
        raise ValueError(message)
    year, month, day, hour, minute, second, fraction, sign, off_hour, off_minute = match.groups()
    # A leap second is a real RFC 3339 reading; civil time here has none, so it is the second after.
    leap = second == "60"
    local = datetime(
        int(year), int(month), int(day), int(hour), int(minute), 59 if leap else int(second), tzinfo=UTC
    )
    micros = int((fraction or "").ljust(6, "0")[:6])
    offset = timedelta()
    if sign:
        offset = timedelta(hours=int(off_hour), minutes=int(off_minute)) * (1 if sign == "+" else -1)
    try:
        return local + timedelta(microseconds=micros, seconds=int(leap)) - offset
    except OverflowError as error:
        message = "the instant is outside years 1 to 9999"
        raise ValueError(message) from error
