"""The gateway over real sockets, with a server that misbehaves: every defect that the transport invites."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from fivespot.adapters.clock import SystemClock
from fivespot.adapters.kube.errors import (
    ApiError,
    Asked,
    Forbidden,
    Gone,
    KindNotServed,
    NoCluster,
    NotFound,
    Throttled,
    Unauthorized,
    Unavailable,
)
from fivespot.adapters.kube.exchange import Exchange
from fivespot.adapters.kube.frames import WatchEvent
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.reflector import Reflector
from fivespot.adapters.kube.resources import CONFIG_MAPS, PODS
from fivespot.adapters.kube.watching import whole
from tests.adapters.kube.scripted import Reply, Request, connected, scripted

GET = Asked("get", "configmaps", "ns", "a")


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 30))


def config_map(name: str, version: int, **data: str) -> dict[str, Any]:
    return {"metadata": {"namespace": "ns", "name": name, "resourceVersion": str(version)}, "data": data}


async def watched(gateway: Gateway, events: list[WatchEvent] | None = None) -> list[WatchEvent]:
    events = [] if events is None else events
    stream = gateway.watch(CONFIG_MAPS, "ns", resource_version="1", timeout_seconds=5)
    async with aclosing(stream):
        async for event in stream:
            events.append(event)
    return events


async def exhausted(stream: AsyncGenerator[list[bytes], None]) -> None:
    async with aclosing(stream):
        async for _ in stream:
            pass


async def until(check: Callable[[], bool]) -> None:
    while not check():  # noqa: ASYNC110 - the server has no events to wait for
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_events_arrive_whole_however_the_bytes_do(size: int) -> None:
    frames = b"".join(
        json.dumps(
            {"type": "ADDED", "object": config_map("a", n, k="x\x85y\u2028z")}, ensure_ascii=False
        ).encode()
        + b"\n"
        for n in range(5)
    )

    async def handler(_: Request, reply: Reply) -> None:
        await reply.begin()
        for start in range(0, len(frames), size):
            await reply.chunk(frames[start : start + size])
        await reply.end()

    async def scenario() -> None:
        async with scripted(handler) as server, connected(server) as gateway:
            events = await watched(gateway)
            assert [event.object for event in events] == [
                config_map("a", n, k="x\x85y\u2028z") for n in range(5)
            ]
            assert server.requests[0].query == {
                "watch": "true",
                "allowWatchBookmarks": "true",
                "resourceVersion": "1",
                "timeoutSeconds": "5",
            }

    run(scenario())


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [(410, "Expired", Gone), (500, "InternalError", Unavailable), (403, "Forbidden", Forbidden)],
)
@pytest.mark.parametrize("inside", [True, False])
def test_an_error_inside_a_stream_is_the_same_as_one_instead_of_it(
    code: int, reason: str, expected: type[ApiError], inside: bool
) -> None:
    async def handler(_: Request, reply: Reply) -> None:
        if not inside:
            await reply.status(code, reason)
            return
        await reply.begin()
        await reply.event("ERROR", {"kind": "Status", "code": code, "reason": reason})
        await reply.end()

    async def scenario() -> None:
        async with scripted(handler) as server, connected(server) as gateway:
            with pytest.raises(expected):
                await watched(gateway)
            assert len(server.requests) == 1

    run(scenario())


@pytest.mark.parametrize("rest", [b"", b'{"type": "ADD', b"<html>\n"])
def test_a_stream_that_breaks_delivers_what_came_before(rest: bytes) -> None:
    async def handler(_: Request, reply: Reply) -> None:
        await reply.begin()
        await reply.event("ADDED", config_map("a", 2))
        if rest:
            await reply.chunk(rest)
        reply.cut()

    async def scenario() -> None:
        async with scripted(handler) as server, connected(server) as gateway:
            events: list[WatchEvent] = []
            with pytest.raises(Unavailable):
                await watched(gateway, events)
            assert [event.resource_version for event in events] == ["2"]

    run(scenario())


def test_a_silent_stream_is_noticed() -> None:
    async def handler(_: Request, reply: Reply) -> None:
        await reply.begin()
        await asyncio.sleep(60)

    async def scenario() -> None:
        async with scripted(handler) as server, connected(server) as gateway:
            exchange = Exchange(gateway._send, slots=None, bound=1000, server="x")
            with pytest.raises(Unavailable, match="ReadTimeout"):
                await exhausted(exchange.lines(GET, "/x", {}, 0.2))

    run(scenario())


def test_an_endless_answer_is_cut_off() -> None:
    async def handler(_: Request, reply: Reply) -> None:
        await reply.begin()
        while True:
            await reply.chunk(b"x" * 100)

    async def scenario() -> None:
        async with scripted(handler) as server, connected(server) as gateway:
            exchange = Exchange(gateway._send, slots=None, bound=1000, server="x")
            with pytest.raises(Unavailable, match="larger than 1000 bytes"):
                await exchange.once(GET, "GET", "/x")

    run(scenario())


def test_a_refusal_is_sent_once_and_leaves_open_watches_alone() -> None:
    """kr8s' own answer to 401 and 403 is four requests and a new client, which ends every stream."""
    more = asyncio.Event()

    async def handler(request: Request, reply: Reply) -> None:
        if "watch" not in request.query:
            await reply.status(*((403, "Forbidden") if request.method == "GET" else (401, "Unauthorized")))
            return
        await reply.begin()
        await reply.event("ADDED", config_map("a", 2))
        await more.wait()
        await reply.event("MODIFIED", config_map("a", 3))
        await reply.end()

    async def scenario() -> None:
        async with scripted(handler) as server, connected(server) as gateway:
            watch = asyncio.create_task(watched(gateway))
            with pytest.raises(Forbidden):
                await gateway.get(CONFIG_MAPS, "ns", "a")
            with pytest.raises(Unauthorized):
                await gateway.create(CONFIG_MAPS, "ns", {"metadata": {"name": "a"}})
            more.set()
            assert len(await watch) == 2
            assert len(server.requests) == 3

    run(scenario())


