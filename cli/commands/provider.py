"""`5spot provider`: the controllers of the schedule kinds."""

import asyncio

import click

from fivespot.cli.serving import cluster_options, serve

_NAMES = ("time-based", "capital-markets")


@click.group("provider")
def command() -> None:
    """The controllers that answer for schedules."""


@command.command("run", short_help="Publish what schedules say, until stopped.")
@click.argument("names", nargs=-1, type=click.Choice(_NAMES), metavar="[NAME]...")
@cluster_options
def run(names: tuple[str, ...], kubeconfig: str | None, context: str | None, log_level: str) -> None:
    """Publish what schedules say. Runs until stopped.

    NAME is time-based or capital-markets, for TimeBasedSpotSchedule and CapitalMarketsSchedule; both run when none is
    named.

    Ends with exit status 1 and one message when it cannot start: no kubeconfig, no answer from the server, a schedule's CRD not
    installed. From then on it keeps trying: a server that goes away, and a permission that is missing (the log says
    which verb on which resource to grant), can be put right while it runs. SIGTERM and Ctrl-C end it in order, with
    exit status 0.
    """
    from fivespot._version import BUILT  # noqa: PLC0415 - only when it runs
    from fivespot.adapters.clock import SystemClock  # noqa: PLC0415
    from fivespot.adapters.kube.control.schedules import ScheduleController  # noqa: PLC0415
    from fivespot.adapters.kube.gateway import Gateway  # noqa: PLC0415
    from fivespot.core.api.kinds import CAPITAL_MARKETS, TIME_BASED  # noqa: PLC0415

    kinds = {"time-based": TIME_BASED, "capital-markets": CAPITAL_MARKETS}

    async def drive(gateway: Gateway) -> None:
        async with asyncio.TaskGroup() as group:
            for name in dict.fromkeys(names or _NAMES):
                controller = ScheduleController(gateway, SystemClock(), kinds[name], clock_trusted_from=BUILT)
                group.create_task(controller.run(), name=name)

    serve(drive, kubeconfig=kubeconfig, context=context, log_level=log_level)
