"""The reverse index against a reference that is too simple to be wrong."""

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fivespot.adapters.kube.index import ReverseIndex

KEYS = st.sampled_from(["a", "b", "c", "d"])
THINGS = st.frozensets(st.integers(0, 5), max_size=4)


class Both(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.index: ReverseIndex[str, int] = ReverseIndex()
        self.reference: dict[str, frozenset[int]] = {}

    @rule(key=KEYS, things=THINGS)
    def put(self, key: str, things: frozenset[int]) -> None:
        self.index.put(key, things)
        self.reference[key] = things

    @rule(key=KEYS)
    def take_out(self, key: str) -> None:
        self.index.put(key, ())
        self.reference.pop(key, None)

    @invariant()
    def both_directions_agree(self) -> None:
        for thing in range(6):
            assert self.index.of(thing) == {key for key, things in self.reference.items() if thing in things}
        assert len(self.index) == len(frozenset().union(*self.reference.values()))


TestReverseIndex = Both.TestCase


@given(st.lists(st.tuples(KEYS, THINGS)))
def test_nothing_is_left_when_every_key_is_taken_out(puts: list[tuple[str, frozenset[int]]]) -> None:
    index: ReverseIndex[str, int] = ReverseIndex()
    for key, things in puts:
        index.put(key, things)
    for key, _ in puts:
        index.put(key, ())
    assert len(index) == 0
