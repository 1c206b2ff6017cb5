"""The `5spot` command: the table of its sub-commands, each of which is a module of `fivespot.cli.commands`."""

import os
import sys

import click

from fivespot._version import VERSION
from fivespot.cli.lazy import Lazy, LazyGroup

COMMANDS = {
    "simulate": Lazy("fivespot.cli.commands.simulate:command", "What would happen between two instants."),
    "explain": Lazy("fivespot.cli.commands.explain:command", "Why a machine is, or is not, in the cluster."),
    "lint": Lazy("fivespot.cli.commands.lint:command", "What a cluster would refuse, and what may surprise."),
    "controller": Lazy("fivespot.cli.commands.controller:command", "The machine controller."),
    "provider": Lazy("fivespot.cli.commands.provider:command", "The controllers that answer for schedules."),
    "crds": Lazy("fivespot.cli.commands.crds:command", "The CustomResourceDefinitions, as YAML."),
    "docs": Lazy("fivespot.cli.commands.docs:command", "Reference pages made from the models."),
}
"""A new command is a line here and a module there."""


def _print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: ARG001 - click's signature
    if not value or ctx.resilient_parsing:
        return
    # The same as zones.tzdata_version(), as a test says, for a third of the time.
    from tzdata import IANA_VERSION  # type: ignore[import-untyped]  # noqa: PLC0415 - for those who ask

    click.echo(f"5spot {VERSION} (tzdata {IANA_VERSION})")
    ctx.exit()


@click.group(cls=LazyGroup, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version, and that of the time zone data.",
)
def cli() -> None:
    """Lend machines that people own to a Kubernetes cluster while their owners do not need them."""


def main() -> None:
    """Entry point: 0 done, 1 failed with one message, 2 usage."""
    try:
        cli(prog_name="5spot", standalone_mode=False)
    except click.exceptions.Exit as end:
        sys.exit(end.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        click.echo("Aborted!", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read the output has seen enough; Python's own flush at exit must not complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:
        if not _is_ours(error):
            raise
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)


def _is_ours(error: Exception) -> bool:
    """Whether an error is one that a person is meant to read (imported late: `--version` needs none of it)."""
    from fivespot.core.errors import FivespotError  # noqa: PLC0415

    return isinstance(error, FivespotError)
