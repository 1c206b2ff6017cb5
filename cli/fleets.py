"""What the commands that read manifests share: the PATH argument, loading, and refusing what a cluster would refuse."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fivespot.core.text import counted

if TYPE_CHECKING:
    from fivespot.core.api.allowed import AllowedGroups
    from fivespot.core.fleet import Fleet

F = TypeVar("F", bound=Callable[..., Any])


def paths_argument(command: F) -> F:
    """`PATH...`: files, folders, `-`."""
    return click.argument("paths", nargs=-1, required=True, metavar="PATH...")(command)


def load_fleet(paths: Sequence[str], allowed: "AllowedGroups | None" = None) -> "Fleet":
    """Read manifests; skipped kinds are counted on standard error.

    Args:
        paths: files, folders, `-`.
        allowed: the groups that the cluster lets machines be made of; None for those of an operator who says nothing.
    """
    from fivespot.adapters.files.fleet import load  # noqa: PLC0415 - the YAML reader is only needed here
    from fivespot.core.api.allowed import DEFAULT_GROUPS  # noqa: PLC0415 - likewise

    fleet = load(paths, allowed=allowed or DEFAULT_GROUPS)
    if fleet.skipped:
        counts = ", ".join(f"{count} {kind}" for kind, count in fleet.skipped.items())
        click.echo(f"skipped, not ours: {counts}", err=True)
    return fleet


def require_sound(fleet: "Fleet", paths: Sequence[str], done: str) -> None:
    """Refuse a fleet with problems whole, and an empty one: a preview of half a fleet would mislead.

    Args:
        fleet: what was read.
        paths: where it was read from.
        done: what is not done then, such as `simulated`.

    Raises:
        click.ClickException: exit status 1, after every problem was printed.
    """
    for problem in fleet.problems:
        click.echo(str(problem), err=True)
    if fleet.problems:
        message = f"{counted(len(fleet.problems), 'problem')}; nothing was {done}"
        raise click.ClickException(message)
    require_something(fleet, paths)


def require_something(fleet: "Fleet", paths: Sequence[str]) -> None:
    """Refuse an empty fleet: whoever named the wrong path must not take the silence for an answer.

    Raises:
        click.ClickException: neither a machine nor a provider was read.
    """
    if not fleet.machines and not fleet.providers and not fleet.problems:
        where = ", ".join("standard input" if path == "-" else path for path in paths)
        message = f"no ScheduledMachine and no provider in {where}; is this the right PATH?"
        raise click.ClickException(message)
