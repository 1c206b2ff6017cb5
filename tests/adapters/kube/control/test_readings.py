"""What is asked outside the cluster: when, by whom, and which answer counts."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import attrs

from fivespot.adapters.kube.control.providers import ProviderController
from fivespot.adapters.kube.control.readings import Readings
from fivespot.adapters.telemetry.metrics import Metrics
from fivespot.core.api.scheduled_machine import SecretKeyReference
from fivespot.core.provider.kinds import BY_KIND
from fivespot.core.provider.question import Heard, Question, Reading
from tests import builders
from tests.fakeapi import FakeApi, fake_api
from tests.faults.setting import NOON, HandClock, gateway_to, install, run

YES, NO = Heard(True), Heard(False)
OUT = Heard(None, "QueryFailed", "no connection")
TOKEN = SecretKeyReference(name="token", key="value")


def asked(query: str = "up", **more: Any) -> Question:
    return Question(**{"url": "http://p", "query": query, "interval": 30, "confirm": 0, **more})


@attrs.define
class Source:
    """Whoever is asked: says what it is told to, and remembers who came with what."""

    says: Heard = YES
    came: "asyncio.Queue[tuple[str, str | None]]" = attrs.field(factory=asyncio.Queue)
    silent: set[str] = attrs.field(factory=set)
    go_on: asyncio.Event = attrs.field(factory=asyncio.Event)
    breaks: bool = False

    async def __call__(self, question: Question, *, ca: str | None, token: str | None) -> Heard:
        self.came.put_nowait((question.query, token))
        if self.breaks:
            raise LookupError(question.query)
        if question.query in self.silent:
            await self.go_on.wait()
            return OUT
        return self.says


@attrs.define
class World:
    readings: Readings
    source: Source
    clock: HandClock
    api: FakeApi
    told: "asyncio.Queue[str]"

    async def until_asked(self, times: int = 1) -> list[tuple[str, str | None]]:
        return [await self.source.came.get() for _ in range(times)]

    async def next_asked(self, seconds: float) -> None:
        """Let time pass, once everybody is asleep, and see it asked."""
        await self.clock.asleep()
        self.clock.advance(seconds)
        await self.source.came.get()

    def put(self, text: str) -> None:
        data = {"value": b64encode(text.encode()).decode()}
        store = self.api.world.store
        if (found := store.get("secrets", ("ns", "token"))) is None:
            self.api.create("v1", "secrets", {"metadata": {"name": "token"}, "data": data}, "ns")
        else:
            store.put("secrets", ("ns", "token"), {**found, "data": data})


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    clock, source = HandClock(), Source()
    told: asyncio.Queue[str] = asyncio.Queue()

    def news(keys: Iterable[str]) -> None:
        for key in keys:
            told.put_nowait(key)

    async with fake_api() as api, gateway_to(api) as gateway:
        api.create("v1", "namespaces", {"metadata": {"name": "ns"}})
        readings = Readings(gateway, clock, source, on_news=news, metrics=Metrics(), random=Random(0))
        asking = asyncio.ensure_future(readings.run())
        try:
            yield World(readings, source, clock, api, told)
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            await readings.close()


def test_a_question_is_asked_at_once_and_told_of_when_the_answer_is_another() -> None:
    async def scenario() -> None:
        async with world() as here:
            here.readings.want("ns/a", "ns", asked())
            assert await here.told.get() == "ns/a"
            assert here.readings.of("ns/a").heard == YES  # type: ignore[union-attr]
            await here.until_asked()
            await here.next_asked(33)
            await here.clock.asleep()
            assert here.told.empty()
            here.source.says = NO
            here.clock.advance(33)
            assert await here.told.get() == "ns/a"

    run(scenario())


def test_one_failure_is_not_told_and_the_second_is() -> None:
    async def scenario() -> None:
        async with world() as here:
            here.readings.want("ns/a", "ns", asked())
            await here.told.get()
            await here.until_asked()
            here.source.says = OUT
            await here.next_asked(33)
            await here.clock.asleep()
            assert here.told.empty()
            here.clock.advance(1)
            assert await here.told.get() == "ns/a"
            assert here.readings.of("ns/a").heard == OUT  # type: ignore[union-attr]

    run(scenario())


def test_what_was_heard_to_another_question_is_forgotten_and_so_is_an_answer_that_comes_late() -> None:
    async def scenario() -> None:
        async with world() as here:
            here.source.silent.add("old")
            here.readings.want("ns/a", "ns", asked("old"))
            await here.until_asked()
            here.readings.want("ns/a", "ns", asked("new"))
            here.source.go_on.set()
            assert await here.until_asked() == [("new", None)]
            assert await here.told.get() == "ns/a"
            assert here.readings.of("ns/a") == Reading(heard=YES, since=0.0, at=0.0)
            here.readings.want("ns/a", "ns", asked("newest"))
            assert here.readings.of("ns/a") is None

    run(scenario())


def test_a_host_that_swallows_questions_keeps_no_other_waiting() -> None:
    async def scenario() -> None:
        async with world() as here:
            here.source.silent.add("lost")
            for number in range(20):
                here.readings.want(f"ns/lost-{number}", "ns", asked("lost"))
            here.readings.want("ns/a", "ns", asked())
            assert await here.told.get() == "ns/a"

    run(scenario())


def test_a_standby_asks_nobody_until_it_leads() -> None:
    """Through the whole controller, which sees the object long before."""

    async def scenario() -> None:
        source, won = Source(), asyncio.Event()
        async with fake_api() as api, gateway_to(api) as gateway:
            install(api)
            made, kind = builders.prometheus(), BY_KIND["PrometheusSpotSchedule"]
            api.create(made["apiVersion"], kind.kind.plural, made, "ns")
            controller = ProviderController(gateway, HandClock(), kind, clock_trusted_from=NOON, ask=source)
            running = asyncio.ensure_future(controller.run(won.wait))
            while not controller._known:  # noqa: ASYNC110 - a standby tells nobody what it sees
                await asyncio.sleep(0.001)
            assert source.came.empty()
            won.set()
            await source.came.get()
            controller.stop()
            await running

    run(scenario())


def test_whatever_goes_wrong_with_asking_is_no_answer() -> None:
    """What was heard before must not stand for ever."""

    async def scenario() -> None:
        async with world() as here:
            here.readings.want("ns/a", "ns", asked())
            await here.told.get()
            await here.until_asked()
            here.source.breaks = True
            await here.next_asked(33)
            await here.next_asked(1)
            assert await here.told.get() == "ns/a"
            found = here.readings.of("ns/a")
            assert found is not None
            assert found.heard.active is None
            assert "LookupError" in found.heard.message

    run(scenario())


def test_a_secret_that_says_the_same_as_before_is_no_reason_to_ask() -> None:
    async def scenario() -> None:
        async with world() as here:
            here.put("first")
            here.readings.want("ns/a", "ns", asked(token=TOKEN))
            await here.until_asked()
            store = here.api.world.store
            for number in range(5):
                found = store.get("secrets", ("ns", "token"))
                assert found is not None
                metadata = {**found["metadata"], "annotations": {"n": str(number)}}
                store.put("secrets", ("ns", "token"), {**found, "metadata": metadata})
            here.put("second")
            assert await here.until_asked() == [("up", "second")]
            assert here.source.came.empty()

    run(scenario())


def test_the_token_is_read_from_its_secret_and_a_new_one_is_tried_at_once() -> None:
    async def scenario() -> None:
        async with world() as here:
            here.readings.want("ns/a", "ns", asked(token=TOKEN))
            assert await here.told.get() == "ns/a"
            found = here.readings.of("ns/a")
            assert found is not None
            assert found.heard.message == "spec.bearerTokenSecretRef: Secret ns/token: it does not exist"
            here.put("first")
            assert await here.until_asked() == [("up", "first")]
            here.put("second")
            assert await here.until_asked() == [("up", "second")]

    run(scenario())


def test_whoever_is_gone_is_asked_for_no_more_and_leaves_its_secret() -> None:
    async def scenario() -> None:
        async with world() as here:
            here.put("first")
            here.readings.want("ns/a", "ns", asked(token=TOKEN))
            await here.until_asked()
            here.readings.want("ns/a", "ns", None)
            while here.api.streams:  # noqa: ASYNC110 - the server has no event of its own for it
                await asyncio.sleep(0.001)
            here.clock.advance(60)
            for _ in range(100):
                await asyncio.sleep(0)
            assert here.source.came.empty()

    run(scenario())
