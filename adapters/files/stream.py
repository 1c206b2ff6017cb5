"""A file's text -> its documents, cut apart where kubectl cuts them.

The rules are those of `YAMLOrJSONDecoder` in k8s.io/apimachinery (`pkg/util/yaml/decoder.go`): text that begins with
`{` is read as a run of JSON values; whatever fails as such after at most one of them is YAML, cut at lines that begin
with `---` before any YAML is parsed. Nothing here knows files or kinds.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

import attrs

from fivespot.adapters.files.json_text import NotJson, read_json, skip_space
from fivespot.adapters.files.node import Node, Unreadable
from fivespot.adapters.files.yaml import read_yaml

_SEPARATOR = re.compile(r"^---(.*)\n?", re.MULTILINE)
_MEANT_AS_JSON = re.compile(r'\s*\{\s*["}]')
_UNAMBIGUOUS = 2
"""After so many JSON values kubectl no longer tries YAML."""


@attrs.frozen
class Source:
    """The text of one document, kept so that lines can be found when somebody asks, which is seldom."""

    text: str
    first_line: int
    reader: Callable[[str, int], Node | None]

    def root(self) -> Node | None:
        """The document's nodes; Unreadable when it is refused."""
        return self.reader(self.text, self.first_line)


@lru_cache(maxsize=2)
def nodes_again(source: Source) -> Node:
    """The nodes of a source that was read before; a `List` has many objects that ask for the same text."""
    root = source.root()
    assert root is not None  # noqa: S101 - only sources that held a document are asked again
    return root


def read_stream(text: str) -> tuple[list[tuple[Node, Source]], list[Unreadable]]:
    """Read every document of `text`; empty ones are left out. A refused document does not hide the others' faults."""
    text = text.removeprefix("\ufeff")
    found: list[tuple[Node, Source]] = []
    if text.lstrip()[:1] != "{":
        return found, _read_yaml_into(found, text, 1)
    at, line, count = 0, 1, 0
    try:
        while (start := skip_space(text, at)) < len(text):
            start_line = line + text.count("\n", at, start)
            node, end = read_json(text, start_line, start)
            if node.value is not None:
                found.append((node, Source(text[start:end], start_line, _json_root)))
            line = start_line + text.count("\n", start, end)
            at, count = end, count + 1
    except NotJson as fault:
        if count >= _UNAMBIGUOUS:
            return found, [fault]
        refusals = _read_yaml_into(found, text[at:], line)
        # Both readings failed: the one that the author had in mind tells more.
        return found, [fault] if refusals and count == 0 and _MEANT_AS_JSON.match(text) else refusals
    except Unreadable as refused:
        return found, [refused]
    return found, []


def _json_root(text: str, first_line: int) -> Node:
    return read_json(text, first_line)[0]


def _read_yaml_into(found: list[tuple[Node, Source]], text: str, first_line: int) -> list[Unreadable]:
    refusals: list[Unreadable] = []
    for chunk, line in _cut(text.replace("\r\n", "\n"), first_line, refusals):
        source = Source(chunk, line, read_yaml)
        try:
            root = source.root()
        except Unreadable as refused:
            refusals.append(refused)
            continue
        if root is not None and root.value is not None:
            found.append((root, source))
    return refusals


def _cut(text: str, line: int, refusals: list[Unreadable]) -> Iterator[tuple[str, int]]:
    """The pieces between separators, each with the line it begins on.

    A separator that follows nothing stays in its piece, where the parser takes it for the document's beginning.
    """
    start = 0
    for separator in _SEPARATOR.finditer(text):
        at = separator.start()
        behind = separator[1].strip()
        if behind and not behind.startswith("#"):
            where = line + text.count("\n", start, at)
            refusals.append(
                Unreadable(where, separator[0].strip(), "put what follows --- on a line of its own")
            )
        if at == start:
            continue
        yield text[start:at], line
        line += text.count("\n", start, separator.end())
        start = separator.end()
    yield text[start:], line
