"""`5spot override`: keep one machine in or out for a while, whatever its schedule says."""

import asyncio
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NoReturn

import attrs
import click

from fivespot.cli.instants import INSTANT_OR_SPAN
from fivespot.cli.kubeconfigs import acting_as_option, check_kubeconfig, cluster_options
from fivespot.cli.objects import MACHINE_NAME, NAMESPACE
from fivespot.cli.output import echo_manifest
from fivespot.cli.overrides import Until, told
from fivespot.core.api.kinds import SCHEDULED_MACHINE
from fivespot.core.doctor.finding import Level
from fivespot.core.errors import FivespotError
from fivespot.core.instant import format_instant
from fivespot.core.override.objects import Manifest
from fivespot.core.override.plan import Clear, Override, OverrideRefused, Plan, Wish, plan
from fivespot.core.override.situation import Situation
from fivespot.core.override.steps import Await, Delete, rights

if TYPE_CHECKING:
    from fivespot.adapters.kube.gateway import Gateway

_PART: Final = (
    "# The part of the machine that changes: merge it, since to apply it alone would take away the rest."
)


def _until(ctx: click.Context, param: click.Parameter, value: str | None) -> Until | None:
    return Until(value, INSTANT_OR_SPAN.convert(value, param, ctx)) if value is not None else None


