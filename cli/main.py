"""The `5spot` command: the table of its sub-commands, each of which is a module of `fivespot.cli.commands`."""

import io
import os
import sys

import click

from fivespot._version import VERSION
from fivespot.cli.lazy import Lazy, LazyGroup

_NAME = "5spot"
_COMPLETION = "_5SPOT_COMPLETE"
_INTERRUPTED = 130

COMMANDS = {
    "simulate": Lazy("fivespot.cli.commands.simulate:command", "What would happen between two instants."),
    "explain": Lazy("fivespot.cli.commands.explain:command", "Why a machine is, or is not, in the cluster."),
    "lint": Lazy("fivespot.cli.commands.lint:command", "What a cluster would refuse, and what may surprise."),
    "calendar": Lazy(
        "fivespot.cli.commands.calendar:command", "A market's calendar as a schedule, ready for Git."
    ),
    "override": Lazy(
        "fivespot.cli.commands.override:command",
        "Keep one machine in or out, until an instant or until told.",
    ),
    "doctor": Lazy(
        "fivespot.cli.commands.doctor:command", "What keeps the machine controller from working, and the fix."
    ),
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
    """Entry point. Exit status: 0 done, 1 failed with a message, 2 usage, 130 interrupted."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # The same bytes whatever the locale.
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    if _COMPLETION in os.environ:
        cli.main(prog_name=_NAME)
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run a command, say what went wrong, and answer the exit status. (Click's `main` takes a closed pipe for a failure.)"""
    try:
        with cli.make_context(_NAME, arguments) as context:
            cli.invoke(context)
        if sys.stdout is not None:
            # What is still buffered may fail as well, and Python would say so in its own words.
            sys.stdout.flush()
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("\nInterrupted.", err=True)
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has seen enough.
        _drop_output()
    except OSError as error:
        _drop_output()
        return _failed(error.strerror or str(error))
    except Exception as error:
        if not _is_ours(error):
            raise
        return _failed(str(error))
    return 0


def _failed(message: str) -> int:
    click.echo(f"Error: {message}", err=True)
    return 1


def _drop_output() -> None:
    """Python's own flush at exit must not complain again about an output that takes nothing."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_ours(error: Exception) -> bool:
    """Whether an error is one that a person is meant to read (imported late: `--version` needs none of it)."""
    from fivespot.core.errors import FivespotError  # noqa: PLC0415

    return isinstance(error, FivespotError)
