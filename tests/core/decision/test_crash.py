"""Whatever a crash cuts off, starting over from what is stored ends in the same place (invariant 7).

Each scenario is lived once without a crash. Then it is lived again for every write of it, with a crash just before that
write (which is just after the one before), with that write of the status refused as a conflict, and with that action
failing, or reported as failed though it was done. Every law of `laws.py` is checked in every pass of every life.
"""

import functools

import pytest

from tests.core.decision import scenarios
from tests.core.decision.life import Life
from tests.core.decision.scenarios import SCENARIOS, Told, lived


@functools.cache
def undisturbed(name: str) -> Told:
    return lived(name)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_crash_before_any_write_changes_nothing_about_the_end_of(name):
    told = undisturbed(name)
    assert told.life.writes > 1
    for write in range(told.life.writes):
        again = lived(name, write)
        assert again.life.crashes == 1
        assert again.end() == told.end(), f"crash before write {write}"


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_conflict_on_any_status_write_changes_nothing_about_the_end_of(name):
    told = undisturbed(name)
    for write in told.status_writes:
        assert lived(name, write, trouble="conflict").end() == told.end(), f"conflict on write {write}"


@pytest.mark.parametrize("trouble", ["Conflict", "Forbidden", "Unavailable", "done, but Unavailable"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_an_action_that_fails_once_changes_nothing_about_the_end_of(name, trouble):
    told = undisturbed(name)
    for write in range(told.life.writes):
        if write not in told.status_writes:
            again = lived(name, write, trouble=trouble)
            assert again.life.fault is None
            assert again.end() == told.end(), f"{trouble} at write {write}"


@pytest.mark.parametrize("name", SCENARIOS)
def test_at_the_end_there_is_nothing_left_to_write_of(name):
    told = undisturbed(name)
    writes = told.life.writes
    for _ in range(3):
        assert not told.look()
    assert told.life.writes == writes


PHASES = {
    "coming up": "Active",
    "leaving with grace, a budget in the way": "Inactive",
    "a change of mind during the drain": "Active",
    "the kill switch": "Terminated",
    "a reclaim": "Disabled",
    "disabling": "Disabled",
    "a Cluster that is deleted": "Pending",
    "a failed Machine that is replaced": "Active",
}


@pytest.mark.parametrize("name", PHASES)
def test_the_end_is_the_one_that_is_meant_of(name):
    assert undisturbed(name).life.cell.machine.status.phase == PHASES[name]


def test_a_crash_never_makes_a_second_machine_of_one():
    """As many Machines as without a crash: one."""
    for write in range(undisturbed("coming up").life.writes):
        assert len(lived("coming up", write).machines) == 1


def test_a_drain_that_was_crashed_does_not_begin_from_the_beginning():
    """Bounds are stored before anything is done, and stay."""
    name = "leaving when the bound has passed"
    ends = {lived(name, write).life.now for write in range(undisturbed(name).life.writes)}
    assert ends == {undisturbed(name).life.now}


def test_what_is_stored_is_all_that_a_restart_needs():
    """A life that forgets everything but the cluster after every single pass ends in the same place."""
    told = Told()
    for step in scenarios.SCENARIOS["leaving with grace, a budget in the way"]:
        step(told)
        told.life = Life(
            cell=told.life.cell,
            says=told.life.says,
            now=told.life.now,
            child=told.life.child,
            budget=told.life.budget,
            refused=told.life.refused,
        )
    assert told.life.cell.machine.status.phase == "Inactive"
