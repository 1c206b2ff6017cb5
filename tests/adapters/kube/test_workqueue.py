"""Workers that wait: the queue on an event loop with a clock that the test moves."""

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any

from fivespot.adapters.clock import FakeClock
from fivespot.adapters.kube.workqueue import WorkQueue


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 10))


def clock() -> FakeClock:
    return FakeClock(datetime(2026, 3, 2, tzinfo=UTC))


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_a_waiting_worker_gets_a_key_as_soon_as_it_is_added() -> None:
    async def scenario() -> None:
        queue: WorkQueue[str] = WorkQueue(clock())
        worker = asyncio.create_task(queue.get())
        await settle()
        queue.add("a")
        assert await worker == "a"

    run(scenario())


def test_a_closed_queue_hands_out_nothing_more_and_sends_all_workers_home() -> None:
    async def scenario() -> None:
        queue: WorkQueue[str] = WorkQueue(clock())
        workers = [asyncio.create_task(queue.get()) for _ in range(3)]
        await settle()
        queue.close()
        queue.add("a")
        assert await asyncio.gather(*workers) == [None] * 3
        assert await queue.get() is None

    run(scenario())


def test_an_appointment_wakes_a_worker_when_the_clock_gets_there_and_not_before() -> None:
    async def scenario() -> None:
        time = clock()
        queue: WorkQueue[str] = WorkQueue(time)
        queue.add_at("a", 100.0)
        worker = asyncio.create_task(queue.get())
        await settle()
        time.advance(99.9)
        await settle()
        assert not worker.done()
        time.advance(0.1)
        assert await worker == "a"
        assert time.sleepers == 0

    run(scenario())


def test_an_earlier_appointment_moves_the_waiting_forward() -> None:
    async def scenario() -> None:
        time = clock()
        queue: WorkQueue[str] = WorkQueue(time)
        queue.add_at("late", 100.0)
        worker = asyncio.create_task(queue.get())
        await settle()
        queue.add_at("soon", 5.0)
        await settle()
        time.advance(5.0)
        assert await worker == "soon"

    run(scenario())


def test_several_workers_never_have_the_same_key_and_lose_none() -> None:
    async def scenario() -> None:
        queue: WorkQueue[int] = WorkQueue(clock())
        busy: set[int] = set()
        runs: list[int] = []

        async def work() -> None:
            while True:
                key = await queue.get()
                assert key not in busy
                busy.add(key)
                await asyncio.sleep(0)
                runs.append(key)
                busy.discard(key)
                queue.done(key)

        workers = [asyncio.create_task(work()) for _ in range(8)]
        for round_ in range(50):
            for key in range(20):
                queue.add(key)
            if round_ % 7 == 0:
                await asyncio.sleep(0)
        while len(queue) or queue.processing:  # noqa: ASYNC110 - the queue has no event for it
            await asyncio.sleep(0)
        assert set(runs) == set(range(20))
        for worker in workers:
            assert not worker.done()
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    run(scenario())


def test_a_cancelled_worker_takes_no_key_with_it() -> None:
    async def scenario() -> None:
        time = clock()
        queue: WorkQueue[str] = WorkQueue(time)
        queue.add_at("a", 1.0)
        first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
        await settle()
        first.cancel()
        await settle()
        time.advance(1.0)
        assert await second == "a"
        assert time.sleepers == 0

    run(scenario())


def test_a_failed_key_comes_back_later_each_time() -> None:
    async def scenario() -> None:
        time = clock()
        queue: WorkQueue[str] = WorkQueue(time)
        queue.add("a")
        for failures in range(1, 6):
            assert await queue.get() == "a"
            delay = queue.retry("a")
            queue.done("a")
            assert 0.25 * 2 ** (failures - 1) <= delay <= 0.5 * 2 ** (failures - 1)
            worker = asyncio.create_task(queue.get())
            await settle()
            assert not worker.done()
            time.advance(delay)
            assert await worker == "a"
            queue.done("a")
            queue.add("a")

    run(scenario())


def test_what_is_worth_less_than_the_work_waits_until_no_key_does_or_the_queue_is_closed() -> None:
    async def scenario() -> None:
        time = clock()
        queue: WorkQueue[str] = WorkQueue(time)
        await queue.quiet()
        queue.add("b", low=True)
        # What is due is known when somebody looks.
        queue.add_at("a", 1.0)
        time.advance(1)
        waiting = asyncio.create_task(queue.quiet())
        assert await queue.get() == "a"
        await settle()
        assert not waiting.done()
        assert await queue.get() == "b"
        await waiting
        queue.add("c")
        waiting = asyncio.create_task(queue.quiet())
        await settle()
        assert not waiting.done()
        queue.close()
        await waiting

    run(scenario())
