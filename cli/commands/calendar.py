"""`5spot calendar`: somebody else's calendar as a manifest, and whether the two have drifted apart."""

import re
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
import click
from click.core import ParameterSource

from fivespot.cli.instants import ZONE
from fivespot.cli.objects import NAMESPACE, OBJECT
from fivespot.cli.output import counted
from fivespot.core.names import CALENDAR, CALENDAR_DAYS, CALENDAR_DURING, CALENDAR_SOURCE

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from fivespot.adapters.calendars.exchanges import ExchangeCalendar
    from fivespot.adapters.calendars.ics import EventFile
    from fivespot.core.api.kinds import Kind
    from fivespot.core.calendar.derive import Difference
    from fivespot.core.calendar.events import EventCalendar
    from fivespot.core.fleet import Provider

_YEARS: Final = re.compile(r"([0-9]{4})(?:-([0-9]{4}))?")
_CLOCK_OR_DATE: Final = re.compile("[0-9]+[:-][0-9:/-]+")
_DURING: Final = ("closed", "open")
"""What a schedule is while an event lasts."""
_SHOWN: Final = 20
_FIRST_YEAR: Final = 1970
_LAST_YEAR: Final = 2199


@attrs.frozen
class Years:
    """Whole years, both included."""

    first: int
    last: int

    @property
    def days(self) -> tuple[date, date]:
        """The first and the last day."""
        return date(self.first, 1, 1), date(self.last, 12, 31)


class YearsType(click.ParamType[Years]):
    """`2026` or `2026-2027`."""

    name = "years"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Years:
        """Read it, or say what to write."""
        if isinstance(value, Years):
            return value
        match = _YEARS.fullmatch(str(value))
        if match is None:
            self.fail(f"{value!r} is no range of years; write 2026 or 2026-2027", param, ctx)
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            self.fail(f"{value!r} ends before it begins", param, ctx)
        if not _FIRST_YEAR <= first <= last <= _LAST_YEAR:
            self.fail(f"{value!r} is not between {_FIRST_YEAR} and {_LAST_YEAR}", param, ctx)
        return Years(first, last)


@click.command("calendar")
@click.argument("exchange", required=False, metavar="[EXCHANGE]")
@click.option(
    "--years",
    type=YearsType(),
    metavar="YEARS",
    help="2026, or 2026-2027.  [default: none, and needed without --check]",
)
@click.option(
    "--name",
    type=OBJECT,
    metavar="NAME",
    help="Name of the object.  [default: the exchange's, in small letters; none with --ics]",
)
@click.option(
    "--namespace",
    "-n",
    type=NAMESPACE,
    metavar="NAME",
    help="Namespace of the object.  [default: none is written]",
)
@click.option(
    "--ics",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Print the events of an iCalendar file, as overrides, or with --name as a schedule.  [default: an exchange]",
)
@click.option(
    "--during",
    type=click.Choice(_DURING),
    default=_DURING[0],
    show_default=True,
    help="With --ics: what the schedule is while an event lasts.",
)
@click.option(
    "--timezone",
    type=ZONE,
    default="UTC",
    show_default=True,
    help="With --ics: the schedule's zone, whose dates count. Times without a zone are read by its clock, unless the file names one.",
)
@click.option(
    "--check",
    type=click.Path(exists=True, allow_dash=True),
    metavar="MANIFEST",
    help="Compare a manifest that was made so with its source; with --ics, with that file.  [default: print one]",
)
@click.pass_context
def command(
    ctx: click.Context,
    exchange: str | None,
    years: Years | None,
    name: str | None,
    namespace: str | None,
    ics: Path | None,
    during: str,
    timezone: str,
    check: str | None,
) -> None:
    """A market's calendar as a CapitalMarketsSchedule: windows, holidays and short days, ready for review and Git.

    EXCHANGE is a name of the exchange_calendars package, such as XNYS, XLON or CMES; `pip install '5spot[exchanges]'` brings
    it. Source and version stand in the manifest. What the grammar cannot say is refused: the schedule that is printed opens
    and closes at exactly the source's instants.

    With --ics, the events of an iCalendar file (a change freeze, a lab's bookings) are printed as the `overrides` of a schedule,
    recurrences expanded: to be put into a manifest of your own. A day is the date to which a window belongs: of a night from 22:00 to
    06:00 the whole is closed on the day on which it begins. `pip install '5spot[ical]'` brings what it needs.

    With --ics and --name, a whole TimeBasedSpotSchedule that knows nothing but the events, closed or open to the minute while they
    last: to be combined with others by a CompositeSpotSchedule.

    With --check, every schedule of a MANIFEST that was made so is compared with its source as it is now.

    Exit status: 0 done, and nothing has drifted; 1 otherwise.
    """
    if check is not None:
        left_out = ("exchange", "years", "name", "namespace", "during", "timezone")
        if any(ctx.get_parameter_source(each) is not ParameterSource.DEFAULT for each in left_out):
            message = (
                "--check compares with the source that the manifest names; leave the rest out, but for --ics"
            )
            raise click.UsageError(message)
        _check(check, ics)
        return
    if ics is not None:
        if exchange:
            message = "--ics takes the place of an exchange; leave one of them out"
            raise click.UsageError(message)
        if namespace is not None and name is None:
            message = "--namespace is for a whole schedule; with --ics that asks for --name"
            raise click.UsageError(message)
        if years is None:
            message = "--years is missing: 5spot calendar --ics FILE --years 2026"
            raise click.UsageError(message)
        click.echo(_of_events(ics, years, name, namespace, timezone=timezone, during=during), nl=False)
        return
    if exchange is None or years is None:
        missing = "EXCHANGE" if exchange is None else "--years"
        message = f"{missing} is missing: 5spot calendar XNYS --years 2026-2027"
        raise click.UsageError(message)
    click.echo(_of_exchange(_calendar(exchange, *years.days), name, namespace), nl=False)


