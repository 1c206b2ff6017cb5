"""Elections in true time: candidates with clocks that drift, over a network that delays, loses and repeats.

Here the candidates act by themselves, as the elector makes them: a request, its answer or the end of patience, a wait
until a moment or news. What happens to them is drawn: pauses, crashes, partitions, a Lease that somebody deletes.

How much drift it stands. A holder whose clock is slow leads for `renew_deadline / slow` of true time, a contender whose
clock is fast waits for `lease_duration / fast`. The first is the shorter one as long as

    fast / slow < lease_duration / renew_deadline

which for clocks that are wrong by at most d in either direction means d < (lease - renew) / (lease + renew): 20 % for
15 s and 10 s, where real clocks are wrong by 0.05 % at worst.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import ClassVar

import attrs
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from fivespot.adapters.kube.electing import Electing, Read, Timing, Wait, Write
from fivespot.adapters.kube.lease import Record

AT = datetime(2026, 3, 2, 9, tzinfo=UTC)
TIMINGS = (
    Timing(),
    Timing(lease_duration=11, renew_deadline=10.5),
    Timing(lease_duration=40, renew_deadline=30, retry_period=5),
)
QUIET = 60.0
"""Seconds of true time after which every candidate's patience has ended, whatever its clock."""


def drift_that_is_stood(timing: Timing) -> float:
    lease, renew = timing.lease_duration, timing.renew_deadline
    return (lease - renew) / (lease + renew)


@attrs.define
class Network:
    """How requests, answers and news travel; seconds are true ones."""

    slowest: float = 0.05
    slowest_answer: float = 0.05
    lost: float = 0.0
    repeated: float = 0.0
    slowest_news: float = 0.05


NETWORKS = {
    "well": Network(),
    "slow": Network(slowest=4.0, slowest_answer=4.0, slowest_news=20.0),
    "slow answers": Network(slowest_answer=5.0),
    "late news": Network(slowest_news=60.0),
    "very slow": Network(slowest=25.0, slowest_answer=25.0, lost=0.05, repeated=0.2, slowest_news=60.0),
    "lossy": Network(slowest=1.0, slowest_answer=1.0, lost=0.4, repeated=0.3, slowest_news=5.0),
    "dead": Network(lost=1.0, slowest_news=100.0),
}


class World:
    """True time, and what happens in it in order. After each happening it is counted who may act."""

    def __init__(self, random: Random) -> None:
        self.now = 0.0
        self.random = random
        self.network = NETWORKS["well"]
        self.version = 100
        self.lease: Record | None = None
        self.deleted_at = float("-inf")
        self.candidates: list[Candidate] = []
        self._coming: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = itertools.count()

    def at(self, when: float, what: Callable[[], object]) -> None:
        heapq.heappush(self._coming, (max(when, self.now), next(self._numbers), what))

    def after_a_way(self, slowest: float, what: Callable[[], object]) -> None:
        """Let something travel to the other side; it may never arrive."""
        if self.random.random() >= self.network.lost:
            self.at(self.now + self.random.uniform(0, slowest), what)

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while self._coming and self._coming[0][0] <= end:
            self.now, _, what = heapq.heappop(self._coming)
            what()
            self.leader()
        self.now = end
        self.leader()

    def leader(self) -> str | None:
        """Who may act at this instant of true time."""
        leaders = [one.electing.identity for one in self.candidates if one.leads()]
        assert len(leaders) <= 1, f"{leaders} lead at once, at {self.now}"
        if leaders:
            held = self.lease.holder if self.lease is not None else None
            assert held in (leaders[0], None), f"{leaders[0]} leads, and {held} has the Lease"
            assert held is not None or self.deleted_at > 0
        return leaders[0] if leaders else None

    def put(self, record: Record) -> Record | None:
        """A write, as the server does it; None when it refuses."""
        if record.version != (self.lease.version if self.lease is not None else ""):
            return None
        self.version += 1
        self._happened(attrs.evolve(record, version=str(self.version)))
        return self.lease

    def delete(self) -> None:
        self.deleted_at = self.now
        self.version += 1
        self._happened(None)

    def _happened(self, record: Record | None) -> None:
        self.lease = record
        for one in self.candidates:
            one.will_hear(record)


