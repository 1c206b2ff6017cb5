"""What is written down: conditions, events, failures; and that nothing is written twice."""

from datetime import timedelta
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.core.api import reasons
from fivespot.core.api.codec import decode, encode
from fivespot.core.api.common import Condition
from fivespot.core.api.scheduled_machine import ScheduledMachineStatus
from fivespot.core.api.schema import schema_of
from fivespot.core.decision.knowledge import Absent, Known, Present, Unknown
from fivespot.core.decision.observation import Failure, NodeView, Observation
from tests.core.decision.observations import (
    BORN,
    GONE,
    HOUR,
    NOW,
    SECOND,
    UNREACHABLE,
    actions,
    at_rest,
    capi,
    condition,
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
    shutdown,
    standing,
    stored,
    told,
    up,
    with_meta,
    with_status,
    young_capi,
)

_RESTING: dict[str, Observation] = {
    "up": up(),
    "down": at_rest(down()),
    "disabled": at_rest(down(machine(enabled=False))),
    "killed": at_rest(down(machine(killSwitch=True))),
    "waiting for its cluster": at_rest(down(provider=provider(), cluster=GONE)),
    "invalid": at_rest(down(machine(priority=1000), provider=provider())),
    "conflict": at_rest(down(provider=provider(), capi_machine=capi(ours=False))),
    "provisioning": at_rest(standing(capi_machine=young_capi(created_at=NOW), node=GONE)),
    "node not ready": at_rest(up(node=node(ready=False))),
    "node unreachable": at_rest(up(node=UNREACHABLE)),
    "draining": at_rest(leaving(pod("a"), pod("b"))),
    "killed and going": at_rest(leaving_now(capi_machine=capi(deleting=True))),
    "unresolved": at_rest(down(provider=GONE)),
}


@pytest.mark.parametrize("name", _RESTING)
def test_time_alone_writes_nothing(name: str) -> None:
    obs = _RESTING[name]
    for later in (timedelta(0), SECOND, timedelta(seconds=40), timedelta(minutes=4)):
        made = look(obs, NOW + later)
        assert (made.status, made.events) == (obs.machine.status, ())


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    obs = up()
    made = look(told(obs, version="v1.32.0"), NOW + HOUR)
    before, after = condition(obs.machine.status, "Ready"), condition(made.status, "Ready")
    assert before.message != after.message
    assert before.last_transition_time == after.last_transition_time == NOW
    lost = look(attrs.evolve(obs, node=node(ready=False)), NOW + HOUR)
    assert condition(lost.status, "Ready").last_transition_time == NOW + HOUR


def test_times_of_conditions_are_whole_seconds() -> None:
    made = look(standing(), NOW + timedelta(microseconds=250))
    assert condition(made.status, "Ready").last_transition_time == NOW


def test_conditions_of_others_stay() -> None:
    theirs = Condition(type="example.com/Inspected", status="True")
    obs = with_status(up(), conditions=(theirs, *up().machine.status.conditions))
    assert look(obs).status.conditions[0] == theirs
    assert theirs in look(attrs.evolve(obs, provider=provider(active=False))).status.conditions


def test_every_condition_says_which_generation_it_speaks_of() -> None:
    made = look(with_meta(up(), generation=9))
    assert made.status.observed_generation == 9
    assert {entry.observed_generation for entry in made.status.conditions} == {9}


@pytest.mark.parametrize(
    ("obs", "ready"),
    [
        (up(), True),
        (up(node=node(ready=False)), False),
        (up(node=GONE), False),
        (standing(capi_machine=young_capi(), node=GONE), False),
        (leaving(node=node()), False),
        (up(failure=Failure(step="taint node", reason="Invalid", message="x", since=NOW)), False),
        (up(capi_machine=capi(deleting=True)), False),
    ],
)
def test_ready_is_active_with_a_ready_node(obs: Observation, ready: bool) -> None:
    status = look(obs).status
    assert (status.ready, condition(status, "Ready").status == "True") == (ready, ready)
    assert ready == (status.phase == "Active" and obs.node == node())


