"""How long-running commands run: one event loop, logs on standard error, /metrics and /healthz, an orderly end.

Not here: who leads (`leading.py`), and what a controller does (`adapters/kube/control/`).
"""

import asyncio
import functools
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import attrs
import click

from fivespot.cli.kubeconfigs import check_kubeconfig, cluster_options
from fivespot.core.errors import FivespotError

if TYPE_CHECKING:
    from fivespot.adapters.kube.gateway import Gateway
    from fivespot.adapters.telemetry.health import Check
    from fivespot.adapters.telemetry.logs import Format
    from fivespot.adapters.telemetry.metrics import Metrics

_LOG = logging.getLogger(__name__)
F = TypeVar("F", bound=Callable[..., Any])
_END_SECONDS = 8.0
"""An orderly end gets so long, in all; the process is gone within 10 s."""
_ABORT_SECONDS = 1.0
"""One that is not orderly."""
_REACHED_SECONDS = 30.0
"""An API server that was heard of so lately is not asked whether it is there; it counts as reached for 60 s."""
_PROBE_SECONDS = 5.0
_METRICS_PORT, _HEALTH_PORT = 8080, 8081


class ReportsChecks(Protocol):
    """What can say whether it is well."""

    def checks(self) -> "list[Check]":
        """What has to be well for the process to be ready."""


@attrs.frozen(kw_only=True)
class ProcessOptions:
    """The options of `process_options`.

    Attributes:
        metrics_port: of /metrics; None serves none.
        health_port: of /healthz and /readyz; None serves none.
        bind_address: where both listen.
    """

    kubeconfig: str | None
    context: str | None
    log_level: str
    log_format: "Format"
    metrics_port: int | None
    health_port: int | None
    bind_address: str


@attrs.define
class Process:
    """What a running command may use.

    Attributes:
        gateway: to the management cluster.
        stop: set when somebody asks for the end.
        metrics: what /metrics shows.
        reporting: whoever says at /readyz whether it is well.
    """

    gateway: "Gateway"
    stop: asyncio.Event
    metrics: "Metrics"
    reporting: list[ReportsChecks] = attrs.field(factory=list)


def process_options(command: F) -> F:
    """`--kubeconfig`, `--log-level`, `--metrics-port` and so on; the command gets them as `process`."""

    def port(flag: str, default: int, variable: str, shown: str) -> Callable[[F], F]:
        return click.option(
            flag,
            type=click.IntRange(0, 65535),
            metavar="PORT",
            envvar=variable,
            show_envvar=True,
            help=f"Serve {shown} on this port; 0 for not at all.  [default: {default} in a pod, else 0]",
        )

    options = (
        click.option(
            "--log-level",
            type=click.Choice(["debug", "info", "warning", "error"]),
            default="info",
            show_default=True,
            envvar="FIVESPOT_LOG_LEVEL",
            show_envvar=True,
            help="How much is logged, on standard error.",
        ),
        click.option(
            "--log-format",
            type=click.Choice(["auto", "text", "json"]),
            default="auto",
            show_default=True,
            envvar="FIVESPOT_LOG_FORMAT",
            show_envvar=True,
            help="How it is logged; auto is text on a terminal and JSON elsewhere.",
        ),
        port("--metrics-port", _METRICS_PORT, "METRICS_PORT", "/metrics"),
        port("--health-port", _HEALTH_PORT, "HEALTH_PORT", "/healthz and /readyz"),
        click.option(
            "--bind-address",
            metavar="ADDRESS",
            default="0.0.0.0",  # noqa: S104 - a kubelet and a Prometheus ask from outside
            show_default=True,
            envvar="FIVESPOT_BIND_ADDRESS",
            show_envvar=True,
            help="Where these ports listen.",
        ),
    )

    @functools.wraps(command)
    def gathered(
        *,
        kubeconfig: str | None,
        context: str | None,
        log_level: str,
        log_format: "Format",
        metrics_port: int | None,
        health_port: int | None,
        bind_address: str,
        **others: Any,
    ) -> Any:
        process = ProcessOptions(
            kubeconfig=kubeconfig,
            context=context,
            log_level=log_level,
            log_format=log_format,
            metrics_port=_port(metrics_port, _METRICS_PORT),
            health_port=_port(health_port, _HEALTH_PORT),
            bind_address=bind_address,
        )
        return command(process=process, **others)

    found: Any = gathered
    for option in reversed(options):
        found = option(found)
    return cluster_options(cast("F", found))


