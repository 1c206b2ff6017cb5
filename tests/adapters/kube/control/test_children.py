"""Child clusters: how they are found, what is told of them, and what goes with a machine that leaves one."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest

from fivespot.adapters.kube.control.children import Child, ChildKey, Children
from fivespot.adapters.kube.control.streams import NODES, pods_stream
from fivespot.adapters.kube.control.watches import Stream
from fivespot.adapters.kube.watching import Key
from fivespot.core.decision.knowledge import Present, Unknown
from tests.fakeapi import FakeApi, fake_api
from tests.fakeapi.faults import Answer, CutStream, Hold
from tests.faults.setting import LONGEST_PAUSE, HandClock, gateway_to, run

GRID = ChildKey(namespace="ns", secret="grid", entry="value")
OTHER_ENTRY = attrs.evolve(GRID, entry="other")
DESK = "desk-1"


@attrs.define
class World:
    """The children under test, what they told, and both servers."""

    children: Children
    management: FakeApi
    child: FakeApi
    clock: HandClock
    told: "asyncio.Queue[tuple[ChildKey, frozenset[str]]]"

    def give(self, text: str | None = None, **more: str) -> None:
        """Put a kubeconfig into the Secret; the child's own if none is given."""
        text = self.child.kubeconfig() if text is None else text
        data = {name: b64encode(one.encode()).decode() for name, one in {"value": text, **more}.items()}
        self.put(data)

    def put(self, data: dict[str, Any]) -> None:
        store, key = self.management.world.store, ("ns", "grid")
        if (found := store.get("secrets", key)) is None:
            self.management.create("v1", "secrets", {"metadata": {"name": "grid"}, "data": data}, "ns")
        else:
            store.put("secrets", key, {**found, "data": data})

    def take_away(self) -> None:
        self.management.world.store.remove("secrets", ("ns", "grid"))

    async def until_told(self) -> frozenset[str]:
        """Let time pass until something is told."""
        async with self.clock.passing(0.1):
            return (await self.told.get())[1]

    async def connected(self, *users: str) -> Child:
        """The child, once it is connected and its Nodes are read."""
        for user in users:
            self.children.want(user, GRID)
        while not self.knows(GRID):
            await self.told.get()
        child = self.children.get(GRID)
        assert isinstance(child, Child)
        return child

    def knows(self, key: ChildKey = GRID) -> bool:
        """Whether the child can be seen now, with its Node."""
        child = self.children.get(key)
        if not isinstance(child, Child) or child.silence is not None:
            return False
        nodes = child.nodes
        return nodes is not None and nodes.synced.is_set() and isinstance(nodes.get(None, DESK), Present)

    async def until_unknown(self, key: ChildKey = GRID) -> Unknown:
        """Let time pass until it is told why the child cannot be seen."""
        async with self.clock.passing(0.1):
            while not (
                isinstance(found := self.children.get(key), Unknown) and not self.children.pending(key)
            ):
                await self.told.get()
        return found

    async def until_known(self, key: ChildKey = GRID) -> Child:
        """Let time pass until the child can be seen."""
        async with self.clock.passing(0.1):
            while not self.knows(key):
                await self.told.get()
        child = self.children.get(key)
        assert isinstance(child, Child)
        return child

    def count(self, verb: str, plural: str) -> int:
        audit = [*self.management.audit, *self.child.audit]
        return sum((entry.asked.verb, entry.asked.resource) == (verb, plural) for entry in audit)

    async def until_streams(self, secrets: int, nodes: int) -> None:
        """Wait until so many streams are open; the servers have no event of their own for it."""
        while (len(self.management.streams), len(self.child.streams)) != (secrets, nodes):  # noqa: ASYNC110
            await asyncio.sleep(0.001)

    @asynccontextmanager
    async def always_known(self) -> AsyncIterator[None]:
        """The child can be seen in every turn of the event loop."""
        blind = 0

        async def look() -> None:
            nonlocal blind
            while True:
                blind += not self.knows()
                await asyncio.sleep(0)

        looking = asyncio.ensure_future(look())
        try:
            yield
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
        assert not blind


