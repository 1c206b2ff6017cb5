"""The objects that files describe, and what is wrong with the files: the door of this package.

What kinds mean and which fields they have is none of its business; it stops at `apiVersion` and `kind`.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import attrs

from fivespot.adapters.files.node import Node, Unreadable, line_of
from fivespot.adapters.files.paths import Text, UnreadableFile, read_texts
from fivespot.adapters.files.stream import Source, nodes_again, read_stream
from fivespot.core.errors import shown


@attrs.frozen
class Document:
    """One object as it stands in a file.

    Attributes:
        body: the object as the API server would get it. Parts that aliases repeat are shared, so do not change it.
        file: the file's name as it was given or found; `<stdin>` for standard input.
        line: the line of the file on which the object begins, from 1.
    """

    body: Mapping[str, Any]
    file: str
    line: int
    _source: Source | None = attrs.field(default=None, eq=False, repr=False)
    _place: str = attrs.field(default="", eq=False, repr=False)

    def line_of(self, field: str) -> int:
        """The line of a field such as `spec.windows[0].start`, or of the nearest parent that the file holds."""
        if self._source is None or not field:
            return self.line
        path = f"{self._place}.{field}" if self._place else field
        return line_of(nodes_again(self._source), path)


@attrs.frozen
class FileProblem:
    """Why a file, or one object in it, is refused.

    Attributes:
        file: as in Document.
        line: from 1; 0 when the file as a whole is meant, since it was not read.
        field: path of the field, such as `metadata.name`; empty where the text or the whole object is at fault.
        value: what stood there.
        remedy: what to do about it, as one sentence without a full stop.
    """

    file: str
    line: int
    field: str
    value: Any
    remedy: str

    def __str__(self) -> str:
        if not self.line:
            return f"{self.file} is refused: {self.remedy}"
        field = f"{self.field}: " if self.field else ""
        return f"{self.file}:{self.line}: {field}{shown(self.value)} is refused: {self.remedy}"


def read_documents(
    paths: Sequence[str | Path], stdin: TextIO | None = None
) -> tuple[list[Document], list[FileProblem]]:
    """Read every object in `paths`: files, folders (with all below) and `-` for `stdin`.

    Objects come in the order of the paths, of the file names in a folder and of the text; a `List` gives its items. A
    file with a problem gives no objects at all, and the other files go on. Never raises for what a file holds.
    """
    documents: list[Document] = []
    problems: list[FileProblem] = []
    for text in read_texts(paths, stdin):
        if isinstance(text, UnreadableFile):
            problems.append(FileProblem(text.file, text.line, "", text.value, text.remedy))
            continue
        found, refused = _read(text)
        problems += refused
        documents += [] if refused else found
    return documents, problems


def _read(text: Text) -> tuple[list[Document], list[FileProblem]]:
    documents: list[Document] = []
    refusals: list[Unreadable] = []
    for found in read_stream(text.content):
        if isinstance(found, Unreadable):
            refusals.append(found)
            continue
        root, source = found
        for node, place, parent in _objects(root):
            try:
                documents.append(Document(_body(node, place, parent), text.file, node.line, source, place))
            except Unreadable as refused:
                refusals.append(refused)
    refusals.sort(key=lambda refused: refused.line)
    return documents, [FileProblem(text.file, it.line, it.field, it.value, it.remedy) for it in refusals]


def _objects(root: Node) -> Iterator[tuple[Node, str, Mapping[str, Any]]]:
    """The objects of one document, each with its path and the list that holds it."""
    items = root.children.get("items") if isinstance(root.children, dict) else None
    # Any object with `items` is a list to kubectl, whatever its kind (UnstructuredJSONScheme in apimachinery).
    if items is None:
        yield root, "", {}
    elif isinstance(items[1].children, list):
        for index, item in enumerate(items[1].children):
            yield item, f"items[{index}]", root.value
    elif items[1].value is not None:
        yield items[1], "items", root.value


def _body(node: Node, place: str, parent: Mapping[str, Any]) -> dict[str, Any]:
    """The object; Unreadable for what is none."""
    if place == "items":
        raise Unreadable(node.line, node.value, "the items of a list are a list of objects", place)
    if not isinstance(node.value, dict):
        raise Unreadable(
            node.line, node.value, "an object is a mapping with apiVersion, kind and metadata", place
        )
    body = _with_type_of_list(node.value, parent)
    for field in ("apiVersion", "kind"):
        value = body.get(field)
        if not isinstance(value, str) or not value:
            path = f"{place}.{field}" if place else field
            raise Unreadable(
                line_of(node, field), value, f"write the {field} that the object is of, as a string", path
            )
    return body


def _with_type_of_list(item: dict[str, Any], parent: Mapping[str, Any]) -> dict[str, Any]:
    """The items of a typed list (`ScheduledMachineList`) may leave out what the list says, but only both at once."""
    kind = parent.get("kind")
    if item.get("kind") or item.get("apiVersion") or not isinstance(kind, str):
        return item
    return {**item, "apiVersion": parent.get("apiVersion"), "kind": kind.removesuffix("List")}