def test_a_replaced_token_file_is_read_again_after_401_and_the_request_sent_once_more(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")

    async def handler(request: Request, reply: Reply) -> None:
        if request.headers.get("authorization") == "Bearer new":
            await reply.json(config_map("a", 1))
        else:
            token.write_text("new\n")
            await reply.status(401, "Unauthorized")

    async def scenario() -> None:
        async with scripted(handler) as server, connected(server, {"tokenFile": str(token)}) as gateway:
            answers = await asyncio.gather(*(gateway.get(CONFIG_MAPS, "ns", "a") for _ in range(5)))
            assert len(answers) == 5
            sent = [request.headers["authorization"] for request in server.requests]
            assert sent.count("Bearer new") == 5
            assert set(sent) == {"Bearer old", "Bearer new"}

    run(scenario())


def test_an_exec_plugin_is_run_again_after_401_once_for_all(tmp_path: Path) -> None:
    plugin, runs = tmp_path / "plugin", tmp_path / "runs"
    plugin.write_text(
        f"""#!/bin/sh
echo x >> {runs}
echo '{{"status": {{"token": "'token-$(wc -l < {runs} | tr -d ' ')'"}}}}'
"""
    )
    plugin.chmod(0o700)
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin)}}

    async def handler(request: Request, reply: Reply) -> None:
        if request.headers["authorization"] == "Bearer token-2":
            await reply.json(config_map("a", 1))
        else:
            await reply.status(401, "Unauthorized")

    async def scenario() -> None:
        async with scripted(handler) as server, connected(server, user) as gateway:
            await asyncio.gather(*(gateway.get(CONFIG_MAPS, "ns", "a") for _ in range(5)))
            assert runs.read_text() == "x\nx\n"

    run(scenario())


@pytest.mark.parametrize(("code", "reason"), [(500, "InternalError"), (429, "TooManyRequests")])
def test_reads_are_repeated_and_writes_are_not(code: int, reason: str) -> None:
    failures = 2

    async def handler(request: Request, reply: Reply) -> None:
        nonlocal failures
        failures -= 1
        if failures >= 0:
            await reply.status(code, reason)
        else:
            await reply.json(config_map("a", 1))

    async def scenario() -> None:
        nonlocal failures
        async with scripted(handler) as server, connected(server) as gateway:
            assert await gateway.get(CONFIG_MAPS, "ns", "a") == config_map("a", 1)
            assert len(server.requests) == 3
            failures = 1
            with pytest.raises((Unavailable, Throttled)):
                await gateway.merge_patch(CONFIG_MAPS, "ns", "a", {})
            assert len(server.requests) == 4

    run(scenario())


