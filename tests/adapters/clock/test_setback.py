"""When a clock counts as set back, and when not."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from fivespot.adapters.clock import FakeClock, SetBack

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
HOUR = 3600.0


async def told(clock: FakeClock, *moves: Callable[[], None]) -> int:
    """How often it tells, while the clock is moved and asked after each move."""
    asked, times = SetBack(clock), 0

    async def count() -> None:
        nonlocal times
        while True:
            await asked.happened()
            times += 1

    counting = asyncio.create_task(count())
    for move in moves:
        asked.now()
        move()
        for _ in range(5):
            await asyncio.sleep(0)
    counting.cancel()
    await asyncio.wait([counting])
    return times


@pytest.mark.parametrize(
    ("steps", "times"),
    [
        ([-HOUR], 1),
        ([-HOUR, -HOUR], 2),
        # Asked in between: what was said when it was ahead is wrong now, though nothing is amiss over the whole minute.
        ([HOUR, -HOUR], 1),
        # Set forward, or suspended: the monotonic clock has stood still.
        ([HOUR, HOUR], 0),
        # Steered.
        ([-0.2, -0.2, -0.2], 0),
    ],
)
def test_it_tells_of_each_step_back_and_of_nothing_else(steps: list[float], times: int) -> None:
    async def scenario() -> None:
        clock = FakeClock(START)
        moves: list[Callable[[], None]] = []
        for step in steps:
            moves += [lambda step=step: clock.step(step), lambda: clock.advance(60)]  # type: ignore[misc]
        assert await told(clock, *moves) == times

    asyncio.run(scenario())


def test_a_clock_that_nobody_has_asked_is_never_wrong() -> None:
    async def scenario() -> None:
        clock = FakeClock(START)
        waiting = asyncio.create_task(SetBack(clock).happened())
        for _ in range(3):
            await asyncio.sleep(0)
            clock.step(-HOUR)
            clock.advance(60)
        assert not waiting.done()
        waiting.cancel()
        await asyncio.wait([waiting])

    asyncio.run(scenario())
