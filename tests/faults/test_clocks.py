"""Clocks that are set, and machines that sleep: appointments are kept by the wall clock, pauses by the other one."""

import asyncio

import pytest

from tests.fakeapi.faults import Answer, CutStream
from tests.faults.publishing import HOUR, publishing
from tests.faults.setting import run, until_open
from tests.faults.site import CAPI, MACHINES, site


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
            await here.until(lambda: 20 in here.clock.pauses)
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
