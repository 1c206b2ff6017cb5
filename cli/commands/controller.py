"""`5spot controller`: the machine controller."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fivespot.cli.groups import group_options
from fivespot.cli.kubeconfigs import local_child_option
from fivespot.cli.leading import Election, election_options, lead
from fivespot.cli.serving import Process, ProcessOptions, process_options, serve
from fivespot.core.names import LEADER_LEASE

if TYPE_CHECKING:
    from fivespot.core.api.allowed import AllowedGroups

F = TypeVar("F", bound=Callable[..., Any])


def cap_option(flag: str, text: str) -> Callable[[F], F]:
    """A limit that is none by default."""
    return click.option(
        flag,
        type=click.IntRange(1),
        metavar="COUNT",
        envvar=f"FIVESPOT_{flag.removeprefix('--').upper().replace('-', '_')}",
        show_envvar=True,
        help=f"{text}  [default: no limit]",
    )


@click.group("controller")
def command() -> None:
    """The machine controller."""


@command.command("run", short_help="Make machines exist, or not, until stopped.")
@process_options
@local_child_option
@group_options
@click.option(
    "--force-finalizer-on-timeout",
    is_flag=True,
    envvar="FIVESPOT_FORCE_FINALIZER_ON_TIMEOUT",
    show_envvar=True,
    help="Let a deleted machine go 10 minutes after its bound, even if its host's objects remain.  [default: no]",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    metavar="COUNT",
    default=8,
    show_default=True,
    envvar="FIVESPOT_WORKERS",
    show_envvar=True,
    help="How many machines are worked on at once.",
)
@cap_option("--max-provisioning", "How many machines may be on their way up at once, in all.")
@cap_option("--max-provisioning-per-cluster", "The same, in one cluster.")
@cap_option("--max-draining", "How many machines may be drained at once, in all; the urgent ones never wait.")
@cap_option("--max-draining-per-cluster", "The same, in one cluster.")
@election_options(LEADER_LEASE)
def run(
    process: ProcessOptions,
    allow_local_child: bool,
    allowed: "AllowedGroups",
    force_finalizer_on_timeout: bool,
    workers: int,
    max_provisioning: int | None,
    max_provisioning_per_cluster: int | None,
    max_draining: int | None,
    max_draining_per_cluster: int | None,
    election: Election,
) -> None:
    """Make every ScheduledMachine of the cluster exist, or not, as its provider says. Runs until stopped.

    Ends with exit status 1 and one message when it cannot start: no kubeconfig, no answer from the server, the ScheduledMachine CRD not
    installed. From then on it keeps trying: a server that goes away, and a permission that is missing (the log says
    which verb on which resource to grant), can be put right while it runs. SIGTERM and Ctrl-C end it in order, with
    exit status 0.

    Any number of these may run. One of them leads and acts, the others stand by with all they need to know. A leader that loses
    the lead stops at once, with exit status 1; one that ends in order hands it over at once.
    """
    from fivespot.adapters.clock import SystemClock  # noqa: PLC0415 - only when it runs
    from fivespot.adapters.kube.control.machines import MachineController  # noqa: PLC0415
    from fivespot.core.decision.caps import Caps, Stage  # noqa: PLC0415
    from fivespot.core.decision.policy import Policy  # noqa: PLC0415

    async def drive(running: Process) -> None:
        controller = MachineController(
            running.gateway,
            SystemClock(),
            policy=Policy(force_finalizer_on_timeout=force_finalizer_on_timeout),
            allowed=allowed,
            allow_local_child=allow_local_child,
            workers=workers,
            caps={
                Stage.PROVISIONING: Caps(overall=max_provisioning, per_cluster=max_provisioning_per_cluster),
                Stage.DRAINING: Caps(overall=max_draining, per_cluster=max_draining_per_cluster),
            },
            metrics=running.metrics,
        )
        await lead(running, [controller], election=election, default_name=LEADER_LEASE)

    serve(drive, process)
