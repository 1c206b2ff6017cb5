"""401, 403 and 429: what the server refuses to one kind, or to everybody for a while, and what goes on meanwhile."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from fivespot.adapters.kube.errors import Forbidden, Throttled, Unauthorized
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.resources import CONFIG_MAPS, EVENTS, LEASES, NODES, PODS, Object
from tests.fakeapi import FakeApi, fake_api
from tests.fakeapi.faults import Answer, EndStream, Hold
from tests.faults.setting import (
    LONGEST_PAUSE,
    NAMESPACE,
    WATCHED,
    Following,
    Watched,
    everywhere,
    followed,
    gateway_to,
    install,
    noted,
    run,
)


@asynccontextmanager
async def all_followed(server: FakeApi, gateway: Gateway) -> AsyncIterator[list[Following]]:
    """Every kind at once; nothing is awaited."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(followed(server, gateway, watched)) for watched in WATCHED]


async def all_watched(every: list[Following], but: Watched | None = None) -> None:
    for here in every:
        if here.watched is not but:
            await noted(here.watched, here.until_watched())


# 403


@pytest.mark.parametrize("watched", WATCHED, ids=str)
def test_a_kind_that_may_not_be_read_keeps_no_other_from_being_read_and_is_read_once_it_may(
    watched: Watched,
) -> None:
    async def scenario() -> None:
        async with fake_api() as server, gateway_to(server) as gateway:
            install(server)
            server.authorizer = lambda _, asked: asked.resource != watched.plural
            async with all_followed(server, gateway) as every:
                await all_watched(every, but=watched)
                here = next(found for found in every if found.watched is watched)
                await here.clock.asleep()
                fault = here.watches.fault(here.stream)
                assert isinstance(fault, Forbidden)
                assert 'grant verb "list"' in str(fault)
                assert here.count("list") == 1, "a refusal is not repeated"
                server.authorizer = None
                here.clock.advance(LONGEST_PAUSE)
                await here.until_watched()
                assert here.watches.fault(here.stream) is None
                assert [found.count("watch") for found in every] == [1] * len(every)

    run(scenario())


def test_what_may_not_be_watched_any_more_stays_known_and_goes_on_once_it_may() -> None:
    async def check(here: Following) -> None:
        before = here.cache()
        plural = here.watched.plural
        here.server.authorizer = lambda _, asked: (asked.resource, asked.verb) != (plural, "watch")
        here.server.faults.on_streams(EndStream(), **here.match)
        for tries in range(2, 5):
            await here.clock.asleep()
            here.clock.advance(LONGEST_PAUSE)
            await here.clock.asleep()
            assert here.count("watch") == tries
        assert isinstance(here.watches.fault(here.stream), Forbidden)
        assert here.cache() == before
        here.change_everything("meanwhile")
        here.server.authorizer = None
        here.clock.advance(LONGEST_PAUSE)
        await here.until_watched()
        assert here.count("list") == 1

    everywhere(check)


# 429


def test_a_stream_is_tried_again_when_the_server_has_said_and_not_before() -> None:
    async def check(here: Following) -> None:
        here.server.faults.add(
            Answer(429, "TooManyRequests", headers={"Retry-After": "20"}), times=1, verb="watch", **here.match
        )
        here.server.faults.on_streams(EndStream(), **here.match)
        await here.clock.asleep()
        here.clock.advance(here.clock.pauses[-1])
        await here.clock.asleep()
        assert isinstance(here.watches.fault(here.stream), Throttled)
        assert 20 <= here.clock.pauses[-1] <= 30

    everywhere(check)


def test_a_list_that_is_refused_for_longer_than_a_request_waits_is_not_asked_for_before() -> None:
    async def scenario() -> None:
        async with fake_api() as server, gateway_to(server) as gateway:
            install(server)
            refused = Answer(429, "TooManyRequests", headers={"Retry-After": "20"})
            server.faults.add(refused, verb="list", times=None)
            async with all_followed(server, gateway) as every:
                for here in every:
                    await here.clock.asleep()
                    assert here.count("list") == 1
                    assert 20 <= here.clock.pauses[-1] <= 30, here.watched

    run(scenario())


def test_a_list_waits_as_long_as_the_server_says_where_that_is_short() -> None:
    async def scenario() -> None:
        async with fake_api() as server, gateway_to(server) as gateway:
            install(server)
            refused = Answer(429, "TooManyRequests", headers={"Retry-After": "1"})
            server.faults.add(refused, verb="list", times=len(WATCHED))
            begun = time.monotonic()
            async with all_followed(server, gateway) as every:
                await all_watched(every)
                assert time.monotonic() - begun >= 1
                assert [(here.count("list"), here.clock.pauses) for here in every] == [(2, [])] * len(every)

    run(scenario())


# 401


