"""Streams by kind: what one surprise must not do to the others, and what is not kept."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from fivespot.adapters.clock import FakeClock
from fivespot.adapters.kube.control.watches import Stream, Watches
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.resources import Object
from fivespot.adapters.kube.watching import Key, whole
from tests.adapters.kube.scripted import Reply, Request, connected, scripted
from tests.fakeapi import fake_api
from tests.fakeapi.faults import Answer, EndStream
from tests.faults.setting import HandClock, gateway_to

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
MAPS = Stream(group="", kind="ConfigMap", version="v1", label="ours", read=whole)
KINDS = {"resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True}]}


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 30))


def config_map(name: str, version: int, **labels: str) -> Object:
    return {
        "metadata": {
            "namespace": "ns",
            "name": name,
            "uid": name,
            "resourceVersion": str(version),
            "labels": labels,
        }
    }


class Server:
    """Serves ConfigMaps: two in the list, then whatever is put into `events`; the first `ends` streams end at once."""

    def __init__(self, ends: int = 0) -> None:
        self.events: asyncio.Queue[Object] = asyncio.Queue()
        self.ends = ends

    async def __call__(self, request: Request, reply: Reply) -> None:
        if request.path == "/api/v1":
            await reply.json(KINDS)
        elif "watch" not in request.query:
            items = [config_map("a", 1, ours="x"), config_map("b", 2, ours="x")]
            await reply.json({"metadata": {"resourceVersion": "10"}, "items": items})
        else:
            await reply.begin()
            self.ends -= 1
            while self.ends < 0:
                await reply.event("MODIFIED", await self.events.get())
            await reply.end()


class BreaksOnce(FakeClock):
    """A clock whose first sleep fails: something that nobody foresaw."""

    def __init__(self) -> None:
        super().__init__(NOON)
        self.broken = asyncio.Event()

    async def sleep_until(self, when: datetime | float) -> None:
        if not self.broken.is_set():
            self.broken.set()
            raise OSError
        await super().sleep_until(when)


class Told:
    """What a user of the streams is told; `wanted` waits for a change of a name."""

    def __init__(self, refuses: str = "") -> None:
        self.names: asyncio.Queue[str] = asyncio.Queue()
        self.states: asyncio.Queue[frozenset[str]] = asyncio.Queue()
        self.refuses = refuses

    def change(self, _stream: Stream[Any], key: Key, _old: Object | None, _new: Object | None) -> None:
        name = key[1]
        if name == self.refuses:
            raise ValueError(name)
        self.names.put_nowait(name)

    def state(self, _stream: Stream[Any], users: frozenset[str]) -> None:
        self.states.put_nowait(users)


@asynccontextmanager
async def watching(gateway: Gateway, clock: FakeClock, told: Told) -> AsyncIterator[Watches]:
    watches = Watches(gateway, clock, on_change=told.change, on_state=told.state)
    try:
        yield watches
    finally:
        await watches.close()


def test_an_object_that_cannot_be_taken_in_keeps_no_other_from_being_told() -> None:
    async def scenario() -> None:
        serving, told = Server(), Told(refuses="a")
        async with (
            scripted(serving) as server,
            connected(server) as gateway,
            watching(gateway, FakeClock(NOON), told) as watches,
        ):
            watches.want("me", [MAPS])
            assert await told.names.get() == "b"
            await told.states.get()
            serving.events.put_nowait(config_map("a", 11, ours="x"))
            serving.events.put_nowait(config_map("b", 12, ours="x"))
            assert await told.names.get() == "b"

    run(scenario())


def test_a_stream_that_breaks_for_no_known_reason_goes_on_from_where_it_was() -> None:
    async def scenario() -> None:
        serving, told, clock = Server(ends=1), Told(), BreaksOnce()
        async with (
            scripted(serving) as server,
            connected(server) as gateway,
            watching(gateway, clock, told) as watches,
        ):
            watches.want("me", [MAPS])
            assert {await told.names.get(), await told.names.get()} == {"a", "b"}
            await clock.broken.wait()
            serving.events.put_nowait(config_map("a", 11, ours="x"))
            moving = asyncio.ensure_future(_let_time_pass(clock))
            assert await told.names.get() == "a"
            moving.cancel()

    run(scenario())


async def _let_time_pass(clock: FakeClock) -> None:
    while True:
        await asyncio.sleep(0)
        clock.advance(0.1)


def test_what_the_selector_would_not_show_is_not_kept() -> None:
    async def scenario() -> None:
        serving, told = Server(), Told()
        async with (
            scripted(serving) as server,
            connected(server) as gateway,
            watching(gateway, FakeClock(NOON), told) as watches,
        ):
            watches.want("me", [MAPS])
            await told.states.get()
            watches.feed(MAPS, config_map("stranger", 11))
            watches.feed(MAPS, config_map("mine", 12, ours="x"))
            reflector = watches.reflector(MAPS)
            assert reflector is not None
            assert reflector.get("ns", "stranger") is None
            assert reflector.get("ns", "mine") is not None

    run(scenario())


def test_a_group_that_no_path_can_name_is_a_fault_and_not_waited_for() -> None:
    async def scenario() -> None:
        odd, told = Stream(group="..", kind="Schedule", version="v1", read=whole), Told()
        async with (
            scripted(Server()) as server,
            connected(server) as gateway,
            watching(gateway, FakeClock(NOON), told) as watches,
        ):
            watches.want("me", [odd])
            assert watches.pending(odd)
            assert await told.states.get() == {"me"}
            assert not watches.pending(odd)
            assert watches.fault(odd) is not None

    run(scenario())


def test_a_user_who_leaves_a_stream_and_comes_back_at_once_gets_a_new_one() -> None:
    async def scenario() -> None:
        serving, told = Server(), Told()
        async with (
            scripted(serving) as server,
            connected(server) as gateway,
            watching(gateway, FakeClock(NOON), told) as watches,
        ):
            watches.want("me", [MAPS])
            await told.states.get()
            before = watches.reflector(MAPS)
            watches.want("me", ())
            watches.want("me", [MAPS])
            await told.states.get()
            reflector = watches.reflector(MAPS)
            assert reflector is not before
            assert reflector is not None
            assert len(reflector) == 2

    run(scenario())


def test_what_is_wanted_after_the_end_begins_nothing() -> None:
    """A stream that is being stopped may still tell of something, which makes others want more."""

    async def scenario() -> None:
        told = Told()
        async with fake_api() as server, gateway_to(server) as gateway:
            async with watching(gateway, FakeClock(NOON), told) as watches:
                watches.want("me", [MAPS])
                await told.states.get()
            watches.want("me", [MAPS])
            assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("watch")]

    run(scenario())


def test_a_stream_that_is_not_allowed_any_more_is_told_of_after_a_moment_and_so_is_the_end_of_it() -> None:
    async def scenario() -> None:
        clock, told = HandClock(), Told()
        async with (
            fake_api() as server,
            gateway_to(server) as gateway,
            watching(gateway, clock, told) as watches,
        ):
            watches.want("me", [MAPS])
            assert await told.states.get() == {"me"}
            await server.faults.watched(resource="configmaps")
            server.authorizer = lambda _, asked: asked.verb != "watch"
            server.faults.on_streams(EndStream())
            async with clock.passing(0.1):
                assert await told.states.get() == {"me"}
            assert 'grant verb "watch" on resource "configmaps"' in str(watches.denied(MAPS))
            server.authorizer = None
            async with clock.passing(0.1):
                assert await told.states.get() == {"me"}
            assert watches.denied(MAPS) is None

    run(scenario())


def test_a_stream_that_breaks_for_long_is_not_denied() -> None:
    async def scenario() -> None:
        clock, told = HandClock(), Told()
        async with (
            fake_api() as server,
            gateway_to(server) as gateway,
            watching(gateway, clock, told) as watches,
        ):
            watches.want("me", [MAPS])
            await told.states.get()
            await server.faults.watched(resource="configmaps")
            broken = server.faults.add(Answer(503), verb="watch", times=None)
            server.faults.on_streams(EndStream())
            async with clock.passing(0.1):
                await broken.hit(8)
            assert watches.denied(MAPS) is None
            assert told.states.empty()

    run(scenario())
