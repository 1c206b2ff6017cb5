"""Child clusters: what is told of one that falls silent, and what goes with a machine that leaves one."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import pytest

from fivespot.adapters.clock import FakeClock
from fivespot.adapters.kube.control.children import Child, ChildKey, Children
from fivespot.adapters.kube.control.streams import pods_stream
from fivespot.adapters.kube.control.watches import Stream
from fivespot.adapters.kube.resources import Object
from fivespot.core.decision.knowledge import Unknown
from tests.adapters.kube.scripted import Reply, Request, connected, scripted
from tests.controlplane import kubeconfig
from tests.controlplane.certs import CertificateAuthority

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
GRID = ChildKey(namespace="ns", secret="grid", entry="value")
KINDS = {
    "resources": [
        {"name": "nodes", "kind": "Node", "namespaced": False},
        {"name": "pods", "kind": "Pod", "namespaced": True},
    ]
}


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 30))


class ChildServer:
    """A child without objects; while `up` is False its streams are cut and refused."""

    def __init__(self) -> None:
        self.up = True
        self.cut = asyncio.Event()

    async def __call__(self, request: Request, reply: Reply) -> None:
        if not self.up:
            await reply.status(503, "ServiceUnavailable")
        elif request.path == "/api/v1":
            await reply.json(KINDS)
        elif "watch" in request.query:
            await reply.begin()
            await self.cut.wait()
            reply.cut()
        else:
            await reply.json({"metadata": {"resourceVersion": "1"}, "items": []})

    def fall_silent(self) -> None:
        self.up = False
        self.cut.set()

    def come_back(self) -> None:
        self.cut.clear()
        self.up = True


@attrs.define
class World:
    """The children under test, what they told, and the child's server."""

    children: Children
    told: "asyncio.Queue[frozenset[str]]"
    serving: ChildServer
    clock: FakeClock

    async def until_told(self) -> frozenset[str]:
        """Let time pass until something is told."""
        moving = asyncio.ensure_future(self._let_time_pass())
        try:
            return await self.told.get()
        finally:
            moving.cancel()

    async def _let_time_pass(self) -> None:
        while True:
            await asyncio.sleep(0.001)
            self.clock.advance(0.1)

    async def connected(self) -> Child:
        """The child, once it is connected and its Nodes are read."""
        await self.told.get()
        await self.told.get()
        child = self.children.get(GRID)
        assert isinstance(child, Child)
        return child


@asynccontextmanager
async def world(folder: Path) -> AsyncIterator[World]:
    authority, serving, clock = CertificateAuthority(), ChildServer(), FakeClock(NOON)
    credential = authority.server()
    (folder / "certificate").write_bytes(credential.certificate)
    (folder / "key").write_bytes(credential.key)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "certificate", folder / "key")
    text = ""

    async def management(_: Request, reply: Reply) -> None:
        await reply.json({"data": {"value": base64.b64encode(text.encode()).decode()}})

    told: asyncio.Queue[frozenset[str]] = asyncio.Queue()

    def ignore(_key: ChildKey, _stream: Stream, _old: Object | None, _new: Object | None) -> None:
        return

    async with (
        scripted(serving, tls) as child_server,
        scripted(management) as server,
        connected(server) as gateway,
    ):
        text = kubeconfig.render(
            server=child_server.url,
            authority=authority.certificate,
            user="us",
            credential=authority.client("us"),
        )
        children = Children(
            gateway,
            clock,
            allow_local=True,
            on_change=ignore,
            on_state=lambda _key, users: told.put_nowait(users),
        )
        try:
            yield World(children, told, serving, clock)
        finally:
            await children.close()


def test_a_child_that_falls_silent_is_told_of_and_so_is_its_return(tmp_path: Path) -> None:
    """Neither comes with a change of any Node."""

    async def scenario() -> None:
        async with world(tmp_path) as here:
            here.children.want("ns/a", GRID)
            here.children.want("ns/b", GRID)
            child = await here.connected()
            assert child.silence is None
            here.serving.fall_silent()
            assert await here.until_told() == {"ns/a", "ns/b"}
            assert child.silence is not None
            here.serving.come_back()
            assert await here.until_told() == {"ns/a", "ns/b"}
            assert child.silence is None

    run(scenario())


def test_the_pods_of_a_node_are_told_only_to_who_asked_for_them(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path) as here:
            here.children.want("ns/a", GRID)
            here.children.want("ns/b", GRID)
            child = await here.connected()
            child.watches.want("ns/a", [pods_stream("desk-1")])
            assert await here.told.get() == {"ns/a"}

    run(scenario())


def test_a_machine_that_leaves_a_child_takes_its_pods_along(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path) as here:
            here.children.want("ns/a", GRID)
            here.children.want("ns/b", GRID)
            child = await here.connected()
            child.watches.want("ns/a", [pods_stream("desk-1")])
            await here.told.get()
            here.children.want("ns/a", None)
            assert child.watches.reflector(pods_stream("desk-1")) is None
            assert here.children.get(GRID) is child

    run(scenario())


def test_a_child_that_is_left_and_wanted_again_at_once_is_connected_anew(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path) as here:
            here.children.want("ns/a", GRID)
            before = await here.connected()
            here.children.want("ns/a", None)
            here.children.want("ns/a", GRID)
            after = await here.connected()
            assert after is not before
            assert after.nodes is not None
            assert after.nodes.synced.is_set()

    run(scenario())


@pytest.mark.parametrize(
    ("secret", "why"), [("", "kubeconfigSecretRef cannot be read"), ("..", "cannot be a name")]
)
def test_a_secret_that_nobody_was_prepared_for_is_said_and_not_waited_for(
    tmp_path: Path, secret: str, why: str
) -> None:
    async def scenario() -> None:
        async with world(tmp_path) as here:
            odd = ChildKey(namespace="ns", secret=secret, entry="value")
            here.children.want("ns/a", odd)
            assert here.children.pending(odd)
            assert await here.told.get() == {"ns/a"}
            found = here.children.get(odd)
            assert isinstance(found, Unknown)
            assert why in found.why
            assert not here.children.pending(odd)

    run(scenario())