@attrs.define(eq=False)
class Candidate:
    """A process: its clock, its pauses, and at most one request under way; a deaf one has no watch that works."""

    world: World
    name: str
    rate: float
    offset: float
    timing: Timing
    deaf: bool = False
    life: int = 0
    alive: bool = False
    paused_until: float = 0.0
    cut_off_until: float = 0.0
    busy: int = 0
    requests: int = 0
    news_until: float = 0.0
    electing: Electing = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.electing = Electing(self.name, self.timing)

    def clock(self) -> float:
        return self.offset + self.rate * self.world.now

    def leads(self) -> bool:
        return self.alive and self.electing.leads(self.clock())

    def begin(self) -> None:
        """Start as a new process."""
        self.life += 1
        self.alive, self.busy = True, 0
        self.electing = Electing(f"{self.name}-{self.life}", self.timing)
        self.wake()

    def end(self) -> None:
        self.alive = False

    def mine(self, what: Callable[[], None]) -> Callable[[], None]:
        """What reaches this life of the process, when it is not paused."""
        life = self.life

        def happens() -> None:
            if self.alive and self.life == life:
                if self.world.now < self.paused_until:
                    self.world.at(self.paused_until, happens)
                else:
                    what()

        return happens

    def wake(self) -> None:
        if self.busy:
            return
        match step := self.electing.step(self.clock(), AT):
            case Wait():
                # A little late, as all timers are.
                self.world.at((step.until - self.offset) / self.rate + 1e-6, self.mine(self.wake))
            case Read():
                self.ask(self.read, lambda: self.electing.unread(self.clock()))
            case Write():
                self.ask(lambda number: self.write(step, number), self.electing.doubted)

    def ask(self, send: Callable[[int], None], give_up: Callable[[], None]) -> None:
        self.requests += 1
        self.busy = number = self.requests
        half = self.timing.renew_deadline / 2
        left = self.electing.leads_until - self.clock()
        patience = min(half, left) if left > 0 else half
        self.world.at(self.world.now + patience / self.rate, self.mine(lambda: self.answer(number, give_up)))
        send(number)

    def answer(self, number: int, means: Callable[[], None]) -> None:
        """The first answer to a request that is still waited for; all others are not heard."""
        if self.busy == number:
            self.busy = 0
            means()
            self.wake()

    def read(self, number: int) -> None:
        def arrives() -> None:
            found = self.world.lease
            means = self.mine(lambda: self.answer(number, lambda: self.electing.seen(found, self.clock())))
            self.world.after_a_way(self.world.network.slowest_answer, means)

        self.send(arrives)

    def send(self, arrives: Callable[[], object]) -> None:
        if self.world.now >= self.cut_off_until:
            self.world.after_a_way(self.world.network.slowest, arrives)

    def write(self, write: Write, number: int) -> None:
        electing = self.electing

        def arrives() -> None:
            done = self.world.put(write.record)

            def means() -> None:
                if done is None:
                    electing.doubted()
                else:
                    electing.written(write, done, self.clock())

            answers = self.mine(lambda: self.answer(number, means))
            self.world.after_a_way(self.world.network.slowest_answer, answers)

        self.send(arrives)
        if self.world.random.random() < self.world.network.repeated:
            self.send(arrives)

    def resign(self) -> None:
        """Give the Lease back, as the last thing that this process does; it takes a while to end."""
        self.busy = -1
        if (write := self.electing.resign(self.clock())) is not None:
            self.send(lambda: self.world.put(write.record))
        self.world.at(self.world.now + 5, self.mine(self.end))

    def will_hear(self, record: Record | None) -> None:
        """News come in order, some twice."""
        if self.deaf:
            return
        network, random = self.world.network, self.world.random
        self.news_until = max(self.news_until, self.world.now + random.uniform(0, network.slowest_news))
        for _ in range(2 if random.random() < network.repeated else 1):
            self.world.at(self.news_until, self.mine(lambda: self.hear(record)))

    def hear(self, record: Record | None) -> None:
        led = self.leads()
        self.electing.seen(record, self.clock())
        if led and not self.leads():
            held = self.world.lease.holder if self.world.lease is not None else ""
            assert held != self.electing.identity, "old news do not end what is held"
        self.wake()


WHICH = st.integers(0, 2)
SELDOM = st.sampled_from((True, False, False))