@click.command("override")
@click.argument("machine", type=MACHINE_NAME, metavar="sm/NAME")
@click.argument("state", required=False, type=click.Choice(["on", "off"]), metavar="[on|off]")
@click.option(
    "--until",
    callback=_until,
    metavar="INSTANT|DURATION",
    help="When it lets go by itself: 2026-03-02T18:00:00Z, or 2h from now.  [default: not before --clear]",
)
@click.option("--clear", is_flag=True, help="Take the override away again.  [default: no]")
@click.option(
    "--namespace",
    "-n",
    type=NAMESPACE,
    metavar="NAME",
    help="Namespace of the machine.  [default: the context's own]",
)
@cluster_options
@acting_as_option
@click.option(
    "--dry-run", is_flag=True, help="Print what would be applied, and change nothing.  [default: no]"
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.  [default: no]")
@click.option(
    "--even-if-reverted",
    is_flag=True,
    help="Go on where a tool such as Argo CD or Flux would undo it.  [default: no]",
)
def command(
    machine: str,
    state: str | None,
    until: Until | None,
    clear: bool,
    namespace: str | None,
    kubeconfig: str | None,
    context: str | None,
    acting_as: str | None,
    dry_run: bool,
    yes: bool,
    even_if_reverted: bool,
) -> None:
    """Keep a machine in the cluster (on) or out of it (off), whatever its schedule says, until an instant.

    It writes two schedules, both called NAME-override: a ManualSpotSchedule, and a CompositeSpotSchedule that asks it first
    and the machine's own schedule when it has let go; then the machine refers to the latter. All of it is printed before.
    A second override changes the first. With --clear the machine gets its own schedule back, and the two are deleted.

    5spot override sm/desk-7 on --until 2026-03-02T18:00:00+01:00

    5spot override sm/desk-7 --clear

    Where Git seems to own the machine, the change would be undone: nothing is applied, and what is printed is to be committed.

    Exit status: 0 done, or nothing to do; 1 otherwise.
    """
    wish = _wish(state, until, clear=clear)
    check_kubeconfig(kubeconfig, context)
    # Not asyncio.run: while a person is asked no loop may catch Ctrl-C.
    with asyncio.Runner() as runner:
        gateway = runner.run(_connect(kubeconfig, context, acting_as))
        try:
            session = _Session(runner, gateway, machine, namespace or gateway.namespace)
            session.run(wish, until, dry_run=dry_run, yes=yes, even_if_reverted=even_if_reverted)
        finally:
            runner.run(gateway.close())


def _wish(state: str | None, until: Until | None, *, clear: bool) -> Wish:
    if clear:
        if state is not None or until is not None:
            message = "--clear takes an override away; leave on, off and --until out"
            raise click.UsageError(message)
        return Clear()
    if state is None:
        message = "on or off is missing (or --clear): 5spot override sm/NAME on --until 2h"
        raise click.UsageError(message)
    return Override(active=state == "on", until=until.after(datetime.now(UTC)) if until is not None else None)


async def _connect(kubeconfig: str | None, context: str | None, acting_as: str | None) -> "Gateway":
    from fivespot.adapters.kube.gateway import Gateway  # noqa: PLC0415 - not for --help

    return await Gateway.connect(kubeconfig=kubeconfig, context=context, acting_as=acting_as)


@attrs.frozen
class _Session:
    """One wish about one machine: look, tell, ask, do."""

    runner: asyncio.Runner
    gateway: "Gateway"
    machine: str
    namespace: str

    def run(
        self, wish: Wish, until: Until | None, *, dry_run: bool, yes: bool, even_if_reverted: bool
    ) -> None:
        """All of it; raises click's exceptions and FivespotError with what a person has to know."""
        seen = self.runner.run(self._look())
        made = plan(seen, wish)
        if made.reverted and not even_if_reverted:
            _refuse_for_git(made)
        _print(made.documents, only=dry_run)
        _say(*told(seen, wish, made, until))
        if dry_run or not made.steps:
            return
        if not yes:
            _ask()
        if isinstance(wish, Override) and wish.until is not None and wish.until <= datetime.now(UTC):
            message = f"{format_instant(wish.until)} has passed meanwhile; nothing was changed"
            raise click.ClickException(message)
        self._require_rights(made)
        self._perform(made, wish)
        if isinstance(wish, Override):
            _say(f"done; to take it away: 5spot override sm/{self.machine} --clear -n {self.namespace}")
        else:
            _say("done")

    async def _look(self) -> Situation:
        from fivespot.adapters.kube.errors import NotFound  # noqa: PLC0415 - it is loaded by now
        from fivespot.adapters.kube.overriding import look  # noqa: PLC0415

        try:
            return await look(self.gateway, self.namespace, self.machine)
        except NotFound as error:
            message = f"{error} To install it: 5spot crds | kubectl apply -f -"
            raise click.ClickException(message) from error

    def _require_rights(self, made: Plan) -> None:
        """Ask for all of them before the first step: one that is missing in the middle would leave a half."""
        from fivespot.adapters.kube.doctor.asking import permissions  # noqa: PLC0415 - it is loaded by now

        found = self.runner.run(permissions(self.gateway, rights(made.steps), "permissions"))
        missing = [finding for finding in found if finding.level is Level.FAILED]
        if missing:
            lines = "".join(f"\n  {finding.message}\n    fix: {finding.fix}" for finding in missing)
            raise click.ClickException(f"nothing was changed, since not all of it is allowed:{lines}")

    def _perform(self, made: Plan, wish: Wish) -> None:
        from fivespot.adapters.kube.overriding import PATIENCE, perform  # noqa: PLC0415 - it is loaded by now

        until = wish.until if isinstance(wish, Override) else None
        done = 0
        try:
            for step in made.steps:
                # Past its end it says what is wished no more.
                left = (until - datetime.now(UTC)).total_seconds() if until is not None else PATIENCE
                self.runner.run(perform(self.gateway, step, patience=min(PATIENCE, max(left, 1.0))))
                if not isinstance(step, Await):
                    done += 1
                    _say(f"{step}: done")
        except (FivespotError, KeyboardInterrupt) as error:
            # Of a request without an answer nobody knows whether it was done.
            known = isinstance(error, FivespotError) and not getattr(error, "outcome_unknown", False)
            if known and not done:
                _say("nothing was changed")
            else:
                back = ", and --clear takes it back" if isinstance(wish, Override) else ""
                _say(f"what is done stands; the same command goes on from there{back}")
            raise


def _say(*lines: str) -> None:
    """Words are for people, and YAML for standard output."""
    for line in lines:
        click.echo(line, err=True)


def _print(documents: Iterable[Manifest], *, only: bool) -> None:
    try:
        for document in documents:
            echo_manifest(document, _PART if document["kind"] == SCHEDULED_MACHINE.name else "")
    except BrokenPipeError as error:
        if only:
            raise
        # Where printing is all, whoever has stopped to read has seen enough; here nothing has been done yet.
        message = "nothing was changed: nobody reads what would be applied"
        raise OSError(message) from error


def _ask() -> None:
    if not sys.stdin.isatty():
        message = (
            "nothing was changed: there is no terminal to ask on; --yes applies it, --dry-run only prints it"
        )
        raise click.ClickException(message)
    try:
        agreed = click.confirm("Apply this?", err=True)
    except click.Abort:
        _say("\nnothing was changed")
        raise
    if not agreed:
        message = "nothing was changed"
        raise click.ClickException(message)


def _refuse_for_git(made: Plan) -> NoReturn:
    _print(made.for_git, only=False)
    traces = "".join(f"\n  {trace}" for trace in dict.fromkeys(map(str, made.reverted)))
    gone = [str(step.target) for step in made.steps if isinstance(step, Delete)]
    commit = "commit what is printed on standard output" if made.for_git else "change it in Git"
    away = f", and take away {' and '.join(gone)}" if gone else ""
    message = f"nothing was changed, since it would be undone:{traces}\n{commit}{away}; or go on nevertheless with --even-if-reverted"
    raise OverrideRefused(message)
