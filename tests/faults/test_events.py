"""Events against a server: series, buckets, and everything that may go wrong with what is worth less than what it tells of."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from fivespot.adapters.kube.correlating import BURST, SERIES
from fivespot.adapters.kube.errors import LeadershipLost
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.recorder import EventRecorder
from fivespot.adapters.kube.resources import Object
from fivespot.core.api.common import Metadata
from fivespot.core.decision.actions import Event, Severity
from tests.fakeapi import FakeApi, fake_api
from tests.fakeapi.faults import Answer, Cut, Hold, RequestEffect
from tests.faults.setting import DESK, NAMESPACE, HandClock, gateway_to, install, run

EVENTS = "events.events.k8s.io"
CONTROLLER = "5spot.finos.org/controller"


@dataclass
class Told:
    """A recorder at work, and what the server has of it."""

    server: FakeApi
    gateway: Gateway
    clock: HandClock
    recorder: EventRecorder
    dropped: list[None]

    def say(self, message: str = "it is full", *, name: str = DESK, reason: str = "Full") -> None:
        about = Metadata(name=name, namespace=NAMESPACE, uid=f"uid-of-{name}")
        event = Event(severity=Severity.WARNING, reason=reason, message=message)
        self.recorder.record(about, "5spot.finos.org/v1beta1", "ScheduledMachine", event)

    async def published(self) -> list[Object]:
        """The Events on the server, once nothing is waiting; in no order."""
        await self.recorder.finish()
        return [item for _, item in self.server.world.store.items(EVENTS)]


@asynccontextmanager
async def telling(*, running: bool = True) -> AsyncIterator[Told]:
    clock, dropped = HandClock(), list[None]()
    async with fake_api(now=clock.now) as server, gateway_to(server) as gateway:
        install(server)
        recorder = EventRecorder(gateway, clock, CONTROLLER, on_dropped=lambda: dropped.append(None))
        task = asyncio.ensure_future(recorder.run()) if running else None
        try:
            yield Told(server, gateway, clock, recorder, dropped)
        finally:
            if task is not None:
                assert not task.done()
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)


def counts(events: list[Object]) -> list[int]:
    return sorted((event.get("series") or {}).get("count", 1) for event in events)


def test_equal_events_are_one_that_counts() -> None:
    async def scenario() -> None:
        async with telling() as here:
            for _ in range(5):
                here.say()
                here.clock.advance(10)
            (event,) = await here.published()
            assert event["series"] == {"count": 5, "lastObservedTime": "2026-03-02T12:00:40.000000Z"}
            assert event["eventTime"] == "2026-03-02T12:00:00.000000Z"
            assert event["regarding"]["uid"] == f"uid-of-{DESK}"
            assert event["reportingController"] == CONTROLLER

    run(scenario())


def test_what_differs_in_a_word_is_another_event() -> None:
    async def scenario() -> None:
        async with telling() as here:
            here.say()
            here.say("it is empty")
            here.say(reason="Empty")
            here.say(name="desk-2")
            here.say()
            assert counts(await here.published()) == [1, 1, 1, 2]

    run(scenario())


def test_a_series_ends_six_minutes_after_the_last_of_it() -> None:
    async def scenario() -> None:
        async with telling() as here:
            for pause in (0.0, SERIES - 1, SERIES - 1, SERIES, SERIES - 1):
                here.clock.advance(pause)
                here.say()
            assert counts(await here.published()) == [2, 3]

    run(scenario())


def test_the_wall_clock_ends_no_series() -> None:
    async def scenario() -> None:
        async with telling() as here:
            here.say()
            for step in (3600.0, -7200.0):
                here.clock.step(step)
                here.say()
            (event,) = await here.published()
            assert event["series"] == {"count": 3, "lastObservedTime": "2026-03-02T11:00:00.000000Z"}

    run(scenario())


def test_one_too_many_about_an_object_is_dropped_and_counted_and_others_are_not() -> None:
    async def scenario() -> None:
        async with telling() as here:
            for number in range(BURST + 1):
                here.say(f"number {number}")
            here.say(name="desk-2")
            assert len(await here.published()) == BURST + 1
            assert here.recorder.dropped == len(here.dropped) == 1
            here.clock.advance(299)
            here.say("still too early")
            here.clock.advance(1)
            here.say("once more")
            assert len(await here.published()) == BURST + 2
            assert here.recorder.dropped == 2

    run(scenario())


def test_what_still_waits_at_the_end_is_given_up_and_counted() -> None:
    async def scenario() -> None:
        async with telling() as here:
            held = asyncio.Event()
            here.server.faults.add(Hold(held), resource="events", times=None)
            for number in range(3):
                here.say(name=f"desk-{number}")
            here.recorder.stop()
            await here.recorder.finish()
            # Of the first nobody can say whether it was done.
            assert here.recorder.dropped == len(here.dropped) == 2
            held.set()

    run(scenario())


def test_what_was_dropped_of_a_series_is_counted_in_it_later() -> None:
    async def scenario() -> None:
        async with telling() as here:
            for _ in range(BURST + 10):
                here.say()
            here.clock.advance(300)
            here.say()
            assert counts(await here.published()) == [BURST + 11]

    run(scenario())


def test_an_event_that_somebody_has_deleted_is_created_anew_with_its_count() -> None:
    async def scenario() -> None:
        async with telling() as here:
            here.say()
            here.say()
            (event,) = await here.published()
            store = here.server.world.store
            store.remove(EVENTS, (NAMESPACE, event["metadata"]["name"]))
            here.say()
            (again,) = await here.published()
            assert counts([again]) == [3]
            assert again["note"] == event["note"]
            here.say()
            assert counts(await here.published()) == [4]

    run(scenario())


def test_a_full_queue_never_blocks_and_what_does_not_fit_is_counted() -> None:
    async def scenario() -> None:
        async with telling() as here:
            held = here.server.faults.add(Hold(asyncio.Event()), resource=EVENTS)
            here.say(name="first")
            await held.hit()
            for number in range(20_200):
                here.say(name=f"desk-{number}")
            assert here.recorder.dropped == len(here.dropped) == 200

    run(scenario())


def test_an_account_that_may_not_write_events_is_told_so_and_nothing_else_happens(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        async with telling() as here:
            here.server.authorizer = lambda _, asked: asked.resource != "events"
            for _ in range(2):
                here.say()
                assert await here.published() == []
            warnings = [record.message for record in caplog.records if record.levelno == logging.WARNING]
            assert len(warnings) == 2
            assert all('grant verb "create" on resource "events"' in text for text in warnings)
            assert len(here.server.writes) == 2, "a refusal is not repeated"
            here.server.authorizer = None
            here.say()
            assert counts(await here.published()) == [1]

    run(scenario())


@pytest.mark.parametrize(
    "effect",
    [
        Answer(500, "InternalError"),
        Answer(503, "ServiceUnavailable"),
        Answer(504, "Timeout"),
        Answer(429, "TooManyRequests", headers={"Retry-After": "1"}),
        Answer(409, "Conflict"),
        Answer(422, "Invalid"),
        Answer(200, body=b"<html>"),
        Cut(),
    ],
    ids=str,
)
@pytest.mark.parametrize("verb", ["create", "patch"])
def test_an_event_that_was_not_published_is_lost_and_the_next_is_not(
    effect: RequestEffect, verb: str
) -> None:
    async def scenario() -> None:
        async with telling() as here:
            here.server.faults.add(effect, verb=verb, resource=EVENTS)
            for _ in range(4):
                here.say()
                events = await here.published()
            assert 1 <= len(events) <= 2
            assert sum(counts(events)) == 3
            assert len(here.server.writes) == 4

    run(scenario())


@pytest.mark.parametrize(
    "effect", [Answer(504, "Timeout", after=True), Cut(after=True)], ids=["504", "a cut"]
)
@pytest.mark.parametrize("verb", ["create", "patch"])
def test_an_event_whose_publication_nobody_has_heard_of_is_not_counted_twice(
    effect: RequestEffect, verb: str
) -> None:
    async def scenario() -> None:
        async with telling() as here:
            here.server.faults.add(effect, verb=verb, resource=EVENTS)
            for _ in range(4):
                here.say()
                events = await here.published()
            assert sum(counts(events)) == 4

    run(scenario())


@pytest.mark.parametrize("text", ["ä" * 1000, "€" * 1000, "\U0001f984" * 1000, "a" + "é" * 1000, "x" * 5000])
def test_a_note_that_is_too_long_is_cut_at_a_character(text: str) -> None:
    async def scenario() -> None:
        async with telling() as here:
            here.say(text)
            (event,) = await here.published()
            note = event["note"]
            assert text.startswith(note)
            assert 1024 - 4 < len(note.encode()) <= 1024

    run(scenario())


def test_an_object_whose_name_is_as_long_as_may_be_can_be_told_of() -> None:
    async def scenario() -> None:
        async with telling() as here:
            here.say(name="x" * 253)
            (event,) = await here.published()
            assert len(event["metadata"]["name"]) <= 253

    run(scenario())


def test_whoever_leads_no_longer_tells_nothing() -> None:
    async def scenario() -> None:
        async with telling(running=False) as here:

            def lost() -> float:
                raise LeadershipLost

            here.gateway.fence = lost
            here.say()
            with pytest.raises(LeadershipLost):
                await here.recorder.run()
            assert here.server.writes == []

    run(scenario())
