"""A removal with grace: intent, drain, bounds, and what is left at the end."""

from datetime import timedelta
from typing import Any

import attrs
import pytest

from fivespot.core.api.scheduled_machine import Manner
from fivespot.core.decision.actions import AnnotateMachine, Cordon, Delete, EvictPod
from fivespot.core.decision.knowledge import Present
from fivespot.core.decision.observation import BlockedEviction, Observation, Slot
from fivespot.core.names import (
    EXCLUDE_NODE_DRAINING,
    EXCLUDE_VOLUME_DETACH,
    SKIP_REMEDIATION,
    UNPAUSED,
)
from tests.core.decision.observations import (
    CACHED,
    GONE,
    HOUR,
    MARK,
    NOW,
    SECOND,
    UNREACHABLE,
    UNREADABLE,
    actions,
    at_rest,
    bootstrap,
    capi,
    cluster,
    condition,
    deleted,
    down,
    events,
    follow,
    infrastructure,
    kinds,
    leaving,
    look,
    machine,
    node,
    pod,
    provider,
    reason,
    shutdown,
    standing,
    told,
    up,
    with_status,
)

_LATE = NOW + timedelta(minutes=5)
_HOLD = machine(onDrainTimeout="Hold")
_NOTHING: dict[str, Any] = {"capi_machine": GONE, "bootstrap": GONE, "infrastructure": GONE, "node": GONE}


# Intent


def test_the_start_is_stored_before_anything_is_done() -> None:
    made = look(up(provider=provider(active=False), pods=Present((pod(),))))
    removal = made.status.shutdown
    assert removal is not None
    assert (removal.cause, removal.manner) == ("Provider", Manner.GRACEFUL)
    assert (removal.started_at, removal.drain_deadline, removal.deadline) == (NOW, _LATE, _LATE)
    assert (made.groups, made.status.phase, reason(made)) == ((), "ShuttingDown", "GracePeriodActive")
    assert events(made) == ["GracePeriodActive"]


def test_the_drain_bound_lies_inside_the_whole_bound() -> None:
    view = machine(gracefulShutdownTimeout="2m", nodeDrainTimeout="10m")
    removal = look(up(view, provider=provider(active=False))).status.shutdown
    assert removal is not None
    assert removal.drain_deadline == removal.deadline == NOW + timedelta(minutes=2)


def test_a_drain_waits_for_a_slot_and_its_bounds_run_from_then() -> None:
    obs, made = follow(up(provider=provider(active=False), slot=Slot.WAITING))
    assert (reason(made), made.status.shutdown.started_at) == ("WaitingForSlot", None)  # type: ignore[union-attr]
    assert look(obs, NOW + HOUR).status == obs.machine.status
    made = look(attrs.evolve(obs, slot=Slot.GRANTED), NOW + HOUR)
    assert made.status.shutdown.started_at == NOW + HOUR  # type: ignore[union-attr]
    assert made.groups == ()


@pytest.mark.parametrize(
    "obs",
    [
        deleted(up(slot=Slot.WAITING)),
        up(slot=Slot.WAITING, cluster=cluster(deleting=True)),
        told(up(slot=Slot.WAITING), killSwitch=True),
    ],
)
def test_deletion_kill_and_a_dying_cluster_never_wait_for_a_slot(obs: Observation) -> None:
    assert look(obs).status.shutdown.started_at == NOW  # type: ignore[union-attr]


def test_a_cap_that_binds_later_does_not_stop_what_has_begun() -> None:
    assert "EvictPod" in kinds(look(leaving(pod(), slot=Slot.WAITING)))


def test_an_edit_of_the_time_outs_applies_to_a_removal_in_progress_and_is_stored_before_it_acts() -> None:
    obs = told(leaving(pod()), nodeDrainTimeout="10s")
    obs, made = follow(obs, NOW + 20 * SECOND)
    assert (made.groups, made.status.shutdown.drain_deadline) == ((), NOW + 10 * SECOND)  # type: ignore[union-attr]
    assert "Delete machine" in kinds(look(obs, NOW + 20 * SECOND))


