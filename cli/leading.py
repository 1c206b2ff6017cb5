"""How a controller process leads or stands by: its options, and the order in which it begins and ends."""

import asyncio
import functools
import logging
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import attrs
import click

from fivespot.cli.serving import ReportsChecks
from fivespot.core.errors import InvalidSpec
from fivespot.core.names import SYSTEM_NAMESPACE

if TYPE_CHECKING:
    from fivespot.adapters.kube.electing import Timing
    from fivespot.adapters.kube.elector import Elector
    from fivespot.adapters.kube.gateway import Gateway
    from fivespot.adapters.telemetry.metrics import Metrics
    from fivespot.cli.serving import Process

_LOG = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])
FINISH_SECONDS = 5.0
"""What is in hand when the process is asked to end gets so long before it is abandoned."""


class Controller(ReportsChecks, Protocol):
    """What works for as long as this process leads."""

    async def run(self, won: Callable[[], Awaitable[object]]) -> None:
        """Keep the caches warm, await `won()`, and work until `stop` is called."""

    def stop(self) -> None:
        """Take no more work: `run` returns when what is in hand is done."""


@attrs.frozen(kw_only=True)
class Election:
    """The options of `election_options`.

    Attributes:
        enabled: False for a process that is the only one anyway.
        name: of the Lease; None for the command's own.
        namespace: of the Lease.
        timing: how long leadership lasts.
    """

    enabled: bool
    name: str | None
    namespace: str
    timing: "Timing"


def lease_options(default_name: str) -> Callable[[F], F]:
    """`--lease-name` and `--lease-namespace`.

    Args:
        default_name: how the help calls the name of the Lease when none is given.
    """
    name = click.option(
        "--lease-name",
        metavar="NAME",
        envvar="LEASE_NAME",
        show_envvar=True,
        help=f"The Lease.  [default: {default_name}]",
    )
    namespace = click.option(
        "--lease-namespace",
        metavar="NAMESPACE",
        default=SYSTEM_NAMESPACE,
        show_default=True,
        envvar="POD_NAMESPACE",
        show_envvar=True,
        help="Where the Lease is.",
    )
    return lambda command: name(namespace(command))


def election_options(default_name: str) -> Callable[[F], F]:
    """`--leader-elect` and what belongs to it; the command gets them as `election`.

    Args:
        default_name: how the help calls the name of the Lease when none is given.
    """

    def seconds(flag: str, default: float, text: str) -> Callable[[F], F]:
        return click.option(
            f"--{flag}",
            type=float,
            metavar="SECONDS",
            default=default,
            show_default=True,
            envvar=f"FIVESPOT_{flag.upper().replace('-', '_')}",
            show_envvar=True,
            help=text,
        )

    options = (
        click.option(
            "--instance-count",
            envvar="OPERATOR_INSTANCE_COUNT",
            hidden=True,
            expose_value=False,
            callback=_refuse_shares,
        ),
        click.option(
            "--leader-elect/--no-leader-elect",
            default=True,
            show_default=True,
            envvar="ENABLE_LEADER_ELECTION",
            show_envvar=True,
            help="Of several processes, only the one that holds the Lease acts; the others stand by.",
        ),
        lease_options(default_name),
        seconds("lease-duration", 15, "Without a sign of the leader, others take over after this."),
        seconds("renew-deadline", 10, "A leader that cannot renew stops after this."),
        seconds("retry-period", 2, "Between renewals, and between tries to lead."),
    )

    def decorate(command: F) -> F:
        @functools.wraps(command)
        def gathered(
            *,
            leader_elect: bool,
            lease_name: str | None,
            lease_namespace: str,
            lease_duration: float,
            renew_deadline: float,
            retry_period: float,
            **others: Any,
        ) -> Any:
            election = Election(
                enabled=leader_elect,
                name=lease_name,
                namespace=lease_namespace,
                timing=_timing(lease_duration, renew_deadline, retry_period),
            )
            return command(election=election, **others)

        found: Any = gathered
        for option in reversed(options):
            found = option(found)
        return cast("F", found)

    return decorate


def _refuse_shares(_context: click.Context, _option: click.Parameter, value: str | None) -> None:
    """The original could share a fleet out among instances; whoever counts on that must not get several that do all."""
    if value is not None and value.strip() not in ("", "1"):
        message = (
            f"{value} is refused: machines are not shared out among instances, one that leads does 10,000 of them; "
            "unset it, and run replicas with leader election"
        )
        raise click.BadParameter(message, param_hint="'OPERATOR_INSTANCE_COUNT'")


