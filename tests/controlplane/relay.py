"""A way to a server on a loopback port that a test can cut, and on which it can hold a request back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from tests.controlplane.ports import free_ports

_CHUNK = 64 * 1024


class Relay:
    """Passes bytes on, unread: what goes through may be TLS. Made by `relay`.

    Attributes:
        held: set while a request is held back.
    """

    def __init__(self, target: int) -> None:
        self.port = free_ports(1)[0]
        self.held = asyncio.Event()
        self._target = target
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._answers_left: int | None = None
        self._answering = False
        self._released = asyncio.Event()

    async def mend(self) -> None:
        """Let connections through, from now on."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)

    async def cut(self) -> None:
        """Break what is open, and refuse what comes."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in tuple(self._writers):
            writer.transport.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def hold(self, *, after: int) -> None:
        """Let so many requests be answered, and hold the next one back until `release`.

        Meant for one connection that is open already, with one request after the other on it.
        """
        self._answers_left, self._answering = after, False

    def release(self) -> None:
        """Let the request that is held go on its way."""
        self.held.clear()
        self._released.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        ends = [writer]
        self._writers.add(writer)
        try:
            # A server that is down is a connection that ends at once.
            with contextlib.suppress(OSError):
                target_reader, target_writer = await asyncio.open_connection("127.0.0.1", self._target)
                ends.append(target_writer)
                self._writers.add(target_writer)
                await asyncio.gather(
                    self._pump(reader, target_writer, from_client=True),
                    self._pump(target_reader, writer, from_client=False),
                )
        finally:
            for end in ends:
                end.close()
                self._writers.discard(end)
            self._tasks.discard(task)

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, from_client: bool
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK):
                if from_client:
                    await self._gate()
                else:
                    self._answering = True
                writer.write(data)
                await writer.drain()
        # The other direction ends too, as it does when a machine in between goes.
        writer.close()

    async def _gate(self) -> None:
        """Count an exchange each time that the client speaks after the server has."""
        if self._answers_left is None:
            return
        if self._answering:
            self._answering = False
            self._answers_left -= 1
        if self._answers_left == 0:
            self._answers_left = None
            self._released.clear()
            self.held.set()
            await self._released.wait()


@contextlib.asynccontextmanager
async def relay(target: int) -> AsyncIterator[Relay]:
    """A relay to a loopback port, open; cut at the end."""
    made = Relay(target)
    await made.mend()
    try:
        yield made
    finally:
        made.release()
        await made.cut()
