"""One watch: what has happened since a version, then what happens, as frames, until its end."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Mapping

import msgspec
from aiohttp import web

from tests.fakeapi.faults import (
    CutStream,
    EndStream,
    ErrorEvent,
    MuteStream,
    Pieces,
    RawBytes,
    Split,
    StreamEffect,
)
from tests.fakeapi.refusals import Object, Refused, bad_request
from tests.fakeapi.requests import Asked
from tests.fakeapi.selectors import selector
from tests.fakeapi.store import Change
from tests.fakeapi.world import Target, World, shown

_INITIAL_END = "k8s.io/initial-events-end"
_BOOKMARK_SECONDS = 60.0
_BEFORE_END = 2.0
"""The real server sends a last bookmark that long before a stream's end."""


class _Over(Exception):  # noqa: N818
    """The stream is at its end."""


class Stream:
    """An open watch.

    Raises:
        Refused: the query is wrong. Whatever else is wrong is told inside the stream, as by the real server.
    """

    def __init__(self, world: World, target: Target, asked: Asked, query: Mapping[str, str]) -> None:
        self.asked = asked
        self.target = target
        self._world = world
        self._wanted = selector(target.kind, query.get("labelSelector", ""), query.get("fieldSelector", ""))
        self._bookmarks = query.get("allowWatchBookmarks") in ("true", "1")
        self._queue: asyncio.Queue[Change | StreamEffect | None] = asyncio.Queue()
        self._cut: int | None = None
        self._frames: int | None = None
        self._piece: int | None = None
        self._split: int | None = None
        version = query.get("resourceVersion") or "0"
        if not version.isdecimal():
            said = f'resourceVersion: Invalid value: "{version}": strconv.ParseUint: parsing "{version}": invalid syntax'
            raise Refused(500, "", said)
        self._since = int(version)
        try:
            self._seconds = float(query.get("timeoutSeconds") or "inf")
        except ValueError as error:
            raise bad_request(f"timeoutSeconds: {error}") from error

    def apply(self, effect: StreamEffect) -> None:
        """Have an effect after what has happened until now."""
        self._queue.put_nowait(effect)

    def bookmark(self) -> None:
        """Send a bookmark after what has happened until now, if the client takes them."""
        if self._bookmarks:
            self._queue.put_nowait(RawBytes(self._bookmark()))

    def end(self) -> None:
        """End in good order after what has happened until now."""
        self._queue.put_nowait(None)

    async def run(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer the request until the stream's end."""
        # As the real server does where a stream begins with a whole list.
        self._packed = (
            self._bookmarks and not self._since and "gzip" in request.headers.get("Accept-Encoding", "")
        )
        packed = {"Content-Encoding": "gzip"} if self._packed else {}
        response = web.StreamResponse(headers={"Content-Type": "application/json", **packed})
        response.enable_chunked_encoding()
        self._request, self._response = request, response
        loop = asyncio.get_running_loop()
        effects = [self._queue.get_nowait() for _ in range(self._queue.qsize())]
        # Before anything is awaited: what happens from now on is in the queue.
        quiet = self._world.store.listen(self._heard)
        try:
            first = self._first_frames()
            self._began = self._world.store.revision
            end = loop.time() + self._seconds
            await response.prepare(request)
            for effect in effects:
                await self._take(effect)
            for frame in first:
                await self._send(frame)
            await self._follow(end)
        except _Over:
            pass
        finally:
            quiet()
        return response

    def _first_frames(self) -> list[bytes]:
        store, label = self._world.store, self.target.kind.label
        if self._since:
            try:
                changes = store.since(label, self._since)
            except Refused as refused:
                self.end()
                return [_frame("ERROR", refused.status)]
            return [frame for frame in map(self._event, changes) if frame]
        items = [item for key, item in store.items(label) if self._here(key[0]) and self._wanted(item)]
        frames = [_frame("ADDED", shown(self.target, item)) for item in items]
        return [*frames, self._bookmark(**{_INITIAL_END: "true"})] if self._bookmarks else frames

    async def _follow(self, end: float) -> None:
        loop = asyncio.get_running_loop()
        bookmark = self._next_bookmark(end)
        while True:
            wait = min(end, bookmark if self._bookmarks else end) - loop.time()
            try:
                news = await asyncio.wait_for(
                    self._queue.get(), None if wait == float("inf") else max(wait, 0)
                )
            except TimeoutError:
                if loop.time() >= end:
                    return
                if loop.time() >= bookmark:
                    # There is no news in the version that the stream began at.
                    if self._world.store.revision > self._began:
                        await self._send(self._bookmark())
                    bookmark = self._next_bookmark(end)
                continue
            await self._take(news)

    async def _take(self, news: Change | StreamEffect | None) -> None:
        if news is None:
            raise _Over
        if not isinstance(news, Change):
            await self._affect(news)
        elif frame := self._event(news):
            await self._send(frame)

    def _next_bookmark(self, end: float) -> float:
        now = asyncio.get_running_loop().time()
        last = end - _BEFORE_END
        return last if now < last < now + _BOOKMARK_SECONDS else now + _BOOKMARK_SECONDS

    def _heard(self, change: Change) -> None:
        if change.resource == self.target.kind.label:
            self._queue.put_nowait(change)

    def _here(self, namespace: str) -> bool:
        return not self.target.namespace or namespace == self.target.namespace

    def _event(self, change: Change) -> bytes | None:
        """The frame for a change; none when it is not about what is watched.

        What leaves the selection is deleted for this stream: as it last was, with the version of the change.
        """
        if not self._here(change.key[0]):
            return None
        old = change.old if change.old is not None and self._wanted(change.old) else None
        new = change.new if change.new is not None and self._wanted(change.new) else None
        if new is not None:
            return _frame("ADDED" if old is None else "MODIFIED", shown(self.target, new))
        if old is None:
            return None
        last = {**old, "metadata": {**old["metadata"], "resourceVersion": str(change.revision)}}
        return _frame("DELETED", shown(self.target, last))

    def _bookmark(self, **annotations: str) -> bytes:
        metadata: Object = {"annotations": annotations} if annotations else {}
        metadata["resourceVersion"] = str(self._world.store.revision)
        return _frame("BOOKMARK", shown(self.target, {"metadata": metadata}))

    async def _affect(self, effect: StreamEffect) -> None:
        match effect:
            case CutStream(after_bytes=count):
                self._cut = count
                await self._write(b"")
            case EndStream(after_frames=count):
                self._frames = count
                self._count(0)
            case MuteStream(until=event):
                await event.wait()
            case ErrorEvent(status=status):
                await self._send(_frame("ERROR", dict(status)))
            case RawBytes(data=data):
                await self._send(data)
            case Pieces(size=size):
                self._piece = size
            case Split(offset=offset):
                self._split = offset

    async def _send(self, frame: bytes) -> None:
        if self._split is not None:
            await self._write(frame[: self._split])
            await self._write(frame[self._split :])
        elif self._piece is not None:
            for start in range(0, len(frame), self._piece):
                await self._write(frame[start : start + self._piece])
        else:
            await self._write(frame)
        self._count(1)

    def _count(self, frames: int) -> None:
        if self._frames is not None:
            self._frames -= frames
            if self._frames <= 0:
                raise _Over

    async def _write(self, data: bytes) -> None:
        if self._cut is not None:
            data, self._cut = data[: self._cut], self._cut - len(data)
        if data:
            await self._response.write(gzip.compress(data) if self._packed else data)
        if self._cut is not None and self._cut <= 0:
            if self._request.transport is not None:
                # What is written so far arrives; the end of the body does not.
                self._request.transport.close()
            raise _Over


def _frame(kind: str, item: Object) -> bytes:
    return msgspec.json.encode({"type": kind, "object": item}) + b"\n"
