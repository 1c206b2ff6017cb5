"""`5spot simulate`: what would happen to these machines between two instants."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from fivespot.cli.fleets import load_fleet, paths_argument, require_sound
from fivespot.cli.groups import group_options
from fivespot.cli.instants import INSTANT, INSTANT_OR_SPAN, SPAN, ZONE
from fivespot.cli.output import clock, columns, echo_json, echo_yaml, hours, span
from fivespot.core.decision.phase import Phase
from fivespot.core.errors import InvalidSpec
from fivespot.core.explain import STORED, Answer, Explanation, answers, verdicts
from fivespot.core.instant import format_instant
from fivespot.core.simulate.pace import Pace
from fivespot.core.simulate.run import MachineStory, ProviderStory, Run, as_json, simulate
from fivespot.core.text import counted
from fivespot.core.zones import zone

if TYPE_CHECKING:
    from fivespot.core.api.allowed import AllowedGroups
    from fivespot.core.fleet import Fleet
    from fivespot.core.simulate.world import Change

_DEFAULT = Pace()
_OF_A_RUN = {
    "start": "--from",
    "end": "--to",
    "provision_delay": "--provision-delay",
    "join_delay": "--join-delay",
    "remove_delay": "--remove-delay",
}
"""Options that mean nothing beside --at."""


@click.command("simulate")
@paths_argument
@click.option("--from", "start", type=INSTANT, help="Where the run begins.  [default: now]")
@click.option(
    "--to",
    "end",
    type=INSTANT_OR_SPAN,
    default="7d",
    show_default=True,
    help="Where it ends, or how long it is.",
)
@click.option(
    "--at",
    type=INSTANT,
    help="No run: what is wanted of every machine, and what every provider says, at this instant, and until when.  "
    "[default: a run]",
)
@click.option("--display-tz", type=ZONE, help="Zone of the local times.  [default: each provider's own]")
@click.option(
    "--output",
    "-o",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
    help="Form of the answer.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    help="Only this machine, as NAME or NAMESPACE/NAME; may be repeated.  [default: all]",
)
@click.option(
    "--provision-delay", type=SPAN, default=_DEFAULT.provision, help="Created to Node there.  [default: 60s]"
)
@click.option("--join-delay", type=SPAN, default=_DEFAULT.join, help="Node there to Ready.  [default: 15s]")
@click.option("--remove-delay", type=SPAN, default=_DEFAULT.remove, help="Deleted to gone.  [default: 30s]")
@group_options
@click.pass_context
def command(
    ctx: click.Context,
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
    allowed: "AllowedGroups",
) -> None:
    """What would happen to these machines between two instants: every phase change with its cause.

    PATH is a file, a folder with all below it, or - for standard input: YAML or JSON, as kubectl reads it, also as
    `kubectl get sm,tbss,cms -A -o yaml` prints it; what is stored is then where the run begins. The code that decides
    is the one that runs in production.

    An INSTANT is RFC 3339 with an offset, such as 2026-03-02T09:00:00Z; a DURATION a number and one of s, m, h, d, w,
    such as 90s or 7d. The JSON form is described by docs/simulate.schema.json.

    Exit status 0 when it ran, 1 when a cluster would refuse something that was read (nothing is simulated then),
    2 for wrong usage.
    """
    _refuse_beside_at(ctx, at)
    begin = start or datetime.now(UTC).replace(microsecond=0)
    until = _end(begin, end)
    fleet = load_fleet(paths, allowed)
    require_sound(fleet, paths, "simulated")
    if only:
        fleet = _only(fleet, only)
    if at is not None:
        _print_verdicts(verdicts(fleet, at), answers(fleet, at), output, display_tz)
        return
    pace = Pace(provision=provision_delay, join=join_delay, remove=remove_delay)
    _print_run(simulate(fleet, start=begin, end=until, pace=pace), output, display_tz)


def _refuse_beside_at(ctx: click.Context, at: datetime | None) -> None:
    for name, option in _OF_A_RUN.items():
        if at is not None and ctx.get_parameter_source(name) is not ParameterSource.DEFAULT:
            message = f"{option} belongs to a run, and --at asks for none: leave one of them out"
            raise click.UsageError(message)


def _end(begin: datetime, end: datetime | timedelta) -> datetime:
    try:
        until = begin + end if isinstance(end, timedelta) else end
    except OverflowError:
        message = f"--to: {span(end) if isinstance(end, timedelta) else end} after --from is later than the year 9999"
        raise click.UsageError(message) from None
    if until <= begin:
        message = f"--to {format_instant(until)} must be after --from {format_instant(begin)}"
        raise click.UsageError(message)
    return until


def _only(fleet: "Fleet", names: tuple[str, ...]) -> "Fleet":
    try:
        return fleet.only(names)
    except InvalidSpec as error:
        raise click.BadParameter(f"{error.value!r}: {error.remedy}", param_hint="'--only'") from error


# A run


def _print_run(run: Run, output: str, display_tz: str | None) -> None:
    if output == "json":
        echo_json(as_json(run))
    elif output == "yaml":
        echo_yaml(as_json(run))
    else:
        click.echo("\n".join(_run_as_lines(run, display_tz)))


def _run_as_lines(run: Run, display_tz: str | None) -> list[str]:
    zones = {(story.kind, story.namespace, story.name): story.timezone for story in run.providers}
    lines: list[str] = []
    for story in run.machines:
        known = zones.get(story.provider) if story.provider else None
        lines += _story_as_lines(story, run.end, known, display_tz)
    if not run.machines:
        for provider in run.providers:
            lines += _answers_as_lines(provider, display_tz)
    total = sum(story.hours_active for story in run.machines)
    changes = sum(story.transitions for story in run.machines)
    lines.append(
        f"{counted(len(run.machines), 'machine')}, {counted(len(run.providers), 'provider')}, "
        f"{format_instant(run.start)} to {format_instant(run.end)}: "
        f"{hours(total)} up in total, {counted(changes, 'change')}"
    )
    return lines


def _story_as_lines(
    story: MachineStory, end: datetime, timezone: str | None, display_tz: str | None
) -> list[str]:
    named = f"{story.provider[0]}/{story.provider[2]}" if story.provider else "no provider"
    where = f"({timezone})" if timezone is not None else "(not among the documents)"
    local = zone(display_tz or timezone or "UTC")
    ends = [*(change.at for change in story.changes[1:]), end]
    rows = [
        (
            format_instant(change.at),
            clock(change.at, local),
            change.after.value if change.after is not None else "gone",
            span(until - change.at) + ("+" if until is end else ""),
            _why(change, named),
        )
        for change, until in zip(story.changes, ends, strict=True)
    ]
    up = f"{hours(story.hours_active)} up, {counted(story.transitions, 'change')}"
    return [
        f"{story.namespace}/{story.name}  {named} {where}  {up}",
        *columns([("UTC", f"LOCAL ({local.key})", "PHASE", "FOR", "WHY"), *rows], indent="  "),
        "",
    ]


def _why(change: "Change", provider: str) -> str:
    """The cause without what the line and the heading say already: the reason beside the phase, and the provider's name."""
    reason, _, sentence = change.cause.partition(": ")
    text = sentence if reason.isalnum() and change.after is not Phase.ERROR else change.cause
    if change.after is Phase.SHUTTING_DOWN:
        text = text.removeprefix("leaving the cluster: ")
    text = text.replace(f"{provider} says", "its provider says")
    return f"{text} [{change.verdict}]" if change.verdict.startswith("Unresolved") else text


