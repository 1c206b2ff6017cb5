"""Events out of iCalendar files (RFC 5545), recurrences expanded by the packages that the extra `5spot[ical]` brings."""

import hashlib
import re
import warnings
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

import attrs

from fivespot.adapters.calendars.guesses import periods, refuse_guesses
from fivespot.core.calendar.events import CalendarEvent
from fivespot.core.errors import FivespotError, InvalidSpec
from fivespot.core.text import one_line

_FOLD: Final = re.compile(rb"\r?\n[ \t]")
"""A long line goes on after this (RFC 5545, section 3.1), in the middle of a character if need be: so before it is text."""
_PACKAGES: Final = ("icalendar", "recurring-ical-events")
_DAY: Final = timedelta(days=1)


class NoICalendar(FivespotError):  # noqa: N818 - a fact about the installation
    """The packages are not installed."""


@attrs.frozen(kw_only=True)
class EventFile:
    """What a file says about a range of days, and where that came from.

    Attributes:
        name: of the file, without its folder.
        source: which bytes they were, and what read them.
        events: the occurrences that touch the range, in order.
        cancelled: names of those that are marked as cancelled, and left out.
        moments: names of those that have no length, and say nothing.
    """

    name: str
    source: str
    events: tuple[CalendarEvent, ...]
    cancelled: tuple[str, ...]
    moments: tuple[str, ...]


def event_file(path: Path, zone: ZoneInfo, first: date, last: date) -> EventFile:
    """Every occurrence that touches the days from `first` to `last`, both included.

    Times without a zone are read by the clock of `zone`. Where the file names a zone for itself (X-WR-TIMEZONE) they are read
    by that one, and series in UTC keep its clock. Events that are marked as leaving a person's time free do count: so are
    whole days by default in the large programs.

    Raises:
        NoICalendar: the packages are not installed.
        InvalidSpec: it is no iCalendar file, or something in it cannot be read, or only be guessed.
    """
    try:
        import icalendar  # noqa: PLC0415 - an extra
        import recurring_ical_events  # type: ignore[import-untyped]  # noqa: PLC0415
    except ImportError as error:
        message = (
            "iCalendar files need the packages icalendar and recurring-ical-events: pip install '5spot[ical]'"
        )
        raise NoICalendar(message) from error
    # One day more on either side, for zones that are a day apart, and another for what is counted from there.
    begin, end = first - 2 * _DAY, last + 3 * _DAY
    try:
        body = path.read_bytes()
        # Zones that an earlier file has described are forgotten with it.
        icalendar.use_zoneinfo()  # type: ignore[no-untyped-call]
        with warnings.catch_warnings():
            # That a zone's name was understood though it is written in the manner of one vendor.
            warnings.simplefilter("ignore")
            calendars = icalendar.Calendar.from_ical(_FOLD.sub(b"", body), multiple=True)
        refuse_guesses(calendars, begin, end)
        # An occurrence is looked for by the length of its event, but may have one of its own.
        longest = max((period for calendar in calendars for period in periods(calendar)), default=_DAY)
        found = sorted(
            (
                _Occurrence(
                    event=CalendarEvent(
                        name=one_line(str(occurrence.get("SUMMARY", ""))),
                        start=_placed(occurrence.start, zone),
                        end=_placed(occurrence.end, zone),
                    ),
                    cancelled=str(occurrence.get("STATUS", "")).upper() == "CANCELLED",
                )
                for calendar in calendars
                for occurrence in recurring_ical_events.of(calendar).between(begin - longest, end)
            ),
            key=lambda each: (str(each.event.start), str(each.event.end), each.event.name),
        )
    except OSError as error:
        raise InvalidSpec("FILE", str(path), error.strerror or str(error)) from error
    # What the packages let through for a file that is not as RFC 5545 says, or that speaks of the year 10000.
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise InvalidSpec("FILE", str(path), f"it cannot be read as iCalendar: {error}") from error
    if not calendars:
        raise InvalidSpec("FILE", str(path), "there is no VCALENDAR in it")
    found = [each for each in found if each.event.touches(first, last, zone)]
    read_by = " and ".join(f"{package} {version(package)}" for package in _PACKAGES)
    return EventFile(
        name=path.name,
        source=f"sha256:{hashlib.sha256(body).hexdigest()}, read by {read_by}",
        events=tuple(each.event for each in found if not each.cancelled and not each.event.empty),
        cancelled=_names(each.event for each in found if each.cancelled),
        moments=_names(each.event for each in found if not each.cancelled and each.event.empty),
    )


@attrs.frozen(kw_only=True)
class _Occurrence:
    event: CalendarEvent
    cancelled: bool


def _names(events: Iterable[CalendarEvent]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(event.name or str(event.start) for event in events))


def _placed(at: date, zone: ZoneInfo) -> date:
    if not isinstance(at, datetime):
        return at
    return (at if at.tzinfo is not None else at.replace(tzinfo=zone)).astimezone(UTC)