def _port(given: int | None, in_a_pod: int) -> int | None:
    """A person who runs two of these on one machine has asked for no ports; in a pod they are everybody's convention."""
    if given is None:
        return in_a_pod if "KUBERNETES_SERVICE_HOST" in os.environ else None
    return given or None


def serve(run: "Callable[[Process], Awaitable[None]]", options: ProcessOptions) -> None:
    """Connect and run until a signal or an error. A signal sets `stop`, upon which `run` should return.

    What is wrong at the start ends it: no kubeconfig, no answer, a kind that is not served, a port in use. Whoever
    started it sees that at once, and in a pod the kubelet tries again. What is wrong later, and a permission that is
    missing, is logged and tried again: it can be put right meanwhile.

    Raises:
        click.ClickException: it could not start, or ended by itself: exit status 1 with one sentence.
    """
    from fivespot.adapters.telemetry import logs  # noqa: PLC0415 - not for --help

    check_kubeconfig(options.kubeconfig, options.context)
    logs.configure(options.log_level, options.log_format)
    try:
        asyncio.run(_until_signal(run, options))
    except* FivespotError as group:
        first = group.exceptions[0]
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise click.ClickException(_told(first)) from None


def _told(error: BaseException) -> str:
    from fivespot.adapters.kube.errors import KindNotServed  # noqa: PLC0415 - it is loaded by now

    return f"{error}: 5spot crds | kubectl apply -f -" if isinstance(error, KindNotServed) else str(error)


async def _version(gateway: "Gateway") -> str:
    """The server's version: the first thing that is asked of it."""
    from fivespot.adapters.kube.errors import Unavailable  # noqa: PLC0415 - it is loaded by now

    try:
        return str((await gateway.version()).get("gitVersion"))
    except Unavailable as error:
        remedy = "is it up, and is this the right kubeconfig and context?"
        raise click.ClickException(f"no answer from {error.message}; {remedy}") from error


async def _until_signal(run: "Callable[[Process], Awaitable[None]]", options: ProcessOptions) -> None:
    from fivespot.adapters.kube.gateway import Gateway  # noqa: PLC0415 - half a second that other commands need not pay
    from fivespot.adapters.telemetry.metrics import Metrics  # noqa: PLC0415
    from fivespot.adapters.telemetry.server import serving  # noqa: PLC0415

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with await Gateway.connect(kubeconfig=options.kubeconfig, context=options.context) as gateway:
        process = Process(gateway, stop, Metrics())
        gateway.answered = process.metrics.answered
        async with serving(
            process.metrics.registry,
            functools.partial(_checks, process),
            address=options.bind_address,
            metrics_port=options.metrics_port,
            health_port=options.health_port,
        ):
            await _finished(asyncio.ensure_future(_work(process, run)), stop)


async def _work(process: Process, run: "Callable[[Process], Awaitable[None]]") -> None:
    version = await _version(process.gateway)
    _LOG.info("connected to %s, Kubernetes %s", process.gateway.server, version)
    await run(process)


async def _finished(work: "asyncio.Future[None]", stop: asyncio.Event) -> None:
    """Wait for the work; once `stop` is set, not for ever."""
    stopped = asyncio.ensure_future(stop.wait())
    await asyncio.wait((work, stopped), return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not work.done():
        _LOG.info("stopping")
        await asyncio.wait((work,), timeout=_END_SECONDS)
    if not work.done():
        work.cancel()
        await asyncio.wait((work,), timeout=_ABORT_SECONDS)
    if work.done() and not work.cancelled():
        work.result()


async def _checks(process: Process) -> "Sequence[Check]":
    return [await _reached(process.gateway), *(check for of in process.reporting for check in of.checks())]


async def _reached(gateway: "Gateway") -> "Check":
    """Whether the API server is there. A quiet cluster says something once a minute, so it may have to be asked."""
    from fivespot.adapters.kube.errors import ApiError  # noqa: PLC0415 - it is loaded by now
    from fivespot.adapters.telemetry.health import Check  # noqa: PLC0415

    if gateway.silence < _REACHED_SECONDS:
        return Check("api")
    try:
        async with asyncio.timeout(_PROBE_SECONDS):
            await gateway.urgent.version()
    except (ApiError, TimeoutError) as error:
        return Check("api", str(error) or f"no answer within {_PROBE_SECONDS:g} s")
    return Check("api")
