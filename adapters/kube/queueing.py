"""Which key is worked on next: a pure state machine, with time and chance handed in.

Theory of operation. A key is in at most one of these states, plus at most one appointment by each clock:

    idle --add--> ready --take--> processing --done--> idle
                    ^                 | add
                    +---- done ---- processing and dirty

*One key never twice at once*: what is added while it is processed waits in `dirty`, and runs once more afterwards,
however often it was added. An appointment (`add_at`) adds the key when its time has come; of several the earliest
counts. Taking a key cancels its appointment: each run says anew when to look again.

There are two lanes: what has changed, or has come due, goes before what is only looked at again (`low`).
"""

import heapq
import itertools
from collections.abc import Hashable
from datetime import datetime
from random import Random
from typing import Generic, TypeVar

from fivespot.adapters.kube.backoff import WORK, Backoff

K = TypeVar("K", bound=Hashable)
W = TypeVar("W", float, datetime)
"""A moment: a reading of the monotonic clock, or an instant of the wall clock."""


class Queue(Generic[K]):
    """Keys that are ready, being processed, or have an appointment."""

    def __init__(self, backoff: Backoff = WORK) -> None:
        self._backoff = backoff
        # Dictionaries as ordered sets: first in, first out, and quick to look up.
        self._ready: dict[K, None] = {}
        self._low: dict[K, None] = {}
        self._processing: set[K] = set()
        self._dirty: dict[K, bool] = {}
        self._due: _Appointments[K, float] = _Appointments()
        self._dates: _Appointments[K, datetime] = _Appointments()
        self._failures: dict[K, int] = {}

    def __len__(self) -> int:
        """Keys that could be taken now; a key that is being processed counts once it is done."""
        return len(self._ready) + len(self._low)

    @property
    def processing(self) -> frozenset[K]:
        """Keys that have been taken and are not done."""
        return frozenset(self._processing)

    def add(self, key: K, *, low: bool = False) -> None:
        """The key is to be worked on; a change lifts it out of the low lane."""
        if key in self._processing:
            self._dirty[key] = low and self._dirty.get(key, True)
        elif key in self._ready:
            return
        elif low:
            self._low.setdefault(key)
        else:
            self._low.pop(key, None)
            self._ready[key] = None

    def add_at(self, key: K, when: float) -> None:
        """The key is to be worked on at a reading of the monotonic clock, or earlier if it has an earlier appointment."""
        self._due.add(key, when)

    def add_on(self, key: K, instant: datetime) -> None:
        """The same by the wall clock: the appointment moves with it when somebody sets it."""
        self._dates.add(key, instant)

    def retry(self, key: K, now: float, random: Random, at_least: float = 0.0) -> float:
        """Work on the key failed: an appointment later with each failure in a row, whose delay is returned."""
        self._failures[key] = failures = self._failures.get(key, 0) + 1
        delay = max(self._backoff.delay(failures, random), min(at_least, self._backoff.most))
        self.add_at(key, now + delay)
        return delay

    def forget(self, key: K) -> None:
        """Work on the key succeeded: its next failure is its first."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """Failures in a row."""
        return self._failures.get(key, 0)

    def take(self, now: float, at: datetime | None = None) -> K | None:
        """The next key, which is being processed from now on; None when there is none yet.

        Args:
            now: the monotonic clock, for appointments by it.
            at: the wall clock, for those.
        """
        while (due := self._due.pop(now)) is not None:
            self.add(due)
        while at is not None and (due := self._dates.pop(at)) is not None:
            self.add(due)
        for lane in (self._ready, self._low):
            for key in lane:
                del lane[key]
                self._processing.add(key)
                self._due.drop(key)
                self._dates.drop(key)
                return key
        return None

    def done(self, key: K) -> None:
        """The work on a key has ended, well or not.

        Raises:
            ValueError: it was not being processed; a mistake of the caller that would let a key run twice at once.
        """
        if key not in self._processing:
            message = f"{key!r} is not being processed"
            raise ValueError(message)
        self._processing.discard(key)
        if key in self._dirty:
            self.add(key, low=self._dirty.pop(key))

    def next_due(self) -> float | None:
        """When the next appointment by the monotonic clock is."""
        return self._due.next()

    def next_date(self) -> datetime | None:
        """When the next appointment by the wall clock is."""
        return self._dates.next()


class _Appointments(Generic[K, W]):
    """The earliest appointment of each key, by one clock."""

    def __init__(self) -> None:
        self._when: dict[K, W] = {}
        # Entries that no longer agree with _when are skipped when they surface; the number keeps keys from comparing.
        self._heap: list[tuple[W, int, K]] = []
        self._numbers = itertools.count()

    def add(self, key: K, when: W) -> None:
        before = self._when.get(key)
        if before is not None and when >= before:
            return
        self._when[key] = when
        heapq.heappush(self._heap, (when, next(self._numbers), key))

    def drop(self, key: K) -> None:
        self._when.pop(key, None)

    def next(self) -> W | None:
        while self._heap and self._when.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop(self, now: W) -> K | None:
        """A key whose time has come; it has no appointment any more."""
        when = self.next()
        if when is None or when > now:
            return None
        key = heapq.heappop(self._heap)[2]
        del self._when[key]
        return key
