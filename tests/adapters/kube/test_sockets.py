"""Where the gateway's sockets lead, and that none stays open: seen from the other end."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest
import yaml

from fivespot.adapters.kube.errors import Unavailable
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.resources import CONFIG_MAPS
from fivespot.adapters.network.addresses import is_local


@attrs.define
class Mute:
    """A server that takes connections and says nothing, least of all its part of a TLS handshake."""

    port: int
    greeted: asyncio.Event = attrs.field(factory=asyncio.Event)
    left: asyncio.Event = attrs.field(factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.read(1):
            self.greeted.set()
            await reader.read()
        self.left.set()
        writer.close()
        await writer.wait_closed()


@asynccontextmanager
async def mute() -> AsyncIterator[Mute]:
    server = Mute(0)
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listener.sockets[0].getsockname()[1]
    async with listener:
        yield server


def kubeconfig(host: str, port: int) -> str:
    return yaml.safe_dump(
        {
            "clusters": [{"name": "c", "cluster": {"server": f"https://{host}:{port}"}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "c",
        }
    )


@asynccontextmanager
async def asking(path: Path) -> AsyncIterator[tuple[Mute, Gateway, "asyncio.Task[object]"]]:
    """A request in the middle of its TLS handshake."""
    async with mute() as server:
        file = path / "kubeconfig"
        file.write_text(kubeconfig("127.0.0.1", server.port))
        async with await Gateway.connect(kubeconfig=file) as gateway:
            request: asyncio.Task[object] = asyncio.create_task(
                gateway.merge_patch(CONFIG_MAPS, "ns", "a", {})
            )
            await server.greeted.wait()
            yield server, gateway, request


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(scenario(), 30)

    asyncio.run(bounded())


def test_a_request_that_is_cancelled_during_the_handshake_leaves_no_socket(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking(tmp_path) as (server, _, request):
            request.cancel()
            with pytest.raises(asyncio.CancelledError):
                await request
            await server.left.wait()

    run(scenario)


def test_closing_ends_a_request_in_its_handshake_at_once_and_leaves_no_socket(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking(tmp_path) as (server, gateway, request):
            await gateway.close()
            with pytest.raises(Unavailable, match="the gateway was closed"):
                await request
            await server.left.wait()

    run(scenario)


def name_of_loopback() -> str | None:
    """A harmless looking name that the hosts file or the resolver of this machine takes for its own."""
    for name in (socket.gethostname(), "localhost4", "localhost.localdomain"):
        with contextlib.suppress(OSError):
            if is_local(socket.gethostbyname(name)) and not is_local(name):
                return name
    return None


def test_a_childs_name_that_stands_for_this_machine_is_sent_nothing() -> None:
    if (name := name_of_loopback()) is None:
        pytest.skip("no name but localhost stands for this machine here")

    async def scenario() -> None:
        async with mute() as server:
            text = kubeconfig(name, server.port)
            async with await Gateway.from_kubeconfig(text, allow_local=False) as gateway:
                with pytest.raises(Unavailable, match="stands for 127") as caught:
                    await gateway.merge_patch(CONFIG_MAPS, "ns", "a", {})
                assert not caught.value.sent
            await server.left.wait()
            assert not server.greeted.is_set()

    run(scenario)