async def until_closed(child: Child) -> None:
    """Wait until nothing of a connection is left; nobody else waits for that."""
    session = child.gateway._connection._api._session
    assert session is not None
    while not session.is_closed:  # noqa: ASYNC110
        await asyncio.sleep(0.001)


def silent(child: Child) -> bool:
    return child.silence is not None


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    """A Secret with the kubeconfig of a child that has one Node, and nobody who wants it yet."""
    clock = HandClock()
    told: asyncio.Queue[tuple[ChildKey, frozenset[str]]] = asyncio.Queue()

    def ignore(_key: ChildKey, _stream: Stream[Any], _of: Key, _old: object, _new: object) -> None:
        return

    async with fake_api() as management, fake_api(tls=True) as child, gateway_to(management) as gateway:
        management.create("v1", "namespaces", {"metadata": {"name": "ns"}})
        child.create("v1", "nodes", {"metadata": {"name": DESK}})
        children = Children(
            gateway,
            clock,
            allow_local=True,
            on_change=ignore,
            on_state=lambda key, users: told.put_nowait((key, users)),
        )
        here = World(children, management, child, clock, told)
        here.give()
        try:
            yield here
        finally:
            await children.close()
            await here.until_streams(0, 0)


def test_a_child_that_falls_silent_is_told_of_and_so_is_its_return() -> None:
    """Neither comes with a change of any Node."""

    async def scenario() -> None:
        async with world() as here:
            child = await here.connected("ns/a", "ns/b")
            assert not silent(child)
            await here.until_streams(1, 1)
            refusing = here.child.faults.add(Answer(503), times=None)
            here.child.faults.on_streams(CutStream())
            while not here.told.empty():
                here.told.get_nowait()
            assert await here.until_told() == {"ns/a", "ns/b"}
            assert silent(child)
            refusing.remove()
            assert await here.until_told() == {"ns/a", "ns/b"}
            assert not silent(child)

    run(scenario())


def test_the_pods_of_a_node_are_told_only_to_who_asked_for_them() -> None:
    async def scenario() -> None:
        async with world() as here:
            child = await here.connected("ns/a", "ns/b")
            child.watches.want("ns/a", [pods_stream(DESK)])
            assert (await here.told.get())[1] == {"ns/a"}

    run(scenario())


def test_a_machine_that_leaves_a_child_takes_its_pods_along() -> None:
    async def scenario() -> None:
        async with world() as here:
            child = await here.connected("ns/a", "ns/b")
            child.watches.want("ns/a", [pods_stream(DESK)])
            await here.told.get()
            here.children.want("ns/a", None)
            assert child.watches.reflector(pods_stream(DESK)) is None
            assert here.children.get(GRID) is child

    run(scenario())


def test_a_child_that_is_left_and_wanted_again_at_once_is_connected_anew() -> None:
    async def scenario() -> None:
        async with world() as here:
            before = await here.connected("ns/a")
            await here.until_streams(1, 1)
            here.children.want("ns/a", None)
            after = await here.connected("ns/a")
            assert after is not before
            await here.until_streams(1, 1)
            await until_closed(before)

    run(scenario())


@pytest.mark.parametrize(
    ("secret", "why"),
    [("", "kubeconfigSecretRef cannot be read"), ("..", "it does not exist")],
)
def test_a_secret_that_nobody_was_prepared_for_is_said_and_not_waited_for(secret: str, why: str) -> None:
    async def scenario() -> None:
        async with world() as here:
            odd = ChildKey(namespace="ns", secret=secret, entry="value")
            here.children.want("ns/a", odd)
            assert here.children.pending(odd)
            found = await here.until_unknown(odd)
            assert why in found.why
            assert not here.children.pending(odd)

    run(scenario())


# The Secret


