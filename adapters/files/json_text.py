"""One JSON value as kubectl reads it: text in, nodes with lines out.

Python's own decoder tells no lines, drops the first of two equal keys and takes NaN, so only single strings and
numbers go through it. Cutting a stream into values is the business of `stream.py`.
"""

import json
import math
import re

from fivespot.adapters.files.node import MAX_DEPTH, Node, TooDeep, Unreadable, twice
from fivespot.adapters.files.scalar import Raw, json_value, without_surrogates

_SPACE = re.compile(r"[ \t\r\n]*")
_MAX_INTEGER_DIGITS = 20
"""A longer integer is beyond 64 bits and so a float to Go; Python refuses to convert very long ones."""


class NotJson(Unreadable):
    """Text that is not JSON at all; it may still be YAML."""


def read_json(text: str, first_line: int = 1, start: int = 0) -> tuple[Node, int]:
    """Read the value at `text[start:]`, whose first line is line `first_line` of its file; also where it ends.

    NotJson for a fault of syntax; Unreadable for a key twice (kubectl takes the last one), a number beyond 64-bit
    floats, and nesting that nobody means.
    """
    reader = _Reader(text, first_line, start)
    node = reader.value(0)
    return node, reader.at


def skip_space(text: str, at: int) -> int:
    """The index of the first character from `at` on that JSON does not take for white space."""
    return _SPACE.match(text, at).end()  # type: ignore[union-attr]  # it matches nothing, too


class _Reader:
    """A place in a text, moving forward; counts the lines it passes."""

    def __init__(self, text: str, line: int, at: int) -> None:
        self.text = text
        self.line = line
        self.at = at

    def value(self, depth: int) -> Node:
        character = self._peek()
        if character in "{[" and character:
            if depth == MAX_DEPTH:
                raise TooDeep(self.line)
            self.at += 1
            return self._object(depth + 1) if character == "{" else self._array(depth + 1)
        line = self.line
        return Node(line, self._plain(character))

    def _object(self, depth: int) -> Node:
        values: dict[str, object] = {}
        children: dict[str, tuple[int, Node]] = {}
        node = Node(self.line, values, children, height=1)
        more = self._peek() != "}"
        while more:
            if self._peek() != '"':
                raise self._fault("a key in double quotes has to stand here")
            line, key = self.line, str(self._plain('"'))
            if key in children:
                raise twice(line, key, key, children[key][0])
            self._expect(":")
            try:
                child = self.value(depth)
            except Unreadable as refused:
                raise refused.below(key) from None
            node.size += 1
            node.grow(child)
            values[key], children[key] = child.value, (line, child)
            more = self._another("}")
        self._expect("}")
        return node

    def _array(self, depth: int) -> Node:
        values: list[object] = []
        children: list[Node] = []
        node = Node(self.line, values, children, height=1)
        more = self._peek() != "]"
        while more:
            try:
                child = self.value(depth)
            except Unreadable as refused:
                raise refused.below(f"[{len(children)}]") from None
            node.grow(child)
            values.append(child.value)
            children.append(child)
            more = self._another("]")
        self._expect("]")
        return node

    def _peek(self) -> str:
        """The next character that is no white space; empty at the end."""
        end = skip_space(self.text, self.at)
        if end > self.at:
            self.line += self.text.count("\n", self.at, end)
            self.at = end
        return self.text[end : end + 1]

    def _expect(self, character: str) -> None:
        if self._peek() != character:
            raise self._fault(f"{character} has to stand here")
        self.at += 1

    def _another(self, closing: str) -> bool:
        character = self._peek()
        if character == ",":
            self.at += 1
            return True
        if character != closing:
            raise self._fault(f"a comma or {closing} has to stand here")
        return False

    def _plain(self, character: str) -> Raw:
        try:
            value, self.at = _scalar(self.text, self.at)
        except json.JSONDecodeError as error:
            raise self._fault(f"this is not JSON: {error.msg}") from None
        if character == '"':
            return without_surrogates(str(value))
        if type(value) is float and math.isinf(value):
            raise Unreadable(self.line, value, "write a number that 64 bits hold")
        return json_value(value)

    def _fault(self, remedy: str) -> NotJson:
        found = self.text[self.at : self.at + 40].partition("\n")[0]
        end = len(self.text.rstrip())
        line = self.line if self.at < end else self.line - self.text.count("\n", end, self.at)
        return NotJson(line, found or "the end of the text", remedy)


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MAX_INTEGER_DIGITS else float(digits)


def _refuse_constant(name: str) -> Raw:
    raise json.JSONDecodeError(f"{name} is not JSON", name, 0)


_scalar = json.JSONDecoder(parse_int=_integer, parse_float=float, parse_constant=_refuse_constant).raw_decode