class Account:
    """Who we are: a token in a file that a kubeconfig names."""

    def __init__(self, folder: Path, server: FakeApi) -> None:
        self.kubeconfig = folder / "kubeconfig"
        self._file = folder / "token"
        self._server = server
        config = json.loads(server.kubeconfig())
        config["users"][0]["user"] = {"tokenFile": "token"}
        self.kubeconfig.write_text(json.dumps(config))
        self.give("old")
        self.demand("old")

    def give(self, token: str) -> None:
        """Replace the file, as the kubelet does."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{token}\n")
        new.rename(self._file)

    def demand(self, token: str) -> None:
        """Let nobody in but with this token."""
        self._server.tokens = {token: "us"}


@asynccontextmanager
async def known_by_a_token(folder: Path) -> AsyncIterator[tuple[FakeApi, Gateway, Account]]:
    async with fake_api() as server:
        install(server)
        account = Account(folder, server)
        async with await Gateway.connect(kubeconfig=account.kubeconfig) as gateway:
            yield server, gateway, account


def test_streams_that_are_open_outlive_their_token_and_are_opened_anew_with_the_next(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            known_by_a_token(tmp_path) as (server, gateway, account),
            all_followed(server, gateway) as every,
        ):
            await all_watched(every)
            account.demand("new")
            for here in every:
                here.change_everything("on the old stream")
                await here.until_current()
            assert [here.count("watch") for here in every] == [1] * len(every)
            account.give("new")
            for here in every:
                server.faults.on_streams(EndStream(), **here.match)
                await here.clock.asleep()
                here.change_everything("while nobody watches")
                here.clock.advance(LONGEST_PAUSE)
                await noted(here.watched, here.until_watched())
                assert here.count("list") == 1
                assert here.reflector.restart_reasons == {"end": 1}, "a new token is no fault"

    run(scenario())


def test_while_there_is_no_new_token_it_is_said_and_asked_ever_less_often(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            known_by_a_token(tmp_path) as (server, gateway, account),
            all_followed(server, gateway) as every,
        ):
            await all_watched(every)
            account.demand("new")
            for here in every:
                server.faults.on_streams(EndStream(), **here.match)
                for _ in range(20):
                    await here.clock.asleep()
                    here.clock.advance(5)
                await here.clock.asleep()
                assert isinstance(here.watches.fault(here.stream), Unauthorized)
                assert len(here.cache()) == len(here.watched.names)
                assert here.count("watch") <= 12
                here.change_everything("while nobody knows us")
            account.give("new")
            for here in every:
                here.clock.advance(LONGEST_PAUSE)
                await noted(here.watched, here.until_watched())
                assert here.count("list") == 1

    run(scenario())


async def every_write(gateway: Gateway, name: str) -> None:
    """Each way in which the product writes, once."""
    annotated: Object = {"metadata": {"annotations": {"a": name}}}
    tested = [{"op": "test", "path": "/metadata/name", "value": "desk"}]
    lease = await gateway.create(LEASES, NAMESPACE, {"metadata": {"name": name}, "spec": {}})
    await gateway.update(LEASES, NAMESPACE, lease)
    await gateway.merge_patch(NODES, None, "desk", annotated)
    await gateway.merge_patch(NODES, None, "desk", {"status": {"phase": name}}, subresource="status")
    await gateway.json_patch(NODES, None, "desk", tested)
    event = {
        "metadata": {"name": name},
        "eventTime": "2026-03-02T12:00:00.000000Z",
        "reportingController": "5spot.finos.org/us",
        "reportingInstance": "us",
        "action": "Look",
        "reason": "Look",
        "type": "Normal",
        "regarding": {"namespace": NAMESPACE},
    }
    await gateway.create(EVENTS, NAMESPACE, event)
    await gateway.merge_patch(EVENTS, NAMESPACE, name, annotated)
    pod = {
        "metadata": {"name": name},
        "spec": {"nodeName": "desk", "containers": [{"name": "c", "image": "i"}]},
    }
    made = await gateway.create(PODS, NAMESPACE, pod)
    await gateway.evict(NAMESPACE, name, uid=made["metadata"]["uid"])
    await gateway.create(CONFIG_MAPS, NAMESPACE, {"metadata": {"name": name}})
    await gateway.delete(CONFIG_MAPS, NAMESPACE, name)


def test_every_write_is_sent_again_with_the_new_token_and_done_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with known_by_a_token(tmp_path) as (server, gateway, account):
            server.create("v1", "nodes", {"metadata": {"name": "desk"}})
            await every_write(gateway, "old")
            done = [entry.asked.verb for entry in server.writes if entry.done]
            account.demand("new")
            account.give("new")
            await every_write(gateway, "new")
            await gateway.get(NODES, None, "desk")
            assert [entry.asked.verb for entry in server.writes if entry.done] == done * 2
            assert [entry.code for entry in server.audit].count(401) == 1

    run(scenario())


def test_what_is_under_way_with_the_old_token_comes_to_its_end(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with known_by_a_token(tmp_path) as (server, gateway, account):
            go_on = asyncio.Event()
            held = [
                server.faults.add(Hold(go_on), verb=verb, resource="configmaps")
                for verb in ("create", "list")
            ]
            under_way = [
                asyncio.ensure_future(gateway.create(CONFIG_MAPS, NAMESPACE, {"metadata": {"name": "a"}})),
                asyncio.ensure_future(gateway.list(CONFIG_MAPS, NAMESPACE)),
            ]
            for rule in held:
                await rule.hit()
            account.demand("new")
            with pytest.raises(Unauthorized):
                await gateway.get(CONFIG_MAPS, NAMESPACE, "a")
            account.give("new")
            await gateway.list(NODES)
            go_on.set()
            await asyncio.gather(*under_way)

    run(scenario())