def test_a_kubeconfig_that_is_rotated_in_place_is_taken_up_with_the_nodes_known_all_the_time() -> None:
    async def scenario() -> None:
        async with world() as here:
            here.child.tokens = {"a-token": "us", "new": "us"}
            before = await here.connected("ns/a", "ns/b")
            await here.until_streams(1, 1)
            async with here.always_known():
                here.give(here.child.kubeconfig("new"))
                while here.children.get(GRID) is before:
                    await here.told.get()
                await here.until_streams(1, 1)
            await until_closed(before)
            assert here.count("watch", "nodes") == here.count("list", "nodes") == 2
            assert here.count("watch", "secrets") == 1
            here.child.tokens = {"new": "us"}
            child = await here.until_known()
            assert child.nodes is not None
            await child.gateway.get(child.nodes.resource, None, DESK)

    run(scenario())


def test_a_secret_that_changes_in_everything_but_the_kubeconfig_changes_nothing() -> None:
    async def scenario() -> None:
        async with world() as here:
            before = await here.connected("ns/a")
            here.give(other="something else")
            await here.until_streams(1, 1)
            async with here.clock.passing(0.1):
                await here.clock.sleep_until(here.clock.monotonic() + 20)
            assert here.children.get(GRID) is before
            assert here.count("list", "nodes") == 1

    run(scenario())


def test_of_many_rotations_in_a_row_the_last_one_counts_and_nothing_is_left_of_the_others() -> None:
    async def scenario() -> None:
        async with world() as here:
            await here.connected("ns/a")
            async with here.always_known():
                for number in range(5):
                    here.give(here.child.kubeconfig(f"token-{number}"))
                    await here.told.get()
                while f"token-{4}" not in str(await _token(here)):
                    await here.told.get()
                await here.until_streams(1, 1)

    run(scenario())


async def _token(here: World) -> str | None:
    child = here.children.get(GRID)
    return child.gateway._connection.auth._tokens.current() if isinstance(child, Child) else None


def test_a_kubeconfig_that_the_child_refuses_takes_the_place_of_the_one_before_and_is_said() -> None:
    """It is what the Secret says; to go on with a credential that was taken back would be worse."""

    async def scenario() -> None:
        async with world() as here:
            here.child.tokens = {"a-token": "us"}
            before = await here.connected("ns/a")
            here.give(here.child.kubeconfig("wrong"))
            async with here.clock.passing(0.1):
                while here.children.get(GRID) is before:
                    await here.told.get()
            child = here.children.get(GRID)
            assert isinstance(child, Child)
            assert "401" in str(child.watches.fault(NODES))
            here.give(here.child.kubeconfig("a-token"))
            await here.until_known()
            await here.until_streams(1, 1)
            await until_closed(before)
            await until_closed(child)

    run(scenario())


def test_the_machine_that_leaves_while_a_kubeconfig_is_taken_up_leaves_nothing_open() -> None:
    async def scenario() -> None:
        async with world() as here:
            before = await here.connected("ns/a")
            await here.until_streams(1, 1)
            held = here.child.faults.add(Hold(asyncio.Event()), verb="list", resource="nodes")
            here.give(here.child.kubeconfig("new"))
            await held.hit()
            here.children.want("ns/a", None)
            await here.until_streams(0, 0)
            await until_closed(before)

    run(scenario())


def test_a_secret_that_is_deleted_is_missing_until_it_is_back() -> None:
    async def scenario() -> None:
        async with world() as here:
            before = await here.connected("ns/a", "ns/b")
            here.take_away()
            found = await here.until_unknown()
            assert found.reason == "KubeconfigMissing"
            assert "Secret ns/grid: it does not exist" in found.why
            await here.until_streams(1, 0)
            await until_closed(before)
            here.give()
            await here.until_known()
            assert here.count("watch", "secrets") == 1

    run(scenario())


