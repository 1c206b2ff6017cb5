"""Taking a manifest apart: containers and scalars of the right type and size, or InvalidSpec with the field's path.

Input is whatever a YAML or JSON reader made: any type anywhere, of any size and depth. Nothing here recurses into it.
Knows no field's meaning; that is `spec.py`.
"""

import datetime as dt
import difflib
import re
from collections.abc import Mapping, Sequence
from typing import NoReturn

from fivespot.core.errors import InvalidSpec, shown

RESERVED = frozenset({"months", "monthDays"})
"""Field names kept for a later version; refused at every level so that they can be given a meaning."""

_MAX_SHOWN_NODES = 200
_MAX_SHOWN_BITS = 4096
_PLAIN_KEY = re.compile(r"[A-Za-z][A-Za-z0-9]{0,63}", re.ASCII)


def refuse(field: str, value: object, remedy: str) -> NoReturn:
    """Raise InvalidSpec; a value that nobody could print (too deep, too large) is described instead of kept."""
    raise InvalidSpec(field, _printable(value), remedy)


def _printable(value: object) -> object:
    """`value`, or a text about it when its repr could be enormous or fail: deep, wide or aliased containers, huge ints."""
    seen = 0
    waiting = [value]
    while waiting:
        node = waiting.pop()
        seen += 1
        huge = isinstance(node, int) and node.bit_length() > _MAX_SHOWN_BITS
        if huge or seen + len(waiting) > _MAX_SHOWN_NODES:
            return f"<{type(value).__name__} too large to show>"
        if isinstance(node, Mapping):
            waiting.extend([*list(node)[:_MAX_SHOWN_NODES], *list(node.values())[:_MAX_SHOWN_NODES]])
        elif isinstance(node, list | tuple | set | frozenset):
            waiting.extend(list(node)[:_MAX_SHOWN_NODES])
    return value


def at(parent: str, name: str) -> str:
    """The path of the field `name` below `parent`."""
    return f"{parent}.{name}" if parent else name


def mapping(
    value: object, field: str, known: Sequence[str], hints: Mapping[str, str] | None = None
) -> Mapping[str, object]:
    """`value` as a mapping that has no field besides `known`; `hints` says more about some that it must not have."""
    if not isinstance(value, Mapping):
        refuse(field, value, f"write a mapping with {_list(known)}")
    for key in value:
        if not isinstance(key, str) or key not in known:
            _refuse_unknown(field, key, value[key], known, hints or {})
    return value


def _refuse_unknown(
    field: str, key: object, value: object, known: Sequence[str], hints: Mapping[str, str]
) -> NoReturn:
    if not isinstance(key, str) or not _PLAIN_KEY.fullmatch(key):
        refuse(at(field, shown(_printable(key))), value, f"no such field; known here: {_list(known)}")
    if key in RESERVED:
        refuse(at(field, key), value, f"{key} is reserved for a later version; leave it out")
    if key in hints:
        refuse(at(field, key), value, hints[key])
    close = difflib.get_close_matches(key, known, n=1)
    question = f"no such field; did you mean {close[0]}?" if close else "no such field;"
    refuse(at(field, key), value, f"{question} known here: {_list(known)}")


def entries(value: object, field: str, limit: int, example: str) -> Sequence[object]:
    """`value` as a list of at most `limit` entries."""
    if not isinstance(value, list | tuple):
        refuse(field, value, f"write a list, such as {example}")
    if len(value) > limit:
        refuse(field, value, f"{len(value)} entries are too many; at most {limit}")
    return value


def text(value: object, field: str, limit: int, example: str) -> str:
    """`value` as a string of at most `limit` characters; what YAML read as something else asks for quotes."""
    if isinstance(value, str):
        if len(value) > limit:
            refuse(field, value, f"{len(value)} characters are too many; at most {limit}, such as {example}")
        return value
    if isinstance(value, int | float | dt.date):
        refuse(field, value, f"quote it: this must be a string, such as {example}")
    refuse(field, value, f"write a string, such as {example}")


def flag(value: object, field: str) -> bool:
    """`value` as a boolean."""
    if not isinstance(value, bool):
        refuse(field, value, "write true or false, without quotes")
    return value


def whole(value: object, field: str, low: int, high: int) -> int:
    """`value` as an integer from `low` to `high`; a boolean is none."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        refuse(field, value, f"write a whole number from {low} to {high}, without quotes")
    return value


def _list(names: Sequence[str]) -> str:
    return ", ".join(names)
