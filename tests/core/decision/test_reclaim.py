"""Emergency reclaim: the owner wants the box back."""

from datetime import timedelta
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.core.api.scheduled_machine import (
    Manner,
    Reclaim,
    ReclaimedNode,
    ReclaimRecord,
    ReclaimState,
)
from fivespot.core.decision import reclaim as reclaims
from fivespot.core.decision.actions import ClearReclaimRequest, Delete, DeleteNode
from fivespot.core.decision.knowledge import Present, Unknown
from fivespot.core.decision.observation import NodeView, Observation
from fivespot.core.instant import format_instant
from fivespot.core.names import RECLAIM_REASON, RECLAIM_RELEASE, RECLAIM_REQUESTED, RECLAIM_REQUESTED_AT
from tests.core.decision.observations import (
    BORN,
    CACHED,
    GONE,
    HOUR,
    NOW,
    SECOND,
    UNREACHABLE,
    UNREADABLE,
    actions,
    bootstrap,
    capi,
    cluster,
    condition,
    deleted,
    events,
    follow,
    infrastructure,
    kinds,
    look,
    machine,
    node,
    pod,
    provider,
    reason,
    requested,
    shutdown,
    standing,
    stored,
    told,
    up,
    with_meta,
    with_status,
)

_AT = format_instant(NOW)
_ASKED = node(annotations=requested(_AT))
_OPEN = {"reclaim": {}}
_NOTHING: dict[str, Any] = {"capi_machine": GONE, "bootstrap": GONE, "infrastructure": GONE, "node": GONE}
_BY_ITSELF = timedelta(seconds=3.5)


def _asked(view: Any = None, **parts: Any) -> Observation:
    """A machine at rest, when a request comes."""
    return up(view or machine(**_OPEN), **{"node": _ASKED, **parts})


def _begun(*pods: Any, **parts: Any) -> Observation:
    """The same once its intent is stored; pods are listed from now on."""
    obs, _ = follow(_asked())
    return attrs.evolve(obs, **{"pods": Present(pods), **parts})


def _held(view: Any = None, *, at: Any = NOW, **parts: Any) -> Observation:
    obs, _ = follow(attrs.evolve(_begun(), **_NOTHING), at)
    if view is not None:
        obs = attrs.evolve(obs, machine=attrs.evolve(view, status=obs.machine.status))
    return attrs.evolve(obs, **parts)


# Requests


@pytest.mark.parametrize("spec", [{"reclaim": {}}, {"killIfCommands": ["java"]}])
def test_the_intent_is_stored_first_with_who_when_and_where(spec: dict[str, Any]) -> None:
    made = look(_asked(machine(**spec), pods=Present((pod(),))))
    record = made.status.reclaim
    assert record == Reclaim(
        state=ReclaimState.IN_PROGRESS,
        reason="process-match: java",
        requested_at=_AT,
        observed_at=NOW,
        node=ReclaimedNode(name="node-1", uid="uid-node"),
    )
    assert (made.status.phase, made.status.decided_by, made.groups) == ("EmergencyRemove", "Reclaim", ())
    assert made.status.shutdown.manner is Manner.NOW  # type: ignore[union-attr]
    assert [(event.reason, event.message, event.severity.value) for event in made.events] == [
        ("EmergencyReclaim", "process-match: java", "Warning")
    ]


@pytest.mark.parametrize("value", ["True", "1", "", "yes"])
def test_only_the_word_true_is_a_request(value: str) -> None:
    assert look(_asked(node=node(annotations={RECLAIM_REQUESTED: value}))).status.phase == "Active"


@given(st.text())
def test_a_reason_is_cut_to_what_can_be_printed(text: str) -> None:
    request = reclaims.request_on(NodeView(name="n", uid="u", annotations=requested(reason=text)))
    assert request is not None
    assert 1 <= len(request.reason) <= 128
    assert request.reason.isprintable()


