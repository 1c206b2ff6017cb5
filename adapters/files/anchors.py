"""What the aliases of one YAML document refer to, and how much they may blow it up.

Bounded as kubectl's library bounds it (`decode.go` of go.yaml.in/yaml/v2). The values themselves are shared, not
copied, so the bound protects whoever walks or prints them.
"""

from fivespot.adapters.files.node import Node, Unreadable
from fivespot.adapters.files.scalar import Raw


class Anchors:
    """The anchors seen so far. A name may be given again; an alias means the last one before it.

    Attributes:
        decoded: nodes of the document so far, those that aliases repeat included.
    """

    def __init__(self) -> None:
        self.decoded = 1
        self._by_alias = 0
        self._known: dict[str, Node | None] = {}

    def name(self, name: str, line: int, raw: Raw) -> None:
        """Give a scalar a name. What it means to JSON depends on where the alias stands: as a key or as a value."""
        self._known[name] = Node(line, raw)

    def begin(self, name: str) -> None:
        """Give a name to a container that is yet to be read; until its end it refers to itself."""
        self._known[name] = None

    def end(self, name: str, node: Node) -> None:
        """The container is read. Something inside it may have taken the name, and keeps it."""
        if self._known[name] is None:
            self._known[name] = node

    def follow(self, name: str, line: int) -> Node:
        """The node of an alias on `line`; Unreadable where there can be none."""
        if name not in self._known:
            raise Unreadable(
                line, f"*{name}", f"no anchor &{name} stands before it; write one, or quote the text"
            )
        target = self._known[name]
        if target is None:
            raise Unreadable(line, f"*{name}", "a value cannot contain itself; write it out")
        self.decoded += 1 + target.size
        self._by_alias += target.size
        if self._by_alias > 100 and self.decoded > 1000 and self._by_alias > _allowed(self.decoded):  # noqa: PLR2004
            raise Unreadable(
                line, f"*{name}", "the aliases make the document too large; write out what is meant"
            )
        return Node(line, target.value, target.children, target.size + 1, target.height)


def _allowed(decoded: int) -> float:
    """How many of `decoded` nodes may come from aliases: 99 % in small documents, 10 % in huge ones."""
    small, huge = 400_000, 4_000_000
    above = min(max(decoded - small, 0), huge - small)
    return decoded * (0.99 - 0.89 * above / (huge - small))
