"""Watches: what is told, from when on, in which words, and how a stream ends."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import httpx
import pytest

from fivespot.adapters.kube.errors import Gone, Invalid
from fivespot.adapters.kube.frames import WatchEvent
from fivespot.adapters.kube.resources import CONFIG_MAPS, NODES, PODS, Resource
from tests.contract.apis import Given, contract
from tests.contract.definitions import OLD_WIDGETS, WIDGETS

MATCH = {"labels": {"set": "mine"}}
OTHER = {"labels": {"set": "other"}}


class Heard:
    """What a stream has told so far."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.bookmarks: list[WatchEvent] = []
        self._events: asyncio.Queue[WatchEvent] = asyncio.Queue()

    def hear(self, event: WatchEvent) -> None:
        if event.type == "BOOKMARK":
            self.bookmarks.append(event)
        else:
            self._events.put_nowait(event)

    async def next(self, count: int) -> list[WatchEvent]:
        """The next events, when they have come."""
        async with asyncio.timeout(15):
            return [await self._events.get() for _ in range(count)]

    def nothing(self) -> bool:
        """Whether all that was told has been taken."""
        return self._events.empty()


@asynccontextmanager
async def watched(
    given: Given,
    resource: Resource = WIDGETS,
    version: str = "",
    *,
    everywhere: bool = False,
    **selectors: str,
) -> AsyncIterator[Heard]:
    """A stream from a version on; from now on when none is given."""
    home = given.namespace if resource.namespaced and not everywhere else None
    version = version or (await given.gateway.list(resource, home)).resource_version
    heard = Heard()

    async def follow() -> None:
        stream = given.gateway.watch(
            resource, home, resource_version=version, timeout_seconds=60, opened=heard.opened.set, **selectors
        )
        async with aclosing(stream):
            async for event in stream:
                heard.hear(event)

    async with asyncio.timeout(50):
        task = asyncio.create_task(follow())
        try:
            await heard.opened.wait()
            yield heard
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def collected(
    given: Given, seconds: float, version: str, opened: Callable[[], None] = lambda: None
) -> list[WatchEvent]:
    """A stream of widgets to its end."""
    stream = given.gateway.watch(
        WIDGETS, given.namespace, resource_version=version, timeout_seconds=seconds, opened=opened
    )
    async with aclosing(stream):
        return [event async for event in stream]


def told(events: list[WatchEvent]) -> list[tuple[str, str]]:
    return [(event.type, event.object["metadata"]["name"]) for event in events]


@contract
async def test_changes_are_told_in_order_with_versions_that_grow(given: Given) -> None:
    async with watched(given) as heard:
        await given.create(WIDGETS, "a")
        await given.gateway.merge_patch(WIDGETS, given.namespace, "a", {"spec": {"size": 1}})
        await given.create(WIDGETS, "b")
        await given.gateway.delete(WIDGETS, given.namespace, "a")
        events = await heard.next(4)
    assert told(events) == [("ADDED", "a"), ("MODIFIED", "a"), ("ADDED", "b"), ("DELETED", "a")]
    versions = [int(event.resource_version) for event in events]
    assert versions == sorted(set(versions))


@contract
async def test_a_watch_goes_on_from_any_version_that_is_remembered(given: Given) -> None:
    first = await given.create(WIDGETS, "a")
    await given.create(WIDGETS, "b")
    await given.gateway.delete(WIDGETS, given.namespace, "a")
    async with watched(given, version=first["metadata"]["resourceVersion"]) as heard:
        assert told(await heard.next(2)) == [("ADDED", "b"), ("DELETED", "a")]


