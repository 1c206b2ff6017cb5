"""Everything that can become of a machine in small closed worlds, breadth first.

`life.py` has the world, `moves.py` what happens in it, `worlds.py` what of that happens in which, `walk.py` the walk.

About 54,000 states and 225,000 edges. Most worlds are walked to the end: each has only some of the moves, so that every
order of them is tried, between any two passes. Those that are not closed in reasonable time are walked breadth first up to
a bound, as is the one with every move. A state is what exists, what is stored and what could be told apart by it; times
count as passed or not.
"""

import functools

import pytest

from fivespot.core.decision.phase import ALLOWED, Phase
from tests.core.decision.walk import Walk, walk
from tests.core.decision.worlds import PLENTY, WORLDS

CLOSED = [name for name, world in WORLDS.items() if world.limit == PLENTY]


@functools.cache
def walked(name: str) -> Walk:
    world = WORLDS[name]
    return walk(world.all_moves, crashes=world.crashes, limit=world.limit)


@pytest.mark.parametrize("world", WORLDS)
def test_every_decision_on_the_way_keeps_the_laws_in_a_world_of(world):
    assert walked(world).broken[:3] == []


@pytest.mark.parametrize("world", WORLDS)
def test_passes_alone_come_to_rest_from_every_state_in_a_world_of(world):
    """Invariant 6; and that a machine at rest asks for nothing is a law of `Life.step`."""
    assert walked(world).restless[:3] == []


@pytest.mark.parametrize("world", WORLDS)
def test_from_every_state_a_machine_gets_where_it_is_wanted_in_a_world_of(world):
    """Invariants 5 and 6: deleted objects go, `down` rests, `up` is Active, once nothing goes wrong any more."""
    assert walked(world).stranded[:3] == []


@pytest.mark.parametrize("world", CLOSED)
def test_the_walk_is_complete_in_a_world_of(world):
    assert walked(world).complete


@pytest.mark.parametrize("world", WORLDS)
def test_the_walk_is_no_stroll_in_a_world_of(world):
    """It meets many states, and rest in many of them."""
    found = walked(world)
    assert len(found.states) > 1000
    assert found.at_rest > 100


ARGUED: dict[Phase | None, set[Phase]] = {
    # An orphan that turns up, in a state that takes more than one thing to go wrong at once.
    None: {Phase.EMERGENCY_REMOVE},
    Phase.INACTIVE: {Phase.ACTIVE, Phase.EMERGENCY_REMOVE},
    Phase.DISABLED: {Phase.ACTIVE, Phase.EMERGENCY_REMOVE},
    # All of it vanishes at once, and it is wanted no more.
    Phase.ACTIVE: {Phase.INACTIVE, Phase.DISABLED},
}
"""Changes that are allowed and that no walk meets; Error comes from steps that fail, which walks have none of."""


def _met() -> dict[Phase | None, set[Phase]]:
    met: dict[Phase | None, set[Phase]] = {}
    for name in WORLDS:
        for before, after in walked(name).changes:
            if after is not None:
                met.setdefault(before, set()).add(after)
    return met


def test_nothing_is_allowed_that_neither_happens_nor_is_argued():
    """The table of phase changes is as tight as what can be reached."""
    met = _met()
    for before, allowed in ALLOWED.items():
        if before is Phase.ERROR:
            continue
        known = met.get(before, set()) | ARGUED.get(before, set()) | {Phase.ERROR, before}
        assert allowed <= known, before


def test_nothing_happens_that_is_not_allowed():
    for before, after in _met().items():
        assert after <= ALLOWED[before] | {before}, before