def test_an_edit_that_cannot_be_read_shortens_no_bound() -> None:
    long = shutdown(drain_deadline=NOW + HOUR, deadline=NOW + HOUR)
    obs = told(leaving(pod(), view=machine(), removal=long), priority=1000)
    assert look(obs, _LATE).status.shutdown.deadline == NOW + HOUR  # type: ignore[union-attr]


# Drain


def test_it_cordons_with_our_mark_then_evicts() -> None:
    made = look(leaving(pod("a"), pod("b"), node=node()))
    assert kinds(made) == ["Cordon", "AnnotateMachine", "EvictPod", "EvictPod"]
    assert [group.required for group in made.groups] == [True, False, False]
    cordon = actions(made)[0]
    assert isinstance(cordon, Cordon)
    assert (cordon.mark, cordon.resource_version) == (MARK, "21")
    assert reason(made) == "NodeDraining"
    assert made.wake_at == _LATE


def test_somebody_elses_cordon_is_not_made_ours() -> None:
    made = look(leaving(pod(), node=node(unschedulable=True)))
    assert "Cordon" not in kinds(made)
    assert made.status.shutdown.cordoned is False  # type: ignore[union-attr]


def test_machines_are_taken_out_of_remediation_once() -> None:
    made = look(leaving(pod(), capi_machine=capi(annotations={SKIP_REMEDIATION: "false"})))
    assert kinds(made) == ["EvictPod"]


def test_pods_that_nobody_has_listed_are_no_empty_node() -> None:
    made = look(leaving(pods=CACHED))
    assert (made.groups, made.status.shutdown.drained_at) == ((), None)  # type: ignore[union-attr]


def test_being_empty_is_stored_before_the_machine_is_deleted() -> None:
    obs, made = follow(leaving(pod(daemon=True)))
    assert (made.groups, made.status.shutdown.drained_at, reason(made)) == ((), NOW, "NodeDrained")  # type: ignore[union-attr]
    made = look(obs, NOW + SECOND)
    assert kinds(made) == ["AnnotateMachine", "Delete machine"]
    assert [group.required for group in made.groups] == [False, True]
    marks, deletion = actions(made)
    assert isinstance(marks, AnnotateMachine)
    assert isinstance(deletion, Delete)
    assert set(marks.annotations) == {SKIP_REMEDIATION, EXCLUDE_NODE_DRAINING, EXCLUDE_VOLUME_DETACH}
    assert deletion.target.uid == "uid-capi"


def test_a_node_that_is_not_cordoned_is_not_empty() -> None:
    made = look(leaving(node=node()))
    assert (kinds(made)[0], made.status.shutdown.drained_at) == ("Cordon", None)  # type: ignore[union-attr]


def test_pods_that_came_back_are_evicted_again() -> None:
    obs = leaving(pod(), removal=shutdown(drained_at=NOW), agent_present=True)
    made = look(obs, NOW + SECOND)
    assert (kinds(made), made.status.shutdown.drained_at) == (["AnnotateMachine", "EvictPod"], None)  # type: ignore[union-attr]


def test_a_bound_that_passes_ends_the_drain_under_force() -> None:
    assert "Delete machine" not in kinds(look(leaving(pod()), _LATE - SECOND))
    made = look(leaving(pod()), _LATE)
    assert (kinds(made), reason(made)) == (["AnnotateMachine", "Delete machine"], "NodeDrainTimedOut")


def test_no_bound_ends_a_drain_under_hold() -> None:
    made = look(leaving(pod(grace_seconds=60), view=_HOLD), NOW + 24 * HOUR)
    assert kinds(made) == ["AnnotateMachine", "EvictPod"]
    assert reason(made) == "NodeDrainTimedOut"
    eviction = actions(made)[-1]
    assert isinstance(eviction, EvictPod)
    assert eviction.grace_seconds is None
    assert "Delete machine" in kinds(
        look(leaving(view=_HOLD, removal=shutdown(drained_at=NOW)), NOW + 24 * HOUR)
    )


