"""Events out of iCalendar files (RFC 5545), recurrences expanded by the packages that the extra `5spot[ical]` brings."""

import hashlib
import re
import warnings
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import attrs

from fivespot.core.calendar.events import CalendarEvent
from fivespot.core.errors import FivespotError, InvalidSpec
from fivespot.core.text import one_line

_FOLD: Final = re.compile(rb"\r?\n[ \t]")
"""A long line goes on after this (RFC 5545, section 3.1), in the middle of a character if need be: so before it is text."""
_PACKAGES: Final = ("icalendar", "recurring-ical-events")


class NoICalendar(FivespotError):  # noqa: N818 - a fact about the installation
    """The packages are not installed."""


@attrs.frozen(kw_only=True)
class EventFile:
    """What a file says about a range of days, and where that came from.

    Attributes:
        name: of the file, without its folder.
        source: which bytes they were, and what read them.
        events: the occurrences that touch the range.
        cancelled: names of those that are marked as cancelled, and left out.
    """

    name: str
    source: str
    events: tuple[CalendarEvent, ...]
    cancelled: tuple[str, ...]


def event_file(path: Path, zone: ZoneInfo, first: date, last: date) -> EventFile:
    """Every occurrence that touches the days from `first` to `last`, both included.

    Times without a zone are read by the clock of `zone`, or of the zone that the file names for itself (X-WR-TIMEZONE). Events
    that are marked as leaving a person's time free do count: so are whole days by default in the large programs.

    Raises:
        NoICalendar: the packages are not installed.
        InvalidSpec: it is no iCalendar file, or something in it cannot be read, or only be guessed.
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
        body = path.read_bytes()
        with warnings.catch_warnings():
            # That a zone's name was understood though it is written in the manner of one vendor.
            warnings.simplefilter("ignore")
            calendars = Calendar.from_ical(_FOLD.sub(b"", body), multiple=True)
        for calendar in calendars:
            _refuse_guesses(calendar.walk("VEVENT"))
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
    events, cancelled = list[CalendarEvent](), dict[str, None]()
    for occurrence, start, end in occurrences:
        name = one_line(str(occurrence.get("SUMMARY", "")))
        if str(occurrence.get("STATUS", "")).upper() == "CANCELLED":
            cancelled[name or str(start)] = None
        else:
            events.append(CalendarEvent(name=name, start=_placed(start, zone), end=_placed(end, zone)))
    read_by = " and ".join(f"{package} {version(package)}" for package in _PACKAGES)
    return EventFile(
        name=path.name,
        source=f"sha256:{hashlib.sha256(body).hexdigest()}, read by {read_by}",
        events=tuple(events),
        cancelled=tuple(cancelled),
    )


def _refuse_guesses(events: list[Any]) -> None:
    """What the packages would take for something else, or leave out, without a word.

    Raises:
        ValueError: there is such a thing.
    """
    seen: dict[tuple[str, ...], bytes] = {}
    for event in events:
        shown = one_line(str(event.get("SUMMARY") or event.get("UID") or "an event without a name"))
        if "EXRULE" in event:
            # RFC 5545 has taken it out, so nothing expands it.
            message = f"{shown}: EXRULE is not read; export the days that are left out as EXDATE"
            raise ValueError(message)
        for name in ("DTSTART", "DTEND", "RECURRENCE-ID", "EXDATE", "RDATE"):
            for zone, at in _times(event, name):
                if zone and isinstance(at, datetime) and at.tzinfo is None:
                    message = f"{shown}: {name} is in the time zone {zone!r}, which is not known; export it with its VTIMEZONE, or in UTC"
                    raise ValueError(message)
        _refuse_backwards(shown, event)
        if "UID" in event:
            key = tuple(
                event[name].to_ical().decode() if name in event else ""
                for name in ("UID", "RECURRENCE-ID", "SEQUENCE")
            )
            if seen.setdefault(key, event.to_ical()) != event.to_ical():
                message = f"{shown}: two different events have the UID {key[0]}, and only one would count"
                raise ValueError(message)


def _refuse_backwards(shown: str, event: Any) -> None:
    """RFC 5545, section 3.8.2.2: the same kind as the start, and later.

    Raises:
        ValueError: it is not.
    """
    if "DTSTART" not in event or "DTEND" not in event:
        return
    start, end = event["DTSTART"].dt, event["DTEND"].dt
    if isinstance(start, datetime) is not isinstance(end, datetime):
        message = f"{shown}: DTSTART and DTEND have to be both dates, or both times"
        raise ValueError(message)
    if isinstance(start, datetime) and (start.tzinfo is None) is not (end.tzinfo is None):
        message = f"{shown}: DTSTART and DTEND have to be both in a zone, or both in none"
        raise ValueError(message)
    if end < start:
        message = f"{shown}: DTEND {end} is before DTSTART {start}"
        raise ValueError(message)


def _times(event: Any, name: str) -> Iterator[tuple[str | None, date]]:
    """The dates and times of a property, and the zone that its line names; starts of periods."""
    found = event.get(name, [])
    for line in found if isinstance(found, list) else [found]:
        for each in getattr(line, "dts", [line]):
            yield line.params.get("TZID"), each.dt[0] if isinstance(each.dt, tuple) else each.dt


def _placed(at: date, zone: ZoneInfo) -> date:
    if not isinstance(at, datetime):
        return at
    return (at if at.tzinfo is not None else at.replace(tzinfo=zone)).astimezone(UTC)