@contract
async def test_from_no_version_or_zero_what_is_there_is_told_first(given: Given) -> None:
    await given.create(WIDGETS, "a")
    await given.create(WIDGETS, "b")
    query = {"watch": "true", "timeoutSeconds": "1"}
    answers = await asyncio.gather(
        *(
            given.http.get(given.path(WIDGETS), params={**query, **version})
            for version in ({}, {"resourceVersion": "0"})
        )
    )
    for answer in answers:
        events = [json.loads(line) for line in answer.text.splitlines()]
        assert [(e["type"], e["object"]["metadata"]["name"]) for e in events] == [
            ("ADDED", "a"),
            ("ADDED", "b"),
        ]


@contract
async def test_a_stream_with_bookmarks_says_when_it_has_told_what_is_there_and_may_be_compressed(
    given: Given,
) -> None:
    """In parts that are compressed each on its own: httpx would read the first part and lose the others."""
    await given.create(WIDGETS, "a")
    query = {"watch": "true", "timeoutSeconds": "1", "resourceVersion": "0", "allowWatchBookmarks": "true"}
    packed = b""
    headers = {"Accept-Encoding": "gzip"}
    async with given.http.stream("GET", given.path(WIDGETS), params=query, headers=headers) as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
        changed = False
        async for part in answer.aiter_raw():
            packed += part
            if not changed:
                await given.create(WIDGETS, "b")
                changed = True
    events = [json.loads(line) for line in gzip.decompress(packed).splitlines()]
    assert [event["type"] for event in events[:3]] == ["ADDED", "BOOKMARK", "ADDED"]
    assert events[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


@contract
async def test_an_event_has_the_object_as_it_is_read_with_its_type(given: Given) -> None:
    for resource in (WIDGETS, CONFIG_MAPS):
        async with watched(given, resource, field_selector="metadata.name=a") as heard:
            made = await given.create(resource, "a")
            assert [event.object for event in await heard.next(1)] == [made]


@contract
async def test_a_watch_in_one_version_of_a_kind_tells_objects_in_that(given: Given) -> None:
    async with watched(given, OLD_WIDGETS) as heard:
        await given.create(WIDGETS, "a")
        assert [event.object["apiVersion"] for event in await heard.next(1)] == [OLD_WIDGETS.api_version]


@contract
async def test_a_deletion_tells_the_last_state_under_a_new_version(given: Given) -> None:
    made = await given.create(WIDGETS, "a", spec={"size": 1})
    async with watched(given) as heard:
        await given.gateway.delete(WIDGETS, given.namespace, "a")
        (event,) = await heard.next(1)
    assert (event.type, event.object["spec"]) == ("DELETED", {"size": 1})
    assert int(event.resource_version) > int(made["metadata"]["resourceVersion"])


@contract
async def test_the_end_by_the_last_finalizer_is_one_event_and_shows_the_state_before(given: Given) -> None:
    await given.create(WIDGETS, "a", metadata={"finalizers": ["5spot.test/hold"]})
    async with watched(given) as heard:
        await given.gateway.delete(WIDGETS, given.namespace, "a")
        await given.gateway.merge_patch(WIDGETS, given.namespace, "a", {"metadata": {"finalizers": None}})
        await given.create(WIDGETS, "b")
        events = await heard.next(3)
    assert told(events) == [("MODIFIED", "a"), ("DELETED", "a"), ("ADDED", "b")]
    assert events[1].object["metadata"]["finalizers"] == ["5spot.test/hold"]


@contract
async def test_a_pod_is_marked_before_it_is_gone_even_when_it_goes_at_once(given: Given) -> None:
    await given.server.may_have_pods(given)
    await given.create(PODS, "a", spec={"containers": [{"name": "c", "image": "none"}]})
    async with watched(given, PODS) as heard:
        await given.gateway.delete(PODS, given.namespace, "a")
        events = await heard.next(2)
    assert told(events) == [("MODIFIED", "a"), ("DELETED", "a")]
    assert all("deletionTimestamp" in event.object["metadata"] for event in events)


@contract
async def test_what_enters_and_leaves_a_selection_is_added_and_deleted(given: Given) -> None:
    ns = given.namespace
    await given.create(WIDGETS, "a", metadata=OTHER)
    async with watched(given, label_selector="set=mine") as heard:
        await given.gateway.merge_patch(WIDGETS, ns, "a", {"spec": {"size": 1}})
        await given.gateway.merge_patch(WIDGETS, ns, "a", {"metadata": MATCH})
        await given.gateway.merge_patch(WIDGETS, ns, "a", {"spec": {"size": 2}})
        left = await given.gateway.merge_patch(WIDGETS, ns, "a", {"metadata": OTHER, "spec": {"size": 3}})
        await given.gateway.delete(WIDGETS, ns, "a")
        await given.create(WIDGETS, "b", metadata=MATCH)
        events = await heard.next(4)
    assert told(events) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a"), ("ADDED", "b")]
    # As it was when it was last in the selection, under the version that took it out.
    assert events[2].object["spec"] == {"size": 2}
    assert events[2].object["metadata"]["labels"] == MATCH["labels"]
    assert events[2].resource_version == left["metadata"]["resourceVersion"]


@contract
async def test_a_watch_of_one_name_tells_of_no_other(given: Given) -> None:
    async with watched(given, field_selector="metadata.name=b") as heard:
        await given.create(WIDGETS, "a")
        await given.create(WIDGETS, "b")
        await given.gateway.delete(WIDGETS, given.namespace, "a")
        await given.gateway.delete(WIDGETS, given.namespace, "b")
        assert told(await heard.next(2)) == [("ADDED", "b"), ("DELETED", "b")]


@contract
async def test_pods_are_watched_by_their_node(given: Given) -> None:
    await given.server.may_have_pods(given)
    async with watched(given, PODS, everywhere=True, field_selector=f"spec.nodeName={given.unique}") as heard:
        for name, spec in (("a", {}), ("b", {"nodeName": given.unique})):
            await given.create(PODS, name, spec={"containers": [{"name": "c", "image": "none"}], **spec})
        assert told(await heard.next(1)) == [("ADDED", "b")]


@contract
async def test_a_watch_of_all_namespaces_tells_of_each(given: Given) -> None:
    async with watched(given, everywhere=True, label_selector=f"run={given.unique}") as heard:
        await given.create(WIDGETS, "a", metadata={"labels": {"run": given.unique}})
        assert told(await heard.next(1)) == [("ADDED", "a")]


@contract
async def test_a_watch_of_one_namespace_tells_of_no_other(given: Given) -> None:
    async with watched(given) as heard:
        await given.gateway.create(WIDGETS, "default", {"metadata": {"name": given.unique}})
        await given.create(WIDGETS, "a")
        assert told(await heard.next(1)) == [("ADDED", "a")]
    await given.gateway.delete(WIDGETS, "default", given.unique)


@contract
async def test_a_write_that_changes_nothing_is_not_told(given: Given) -> None:
    await given.create(WIDGETS, "a", spec={"size": 1})
    async with watched(given) as heard:
        await given.gateway.merge_patch(WIDGETS, given.namespace, "a", {"spec": {"size": 1}})
        await given.gateway.merge_patch(WIDGETS, given.namespace, "a", {"spec": {"size": 2}})
        events = await heard.next(1)
        await given.create(WIDGETS, "b")
        assert told(await heard.next(1)) == [("ADDED", "b")]
    assert events[0].object["spec"] == {"size": 2}


@contract
async def test_a_change_of_status_is_told_on_every_stream_of_the_kind(given: Given) -> None:
    await given.create(NODES, given.unique)
    async with watched(given, NODES, field_selector=f"metadata.name={given.unique}") as heard:
        condition = {"type": "Test", "status": "True", "reason": "Test", "message": ""}
        body = {"status": {"conditions": [condition]}}
        await given.gateway.merge_patch(NODES, None, given.unique, body, "status")
        events = await heard.next(1)
        while not any(c["type"] == "Test" for c in events[-1].object["status"].get("conditions", [])):
            # The real server's node controller has something to say about a new node too.
            events += await heard.next(1)
    assert {event.type for event in events} == {"MODIFIED"}


@contract
async def test_text_that_looks_like_the_end_of_a_line_is_none(given: Given) -> None:
    async with watched(given, CONFIG_MAPS, field_selector="metadata.name=a") as heard:
        await given.create(CONFIG_MAPS, "a", data={"k": "x\x85y\u2028z\nw"})
        assert [event.object["data"] for event in await heard.next(1)] == [{"k": "x\x85y\u2028z\nw"}]


@contract
async def test_a_stream_ends_in_good_order_when_it_was_asked_to(given: Given) -> None:
    version = (await given.gateway.list(WIDGETS, given.namespace)).resource_version
    begun = time.monotonic()
    assert await collected(given, 1, version) == []
    assert 0.9 <= time.monotonic() - begun <= 5


@contract
async def test_bookmarks_tell_those_who_take_them_how_far_the_stream_has_come(given: Given) -> None:
    version = (await given.gateway.list(WIDGETS, given.namespace)).resource_version
    query = {"watch": "true", "timeoutSeconds": "4", "resourceVersion": version}
    opened = asyncio.Event()
    stream = asyncio.create_task(collected(given, 4, version, opened.set))
    without = asyncio.create_task(given.http.get(given.path(WIDGETS), params=query, timeout=30))
    # Of what happened before a stream began there are no bookmarks.
    await opened.wait()
    made = await given.create(WIDGETS, "a")
    events = await stream
    assert [event.type for event in events[:2]] == ["ADDED", "BOOKMARK"]
    assert {event.type for event in events[2:]} <= {"BOOKMARK"}
    assert all(int(e.resource_version) >= int(made["metadata"]["resourceVersion"]) for e in events)
    assert (events[1].object["kind"], events[1].object["apiVersion"]) == ("Widget", WIDGETS.api_version)
    assert [json.loads(line)["type"] for line in (await without).text.splitlines()] == ["ADDED"]


@contract
async def test_a_version_that_is_too_old_is_an_error_inside_the_stream(given: Given) -> None:
    query = {"watch": "true", "timeoutSeconds": "5", "resourceVersion": "1"}
    answer = await given.http.get(given.path(WIDGETS), params=query)
    assert answer.status_code == 200
    event: Any = answer.json()
    assert event["type"] == "ERROR"
    assert (event["object"]["kind"], event["object"]["code"], event["object"]["reason"]) == (
        "Status",
        410,
        "Expired",
    )
    assert event["object"]["message"].startswith("too old resource version: 1 (")
    with pytest.raises(Gone):
        await collected(given, 5, "1")


@contract
async def test_a_version_that_is_no_number_is_refused(given: Given) -> None:
    status = await given.refused("GET", given.path(WIDGETS), watch="true", resourceVersion="junk")
    assert status["code"] == 500
    assert status["message"] == (
        'resourceVersion: Invalid value: "junk": strconv.ParseUint: parsing "junk": invalid syntax'
    )


@contract
async def test_a_selector_that_cannot_be_read_is_refused_before_the_stream(given: Given) -> None:
    stream = given.gateway.watch(WIDGETS, given.namespace, "k=(", resource_version="0", timeout_seconds=5)
    with pytest.raises(Invalid):
        async for _ in stream:
            pass


@contract
async def test_a_stream_begins_before_there_is_anything_to_tell(given: Given) -> None:
    query = {"watch": "true", "timeoutSeconds": "30", "resourceVersion": "0"}
    async with given.http.stream(
        "GET", given.path(WIDGETS), params=query, timeout=httpx.Timeout(5)
    ) as answer:
        assert answer.status_code == 200
        assert answer.headers["Content-Type"] == "application/json"
        assert answer.headers["Transfer-Encoding"] == "chunked"