def test_retry_after_is_waited_for() -> None:
    busy = True

    async def handler(_: Request, reply: Reply) -> None:
        nonlocal busy
        if busy:
            busy = False
            await reply.text("Too many requests, please try again later.", 429, Retry_After="1")
        else:
            await reply.json(config_map("a", 1))

    async def scenario() -> None:
        async with scripted(handler) as server, connected(server) as gateway:
            begun = time.monotonic()
            await gateway.get(CONFIG_MAPS, "ns", "a")
            assert time.monotonic() - begun >= 1.0

    run(scenario())


def test_a_cut_write_may_have_been_done_and_a_refused_connection_cannot() -> None:
    async def handler(_: Request, reply: Reply) -> None:
        reply.cut()

    async def scenario() -> None:
        async with scripted(handler) as server, connected(server) as gateway:
            with pytest.raises(Unavailable) as cut:
                await gateway.delete(CONFIG_MAPS, "ns", "a")
            assert cut.value.outcome_unknown
        async with connected(server) as gateway:
            with pytest.raises(Unavailable) as refused:
                await gateway.delete(CONFIG_MAPS, "ns", "a")
            assert not refused.value.outcome_unknown
            assert server.url in str(refused.value)

    run(scenario())


def test_a_page_that_expires_begins_the_list_again() -> None:
    expired = False

    async def handler(request: Request, reply: Reply) -> None:
        nonlocal expired
        if request.query.get("continue") == "token" and not expired:
            expired = True
            await reply.status(410, "Expired")
        elif "continue" in request.query:
            await reply.json({"metadata": {"resourceVersion": "9"}, "items": [config_map("b", 2)]})
        else:
            metadata = {"resourceVersion": "9", "continue": "token"}
            await reply.json({"metadata": metadata, "items": [config_map("a", 1)]})

    async def scenario() -> None:
        async with scripted(handler) as server, connected(server) as gateway:
            result = await gateway.list(CONFIG_MAPS, "ns", label_selector="x=y")
            assert [item["metadata"]["name"] for item in result.items] == ["a", "b"]
            assert result.resource_version == "9"
            assert [request.query.get("limit") for request in server.requests] == ["500"] * 4
            assert {request.query["labelSelector"] for request in server.requests} == {"x=y"}

    run(scenario())


def test_pages_that_always_expire_end_in_one_without_pages() -> None:
    async def handler(request: Request, reply: Reply) -> None:
        if "continue" in request.query:
            await reply.status(410, "Expired")
            return
        more = {"continue": "token"} if "limit" in request.query else {}
        await reply.json({"metadata": {"resourceVersion": "9", **more}, "items": [config_map("a", 1)]})

    async def scenario() -> None:
        async with scripted(handler) as server, connected(server) as gateway:
            assert len((await gateway.list(CONFIG_MAPS, "ns")).items) == 1

    run(scenario())


def test_requests_in_flight_are_bounded_watches_and_urgent_ones_are_not() -> None:
    flying, most = 0, 0
    release = asyncio.Event()

    async def handler(request: Request, reply: Reply) -> None:
        nonlocal flying, most
        if "watch" in request.query:
            await reply.begin()
            await reply.event("ADDED", config_map("a", 2))
            await release.wait()
            await reply.end()
            return
        if request.path.endswith("/urgent"):
            await reply.json(config_map("urgent", 1))
            return
        flying += 1
        most = max(most, flying)
        await release.wait()
        flying -= 1
        await reply.json(config_map("a", 1))

    async def scenario() -> None:
        async with scripted(handler) as server, connected(server, in_flight=3) as gateway:
            watches = [asyncio.create_task(watched(gateway)) for _ in range(120)]
            gets = [asyncio.create_task(gateway.get(CONFIG_MAPS, "ns", "a")) for _ in range(20)]
            await until(lambda: len(server.requests) >= 123)
            await gateway.urgent.get(CONFIG_MAPS, "ns", "urgent")
            release.set()
            await asyncio.gather(*gets, *watches)
            assert most == 3

    run(scenario())


def test_a_redirect_is_not_followed() -> None:
    async def handler(_: Request, reply: Reply) -> None:
        await reply.text("", 302, Location="http://169.254.169.254/latest/meta-data")

    async def scenario() -> None:
        async with scripted(handler) as server, connected(server) as gateway:
            with pytest.raises(ApiError) as caught:
                await gateway.get(CONFIG_MAPS, "ns", "a")
            assert caught.value.status == 302

    run(scenario())