@pytest.mark.parametrize("found", [node(), GONE, Absent()])
def test_a_child_that_answers_again_is_said_to(found: Known[NodeView]) -> None:
    """Also when our Node is not among those that were read."""
    obs = at_rest(up(node=UNREACHABLE))
    assert condition(obs.machine.status, "ChildClusterReachable").status == "Unknown"
    assert condition(look(attrs.evolve(obs, node=found)).status, "ChildClusterReachable").status == "True"


def test_pods_that_cannot_be_listed_are_a_child_that_does_not_answer() -> None:
    assert condition(look(leaving(pods=UNREACHABLE)).status, "ChildClusterReachable").status == "Unknown"


def test_what_is_said_of_the_schedule_names_who_decides() -> None:
    def said(obs: Observation) -> tuple[str, str]:
        found = condition(look(obs).status, "Scheduled")
        return found.status, found.reason

    assert said(up()) == ("True", "ScheduleActive")
    assert said(down()) == ("False", "ScheduleInactive")
    assert said(down(machine(enabled=False))) == ("False", "ScheduleDisabled")
    assert said(down(machine(killSwitch=True))) == ("False", "KillSwitchActivated")
    assert said(down(provider=GONE)) == ("False", "AwaitingSchedule")


# Events


def test_a_change_of_phase_is_told_once() -> None:
    obs, made = follow(up(provider=provider(active=False)))
    assert events(made) == ["GracePeriodActive"]
    assert "GracePeriodActive" not in events(look(obs))


def test_no_event_without_a_write() -> None:
    for obs in _RESTING.values():
        made = look(obs, NOW + 200 * SECOND)
        assert not made.events or made.status != obs.machine.status


# Failures


def _failing(
    obs: Observation,
    step: str = "create infrastructure",
    cause: str = "Unavailable",
    since: timedelta = timedelta(0),
) -> Observation:
    return attrs.evolve(obs, failure=Failure(step=step, reason=cause, message="no", since=NOW - since))


_WANTED = attrs.evolve(at_rest(down()), provider=provider())


def test_a_step_that_fails_is_an_error_after_thirty_seconds_and_never_a_trap() -> None:
    young = look(_failing(_WANTED))
    assert (young.status.phase, young.wake_at) == ("Pending", NOW + timedelta(seconds=30))
    obs, old = follow(_failing(_WANTED, since=timedelta(seconds=30)))
    assert (old.status.phase, reason(old), kinds(old)) == ("Error", "MachineCreationFailed", kinds(young))
    assert "create infrastructure" in (old.status.message or "")
    assert events(old) == ["MachineCreationFailed"]
    obs = attrs.evolve(
        obs,
        failure=None,
        **{name: getattr(up(), name) for name in ("capi_machine", "bootstrap", "infrastructure", "node")},
    )
    assert look(obs).status.phase == "Active"


@pytest.mark.parametrize(
    ("cause", "expected"), [("Forbidden", "PermissionDenied"), ("Invalid", "MachineCreationFailed")]
)
def test_what_no_retry_cures_is_an_error_at_once(cause: str, expected: str) -> None:
    made = look(_failing(_WANTED, cause=cause))
    assert (made.status.phase, reason(made)) == ("Error", expected)


def test_a_stranger_of_our_name_is_reported_at_once_and_never_adopted() -> None:
    made = look(_failing(_WANTED, cause="NameConflict"))
    assert (made.status.phase, reason(made)) == ("Pending", "NameConflict")


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("delete machine", "MachineDeletionFailed"),
        ("evict apps/web-1", "NodeDrainFailed"),
        ("taint node node-1", "PatchFailed"),
        ("Uncordon", "PatchFailed"),
    ],
)
def test_the_reason_names_what_fails(step: str, expected: str) -> None:
    made = look(_failing(leaving(pod()), step=step, since=HOUR))
    assert (made.status.phase, reason(made)) == ("Error", expected)
    assert "EvictPod" in kinds(made)


def test_first_things_that_fail_are_reported_and_keep_a_kill_from_nothing() -> None:
    obs = told(
        _failing(leaving_now(capi_machine=capi(owner="old")), step="AdoptOwner", cause="Forbidden"),
        killSwitch=True,
    )
    made = look(obs)
    assert (made.status.phase, reason(made)) == ("Error", "PermissionDenied")
    assert kinds(made) == ["AdoptOwner machine", "AnnotateMachine", "Delete machine"]
    assert not made.groups[0].required


