"""An event loop whose time is a clock that moves by itself, to the next thing that anybody waits for, once nothing else can happen.

Everything that sleeps or times out does so by this clock: the product's own waits, asyncio's, and those of the servers in
this process. Hours pass in the time that the work in them takes, and a story takes the same course every time.
"""

from __future__ import annotations

import asyncio
import os
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import anyio.to_thread
from anyio import CapacityLimiter

from tests.faults.setting import HandClock

T = TypeVar("T")
_GRAIN = 1e-5
"""Seconds: no jump is smaller, so that rounding never makes one that leads nowhere."""
_TURN = 2e-9
_PATIENCE = 5.0
_JUMPS = 60_000


class Stuck(AssertionError):  # noqa: N818 - a fact about a story
    """Nothing will ever happen again, or it never ends."""


class VirtualClock(HandClock):
    """A clock that the loop moves."""

    def until_next(self) -> float | None:
        """Seconds until the first sleeper's moment."""
        left = [self._left(when) for when, sleeper in self._sleepers if not sleeper.done()]
        return min(left, default=None)


class _Selector(selectors.DefaultSelector):
    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self.threads: CapacityLimiter | None = None
        self._clock = clock
        self._jumps = 0
        self.turns = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What is ready now; if nothing is, time goes on to when something is due."""
        self.turns += 1
        if (found := super().select(0)) or (timeout is not None and timeout <= 0):
            return found
        # What one of our sockets sends is there for the other at once, or as soon as the kernel has had its turn.
        os.sched_yield()
        if found := super().select(0):
            return found
        if self.threads is not None and self.threads.borrowed_tokens:
            # Somebody reads a file, in real time; no clock goes on meanwhile.
            return super().select(_PATIENCE)
        due = [left for left in (timeout, self._clock.until_next()) if left is not None]
        if not due:
            # The loop's own end is told by a thread.
            if found := super().select(_PATIENCE):
                return found
            raise Stuck("nothing is left to wait for")
        self._jumps += 1
        if self._jumps > _JUMPS:
            raise Stuck("it goes on for ever")
        self._clock.advance(max(_GRAIN, min(due)))
        return []


class _AtOnce(ThreadPoolExecutor):
    """What is handed to a thread is done here and now: a thread has no place in such a time."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        done: Future[T] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - whoever waits for it gets it
            done.set_exception(error)
        return done


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, clock: VirtualClock) -> None:
        self.waiting = _Selector(clock)
        super().__init__(self.waiting)
        self._virtual = clock
        self.set_default_executor(_AtOnce())

    def time(self) -> float:
        """The clock's monotonic reading; each turn takes a little, so that what is due a rounding error from now becomes due."""
        return self._virtual.monotonic() + self.waiting.turns * _TURN


def run_virtually(story: Callable[[VirtualClock], Coroutine[Any, Any, T]]) -> T:
    """Run a story on a clock of its own; no task is left behind, and none whose error nobody has seen.

    Raises:
        AssertionError: there is one.
        Stuck: it waits for what will not happen.
    """
    clock, problems = VirtualClock(), list[str]()
    loop = _Loop(clock)

    def note(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not isinstance(context.get("exception"), asyncio.CancelledError):
            problems.append(f"{context}")

    async def guarded() -> T:
        loop.set_exception_handler(note)
        loop.waiting.threads = anyio.to_thread.current_default_thread_limiter()
        answer = await story(clock)
        for _ in range(100):
            # Connections that were closed are told so in the loop's next turns.
            if not (left := asyncio.all_tasks() - {asyncio.current_task()}):
                return answer
            await asyncio.sleep(0.01)
        problems.extend(f"left behind: {task}" for task in left)
        return answer

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        answer = runner.run(guarded())
    assert not problems, "\n".join(problems)
    return answer
