"""The queue of keys: a state machine against a simple model, and the rules one by one."""

from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fivespot.adapters.kube.backoff import Backoff
from fivespot.adapters.kube.queueing import Queue

KEYS = st.sampled_from("abcd")
FLAT = Backoff(first=1.0, most=8.0)


class QueueMachine(RuleBasedStateMachine):
    """The model: which keys are wanted (and how), which are processed, and one appointment per key."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: Queue[str] = Queue(FLAT)
        self.now = 0.0
        self.wanted: dict[str, bool] = {}
        self.again: dict[str, bool] = {}
        self.processing: set[str] = set()
        self.due: dict[str, float] = {}
        self.failures: dict[str, int] = {}

    def want(self, key: str, low: bool) -> None:
        pool = self.again if key in self.processing else self.wanted
        pool[key] = low and pool.get(key, True)

    @rule(key=KEYS, low=st.booleans())
    def add(self, key: str, low: bool) -> None:
        self.queue.add(key, low=low)
        self.want(key, low)

    @rule(key=KEYS, delay=st.integers(-2, 10))
    def add_at(self, key: str, delay: int) -> None:
        self.queue.add_at(key, self.now + delay)
        self.due[key] = min(self.due.get(key, float("inf")), self.now + delay)

    @rule(seconds=st.integers(0, 6))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds

    @rule()
    def take(self) -> None:
        for key in [key for key, when in self.due.items() if when <= self.now]:
            del self.due[key]
            self.want(key, False)
        key = self.queue.take(self.now)
        if not self.wanted:
            assert key is None
            return
        assert key is not None
        assert key not in self.processing
        # What is only looked at again waits until there is no change.
        assert not self.wanted[key] or all(self.wanted.values())
        del self.wanted[key]
        self.processing.add(key)
        self.due.pop(key, None)

    @precondition(lambda self: self.processing)
    @rule(data=st.data(), succeeded=st.booleans())
    def finish(self, data: st.DataObject, succeeded: bool) -> None:
        key = data.draw(st.sampled_from(sorted(self.processing)))
        if succeeded:
            self.queue.forget(key)
            self.failures.pop(key, None)
        else:
            delay = self.queue.retry(key, self.now, Random(0))
            self.failures[key] = self.failures.get(key, 0) + 1
            step = min(8.0, 2.0 ** (self.failures[key] - 1))
            assert step / 2 <= delay <= step
            self.due[key] = min(self.due.get(key, float("inf")), self.now + delay)
        self.queue.done(key)
        self.processing.discard(key)
        if key in self.again:
            self.wanted[key] = self.again.pop(key)

    @invariant()
    def they_agree(self) -> None:
        assert len(self.queue) == len(self.wanted)
        assert self.queue.processing == self.processing
        assert self.queue.next_due() == (min(self.due.values()) if self.due else None)
        for key in "abcd":
            assert self.queue.failures(key) == self.failures.get(key, 0)


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)


def drained(queue: Queue[str], now: float = 0.0) -> list[str]:
    taken = []
    while (key := queue.take(now)) is not None:
        taken.append(key)
    return taken


def test_keys_come_in_the_order_of_their_first_addition() -> None:
    queue: Queue[str] = Queue()
    for key in "cabcab":
        queue.add(key)
    assert drained(queue) == ["c", "a", "b"]


def test_changes_go_before_second_looks() -> None:
    queue: Queue[str] = Queue()
    for key in "abc":
        queue.add(key, low=True)
    queue.add("x")
    queue.add("c")
    assert drained(queue) == ["x", "c", "a", "b"]


def test_a_second_look_does_not_hold_back_a_change() -> None:
    queue: Queue[str] = Queue()
    queue.add("a")
    queue.add("a", low=True)
    queue.add("b")
    assert drained(queue) == ["a", "b"]


def test_a_change_during_work_stays_a_change() -> None:
    queue: Queue[str] = Queue()
    queue.add("a")
    queue.take(0)
    queue.add("a")
    queue.add("a", low=True)
    queue.add("b", low=True)
    queue.done("a")
    assert queue.take(0) == "a"


def test_a_change_during_work_runs_once_more_and_only_once() -> None:
    queue: Queue[str] = Queue()
    queue.add("a")
    assert queue.take(0) == "a"
    for _ in range(5):
        queue.add("a")
    assert queue.take(0) is None
    queue.done("a")
    assert queue.take(0) == "a"
    queue.done("a")
    assert queue.take(0) is None


@pytest.mark.parametrize("times", [(3.0, 7.0), (7.0, 3.0)])
def test_the_earliest_appointment_counts(times: tuple[float, float]) -> None:
    queue: Queue[str] = Queue()
    for when in times:
        queue.add_at("a", when)
    assert queue.next_due() == 3.0
    assert queue.take(2.9) is None
    assert queue.take(3.0) == "a"
    queue.done("a")
    assert queue.take(100.0) is None


def test_taking_a_key_cancels_its_appointment() -> None:
    queue: Queue[str] = Queue()
    queue.add_at("a", 5.0)
    queue.add("a")
    assert queue.take(0.0) == "a"
    assert queue.next_due() is None


def test_an_appointment_made_during_work_stands() -> None:
    queue: Queue[str] = Queue()
    queue.add("a")
    queue.take(0.0)
    queue.add_at("a", 1.0)
    queue.done("a")
    assert (queue.take(0.5), queue.take(1.0)) == (None, "a")


def test_failures_double_the_delay_up_to_five_minutes_and_success_forgets_them() -> None:
    queue: Queue[str] = Queue()
    delays = [queue.retry("a", 0.0, Random(1)) for _ in range(2000)]
    assert 0.25 <= delays[0] <= 0.5
    assert 0.5 <= delays[1] <= 1.0
    assert all(150.0 <= delay <= 300.0 for delay in delays[12:])
    queue.forget("a")
    assert queue.retry("a", 0.0, Random(1)) <= 0.5


def test_done_without_take_is_a_mistake() -> None:
    queue: Queue[str] = Queue()
    with pytest.raises(ValueError, match="not being processed"):
        queue.done("a")
