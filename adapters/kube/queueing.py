"""Which key is worked on next: a pure state machine, with time and chance handed in.

Theory of operation. A key is in at most one of these states, plus at most one appointment:

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
from random import Random
from typing import Generic, TypeVar

from fivespot.adapters.kube.backoff import WORK, Backoff

K = TypeVar("K", bound=Hashable)


class Queue(Generic[K]):
    """Keys that are ready, being processed, or have an appointment."""

    def __init__(self, backoff: Backoff = WORK) -> None:
        self._backoff = backoff
        # Dictionaries as ordered sets: first in, first out, and quick to look up.
        self._ready: dict[K, None] = {}
        self._low: dict[K, None] = {}
        self._processing: set[K] = set()
        self._dirty: dict[K, bool] = {}
        self._due: dict[K, float] = {}
        # Entries that no longer agree with _due are skipped when they surface; the number keeps keys from comparing.
        self._heap: list[tuple[float, int, K]] = []
        self._numbers = itertools.count()
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
        """The key is to be worked on at `when`, or earlier if it has an earlier appointment."""
        if when >= self._due.get(key, float("inf")):
            return
        self._due[key] = when
        heapq.heappush(self._heap, (when, next(self._numbers), key))

    def retry(self, key: K, now: float, random: Random) -> float:
        """Work on the key failed: an appointment later with each failure in a row, whose delay is returned."""
        self._failures[key] = failures = self._failures.get(key, 0) + 1
        delay = self._backoff.delay(failures, random)
        self.add_at(key, now + delay)
        return delay

    def forget(self, key: K) -> None:
        """Work on the key succeeded: its next failure is its first."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """Failures in a row."""
        return self._failures.get(key, 0)

    def take(self, now: float) -> K | None:
        """The next key, which is being processed from now on; None when there is none yet."""
        while (when := self.next_due()) is not None and when <= now:
            key = heapq.heappop(self._heap)[2]
            del self._due[key]
            self.add(key)
        for lane in (self._ready, self._low):
            for key in lane:
                del lane[key]
                self._processing.add(key)
                self._due.pop(key, None)
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
        """When the next appointment is."""
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None