def test_zero_means_no_time_at_all() -> None:
    obs, made = follow(
        up(machine(nodeDrainTimeout="0s"), provider=provider(active=False), pods=Present((pod(),)))
    )
    assert made.status.shutdown.drain_deadline == NOW  # type: ignore[union-attr]
    assert "Delete machine" in kinds(look(obs))


def test_a_clock_that_steps_back_ends_no_bound_early() -> None:
    assert kinds(look(leaving(pod()), NOW - HOUR)) == ["AnnotateMachine", "EvictPod"]


def test_a_budget_is_named_with_its_pod_and_told_once() -> None:
    refused = (BlockedEviction(uid="uid-web-1", by="pdb/web"),)
    obs, made = follow(leaving(pod(), blocked=refused))
    assert made.status.shutdown.blocked_by == ("apps/web-1: pdb/web",)  # type: ignore[union-attr]
    assert "protected: apps/web-1: pdb/web" in (made.status.message or "")
    assert "DrainBlocked" in events(made)
    for blocked in (refused, ()):
        made = look(attrs.evolve(obs, blocked=blocked), NOW + SECOND)
        assert (made.status, made.events) == (obs.machine.status, ())


def test_what_a_drain_says_does_not_depend_on_the_order_of_a_list() -> None:
    names = ("d", "b", "a", "c")
    first = look(leaving(*(pod(name) for name in names)))
    second = look(leaving(*(pod(name) for name in sorted(names))))
    assert first.status == second.status
    assert "4 pods left (apps/a, apps/b, apps/c and 1 more)" in (first.status.message or "")


def test_the_agent_gets_thirty_seconds_to_leave_the_host_clean() -> None:
    obs = leaving(removal=shutdown(drained_at=NOW), agent_present=True)
    made = look(obs, NOW + 29 * SECOND)
    assert (made.groups, made.wake_at) == ((), NOW + 30 * SECOND)
    assert "Delete machine" in kinds(look(obs, NOW + 30 * SECOND))


# A child cluster that cannot be seen


@pytest.mark.parametrize(
    "parts", [{"node": UNREACHABLE}, {"pods": UNREACHABLE}, {"node": node(provider_id="")}, {"pods": CACHED}]
)
def test_out_of_sight_waits_for_the_whole_bound_then_goes_on(parts: dict[str, Any]) -> None:
    long = shutdown(drain_deadline=NOW + SECOND, deadline=_LATE)
    obs = told(leaving(removal=long, **parts), nodeDrainTimeout="1s")
    made = look(obs, _LATE - SECOND)
    assert (made.groups, made.wake_at) == ((), _LATE)
    assert kinds(look(obs, _LATE)) == ["AnnotateMachine", "Delete machine"]


@pytest.mark.parametrize("parts", [{"node": UNREACHABLE}, {"pods": UNREACHABLE}])
def test_out_of_sight_stays_under_hold(parts: dict[str, Any]) -> None:
    assert look(leaving(view=_HOLD, **parts), NOW + 24 * HOUR).groups == ()


def test_a_node_that_was_never_known_is_looked_up_once_more() -> None:
    obs = leaving(node=CACHED)
    assert [part.value for part in look(obs).confirm] == ["node"]
    assert "Delete machine" in kinds(look(attrs.evolve(obs, node=GONE)))


def test_somebody_elses_node_of_that_name_is_not_touched() -> None:
    made = look(leaving(pod(), node=node(provider_id="metal://other")))
    assert kinds(made) == ["AnnotateMachine", "Delete machine"]


@pytest.mark.parametrize("place", [GONE, cluster(deleting=True)])
def test_node_steps_are_skipped_with_an_event_when_the_cluster_goes(place: Any) -> None:
    made = look(leaving(pod(), cluster=place))
    assert kinds(made) == ["AnnotateMachine", "Delete machine"]
    assert events(made) == ["ChildClusterUnreachable"]
    assert "node steps are skipped" in made.events[0].message