def _calendar(exchange: str, first: date, last: date) -> "ExchangeCalendar":
    from fivespot.adapters.calendars.exchanges import exchange_calendar  # noqa: PLC0415 - half a second

    return exchange_calendar(exchange, first, last)


def _of_exchange(found: "ExchangeCalendar", name: str | None, namespace: str | None) -> str:
    from fivespot.core.api.kinds import CAPITAL_MARKETS  # noqa: PLC0415
    from fivespot.core.calendar.derive import spec_of  # noqa: PLC0415

    calendar = found.calendar
    document = _document(
        CAPITAL_MARKETS,
        name or re.sub("[^a-z0-9]+", "-", found.name.lower()).strip("-"),
        namespace,
        {
            CALENDAR: found.name,
            CALENDAR_SOURCE: found.source,
            CALENDAR_DAYS: f"{calendar.first}/{calendar.last}",
        },
        spec_of(calendar),
    )
    sessions = sum(calendar.first <= day <= calendar.last for day in calendar.sessions)
    head = (
        f"# {found.name}, {calendar.first} to {calendar.last}: {counted(sessions, 'session')}, by {found.source}.\n"
        "# After the last day the week goes on without holidays: renew it before, and look at what changed.\n"
    )
    return head + _yaml(document)


def _of_events(
    path: Path, years: Years, name: str | None, namespace: str | None, *, timezone: str, during: str
) -> str:
    """Overrides for a schedule of somebody's own or, under a name, a schedule of the events alone."""
    from fivespot.core import zones  # noqa: PLC0415
    from fivespot.core.api.kinds import TIME_BASED  # noqa: PLC0415
    from fivespot.core.calendar.events import overrides_of, spec_of_events  # noqa: PLC0415

    found, calendar = _events(path, zones.zone(timezone), *years.days, during=during)
    if not calendar.taken():
        message = f"no event of {path} lies between {calendar.first} and {calendar.last}"
        raise click.ClickException(message)
    head = (
        f"# {found.name}, {calendar.first} to {calendar.last}, by the clock of {timezone}; {found.source}.\n"
    )
    if found.cancelled:
        head += f"# Cancelled, and left out: {', '.join(found.cancelled)}.\n".replace("\r", " ")
    if name is None:
        head += f"# Put it into the spec of a schedule of the zone {timezone}.\n"
        return head + _yaml({"overrides": overrides_of(calendar)})
    otherwise = "closed" if calendar.active else "open"
    head += f"# After the last day it is {otherwise} for good: renew it before, and look at what changed.\n"
    document = _document(
        TIME_BASED,
        name,
        namespace,
        {
            CALENDAR: found.name,
            CALENDAR_SOURCE: found.source,
            CALENDAR_DAYS: f"{calendar.first}/{calendar.last}",
            CALENDAR_DURING: during,
        },
        spec_of_events(calendar),
    )
    return head + _yaml(document)


