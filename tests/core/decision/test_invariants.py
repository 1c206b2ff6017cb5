"""Random lives: any move at any time, crashes, steps that fail for a while or only say so; and who is affected by whom."""

from random import Random

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from fivespot.core.decision.phase import RESTING, Phase
from fivespot.core.fleet import Fleet
from fivespot.core.instant import parse_instant
from fivespot.core.simulate.run import MachineStory, simulate
from tests.builders import Manifest, capital_markets, provider, reference, scheduled_machine
from tests.core.decision import life as lives
from tests.core.decision import moves
from tests.core.decision.life import Life
from tests.core.decision.moves import ACTIVE, CLUSTER_API
from tests.core.decision.worlds import EVERYTHING

FAULTS = ("Conflict", "Forbidden", "Unavailable", "NameConflict", "done, but Unavailable")
STEPS = 60


def _live(chance: Random, trail: list[str]) -> Life:
    """A life in which a few things keep happening, which gets further than everything at once.

    `Life.decide` checks every law of `laws.py` on every decision.
    """
    life = lives.start()
    menu = (ACTIVE, *chance.sample(EVERYTHING, chance.randint(2, 10)), *CLUSTER_API, moves.time_passes)
    for _ in range(STEPS):
        for _ in range(chance.choice((0, 0, 1, 1, 1, 2, 3))):
            move = chance.choice(menu)
            if move(life):
                trail.append(move.__name__)
        if chance.random() < 0.15:
            life.fault, life.fault_after = chance.choice(FAULTS), chance.randint(0, 3)
            life.fault_times = chance.randint(1, 4)
            trail.append(f"{life.fault} after {life.fault_after}, {life.fault_times} times")
        if life.cell.gone:
            break
        crash = chance.choice((None, None, None, None, 0, 1, 2))
        trail.append("pass" if crash is None else f"crash after {crash}")
        life.step(crash)
        _check(life)
    return life


def _check(life: Life) -> None:
    status = life.cell.machine.status
    assert not status.ready or status.phase == Phase.ACTIVE.value
    resting = {phase.value for phase in RESTING - {Phase.TERMINATED}}
    assert status.phase not in resting or status.shutdown is None


@settings(max_examples=500, deadline=None, database=None)
@given(seed=st.integers(0, 2**48))
def test_whatever_happens_finitely_often_every_law_holds_and_the_machine_gets_where_it_is_wanted(seed):
    """Invariants 5 and 6, and every law on the way. The seed is the life."""
    trail: list[str] = []
    try:
        moves.behave(_live(Random(seed), trail))
    except AssertionError:
        note(" > ".join(trail))
        raise


def test_error_is_a_report_and_never_a_trap():
    """A step that fails for an hour is reported; the pass that succeeds takes the report back."""
    life = lives.start("active")
    life.step()
    life.fault, life.fault_times = "Unavailable", 3
    life.step()
    moves.an_hour_passes(life)
    life.step()
    assert life.cell.machine.status.phase == Phase.ERROR.value
    moves.behave(life)
    assert life.cell.machine.status.phase == Phase.ACTIVE.value


# Invariant 9

START, END = parse_instant("2026-03-02T00:00:00Z"), parse_instant("2026-03-09T00:00:00Z")
DESKS, LABS = "desks", "labs"


def _in(namespace: str, manifest: Manifest) -> Manifest:
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}


def _machine(namespace: str, name: str, *provider: str) -> Manifest:
    return _in(namespace, scheduled_machine(name, schedule=reference(*provider)))


MACHINES = (
    _machine(DESKS, "desk-1", "nights"),
    _machine(DESKS, "desk-2", "nights", "CapitalMarketsSchedule"),
    _machine(DESKS, "desk-3", "days"),
    _machine(LABS, "lab-1", "nights"),
)


def _open(namespace: str, name: str, hours: str) -> Manifest:
    hours_of_day = {"daysOfWeek": ["mon-fri"], "hoursOfDay": [hours]}
    return _in(namespace, provider("TimeBasedSpotSchedule", name, **hours_of_day))


PROVIDERS = (
    _open(DESKS, "nights", "9-17"),
    _in(DESKS, capital_markets("nights")),
    _open(DESKS, "days", "0-23"),
    _open(LABS, "nights", "20-22"),
)
"""The provider of each of the machines, in order."""


def _stories(*providers: Manifest) -> dict[str, MachineStory]:
    run = simulate(Fleet.from_documents([*MACHINES, *providers]), start=START, end=END)
    assert not run.problems
    return {story.name: story for story in run.machines}


def _changed(*providers: Manifest) -> set[str]:
    """The machines whose week differs from the one with all providers as they are."""
    usual, now = _stories(*PROVIDERS), _stories(*providers)
    return {name for name in usual if usual[name].intervals != now[name].intervals}


def test_every_machine_of_the_fleet_comes_and_goes():
    """Otherwise the tests below would compare nothing."""
    assert all(story.hours_active > 10 for story in _stories(*PROVIDERS).values())
    assert len({story.intervals for story in _stories(*PROVIDERS).values()}) == len(MACHINES)


@pytest.mark.parametrize(("gone", "machine"), [*enumerate(["desk-1", "desk-2", "desk-3", "lab-1"])])
def test_a_provider_that_goes_affects_only_the_machine_that_refers_to_it_in_its_namespace(gone, machine):
    assert _changed(*PROVIDERS[:gone], *PROVIDERS[gone + 1 :]) == {machine}


def test_a_provider_that_changes_affects_only_the_machine_that_refers_to_it_in_its_namespace():
    assert _changed(_open(DESKS, "nights", "3-5"), *PROVIDERS[1:]) == {"desk-1"}


def test_a_provider_of_that_name_in_another_namespace_is_nobody_s_provider():
    assert _changed(*PROVIDERS, _open("attic", "nights", "3-5")) == set()
