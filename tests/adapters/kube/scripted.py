"""A web server on loopback that says what a test tells it to, byte for byte: small, and no API server.

A handler gets each request and a `Reply`; what it leaves open is cut when it returns.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import parse_qs, urlsplit

from fivespot.adapters.kube.gateway import Gateway


@dataclass
class Request:
    """What was asked."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


class Reply:
    """The other direction."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def json(self, body: Any, code: int = 200, **headers: str) -> None:
        await self.text(json.dumps(body), code, **headers)

    async def status(self, code: int, reason: str, **headers: str) -> None:
        await self.json(
            {
                "kind": "Status",
                "code": code,
                "reason": reason,
                "message": reason,
                "details": {"name": "a", "kind": "things"},
            },
            code,
            **headers,
        )

    async def text(self, text: str, code: int = 200, **headers: str) -> None:
        content = text.encode()
        lines = [f"HTTP/1.1 {code} X", f"Content-Length: {len(content)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self._writer.write("\r\n".join([*lines, "", ""]).encode() + content)
        await self._writer.drain()

    async def begin(self) -> None:
        """The headers of a stream."""
        self._writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        await self._writer.drain()

    async def chunk(self, data: bytes) -> None:
        self._writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        await self._writer.drain()

    async def event(self, type_: str, body: Any) -> None:
        await self.chunk(json.dumps({"type": type_, "object": body}).encode() + b"\n")

    async def end(self) -> None:
        """A stream's orderly end."""
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    def cut(self) -> None:
        """No more bytes, in the middle of whatever it was."""
        self._writer.close()


Handler = Callable[[Request, Reply], Awaitable[None]]


class Scripted:
    """The running server, and what it has been asked."""

    def __init__(self, handler: Handler) -> None:
        self.requests: list[Request] = []
        self.url = ""
        self._handler = handler
        self._open: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            while not writer.is_closing() and (request := await _read(reader)) is not None:
                self.requests.append(request)
                await self._handler(request, Reply(writer))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._open.discard(task)
            writer.close()

    async def stop(self) -> None:
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)


async def _read(reader: asyncio.StreamReader) -> Request | None:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode().strip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    parts = urlsplit(target)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    return Request(method, parts.path, query, headers, body)


@asynccontextmanager
async def scripted(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[Scripted]:
    """The server, for as long as the block."""
    server = Scripted(handler)
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=tls)
    host, port = listener.sockets[0].getsockname()[:2]
    server.url = f"{'https' if tls else 'http'}://{host}:{port}"
    try:
        yield server
    finally:
        listener.close()
        await server.stop()


@asynccontextmanager
async def connected(
    server: Scripted, user: dict[str, Any] | None = None, **options: Any
) -> AsyncIterator[Gateway]:
    """A gateway to it, through a kubeconfig."""
    config = {
        "clusters": [{"name": "c", "cluster": {"server": server.url}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    with TemporaryDirectory() as folder:
        path = Path(folder) / "kubeconfig"
        path.write_text(json.dumps(config))
        async with await Gateway.connect(kubeconfig=path, **options) as gateway:
            yield gateway
