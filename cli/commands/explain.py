"""`5spot explain`: why a machine is up or down."""

from datetime import UTC, datetime

import click

from fivespot.cli.commands.simulate import verdict_text
from fivespot.cli.fleets import load_fleet, require_sound
from fivespot.cli.instants import INSTANT
from fivespot.cli.output import columns, echo_json
from fivespot.core.explain import Explanation, explain
from fivespot.core.instant import format_instant

_PREFIXES = ("sm/", "scheduledmachine/", "scheduledmachines/")


@click.command("explain")
@click.argument("machine", metavar="sm/NAME")
@click.option(
    "--file",
    "-f",
    "paths",
    multiple=True,
    required=True,
    metavar="PATH",
    help="Manifests; may be repeated, - is stdin.",
)
@click.option("--at", type=INSTANT, help="The instant.  [default: now]")
@click.option(
    "--output",
    "-o",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="Form of the answer.",
)
def command(machine: str, paths: tuple[str, ...], at: datetime | None, output: str) -> None:
    """Why is this machine up or down: the precedence, step by step, and what is being waited for.

    MACHINE is sm/NAME or sm/NAMESPACE/NAME.
    """
    fleet = load_fleet(paths)
    require_sound(fleet)
    name = next((machine[len(prefix) :] for prefix in _PREFIXES if machine.startswith(prefix)), machine)
    found = explain(fleet, name, at or datetime.now(UTC).replace(microsecond=0))
    if output == "json":
        echo_json(_as_json(found))
    else:
        _print(found)


def _print(found: Explanation) -> None:
    click.echo(
        f"{found.machine} at {format_instant(found.at)}: {_wanted(found)}, decided by {found.target.decider.value}"
    )
    click.echo()
    rows = []
    decided = False
    for step in found.steps:
        mark = "=>" if step.decides and not decided else "  "
        rows.append((mark, step.decider.value, step.text))
        decided = decided or step.decides
    for line in columns(rows, indent="  "):
        click.echo(line)
    click.echo()
    facts = [
        ("provider", f"{found.provider}: {verdict_text(found)}"),
        ("", found.verdict.message),
        ("held", _held(found)),
        ("phase", found.phase.value if found.phase is not None else "not stored yet"),
        (
            "next",
            format_instant(found.next_transition)
            if found.next_transition is not None
            else "no transition known",
        ),
        ("now", found.waiting or "nothing to do"),
    ]
    for line in columns(facts):
        click.echo(line)


def _wanted(found: Explanation) -> str:
    return (
        "should exist"
        if found.target.up
        else f"should not exist ({found.target.manner.value.lower()} removal)"
    )


def _held(found: Explanation) -> str:
    if found.held is None:
        return "nothing: no provider ever resolved"
    return f"{'active' if found.held else 'inactive'}, from {found.held_from or 'before'}"


def _as_json(found: Explanation) -> dict[str, object]:
    return {
        "machine": found.machine,
        "at": format_instant(found.at),
        "up": found.target.up,
        "decidedBy": found.target.decider.value,
        "manner": None if found.target.up else found.target.manner.value,
        "chain": [{"step": s.decider.value, "decides": s.decides, "text": s.text} for s in found.steps],
        "provider": found.provider,
        "verdict": verdict_text(found),
        "verdictMessage": found.verdict.message,
        "held": found.held,
        "heldFrom": found.held_from,
        "phase": found.phase.value if found.phase is not None else None,
        "nextTransition": format_instant(found.next_transition)
        if found.next_transition is not None
        else None,
        "waiting": found.waiting,
    }
