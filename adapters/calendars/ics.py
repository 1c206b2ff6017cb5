"""Events out of iCalendar files (RFC 5545), recurrences expanded by the packages that the extra `5spot[ical]` brings."""

import re
import warnings
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

from fivespot.core.calendar.events import CalendarEvent
from fivespot.core.errors import FivespotError, InvalidSpec

_FOLD: Final = re.compile(rb"\r?\n[ \t]")
"""A long line goes on after this (RFC 5545, section 3.1), in the middle of a character if need be: so before it is text."""


class NoICalendar(FivespotError):  # noqa: N818 - a fact about the installation
    """The packages are not installed."""


def events_of(path: Path, zone: ZoneInfo, first: date, last: date) -> Iterator[CalendarEvent]:
    """Every occurrence that touches the days from `first` to `last`, both included.

    Times without a zone are read by the clock of `zone`. Events that are cancelled, and those marked as leaving their time
    free, do not count.

    Raises:
        NoICalendar: the packages are not installed.
        InvalidSpec: it is no iCalendar file, or something in it cannot be read.
    """
    try:
        import recurring_ical_events  # type: ignore[import-untyped]  # noqa: PLC0415 - an extra
        from icalendar import Calendar  # noqa: PLC0415
    except ImportError as error:
        message = (
            "iCalendar files need the packages icalendar and recurring-ical-events: pip install '5spot[ical]'"
        )
        raise NoICalendar(message) from error
    try:
        with warnings.catch_warnings():
            # That a zone's name was understood though it is written in the manner of one vendor.
            warnings.simplefilter("ignore")
            calendars = Calendar.from_ical(_FOLD.sub(b"", path.read_bytes()), multiple=True)
        for event in (event for calendar in calendars for event in calendar.walk("VEVENT")):
            _refuse_unknown_zones(event)
        # One day more on either side: a day here is not one there.
        begin, end = first - timedelta(days=1), last + timedelta(days=2)
        occurrences = [
            (occurrence, occurrence.start, occurrence.end)
            for calendar in calendars
            for occurrence in recurring_ical_events.of(calendar).between(begin, end)
        ]
    except OSError as error:
        raise InvalidSpec("FILE", str(path), error.strerror or str(error)) from error
    # What the packages let through for a file that is not as RFC 5545 says.
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise InvalidSpec("FILE", str(path), f"it cannot be read as iCalendar: {error}") from error
    if not calendars:
        raise InvalidSpec("FILE", str(path), "there is no VCALENDAR in it")
    for occurrence, start, end in occurrences:
        marks = (str(occurrence.get("STATUS", "")), str(occurrence.get("TRANSP", "")))
        if marks[0].upper() == "CANCELLED" or marks[1].upper() == "TRANSPARENT":
            continue
        name = str(occurrence.get("SUMMARY", "")).strip()
        yield CalendarEvent(name=name, start=_placed(start, zone), end=_placed(end, zone))


def _refuse_unknown_zones(event: Any) -> None:
    """A zone that is neither known nor described in the file; the package takes such times for ones without a zone.

    Raises:
        ValueError: there is one.
    """
    for name in ("DTSTART", "DTEND", "RECURRENCE-ID"):
        found = event.get(name)
        zone = found.params.get("TZID") if found is not None else None
        if zone and isinstance(found.dt, datetime) and found.dt.tzinfo is None:
            message = f"{name} is in the time zone {zone!r}, which is not known; export it with its VTIMEZONE, or in UTC"
            raise ValueError(message)


def _placed(at: date, zone: ZoneInfo) -> date:
    if not isinstance(at, datetime):
        return at
    return (at if at.tzinfo is not None else at.replace(tzinfo=zone)).astimezone(UTC)
