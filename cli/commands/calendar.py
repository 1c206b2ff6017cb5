"""`5spot calendar`: somebody else's calendar as a manifest, and whether the two have drifted apart."""

import re
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
import click

from fivespot.cli.instants import ZONE
from fivespot.cli.output import counted
from fivespot.core.names import CALENDAR, CALENDAR_DAYS, CALENDAR_SOURCE

if TYPE_CHECKING:
    from fivespot.adapters.calendars.exchanges import ExchangeCalendar
    from fivespot.core.fleet import Provider

_YEARS: Final = re.compile(r"([0-9]{4})(?:-([0-9]{4}))?")
_CLOCK_OR_DATE: Final = re.compile("[0-9]+[:-][0-9:/-]+")
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
    "--name", metavar="NAME", help="Name of the object.  [default: the exchange's, in small letters]"
)
@click.option(
    "--namespace", "-n", metavar="NAME", help="Namespace of the object.  [default: none is written]"
)
@click.option(
    "--ics",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Print the events of an iCalendar file as overrides.  [default: an exchange]",
)
@click.option(
    "--during",
    type=click.Choice(["closed", "open"]),
    default="closed",
    show_default=True,
    help="With --ics: what the schedule is while an event lasts.",
)
@click.option(
    "--timezone",
    type=ZONE,
    default="UTC",
    show_default=True,
    help="With --ics: the schedule's zone, whose dates count and whose clock times without a zone are read by.",
)
@click.option(
    "--check",
    type=click.Path(exists=True, allow_dash=True),
    metavar="MANIFEST",
    help="Compare a manifest that was made so with its source.  [default: print one]",
)
def command(
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

    With --check, every schedule of a MANIFEST that was made so is compared with its source as it is installed now.

    Exit status: 0 done, and nothing has drifted; 1 otherwise.
    """
    if check is not None:
        if exchange or years or ics or name or namespace:
            message = "--check compares with the source that the manifest names; leave the rest out"
            raise click.UsageError(message)
        _check(check)
        return
    if ics is not None and (exchange or name or namespace):
        message = "--ics prints a part of a schedule, by no exchange and with no name"
        raise click.UsageError(message)
    if ics is not None:
        if years is None:
            message = "--years is missing: 5spot calendar --ics FILE --years 2026"
            raise click.UsageError(message)
        click.echo(_overrides(ics, *years.days, timezone=timezone, active=during == "open"), nl=False)
        return
    if exchange is None or years is None:
        missing = "EXCHANGE" if exchange is None else "--years"
        message = f"{missing} is missing: 5spot calendar XNYS --years 2026-2027"
        raise click.UsageError(message)
    click.echo(_manifest(_calendar(exchange, *years.days), name, namespace), nl=False)


def _calendar(exchange: str, first: date, last: date) -> "ExchangeCalendar":
    from fivespot.adapters.calendars.exchanges import exchange_calendar  # noqa: PLC0415 - half a second

    return exchange_calendar(exchange, first, last)


def _manifest(found: "ExchangeCalendar", name: str | None, namespace: str | None) -> str:
    from fivespot.core.api.kinds import CAPITAL_MARKETS  # noqa: PLC0415
    from fivespot.core.calendar.derive import spec_of  # noqa: PLC0415

    calendar = found.calendar
    metadata: dict[str, Any] = {"name": name or re.sub("[^a-z0-9]+", "-", found.name.lower()).strip("-")}
    if namespace is not None:
        metadata["namespace"] = namespace
    metadata["annotations"] = {
        CALENDAR: found.name,
        CALENDAR_SOURCE: found.source,
        CALENDAR_DAYS: f"{calendar.first}/{calendar.last}",
    }
    document = {
        "apiVersion": CAPITAL_MARKETS.api_version,
        "kind": CAPITAL_MARKETS.name,
        "metadata": metadata,
        "spec": spec_of(calendar),
    }
    sessions = sum(calendar.first <= day <= calendar.last for day in calendar.sessions)
    head = (
        f"# {found.name}, {calendar.first} to {calendar.last}: {counted(sessions, 'session')}, by {found.source}.\n"
        "# After the last day the week goes on without holidays: renew it before, and look at what changed.\n"
    )
    return head + _yaml(document)


def _overrides(path: Path, first: date, last: date, *, timezone: str, active: bool) -> str:
    from fivespot.adapters.calendars.ics import events_of  # noqa: PLC0415 - for those who ask
    from fivespot.core import zones  # noqa: PLC0415
    from fivespot.core.calendar.events import overrides_of  # noqa: PLC0415

    zone = zones.zone(timezone)
    found = overrides_of(events_of(path, zone, first, last), zone, first, last, active=active)
    if not found:
        message = f"no event of {path} lies between {first} and {last}"
        raise click.ClickException(message)
    head = f"# {path.name}, {first} to {last}, by the clock of {timezone}; put it into the spec of a schedule of that zone.\n"
    return head + _yaml({"overrides": found})


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


def _check(path: str) -> None:
    from fivespot.cli.fleets import load_fleet, require_sound  # noqa: PLC0415
    from fivespot.core.api.kinds import SCHEDULE_KINDS  # noqa: PLC0415

    fleet = load_fleet([path])
    require_sound(fleet, [path], "compared")
    schedules = [provider for provider in fleet.providers if provider.kind in SCHEDULE_KINDS]
    made = [provider for provider in schedules if CALENDAR in _annotations(provider)]
    if not made:
        message = f"no schedule in {path} has the annotation {CALENDAR}; only what this command has printed can be compared"
        raise click.ClickException(message)
    drifted = [_compare(provider) for provider in made]
    if any(drifted):
        raise click.exceptions.Exit(1)


def _annotations(provider: "Provider") -> dict[str, str]:
    found: dict[str, str] = (provider.body.get("metadata") or {}).get("annotations") or {}
    return found


def _compare(provider: "Provider") -> bool:
    """Print how a schedule and its source differ; returns whether they do."""
    from fivespot.core.calendar.derive import drift  # noqa: PLC0415
    from fivespot.core.errors import InvalidSpec  # noqa: PLC0415

    annotations, shown = _annotations(provider), f"{provider.kind} {provider.namespace}/{provider.name}"
    days = annotations.get(CALENDAR_DAYS, "")
    try:
        first, last = (date.fromisoformat(part) for part in days.split("/"))
    except ValueError as error:
        field = f"{shown}: metadata.annotations[{CALENDAR_DAYS}]"
        raise InvalidSpec(field, days, "write 2026-01-01/2027-12-31") from error
    found = _calendar(annotations[CALENDAR], first, last)
    differences = list(drift(provider.kind, provider.body["spec"], found.calendar))
    if not differences:
        click.echo(f"{shown}: as {found.name} by {found.source}, {first} to {last}")
        return False
    click.echo(f"{shown}: {counted(len(differences), 'difference')} to {found.name} by {found.source}:")
    for difference in differences[:_SHOWN]:
        click.echo(f"  {difference}, and should not be")
    if len(differences) > _SHOWN:
        click.echo(f"  and {len(differences) - _SHOWN} more")
    return True