def test_a_secret_that_comes_after_the_machine_is_taken_up_at_once() -> None:
    async def scenario() -> None:
        async with world() as here:
            here.take_away()
            here.children.want("ns/a", GRID)
            assert (await here.until_unknown()).reason == "KubeconfigMissing"
            moment = here.clock.monotonic()
            here.give()
            while not here.knows():
                await here.told.get()
            assert here.clock.monotonic() == moment

    run(scenario())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({}, "KubeconfigMissing"),
        ({"other": "eA=="}, "KubeconfigMissing"),
        ({"value": "/w=="}, "KubeconfigMissing"),
        ({"value": "eA=="}, "KubeconfigRejected"),
        ({"value": ""}, "KubeconfigRejected"),
        ({"value": b64encode(b"users: [{user: {exec: {command: id}}}]").decode()}, "KubeconfigRejected"),
    ],
    ids=["nothing", "another entry", "no text", "a text", "empty", "a program"],
)
def test_a_kubeconfig_that_becomes_useless_is_said_and_the_old_one_is_not_used(
    data: dict[str, str], reason: str
) -> None:
    async def scenario() -> None:
        async with world() as here:
            before = await here.connected("ns/a")
            here.put(data)
            found = await here.until_unknown()
            assert found.reason == reason
            await here.until_streams(1, 0)
            await until_closed(before)
            here.give()
            await here.until_known()

    run(scenario())


def test_a_secret_that_may_not_be_read_is_said_and_read_once_it_may() -> None:
    async def scenario() -> None:
        async with world() as here:
            here.management.authorizer = lambda _, asked: asked.resource != "secrets"
            here.children.want("ns/a", GRID)
            found = await here.until_unknown()
            assert found.reason == "PermissionDenied"
            assert 'grant verb "list" on resource "secrets"' in found.why
            here.management.authorizer = None
            await here.until_known()

    run(scenario())


def test_a_secret_that_may_not_be_read_any_more_stays_as_it_was_read() -> None:
    async def scenario() -> None:
        async with world() as here:
            before = await here.connected("ns/a")
            await here.until_streams(1, 1)
            here.management.authorizer = lambda _, asked: asked.resource != "secrets"
            here.management.faults.on_streams(CutStream(), resource="secrets")
            async with here.clock.passing(0.1), here.always_known():
                await here.clock.sleep_until(here.clock.monotonic() + 2 * LONGEST_PAUSE)
            assert here.children.get(GRID) is before
            here.management.authorizer = None
            here.give(here.child.kubeconfig("new"))
            async with here.clock.passing(0.1):
                while here.children.get(GRID) is before:
                    await here.told.get()

    run(scenario())


def test_machines_with_the_same_secret_share_its_watch_and_the_connection_and_the_last_ends_both() -> None:
    async def scenario() -> None:
        async with world() as here:
            child = await here.connected("ns/a", "ns/b", "ns/c")
            await here.until_streams(1, 1)
            for user in ("ns/a", "ns/b"):
                here.children.want(user, None)
            assert here.knows()
            assert here.count("watch", "secrets") == here.count("watch", "nodes") == 1
            here.children.want("ns/c", None)
            await here.until_streams(0, 0)
            await until_closed(child)
            assert isinstance(here.children.get(GRID), Unknown)

    run(scenario())


def test_entries_of_one_secret_share_its_watch_and_are_clusters_of_their_own() -> None:
    async def scenario() -> None:
        async with world() as here:
            here.give(other=here.child.kubeconfig("another"))
            await here.connected("ns/a")
            here.children.want("ns/b", OTHER_ENTRY)
            await here.until_known(OTHER_ENTRY)
            await here.until_streams(1, 2)
            assert here.count("list", "secrets") == 1
            assert here.children.get(GRID) is not here.children.get(OTHER_ENTRY)
            here.children.want("ns/a", None)
            await here.until_streams(1, 1)
            assert here.knows(OTHER_ENTRY)

    run(scenario())


def test_a_bad_kubeconfig_costs_nothing_while_it_stays_as_it_is() -> None:
    async def scenario() -> None:
        async with world() as here:
            here.give("nonsense")
            here.children.want("ns/a", GRID)
            await here.until_unknown()
            while not here.told.empty():
                here.told.get_nowait()
            asked = len(here.management.audit)
            async with here.clock.passing(0.5):
                await here.clock.sleep_until(here.clock.monotonic() + 60)
            assert here.told.empty()
            assert len(here.management.audit) - asked <= 1
            assert here.child.audit == []

    run(scenario())
