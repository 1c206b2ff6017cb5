"""Both clocks keep the same promises."""

import asyncio
import time
from datetime import UTC, datetime, timedelta

import pytest

from fivespot.adapters.clock import BootClock, FakeClock, SystemClock
from fivespot.core.ports import Clock

START = datetime(2026, 3, 2, 9, tzinfo=UTC)


def promised(clock: Clock) -> Clock:
    return clock


@pytest.mark.parametrize("clock", [promised(SystemClock()), promised(FakeClock(START))])
def test_now_is_aware_and_utc(clock: Clock) -> None:
    assert clock.now().utcoffset() == timedelta(0)


@pytest.mark.parametrize("clock", [promised(SystemClock()), promised(FakeClock(START))])
def test_a_moment_that_has_passed_is_not_waited_for(clock: Clock) -> None:
    asyncio.run(asyncio.wait_for(clock.sleep_until(clock.now() - timedelta(days=1)), 1))
    asyncio.run(asyncio.wait_for(clock.sleep_until(clock.monotonic() - 1), 1))


def test_the_system_clock_sleeps_to_an_instant_or_a_reading() -> None:
    clock = SystemClock()

    async def scenario() -> None:
        await clock.sleep_until(clock.now() + timedelta(seconds=0.05))
        await clock.sleep_until(clock.monotonic() + 0.05)

    begun = time.monotonic()
    asyncio.run(scenario())
    assert 0.09 < time.monotonic() - begun < 5


def test_the_fake_clock_wakes_those_whose_time_has_come() -> None:
    clock = FakeClock(START)

    async def scenario() -> None:
        woken: list[str] = []

        async def sleeper(name: str, when: datetime | float) -> None:
            await clock.sleep_until(when)
            woken.append(name)

        tasks = [
            asyncio.create_task(sleeper("wall", START + timedelta(seconds=20))),
            asyncio.create_task(sleeper("monotonic", 10.0)),
            asyncio.create_task(sleeper("never", 1e9)),
        ]
        await asyncio.sleep(0)
        assert clock.sleepers == 3
        clock.advance(10)
        await asyncio.sleep(0.01)
        assert woken == ["monotonic"]
        # Somebody corrects the clock of the machine: only wall time notices.
        clock.step(10)
        await asyncio.sleep(0.01)
        assert woken == ["monotonic", "wall"]
        assert (clock.now(), clock.monotonic()) == (START + timedelta(seconds=20), 10.0)
        tasks[2].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert clock.sleepers == 0

    asyncio.run(scenario())


def test_monotonic_time_never_goes_back() -> None:
    with pytest.raises(ValueError, match="cannot advance"):
        FakeClock(START).advance(-1)


def test_the_clock_since_boot_is_never_behind_the_one_that_stands_still_in_a_suspended_machine() -> None:
    monotonic = SystemClock().monotonic()
    assert BootClock().monotonic() >= monotonic
