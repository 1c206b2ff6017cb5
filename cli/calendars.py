"""Somebody else's calendar, read and printed as a manifest."""

import re
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from fivespot.core.names import CALENDAR, CALENDAR_DAYS, CALENDAR_DURING, CALENDAR_SOURCE
from fivespot.core.text import counted, one_line

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from fivespot.adapters.calendars.exchanges import ExchangeCalendar
    from fivespot.adapters.calendars.ics import EventFile
    from fivespot.core.api.kinds import Kind
    from fivespot.core.calendar.derive import Calendar
    from fivespot.core.calendar.events import EventCalendar

DURING: Final = ("closed", "open")
"""What a schedule is while an event lasts."""
FIRST_YEAR: Final = 1970
LAST_YEAR: Final = 2199
_CLOCK_OR_DATE: Final = re.compile("[0-9]+[:-][0-9:/-]+")


def exchange_of(exchange: str, first: date, last: date) -> "ExchangeCalendar":
    """What an exchange is known to do from `first` to `last`, both included; see exchange_calendar."""
    from fivespot.adapters.calendars.exchanges import exchange_calendar  # noqa: PLC0415 - half a second

    return exchange_calendar(exchange, first, last)


def manifest_of_exchange(found: "ExchangeCalendar", name: str | None, namespace: str | None) -> str:
    """A CapitalMarketsSchedule as YAML, with its source and days."""
    from fivespot.core.api.kinds import CAPITAL_MARKETS  # noqa: PLC0415
    from fivespot.core.calendar.derive import spec_of  # noqa: PLC0415

    calendar = found.calendar
    document = _document(
        CAPITAL_MARKETS,
        name or re.sub("[^a-z0-9]+", "-", found.name.lower()).strip("-"),
        namespace,
        _made_from(found, calendar),
        spec_of(calendar),
    )
    sessions = sum(calendar.first <= day <= calendar.last for day in calendar.sessions)
    head = (
        f"# {found.name}, {calendar.first} to {calendar.last}: {counted(sessions, 'session')}, by {found.source}.\n"
        "# After the last day the week goes on without holidays: renew it before, and look at what changed.\n"
    )
    return head + _yaml(document)


def manifest_of_events(
    path: Path,
    first: date,
    last: date,
    name: str | None,
    namespace: str | None,
    *,
    timezone: str,
    during: str,
) -> str:
    """Overrides for a schedule of somebody's own or, under a name, a schedule of the events alone, as YAML.

    Raises:
        click.ClickException: no event touches the days from `first` to `last`.
    """
    from fivespot.core import zones  # noqa: PLC0415
    from fivespot.core.api.kinds import TIME_BASED  # noqa: PLC0415
    from fivespot.core.calendar.events import overrides_of, spec_of_events  # noqa: PLC0415

    found, calendar = events_of(path, zones.zone(timezone), first, last, during=during)
    if not calendar.taken():
        message = f"no event of {path} lies between {calendar.first} and {calendar.last}"
        raise click.ClickException(message)
    head = f"# {one_line(found.name)}, {calendar.first} to {calendar.last}, by the clock of {timezone}; {found.source}.\n"
    if found.cancelled:
        head += f"# Cancelled, and left out: {', '.join(found.cancelled)}.\n"
    if found.moments:
        head += f"# Without length, and left out: {', '.join(found.moments)}.\n"
    if name is None:
        head += f"# Put it into the spec of a schedule of the zone {timezone}.\n"
        return head + _yaml({"overrides": overrides_of(calendar)})
    otherwise = "closed" if calendar.active else "open"
    head += f"# After the last day it is {otherwise} for good: renew it before, and look at what changed.\n"
    document = _document(
        TIME_BASED,
        name,
        namespace,
        {**_made_from(found, calendar), CALENDAR_DURING: during},
        spec_of_events(calendar),
    )
    return head + _yaml(document)


def events_of(
    path: Path, zone: "ZoneInfo", first: date, last: date, *, during: str
) -> "tuple[EventFile, EventCalendar]":
    """What a file says from `first` to `last`, both included, as it is and as a schedule's calendar; see event_file."""
    from fivespot.adapters.calendars.ics import event_file  # noqa: PLC0415 - for those who ask
    from fivespot.core.calendar.events import EventCalendar  # noqa: PLC0415

    found = event_file(path, zone, first, last)
    calendar = EventCalendar(
        events=found.events, zone=zone, first=first, last=last, active=during == DURING[1]
    )
    return found, calendar


def _made_from(found: "ExchangeCalendar | EventFile", calendar: "Calendar | EventCalendar") -> dict[str, str]:
    """The annotations by which it is compared later."""
    return {
        CALENDAR: found.name,
        CALENDAR_SOURCE: found.source,
        CALENDAR_DAYS: f"{calendar.first}/{calendar.last}",
    }


def _document(
    kind: "Kind", name: str, namespace: str | None, annotations: dict[str, str], spec: dict[str, Any]
) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace is not None else {})}
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {**metadata, "annotations": annotations},
        "spec": spec,
    }


def _yaml(value: Any) -> str:
    import yaml  # noqa: PLC0415 - for those who print some

    class Dumper(yaml.SafeDumper):
        """Puts times and dates into quotes: not every reader of YAML takes them for text."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        style = '"' if _CLOCK_OR_DATE.fullmatch(value) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    return str(yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120))
