"""What the gateway costs: figures, no promises. `make bench` prints them."""

from __future__ import annotations

import asyncio
import json
import resource as rusage
from contextlib import aclosing
from typing import Any

from pytest_benchmark.fixture import BenchmarkFixture

from fivespot.adapters.kube import frames
from fivespot.adapters.kube.reads import PAGE
from fivespot.adapters.kube.resources import CONFIG_MAPS
from tests.adapters.kube.scripted import Reply, Request, connected, scripted

OBJECTS = 10_000
EVENTS = 50_000


def config_map(number: int) -> dict[str, Any]:
    return {"metadata": {"name": f"c{number}", "resourceVersion": str(number)}, "data": {"k": "x" * 2000}}


def test_list_of_10_000_config_maps_of_2_kb(benchmark: BenchmarkFixture) -> None:
    """A server in the same process that has all pages ready; a real one takes about as long again."""
    items = [[config_map(n) for n in range(start, start + PAGE)] for start in range(0, OBJECTS, PAGE)]
    pages = [
        json.dumps({"metadata": {"resourceVersion": "9", "continue": str(n + 1)}, "items": page})
        for n, page in enumerate(items)
    ]
    pages[-1] = json.dumps({"metadata": {"resourceVersion": "9"}, "items": items[-1]})

    async def handler(request: Request, reply: Reply) -> None:
        await reply.text(pages[int(request.query.get("continue", "0"))])

    async def listed() -> int:
        async with scripted(handler) as server, connected(server) as gateway:
            return len((await gateway.list(CONFIG_MAPS)).items)

    before = rusage.getrusage(rusage.RUSAGE_SELF).ru_maxrss
    assert benchmark.pedantic(lambda: asyncio.run(listed()), rounds=3) == OBJECTS
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
