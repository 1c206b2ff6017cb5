"""Who leads: tables, and candidates with clocks that drift, pauses, and a network that delays, loses and lies low."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fivespot.adapters.kube.electing import Electing, Read, Step, Timing, Wait, Write
from fivespot.adapters.kube.lease import Record, lease_body, read_lease
from fivespot.core.errors import InvalidSpec

AT = datetime(2026, 3, 2, 9, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def candidate(name: str = "a", **timing: float) -> Electing:
    return Electing(name, Timing(**timing))


def theirs(version: int, holder: str = "b", duration: int = 15) -> Record:
    return Record(holder=holder, version=str(version), duration=duration, transitions=3)


def answered(step: Step, version: int) -> tuple[Write, Record]:
    assert isinstance(step, Write)
    return step, attrs.evolve(step.record, version=str(version))


def leading(sent: float = 100.0, version: int = 10) -> Electing:
    """A candidate whose write was sent at `sent`, and answered at once."""
    one = candidate()
    one.seen(None, sent)
    one.written(*answered(one.step(sent, AT), version), sent)
    return one


@pytest.mark.parametrize(
    ("timing", "field", "says"),
    [
        ({"lease_duration": 10.0}, "lease_duration", "longer than renew_deadline (10 s)"),
        ({"lease_duration": 5.0}, "lease_duration", "longer than renew_deadline (10 s)"),
        ({"renew_deadline": 2.4}, "renew_deadline", "longer than 1.2 times retry_period (2 s)"),
        ({"retry_period": 9.0}, "renew_deadline", "longer than 1.2 times retry_period (9 s)"),
        ({"retry_period": 0.0}, "retry_period", "a positive number of seconds"),
        ({"renew_deadline": -1.0}, "renew_deadline", "a positive number of seconds"),
        ({"lease_duration": float("nan")}, "lease_duration", "a positive number of seconds"),
        ({"lease_duration": float("inf")}, "lease_duration", "a positive number of seconds"),
    ],
)
def test_timing_that_cannot_work_is_refused_with_the_remedy(
    timing: dict[str, float], field: str, says: str
) -> None:
    with pytest.raises(InvalidSpec) as refused:
        Timing(**timing)
    assert refused.value.field == field
    assert says in str(refused.value)


def test_nothing_is_written_before_the_lease_was_read() -> None:
    assert candidate().step(0.0, AT) == Read()


def test_a_read_that_failed_is_tried_again_after_a_period() -> None:
    one = candidate()
    one.unread(5.0)
    assert one.step(5.0, AT) == Wait(7.0)
    assert one.step(7.0, AT) == Read()


def test_a_lease_that_is_not_there_is_created_at_once() -> None:
    one = candidate()
    one.seen(None, 1.0)
    made = Record(holder="a", duration=15, acquired=AT, renewed=AT)
    assert one.step(1.0, AT) == Write(made, 1.0)
    assert not one.leads(1.0), "not before the server has said so"


def test_a_released_lease_is_taken_at_once() -> None:
    one = candidate()
    one.seen(theirs(7, holder=""), 1.0)
    write, _ = answered(one.step(1.0, AT), 8)
    assert (write.record.version, write.record.transitions) == ("7", 4)


@pytest.mark.parametrize(("duration", "waits"), [(15, 15.0), (60, 60.0), (3, 15.0), (0, 15.0)])
def test_somebody_elses_lease_is_taken_after_the_longer_of_both_durations(
    duration: int, waits: float
) -> None:
    one = candidate()
    one.seen(theirs(7, duration=duration), 100.0)
    assert one.step(100.0, AT) == Wait(100.0 + waits)
    assert isinstance(one.step(100.0 + waits, AT), Write)


def test_each_change_that_is_seen_starts_the_wait_anew() -> None:
    one = candidate()
    one.seen(theirs(7), 100.0)
    one.seen(theirs(7), 105.0)
    assert one.step(110.0, AT) == Wait(115.0), "the same version is no change"
    one.seen(theirs(8), 110.0)
    assert one.step(115.0, AT) == Wait(125.0)


def test_older_words_are_not_listened_to() -> None:
    one = leading(100.0, version=10)
    one.seen(theirs(9), 101.0)
    assert one.leads(101.0)
    assert one.record is not None
    assert one.record.version == "10"


def test_the_holder_counts_from_before_it_sent() -> None:
    one = candidate()
    one.seen(None, 100.0)
    write, answer = answered(one.step(100.0, AT), 10)
    one.written(write, answer, 108.0)
    assert one.leads(109.9)
    assert not one.leads(110.0)


def test_an_answer_that_comes_after_the_deadline_gives_nothing() -> None:
    one = candidate()
    one.seen(None, 100.0)
    one.written(*answered(one.step(100.0, AT), 10), 111.0)
    assert not one.leads(111.0)


def test_the_holder_renews_after_each_period() -> None:
    one = leading(100.0)
    assert one.step(101.0, AT) == Wait(102.0)
    later = AT + 2 * SECOND
    write, answer = answered(one.step(102.0, later), 11)
    assert write.record == Record(
        holder="a", version="10", duration=15, acquired=AT, renewed=later, transitions=0
    )
    one.written(write, answer, 102.1)
    assert one.leads_until == 112.0


def test_an_outcome_that_is_unknown_gives_nothing_and_takes_nothing() -> None:
    one = leading(100.0)
    assert isinstance(one.step(102.0, AT), Write)
    one.doubted()
    assert one.leads_until == 110.0
    assert one.step(102.5, AT) == Read()
    # It was done after all: that says nothing new about how long it lasts.
    one.seen(Record(holder="a", version="11", duration=15), 103.0)
    assert one.leads_until == 110.0
    one.written(*answered(one.step(104.0, AT), 12), 104.1)
    assert one.leads_until == 114.0


def test_a_conflict_is_followed_by_a_read_and_not_by_a_storm() -> None:
    one = candidate()
    one.seen(theirs(7, holder=""), 1.0)
    assert isinstance(one.step(1.0, AT), Write)
    one.doubted()
    assert one.step(1.0, AT) == Read()
    one.seen(theirs(9, holder=""), 1.1)
    assert one.step(1.1, AT) == Wait(3.0)


@pytest.mark.parametrize("holder", ["b", ""])
def test_a_lease_in_other_hands_ends_leadership_at_once(holder: str) -> None:
    one = leading(100.0)
    one.seen(theirs(11, holder=holder), 101.0)
    assert not one.leads(101.0)
    assert one.led


@pytest.mark.parametrize("version", [12, "opaque"])
def test_an_answer_that_others_have_overtaken_gives_nothing(version: Any) -> None:
    one = leading(100.0)
    write, answer = answered(one.step(102.0, AT), 11)
    one.seen(theirs(version), 102.5)
    one.written(write, answer, 103.0)
    assert not one.leads(103.0)


def test_a_deleted_lease_is_made_again_by_its_holder_and_waited_for_by_others() -> None:
    one, other = leading(100.0), candidate("b")
    one.seen(None, 101.0)
    assert one.leads(101.0)
    write, _ = answered(one.step(102.0, AT), 20)
    assert write.record.version == ""
    other.seen(theirs(10, holder="a"), 100.0)
    other.seen(None, 101.0)
    other.seen(None, 105.0)
    assert other.step(105.0, AT) == Wait(116.0)


def test_resigning_ends_leadership_before_the_lease_is_given_back() -> None:
    one = leading(100.0)
    write = one.resign(101.0)
    assert not one.leads(101.0)
    assert write is not None
    assert (write.record.holder, write.record.version) == ("", "10")


def test_there_is_nothing_to_give_back_of_somebody_elses() -> None:
    one = candidate()
    assert one.resign(1.0) is None
    one.seen(theirs(7), 1.0)
    assert one.resign(1.0) is None


def test_a_lease_keeps_what_others_have_written_on_it() -> None:
    body = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "l", "namespace": "n", "resourceVersion": "7", "labels": {"team": "grid"}},
        "spec": {
            "holderIdentity": "b",
            "leaseDurationSeconds": 15,
            "leaseTransitions": 3,
            "acquireTime": "2026-03-02T08:00:00.000001Z",
            "renewTime": "2026-03-02T09:00:00.000000Z",
            "strategy": "OldestEmulationVersion",
        },
    }
    assert lease_body(read_lease(body), "n", "l") == body
    released = lease_body(attrs.evolve(read_lease(body), holder=""), "n", "l")
    assert "holderIdentity" not in released["spec"]
    assert released["metadata"]["labels"] == {"team": "grid"}


@pytest.mark.parametrize(
    "spec",
    [None, [], {}, {"holderIdentity": 7, "leaseDurationSeconds": "x", "renewTime": "yesterday"}],
)
def test_a_lease_that_says_nothing_readable_is_free(spec: Any) -> None:
    assert read_lease({"metadata": {"resourceVersion": "7"}, "spec": spec}) == Record(version="7")


# Several candidates and one Lease


@attrs.define
class Message:
    """A write on its way to the server."""

    sender: Node
    write: Write
    answer: Record | None = None
    refused: bool = False
    arrived: bool = False


@attrs.define(eq=False)
class Node:
    """A candidate with a clock of its own; `life` is in its identity."""

    name: str
    rate: float
    offset: float
    timing: Timing
    life: int = 0
    electing: Electing = attrs.field(init=False)
    waiting_for: Message | None = None
    read_history: int = 0

    def begin(self) -> None:
        self.life += 1
        self.electing = Electing(f"{self.name}-{self.life}", self.timing)
        self.waiting_for = None

    def clock(self, real: float) -> float:
        return self.offset + self.rate * real


TIMINGS = (
    Timing(),
    Timing(lease_duration=11, renew_deadline=10.5),
    Timing(lease_duration=40, renew_deadline=30),
)
NODES = st.integers(0, 2)
SELDOM = st.sampled_from((False, False, False, True))


class CandidatesAndLease(RuleBasedStateMachine):
    """Never two that may act at one real instant; and once the network is well, somebody leads.

    A candidate that takes no step is paused, as SIGSTOP does. A message stays on its way for as long as nobody
    delivers it, whether or not its sender still waits. The watch of each lags as it likes.
    """

    def __init__(self) -> None:
        super().__init__()
        self.real = 0.0
        self.version = 100
        self.lease: Record | None = None
        self.history: list[Record] = []
        self.network: list[Message] = []
        self.nodes: list[Node] = []

    @initialize(
        rates=st.lists(st.floats(0.99, 1.01), min_size=3, max_size=3),
        offsets=st.lists(st.floats(0, 1e6), min_size=3, max_size=3),
        timings=st.lists(st.sampled_from(TIMINGS), min_size=3, max_size=3),
    )
    def start(self, rates: list[float], offsets: list[float], timings: list[Timing]) -> None:
        for name, *its in zip("abc", rates, offsets, timings, strict=True):
            self.nodes.append(Node(name, *its))
            self.nodes[-1].begin()

    def now(self, node: Node) -> float:
        return node.clock(self.real)

    @rule(seconds=st.floats(0.01, 3))
    def time_passes(self, seconds: float) -> None:
        self.real += seconds

    @rule(seconds=st.floats(3, 60))
    def much_time_passes(self, seconds: float) -> None:
        self.real += seconds

    @rule(index=NODES)
    def a_candidate_takes_a_step(self, index: int) -> None:
        self._step(index)

    def _step(self, index: int) -> Step | None:
        node = self.nodes[index]
        if node.waiting_for is not None:
            return None
        step = node.electing.step(self.now(node), AT)
        match step:
            case Read():
                node.electing.seen(self.lease, self.now(node))
            case Write():
                node.waiting_for = Message(node, step)
                self.network.append(node.waiting_for)
        return step

    @rule(index=NODES)
    def a_candidate_acts_the_moment_it_may(self, index: int) -> None:
        """The instant that matters most; chance alone would seldom find it."""
        node = self.nodes[index]
        step = self._step(index)
        if isinstance(step, Wait):
            self.real = max(self.real, (step.until - node.offset) / node.rate + 1e-6)
        self.a_candidate_hurries(index)

    @rule(index=NODES)
    def a_candidate_hurries(self, index: int) -> None:
        """Step, delivery, answer: what happens nearly always."""
        for _ in range(2):
            self.a_candidate_takes_a_step(index)
            if (message := self.nodes[index].waiting_for) is not None:
                self._arrives(message)
                self.an_answer_arrives(index)

    @rule(index=NODES, there=st.floats(0, 12), back=st.floats(0, 12))
    def a_slow_exchange_that_others_hear_of_first(self, index: int, there: float, back: float) -> None:
        self._step(index)
        if (message := self.nodes[index].waiting_for) is not None:
            self.real += there
            self._arrives(message)
            for other in range(3):
                self.a_watch_tells(other, skip=True)
            self.real += back
            self.an_answer_arrives(index)

    @rule(order=st.permutations(range(3)))
    def all_hurry(self, order: list[int]) -> None:
        for index in order:
            self.a_candidate_hurries(index)

    @precondition(lambda self: self.network)
    @rule(data=st.data())
    def a_write_reaches_the_server(self, data: st.DataObject) -> None:
        self._arrives(data.draw(st.sampled_from(self.network)))

    def _arrives(self, message: Message) -> None:
        if message not in self.network:
            return
        self.network.remove(message)
        message.arrived = True
        wanted = message.write.record.version
        if wanted != (self.lease.version if self.lease is not None else ""):
            message.refused = True
            return
        self.version += 1
        self.lease = attrs.evolve(message.write.record, version=str(self.version))
        self.history.append(self.lease)
        message.answer = self.lease

    @precondition(lambda self: self.network)
    @rule(data=st.data())
    def a_write_is_lost(self, data: st.DataObject) -> None:
        self.network.remove(data.draw(st.sampled_from(self.network)))

    @rule(index=NODES)
    def an_answer_arrives(self, index: int) -> None:
        node = self.nodes[index]
        message = node.waiting_for
        if message is None or not message.arrived:
            return
        node.waiting_for = None
        if message.answer is None:
            node.electing.doubted()
        else:
            node.electing.written(message.write, message.answer, self.now(node))

    @rule(index=NODES)
    def a_sender_gives_up(self, index: int) -> None:
        """Its message may be done all the same, now or much later."""
        node = self.nodes[index]
        if node.waiting_for is not None:
            node.waiting_for = None
            node.electing.doubted()

    @rule(index=NODES, skip=st.booleans())
    def a_watch_tells(self, index: int, skip: bool) -> None:
        node = self.nodes[index]
        if skip:
            node.read_history = max(node.read_history, len(self.history) - 1)
        if node.read_history < len(self.history):
            node.electing.seen(self.history[node.read_history], self.now(node))
            node.read_history += 1

    @rule(index=NODES, really=SELDOM)
    def a_leader_resigns(self, index: int, really: bool) -> None:
        node = self.nodes[index]
        if (
            really
            and node.waiting_for is None
            and (write := node.electing.resign(self.now(node))) is not None
        ):
            self.network.append(Message(node, write))
            node.begin()

    @rule(index=NODES, really=SELDOM)
    def a_process_is_killed_and_started_again(self, index: int, really: bool) -> None:
        if really:
            self.nodes[index].begin()

    @invariant()
    def never_two(self) -> None:
        leaders = [n.electing.identity for n in self.nodes if n.electing.leads(self.now(n))]
        assert len(leaders) <= 1, leaders

    @invariant()
    def the_lease_names_whoever_leads(self) -> None:
        for node in self.nodes:
            if node.electing.leads(self.now(node)):
                assert self.lease is not None
                assert self.lease.holder == node.electing.identity

    def teardown(self) -> None:
        if not self.nodes:
            return
        for _ in range(200):
            self.real += 0.5
            for index in range(3):
                self.a_sender_gives_up(index)
                self.a_candidate_hurries(index)
                self.never_two()
        assert any(node.electing.leads(self.now(node)) for node in self.nodes)


TestCandidatesAndLease = CandidatesAndLease.TestCase
TestCandidatesAndLease.settings = settings(max_examples=200, stateful_step_count=60, deadline=None)
