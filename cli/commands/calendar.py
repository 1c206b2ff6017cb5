"""`5spot calendar`: somebody else's calendar as a manifest, and whether the two have drifted apart."""

import re
from datetime import date
from pathlib import Path
from typing import Any, Final

import attrs
import click
from click.core import ParameterSource

from fivespot.cli.calendars import (
    DURING,
    FIRST_YEAR,
    LAST_YEAR,
    exchange_of,
    manifest_of_events,
    manifest_of_exchange,
)
from fivespot.cli.drift import compare_manifest
from fivespot.cli.instants import ZONE
from fivespot.cli.objects import NAMESPACE, OBJECT

_YEARS: Final = re.compile(r"([0-9]{4})(?:-([0-9]{4}))?")


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
        if not FIRST_YEAR <= first <= last <= LAST_YEAR:
            self.fail(f"{value!r} is not between {FIRST_YEAR} and {LAST_YEAR}", param, ctx)
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
    type=click.Choice(DURING),
    default=DURING[0],
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

    With --check, every schedule of a MANIFEST that was made of an exchange is compared with it as it is now; with --check and --ics,
    every one that was made of a file of that name.

    Exit status: 0 done, and nothing has drifted; 1 otherwise.
    """
    given = {name for name in ctx.params if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT}
    if check is not None:
        if given - {"check", "ics"}:
            message = (
                "--check compares with the source that the manifest names; leave the rest out, but for --ics"
            )
            raise click.UsageError(message)
        compare_manifest(check, ics)
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
        made = manifest_of_events(ics, *years.days, name, namespace, timezone=timezone, during=during)
        click.echo(made, nl=False)
        return
    if given & {"during", "timezone"}:
        message = "--during and --timezone are for --ics; an exchange has its own"
        raise click.UsageError(message)
    if exchange is None or years is None:
        missing = "EXCHANGE" if exchange is None else "--years"
        message = f"{missing} is missing: 5spot calendar XNYS --years 2026-2027"
        raise click.UsageError(message)
    click.echo(manifest_of_exchange(exchange_of(exchange, *years.days), name, namespace), nl=False)
