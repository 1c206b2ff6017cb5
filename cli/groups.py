"""`--bootstrap-group` and `--infrastructure-group`: of which kinds machines may be made, the same for every command."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import click

from fivespot.core.errors import InvalidSpec
from fivespot.core.names import BOOTSTRAP_GROUPS, INFRASTRUCTURE_GROUPS

F = TypeVar("F", bound=Callable[..., Any])


def _option(of: str, default: tuple[str, ...]) -> Callable[[F], F]:
    return click.option(
        f"--{of}-group",
        f"{of}_groups",
        multiple=True,
        metavar="GROUP",
        default=default,
        show_default=True,
        envvar=f"FIVESPOT_{of.upper()}_GROUPS",
        show_envvar=True,
        help=f"An API group whose kinds may be a machine's {of} object, instead of these; may be repeated.",
    )


def group_options(command: F) -> F:
    """The command gets both as `allowed`, AllowedGroups; what is no group is refused."""

    @functools.wraps(command)
    def gathered(
        *args: Any, bootstrap_groups: tuple[str, ...], infrastructure_groups: tuple[str, ...], **others: Any
    ) -> Any:
        from fivespot.core.api.allowed import AllowedGroups  # noqa: PLC0415 - not for --help

        try:
            allowed = AllowedGroups(bootstrap=bootstrap_groups, infrastructure=infrastructure_groups)
        except InvalidSpec as error:
            message = f"{error.value!r} is refused: {error.remedy}"
            raise click.BadParameter(message, param_hint=f"'--{error.field}-group'") from error
        return command(*args, allowed=allowed, **others)

    found = _option("infrastructure", INFRASTRUCTURE_GROUPS)(cast("F", gathered))
    return _option("bootstrap", BOOTSTRAP_GROUPS)(found)
