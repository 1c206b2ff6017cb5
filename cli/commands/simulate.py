"""`5spot simulate`: what would happen to these machines between two instants."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from fivespot.cli.fleets import load_fleet, paths_argument, require_sound
from fivespot.cli.instants import INSTANT, INSTANT_OR_SPAN, SPAN, ZONE
from fivespot.cli.output import clock, columns, echo_json, echo_yaml, hours
from fivespot.core.explain import Explanation, verdicts
from fivespot.core.instant import format_instant
from fivespot.core.simulate.pace import Pace
from fivespot.core.simulate.run import MachineStory, Run, as_json, simulate
from fivespot.core.zones import zone

if TYPE_CHECKING:
    from fivespot.core.fleet import Fleet

_WEEK = timedelta(days=7)
_DEFAULT = Pace()


@click.command("simulate")
@paths_argument
@click.option("--from", "start", type=INSTANT, help="Where the run begins (RFC 3339).  [default: now]")
@click.option(
    "--to",
    "end",
    type=INSTANT_OR_SPAN,
    default="7d",
    show_default=True,
    help="Where it ends, or how long it is.",
)
@click.option("--at", type=INSTANT, help="No run: the verdict on every machine at this instant.")
@click.option("--display-tz", type=ZONE, help="Zone of the local times.  [default: the provider's]")
@click.option(
    "--output",
    "-o",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
    help="Form of the answer.",
)
@click.option("--only", multiple=True, metavar="NAME", help="Only this machine; may be repeated.")
@click.option(
    "--provision-delay", type=SPAN, default=_DEFAULT.provision, help="Created to Node there.  [default: 60s]"
)
@click.option("--join-delay", type=SPAN, default=_DEFAULT.join, help="Node there to Ready.  [default: 15s]")
@click.option("--remove-delay", type=SPAN, default=_DEFAULT.remove, help="Deleted to gone.  [default: 30s]")
def command(
    paths: tuple[str, ...],
    start: datetime | None,
    end: datetime | timedelta,
    at: datetime | None,
    display_tz: str | None,
    output: str,
    only: tuple[str, ...],
    provision_delay: timedelta,
    join_delay: timedelta,
    remove_delay: timedelta,
) -> None:
    """What would happen to these machines between two instants: every phase change with its cause.

    PATH is a file, a folder, or - for standard input. The same code decides as in production.
    """
    fleet = load_fleet(paths)
    require_sound(fleet)
    if only:
        fleet = fleet.only(only)
    if at is not None:
        _print_verdicts(verdicts(fleet, at), output, display_tz)
        return
    begin = start or datetime.now(UTC).replace(microsecond=0)
    until = begin + end if isinstance(end, timedelta) else end
    if until <= begin:
        message = f"--to {format_instant(until)} must be after --from {format_instant(begin)}"
        raise click.UsageError(message)
    pace = Pace(provision=provision_delay, join=join_delay, remove=remove_delay)
    run = simulate(fleet, start=begin, end=until, pace=pace)
    _print_run(run, fleet, output, display_tz)


def _print_run(run: Run, fleet: "Fleet", output: str, display_tz: str | None) -> None:
    if output == "json":
        echo_json(as_json(run))
    elif output == "yaml":
        echo_yaml(as_json(run))
    else:
        zones = {(story.kind, story.namespace, story.name): story.timezone for story in run.providers}
        for story in run.machines:
            _print_story(story, display_tz or zones.get(story.provider or ("", "", ""), "UTC"))
        total = sum(story.hours_active for story in run.machines)
        changes = sum(story.transitions for story in run.machines)
        click.echo(
            f"{len(run.machines)} machines, {len(fleet.providers)} providers, "
            f"{format_instant(run.start)} to {format_instant(run.end)}: {hours(total)} up, {changes} changes"
        )


def _print_story(story: MachineStory, timezone: str) -> None:
    provider = f"{story.provider[0]}/{story.provider[2]}" if story.provider else "no provider"
    click.echo(
        f"{story.namespace}/{story.name}  {provider} ({timezone})  "
        f"{hours(story.hours_active)} up, {story.transitions} changes"
    )
    rows = [
        (
            format_instant(change.at),
            clock(change.at, zone(timezone)),
            change.after.value if change.after is not None else "gone",
            change.cause,
        )
        for change in story.changes
    ]
    for line in columns(rows, indent="  "):
        click.echo(line)
    click.echo()


def _print_verdicts(found: tuple[Explanation, ...], output: str, display_tz: str | None) -> None:
    if output != "table":
        value = [_as_json(explanation) for explanation in found]
        echo_json(value) if output == "json" else echo_yaml(value)
        return
    local = zone(display_tz or "UTC")
    head = ("MACHINE", "WANTED", "DECIDED BY", "VERDICT", "UNTIL", "WHY")
    rows = [
        (
            explanation.machine,
            "up" if explanation.target.up else "down",
            explanation.target.decider.value,
            verdict_text(explanation),
            clock(explanation.next_transition, local) if explanation.next_transition else "-",
            explanation.target.why,
        )
        for explanation in found
    ]
    for line in columns([head, *rows]):
        click.echo(line)


def verdict_text(explanation: Explanation) -> str:
    """The provider's answer in one word, with the reason when there is none."""
    verdict = explanation.verdict
    if verdict.active is None:
        return f"Unresolved({verdict.reason})"
    return "Active" if verdict.active else "Inactive"


def _as_json(explanation: Explanation) -> dict[str, Any]:
    until = explanation.next_transition
    return {
        "machine": explanation.machine,
        "at": format_instant(explanation.at),
        "up": explanation.target.up,
        "decidedBy": explanation.target.decider.value,
        "verdict": verdict_text(explanation),
        "until": format_instant(until) if until is not None else None,
        "why": explanation.target.why,
    }