def test_a_graceful_removal_tightens_when_its_owner_comes_back() -> None:
    obs = with_status(
        _asked(provider=provider(active=False), pods=Present((pod(),))), shutdown=shutdown(remaining_pods=1)
    )
    obs, made = follow(obs)
    assert (made.groups, made.status.phase) == ((), "EmergencyRemove")
    assert kinds(look(obs)) == ["Cordon", "DeletePod"]


def test_nothing_about_the_request_matters_once_it_is_stored() -> None:
    obs = told(_begun(pod(), node=node(), provider=UNREADABLE))
    assert kinds(look(obs)) == ["Cordon", "DeletePod"]
    assert look(attrs.evolve(obs, node=GONE)).status.phase == "EmergencyRemove"


# A machine that has not opted in


def test_a_request_that_is_not_enabled_is_left_and_reported_once() -> None:
    obs = up(node=_ASKED)
    obs, made = follow(obs)
    assert (made.groups, made.status.phase, events(made)) == ((), "Active", ["ReclaimNotEnabled"])
    said = condition(made.status, "ReclaimHonoured")
    assert (said.status, said.reason) == ("False", "ReclaimNotEnabled")
    assert _AT in said.message
    made = look(obs, NOW + HOUR)
    assert (made.status, made.events, made.groups) == (obs.machine.status, (), ())
    again = node(annotations=requested(format_instant(NOW + HOUR)))
    assert events(look(attrs.evolve(obs, node=again))) == ["ReclaimNotEnabled"]
    made = look(attrs.evolve(obs, node=node()))
    assert "ReclaimHonoured" not in {entry.type for entry in made.status.conditions}


def test_opting_in_makes_it_live() -> None:
    obs, _ = follow(up(node=_ASKED))
    assert look(told(obs, **_OPEN)).status.phase == "EmergencyRemove"


# Requests of the life before

_OLD = node(annotations=requested(format_instant(BORN - SECOND)))


def _new(seen: Present[NodeView]) -> Observation:
    return standing(machine(**_OPEN), node=seen)


def test_a_request_of_the_life_before_is_cleared_from_stored_intent_with_one_event() -> None:
    obs, made = follow(_new(_OLD))
    assert (made.groups, made.status.node_ref, "ReclaimRequestStale" in events(made)) == ((), None, True)
    assert made.status.phase == "Active"
    made = look(obs)
    (action,) = actions(made)
    assert isinstance(action, ClearReclaimRequest)
    assert action.requested_at == format_instant(BORN - SECOND)
    assert (made.events, made.status) == ((), obs.machine.status)
    obs, made = follow(attrs.evolve(obs, node=node()))
    assert made.status.node_ref is not None
    assert made.groups == ()


def test_a_request_is_cleared_at_most_once_for_each_machine() -> None:
    obs, _ = follow(_new(_OLD))
    again = node(annotations=requested(format_instant(BORN - 2 * SECOND)))
    made = look(attrs.evolve(obs, node=again))
    assert (made.status.phase, made.status.reclaim.state) == ("EmergencyRemove", ReclaimState.IN_PROGRESS)  # type: ignore[union-attr]


@pytest.mark.parametrize("at", [None, "", "yesterday", format_instant(BORN), format_instant(NOW + HOUR)])
def test_a_time_that_is_missing_malformed_or_of_this_life_is_live(at: str | None) -> None:
    assert look(_new(node(annotations=requested(at)))).status.phase == "EmergencyRemove"


def test_every_request_is_live_once_the_node_is_on_record() -> None:
    assert look(_asked(node=_OLD)).status.phase == "EmergencyRemove"


def test_a_stale_request_does_not_tighten_a_removal_or_get_live_by_it() -> None:
    obs = attrs.evolve(_new(_OLD), provider=provider(active=False))
    for _ in range(3):
        obs, made = follow(obs)
        assert made.status.phase == "ShuttingDown"


def test_what_status_remembers_of_a_machine_that_cannot_be_read_counts() -> None:
    obs = with_status(_asked(node=_OLD, capi_machine=UNREADABLE), node_ref=None)
    assert look(obs).status.reclaim is None
    assert look(attrs.evolve(obs, node=_ASKED)).status.reclaim is not None


