"""The queue of keys that workers wait on: `queueing` with a clock and an event loop.

Any number of workers: `key = await queue.get()`, work, `forget(key)` or `retry(key)`, and always `done(key)`, until the
key is None. All other methods return at once and may be called from callbacks; all of them belong to one event loop.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime
from random import Random
from typing import Generic

from fivespot.adapters.clock import event_or_time
from fivespot.adapters.kube.backoff import WORK, Backoff
from fivespot.adapters.kube.queueing import K, Queue
from fivespot.core.ports import Clock


class WorkQueue(Generic[K]):
    """Keys to work on, each never twice at once.

    Args:
        clock: `monotonic` decides when appointments are due.
        backoff: delays between failures of one key.
        random: for jitter.
        waited: told how many seconds a key waited for a worker, once it was ready.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        backoff: Backoff = WORK,
        random: Random | None = None,
        waited: Callable[[float], None] | None = None,
    ) -> None:
        self._clock = clock
        self._waited = waited or (lambda _: None)
        self._since: dict[K, float] = {}
        self._random = random or Random()  # noqa: S311 - for jitter
        self._queue: Queue[K] = Queue(backoff)
        self._news = asyncio.Event()
        # One worker at a time watches the clock and the news; the others wait for their turn, in order.
        self._turn = asyncio.Lock()
        self._closed = False
        self._drained = asyncio.Event()

    def __len__(self) -> int:
        """Keys that wait for a worker."""
        return len(self._queue)

    @property
    def processing(self) -> frozenset[K]:
        """Keys that workers are at."""
        return self._queue.processing

    def add(self, key: K, *, low: bool = False) -> None:
        """Have the key worked on, once more if it is being worked on; `low` lets every change go first."""
        self._queue.add(key, low=low)
        self._since.setdefault(key, self._clock.monotonic())
        self._news.set()

    def add_at(self, key: K, when: float | datetime) -> None:
        """Have the key worked on when the clock's `monotonic` reaches a reading, or its `now` an instant.

        Of several the earliest counts, of readings as of instants. An instant follows the wall clock when that is set.
        """
        if isinstance(when, datetime):
            self._queue.add_on(key, when)
        else:
            self._queue.add_at(key, when)
        self._news.set()

    def retry(self, key: K, at_least: float | None = None) -> float:
        """Have a key that failed worked on again, later each time; returns the delay.

        Args:
            key: the key.
            at_least: seconds that a server has asked to wait; no more than the longest back-off counts.
        """
        delay = self._queue.retry(key, self._clock.monotonic(), self._random, at_least or 0.0)
        self._news.set()
        return delay

    def forget(self, key: K) -> None:
        """The key's work succeeded: its next failure is its first."""
        self._queue.forget(key)

    def failures(self, key: K) -> int:
        """The key's failures in a row."""
        return self._queue.failures(key)

    def done(self, key: K) -> None:
        """The worker has left the key, well or not."""
        self._queue.done(key)
        self._news.set()

    def close(self) -> None:
        """Hand out no more keys: whoever waits for one, or asks for the next, gets None."""
        self._closed = True
        self._news.set()
        self._drained.set()

    async def quiet(self) -> None:
        """Return once no key waits for a worker: for what is worth less than the work. At once when the queue is closed."""
        while len(self._queue) and not self._closed:
            self._drained.clear()
            await self._drained.wait()

    async def get(self) -> K | None:
        """The next key; nobody else gets it before `done`. None once the queue is closed."""
        async with self._turn:
            while not self._closed:
                now = self._clock.monotonic()
                if (key := self._queue.take(now, self._clock.now())) is not None:
                    # A key that has come due was looked at as soon as there was a worker for it.
                    self._waited(now - self._since.pop(key, now))
                    if not len(self._queue):
                        self._drained.set()
                    return key
                await self._wait()
            return None

    async def _wait(self) -> None:
        self._news.clear()
        due, date = self._queue.next_due(), self._queue.next_date()
        await event_or_time(self._news, self._clock, *(when for when in (due, date) if when is not None))
