"""`5spot explain`: why a machine is up or down."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from fivespot.cli.commands.simulate import verdict_text
from fivespot.cli.fleets import load_fleet, require_sound
from fivespot.cli.groups import group_options
from fivespot.cli.instants import INSTANT, ZONE
from fivespot.cli.objects import is_machine_kind
from fivespot.cli.output import clock, columns, echo_json, span
from fivespot.core.api.codec import encode
from fivespot.core.api.scheduled_machine import Reclaim, ReclaimState, Shutdown
from fivespot.core.decision.target import Decider
from fivespot.core.errors import InvalidSpec
from fivespot.core.explain import Explanation, explain
from fivespot.core.fleet import Fleet
from fivespot.core.instant import format_instant
from fivespot.core.text import counted
from fivespot.core.zones import zone

if TYPE_CHECKING:
    from fivespot.core.api.allowed import AllowedGroups

_PARTS = 3
"""Of sm/NAMESPACE/NAME."""


@click.command("explain")
@click.argument("machine", metavar="sm/NAME")
@click.option(
    "--file",
    "-f",
    "paths",
    multiple=True,
    required=True,
    metavar="PATH",
    help="Manifests, or what `kubectl get sm,tbss,cms -A -o yaml` printed; may be repeated, - is standard input.",
)
@click.option(
    "--at", type=INSTANT, help="The instant; answers are computed for it.  [default: now, as it is stored]"
)
@click.option("--display-tz", type=ZONE, help="Zone of the local times.  [default: the provider's]")
@click.option(
    "--output",
    "-o",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="Form of the answer.",
)
@group_options
def command(
    machine: str,
    paths: tuple[str, ...],
    at: datetime | None,
    display_tz: str | None,
    output: str,
    allowed: "AllowedGroups",
) -> None:
    """Why is this machine up or down: the precedence, step by step, and what is being waited for.

    MACHINE is sm/NAME, or sm/NAMESPACE/NAME where several namespaces have one of that name.

    Without --at, a status in the files is taken for the present: what the provider published and what the machine's
    controller last said. Schedules without a status, and every schedule with --at, are computed.
    """
    fleet = load_fleet(paths, allowed)
    require_sound(fleet, paths, "explained")
    found = _explained(fleet, machine, at)
    if output == "json":
        echo_json(_as_json(found))
    else:
        click.echo("\n".join(_as_lines(found, display_tz or found.timezone)))


def _explained(fleet: Fleet, machine: str, at: datetime | None) -> Explanation:
    kind, slash, name = machine.partition("/")
    parts = machine.count("/") + 1
    if slash and is_machine_kind(kind):
        wanted = name
    elif parts == _PARTS or (slash and not fleet.called(machine)):
        raise click.BadParameter(f"{machine!r}: write sm/NAME or sm/NAMESPACE/NAME", param_hint="'sm/NAME'")
    else:
        wanted = machine
    now = at or datetime.now(UTC).replace(microsecond=0)
    try:
        return explain(fleet, wanted, now, stored=at is None)
    except InvalidSpec as error:
        raise click.BadParameter(f"{error.value!r}: {error.remedy}", param_hint="'sm/NAME'") from error


def _as_lines(found: Explanation, timezone: str) -> Iterator[str]:
    local = zone(timezone)

    def instant(at: datetime) -> str:
        at = at.replace(microsecond=0)
        away = at - found.at
        far = f"in {span(away)}" if at >= found.at else f"{span(-away)} ago"
        return f"{format_instant(at)} ({clock(at, local)}), {far}"

    yield f"{found.machine} should be {'up' if found.target.up else 'down'}: {found.target.why}"
    yield ""
    facts = [
        ("at", f"{format_instant(found.at)} ({clock(found.at, local)}, {local.key})"),
        ("phase", _phase(found)),
        ("provider", _provider(found)),
        ("", f"since {instant(found.since)}" if found.since is not None else ""),
        ("held", _held(found)),
        ("next", _next(found, instant(found.until) if found.until is not None else None)),
        ("controller", found.waiting or "has nothing to do"),
        *_removal(found.stored.shutdown, instant),
        *_reclaim(found.stored.reclaim, instant),
    ]
    yield from columns([fact for fact in facts if fact[1]], indent="  ")
    yield ""
    yield "  The first of these that applies decides:"
    rows = []
    decided = False
    for step in found.steps:
        mark = "=>" if step.decides and not decided else "  "
        rows.append((mark, step.decider.value, step.text))
        decided = decided or step.decides
    yield from columns(rows, indent="  ")


def _phase(found: Explanation) -> str:
    return f"{found.phase.value}, as it is stored" if found.phase is not None else "none is stored"


def _provider(found: Explanation) -> str:
    verdict = found.verdict
    if not found.provider:
        return verdict.message
    said = f"{found.provider}: {verdict_text(found)}"
    if not verdict.resolved:
        return f"{said}: {verdict.message}"
    return f"{said}, {'computed for this instant' if found.computed else 'as its status says'}"


def _held(found: Explanation) -> str:
    if found.held is None:
        return "nothing: no answer is stored"
    answer = f"{'active' if found.held else 'inactive'}, from {found.held_from or 'before'}"
    return f"{answer}; it counts now" if found.target.decider is Decider.HELD else answer


def _next(found: Explanation, instant: str | None) -> str:
    """What changes the answer, and when."""
    if instant is not None:
        return f"{'down' if found.target.up else 'up'} {instant}"
    provider = found.provider or "the provider"
    return {
        Decider.DELETED: "nothing: it is being deleted",
        Decider.KILL_SWITCH: "when somebody sets spec.killSwitch to false",
        Decider.RECLAIM: "when somebody releases it",
        Decider.DISABLED: "when somebody sets spec.enabled to true",
        Decider.CLUSTER_DELETING: "nothing: its Cluster is being deleted",
        Decider.PROVIDER: f"{provider} names no next change",
        Decider.HELD: f"when {provider} can be read again",
        Decider.NEVER_RESOLVED: f"when {provider} can be read",
    }[found.target.decider]


def _removal(shutdown: Shutdown | None, instant: Callable[[datetime], str]) -> Iterator[tuple[str, str]]:
    if shutdown is None:
        return
    begun = (
        f", since {instant(shutdown.started_at)}" if shutdown.started_at is not None else ", not begun yet"
    )
    yield "removal", f"{shutdown.manner.value}{begun}"
    if shutdown.drained_at is not None:
        yield "", f"drained {instant(shutdown.drained_at)}"
    elif shutdown.drain_deadline is not None:
        yield "", f"drains until {instant(shutdown.drain_deadline)}"
    if shutdown.deadline is not None:
        yield "", f"goes on in any case {instant(shutdown.deadline)}"
    if shutdown.remaining_pods:
        yield "", f"{counted(shutdown.remaining_pods, 'pod')} left"
    for protected in shutdown.blocked_by:
        yield "", f"protected: {protected}"


def _reclaim(reclaim: Reclaim | None, instant: Callable[[datetime], str]) -> Iterator[tuple[str, str]]:
    if reclaim is None or reclaim.state is None:
        return
    state = "in progress" if reclaim.state is ReclaimState.IN_PROGRESS else "held out"
    yield "reclaim", f"{state}: {reclaim.reason or 'no reason given'}"
    if reclaim.observed_at is not None:
        yield "", f"noticed {instant(reclaim.observed_at)}"


def _as_json(found: Explanation) -> dict[str, object]:
    shutdown, reclaim = found.stored.shutdown, found.stored.reclaim
    return {
        "machine": found.machine,
        "at": format_instant(found.at),
        "up": found.target.up,
        "decidedBy": found.target.decider.value,
        "why": found.target.why,
        "until": _instant(found.until),
        "manner": None if found.target.up else found.target.manner.value,
        "chain": [{"step": s.decider.value, "decides": s.decides, "text": s.text} for s in found.steps],
        "provider": found.provider,
        "verdict": verdict_text(found),
        "verdictMessage": found.verdict.message,
        "verdictSince": _instant(found.since),
        "verdictComputed": found.computed,
        "nextTransition": _instant(found.next_transition),
        "held": found.held,
        "heldFrom": found.held_from,
        "phase": found.phase.value if found.phase is not None else None,
        "waiting": found.waiting,
        "shutdown": encode(shutdown) if shutdown is not None else None,
        "reclaim": encode(reclaim) if reclaim is not None else None,
    }


def _instant(at: datetime | None) -> str | None:
    return format_instant(at) if at is not None else None
