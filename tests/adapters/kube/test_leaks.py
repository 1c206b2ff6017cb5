"""What a long life must not pile up: file descriptors, tasks, memory; over real sockets, with pauses that take no time."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from random import Random
from typing import Any

import attrs
import psutil
import pytest

from fivespot.adapters.clock import FakeClock
from fivespot.adapters.kube.control.watches import Stream, Watches
from fivespot.adapters.kube.reflector import Reflector
from fivespot.adapters.kube.resources import Object, Resource
from fivespot.adapters.kube.watching import Key, whole
from tests.adapters.kube.kinds import GROUP, KindServer, serving
from tests.adapters.kube.scripted import Reply, Request, connected, scripted

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
TIDES = Resource(GROUP, "v1", "tides", "Tide", namespaced=True)
MEBIBYTE = 1024 * 1024


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    """A thousand warnings would be the only thing that grows."""
    caplog.set_level(logging.CRITICAL)


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 280))


async def until(holds: Callable[[], object], clock: FakeClock | None = None) -> None:
    """Time passes meanwhile, if there is a clock."""
    async with asyncio.timeout(120):
        while not holds():
            if clock is not None:
                clock.advance(1.0)
            await asyncio.sleep(0)


@attrs.frozen
class Held:
    """What this process holds at a moment."""

    descriptors: int
    tasks: int
    objects: int
    resident: int

    @classmethod
    async def now(cls) -> Held:
        """Once everything that is on its way out is out."""
        await asyncio.sleep(0.05)
        gc.collect()
        process = psutil.Process()
        return cls(
            descriptors=process.num_fds(),
            tasks=len(asyncio.all_tasks()),
            objects=len(gc.get_objects()),
            resident=process.memory_info().rss,
        )


def assert_flat(warm: Held, after: Held) -> None:
    # A connection more or less is kept for the next request, with the server's side of it and its task.
    assert after.descriptors <= warm.descriptors + 4
    assert after.tasks <= warm.tasks + 2
    # Less than one object for each of a thousand rounds; what the allocator keeps of its own is no object.
    assert after.objects <= warm.objects + 500
    assert after.resident <= warm.resident + 8 * MEBIBYTE


class Unsteady:
    """A list of one object, and streams that are refused, cut, end well, or say that the version is too old, in turn."""

    def __init__(self) -> None:
        self.streams = 0

    async def __call__(self, request: Request, reply: Reply) -> None:
        metadata = {"namespace": "ns", "name": "it", "uid": "u", "resourceVersion": str(10 + self.streams)}
        if "watch" not in request.query:
            await reply.json({"metadata": metadata, "items": [{"metadata": metadata}]})
            return
        self.streams += 1
        match self.streams % 4:
            case 0:
                await reply.status(500, "InternalError")
            case 1:
                await reply.begin()
                await reply.event("MODIFIED", {"metadata": metadata})
                await reply.end()
            case 2:
                await reply.begin()
                await reply.chunk(b'{"type": "MODIFIED", "obj')
                reply.cut()
            case _:
                await reply.begin()
                await reply.event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired"})
                await reply.end()


def test_a_thousand_reconnects_leave_nothing_behind() -> None:
    async def scenario() -> None:
        unsteady, clock = Unsteady(), FakeClock(NOON)
        async with scripted(unsteady) as server, connected(server) as gateway:
            reflector: Reflector[Object] = Reflector(
                gateway, TIDES, clock=clock, read=whole, on_change=lambda *_: None, random=Random(0)
            )
            following = asyncio.create_task(reflector.run())

            async def reconnect(times: int) -> Held:
                await until(lambda: reflector.restarts >= times, clock)
                server.requests.clear()
                return await Held.now()

            warm = await reconnect(200)
            after = await reconnect(1200)
            assert min(reflector.restart_reasons.values()) >= 200, "each way to end was taken"
            assert_flat(warm, after)
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    run(scenario())


class Told:
    """Counts what it is told."""

    def __init__(self) -> None:
        self.times = 0

    def change(self, _stream: Stream[Any], _key: Key, _old: Any, _new: Any) -> None:
        self.times += 1

    def state(self, _stream: Stream[Any], _users: frozenset[str]) -> None:
        self.times += 1


def test_ten_thousand_users_that_come_and_go_leave_nothing_behind() -> None:
    """Most leave before their stream has begun, at any point of its beginning; some stay until it has."""
    kinds = ("Tide", "Moon", "Sun", "Star")
    streams = [Stream(group=GROUP, kind=kind, version="v1", read=whole) for kind in kinds]

    async def scenario() -> None:
        server, clock, told, random = KindServer(), FakeClock(NOON), Told(), Random(0)
        # The last one is not served.
        server.kinds = {kind: ("v1", f"{kind.lower()}s") for kind in kinds[:-1]}
        async with serving(server), connected(server) as gateway:
            watches = Watches(gateway, clock, on_change=told.change, on_state=told.state)

            async def come_and_go(times: int) -> Held:
                for number in range(times):
                    user = f"ns/{number % 7}"
                    chosen = random.sample(streams, 2 if number % 4 == 0 else 1)
                    watches.want(user, chosen)
                    if number % 50 == 0:
                        await until(lambda: not watches.pending_for(user), clock)  # noqa: B023 - awaited here
                    else:
                        for _ in range(random.choice((0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 5, 30))):
                            await asyncio.sleep(0)
                    watches.want(user, ())
                    if number % 100 == 0:
                        server.requests.clear()
                await until(lambda: not watches._stopping and not server.open_streams())
                server.requests.clear()
                server.opened.clear()
                return await Held.now()

            warm = await come_and_go(1000)
            after = await come_and_go(10_000)
            assert told.times > 200
            assert clock.sleepers == 0
            assert_flat(warm, after)
            assert not watches._running
            assert not watches._wanted
            await watches.close()

    run(scenario())
