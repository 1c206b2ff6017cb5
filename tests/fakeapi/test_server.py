"""What the fake can do that no real server can be asked for: tokens, a log, forgetting, and dying."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from fivespot.adapters.kube.errors import Forbidden, Gone, NotFound, Throttled, Unauthorized, Unavailable
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.resources import CONFIG_MAPS, CRDS, NODES, PODS, Resource
from tests.fakeapi import fake_api
from tests.fakeapi.faults import EndStream

BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", namespaced=True)


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 30))


def test_every_request_is_written_down() -> None:
    async def scenario() -> None:
        instant = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
        async with fake_api(now=lambda: instant) as server, server.gateway() as gateway:
            made = await gateway.create(CONFIG_MAPS, "default", {"metadata": {"name": "a"}})
            assert made["metadata"]["creationTimestamp"] == "2026-01-02T03:04:05Z"
            with pytest.raises(NotFound):
                await gateway.merge_patch(NODES, None, "b", {}, "status")
            await gateway.list(PODS)
            found = [
                (
                    e.asked.verb,
                    e.asked.resource,
                    e.asked.namespace,
                    e.asked.name,
                    e.asked.subresource,
                    e.code,
                    e.done,
                )
                for e in server.audit
            ]
            assert found == [
                ("create", "configmaps", "default", "a", "", 201, True),
                ("patch", "nodes", "", "b", "status", 404, False),
                ("list", "pods", "", "", "", 200, True),
            ]
            assert {entry.instant for entry in server.audit} == {instant}
            assert [entry.asked.verb for entry in server.writes] == ["create", "patch"]
            assert server.audit[0].agent.startswith("5spot/")

    run(scenario())


def test_tokens_can_be_changed_while_it_runs() -> None:
    async def scenario() -> None:
        async with fake_api() as server, server.gateway("one") as gateway:
            await gateway.list(NODES)
            server.tokens = {"two": "somebody"}
            with pytest.raises(Unauthorized):
                await gateway.list(NODES)
            server.tokens["one"] = "else"
            await gateway.list(NODES)
            assert [entry.user for entry in server.audit] == ["admin", "", "else"]

    run(scenario())


def test_an_authorizer_is_asked_about_every_request() -> None:
    async def scenario() -> None:
        async with fake_api() as server, server.gateway() as gateway:
            server.authorizer = lambda user, asked: asked.verb != "delete"
            await gateway.create(NODES, None, {"metadata": {"name": "a"}})
            with pytest.raises(Forbidden, match='User "admin" cannot delete resource "nodes"'):
                await gateway.delete(NODES, None, "a")

    run(scenario())


def test_what_is_forgotten_is_too_old() -> None:
    async def scenario() -> None:
        async with fake_api() as server, server.gateway() as gateway:
            old = (await gateway.create(NODES, None, {"metadata": {"name": "a"}}))["metadata"][
                "resourceVersion"
            ]
            await gateway.create(NODES, None, {"metadata": {"name": "b"}})

            async def watched(version: str) -> list[str]:
                stream = gateway.watch(NODES, resource_version=version, timeout_seconds=1)
                async with aclosing(stream):
                    return [event.type async for event in stream]

            assert await watched(old) == ["ADDED"]
            first = (await _get(server.url, limit="1"))["metadata"]["continue"]
            server.compact()
            with pytest.raises(Gone):
                await watched(old)
            assert (await _get(server.url, limit="1", **{"continue": first}))["code"] == 410
            assert await watched((await gateway.list(NODES)).resource_version) == []

    run(scenario())


async def _get(url: str, **query: str) -> Any:
    async with httpx.AsyncClient(base_url=url, trust_env=False, verify=False) as http:
        return (await http.get(NODES.path(), params=query)).json()


def test_a_server_that_dies_resets_connections_and_comes_back_with_its_data() -> None:
    async def scenario() -> None:
        async with fake_api() as server, server.gateway() as gateway:
            made = await gateway.create(NODES, None, {"metadata": {"name": "a"}})
            opened, url = asyncio.Event(), server.url

            async def follow() -> None:
                version = made["metadata"]["resourceVersion"]
                stream = gateway.watch(NODES, resource_version=version, timeout_seconds=60, opened=opened.set)
                async with aclosing(stream):
                    async for _ in stream:
                        pass

            stream = asyncio.create_task(follow())
            await opened.wait()
            await server.stop()
            with pytest.raises(Unavailable) as cut:
                await stream
            assert cut.value.sent
            with pytest.raises(Unavailable) as refused:
                await gateway.delete(NODES, None, "a")
            assert not refused.value.outcome_unknown
            assert server.streams == []
            await server.start()
            assert server.url == url
            assert await gateway.get(NODES, None, "a") == made

    run(scenario())


def test_a_child_cluster_is_reached_by_tls() -> None:
    async def scenario() -> None:
        async with fake_api(tls=True) as server:
            async with await Gateway.from_kubeconfig(server.kubeconfig(), allow_local=True) as gateway:
                await gateway.list(NODES)
            await server.stop()
            await server.start()
            async with server.gateway() as gateway:
                await gateway.list(NODES)

    run(scenario())


def test_bookmarks_are_sent_when_asked_for() -> None:
    async def scenario() -> None:
        async with fake_api() as server, server.gateway() as gateway:
            version = (await gateway.list(NODES)).resource_version
            stream = gateway.watch(NODES, resource_version=version, timeout_seconds=60)
            async with aclosing(stream):
                first = asyncio.ensure_future(anext(stream))
                await server.faults.watched(resource="nodes")
                server.bookmark()
                assert (await first).type == "BOOKMARK"

    run(scenario())


def test_a_budget_that_nobody_has_looked_at_refuses_and_says_when_to_come_back() -> None:
    """On a real server its controller is faster than a test."""

    async def scenario() -> None:
        async with fake_api() as server, server.gateway() as gateway:
            labels = {"labels": {"app": "x"}}
            spec = {"containers": [{"name": "c", "image": "none"}]}
            await gateway.create(PODS, "default", {"metadata": {"name": "a", **labels}, "spec": spec})
            await gateway.merge_patch(PODS, "default", "a", {"status": {"phase": "Running"}}, "status")
            budget = {"minAvailable": 1, "selector": {"matchLabels": labels["labels"]}}
            await gateway.create(BUDGETS, "default", {"metadata": {"name": "b"}, "spec": budget})
            with pytest.raises(Throttled) as refused:
                await gateway.evict("default", "a")
            assert (refused.value.retry_after, refused.value.cause) == (10, "DisruptionBudget")

    run(scenario())


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/api/v1/nodes?pretty=true", b""),
        ("GET", "/api/v1/nodes?resourceVersion=5", b""),
        ("DELETE", "/api/v1/nodes", b""),
        ("OPTIONS", "/api/v1/nodes", b""),
        ("POST", "/api/v1/nodes?dryRun=All", b'{"metadata": {"name": "a"}}'),
        ("POST", "/api/v1/namespaces/default/configmaps", b'{"metadata": {"name": "a"}, "immutable": true}'),
        ("POST", "/api/v1/namespaces/default/configmaps", b'{"metadata": {"name": "a"}, "strange": 1}'),
    ],
)
def test_what_it_does_not_understand_is_an_error_at_once_and_at_the_end(
    method: str, path: str, body: bytes
) -> None:
    codes = []

    async def scenario() -> None:
        headers = {"Content-Type": "application/json"}
        async with (
            fake_api() as server,
            httpx.AsyncClient(base_url=server.url, trust_env=False, verify=False) as http,
        ):
            codes.append((await http.request(method, path, content=body, headers=headers)).status_code)

    with pytest.raises(ExceptionGroup, match="did not know what to do"):
        run(scenario())
    assert codes == [501]


def test_an_effect_on_streams_that_are_not_there_is_an_error() -> None:
    async def scenario() -> None:
        async with fake_api() as server:
            with pytest.raises(LookupError):
                server.faults.on_streams(EndStream(), resource="nodes")
            with pytest.raises(LookupError):
                server.create("v1", "nothings", {"metadata": {"name": "a"}})
            assert server.world.kinds.find("apiextensions.k8s.io", "v1", CRDS.plural) is not None

    run(scenario())