def test_a_cache_is_not_believed_when_it_has_lost_the_cluster() -> None:
    assert [part.value for part in look(leaving(pod(), cluster=CACHED)).confirm] == ["cluster"]


def test_a_cluster_that_cannot_be_read_is_not_gone() -> None:
    assert kinds(look(leaving(pod(), cluster=UNREADABLE))) == ["AnnotateMachine", "EvictPod"]


def test_a_dying_cluster_sends_its_machines_away_at_once() -> None:
    obs, made = follow(up(cluster=cluster(deleting=True), pods=Present((pod(),))))
    assert (made.status.decided_by, made.groups) == ("ClusterDeleting", ())
    assert kinds(look(obs)) == ["AnnotateMachine", "Delete machine"]


# The Machine cannot be read


def test_a_machine_that_cannot_be_read_holds_its_phase_and_references() -> None:
    obs = leaving(pod(), capi_machine=UNREADABLE)
    made = look(obs, _LATE)
    assert (made.groups, made.status.phase, made.status.machine_ref) == (
        (),
        "Active",
        obs.machine.status.machine_ref,
    )


def test_nothing_begins_because_something_could_not_be_read() -> None:
    obs = at_rest(down())
    for part in ("capi_machine", "infrastructure", "bootstrap"):
        made = look(attrs.evolve(obs, **{part: UNREADABLE}))
        assert (made.status.phase, made.status.shutdown, made.groups) == ("Inactive", None, ())
        assert reason(made) == "PermissionDenied"


# Waiting until all is gone


def test_only_the_machine_is_deleted_while_it_is_there() -> None:
    made = look(leaving(capi_machine=capi(deleting=True)))
    assert made.groups == ()
    assert (reason(made), "Machine desk-042" in (made.status.message or "")) == ("MachineDeleted", True)


def test_what_cluster_api_left_is_deleted_in_its_order_and_only_after_live_answers() -> None:
    obs = leaving(**{**_NOTHING, "infrastructure": infrastructure(), "bootstrap": bootstrap()})
    assert [part.value for part in look(attrs.evolve(obs, capi_machine=CACHED)).confirm] == ["capi_machine"]
    assert kinds(look(obs)) == ["Delete infrastructure"]
    assert kinds(look(attrs.evolve(obs, infrastructure=infrastructure(deleting=True)))) == []
    assert [part.value for part in look(attrs.evolve(obs, infrastructure=CACHED)).confirm] == [
        "infrastructure"
    ]
    assert kinds(look(attrs.evolve(obs, infrastructure=GONE))) == ["Delete bootstrap"]


def test_a_half_done_create_is_removed_when_it_is_wanted_no_more() -> None:
    obs, made = follow(down(bootstrap=bootstrap(taken=False)))
    assert (made.status.phase, made.groups) == ("ShuttingDown", ())
    assert kinds(look(obs)) == ["Delete bootstrap"]


@pytest.mark.parametrize(("spec", "phase"), [({}, "Inactive"), ({"enabled": False}, "Disabled")])
def test_at_the_end_everything_is_cleared(spec: dict[str, Any], phase: str) -> None:
    made = look(told(leaving(**_NOTHING), **spec))
    status = made.status
    assert (status.phase, status.shutdown, made.groups) == (phase, None, ())
    assert (status.machine_ref, status.bootstrap_ref, status.infrastructure_ref) == (None, None, None)
    assert (status.node_ref, status.provider_id, status.applied_node_taints) == (None, None, ())
    assert {entry.type for entry in status.conditions} == {
        "Ready", "Scheduled", "SpotScheduleResolved", "MachineReady", "ReferencesValid",
    }  # fmt: skip


def test_references_are_not_cleared_because_a_cache_is_empty() -> None:
    made = look(leaving(capi_machine=CACHED, bootstrap=CACHED, infrastructure=CACHED, node=CACHED))
    assert {part.value for part in made.confirm} == {"capi_machine", "infrastructure", "bootstrap"}
    assert made.status.machine_ref is not None


