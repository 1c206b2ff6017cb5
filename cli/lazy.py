"""A group of commands that imports a command only when it runs, so that `--help` and `--version` are quick."""

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import click


class Lazy(NamedTuple):
    """A command that is not imported yet. (No attrs class: importing attrs is a tenth of the time to `--version`.)

    Attributes:
        target: where it is, as `module:attribute`.
        help: one line for the list of commands.
    """

    target: str
    help: str

    def load(self) -> click.Command:
        """Import it."""
        module, _, attribute = self.target.partition(":")
        found = getattr(importlib.import_module(module), attribute)
        if not isinstance(found, click.Command):
            message = f"{self.target} is not a command"
            raise TypeError(message)
        return found


class LazyGroup(click.Group):
    """A group whose commands stand in a table, in the order in which they are listed."""

    # ruff: noqa: ARG002 - the signatures are click's

    def __init__(self, *args: Any, lazy: Mapping[str, Lazy], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the table."""
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command that is about to run."""
        entry = self.lazy.get(cmd_name)
        return entry.load() if entry else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with the help of the table; click's own would import them all."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in self.lazy.items()])
