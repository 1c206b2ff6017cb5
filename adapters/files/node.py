"""What a document says and where it says it: values like JSON's, each with its line.

Both readers (`yaml.py`, `json_text.py`) build these nodes; the fields that `documents.py` reports are looked up in
them. Nothing here reads text or files.
"""

import re
from typing import Any

import attrs

from fivespot.core.errors import FivespotError

MAX_DEPTH = 200
"""How deep a document may nest. kubectl stops at 10,000; nothing that Kubernetes serves comes near 50, and whoever
walks the values may recurse."""

_QUOTED_KEY = re.compile(r"""\[(?:"([^"]*)"|'([^']*)')\]""")
_INDEX = re.compile(r"\[(\d{1,9})\]", re.ASCII)


@attrs.define(eq=False)
class Node:
    """One value with its place. Not frozen, since a container fills while it is read; complete once handed out.

    Attributes:
        line: where it begins, from 1.
        value: None, bool, int, float, str, list or dict with str keys.
        children: of a dict, for every key the line of the key and the node; of a list, the nodes; else None.
        size: how many nodes it counts when every alias in it is written out.
        height: levels of containers in it; 0 for a scalar.
    """

    line: int
    value: Any
    children: "dict[str, tuple[int, Node]] | list[Node] | None" = None
    size: int = 1
    height: int = 0

    def grow(self, child: "Node") -> None:
        """Account for one more node inside this container."""
        self.size += child.size
        if child.height >= self.height:
            self.height = child.height + 1


class Unreadable(FivespotError):  # noqa: N818 - it states a fact about the text, as InvalidSpec does
    """A document that is refused, with the line; the message is made by whoever knows the file.

    Attributes:
        line: from 1.
        field: path of the refused field, such as `spec.windows[0].start`; empty where the text is at fault.
        value: what stood there.
        remedy: what to write instead, as one sentence without a full stop.
    """

    def __init__(self, line: int, value: Any, remedy: str, field: str = "") -> None:
        super().__init__(line, value, remedy, field)
        self.line = line
        self.value = value
        self.remedy = remedy
        self.field = field

    def below(self, parent: str) -> "Unreadable":
        """The same with `parent` put in front of its field."""
        glue = "" if not self.field or self.field.startswith("[") else "."
        return type(self)(self.line, self.value, self.remedy, f"{parent}{glue}{self.field}")


class TooDeep(Unreadable):
    """A document that nests deeper than `MAX_DEPTH`; it names no field, whose path would fill a page."""

    def __init__(self, line: int) -> None:
        super().__init__(line, "...", f"nest at most {MAX_DEPTH} levels deep")

    def below(self, parent: str) -> "TooDeep":  # noqa: ARG002, D102
        return self


def twice(line: int, written: str, key: str, first: int) -> Unreadable:
    """The refusal of a key that stands twice in one mapping; `written` is what became `key`, as `yes` becomes `true`.

    kubectl silently takes the last one, which is never what the author of the first one meant.
    """
    return Unreadable(line, written, f"the same key stands on line {first} already; keep one of the two", key)


def line_of(root: Node, field: str) -> int:
    """The line of `field` below `root`, or of the nearest parent that exists.

    Keys are joined by dots and elements follow in brackets, as in `spec.windows[0].start`. A key that holds dots
    itself is found as it stands or as `annotations["5spot.finos.org/x"]`.
    """
    node, line, rest = root, root.line, field
    while rest:
        if isinstance(node.children, list):
            index = _INDEX.match(rest)
            if index is None or int(index[1]) >= len(node.children):
                return line
            node = node.children[int(index[1])]
            line, rest = node.line, rest[index.end() :]
        elif node.children:
            key, rest = _first_key(node.children, rest)
            if key is None:
                return line
            line, node = node.children[key]
        else:
            return line
        rest = rest.removeprefix(".")
    return line


def _first_key(children: "dict[str, tuple[int, Node]]", path: str) -> tuple[str | None, str]:
    """The key that `path` begins with, and the rest; the longest, since keys may hold dots and brackets."""
    quoted = _QUOTED_KEY.match(path)
    if quoted is not None:
        key = quoted[1] if quoted[1] is not None else quoted[2]
        return (key if key in children else None), path[quoted.end() :]
    end = len(path)
    while end > 0:
        if path[:end] in children:
            return path[:end], path[end:]
        end = max(path.rfind(".", 0, end), path.rfind("[", 0, end))
    return None, path
