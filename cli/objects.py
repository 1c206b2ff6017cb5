"""Names of objects on the command line; machines as kubectl takes them: `sm/NAME`, `scheduledmachines/NAME`."""

import re
from typing import Final

import click

from fivespot.core.api.common import OBJECT_NAME
from fivespot.core.names import MACHINE_GROUP

_KINDS: Final = ("sm", "scheduledmachine", "scheduledmachines")
_LONGEST: Final = 63
"""The CRD refuses machines with longer names, since they become label values; Kubernetes bounds namespaces so."""


def is_machine_kind(text: str) -> bool:
    """Whether kubectl would take it for the kind of a machine."""
    return text.lower().removesuffix(f".{MACHINE_GROUP}") in _KINDS


class ObjectName(click.ParamType[str]):
    """The name of an object.

    Args:
        what: kind of object, for messages.
        longest: characters.
    """

    name = "name"

    def __init__(self, what: str, longest: int) -> None:
        self._what, self._longest = what, longest

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Look whether it can be one, or fail as a usage error."""
        name = str(value)
        if len(name) > self._longest or not re.fullmatch(str(OBJECT_NAME.pattern), name):
            remedy = f"lower case letters, digits, '-' and '.', at most {self._longest} characters"
            self.fail(f"{name!r} is no name of {self._what}: {remedy}", param, ctx)
        return name


class MachineName(ObjectName):
    """`sm/NAME`; the value is NAME."""

    name = "machine"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Read it, or fail as a usage error."""
        kind, slash, name = str(value).partition("/")
        if not slash or not is_machine_kind(kind):
            self.fail(f"{value!r}: write sm/NAME", param, ctx)
        if "/" in name:
            self.fail(f"{value!r}: write sm/NAME, and the namespace with -n", param, ctx)
        return super().convert(name, param, ctx)


class Namespace(click.ParamType[str]):
    """The name of a namespace."""

    name = "namespace"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Look whether it can be one, or fail as a usage error."""
        text = str(value)
        if len(text) > _LONGEST or not re.fullmatch("[a-z0-9]([a-z0-9-]*[a-z0-9])?", text):
            remedy = f"lower case letters, digits and '-', at most {_LONGEST} characters"
            self.fail(f"{text!r} is no name of a namespace: {remedy}", param, ctx)
        return text


MACHINE_NAME: Final = MachineName("a machine", _LONGEST)
OBJECT: Final = ObjectName("an object", int(OBJECT_NAME.max_length or 0))
NAMESPACE: Final = Namespace()
