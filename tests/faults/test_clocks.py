"""Clocks that are set, and machines that sleep: appointments are kept by the wall clock, pauses by the other one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from fivespot.adapters.kube.control.providers import ProviderController
from fivespot.adapters.kube.resources import Object
from fivespot.core.provider.kinds import BY_KIND
from tests import builders
from tests.fakeapi import FakeApi, fake_api
from tests.fakeapi.faults import Answer, CutStream
from tests.faults.setting import NAMESPACE, HandClock, gateway_to, install, run, until_open
from tests.faults.site import CAPI, MACHINES, SCHEDULES, site

HOUR = 3600.0
MORNING = datetime(2026, 3, 2, 11, 30, tzinfo=UTC)


@dataclass
class Publishing:
    """A schedule that is open from 12:00 to 14:00, and the controller that says so."""

    server: FakeApi
    clock: HandClock

    def status(self) -> Object:
        found = self.server.world.store.get(SCHEDULES, (NAMESPACE, "noon"))
        assert found is not None
        return found.get("status") or {}

    def answer(self) -> bool | None:
        return self.status().get("active")

    async def says(self, answer: bool | None) -> None:
        """Wait until it does; the clock stands still."""
        async with asyncio.timeout(5):
            while self.answer() is not answer:  # noqa: ASYNC110 - told by nothing else
                await asyncio.sleep(0.001)

    async def until_it_expects(self, transition: str) -> None:
        """Wait until it says that the answer changes then; the clock stands still."""
        async with asyncio.timeout(5):
            while self.status().get("nextTransitionTime") != transition:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.001)

    async def goes_on_saying(self, answer: bool) -> None:
        """Whatever was about to happen has happened, and it says the same."""
        writes = len(self.server.writes)
        for _ in range(50):
            await asyncio.sleep(0)
        assert self.answer() is answer
        # The Event about the last change comes when it comes.
        assert [entry for entry in self.server.writes[writes:] if entry.asked.resource != "events"] == []


@asynccontextmanager
async def publishing() -> AsyncIterator[Publishing]:
    clock = HandClock(MORNING)
    async with fake_api(now=clock.now) as server, gateway_to(server) as gateway:
        install(server)
        body = builders.provider(
            "TimeBasedSpotSchedule", "noon", hoursOfDay=["12-13"], daysOfWeek=["mon-sun"]
        )
        group = "spotschedules.5spot.finos.org/v1alpha1"
        server.create(group, "timebasedspotschedules", body, NAMESPACE)
        controller = ProviderController(
            gateway, clock, BY_KIND["TimeBasedSpotSchedule"], clock_trusted_from=MORNING - timedelta(days=1)
        )
        working = asyncio.ensure_future(controller.run(_at_once))
        here = Publishing(server, clock)
        try:
            await here.says(answer=False)
            await until_open(server, "timebasedspotschedules")
            yield here
        finally:
            assert not working.done()
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)


async def _at_once() -> None:
    return


def test_an_appointment_comes_at_its_time() -> None:
    async def scenario() -> None:
        async with publishing() as here:
            here.clock.advance(1799)
            await here.goes_on_saying(answer=False)
            here.clock.advance(1)
            await here.says(answer=True)
            here.clock.advance(2 * HOUR - 1)
            await here.goes_on_saying(answer=True)
            here.clock.advance(1)
            await here.says(answer=False)

    run(scenario())


def test_a_clock_that_is_set_forward_brings_the_appointment_at_once() -> None:
    async def scenario() -> None:
        async with publishing() as here:
            here.clock.step(HOUR)
            await here.says(answer=True)
            here.clock.advance(1.5 * HOUR - 1)
            await here.goes_on_saying(answer=True)
            here.clock.advance(1)
            await here.says(answer=False)

    run(scenario())


def test_a_clock_that_is_set_back_puts_the_appointment_off() -> None:
    async def scenario() -> None:
        async with publishing() as here:
            here.clock.step(-HOUR)
            here.clock.advance(1800)
            await here.goes_on_saying(answer=False)
            here.clock.advance(HOUR - 1)
            await here.goes_on_saying(answer=False)
            here.clock.advance(1)
            await here.says(answer=True)

    run(scenario())


def test_a_machine_that_was_suspended_for_an_hour_says_at_once_what_is_true_now() -> None:
    async def scenario() -> None:
        async with publishing() as here:
            here.clock.advance(HOUR)
            await here.says(answer=True)
            here.clock.advance(HOUR)
            await here.goes_on_saying(answer=True)
            here.clock.advance(HOUR)
            await here.says(answer=False)

    run(scenario())


def test_a_machine_that_was_suspended_through_a_whole_window_says_what_is_true_now() -> None:
    async def scenario() -> None:
        async with publishing() as here:
            here.clock.advance(3 * HOUR)
            await here.until_it_expects("2026-03-03T12:00:00Z")
            assert here.answer() is False
            here.clock.advance(21.5 * HOUR)
            await here.says(answer=True)

    run(scenario())


def test_a_schedule_whose_publication_is_throttled_is_published_when_the_server_has_said_and_not_before() -> (
    None
):
    async def scenario() -> None:
        async with publishing() as here:
            refused = Answer(429, "TooManyRequests", headers={"Retry-After": "20"})
            throttling = here.server.faults.add(refused, verb="patch")
            here.clock.advance(1800)
            await throttling.hit()
            await here.clock.asleep()
            here.clock.advance(19)
            await here.goes_on_saying(answer=False)
            here.clock.advance(11)
            await here.says(answer=True)

    run(scenario())


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_pauses_after_failures_know_nothing_of_the_wall_clock(step: float) -> None:
    async def scenario() -> None:
        async with site() as here:
            refusing = here.management.faults.add(
                Answer(503), verb="patch", resource=MACHINES, subresource="", times=None
            )
            here.add_machine()
            async with here.clock.passing():
                await refusing.hit(5)
            for _ in range(50):
                await asyncio.sleep(0)
            tries = refusing.hits
            here.clock.step(step)
            for _ in range(200):
                await asyncio.sleep(0)
            # A machine may have an appointment by the wall clock too, which is kept.
            assert refusing.hits <= tries + 2 * (step > 0), "it is no earlier"
            tries = refusing.hits
            async with here.clock.passing():
                end = here.clock.monotonic() + 40
                await refusing.hit(tries + 1)
                assert here.clock.monotonic() < end, "and no later"
            refusing.remove()
            await here.until_phase("Active")

    run(scenario())


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_a_removal_is_done_once_though_the_clock_is_set_in_the_middle_of_it(step: float) -> None:
    async def scenario() -> None:
        async with site() as here:
            here.add_machine()
            await here.until_phase("Active")
            here.add_pod("pod")
            here.schedule(active=False)
            await here.until_phase("ShuttingDown")
            here.clock.step(step)
            await here.until_phase("Inactive")
            assert here.there(CAPI) == []
            assert sum(e.asked.verb == "delete" and e.done for e in here.management.writes) == 1

    run(scenario())


def test_a_controller_that_was_suspended_for_an_hour_while_everything_changed_goes_on() -> None:
    """Its connections are dead when it wakes up, its schedule is closed, and a Node is gone."""

    async def scenario() -> None:
        async with site() as here:
            for name in ("desk-1", "desk-2"):
                here.add_machine(name)
            for name in ("desk-1", "desk-2"):
                await here.until_phase("Active", name=name)
            await until_open(here.child, "nodes")
            for server in (here.management, here.child):
                server.faults.on_streams(CutStream())
            here.schedule(active=False)
            here.child.world.store.remove("nodes", ("", "desk-2"))
            here.clock.advance(HOUR)
            for name in ("desk-1", "desk-2"):
                await here.until_phase("Inactive", name=name)
            assert here.there(CAPI) == []
            assert here.created(CAPI) == 2

    run(scenario())