# Getting the pods off the host


def test_pods_are_deleted_at_once_and_nothing_is_written_before_that() -> None:
    obs, _ = follow(_asked(pods=Present((pod("a"), pod("b"), pod("d", daemon=True)))))
    made = look(obs)
    assert kinds(made) == ["Cordon", "DeletePod", "DeletePod"]
    assert [group.required for group in made.groups] == [False, False]
    assert made.status == obs.machine.status
    assert made.wake_at == NOW + _BY_ITSELF


def test_the_kubelet_lives_on_for_three_and_a_half_seconds_after_the_pods_were_deleted() -> None:
    obs, _ = follow(_begun(pod()), NOW + SECOND)
    gone = attrs.evolve(obs, pods=Present(()), node=node(unschedulable=True, annotations=requested(_AT)))
    obs, made = follow(gone, NOW + 2 * SECOND)
    assert made.status.reclaim.pods_deleted_at == NOW + 2 * SECOND  # type: ignore[union-attr]
    due = NOW + 2 * SECOND + _BY_ITSELF
    assert (made.groups, made.wake_at) == ((), due)
    assert look(obs, due - SECOND / 10).groups == ()
    made = look(obs, due)
    assert kinds(made) == ["AnnotateMachine", "Delete machine", "DeleteNode"]
    assert [group.required for group in made.groups] == [False, True, False]
    assert made.status == look(obs, due).status


def test_a_crash_that_loses_when_the_pods_were_deleted_counts_from_the_request() -> None:
    obs, _ = follow(_begun(pod()), NOW + SECOND)
    made = look(attrs.evolve(obs, pods=Present((pod(deleting=True),))), NOW + _BY_ITSELF)
    assert made.status.reclaim.pods_deleted_at == NOW + _BY_ITSELF  # type: ignore[union-attr]
    made = look(attrs.evolve(obs, pods=CACHED), NOW + _BY_ITSELF)
    assert "Delete machine" in kinds(made)


def test_a_pod_that_does_not_go_delays_nothing() -> None:
    made = look(_begun(pod()), NOW + _BY_ITSELF)
    assert kinds(made) == ["Cordon", "DeletePod", "AnnotateMachine", "Delete machine"]


@pytest.mark.parametrize("pods", [(), (pod(daemon=True),)])
def test_an_empty_node_goes_at_once_with_its_machine(pods: Any) -> None:
    made = look(_begun(*pods))
    assert kinds(made) == ["AnnotateMachine", "Delete machine", "DeleteNode"]
    node_action = actions(made)[-1]
    assert isinstance(node_action, DeleteNode)
    assert node_action.uid == "uid-node"


def test_pods_that_are_terminating_already_end_with_the_host() -> None:
    made = look(_begun(pod(deleting=True)))
    assert kinds(made) == ["AnnotateMachine", "Delete machine"]


@pytest.mark.parametrize("parts", [{"node": UNREACHABLE}, {"pods": UNREACHABLE}, {"node": GONE}])
def test_a_child_that_cannot_be_reached_delays_nothing(parts: dict[str, Any]) -> None:
    assert kinds(look(_begun(pod(), **parts))) == ["AnnotateMachine", "Delete machine"]


def test_pods_that_are_still_being_listed_are_waited_for_but_not_for_long() -> None:
    obs = _begun(pods=Unknown("NodeDraining", "its pods are being listed"))
    assert "Delete machine" not in kinds(look(obs))
    assert "Delete machine" in kinds(look(obs, NOW + _BY_ITSELF))


def test_a_machine_that_cannot_be_read_has_its_node_freed_and_is_deleted_by_record() -> None:
    obs = _begun(pod(), capi_machine=UNREADABLE)
    assert kinds(look(obs)) == ["Cordon", "DeletePod"]
    made = look(obs, NOW + _BY_ITSELF)
    assert kinds(made) == ["Cordon", "DeletePod", "Delete machine"]
    deletion = actions(made)[-1]
    assert isinstance(deletion, Delete)
    assert deletion.target.uid == "uid-capi"


