"""Every fault, as the product's gateway meets it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from fivespot.adapters.kube.errors import ApiError, Gone, NotFound, Throttled, Unavailable
from fivespot.adapters.kube.frames import WatchEvent
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.resources import CONFIG_MAPS, NODES
from tests.fakeapi import FakeApi, fake_api
from tests.fakeapi.faults import (
    Answer,
    Cut,
    CutStream,
    EndStream,
    ErrorEvent,
    Hold,
    MuteStream,
    Pieces,
    RawBytes,
    Silence,
    Split,
    StreamEffect,
)

BODY = {"metadata": {"name": "a"}}


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 30))


@asynccontextmanager
async def both() -> AsyncIterator[tuple[FakeApi, Gateway]]:
    async with fake_api() as server, server.gateway() as gateway:
        yield server, gateway


async def there(gateway: Gateway) -> bool:
    return bool((await gateway.list(NODES)).items)


def test_another_answer_is_given_as_often_as_was_said() -> None:
    async def scenario() -> None:
        async with both() as (server, gateway):
            rule = server.faults.add(
                Answer(429, "TooManyRequests", headers={"Retry-After": "7"}),
                verb="create",
                resource="nodes",
                times=2,
            )
            for _ in range(2):
                with pytest.raises(Throttled) as refused:
                    await gateway.create(NODES, None, BODY)
                assert refused.value.retry_after == 7
            assert not await there(gateway)
            await gateway.create(NODES, None, BODY)
            assert rule.hits == 2
            assert [(entry.code, entry.done) for entry in server.writes] == [(429, False)] * 2 + [(201, True)]

    run(scenario())


def test_an_answer_need_not_be_a_status() -> None:
    async def scenario() -> None:
        async with both() as (server, gateway):
            server.faults.add(Answer(502, body=b"<html>"), verb="create")
            with pytest.raises(Unavailable) as refused:
                await gateway.create(NODES, None, BODY)
            assert (refused.value.status, refused.value.reason, refused.value.message) == (502, "", "<html>")

    run(scenario())


@pytest.mark.parametrize(
    "effect", [Answer(500, "InternalError", after=True), Answer(504, after=True), Cut(after=True)]
)
def test_a_write_can_be_done_although_the_answer_says_otherwise(effect: Answer | Cut) -> None:
    async def scenario() -> None:
        async with both() as (server, gateway):
            server.faults.add(effect, verb="create")
            with pytest.raises(Unavailable) as refused:
                await gateway.create(NODES, None, BODY)
            assert refused.value.outcome_unknown
            assert await there(gateway)
            assert server.writes[0].done

    run(scenario())


def test_a_connection_can_be_cut_before_anything_is_done() -> None:
    async def scenario() -> None:
        async with both() as (server, gateway):
            server.faults.add(Cut(), verb="create")
            with pytest.raises(Unavailable) as refused:
                await gateway.create(NODES, None, BODY)
            assert refused.value.outcome_unknown
            assert not await there(gateway)
            assert (server.writes[0].code, server.writes[0].done) == (0, False)

    run(scenario())


@pytest.mark.parametrize("after", [False, True])
def test_a_request_or_its_answer_can_be_held_back(after: bool) -> None:
    async def scenario() -> None:
        async with both() as (server, gateway):
            go_on = asyncio.Event()
            rule = server.faults.add(Hold(go_on, after=after), verb="create", name="a")
            write = asyncio.create_task(gateway.create(NODES, None, BODY))
            await rule.hit()
            assert await there(gateway) is after
            assert not write.done()
            go_on.set()
            assert (await write)["metadata"]["name"] == "a"

    run(scenario())


def test_a_request_can_be_left_without_an_answer() -> None:
    async def scenario() -> None:
        async with both() as (server, gateway):
            rule = server.faults.add(Silence(after=True), verb="create")
            write = asyncio.create_task(gateway.create(NODES, None, BODY))
            await rule.hit()
            assert await there(gateway)
            assert not write.done()
            write.cancel()
            await asyncio.gather(write, return_exceptions=True)

    run(scenario())


def test_a_rule_is_for_the_requests_that_it_names() -> None:
    async def scenario() -> None:
        async with both() as (server, gateway):
            await gateway.create(NODES, None, BODY)
            broken = Answer(500)
            rules = [
                server.faults.add(broken, verb="patch", resource="nodes", subresource="", times=None),
                server.faults.add(broken, resource="leases.coordination.k8s.io", times=None),
                server.faults.add(broken, namespace="default", name="b", times=None),
                server.faults.add(broken, resource="/version", times=None),
            ]
            await gateway.merge_patch(NODES, None, "a", {}, "status")
            await gateway.create(CONFIG_MAPS, "default", BODY)
            for attempt in (
                gateway.merge_patch(NODES, None, "a", {}),
                gateway.create(CONFIG_MAPS, "default", {"metadata": {"name": "b"}}),
            ):
                with pytest.raises(ApiError):
                    await attempt
            assert [rule.hits for rule in rules] == [1, 0, 1, 0]
            rules[0].remove()
            await gateway.merge_patch(NODES, None, "a", {})
            server.faults.clear()
            with pytest.raises(NotFound):
                await gateway.get(CONFIG_MAPS, "default", "b")

    run(scenario())


class Watched:
    """A stream of nodes, and what was made of it."""

    def __init__(self, gateway: Gateway, version: str) -> None:
        self.opened = asyncio.Event()
        self.events: list[WatchEvent] = []
        self.news = asyncio.Event()
        self.task = asyncio.create_task(self._follow(gateway, version))

    async def _follow(self, gateway: Gateway, version: str) -> None:
        stream = gateway.watch(NODES, resource_version=version, timeout_seconds=60, opened=self.opened.set)
        async with aclosing(stream):
            async for event in stream:
                self.events.append(event)
                self.news.set()

    async def names(self, count: int) -> list[str]:
        while len(self.events) < count:
            self.news.clear()
            await self.news.wait()
        return [event.object["metadata"]["name"] for event in self.events]


@asynccontextmanager
async def watched(
    *effects: StreamEffect,
) -> AsyncIterator[tuple[FakeApi, Watched, Callable[[str], Coroutine[Any, Any, Any]]]]:
    """A stream on which there are effects from the start, and how to make a node."""
    async with both() as (server, gateway):
        if effects:
            server.faults.add(*effects, verb="watch")
        stream = Watched(gateway, (await gateway.list(NODES)).resource_version)

        async def make(name: str) -> None:
            await gateway.create(NODES, None, {"metadata": {"name": name, "labels": {"k": name}}})

        try:
            await stream.opened.wait()
            yield server, stream, make
        finally:
            stream.task.cancel()
            await asyncio.gather(stream.task, return_exceptions=True)


def test_a_stream_can_be_cut_in_the_middle_of_a_frame() -> None:
    async def scenario() -> None:
        async with watched() as (server, stream, make):
            await make("a")
            assert await stream.names(1) == ["a"]
            assert server.faults.on_streams(CutStream(after_bytes=20), resource="nodes") == 1
            await make("b")
            with pytest.raises(Unavailable):
                await stream.task
            assert await stream.names(1) == ["a"]

    run(scenario())


def test_a_stream_can_end_in_good_order() -> None:
    async def scenario() -> None:
        async with watched(EndStream(after_frames=2)) as (_, stream, make):
            for name in ("a", "b", "c"):
                await make(name)
            await stream.task
            assert await stream.names(2) == ["a", "b"]

    run(scenario())


def test_a_stream_can_fall_silent_and_have_it_all_to_say_later() -> None:
    async def scenario() -> None:
        async with watched() as (server, stream, make):
            go_on = asyncio.Event()
            server.faults.on_streams(MuteStream(go_on))
            await make("a")
            server.bookmark()
            assert stream.events == []
            go_on.set()
            assert await stream.names(1) == ["a"]

    run(scenario())


@pytest.mark.parametrize(
    ("code", "reason", "error"), [(410, "Expired", Gone), (500, "InternalError", Unavailable)]
)
def test_a_stream_can_tell_of_an_error(code: int, reason: str, error: type[ApiError]) -> None:
    async def scenario() -> None:
        status = {"kind": "Status", "code": code, "reason": reason, "message": "no more"}
        async with watched() as (server, stream, make):
            await make("a")
            server.faults.on_streams(ErrorEvent(status))
            with pytest.raises(error, match="no more"):
                await stream.task
            assert await stream.names(1) == ["a"]

    run(scenario())


@pytest.mark.parametrize("data", [b"<html>\n", b"\n\xff\n", b'{"type": "ADDED"}\n'])
def test_a_stream_can_say_what_is_no_event(data: bytes) -> None:
    async def scenario() -> None:
        async with watched() as (server, stream, _):
            server.faults.on_streams(RawBytes(data))
            with pytest.raises(Unavailable):
                await stream.task

    run(scenario())


@pytest.mark.parametrize("effect", [Pieces(), Pieces(7), Split(1), Split(30)])
def test_frames_can_come_in_any_pieces(effect: StreamEffect) -> None:
    async def scenario() -> None:
        async with watched(effect) as (_, stream, make):
            for name in ("a", "b", "c"):
                await make(name)
            assert await stream.names(3) == ["a", "b", "c"]

    run(scenario())
