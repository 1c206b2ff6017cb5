"""A loopback server of kinds that come and go, whose streams can be counted: a stream ends here when its reader leaves."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from tests.adapters.kube.scripted import Reply, Request, Scripted

GROUP = "kinds.example.com"


class KindServer(Scripted):
    """Serves discovery, lists and streams of its kinds; every kind has one object, `it`.

    Attributes:
        kinds: version and plural of each kind that is served.
        streams: of each plural, the open ones.
        opened: of each plural, how many streams have been agreed to.
        version: of everything.
    """

    def __init__(self) -> None:
        super().__init__(self._answer)
        self.kinds: dict[str, tuple[str, str]] = {}
        self.streams: defaultdict[str, set[asyncio.Queue[dict[str, Any] | None]]] = defaultdict(set)
        self.opened: Counter[str] = Counter()
        self.version = 10
        self._readers: dict[asyncio.Task[Any] | None, asyncio.StreamReader] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._readers[task] = reader
        try:
            with suppress(asyncio.CancelledError):
                await super().serve(reader, writer)
        finally:
            del self._readers[task]

    @property
    def connections(self) -> int:
        return len(self._readers)

    def open_streams(self) -> dict[str, int]:
        """Those plurals of which there is a stream, and how many."""
        return {plural: len(open_) for plural, open_ in self.streams.items() if open_}

    def end(self, plural: str) -> None:
        """End the streams of a plural in good order."""
        for stream in self.streams[plural]:
            stream.put_nowait(None)

    def change(self, kind: str) -> None:
        """Tell the streams of a kind that its object has changed."""
        version, plural = self.kinds[kind]
        self.version += 1
        for stream in self.streams[plural]:
            stream.put_nowait({"type": "MODIFIED", "object": self._object(kind, version)})

    async def _answer(self, request: Request, reply: Reply) -> None:
        _, _, _, version, *rest = (*request.path.split("/"), "")
        served = {plural: kind for kind, (at, plural) in self.kinds.items() if at == version}
        if request.path == f"/apis/{GROUP}":
            await reply.json({"versions": [{"version": at} for at, _ in self.kinds.values()]})
        elif request.path == f"/apis/{GROUP}/{version}" and served:
            resources = [{"name": p, "kind": kind, "namespaced": True} for p, kind in served.items()]
            await reply.json({"resources": resources})
        elif rest[0] not in served:
            await reply.text("404 page not found", 404)
        elif "watch" in request.query:
            await self._stream(rest[0], reply)
        else:
            items = [self._object(served[rest[0]], version)]
            await reply.json({"metadata": {"resourceVersion": str(self.version)}, "items": items})

    def _object(self, kind: str, version: str) -> dict[str, Any]:
        metadata = {"namespace": "ns", "name": "it", "uid": kind, "resourceVersion": str(self.version)}
        return {"apiVersion": f"{GROUP}/{version}", "kind": kind, "metadata": metadata}

    async def _stream(self, plural: str, reply: Reply) -> None:
        events: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self.streams[plural].add(events)
        self.opened[plural] += 1
        reader = self._readers[asyncio.current_task()]
        leaving = asyncio.ensure_future(_leaving(reader, events))
        try:
            await reply.begin()
            while (event := await events.get()) is not None:
                await reply.event(event["type"], event["object"])
            # Whoever has left does not mind.
            await reply.end()
        finally:
            self.streams[plural].discard(events)
            leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)


async def _leaving(reader: asyncio.StreamReader, events: asyncio.Queue[dict[str, Any] | None]) -> None:
    """A reader says nothing while its stream is open: what comes is its end."""
    with suppress(ConnectionError):
        await reader.read(1)
    events.put_nowait(None)


@asynccontextmanager
async def serving(server: KindServer) -> AsyncIterator[KindServer]:
    """The server, for as long as the block."""
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = "http://{}:{}".format(*listener.sockets[0].getsockname()[:2])
    try:
        yield server
    finally:
        listener.close()
        await server.stop()
