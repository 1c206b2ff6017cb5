"""What the iCalendar packages would take for something else, or leave out, without a word: it is refused, by the event's name.

What lies wholly outside of the days of interest, and does not come again, is nobody's business.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

from fivespot.core import zones
from fivespot.core.text import one_line

_WITH_ZONES: Final = ("DTSTART", "DTEND", "RECURRENCE-ID", "EXDATE", "RDATE")
_ONCE: Final = ("DTSTART", "DTEND", "DURATION", "RECURRENCE-ID")
_TIMES: Final = (*_WITH_ZONES, "DURATION", "RRULE")
_MEANING: Final = (*_TIMES, "STATUS", "SUMMARY")
"""What makes two events different; not when they were exported, or when somebody wants to be reminded."""
_DATE: Final = "a date"
_EARLIEST: Final = 1000
_LONGEST: Final = timedelta(days=365_000)


def refuse_guesses(calendars: Sequence[Any], begin: date, end: date) -> None:
    """Look through the calendars of one file, as icalendar has parsed them.

    Args:
        calendars: the VCALENDARs.
        begin: the first day of interest.
        end: the day after the last.

    Raises:
        ValueError: there is something that could only be guessed.
    """
    _refuse_two_zones(calendars)
    for calendar in calendars:
        if (home := calendar.get("X-WR-TIMEZONE")) is not None and str(home) not in zones.names():
            message = f"X-WR-TIMEZONE is {str(home)!r}, which is no IANA name; correct it, or take the line out and say --timezone"
            raise ValueError(message)
        seen: dict[tuple[str, str, int], Any] = {}
        for event in calendar.walk("VEVENT"):
            shown = one_line(str(event.get("SUMMARY") or event.get("UID") or "an event without a name"))
            problem = next(_problems(event, seen, begin, end), None)
            if problem is not None:
                message = f"{shown}: {problem}"
                raise ValueError(message)


def periods(calendar: Any) -> Iterator[timedelta]:
    """How long the occurrences are that have a length of their own (RDATE with periods)."""
    for event in calendar.walk("VEVENT"):
        for _, start, end in _times(event, "RDATE"):
            if isinstance(end, timedelta):
                yield end
            elif isinstance(start, datetime) and isinstance(end, datetime):
                yield end - start


def _refuse_two_zones(calendars: Sequence[Any]) -> None:
    """Programs call zones alike that are not: `Customized Time Zone`. A file that was put together of two has both."""
    described: dict[str, bytes] = {}
    for calendar in calendars:
        for zone in calendar.walk("VTIMEZONE"):
            name, text = str(zone.get("TZID")), zone.to_ical()
            if described.setdefault(name, text) != text:
                message = f"two different zones are called {name!r}; read the calendars from a file each"
                raise ValueError(message)


def _problems(event: Any, seen: dict[tuple[str, str, int], Any], begin: date, end: date) -> Iterator[str]:
    if "DTSTART" not in event:
        yield "it has no DTSTART"
        return
    broken = [f"{name} cannot be read: {why}" for name, why in event.errors if name in _TIMES]
    several = [f"it has more than one {name}" for name in _ONCE if isinstance(event.get(name), list)]
    if broken or several:
        yield from (*broken, *several)
        return
    if not _matters(event, begin, end):
        return
    if "EXRULE" in event:
        # RFC 5545 has taken it out, so nothing expands it.
        yield "EXRULE is not read; export the days that are left out as EXDATE"
    for name in _WITH_ZONES:
        for zone, at, _ in _times(event, name):
            if zone and isinstance(at, datetime) and at.tzinfo is None:
                yield f"{name} is in the time zone {zone!r}, which is not known; export it with its VTIMEZONE, or in UTC"
    yield from _rules(event)
    yield from _length(event)
    if "UID" in event:
        key = (str(event["UID"]), _instant(event.get("RECURRENCE-ID")), int(event.get("SEQUENCE", 0)))
        before = seen.setdefault(key, event)
        if any(before.get(name) != event.get(name) for name in _MEANING):
            yield f"two different events have the UID {key[0]}, and only one would count"


def _matters(event: Any, begin: date, end: date) -> bool:
    """Whether it may touch the days of interest; a series may, wherever it begins, and so may the change of one."""
    if any(name in event for name in ("RRULE", "RDATE", "RECURRENCE-ID", "DURATION")):
        return True
    days = [_day(event[name].dt) for name in ("DTSTART", "DTEND") if name in event]
    return min(days) < end and max(days) >= begin


def _rules(event: Any) -> Iterator[str]:
    # RFC 5545, section 3.3.10: of the same kind as the start, and in UTC where that has a zone.
    wanted = _kind(event["DTSTART"].dt)
    for rule in _lines(event, "RRULE"):
        if "FREQ" not in rule:
            yield "its RRULE cannot be read: it has no FREQ"
        for until in rule.get("UNTIL", []):
            if wanted == _DATE and isinstance(until, datetime) and until.time() == time():
                continue  # some programs have no other way to write a date
            if _kind(until) != wanted:
                yield f"its series ends with UNTIL {until}; as its DTSTART is, that has to be {wanted}"


def _kind(at: date) -> str:
    if not isinstance(at, datetime):
        return _DATE
    return "a time without a zone" if at.tzinfo is None else "a time in UTC"


def _length(event: Any) -> Iterator[str]:
    """RFC 5545, sections 3.6.1, 3.8.2.2 and 3.8.2.5: one of both, the end of the same kind as the start, and not before it."""
    start, lasts = event["DTSTART"].dt, timedelta()
    timed = isinstance(start, datetime)
    if "DURATION" in event:
        lasts = event["DURATION"].dt
        if "DTEND" in event:
            yield "it has both DTEND and DURATION"
        if lasts < timedelta():
            yield f"its DURATION is {lasts}"
        if not timed and lasts % timedelta(days=1):
            yield f"its DTSTART is a date, and its DURATION {lasts}, which are no whole days"
    elif "DTEND" in event:
        end = event["DTEND"].dt
        if timed is not isinstance(end, datetime):
            yield "DTSTART and DTEND have to be both dates, or both times"
            return
        if timed and (start.tzinfo is None) is not (end.tzinfo is None):
            yield "DTSTART and DTEND have to be both in a zone, or both in none"
            return
        lasts = end - start
        if end < start:
            yield f"DTEND {end} is before DTSTART {start}"
    if start.year < _EARLIEST or lasts > _LONGEST:
        # The packages count back from the days of interest by this much, and there is no year 0.
        yield f"it begins in the year {start.year} and lasts {lasts.days} days; write dates that are meant"


def _times(event: Any, name: str) -> Iterator[tuple[str | None, date, date | timedelta | None]]:
    """The dates and times of a property: the zone that its line names, the start, and the end or length of a period."""
    for line in _lines(event, name):
        for each in getattr(line, "dts", [line]):
            start, end = each.dt if isinstance(each.dt, tuple) else (each.dt, None)
            yield line.params.get("TZID"), start, end


def _lines(event: Any, name: str) -> list[Any]:
    """The values of a property, which may be there more than once."""
    found = event.get(name, [])
    return found if isinstance(found, list) else [found]


def _instant(found: Any) -> str:
    """The same for two ways to write one instant."""
    at = found.dt if found is not None else ""
    return str(at.astimezone(UTC) if isinstance(at, datetime) and at.tzinfo is not None else at)


def _day(at: date) -> date:
    return at.date() if isinstance(at, datetime) else at
