"""What the gateway costs: figures, no promises. `make bench` prints them."""

from __future__ import annotations

import asyncio
import json
import resource as rusage
import time
from contextlib import aclosing
from typing import Any

from pytest_benchmark.fixture import BenchmarkFixture

from fivespot.adapters.kube import frames
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.resources import CONFIG_MAPS, NAMESPACES
from tests.adapters.kube.scripted import Reply, Request, connected, scripted
from tests.controlplane.controlplane import ControlPlane

OBJECTS = 10_000
EVENTS = 50_000


def config_map(number: int) -> dict[str, Any]:
    return {"metadata": {"name": f"c{number}", "resourceVersion": str(number)}, "data": {"k": "x" * 2000}}


def test_list_of_10_000_config_maps_of_2_kb(benchmark: BenchmarkFixture, control_plane: ControlPlane) -> None:
    """A real API server; its own work is in the figure."""

    async def fill() -> None:
        async with await Gateway.connect(kubeconfig=control_plane.admin_kubeconfig) as gateway:
            await gateway.create(NAMESPACES, None, {"metadata": {"name": "bench"}})
            for start in range(0, OBJECTS, 500):
                numbers = range(start, start + 500)
                bodies = ({"metadata": {"name": f"c{n}"}, "data": {"k": "x" * 2000}} for n in numbers)
                await asyncio.gather(*(gateway.create(CONFIG_MAPS, "bench", body) for body in bodies))

    async def listed() -> int:
        async with await Gateway.connect(kubeconfig=control_plane.admin_kubeconfig) as gateway:
            return len((await gateway.list(CONFIG_MAPS, "bench")).items)

    begun = time.monotonic()
    asyncio.run(fill())
    benchmark.extra_info["creates per second"] = round(OBJECTS / (time.monotonic() - begun))
    before = rusage.getrusage(rusage.RUSAGE_SELF).ru_maxrss
    assert benchmark.pedantic(lambda: asyncio.run(listed()), rounds=3) >= OBJECTS
    grown = rusage.getrusage(rusage.RUSAGE_SELF).ru_maxrss - before
    benchmark.extra_info["MB at most"] = round(grown / 1024)


def test_watch_events_of_2_kb(benchmark: BenchmarkFixture) -> None:
    """A server in the same process that has all bytes ready: the reading side alone, and its share of one loop."""
    lines = b"".join(
        json.dumps({"type": "MODIFIED", "object": config_map(number)}).encode() + b"\n"
        for number in range(500)
    )

    async def handler(_: Request, reply: Reply) -> None:
        await reply.begin()
        for _ in range(EVENTS // 500):
            await reply.chunk(lines)
        await reply.end()

    async def watched() -> int:
        async with scripted(handler) as server, connected(server) as gateway:
            stream = gateway.watch(CONFIG_MAPS, resource_version="1", timeout_seconds=60)
            count = 0
            async with aclosing(stream):
                async for _ in stream:
                    count += 1
            return count

    assert benchmark.pedantic(lambda: asyncio.run(watched()), rounds=3) == EVENTS
    benchmark.extra_info["events per second"] = round(EVENTS / benchmark.stats.stats.min)


def test_decoding_an_event_of_2_kb(benchmark: BenchmarkFixture) -> None:
    line = frames.encode({"type": "MODIFIED", "object": config_map(1)})
    benchmark(frames.decode_event, line)
