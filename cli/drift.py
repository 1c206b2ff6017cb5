"""Whether schedules that were made from somebody's calendar still say what their sources say."""

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from fivespot.cli.calendars import DURING, FIRST_YEAR, LAST_YEAR, events_of, exchange_of
from fivespot.core.names import CALENDAR, CALENDAR_DAYS, CALENDAR_DURING
from fivespot.core.text import counted

if TYPE_CHECKING:
    from fivespot.core.calendar.derive import Difference
    from fivespot.core.fleet import Provider

_SHOWN: Final = 20


def compare_manifest(path: str, ics: Path | None) -> None:
    """Compare every schedule of a manifest that was made so with its source, and print how they differ.

    Args:
        path: of the manifest.
        ics: the file whose events the schedules were made from that are to be compared; None for those of exchanges.

    Raises:
        click.exceptions.Exit: with 1, when one has drifted.
        click.ClickException: there is nothing to compare.
    """
    from fivespot.cli.fleets import load_fleet, require_sound  # noqa: PLC0415
    from fivespot.core.api.kinds import SCHEDULE_KINDS  # noqa: PLC0415

    fleet = load_fleet([path])
    require_sound(fleet, [path], "compared")
    schedules = [provider for provider in fleet.providers if provider.kind in SCHEDULE_KINDS]
    made = [provider for provider in schedules if CALENDAR in _annotations(provider)]
    if not made:
        message = f"no schedule in {path} has the annotation {CALENDAR}; only what this command has printed can be compared"
        raise click.ClickException(message)
    chosen = [provider for provider in made if _file(provider) == (ics.name if ics is not None else None)]
    others = sorted(
        {_file(provider) or _annotations(provider)[CALENDAR] for provider in made if provider not in chosen}
    )
    if not chosen:
        if ics is None:
            message = f"made from {', '.join(others)}: say with --ics where such a file is now"
            raise click.UsageError(message)
        message = f"no schedule in {path} was made from a file {ics.name}, but from {', '.join(others)}"
        raise click.ClickException(message)
    if others:
        remedy = "say with --ics where such a file is now" if ics is None else "compare them by themselves"
        click.echo(f"Not compared: what was made from {', '.join(others)}; {remedy}.", err=True)
    drifted = [_compare(provider, ics) for provider in chosen]
    if any(drifted):
        raise click.exceptions.Exit(1)


def _annotations(provider: "Provider") -> dict[str, str]:
    found: dict[str, str] = (provider.body.get("metadata") or {}).get("annotations") or {}
    return found


def _file(provider: "Provider") -> str | None:
    """The name of the file whose events it was made from; None when it was an exchange."""
    annotations = _annotations(provider)
    return annotations[CALENDAR] if CALENDAR_DURING in annotations else None


def _field(provider: "Provider", annotation: str) -> str:
    return f"{provider.label}: metadata.annotations[{annotation}]"


def _days(provider: "Provider") -> tuple[date, date]:
    """The first and the last day that it was made for."""
    from fivespot.core.errors import InvalidSpec  # noqa: PLC0415

    text = _annotations(provider).get(CALENDAR_DAYS, "")
    first, _, last = text.partition("/")
    try:
        days = date.fromisoformat(first), date.fromisoformat(last)
        if days[0] <= days[1] and days[0].year >= FIRST_YEAR and days[1].year <= LAST_YEAR:
            return days
    except ValueError:
        pass
    remedy = f"write 2026-01-01/2027-12-31, in order, between {FIRST_YEAR} and {LAST_YEAR}"
    raise InvalidSpec(_field(provider, CALENDAR_DAYS), text, remedy)


def _compare(provider: "Provider", ics: Path | None) -> bool:
    """Print how a schedule and its source differ; returns whether they do."""
    first, last = _days(provider)
    if ics is None:
        source, differences = _drift_of_exchange(provider, first, last)
    else:
        source, differences = _drift_of_events(provider, ics, first, last)
    if not differences:
        click.echo(f"{provider.label}: as {source}, {first} to {last}")
        return False
    click.echo(f"{provider.label}: {counted(len(differences), 'difference')} to {source}:")
    for difference in differences[:_SHOWN]:
        click.echo(f"  {difference}, and should not be")
    if len(differences) > _SHOWN:
        click.echo(f"  and {len(differences) - _SHOWN} more")
    return True


def _drift_of_exchange(provider: "Provider", first: date, last: date) -> "tuple[str, list[Difference]]":
    from fivespot.core.calendar.derive import drift  # noqa: PLC0415

    found = exchange_of(_annotations(provider)[CALENDAR], first, last)
    return f"{found.name} by {found.source}", drift(provider.kind, provider.body["spec"], found.calendar)


def _drift_of_events(
    provider: "Provider", ics: Path, first: date, last: date
) -> "tuple[str, list[Difference]]":
    from fivespot.core import zones  # noqa: PLC0415
    from fivespot.core.calendar.events import events_drift  # noqa: PLC0415
    from fivespot.core.errors import InvalidSpec  # noqa: PLC0415
    from fivespot.core.schedule import compile_schedule  # noqa: PLC0415

    spec, during = provider.body["spec"], _annotations(provider)[CALENDAR_DURING]
    if during not in DURING:
        raise InvalidSpec(_field(provider, CALENDAR_DURING), during, f"write one of {', '.join(DURING)}")
    zone = zones.zone(compile_schedule(provider.kind, spec).timezone)
    found, calendar = events_of(ics, zone, first, last, during=during)
    return f"{found.name} ({found.source})", events_drift(provider.kind, spec, calendar)