def test_a_machine_that_still_believes_in_a_pause_is_woken_while_it_goes() -> None:
    made = look(leaving(capi_machine=capi(deleting=True, paused_condition=True)))
    (action,) = actions(made)
    assert isinstance(action, AnnotateMachine)
    assert action.annotations == {UNPAUSED: "4"}


# A removal that cannot finish

_STUCK = leaving(capi_machine=capi(deleting=True), node=GONE)
_OVERDUE = _LATE + timedelta(minutes=10)


def test_a_removal_that_cannot_finish_says_so_once_and_keeps_the_finalizer() -> None:
    obs = deleted(_STUCK)
    obs, made = follow(obs, _OVERDUE - SECOND)
    assert (reason(made), made.wake_at) == ("MachineDeleted", _OVERDUE)
    obs, made = follow(obs, _OVERDUE)
    assert (reason(made), events(made), made.groups) == (
        "FinalizerCleanupTimedOut",
        ["FinalizerCleanupTimedOut"],
        (),
    )
    assert "Machine desk-042" in (made.status.message or "")
    made = look(obs, _OVERDUE + HOUR)
    assert (made.events, made.status) == ((), obs.machine.status)


def test_the_finalizer_is_forced_off_only_when_asked_for_and_when_it_is_known_to_be_safe() -> None:
    def forced(obs: Observation) -> bool:
        return "RemoveFinalizer" in kinds(look(deleted(obs), _OVERDUE, force_finalizer_on_timeout=True))

    assert forced(_STUCK)
    assert not forced(told(_STUCK, onDrainTimeout="Hold"))
    assert not forced(attrs.evolve(_STUCK, cluster=cluster(paused=True)))
    assert not forced(attrs.evolve(_STUCK, capi_machine=UNREADABLE))
    assert "RemoveFinalizer" not in kinds(look(_STUCK, _OVERDUE, force_finalizer_on_timeout=True))


# Deletion of the object


def test_the_finalizer_goes_when_live_answers_say_that_nothing_is_left() -> None:
    obs = deleted(leaving(**_NOTHING))
    made = look(obs)
    assert (kinds(made), made.events) == (["RemoveFinalizer"], ())
    assert look(attrs.evolve(obs, bootstrap=CACHED)).confirm
    assert look(attrs.evolve(obs, infrastructure=UNREADABLE)).groups == ()


def test_an_object_that_never_had_a_machine_goes_after_live_answers() -> None:
    assert kinds(look(deleted(down()))) == ["RemoveFinalizer"]
    assert look(deleted(down(capi_machine=CACHED))).confirm


def test_an_object_that_is_deleted_half_way_goes_on_and_then_goes() -> None:
    obs = deleted(leaving(pod()))
    assert kinds(look(obs)) == ["AnnotateMachine", "EvictPod"]
    assert kinds(look(attrs.evolve(obs, **_NOTHING))) == ["RemoveFinalizer"]


def test_an_object_without_our_finalizer_that_is_being_deleted_is_left_alone() -> None:
    view = machine(deleting=True, finalizer=False)
    made = look(standing(view))
    assert (made.groups, made.status) == ((), view.status)


def test_an_orphan_is_taken_out_with_an_event() -> None:
    obs = attrs.evolve(
        at_rest(down()),
        **{name: getattr(up(), name) for name in ("capi_machine", "bootstrap", "infrastructure", "node")},
    )
    made = look(obs)
    assert (made.status.phase, "OrphanAdopted" in events(made), made.groups) == ("ShuttingDown", True, ())


def test_the_node_of_a_removal_is_remembered_even_if_status_had_lost_it() -> None:
    made = look(with_status(leaving(pod()), node_ref=None, last_node=None))
    assert made.status.last_node is not None
    assert made.status.last_node.system_uuid == "system-1"
    assert condition(made.status, "Ready").status == "False"
