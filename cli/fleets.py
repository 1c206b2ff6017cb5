"""What the commands that read manifests share: the PATH argument, loading, and refusing what a cluster would refuse."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from fivespot.core.fleet import Fleet

F = TypeVar("F", bound=Callable[..., Any])


def paths_argument(command: F) -> F:
    """`PATH...`: files, folders, `-`."""
    return click.argument("paths", nargs=-1, required=True, metavar="PATH...")(command)


def load_fleet(paths: tuple[str, ...]) -> "Fleet":
    """Read manifests; skipped kinds are counted on standard error."""
    from fivespot.adapters.files.fleet import load  # noqa: PLC0415 - the YAML reader is only needed here

    fleet = load(paths)
    if fleet.skipped:
        counts = ", ".join(f"{count} {kind}" for kind, count in fleet.skipped.items())
        click.echo(f"skipped, not ours: {counts}", err=True)
    return fleet


def require_sound(fleet: "Fleet") -> None:
    """Refuse a fleet with problems whole, and one without a machine: a preview of half a fleet would mislead.

    Raises:
        click.ClickException: exit status 1, after every problem was printed.
    """
    for problem in fleet.problems:
        click.echo(str(problem), err=True)
    if fleet.problems:
        count = len(fleet.problems)
        message = f"{count} problem{'s' if count > 1 else ''}; nothing was simulated"
        raise click.ClickException(message)
    if not fleet.machines:
        message = "no ScheduledMachine was read: is this the right PATH?"
        raise click.ClickException(message)