def _timing(lease_duration: float, renew_deadline: float, retry_period: float) -> "Timing":
    from fivespot.adapters.kube.electing import Timing  # noqa: PLC0415 - not for --help

    try:
        return Timing(lease_duration=lease_duration, renew_deadline=renew_deadline, retry_period=retry_period)
    except InvalidSpec as error:
        option = f"--{error.field.replace('_', '-')}"
        message = f"{error.value:g} is refused: {error.remedy}"
        raise click.BadParameter(message, param_hint=f"'{option}'") from error


def identity() -> str:
    """Who this process is: OPERATOR_INSTANCE_ID, else POD_NAME, else the host's name, and something of its own.

    The last part is there because the names are not unique: a container that is started again has its pod's, and a
    Deployment may give all its pods the same.
    """
    named = os.environ.get("OPERATOR_INSTANCE_ID") or os.environ.get("POD_NAME") or socket.gethostname()
    return f"{named}_{secrets.token_hex(4)}"


async def lead(
    process: "Process",
    controllers: Sequence[Controller],
    *,
    election: Election,
    default_name: str,
    patience: float = FINISH_SECONDS,
) -> None:
    """Run controllers while this process leads, or at once if there is no election, until `process.stop` is set.

    At the end they finish what is in hand, and only then the Lease is given back. If they do not within
    `patience` seconds, or if one of them fails, it is left to expire: a request that was abandoned may be done after all.

    Raises:
        LeadershipLost: this process led, and does not any more.
        NoPlaceForLease: the Lease's namespace does not exist.
        ExceptionGroup: what made a controller end.
    """
    who = identity()
    elector = _elector(process.gateway, election, default_name, who) if election.enabled else None
    _describe(process.metrics, who, elector)
    process.reporting += controllers
    work = asyncio.ensure_future(_run_all(controllers, elector.won if elector is not None else at_once))
    electing = asyncio.ensure_future(elector.run() if elector is not None else asyncio.Event().wait())
    asked = asyncio.ensure_future(process.stop.wait())
    try:
        await asyncio.wait((work, electing, asked), return_when=asyncio.FIRST_COMPLETED)
        if asked.done() and not work.done() and (elector is None or elector.leads()):
            for controller in controllers:
                controller.stop()
            await asyncio.wait((work, electing), timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                _LOG.warning("what is in hand is abandoned, and the Lease left to expire")
    finally:
        finished = work.done()
        await _cancelled(work, electing, asked)
    if not electing.cancelled():
        electing.result()
    if finished:
        work.result()
        if elector is not None:
            await elector.release()


def _describe(metrics: "Metrics", who: str, elector: "Elector | None") -> None:
    """What /metrics says of this process, whatever it controls."""
    from fivespot._version import VERSION  # noqa: PLC0415 - only when it runs
    from fivespot.adapters.telemetry.metrics import Sample, State  # noqa: PLC0415
    from fivespot.core.zones import tzdata_version  # noqa: PLC0415

    def leads() -> list[Sample]:
        return [Sample((), elector is None or elector.leads())]

    metrics.info("controller", "This process.", {"version": VERSION, "instance_id": who})
    metrics.info("tzdata", "The zone rules in use.", {"version": tzdata_version()})
    metrics.watch_state(State("is_leader", "Whether this process acts.", (), leads))


def _elector(gateway: "Gateway", election: Election, default_name: str, who: str) -> "Elector":
    from fivespot.adapters.clock import BootClock  # noqa: PLC0415 - only when it runs
    from fivespot.adapters.kube.elector import Elector  # noqa: PLC0415

    elector = Elector(
        gateway.urgent,
        BootClock(),
        identity=who,
        namespace=election.namespace,
        name=election.name or default_name,
        timing=election.timing,
    )
    # Before anything is made of the gateway: clients of child clusters take it over.
    gateway.fence = elector.left
    return elector


async def _run_all(controllers: Sequence[Controller], won: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.TaskGroup() as group:
        for controller in controllers:
            group.create_task(controller.run(won))


async def at_once() -> None:
    """Without an election, everybody has won."""


async def _cancelled(*tasks: "asyncio.Future[Any]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
