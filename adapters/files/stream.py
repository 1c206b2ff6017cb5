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


def read_stream(text: str) -> Iterator[tuple[Node, Source] | Unreadable]:
    """Every document of `text` in order, and every refusal; empty documents are left out.

    One at a time, since the nodes of a large file are many times its size and those of one document are soon dropped.
    """
    text = text.removeprefix("\ufeff")
    if text.lstrip()[:1] != "{":
        yield from _yaml_documents(text, 1)
        return
    at, line, count = 0, 1, 0
    try:
        while (start := skip_space(text, at)) < len(text):
            start_line = line + text.count("\n", at, start)
            node, end = read_json(text, start_line, start)
            if node.value is not None:
                yield node, Source(text[start:end], start_line, _json_root)
            line = start_line + text.count("\n", start, end)
            at, count = end, count + 1
    except NotJson as fault:
        if count >= _UNAMBIGUOUS:
            yield fault
            return
        rest = list(_yaml_documents(text[at:], line))
        # When both readings fail, the one that the author had in mind tells more.
        both_failed = count == 0 and any(isinstance(it, Unreadable) for it in rest)
        yield from [fault] if both_failed and _MEANT_AS_JSON.match(text) else rest
    except Unreadable as refused:
        yield refused


def _json_root(text: str, first_line: int) -> Node:
    return read_json(text, first_line)[0]


def _yaml_documents(text: str, first_line: int) -> Iterator[tuple[Node, Source] | Unreadable]:
    for piece in _cut(text.replace("\r\n", "\n"), first_line):
        if isinstance(piece, Unreadable):
            yield piece
            continue
        source = Source(*piece, read_yaml)
        try:
            root = source.root()
        except Unreadable as refused:
            yield refused
        else:
            if root is not None and root.value is not None:
                yield root, source


def _cut(text: str, line: int) -> Iterator[tuple[str, int] | Unreadable]:
    """The pieces between separators, each with the line it begins on.

    A separator that follows nothing stays in its piece, where the parser takes it for the document's beginning.
    """
    start = 0
    for separator in _SEPARATOR.finditer(text):
        at = separator.start()
        behind = separator[1].strip()
        if behind and not behind.startswith("#"):
            where = line + text.count("\n", start, at)
            yield Unreadable(where, separator[0].strip(), "put what follows --- on a line of its own")
        if at == start:
            continue
        yield text[start:at], line
        line += text.count("\n", start, separator.end())
        start = separator.end()
    yield text[start:], line