def test_nothing_is_created_while_the_finalizer_cannot_be_set() -> None:
    obs = _failing(
        attrs.evolve(_WANTED, machine=machine(finalizer=False)), step="AddFinalizer", cause="Forbidden"
    )
    made = look(obs)
    assert (kinds(made)[0], made.groups[0].required, made.status.phase) == ("AddFinalizer", True, "Error")


def test_a_finalizer_that_cannot_be_dropped_is_reported() -> None:
    nothing = {"capi_machine": GONE, "bootstrap": GONE, "infrastructure": GONE, "node": GONE}
    obs = deleted(leaving(**nothing))
    assert look(obs).status == obs.machine.status
    made = look(_failing(obs, step="RemoveFinalizer", cause="Forbidden"))
    assert (made.status.phase, reason(made), kinds(made)) == (
        "Error",
        "PermissionDenied",
        ["RemoveFinalizer"],
    )


# Status on the wire


def test_the_finalizer_comes_before_everything_else() -> None:
    made = look(down(machine(finalizer=False), provider=provider()))
    assert kinds(made) == ["AddFinalizer"]


_STATUSES = st.sampled_from(
    [
        look(obs, NOW + timedelta(microseconds=microseconds)).status
        for microseconds in (0, 1, 999_999)
        for obs in (
            *_RESTING.values(),
            standing(),
            up(provider=provider(active=False)),
            leaving(),
            leaving(pod(), removal=shutdown(BORN)),
            told(up(), killSwitch=True),
            up(machine(reclaim={}), node=node(annotations={"5spot.finos.org/reclaim-requested": "true"})),
            deleted(leaving(pod())),
        )
    ]
)


@given(_STATUSES)
def test_a_status_comes_back_as_it_was_written_with_every_key_of_the_schema(
    status: ScheduledMachineStatus,
) -> None:
    wire = encode(status, nulls=True)
    assert wire.keys() == schema_of(ScheduledMachineStatus).properties.keys()
    assert decode(wire, ScheduledMachineStatus) == status


def test_references_follow_what_is_seen_and_stay_while_it_is_not() -> None:
    status = up().machine.status
    assert status.machine_ref is not None
    assert (status.machine_ref.kind, status.machine_ref.name, status.machine_ref.uid) == (
        "Machine",
        "desk-042",
        "uid-capi",
    )
    assert (status.provider_id, status.last_scheduled_time) == ("metal://desk-042", BORN)
    made = look(up(capi_machine=capi(deleting=True), infrastructure=GONE, bootstrap=GONE))
    assert (made.status.infrastructure_ref, made.status.machine_ref) == (
        status.infrastructure_ref,
        status.machine_ref,
    )


def test_a_node_that_registered_anew_is_taken_with_its_new_uid() -> None:
    made = look(up(node=node(uid="uid-2")))
    assert made.status.node_ref.uid == made.status.last_node.uid == "uid-2"  # type: ignore[union-attr]
    assert made.status.phase == "Active"


def test_decisions_are_values() -> None:
    obs: Any = leaving(pod())
    assert look(obs) == look(attrs.evolve(obs, pods=Present((pod(),))))
    assert hash(actions(look(obs))[-1])
    assert stored(obs, look(obs)).machine.status == look(obs).status


@pytest.mark.parametrize("part", ["cluster", "bootstrap", "infrastructure"])
def test_what_may_not_be_read_is_said_of_a_machine_that_stands_all_the_same(part: str) -> None:
    denied = Unknown(reasons.PERMISSION_DENIED, 'grant verb "watch"')
    made = look(up(**{part: denied}))
    found = condition(made.status, "ReferencesValid")
    assert (found.status, found.reason, found.message) == ("Unknown", denied.reason, denied.why)
    assert (made.status.phase, made.status.ready) == ("Active", True)
    assert not actions(made)
    assert condition(look(stored(up(), made)).status, "ReferencesValid").status == "True"