def _answers_as_lines(story: ProviderStory, display_tz: str | None) -> list[str]:
    """What a provider says, where no machine asks."""
    local = zone(display_tz or story.timezone)
    rows = [
        (
            format_instant(interval.start),
            clock(interval.start, local),
            _SAYS[interval.active],
            span(interval.end - interval.start),
        )
        for interval in story.intervals
    ]
    return [
        f"{story.namespace}/{story.name}  {story.kind} ({story.timezone})",
        *columns([("UTC", f"LOCAL ({local.key})", "SAYS", "FOR"), *rows], indent="  "),
        "",
    ]


_SAYS = {True: "Active", False: "Inactive", None: "Unresolved"}


# One instant


def _print_verdicts(
    machines: tuple[Explanation, ...], providers: tuple[Answer, ...], output: str, display_tz: str | None
) -> None:
    if output != "table":
        at = (machines or providers)[0].at
        value = {
            "at": format_instant(at),
            "machines": [_machine_as_json(found) for found in machines],
            "providers": [_provider_as_json(found) for found in providers],
        }
        echo_json(value) if output == "json" else echo_yaml(value)
        return
    lines: list[str] = []
    if machines:
        lines += [*columns([_MACHINES, *(_machine_row(found, display_tz) for found in machines)]), ""]
    if providers:
        lines += [*columns([_PROVIDERS, *(_provider_row(found, display_tz) for found in providers)]), ""]
    click.echo("\n".join(lines[:-1]))


_UNTIL = ("UNTIL (UTC)", "UNTIL (LOCAL)")
_MACHINES = ("MACHINE", "WANTED", "DECIDED BY", "VERDICT", *_UNTIL, "WHY")
_PROVIDERS = ("PROVIDER", "KIND", "MACHINES", "DECIDED BY", "VERDICT", *_UNTIL, "WHY")


def _machine_row(found: Explanation, display_tz: str | None) -> tuple[str, ...]:
    return (
        found.machine,
        "up" if found.target.up else "down",
        found.target.decider.value,
        verdict_text(found),
        *_until(found.until, display_tz or found.timezone),
        found.target.why,
    )


def _provider_row(found: Answer, display_tz: str | None) -> tuple[str, ...]:
    how = "its status, as it stands here" if found.decided_by == STORED else f"its hours in {found.timezone}"
    return (
        f"{found.namespace}/{found.name}",
        found.kind,
        str(found.machines),
        found.decided_by,
        verdict_text(found),
        *_until(found.until, display_tz or found.timezone),
        how if found.verdict.resolved else found.verdict.message,
    )


def _until(at: datetime | None, timezone: str) -> tuple[str, str]:
    return (format_instant(at), clock(at, zone(timezone))) if at is not None else ("-", "-")


def verdict_text(found: Explanation | Answer) -> str:
    """The provider's answer in one word, with the reason when there is none."""
    verdict = found.verdict
    if verdict.active is None:
        return f"Unresolved({verdict.reason})"
    return "Active" if verdict.active else "Inactive"


def _machine_as_json(found: Explanation) -> dict[str, Any]:
    namespace, _, name = found.machine.partition("/")
    return {
        "namespace": namespace,
        "name": name,
        "up": found.target.up,
        "decidedBy": found.target.decider.value,
        "verdict": verdict_text(found),
        "until": _instant(found.until),
        "why": found.target.why,
    }


def _provider_as_json(found: Answer) -> dict[str, Any]:
    return {
        "kind": found.kind,
        "namespace": found.namespace,
        "name": found.name,
        "active": found.verdict.active,
        "decidedBy": found.decided_by,
        "verdict": verdict_text(found),
        "since": _instant(found.since),
        "until": _instant(found.until),
        "machines": found.machines,
    }


def _instant(at: datetime | None) -> str | None:
    return format_instant(at) if at is not None else None
