"""The `5spot-agent` command."""

import os
import sys

import click

from fivespot._version import VERSION
from fivespot.agent import match
from fivespot.core.errors import FivespotError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="5spot-agent", message="%(prog)s %(version)s")
def cli() -> None:
    """Give a machine back to its owner when a program of theirs starts."""


cli.add_command(match.command)


def main() -> None:
    """Entry point: 0 done, 1 failed with one message, 2 usage."""
    try:
        cli(prog_name="5spot-agent", standalone_mode=False)
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
    except FivespotError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