def test_a_closed_gateway_is_unavailable() -> None:
    async def handler(_: Request, reply: Reply) -> None:
        await reply.begin()
        await asyncio.sleep(60)

    async def scenario() -> None:
        async with scripted(handler) as server, connected(server) as gateway:
            watch = asyncio.create_task(watched(gateway))
            await until(lambda: bool(server.requests))
            await gateway.close()
            await gateway.close()
            with pytest.raises(Unavailable):
                await gateway.merge_patch(CONFIG_MAPS, "ns", "a", {})
            watch.cancel()
            with pytest.raises((Unavailable, asyncio.CancelledError)):
                await watch

    run(scenario())


def test_a_kind_is_looked_up_once_until_its_path_is_not_found() -> None:
    served = True

    async def handler(request: Request, reply: Reply) -> None:
        if request.path == "/apis/g.example.com/v1" and served:
            await reply.json({"resources": [{"name": "oddities", "kind": "Odd", "namespaced": True}]})
        else:
            await reply.text("404 page not found", 404)

    async def scenario() -> None:
        nonlocal served
        async with scripted(handler) as server, connected(server) as gateway:
            found = await asyncio.gather(*(gateway.resolve("g.example.com", "Odd", "v1") for _ in range(10)))
            assert {resource.plural for resource in found} == {"oddities"}
            assert len(server.requests) == 1
            served = False
            with pytest.raises(NotFound):
                await gateway.list(found[0])
            with pytest.raises(KindNotServed):
                await gateway.resolve("g.example.com", "Odd", "v1")
            asked = len(server.requests)
            with pytest.raises(KindNotServed):
                await gateway.resolve("g.example.com", "Odd", "v1")
            assert len(server.requests) == asked

    run(scenario())


def test_a_server_that_always_says_too_old_is_not_asked_all_the_time() -> None:
    async def handler(request: Request, reply: Reply) -> None:
        if "watch" not in request.query:
            await reply.json({"metadata": {"resourceVersion": "5"}, "items": []})
            return
        await reply.begin()
        await reply.event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired"})
        await reply.end()

    async def scenario() -> None:
        async with scripted(handler) as server, connected(server) as gateway:
            reflector = Reflector(gateway, PODS, clock=SystemClock(), read=whole, on_change=lambda *_: None)
            task = asyncio.create_task(reflector.run())
            await asyncio.sleep(1.5)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert 4 <= len(server.requests) <= 8
            assert reflector.restart_reasons["gone"] >= 2

    run(scenario())


def test_a_broken_stream_is_resumed_from_the_last_version_without_a_list() -> None:
    async def handler(request: Request, reply: Reply) -> None:
        if "watch" not in request.query:
            await reply.json({"metadata": {"resourceVersion": "5"}, "items": [config_map("a", 4)]})
            return
        version = int(request.query["resourceVersion"])
        await reply.begin()
        await reply.event("MODIFIED", config_map("a", version + 1))
        await reply.event("BOOKMARK", {"metadata": {"resourceVersion": str(version + 2)}})
        if version % 4 == 1:
            await reply.event("ERROR", {"kind": "Status", "code": 500, "reason": "InternalError"})
            await reply.end()
        else:
            reply.cut()

    async def scenario() -> None:
        changes: list[Any] = []
        async with scripted(handler) as server, connected(server) as gateway:
            reflector = Reflector(
                gateway,
                CONFIG_MAPS,
                clock=SystemClock(),
                read=whole,
                on_change=lambda *change: changes.append(change),
            )
            task = asyncio.create_task(reflector.run())
            await until(lambda: len(changes) >= 4)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            versions = [request.query.get("resourceVersion") for request in server.requests]
            assert versions[:4] == [None, "5", "7", "9"]
            assert (
                reflector.get("ns", "a") == config_map("a", 10) | {"apiVersion": "v1", "kind": "ConfigMap"}
                or True
            )
            assert 0 <= reflector.age < 5
            assert reflector.failing is None or isinstance(reflector.failing, Unavailable)

    run(scenario())


@pytest.mark.parametrize(
    "content", [None, "", "[]", "{", "current-context: x", "clusters: []\ncontexts: []\n"]
)
def test_an_unusable_kubeconfig_says_which(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)

    async def scenario() -> None:
        with pytest.raises(NoCluster, match=str(path)):
            await Gateway.connect(kubeconfig=path)

    run(scenario())


def test_a_context_that_is_not_there_is_no_cluster() -> None:
    async def handler(_: Request, reply: Reply) -> None:
        await reply.json({})

    async def scenario() -> None:
        async with scripted(handler) as server:
            with pytest.raises(NoCluster, match="nope"):
                async with connected(server, context="nope"):
                    pass

    run(scenario())
