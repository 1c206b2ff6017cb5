"""The queue against sets and sorted lists, to the very order; and workers on an event loop, of which some are killed."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random

import attrs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fivespot.adapters.clock import FakeClock
from fivespot.adapters.kube.backoff import Backoff
from fivespot.adapters.kube.queueing import Queue
from fivespot.adapters.kube.workqueue import WorkQueue

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
KEYS = st.sampled_from("abcde")
BACKOFF = Backoff(first=0.5, most=7.0)


@attrs.define
class Reference:
    """Two lists of what waits, two of appointments, one for each clock, and a set of what is worked on."""

    waiting: list[str] = attrs.field(factory=list)
    second_looks: list[str] = attrs.field(factory=list)
    due: list[tuple[float, int, str]] = attrs.field(factory=list)
    dates: list[tuple[datetime, int, str]] = attrs.field(factory=list)
    working: set[str] = attrs.field(factory=set)
    again: dict[str, bool] = attrs.field(factory=dict)
    made: int = 0

    def add(self, key: str, *, low: bool) -> None:
        if key in self.working:
            self.again[key] = low and self.again.get(key, True)
            return
        if not low and key in self.second_looks:
            self.second_looks.remove(key)
        if key not in self.waiting and key not in self.second_looks:
            (self.second_looks if low else self.waiting).append(key)

    def add_at(self, key: str, when: float) -> None:
        self.made += 1
        # Only the earliest of a key; of two for the same moment the one that was made first.
        mine = min([*(entry for entry in self.due if entry[2] == key), (when, self.made, key)])
        self.due = sorted([*(entry for entry in self.due if entry[2] != key), mine])

    def add_on(self, key: str, instant: datetime) -> None:
        self.made += 1
        mine = min([*(entry for entry in self.dates if entry[2] == key), (instant, self.made, key)])
        self.dates = sorted([*(entry for entry in self.dates if entry[2] != key), mine])

    def take(self, now: float, at: datetime) -> str | None:
        while self.due and self.due[0][0] <= now:
            self.add(self.due.pop(0)[2], low=False)
        while self.dates and self.dates[0][0] <= at:
            self.add(self.dates.pop(0)[2], low=False)
        for lane in (self.waiting, self.second_looks):
            if lane:
                key = lane.pop(0)
                self.working.add(key)
                self.due = [entry for entry in self.due if entry[2] != key]
                self.dates = [entry for entry in self.dates if entry[2] != key]
                return key
        return None

    def done(self, key: str) -> None:
        self.working.discard(key)
        if key in self.again:
            self.add(key, low=self.again.pop(key))


class QueueAndReference(RuleBasedStateMachine):
    """The same calls to both; they answer the same, in the same order."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: Queue[str] = Queue(BACKOFF)
        self.reference = Reference()
        self.now = 0.0
        self.at = NOON
        self.failures: Counter[str] = Counter()
        # Keys about which somebody has said something since their last run began.
        self.owed: set[str] = set()

    @rule(key=KEYS, low=st.booleans(), times=st.integers(1, 3))
    def add(self, key: str, low: bool, times: int) -> None:
        for _ in range(times):
            self.queue.add(key, low=low)
            self.reference.add(key, low=low)
        self.owed.add(key)

    # Quarters of a second, each of them once: of two appointments for one instant neither is the first.
    @rule(key=KEYS, quarters=st.integers(-4, 60))
    def make_an_appointment(self, key: str, quarters: int) -> None:
        when = self.now + quarters / 4 + (ord(key) - ord("a")) / 1000
        self.queue.add_at(key, when)
        self.reference.add_at(key, when)
        self.owed.add(key)

    @rule(key=KEYS, quarters=st.integers(-4, 60))
    def make_an_appointment_by_the_wall_clock(self, key: str, quarters: int) -> None:
        instant = self.at + timedelta(seconds=quarters / 4, milliseconds=ord(key) - ord("a"))
        self.queue.add_on(key, instant)
        self.reference.add_on(key, instant)
        self.owed.add(key)

    @rule(quarters=st.integers(0, 30))
    def time_passes(self, quarters: int) -> None:
        self.pass_time(quarters / 4)

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.at += timedelta(seconds=seconds)

    @rule(quarters=st.integers(-40, 40))
    def the_wall_clock_is_set(self, quarters: int) -> None:
        self.at += timedelta(seconds=quarters / 4)

    @rule()
    def time_passes_to_the_next_appointment(self) -> None:
        if (due := self.queue.next_due()) is not None:
            self.pass_time(max(0.0, due - self.now))

    @rule(most=st.integers(1, 4))
    def workers_take(self, most: int) -> None:
        for _ in range(most):
            before = set(self.reference.working)
            expected = self.reference.take(self.now, self.at)
            assert self.queue.take(self.now, self.at) == expected
            if expected is None:
                return
            assert expected not in before, "one key is never worked on twice at once"
            self.owed.discard(expected)

    @precondition(lambda self: self.reference.working)
    @rule(data=st.data(), seed=st.integers(0, 2**32), succeeded=st.booleans())
    def a_worker_is_done(self, data: st.DataObject, seed: int, succeeded: bool) -> None:
        key = data.draw(st.sampled_from(sorted(self.reference.working)))
        if succeeded:
            self.queue.forget(key)
            del self.failures[key]
        else:
            self.failures[key] += 1
            delay = self.queue.retry(key, self.now, Random(seed))
            step = min(7.0, 0.5 * 2 ** (self.failures[key] - 1))
            assert step / 2 <= delay <= step
            self.reference.add_at(key, self.now + delay)
            self.owed.add(key)
        self.queue.done(key)
        self.reference.done(key)

    @invariant()
    def they_agree(self) -> None:
        waiting = len(self.reference.waiting) + len(self.reference.second_looks)
        assert len(self.queue) == waiting
        assert self.queue.processing == self.reference.working
        assert self.queue.next_due() == min((when for when, _, _ in self.reference.due), default=None)
        assert self.queue.next_date() == min((at for at, _, _ in self.reference.dates), default=None)
        for key in "abcde":
            assert self.queue.failures(key) == self.failures[key]

    @invariant()
    def nothing_is_lost(self) -> None:
        known = {*self.reference.waiting, *self.reference.second_looks, *self.reference.again}
        assert self.owed <= known | {key for _, _, key in [*self.reference.due, *self.reference.dates]}

    def teardown(self) -> None:
        """Everything that was said is worked on in the end, and then nothing is remembered."""
        while self.owed or self.reference.working:
            for key in sorted(self.reference.working):
                self.queue.forget(key)
                self.queue.done(key)
                self.reference.done(key)
            self.pass_time(100.0)
            self.workers_take(10)
        assert self.queue.take(self.now, self.at) is None
        assert (self.queue.next_due(), self.queue.next_date()) == (None, None)
        assert len(self.queue) == 0
        for held in (self.queue._dirty, self.queue._processing, self.queue._due._when, self.queue._due._heap):
            assert not held


