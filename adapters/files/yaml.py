"""One YAML document as kubectl reads it: text in, nodes with lines out.

PyYAML finds the tokens (libyaml where it is compiled in, its pure Python twin otherwise); what they mean is decided
here and in `scalar.py`. Cutting a file into documents is the business of `stream.py`.
"""

import re
from collections.abc import Callable, Sequence
from typing import TypeGuard, cast

import yaml
from yaml.events import (
    AliasEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    StreamEndEvent,
)

from fivespot.adapters.files.anchors import Anchors
from fivespot.adapters.files.node import MAX_DEPTH, Node, TooDeep, Unreadable, twice
from fivespot.adapters.files.scalar import Raw, Unfit, has_surrogates, json_key, json_value, plain, tagged
from fivespot.adapters.files.yaml_events import Events, PureEvents
from fivespot.adapters.files.yaml_fault import file_lines, refusal_of, refuse_invisible

FastEvents: Callable[[str], Events] = yaml.cyaml.CParser if yaml.__with_libyaml__ else PureEvents  # type: ignore[attr-defined]  # the stubs hide the name

_MERGE_TAG = "tag:yaml.org,2002:merge"
_ESCAPED_SLASH = re.compile(r"(?:[^\\]|\\[^/])*\\/", re.DOTALL)


def read_yaml(text: str, first_line: int = 1, events: Callable[[str], Events] = FastEvents) -> Node | None:
    """Read the one document in `text`, whose first line is line `first_line` of its file; None where there is none.

    Unreadable when kubectl refuses it, and in three places where kubectl goes on but drops what the author wrote: a key
    twice, text behind the end of the document, and nesting that nobody means.
    """
    # kubectl ends every line on its way in, which makes the last line of a block scalar whole.
    text = text.removeprefix("\ufeff") + ("" if text.endswith("\n") else "\n")
    lines = file_lines(text, first_line)
    refuse_invisible(text, first_line)
    try:
        return _Composer(text, lines, events(text)).document()
    except yaml.YAMLError as error:
        raise refusal_of(error, text, lines) from None


