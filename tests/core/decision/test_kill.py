"""The kill switch: the Machine goes at once, without a look at its Node."""

from typing import Any

import attrs
import pytest

from fivespot.core.api.scheduled_machine import Manner, Provisioning, ReclaimState
from fivespot.core.decision.actions import Create, Delete, Role
from tests.core.decision.observations import (
    CACHED,
    GONE,
    UNREACHABLE,
    UNREADABLE,
    actions,
    at_rest,
    capi,
    deleted,
    down,
    events,
    follow,
    kinds,
    leaving,
    leaving_now,
    look,
    machine,
    node,
    pod,
    provider,
    reason,
    requested,
    standing,
    told,
    up,
    with_status,
    young_capi,
)

_NOTHING: dict[str, Any] = {"capi_machine": GONE, "bootstrap": GONE, "infrastructure": GONE, "node": GONE}


def test_its_intent_is_stored_first() -> None:
    made = look(told(up(), killSwitch=True))
    assert (made.groups, made.status.phase, made.status.decided_by) == ((), "Terminated", "KillSwitch")
    assert made.status.shutdown.manner is Manner.NOW  # type: ignore[union-attr]
    assert events(made) == ["KillSwitchActivated"]


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"node": UNREACHABLE},
        {"pods": UNREACHABLE},
        {"pods": CACHED},
        {"cluster": UNREADABLE},
        {"provider": UNREADABLE},
        {"bootstrap": UNREADABLE},
    ],
)
def test_nothing_holds_the_deletion_of_the_machine_up(parts: dict[str, Any]) -> None:
    made = look(leaving_now(pod(), **parts))
    assert kinds(made) == ["AnnotateMachine", "Delete machine"]


def test_a_kill_after_a_graceful_start_tightens_it_and_is_stored_before_it_acts() -> None:
    obs, made = follow(told(leaving(pod()), killSwitch=True))
    assert (made.groups, made.status.shutdown.manner, made.status.shutdown.cause) == (
        (),
        Manner.NOW,
        "KillSwitch",
    )  # type: ignore[union-attr]
    assert kinds(look(obs)) == ["AnnotateMachine", "Delete machine"]


def test_a_kill_that_is_taken_back_while_down_is_wanted_does_not_loosen_the_manner() -> None:
    made = look(told(leaving_now(pod(), provider=provider(active=False))))
    assert made.status.shutdown.manner is Manner.NOW  # type: ignore[union-attr]
    assert "EvictPod" not in kinds(made)


def test_a_kill_that_is_taken_back_while_up_is_wanted_is_a_change_of_mind() -> None:
    made = look(told(leaving_now(provider=provider())))
    assert (made.status.phase, made.status.shutdown) == ("Active", None)


def test_a_machine_that_cannot_be_read_is_deleted_by_recorded_name_and_uid() -> None:
    made = look(leaving_now(capi_machine=UNREADABLE))
    (deletion,) = actions(made)
    assert isinstance(deletion, Delete)
    assert (deletion.target.name, deletion.target.uid) == ("desk-042", "uid-capi")


def test_a_machine_that_cannot_be_read_and_was_never_recorded_is_waited_for() -> None:
    assert look(with_status(leaving_now(capi_machine=UNREADABLE), machine_ref=None)).groups == ()


def test_killed_and_gone_rests_as_terminated() -> None:
    obs, made = follow(leaving_now(**_NOTHING))
    assert (made.status.phase, made.status.shutdown, reason(made)) == (
        "Terminated",
        None,
        "KillSwitchActivated",
    )
    assert look(obs).status == obs.machine.status
    again = look(told(attrs.evolve(obs, provider=provider())))
    assert [action.role for action in actions(again) if isinstance(action, Create)] == list(Role)


def test_killed_before_anything_existed_rests_as_terminated() -> None:
    assert at_rest(down(machine(killSwitch=True))).machine.status.phase == "Terminated"


def test_a_kill_never_comes_up() -> None:
    made = look(down(machine(killSwitch=True), provider=provider()))
    assert made.groups == ()


def test_a_killed_machine_that_is_being_deleted_goes() -> None:
    obs = deleted(leaving_now(**_NOTHING))
    assert kinds(look(obs)) == ["RemoveFinalizer"]


def test_an_object_that_has_become_invalid_can_still_be_killed() -> None:
    obs, made = follow(told(up(), killSwitch=True, nodeDrainTimeout="forever"))
    assert made.status.phase == "Terminated"
    assert kinds(look(obs)) == ["AnnotateMachine", "Delete machine"]


def test_a_request_that_comes_during_a_kill_is_noted_and_holds_nothing_up() -> None:
    obs = told(leaving_now(node=node(annotations=requested())), killSwitch=True, reclaim={})
    made = look(obs)
    assert kinds(made) == ["AnnotateMachine", "Delete machine"]
    assert made.status.reclaim.state is ReclaimState.IN_PROGRESS  # type: ignore[union-attr]
    assert (made.status.phase, events(made)[0]) == ("Terminated", "EmergencyReclaim")


def test_a_kill_ends_the_wait_for_a_replacement() -> None:
    obs = at_rest(standing(capi_machine=young_capi(failure="x"), node=GONE))
    assert obs.machine.status.provisioning != Provisioning()
    assert look(told(obs, killSwitch=True)).status.provisioning is None


def test_one_that_is_going_already_is_only_waited_for() -> None:
    made = look(leaving_now(capi_machine=capi(deleting=True)))
    assert (made.groups, made.status.phase) == ((), "Terminated")
