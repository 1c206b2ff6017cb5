"""Bytes from the server to objects: answers, pages and watch frames.

Frames are split at the line feed byte and nowhere else. JSON escapes a line feed inside a string, but not U+0085 or U+2028,
at which `str.splitlines` would cut an event in two.
"""

from collections.abc import Iterator
from typing import Any

import attrs
import msgspec

from fivespot.adapters.kube.resources import Object, Resource

FRAME_BYTES = 64 * 1024 * 1024
"""One event holds one object, which etcd bounds at 1.5 MB by default; more than this is no API server talking."""


class BadAnswer(Exception):  # noqa: N818
    """Bytes that no API server sends."""


@attrs.frozen
class WatchEvent:
    """One change: `ADDED`, `MODIFIED` or `DELETED` with the object, or `BOOKMARK`, whose object is only a version."""

    type: str
    object: Object

    @property
    def resource_version(self) -> str:
        """The version that a watch resumes from after this event; empty if the object names none."""
        metadata = self.object.get("metadata")
        return str(metadata.get("resourceVersion") or "") if isinstance(metadata, dict) else ""


@attrs.frozen
class Page:
    """One page of a list, its objects still bytes; `more` is the token of the next page, empty on the last."""

    items: list[msgspec.Raw]
    resource: Resource
    resource_version: str
    more: str

    def each(self) -> Iterator[Object]:
        """The objects. Built-in kinds leave apiVersion and kind out of the items of a list; they are put in.

        Raises:
            BadAnswer: one of them is no JSON object.
        """
        for raw in self.items:
            item = decode_object(raw)
            item.setdefault("apiVersion", self.resource.api_version)
            item.setdefault("kind", self.resource.kind)
            yield item


class Frames:
    """Cuts a byte stream into lines, however it arrives."""

    def __init__(self, bound: int = FRAME_BYTES) -> None:
        self._bound = bound
        self._pieces: list[bytes] = []
        self._held = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` completes, without their end and without empty ones.

        Raises:
            BadAnswer: a line is longer than the bound.
        """
        *whole, rest = chunk.split(b"\n")
        if whole:
            whole[0] = b"".join((*self._pieces, whole[0]))
            self._pieces, self._held = [], 0
        if rest:
            # Joined only once complete: a large object arrives in many chunks.
            self._pieces.append(rest)
            self._held += len(rest)
        if self._held > self._bound:
            message = f"a watch event longer than {self._bound} bytes"
            raise BadAnswer(message)
        return [line for line in whole if line.strip()]


class _Frame(msgspec.Struct):
    type: str
    object: dict[str, Any]


class _ListMeta(msgspec.Struct):
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    more: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


_FRAME = msgspec.json.Decoder(_Frame)
_LIST = msgspec.json.Decoder(_List)
_OBJECT = msgspec.json.Decoder(dict[str, Any])


def encode(body: object) -> bytes:
    """JSON."""
    return msgspec.json.encode(body)


def decode_event(line: bytes) -> WatchEvent:
    """One watch frame.

    Raises:
        BadAnswer: it is no watch frame.
    """
    try:
        frame = _FRAME.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        message = f"a watch event that cannot be read: {error}"
        raise BadAnswer(message) from error
    return WatchEvent(frame.type, _slim(frame.object))


def decode_object(body: bytes | msgspec.Raw) -> Object:
    """One object, or any other JSON object that the server answers with.

    Raises:
        BadAnswer: it is no JSON object.
    """
    return _slim(decode_whole(body))


def decode_whole(body: bytes | msgspec.Raw) -> Object:
    """The same with managedFields, for whoever asks who owns a field.

    Raises:
        BadAnswer: it is no JSON object.
    """
    try:
        return _OBJECT.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        message = f"an answer that cannot be read: {error}"
        raise BadAnswer(message) from error


def decode_error(body: bytes) -> Object | str:
    """A Status, or the text of whoever answered instead of the API server."""
    try:
        return _OBJECT.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return body.decode(errors="replace")


def decode_page(body: bytes, resource: Resource) -> Page:
    """One page of a list.

    Raises:
        BadAnswer: it is no list.
    """
    try:
        page = _LIST.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        message = f"a list that cannot be read: {error}"
        raise BadAnswer(message) from error
    return Page(page.items or [], resource, page.metadata.resource_version, page.metadata.more)


def _slim(body: Object) -> Object:
    """Without managedFields: half of an object's size, and nothing that we decide by."""
    metadata = body.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
    return body