class _Composer:
    """Builds the nodes of one document from its events; holds what aliases need to know of what came before."""

    def __init__(self, text: str, lines: Sequence[int], events: Events) -> None:
        self._text = text
        self._lines = lines
        self._event = cast("Callable[[], Event]", events.get_event)
        self._anchors = Anchors()
        self._in_brackets = False
        # Things that no event tells; looking for them costs, so only where the text can hold them.
        self._question_marks = "?" in text
        self._escapes = "\\" in text

    def document(self) -> Node | None:
        self._event()
        start = self._event()
        if not isinstance(start, DocumentStartEvent):
            return None
        root = self._node(self._event(), 0)
        self._event()
        end = self._event()
        if not isinstance(end, StreamEndEvent):
            behind = self._line(self._event() if isinstance(end, DocumentStartEvent) else end)
            rows = self._text.rstrip("\n").split("\n")
            row = min(behind - self._lines[0], len(rows) - 1)
            remedy = (
                "kubectl ignores what follows the end of a document; put a line `---` before the next one"
            )
            raise Unreadable(self._lines[0] + row, rows[row].strip(), remedy)
        return root

    def _line(self, event: Event) -> int:
        return self._lines[event.start_mark.line]  # type: ignore[union-attr]  # parsers always set marks

    def _node(self, event: Event, depth: int) -> Node:
        if type(event) is ScalarEvent:
            return self._value(event)
        if type(event) is AliasEvent:
            return self._alias(event, depth)
        if depth == MAX_DEPTH:
            raise TooDeep(self._line(event))
        return self._container(cast("CollectionStartEvent", event), depth + 1)

    def _container(self, event: CollectionStartEvent, depth: int) -> Node:
        self._anchors.decoded += 1
        name = event.anchor
        if name is not None:
            self._anchors.begin(name)
        around, self._in_brackets = self._in_brackets, bool(event.flow_style)
        fill = self._mapping if type(event) is MappingStartEvent else self._sequence
        node = fill(self._line(event), depth)
        self._in_brackets = around
        if name is not None:
            self._anchors.end(name, node)
        return node

    def _sequence(self, line: int, depth: int) -> Node:
        values: list[object] = []
        children: list[Node] = []
        node = Node(line, values, children, height=1)
        while type(event := self._event()) is not SequenceEndEvent:
            try:
                child = self._node(event, depth)
            except Unreadable as refused:
                raise refused.below(f"[{len(children)}]") from None
            node.grow(child)
            values.append(child.value)
            children.append(child)
        return node

    def _mapping(self, line: int, depth: int) -> Node:
        values: dict[str, object] = {}
        children: dict[str, tuple[int, Node]] = {}
        node = Node(line, values, children, height=1)
        own: dict[str, int] = {}
        while type(event := self._event()) is not MappingEndEvent:
            key_line = self._line(event)
            if _is_merge(event):
                self._remember(event, "<<")
                merged = self._merged(depth)
                node.grow(merged)
                # In order of appearance, so a key may be overridden by a merge that follows it.
                values.update(merged.value)
                children.update(cast("dict[str, tuple[int, Node]]", merged.children))
                continue
            key = self._key(event)
            if key in own:
                written = event.value if type(event) is ScalarEvent else key
                raise twice(key_line, written, key, own[key])
            own[key] = key_line
            try:
                child = self._node(self._event(), depth)
            except Unreadable as refused:
                raise refused.below(key) from None
            node.size += 1
            node.grow(child)
            values[key] = child.value
            children[key] = (key_line, child)
        return node

    def _merged(self, depth: int) -> Node:
        """The mapping that stands behind `<<`; of several, the first has the last word."""
        event = self._event()
        node = self._node(event, depth)
        sources = [node]
        if isinstance(node.children, list) and type(event) is not AliasEvent:
            sources = node.children[::-1]
        merged = Node(node.line, {}, {}, node.size, node.height)
        for source in sources:
            if not isinstance(source.children, dict):
                raise Unreadable(source.line, source.value, "<< takes a mapping or a list of mappings", "<<")
            merged.value.update(source.value)
            cast("dict[str, tuple[int, Node]]", merged.children).update(source.children)
        return merged

    def _key(self, event: Event) -> str:
        if type(event) is ScalarEvent:
            self._anchors.decoded += 1
            raw = self._raw(event)
            self._remember(event, raw)
        else:
            target = (
                self._anchors.follow(str(event.anchor), self._line(event))
                if type(event) is AliasEvent
                else None
            )
            if target is None or target.children is not None:
                raise self._unfit(event, "...", "a key is a string; a list or a mapping cannot be one")
            raw = target.value
        try:
            return json_key(raw)
        except Unfit as unfit:
            raise self._unfit(event, raw, str(unfit)) from None

    def _value(self, event: ScalarEvent) -> Node:
        self._anchors.decoded += 1
        raw = self._raw(event)
        self._remember(event, raw)
        return Node(self._line(event), self._json(raw, event))

    def _alias(self, event: AliasEvent, depth: int) -> Node:
        node = self._anchors.follow(str(event.anchor), self._line(event))
        if node.children is None:
            node.value = self._json(node.value, event)
        elif depth + node.height > MAX_DEPTH:
            raise TooDeep(node.line)
        return node

    def _json(self, raw: Raw, event: Event) -> Raw:
        try:
            return json_value(raw)
        except Unfit as unfit:
            raise self._unfit(event, raw, str(unfit)) from None

    def _unfit(self, event: Event, value: object, remedy: str) -> Unreadable:
        return Unreadable(self._line(event), value, remedy)

    def _remember(self, event: ScalarEvent, raw: Raw) -> None:
        if event.anchor is not None:
            self._anchors.name(event.anchor, self._line(event), raw)

    def _raw(self, event: ScalarEvent) -> Raw:
        if self._escapes and event.style == '"':
            if _ESCAPED_SLASH.match(self._source(event)):
                raise self._unfit(event, event.value, "YAML knows no escape \\/; write the slash alone")
            if has_surrogates(event.value):
                raise self._unfit(event, "\\u", "write the character itself, or one \\U with eight digits")
        if self._question_marks and self._in_brackets and not event.style and "?" in event.value:
            raise self._unfit(event, event.value, "quote it; to kubectl a ? inside brackets begins a key")
        tag = event.tag
        if tag is not None and tag != "!":
            try:
                return tagged(tag, event.value)
            except Unfit as unfit:
                raise self._unfit(event, event.value, str(unfit)) from None
        # A bare `!` is to kubectl a tag like any other that it does not know.
        if tag or event.style or not event.implicit[0]:
            return event.value
        return plain(event.value)

    def _source(self, event: Event) -> str:
        return self._text[event.start_mark.index : event.end_mark.index]  # type: ignore[union-attr]


def _is_merge(event: Event) -> TypeGuard[ScalarEvent]:
    return (
        type(event) is ScalarEvent and event.value == "<<" and (event.implicit[0] or event.tag == _MERGE_TAG)
    )
