"""How long-running commands run: one event loop, logs on standard error, an orderly end on SIGTERM and Ctrl-C."""

import asyncio
import logging
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fivespot.cli.kubeconfigs import check_kubeconfig
from fivespot.core.errors import FivespotError

if TYPE_CHECKING:
    from fivespot.adapters.kube.gateway import Gateway

F = TypeVar("F", bound=Callable[..., Any])
_END_SECONDS = 8.0
"""An orderly end gets so long, in all; the process is gone within 10 s."""
_ABORT_SECONDS = 1.0
"""One that is not orderly."""


def cluster_options(command: F) -> F:
    """`--kubeconfig`, `--context` and `--log-level`."""
    for decorate in (
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
            "--context",
            metavar="NAME",
            envvar="FIVESPOT_CONTEXT",
            show_envvar=True,
            help="Context of the kubeconfig.  [default: its current one]",
        ),
        click.option(
            "--kubeconfig",
            type=click.Path(exists=True, dir_okay=False),
            metavar="FILE",
            envvar="FIVESPOT_KUBECONFIG",
            show_envvar=True,
            help="The management cluster.  [default: the pod's own, else as kubectl finds it]",
        ),
    ):
        command = decorate(command)
    return command


def serve(
    run: "Callable[[Gateway, asyncio.Event], Awaitable[None]]",
    *,
    kubeconfig: str | None,
    context: str | None,
    log_level: str,
) -> None:
    """Connect and run until a signal or an error. A signal sets the event, upon which `run` should return.

    What is wrong at the start ends it: no kubeconfig, no answer, a kind that is not served. Whoever started it sees that
    at once, and in a pod the kubelet tries again. What is wrong later, and a permission that is missing, is logged and
    tried again: it can be put right meanwhile.

    Raises:
        click.ClickException: it could not start, or ended by itself: exit status 1 with one sentence.
    """
    check_kubeconfig(kubeconfig, context)
    logging.basicConfig(
        stream=sys.stderr, level=log_level.upper(), format="%(asctime)s %(levelname)s %(message)s", force=True
    )
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        asyncio.run(_until_signal(run, kubeconfig, context))
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


async def _until_signal(
    run: "Callable[[Gateway, asyncio.Event], Awaitable[None]]", kubeconfig: str | None, context: str | None
) -> None:
    from fivespot.adapters.kube.gateway import Gateway  # noqa: PLC0415 - half a second that other commands need not pay

    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    gateway = await Gateway.connect(kubeconfig=kubeconfig, context=context)
    try:
        version = await _version(gateway)
        logging.getLogger(__name__).info("connected to %s, Kubernetes %s", gateway.server, version)
        work = asyncio.ensure_future(run(gateway, stop))
        stopped = asyncio.ensure_future(stop.wait())
        await asyncio.wait((work, stopped), return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not work.done():
            logging.getLogger(__name__).info("stopping")
            await asyncio.wait((work,), timeout=_END_SECONDS)
        if not work.done():
            work.cancel()
            await asyncio.wait((work,), timeout=_ABORT_SECONDS)
        if work.done() and not work.cancelled():
            work.result()
    finally:
        await gateway.close()