def test_a_pause_does_not_keep_the_owner_waiting() -> None:
    obs = _begun(pod(), cluster=cluster(paused=True))
    assert kinds(look(obs)) == ["Cordon", "DeletePod"]
    assert "Delete machine" in kinds(look(obs, NOW + _BY_ITSELF))


def test_what_cluster_api_left_is_removed_in_its_order() -> None:
    obs = _begun(**{**_NOTHING, "infrastructure": infrastructure(), "bootstrap": bootstrap()})
    made = look(obs)
    assert (kinds(made), made.status.reclaim.state) == (["Delete infrastructure"], ReclaimState.IN_PROGRESS)  # type: ignore[union-attr]


# The hold


def test_out_is_held_with_the_command_that_releases_it() -> None:
    made = look(attrs.evolve(_begun(), **_NOTHING), NOW + 9 * SECOND)
    status = made.status
    assert (status.phase, status.decided_by, made.groups) == ("Disabled", "Reclaim", ())
    assert status.reclaim.state is ReclaimState.HELD  # type: ignore[union-attr]
    assert status.reclaim.history == (  # type: ignore[union-attr]
        ReclaimRecord(observed_at=NOW, held_at=NOW + 9 * SECOND, reason="process-match: java"),
    )
    assert events(made) == ["EmergencyReclaimDisabledSchedule"]
    said = condition(status, "Scheduled")
    assert (said.status, said.reason) == ("False", "EmergencyReclaimDisabledSchedule")
    assert "process-match: java" in said.message
    command = f"kubectl annotate sm -n floor-2 desk-042 --overwrite {RECLAIM_RELEASE}={_AT}"
    assert command in said.message


def test_a_hold_begins_only_after_live_answers() -> None:
    assert look(attrs.evolve(_begun(), **{**_NOTHING, "capi_machine": CACHED})).confirm


def test_it_stays_out_whatever_its_schedule_says() -> None:
    obs = _held()
    for later in (NOW, NOW + 1000 * HOUR):
        made = look(obs, later)
        assert (made.status, made.groups, made.wake_at) == (obs.machine.status, (), None)


def test_killed_it_rests_as_terminated_and_is_held_all_the_same() -> None:
    made = look(told(attrs.evolve(_begun(), **_NOTHING), killSwitch=True))
    assert (made.status.phase, made.status.reclaim.state) == ("Terminated", ReclaimState.HELD)  # type: ignore[union-attr]


def test_a_release_names_the_hold_that_it_releases() -> None:
    def released(value: str) -> Observation:
        return with_meta(_held(), annotations={RECLAIM_RELEASE: value})

    assert look(released("2020-01-01T00:00:00Z")).status.phase == "Disabled"
    assert look(released("true")).status.phase == "Disabled"
    made = look(released(_AT))
    assert "Create machine" in kinds(made)
    # On record before the machine is created, so that taking the annotation off again changes nothing.
    assert made.status.reclaim.state is None  # type: ignore[union-attr]
    assert len(made.status.reclaim.history) == 1  # type: ignore[union-attr]


def test_a_committed_release_releases_no_later_hold() -> None:
    obs = with_meta(_held(), annotations={RECLAIM_RELEASE: _AT})
    record = reclaims.begin(
        reclaims.Request(reason="x", requested_at=None), obs.machine.status.reclaim, node().value, NOW
    )
    assert record.observed_at > NOW  # type: ignore[operator]
    held = reclaims.hold(record, NOW, None)
    assert look(with_status(obs, reclaim=held)).status.phase == "Disabled"


def test_disabling_takes_over_a_hold_and_never_a_reclaim_in_progress() -> None:
    obs, made = follow(told(_held(), **_OPEN, enabled=False))
    assert (made.status.phase, made.status.reclaim.state, reason(made)) == (
        "Disabled",
        None,
        "ScheduleDisabled",
    )  # type: ignore[union-attr]
    assert "Create machine" in kinds(look(told(obs, **_OPEN)))
    going = told(_begun(pod()), **_OPEN, enabled=False)
    made = look(going)
    assert (made.status.reclaim.state, made.status.phase) == (ReclaimState.IN_PROGRESS, "EmergencyRemove")  # type: ignore[union-attr]


