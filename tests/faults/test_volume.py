"""A great deal at once: large objects, bursts, somebody who is slow, and a server that is away while everything changes."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fivespot.adapters.kube.control.streams import NODES, secret_stream
from fivespot.adapters.kube.control.watches import Watches
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.resources import CONFIG_MAPS
from tests.fakeapi import fake_api
from tests.faults.setting import (
    LONGEST_PAUSE,
    NAMESPACE,
    WATCHED,
    Following,
    HandClock,
    Watched,
    everywhere,
    followed,
    following,
    gateway_to,
    install,
    run,
    until_open,
)

BURST = 5000
HELD_UP = 0.5
"""Seconds for which the loop may stand still on a machine that has other things to do: renewals are due every 2 s."""


@asynccontextmanager
async def measured() -> AsyncIterator[list[float]]:
    """How late the event loop was, each time that it was looked at."""
    late = [0.0]

    async def look() -> None:
        while True:
            due = time.monotonic() + 0.005
            await asyncio.sleep(0.005)
            late.append(time.monotonic() - due)

    looking = asyncio.ensure_future(look())
    try:
        yield late
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)


def kind(name: str) -> Watched:
    return next(watched for watched in WATCHED if watched.stream.kind == name)


def test_an_object_of_twenty_megabytes_is_one_event_and_one_item_of_a_list() -> None:
    async def scenario() -> None:
        async with fake_api() as server, gateway_to(server) as gateway:
            install(server)
            watched = kind("Node")
            async with followed(server, gateway, watched) as here:
                await here.until_watched()
                here.put("one", large="x" * 20_000_000)
                here.put("two", changed="after it")
                await here.until_current()
                assert here.count("watch") == 1
            async with followed(server, gateway, watched) as again:
                await again.until_current()

    run(scenario())


def test_an_object_that_is_larger_than_anything_is_not_read_and_the_rest_is() -> None:
    """A child belongs to somebody else, and its server may say anything; a stream of it is bounded."""

    async def scenario() -> None:
        async with fake_api(tls=True) as server:
            gateway = await Gateway.from_kubeconfig(server.kubeconfig(), allow_local=True)
            clock = HandClock()
            ended: asyncio.Queue[None] = asyncio.Queue()
            watches = Watches(
                gateway, clock, on_change=lambda *_: None, on_state=lambda *_: ended.put_nowait(None)
            )
            try:
                server.create("v1", "nodes", {"metadata": {"name": "one"}})
                watches.want("me", [NODES])
                await ended.get()
                found = server.world.store.get("nodes", ("", "one"))
                assert found is not None
                large = {"metadata": {**found["metadata"], "annotations": {"a": "x" * 70_000_000}}}
                server.world.store.put("nodes", ("", "one"), {**found, **large})
                await clock.asleep()
                assert "longer than" in str(watches.fault(NODES))
            finally:
                await watches.close()
                await gateway.close()

    run(scenario())


@pytest.mark.parametrize("name", ["ScheduledMachine", "Node"])
def test_a_burst_does_not_hold_the_loop_up(name: str) -> None:
    async def scenario() -> None:
        async with following(kind(name)) as here:
            # On the server everything happens at once; what is measured begins with the first byte.
            for number in range(BURST):
                here.put("one", changed=str(number))
            async with measured() as late:
                await here.until_current()
            assert len(here.told) == 2 + BURST
            assert max(late) < HELD_UP
            assert here.count("watch") == 1

    run(scenario())


def test_requests_get_their_answers_during_a_burst() -> None:
    async def scenario() -> None:
        async with following(kind("ScheduledMachine")) as here:
            here.server.create("v1", "configmaps", {"metadata": {"name": "a"}}, NAMESPACE)
            for number in range(BURST // 5):
                here.put("one", changed=str(number))
            answers = 0
            while here.cache() != here.truth():
                async with asyncio.timeout(10):
                    await here.gateway.get(CONFIG_MAPS, NAMESPACE, "a")
                answers += 1
            assert answers > 1

    run(scenario())


def test_whoever_is_slow_to_take_in_changes_loses_none_and_keeps_the_stream() -> None:
    async def scenario() -> None:
        async with following(kind("ScheduledMachine")) as here:
            slow = 0

            def changed(*_: object) -> None:
                nonlocal slow
                slow += 1
                time.sleep(0.002)
                here.news.set()

            here.watches._on_change = changed
            for number in range(500):
                here.put("one", changed=str(number))
            await here.until(lambda: here.cache() == here.truth())
            assert slow == 500
            assert here.count("watch") == 1

    run(scenario())


def test_whoever_breaks_at_every_change_keeps_nobody_from_seeing_them() -> None:
    async def check(here: Following) -> None:
        def changed(*_: object) -> None:
            here.news.set()
            raise ValueError(here.watched)

        here.watches._on_change = changed
        for number in range(20):
            here.put(here.one, changed=str(number))
        await here.until(lambda: here.cache() == here.truth())
        assert here.count("watch") == 1

    everywhere(check)


@pytest.mark.parametrize("forgotten", [False, True], ids=["and remembers it", "and forgets it"])
def test_a_server_that_is_away_while_a_thousand_machines_change_is_caught_up_with(forgotten: bool) -> None:
    async def scenario() -> None:
        async with following(kind("ScheduledMachine")) as here:
            store, label = here.server.world.store, here.watched.label
            (_, like), *_ = store.items(label)

            def put(name: str, generation: int) -> None:
                meta = {**like["metadata"], "name": name, "uid": f"{name}-{generation}"}
                store.put(label, (NAMESPACE, name), {**like, "metadata": meta})

            for number in range(1000):
                put(f"desk-{number}", 1)
            await here.until_current()
            await here.server.stop()
            await here.clock.asleep()
            for number in range(1000):
                match number % 10:
                    case 0:
                        store.remove(label, (NAMESPACE, f"desk-{number}"))
                        put(f"new-{number}", 1)
                    case 1:
                        # Another object of the same name.
                        store.remove(label, (NAMESPACE, f"desk-{number}"))
                        put(f"desk-{number}", 2)
                    case _:
                        put(f"desk-{number}", 1)
            if forgotten:
                here.server.compact()
            before = len(here.told)
            here.clock.advance(LONGEST_PAUSE)
            await here.clock.asleep()
            assert len(here.told) == before
            await here.server.start()
            async with here.clock.passing():
                await here.until_watched()
            fresh = await here.gateway.list(here.reflector.resource)
            assert {(i["metadata"]["namespace"], i["metadata"]["name"]) for i in fresh.each()} == set(
                here.cache()
            )
            told = {key for key, *_ in here.told[before:]}
            assert len(told) == 1100
            assert here.count("list") == 4 + 3 * forgotten, "three pages each"

    run(scenario())


def test_streams_that_come_and_go_leave_nothing_behind() -> None:
    async def scenario() -> None:
        async with fake_api() as server, gateway_to(server) as gateway:
            install(server)
            told: asyncio.Queue[frozenset[str]] = asyncio.Queue()
            watches = Watches(
                gateway,
                HandClock(),
                on_change=lambda *_: None,
                on_state=lambda _, users: told.put_nowait(users),
            )
            for number in range(100):
                stream = secret_stream(NAMESPACE, f"secret-{number}")
                watches.want("me", [stream])
                if number % 3:
                    await told.get()
                watches.want("me", ())
            while server.streams or watches._stopping:  # noqa: ASYNC110 - told by nothing else
                await asyncio.sleep(0.001)
            assert not watches._running
            await watches.close()

    run(scenario())


def test_a_hundred_and_fifty_streams_are_open_at_once_and_requests_get_through() -> None:
    async def scenario() -> None:
        async with fake_api() as server, gateway_to(server) as gateway:
            install(server)
            told: asyncio.Queue[object] = asyncio.Queue()
            watches = Watches(
                gateway,
                HandClock(),
                on_change=lambda *_: None,
                on_state=lambda stream, _: told.put_nowait(stream),
            )
            streams = [secret_stream(NAMESPACE, f"secret-{number}") for number in range(150)]
            watches.want("me", streams)
            assert {await told.get() for _ in streams} == set(streams)
            await until_open(server, "secrets", len(streams))
            async with asyncio.timeout(10):
                await gateway.list(CONFIG_MAPS)
            await watches.close()

    run(scenario())