def _events(
    path: Path, zone: "ZoneInfo", first: date, last: date, *, during: str
) -> "tuple[EventFile, EventCalendar]":
    from fivespot.adapters.calendars.ics import event_file  # noqa: PLC0415 - for those who ask
    from fivespot.core.calendar.events import EventCalendar  # noqa: PLC0415

    found = event_file(path, zone, first, last)
    calendar = EventCalendar(
        events=found.events, zone=zone, first=first, last=last, active=during == _DURING[1]
    )
    return found, calendar


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


# Checking


def _check(path: str, ics: Path | None) -> None:
    from fivespot.cli.fleets import load_fleet, require_sound  # noqa: PLC0415
    from fivespot.core.api.kinds import SCHEDULE_KINDS  # noqa: PLC0415

    fleet = load_fleet([path])
    require_sound(fleet, [path], "compared")
    schedules = [provider for provider in fleet.providers if provider.kind in SCHEDULE_KINDS]
    made = [provider for provider in schedules if CALENDAR in _annotations(provider)]
    if not made:
        message = f"no schedule in {path} has the annotation {CALENDAR}; only what this command has printed can be compared"
        raise click.ClickException(message)
    files = {_annotations(each)[CALENDAR] for each in made if CALENDAR_DURING in _annotations(each)}
    if ics is None and files:
        message = f"made from {', '.join(sorted(files))}: say with --ics where such a file is now"
        raise click.UsageError(message)
    if ics is not None:
        made = [
            each
            for each in made
            if CALENDAR_DURING in _annotations(each) and _annotations(each)[CALENDAR] == ics.name
        ]
        if not made:
            message = f"no schedule in {path} was made from a file {ics.name}" + (
                f", but from {', '.join(sorted(files))}" if files else ""
            )
            raise click.ClickException(message)
    drifted = [_compare(provider, ics) for provider in made]
    if any(drifted):
        raise click.exceptions.Exit(1)


def _annotations(provider: "Provider") -> dict[str, str]:
    found: dict[str, str] = (provider.body.get("metadata") or {}).get("annotations") or {}
    return found


def _compare(provider: "Provider", ics: Path | None) -> bool:
    """Print how a schedule and its source differ; returns whether they do."""
    from fivespot.core.errors import InvalidSpec  # noqa: PLC0415

    annotations, shown = _annotations(provider), f"{provider.kind} {provider.namespace}/{provider.name}"
    days = annotations.get(CALENDAR_DAYS, "")
    try:
        first, last = (date.fromisoformat(part) for part in days.split("/"))
    except ValueError as error:
        field = f"{shown}: metadata.annotations[{CALENDAR_DAYS}]"
        raise InvalidSpec(field, days, "write 2026-01-01/2027-12-31") from error
    if ics is None:
        source, differences = _drift_of_exchange(provider, first, last)
    else:
        source, differences = _drift_of_events(provider, ics, first, last)
    if not differences:
        click.echo(f"{shown}: as {source}, {first} to {last}")
        return False
    click.echo(f"{shown}: {counted(len(differences), 'difference')} to {source}:")
    for difference in differences[:_SHOWN]:
        click.echo(f"  {difference}, and should not be")
    if len(differences) > _SHOWN:
        click.echo(f"  and {len(differences) - _SHOWN} more")
    return True


def _drift_of_exchange(provider: "Provider", first: date, last: date) -> "tuple[str, list[Difference]]":
    from fivespot.core.calendar.derive import drift  # noqa: PLC0415

    found = _calendar(_annotations(provider)[CALENDAR], first, last)
    return f"{found.name} by {found.source}", drift(provider.kind, provider.body["spec"], found.calendar)


def _drift_of_events(
    provider: "Provider", ics: Path, first: date, last: date
) -> "tuple[str, list[Difference]]":
    from fivespot.core import zones  # noqa: PLC0415
    from fivespot.core.calendar.events import events_drift  # noqa: PLC0415
    from fivespot.core.errors import InvalidSpec  # noqa: PLC0415
    from fivespot.core.schedule import compile_schedule  # noqa: PLC0415

    spec, during = provider.body["spec"], _annotations(provider)[CALENDAR_DURING]
    if during not in _DURING:
        field = (
            f"{provider.kind} {provider.namespace}/{provider.name}: metadata.annotations[{CALENDAR_DURING}]"
        )
        raise InvalidSpec(field, during, f"write one of {', '.join(_DURING)}")
    zone = zones.zone(compile_schedule(provider.kind, spec).timezone)
    found, calendar = _events(ics, zone, first, last, during=during)
    return f"{found.name} ({found.source})", events_drift(provider.kind, spec, calendar)