def test_a_hold_ends_by_itself_as_the_spec_says_now() -> None:
    obs = told(_held(), reclaim={"rejoinAfter": "2h"})
    obs, made = follow(obs)
    assert made.status.reclaim.hold_until == NOW + 2 * HOUR  # type: ignore[union-attr]
    assert made.wake_at == NOW + 2 * HOUR
    assert look(obs, NOW + 2 * HOUR - SECOND).status.phase == "Disabled"
    assert "Create machine" in kinds(look(obs, NOW + 2 * HOUR))
    assert look(told(obs, **_OPEN)).status.reclaim.hold_until is None  # type: ignore[union-attr]
    shorter = look(told(obs, reclaim={"rejoinAfter": "1h"}), NOW + HOUR)
    assert "Create machine" in kinds(shorter)


def test_a_request_during_a_hold_starts_nothing() -> None:
    assert look(_held(last_node=_ASKED)).status.reclaim.state is ReclaimState.HELD  # type: ignore[union-attr]


def test_the_third_reclaim_within_ten_minutes_is_reported() -> None:
    def with_history(*minutes: int) -> list[str]:
        history = tuple(
            ReclaimRecord(observed_at=NOW - timedelta(minutes=m), held_at=NOW, reason="x") for m in minutes
        )
        return events(look(with_status(_asked(), reclaim=Reclaim(history=history))))

    assert "RapidReReclaim" in with_history(10, 5)
    assert "RapidReReclaim" not in with_history(11, 5)
    assert "RapidReReclaim" not in with_history(5)


def test_the_last_ten_are_remembered() -> None:
    record = Reclaim(state=ReclaimState.IN_PROGRESS, observed_at=NOW)
    for _ in range(12):
        record = reclaims.hold(record, NOW, None)
    assert len(record.history) == 10


# The annotations are the last thing to go


def test_the_annotations_go_after_the_hold_is_stored() -> None:
    out = attrs.evolve(_begun(), **_NOTHING, last_node=node(ready=False, annotations=requested(_AT)))
    obs, made = follow(out)
    assert "ClearReclaimRequest" not in kinds(made)
    made = look(obs)
    assert kinds(made) == ["DeleteNode", "ClearReclaimRequest"]
    assert not made.groups[-1].required
    assert kinds(look(attrs.evolve(obs, last_node=GONE))) == []


@pytest.mark.parametrize(
    "seen",
    [
        node(uid="other", annotations=requested(_AT)),
        node(annotations=requested(format_instant(NOW + HOUR))),
        node(annotations={RECLAIM_REASON: "x", RECLAIM_REQUESTED_AT: _AT}),
    ],
)
def test_only_the_request_that_was_acted_on_is_cleared(seen: Present[NodeView]) -> None:
    assert "ClearReclaimRequest" not in kinds(look(_held(last_node=seen)))


def test_when_the_object_goes_they_are_cleared_before_the_finalizer() -> None:
    out = attrs.evolve(_begun(), **_NOTHING, last_node=node(annotations=requested(_AT)))
    made = look(deleted(out))
    assert kinds(made)[-2:] == ["ClearReclaimRequest", "RemoveFinalizer"]
    assert kinds(look(deleted(attrs.evolve(out, last_node=UNREACHABLE)))) == ["RemoveFinalizer"]


def test_a_whole_reclaim_changes_phase_twice() -> None:
    obs = _asked(pods=Present(()))
    phases = [obs.machine.status.phase]
    for parts in ({}, {"capi_machine": capi(deleting=True)}, _NOTHING, {}):
        obs = attrs.evolve(obs, **parts)
        obs = stored(obs, look(obs))
        phases.append(obs.machine.status.phase)
    assert phases == ["Active", "EmergencyRemove", "EmergencyRemove", "Disabled", "Disabled"]