class Workers(RuleBasedStateMachine):
    """Workers on a loop of their own; after each step whoever can run has run.

    A worker ends its key when it is told to, well or not; some are cancelled while they wait, or while they work.
    """

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = FakeClock(NOON)
        self.waits: list[float] = []
        self.queue: WorkQueue[str] = WorkQueue(
            self.clock, backoff=BACKOFF, random=Random(0), waited=self.waits.append
        )
        self.workers: list[asyncio.Task[None]] = []
        self.at: dict[str, asyncio.Future[bool]] = {}
        self.due: dict[str, float] = {}
        self.dates: dict[str, datetime] = {}
        self.owed: set[str] = set()
        self.closed = False

    async def work(self) -> None:
        while (key := await self.queue.get()) is not None:
            assert key not in self.at, "one key is never worked on twice at once"
            assert not self.closed
            self.at[key] = asyncio.get_running_loop().create_future()
            self.owed.discard(key)
            self.due.pop(key, None)
            self.dates.pop(key, None)
            try:
                if await self.at[key]:
                    self.queue.forget(key)
                else:
                    self.appointment(key, self.clock.monotonic() + self.queue.retry(key))
            finally:
                del self.at[key]
                self.queue.done(key)

    def appointment(self, key: str, when: float) -> None:
        self.due[key] = min(self.due.get(key, float("inf")), when)

    def settle(self) -> None:
        async def turns() -> None:
            for _ in range(40):
                await asyncio.sleep(0)

        self.loop.run_until_complete(turns())

    @rule(more=st.integers(1, 3))
    def workers_begin(self, more: int) -> None:
        if len(self.workers) < 6:
            self.workers += [self.loop.create_task(self.work()) for _ in range(more)]
            self.settle()

    @rule(keys=st.lists(KEYS, min_size=1, max_size=4), low=st.booleans(), at_once=st.booleans())
    def keys_are_added(self, keys: list[str], low: bool, at_once: bool) -> None:
        for key in keys:
            self.queue.add(key, low=low)
            self.owed.add(key)
            if not at_once:
                self.settle()
        self.settle()

    @rule(key=KEYS, quarters=st.integers(-4, 40))
    def an_appointment_is_made(self, key: str, quarters: int) -> None:
        when = self.clock.monotonic() + quarters / 4
        self.queue.add_at(key, when)
        self.appointment(key, when)
        self.settle()

    @rule(key=KEYS, quarters=st.integers(-4, 40))
    def an_appointment_is_made_by_the_wall_clock(self, key: str, quarters: int) -> None:
        instant = self.clock.now() + timedelta(seconds=quarters / 4)
        self.queue.add_at(key, instant)
        self.dates[key] = min(self.dates.get(key, instant), instant)
        self.settle()

    @rule(quarters=st.integers(-40, 40))
    def the_wall_clock_is_set(self, quarters: int) -> None:
        self.clock.step(quarters / 4)
        self.settle()

    @rule(quarters=st.integers(1, 30))
    def time_passes(self, quarters: int) -> None:
        self.clock.advance(quarters / 4)
        self.settle()

    @precondition(lambda self: self.at)
    @rule(data=st.data(), well=st.booleans(), add_first=st.booleans())
    def a_key_is_done(self, data: st.DataObject, well: bool, add_first: bool) -> None:
        key = data.draw(st.sampled_from(sorted(self.at)))
        if add_first:
            self.queue.add(key)
            self.owed.add(key)
        self.at[key].set_result(well)
        self.settle()

    @precondition(lambda self: self.workers)
    @rule(data=st.data(), add_first=st.booleans(), key=KEYS)
    def a_worker_is_cancelled(self, data: st.DataObject, add_first: bool, key: str) -> None:
        """Also in the very turn in which something comes that it would have been woken for."""
        if add_first:
            self.queue.add(key)
            self.owed.add(key)
        worker = self.workers.pop(data.draw(st.integers(0, len(self.workers) - 1)))
        worker.cancel()
        self.settle()
        assert worker.done()

    @precondition(lambda self: not self.closed)
    @rule(really=st.sampled_from((True, False, False, False, False, False, False, False)))
    def it_is_closed(self, really: bool) -> None:
        if really:
            self.closed = True
            self.queue.close()
            self.settle()

    @invariant()
    def nobody_idles_while_there_is_something_to_do(self) -> None:
        alive = [worker for worker in self.workers if not worker.done()]
        if self.closed:
            assert len(alive) == len(self.at), "all others went home"
            return
        assert len(alive) == len(self.workers)
        now = self.clock.monotonic()
        ready = {key for key in self.owed if key not in self.at}
        ready |= {key for key, when in self.due.items() if when <= now and key not in self.at}
        ready |= {key for key, at in self.dates.items() if at <= self.clock.now() and key not in self.at}
        assert not ready or len(self.at) == len(alive), f"{ready} wait for nothing"

    @invariant()
    def one_worker_watches_the_clock(self) -> None:
        """For one moment by each way to measure time."""
        assert self.clock.sleepers <= 2

    @invariant()
    def nobody_waited_for_less_than_nothing(self) -> None:
        assert all(0 <= seconds <= self.clock.monotonic() for seconds in self.waits)

    def teardown(self) -> None:
        """Nothing was lost: with a worker for each it is all done in the end."""
        try:
            if not self.closed:
                self.everything_is_done()
            for future in list(self.at.values()):
                future.set_result(True)
            self.settle()
            for worker in self.workers:
                assert worker.done()
                assert worker.exception() is None
        finally:
            for worker in self.workers:
                worker.cancel()
            self.settle()
            self.loop.close()

    def everything_is_done(self) -> None:
        self.workers += [self.loop.create_task(self.work()) for _ in range(6)]
        for _ in range(3):
            self.clock.advance(1000.0)
            self.settle()
            for future in list(self.at.values()):
                future.set_result(True)
            self.settle()
        assert not self.owed
        assert not self.due
        assert not self.dates
        assert not self.queue._since, "nothing is remembered of what was worked on"
        assert not self.at
        self.queue.close()
        self.closed = True


TestQueueAndReference = QueueAndReference.TestCase
TestQueueAndReference.settings = settings(
    max_examples=150, stateful_step_count=50, deadline=None, derandomize=True
)
TestWorkers = Workers.TestCase
TestWorkers.settings = settings(max_examples=80, stateful_step_count=30, deadline=None, derandomize=True)
