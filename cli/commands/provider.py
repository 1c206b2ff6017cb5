"""`5spot provider`: the controllers of the schedule kinds."""

import click

from fivespot.cli.leading import Election, election_options, lead
from fivespot.cli.serving import Process, ProcessOptions, process_options, serve
from fivespot.core.provider.kinds import PROVIDER_KINDS

_NAMES = tuple(entry.name for entry in PROVIDER_KINDS)
_LEASE = "5spot-provider"


@click.group("provider")
def command() -> None:
    """The controllers that answer for schedules."""


@command.command("run", short_help="Publish what schedules say, until stopped.")
@click.argument("names", nargs=-1, type=click.Choice(_NAMES), metavar="[NAME]...")
@click.option(
    "--allow-local-prometheus",
    is_flag=True,
    envvar="FIVESPOT_ALLOW_LOCAL_PROMETHEUS",
    show_envvar=True,
    help="Let the url of a PrometheusSpotSchedule lead to this machine, a link-local neighbour or a cloud's metadata service.  [default: no]",
)
@process_options
@election_options(f"{_LEASE}, and the names where not all run; the shipped role knows those of one")
def run(
    names: tuple[str, ...], process: ProcessOptions, election: Election, *, allow_local_prometheus: bool
) -> None:
    """Publish what schedules say. Runs until stopped.

    NAME is time-based, capital-markets, manual, composite or prometheus, for TimeBasedSpotSchedule,
    CapitalMarketsSchedule, ManualSpotSchedule, CompositeSpotSchedule and PrometheusSpotSchedule; all of them run when none
    is named.

    Ends with exit status 1 and one message when it cannot start: no kubeconfig, no answer from the server, a schedule's CRD not
    installed. From then on it keeps trying: a server that goes away, and a permission that is missing (the log says
    which verb on which resource to grant), can be put right while it runs. SIGTERM and Ctrl-C end it in order, with
    exit status 0.

    Any number of these may run. Of those with the same names one leads and publishes, the others stand by. A leader that loses
    the lead stops at once, with exit status 1; one that ends in order hands it over at once.
    """
    from fivespot._version import BUILT  # noqa: PLC0415 - only when it runs
    from fivespot.adapters.clock import SystemClock  # noqa: PLC0415
    from fivespot.adapters.kube.control.providers import ProviderController  # noqa: PLC0415
    from fivespot.adapters.prometheus import Prometheus  # noqa: PLC0415

    chosen = [entry for entry in PROVIDER_KINDS if entry.name in (names or _NAMES)]

    async def drive(running: Process) -> None:
        clock = SystemClock()
        prometheus = Prometheus(clock, allow_local=allow_local_prometheus)
        controllers = [
            ProviderController(
                running.gateway,
                clock,
                of,
                clock_trusted_from=BUILT,
                ask=prometheus.ask,
                metrics=running.metrics,
            )
            for of in chosen
        ]
        all_of_them = len(chosen) == len(PROVIDER_KINDS)
        lease = _LEASE if all_of_them else "-".join([_LEASE, *(of.name for of in chosen)])
        await lead(running, controllers, election=election, default_name=lease)

    serve(drive, process)