class Elections(RuleBasedStateMachine):
    """Never two, whatever happens; and when all is well, soon one, who stays.

    A Lease is deleted only while everybody who stands for election knows who holds it, and nobody begins to stand soon
    after: see `test_elector_deleted_lease.py` for what happens otherwise.
    """

    drift: ClassVar[float] = 0.02
    timings: ClassVar[tuple[Timing, ...]] = TIMINGS

    @initialize(data=st.data(), seed=st.integers(0, 2**32))
    def candidates_begin(self, data: st.DataObject, seed: int) -> None:
        self.world = World(Random(seed))
        rates = st.floats(1 - self.drift, 1 + self.drift) | st.sampled_from((1 - self.drift, 1 + self.drift))
        for name in "abc":
            rate, offset = data.draw(rates), data.draw(st.floats(0, 1e5))
            timing, deaf = data.draw(st.sampled_from(self.timings)), data.draw(SELDOM)
            self.world.candidates.append(Candidate(self.world, name, rate, offset, timing, deaf))
        for one in self.world.candidates:
            one.begin()
        self.world.run(1.0)

    @rule(seconds=st.floats(0.1, 5))
    def time_passes(self, seconds: float) -> None:
        self.world.run(seconds)

    @rule(seconds=st.floats(5, 60))
    def much_time_passes(self, seconds: float) -> None:
        self.world.run(seconds)

    @rule(name=st.sampled_from(sorted(NETWORKS)), seconds=st.floats(0.1, 30))
    def the_network_changes(self, name: str, seconds: float) -> None:
        self.world.network = NETWORKS[name]
        self.world.run(seconds)

    @rule(which=WHICH, seconds=st.floats(0.1, 60))
    def a_candidate_is_paused(self, which: int, seconds: float) -> None:
        """Stopped, or its machine suspended; its clock goes on."""
        self.world.candidates[which].paused_until = self.world.now + seconds

    @rule(seconds=st.floats(0.1, 60), after=st.floats(0, 12))
    def the_leader_is_paused(self, seconds: float, after: float) -> None:
        self.world.run(after)
        for one in self.world.candidates:
            if one.leads():
                one.paused_until = self.world.now + seconds

    @rule(name=st.sampled_from(("well", "slow answers", "late news")), after=st.floats(5, 20))
    def the_leader_is_cut_off(self, name: str, after: float) -> None:
        """The network is well for all others: whoever waits for the Lease to expire is as quick as can be."""
        self.world.network = NETWORKS[name]
        self.world.run(after)
        for one in self.world.candidates:
            if one.leads():
                one.cut_off_until = self.world.now + 20
        self.world.run(20)

    @rule(after=st.floats(10, 30))
    def the_leader_resigns_while_news_are_late(self, after: float) -> None:
        self.world.network = NETWORKS["late news"]
        self.world.run(after)
        for one in self.world.candidates:
            if one.leads() and not one.busy and self.world.now >= one.paused_until:
                one.resign()
        self.world.run(40)

    @rule(which=WHICH, really=SELDOM)
    def a_candidate_is_killed(self, which: int, really: bool) -> None:
        if really:
            self.world.candidates[which].end()

    @rule(which=WHICH)
    def a_leader_resigns(self, which: int) -> None:
        one = self.world.candidates[which]
        if one.leads() and not one.busy and self.world.now >= one.paused_until:
            one.resign()

    @rule(which=WHICH)
    def a_candidate_begins_anew(self, which: int) -> None:
        one = self.world.candidates[which]
        if not one.alive and self.world.now > self.world.deleted_at + QUIET:
            one.begin()

    @precondition(lambda self: self.world.now > self.world.deleted_at + QUIET)
    @rule(really=SELDOM)
    def somebody_deletes_the_lease(self, really: bool) -> None:
        lease = self.world.lease
        if lease is not None and really and all(self.knows(one, lease) for one in self.world.candidates):
            self.world.delete()

    def knows(self, one: Candidate, lease: Record) -> bool:
        seen = one.electing.record
        return not one.alive or (seen is not None and seen.holder == lease.holder)

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        self.world.network = NETWORKS["well"]
        self.world.run(QUIET + 1)
        for one in self.world.candidates:
            if not one.alive:
                one.begin()
        # The slowest news are on their way for 100 s, in the order in which they were sent.
        self.world.run(100 + 2 * QUIET)
        for _ in self.world.candidates:
            leader = self.world.leader()
            assert leader is not None, "somebody leads in the end"
            for _ in range(40):
                self.world.run(0.5)
                assert self.world.leader() == leader, "and goes on to lead"
            for one in self.world.candidates:
                if one.leads():
                    one.end()
            # A deaf one has seen no renewal: it tries, meets another version, and waits once more.
            self.world.run(2 * QUIET)


class ClocksThatAreVeryWrong(Elections):
    """Nearly as much drift as the usual timing stands."""

    drift = 0.198
    timings = (Timing(),)


@pytest.mark.parametrize("timing", TIMINGS)
@pytest.mark.parametrize(("of_what_is_stood", "leaders"), [(0.99, 1), (1.01, 2)])
def test_the_drift_that_is_stood_is_exactly_what_the_two_times_leave(
    timing: Timing, of_what_is_stood: float, leaders: int
) -> None:
    drift = drift_that_is_stood(timing) * of_what_is_stood
    world = World(Random(0))
    holder = Candidate(world, "holder", 1 - drift, 0.0, timing, alive=True)
    contender = Candidate(world, "contender", 1 + drift, 0.0, timing, alive=True)
    holder.electing.seen(None, holder.clock())
    write = holder.electing.step(holder.clock(), AT)
    assert isinstance(write, Write)
    record = world.put(write.record)
    assert record is not None
    # Both hear of it at once; then the holder is cut off.
    holder.electing.written(write, record, holder.clock())
    contender.electing.seen(record, contender.clock())
    wait = contender.electing.step(contender.clock(), AT)
    assert isinstance(wait, Wait)
    world.now = wait.until / contender.rate + 1e-6
    taken = contender.electing.step(contender.clock(), AT)
    assert isinstance(taken, Write)
    record = world.put(taken.record)
    assert record is not None
    contender.electing.written(taken, record, contender.clock())
    assert [holder.leads(), contender.leads()].count(True) == leaders
    assert contender.leads()


def test_the_usual_timing_stands_clocks_that_are_wrong_by_a_fifth() -> None:
    assert drift_that_is_stood(Timing()) == pytest.approx(0.2)


TestElections = Elections.TestCase
TestElections.settings = settings(
    max_examples=80,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
TestClocksThatAreVeryWrong = ClocksThatAreVeryWrong.TestCase
TestClocksThatAreVeryWrong.settings = settings(TestElections.settings, max_examples=30)
