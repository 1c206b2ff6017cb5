"""How a machine comes up, row by row."""

from datetime import timedelta
from typing import Any

import attrs
import pytest

from fivespot.core.api.scheduled_machine import Manner, Provisioning
from fivespot.core.decision.actions import Create, Delete, Role
from fivespot.core.decision.observation import Failure, Observation, Slot
from fivespot.core.names import (
    CREATED_FROM,
    EXCLUDE_NODE_DRAINING,
    EXCLUDE_VOLUME_DETACH,
    MACHINE_LABEL,
    SKIP_REMEDIATION,
    UNPAUSED,
)
from tests.core.decision.observations import (
    BORN,
    CACHED,
    GONE,
    HOUR,
    NAME,
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
    cordoned,
    down,
    events,
    follow,
    infrastructure,
    kinds,
    look,
    machine,
    node,
    provider,
    reason,
    shutdown,
    standing,
    stored,
    told,
    up,
    with_status,
    young_capi,
)

_CREATES = ["Create bootstrap", "Create infrastructure", "Create machine"]


def _wanted(view: Any = None, **parts: Any) -> Observation:
    """Nothing exists; the provider has just said yes, and that is on record."""
    obs = at_rest(down(view))
    spot = look(attrs.evolve(obs, provider=provider())).status.spot_schedule
    return attrs.evolve(with_status(obs, spot_schedule=spot), provider=provider(), **parts)


# Creating


def test_the_three_objects_are_created_in_order_each_after_the_one_before() -> None:
    made = look(_wanted())
    assert kinds(made) == _CREATES
    assert [(len(group.actions), group.required) for group in made.groups] == [(1, True)] * 3


def test_creating_writes_no_status_of_its_own() -> None:
    obs = _wanted()
    assert look(obs).status == obs.machine.status
    assert events(look(obs)) == []


def test_a_create_that_keeps_failing_is_reported() -> None:
    failure = Failure(step="create bootstrap", reason="Forbidden", message="no", since=NOW)
    made = look(_wanted(failure=failure))
    assert (made.status.phase, reason(made), kinds(made)) == ("Error", "PermissionDenied", _CREATES)


def test_what_is_created_carries_labels_owner_time_outs_and_where_it_came_from() -> None:
    made = look(_wanted(machine(nodeDrainTimeout="0s", gracefulShutdownTimeout="90s", version="v1.31.2")))
    by_role = {action.role: action.manifest for action in actions(made) if isinstance(action, Create)}
    for role, manifest in by_role.items():
        meta = manifest["metadata"]
        assert meta["labels"] == {MACHINE_LABEL: NAME, "cluster.x-k8s.io/cluster-name": "grid"}
        (owner,) = meta["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == ("uid-machine", role is Role.MACHINE)
    spec = by_role[Role.MACHINE]["spec"]
    assert spec["deletion"] == {
        "nodeDrainTimeoutSeconds": 1,
        "nodeVolumeDetachTimeoutSeconds": 1,
        "nodeDeletionTimeoutSeconds": 90,
    }
    assert (spec["version"], "failureDomain" in spec) == ("v1.31.2", False)
    assert CREATED_FROM in by_role[Role.MACHINE]["metadata"]["annotations"]


def test_the_older_version_of_machines_refers_by_version_and_namespace() -> None:
    made = look(_wanted(capi_version="v1beta1"))
    manifest = next(
        action.manifest
        for action in actions(made)
        if isinstance(action, Create) and action.role is Role.MACHINE
    )
    assert manifest["spec"]["infrastructureRef"] == {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "RemoteMachine",
        "name": NAME,
        "namespace": "floor-2",
    }
    assert manifest["spec"]["nodeDeletionTimeout"] == "300s"


def test_a_half_done_create_is_used() -> None:
    made = look(_wanted(bootstrap=bootstrap(taken=False)))
    assert kinds(made) == ["Create infrastructure", "Create machine"]


def test_a_half_done_create_of_a_kind_that_the_spec_no_longer_names_is_removed_first() -> None:
    made = look(_wanted(bootstrap=bootstrap(taken=False, kind="KubeadmConfig")))
    assert kinds(made) == ["Delete bootstrap"]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"cluster": GONE}, "Provisioning"),
        ({"cluster": CACHED}, "Provisioning"),
        ({"cluster": UNREADABLE}, "PermissionDenied"),
        ({"slot": Slot.WAITING}, "WaitingForSlot"),
        ({"cluster": cluster(paused=True)}, "Paused"),
        ({"capi_machine": capi(ours=False)}, "NameConflict"),
        ({"infrastructure": infrastructure(ours=False)}, "NameConflict"),
        ({"capi_machine": capi(deleting=True)}, "WaitingForPrevious"),
    ],
)
def test_nothing_is_created_while_something_stands_against_it(parts: dict[str, Any], expected: str) -> None:
    made = look(_wanted(**parts))
    assert (made.status.phase, reason(made), made.groups) == ("Pending", expected, ())


def test_an_invalid_spec_blocks_creation() -> None:
    made = look(_wanted(machine(priority=1000)))
    assert (made.status.phase, reason(made), made.groups) == ("Pending", "ReferencesInvalid", ())
    assert condition(made.status, "ReferencesValid").status == "False"


@pytest.mark.parametrize("part", ["capi_machine", "bootstrap", "infrastructure"])
def test_what_could_not_be_read_is_not_created_and_the_phase_stays(part: str) -> None:
    made = look(_wanted(**{part: UNREADABLE}))
    assert (made.status.phase, made.groups) == ("Inactive", ())
    assert condition(made.status, "MachineReady").status == "Unknown"


# The life before


def test_what_cluster_api_left_is_deleted_infrastructure_first() -> None:
    both = _wanted(bootstrap=bootstrap(), infrastructure=infrastructure())
    assert kinds(look(both)) == ["Delete infrastructure"]
    assert kinds(look(attrs.evolve(both, infrastructure=infrastructure(deleting=True)))) == []
    assert kinds(look(attrs.evolve(both, infrastructure=GONE))) == ["Delete bootstrap"]


def test_nothing_is_deleted_because_a_cache_has_no_machine() -> None:
    made = look(_wanted(capi_machine=CACHED, infrastructure=infrastructure()))
    assert [part.value for part in made.confirm] == ["capi_machine"]
    assert (made.groups, made.events) == ((), ())


def test_bootstrap_data_is_not_deleted_because_a_cache_has_no_infrastructure() -> None:
    made = look(_wanted(infrastructure=CACHED, bootstrap=bootstrap()))
    assert [part.value for part in made.confirm] == ["infrastructure"]


def test_a_pause_keeps_what_is_left() -> None:
    made = look(_wanted(infrastructure=infrastructure(), cluster=cluster(paused=True)))
    assert made.groups == ()
    assert "pause" in (made.status.message or "")


# A Machine that vanished


def test_a_machine_that_vanished_is_created_again_with_one_event() -> None:
    obs = up(capi_machine=GONE, bootstrap=GONE, infrastructure=GONE, node=GONE)
    obs, made = follow(obs)
    assert (made.status.phase, events(made), made.groups) == ("Pending", ["MachineMissing"], ())
    assert (made.status.machine_ref, made.status.node_ref, made.status.provider_id) == (None, None, None)
    assert made.status.last_node is not None
    made = look(obs)
    assert (kinds(made), events(made)) == (_CREATES, [])


def test_a_cache_is_not_believed_when_it_has_lost_the_machine() -> None:
    made = look(up(capi_machine=CACHED, bootstrap=CACHED, infrastructure=CACHED))
    assert {part.value for part in made.confirm} == {"capi_machine", "bootstrap", "infrastructure"}


def test_a_removal_that_ended_while_the_mind_changed_is_no_missing_machine() -> None:
    obs = with_status(
        up(capi_machine=GONE, bootstrap=GONE, infrastructure=GONE, node=GONE), shutdown=shutdown()
    )
    obs, made = follow(obs)
    assert (made.status.phase, made.status.shutdown, "MachineMissing" in events(made)) == (
        "Pending",
        None,
        False,
    )
    assert kinds(look(obs)) == _CREATES


# A change of mind

_MARKS = {SKIP_REMEDIATION: "", EXCLUDE_NODE_DRAINING: "", EXCLUDE_VOLUME_DETACH: ""}


def test_a_change_of_mind_undoes_what_the_removal_did_and_then_forgets_it() -> None:
    obs = with_status(
        up(capi_machine=capi(annotations=_MARKS), node=cordoned()), shutdown=shutdown(manner=Manner.NOW)
    )
    obs, made = follow(obs)
    assert kinds(made) == ["AnnotateMachine", "Uncordon"]
    assert actions(made)[0].annotations == dict.fromkeys(_MARKS)  # type: ignore[union-attr]
    assert made.status.phase == "Active"
    # Remembered until it is undone, without the bounds of the removal that was called off.
    assert made.status.shutdown is not None
    assert (made.status.shutdown.deadline, made.status.shutdown.manner) == (None, Manner.GRACEFUL)
    made = look(attrs.evolve(obs, capi_machine=up().capi_machine, node=node()))
    assert (made.status.shutdown, made.groups) == (None, ())


def test_a_removal_after_a_change_of_mind_that_is_not_undone_yet_gets_new_bounds() -> None:
    obs = with_status(up(capi_machine=capi(annotations=_MARKS)), shutdown=shutdown(NOW - timedelta(hours=1)))
    obs, _ = follow(obs)
    made = look(attrs.evolve(obs, provider=provider(active=False)))
    assert made.status.shutdown is not None
    assert made.status.shutdown.started_at == NOW
    assert made.groups == ()


def test_somebody_elses_cordon_stays() -> None:
    made = look(with_status(up(node=node(unschedulable=True)), shutdown=shutdown()))
    assert made.groups == ()


def test_a_person_who_keeps_a_machine_out_of_remediation_is_left_alone() -> None:
    assert look(up(capi_machine=capi(annotations={SKIP_REMEDIATION: ""}))).groups == ()


# Provisioning


def test_a_machine_without_a_node_is_pending_until_its_node_was_ready_once() -> None:
    obs = at_rest(standing(capi_machine=young_capi(), node=GONE))
    assert (obs.machine.status.phase, obs.machine.status.ready) == ("Pending", False)
    assert obs.machine.status.provisioning == Provisioning(started_at=BORN)
    obs = at_rest(attrs.evolve(obs, capi_machine=capi(), node=node(ready=False)))
    assert obs.machine.status.phase == "Pending"
    obs = at_rest(attrs.evolve(obs, node=node()))
    assert (obs.machine.status.phase, obs.machine.status.ready, obs.machine.status.provisioning) == (
        "Active",
        True,
        None,
    )
    for lost in (node(ready=False), CACHED):
        made = look(attrs.evolve(obs, node=lost))
        assert (made.status.phase, made.status.ready) == ("Active", False)
        assert condition(made.status, "MachineReady").status == "False"


def test_a_host_that_does_not_answer_is_reported_once_and_nothing_is_deleted() -> None:
    born = NOW - timedelta(minutes=15) + SECOND
    obs = at_rest(standing(capi_machine=young_capi(created_at=born), node=GONE))
    assert look(obs).wake_at == NOW + SECOND
    obs, made = follow(obs, NOW + SECOND)
    assert (reason(made), events(made), made.groups) == ("ProvisioningTimedOut", ["ProvisioningTimedOut"], ())
    assert made.status.phase == "Pending"
    made = look(obs, NOW + timedelta(hours=1))
    assert (made.status, made.events) == (obs.machine.status, ())


def test_a_node_that_went_before_it_was_ready_is_no_time_out() -> None:
    obs = at_rest(standing(node=node(ready=False)))
    assert reason(look(attrs.evolve(obs, node=GONE))) == "Provisioning"


# Terminal failures

_FAILED = young_capi(failure="InvalidConfiguration")


def test_a_machine_that_failed_before_it_had_a_node_is_replaced_from_stored_intent() -> None:
    obs = at_rest(standing(capi_machine=_FAILED, node=GONE))
    status, due = obs.machine.status, NOW + timedelta(minutes=5)
    assert (status.phase, status.shutdown) == ("Error", None)
    assert status.provisioning == Provisioning(
        started_at=BORN, attempt=1, replacing="uid-capi", not_before=due
    )
    made = look(obs)
    assert (made.groups, made.wake_at) == ((), due)
    made = look(obs, due)
    assert kinds(made) == ["Delete machine"]
    (deletion,) = actions(made)
    assert isinstance(deletion, Delete)
    assert deletion.target.uid == "uid-capi"


def test_the_replaced_machine_is_not_missed_and_the_count_goes_on() -> None:
    obs = at_rest(standing(capi_machine=_FAILED, node=GONE))
    obs, made = follow(attrs.evolve(obs, capi_machine=GONE, bootstrap=GONE, infrastructure=GONE))
    assert "MachineMissing" not in events(made)
    assert kinds(look(obs)) == _CREATES
    obs = at_rest(
        attrs.evolve(
            obs,
            capi_machine=young_capi(uid="uid-2", failure="x"),
            bootstrap=bootstrap(),
            infrastructure=infrastructure(),
        )
    )
    again = obs.machine.status.provisioning
    assert again is not None
    assert (again.attempt, again.not_before) == (2, NOW + timedelta(minutes=10))


def test_a_machine_is_not_replaced_on_the_wait_of_another() -> None:
    stored_for = Provisioning(attempt=1, replacing="uid-other", not_before=NOW - HOUR)
    made = look(with_status(standing(capi_machine=_FAILED, node=GONE), provisioning=stored_for))
    assert made.groups == ()
    assert made.status.provisioning.replacing == "uid-capi"  # type: ignore[union-attr]


def test_replacements_wait_at_most_an_hour() -> None:
    obs = with_status(standing(capi_machine=_FAILED, node=GONE), provisioning=Provisioning(attempt=1000))
    found = at_rest(obs).machine.status.provisioning
    assert found is not None
    assert (found.attempt, found.not_before) == (1001, NOW + timedelta(hours=1))


def test_the_first_node_ends_the_count() -> None:
    obs = with_status(standing(node=node(ready=False)), provisioning=Provisioning(attempt=3))
    assert at_rest(obs).machine.status.provisioning == Provisioning(started_at=BORN)


def test_a_failed_machine_that_had_a_node_is_only_reported() -> None:
    obs = at_rest(up(capi_machine=capi(failure="UpdateError"), node=node(ready=False)))
    assert (obs.machine.status.phase, obs.machine.status.provisioning) == ("Error", None)
    assert look(obs, NOW + timedelta(days=1)).groups == ()


def test_a_failure_does_not_matter_while_the_node_is_ready() -> None:
    assert look(up(capi_machine=capi(failure="UpdateError"))).status.phase == "Active"


def test_a_failed_machine_is_not_replaced_while_its_node_cannot_be_seen_or_during_a_pause() -> None:
    due = NOW + timedelta(minutes=5)
    obs = at_rest(standing(capi_machine=_FAILED, node=GONE))
    for parts in ({"node": UNREACHABLE}, {"cluster": cluster(paused=True)}):
        seen = at_rest(attrs.evolve(obs, **parts), due)
        assert look(seen, due).groups == ()
        # And the wait does not begin anew afterwards.
        assert kinds(look(at_rest(attrs.evolve(seen, node=GONE, cluster=cluster()), due), due)) == [
            "Delete machine"
        ]


# A Node that cannot be seen


def test_an_unreadable_node_changes_a_condition_and_never_the_phase() -> None:
    made = look(up(node=UNREACHABLE))
    assert (made.status.phase, made.status.ready) == ("Active", True)
    assert condition(made.status, "MachineReady").status == "Unknown"
    assert condition(made.status, "ChildClusterReachable").reason == "ChildClusterUnreachable"


@pytest.mark.parametrize(
    ("before", "after"),
    [("Inactive", "Pending"), ("ShuttingDown", "Pending"), (None, "Pending"), ("Pending", "Pending")],
)
def test_a_phase_that_is_wrong_either_way_does_not_stay(before: str | None, after: str) -> None:
    obs = with_status(standing(capi_machine=young_capi(), node=UNREACHABLE), phase=before)
    assert look(obs).status.phase == after


def test_a_node_without_a_provider_id_is_nobodys_yet() -> None:
    made = look(standing(node=node(provider_id="")))
    assert (made.status.phase, reason(made), made.status.node_ref) == ("Pending", "NoNodeYet", None)


def test_a_missing_cluster_changes_a_condition_of_a_machine_that_stands_and_nothing_else() -> None:
    made = look(up(cluster=GONE))
    assert (made.status.phase, made.groups) == ("Active", ())
    found = condition(made.status, "ReferencesValid")
    assert (found.status, found.reason) == ("False", "ReferencesInvalid")
    assert found.message == "Cluster grid does not exist, and the Machine stands"
    assert look(up(cluster=UNREADABLE)).groups == ()


# What applies in place


def test_labels_of_the_template_are_put_on_the_running_machine_and_no_others_are_touched() -> None:
    obs = told(up(), machineTemplate={"labels": {"team": "desks"}, "annotations": {"note": "x"}})
    (action,) = actions(look(obs))
    assert type(action).__name__ == "LabelMachine"
    assert (action.labels, action.annotations) == ({"team": "desks"}, {"note": "x"})  # type: ignore[union-attr]
    seen = attrs.evolve(
        obs, capi_machine=capi(labels={MACHINE_LABEL: NAME, "team": "desks"}, annotations={"note": "x"})
    )
    assert look(seen).groups == ()


def test_a_machine_that_missed_the_end_of_a_pause_is_woken_once_for_each_generation() -> None:
    asleep = capi(paused_condition=True)
    (action,) = actions(look(up(capi_machine=asleep)))
    assert action.annotations == {UNPAUSED: "4"}  # type: ignore[union-attr]
    woken = capi(paused_condition=True, annotations={UNPAUSED: "4"})
    assert look(up(capi_machine=woken)).groups == ()
    assert look(up(capi_machine=woken, cluster=cluster(paused=True, generation=5))).groups == ()


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        ({"version": "v1.32.0"}, "version"),
        ({"failureDomain": "b"}, "failureDomain"),
        (
            {
                "infrastructureSpec": {
                    "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                    "kind": "RemoteMachine",
                    "spec": {"address": "192.0.2.43"},
                }
            },
            "infrastructureSpec",
        ),
        (
            {"bootstrapSpec": {"apiVersion": "k0smotron.io/v1beta1", "kind": "Other", "spec": {}}},
            "bootstrapSpec",
        ),
    ],
)
def test_ready_says_that_the_spec_differs_from_the_running_machine(edit: dict[str, Any], named: str) -> None:
    said = condition(look(told(up(), **edit)).status, "Ready")
    assert (said.status, said.reason) == ("True", "ReconcileSucceeded")
    assert f"{named} of the spec differ from the running machine" in said.message
    assert "differ" not in condition(look(up()).status, "Ready").message


@pytest.mark.parametrize(
    "edit", [{"gracefulShutdownTimeout": "1h"}, {"killIfCommands": ["java"]}, {"priority": 7}]
)
def test_what_applies_in_place_is_no_difference(edit: dict[str, Any]) -> None:
    assert "differ" not in condition(look(told(up(), **edit)).status, "Ready").message


def test_nothing_is_said_of_a_machine_that_does_not_tell_where_it_came_from() -> None:
    assert "differ" not in (look(told(up(capi_machine=capi()), version="v1.32.0")).status.message or "")


# Orphans


def test_a_machine_that_status_does_not_know_is_taken_up() -> None:
    obs, made = follow(standing())
    assert (made.status.phase, events(made)) == ("Active", ["OrphanAdopted", "ReconcileSucceeded"])
    assert made.status.machine_ref is not None
    assert look(obs).events == ()


def test_a_machine_that_was_just_created_is_no_orphan() -> None:
    made = look(standing(capi_machine=young_capi(created_at=NOW), node=GONE))
    assert events(made) == ["Provisioning"]


def test_at_rest_nothing_is_written_nor_asked_for() -> None:
    obs = up()
    made = look(obs, NOW + timedelta(days=3))
    assert (made.status, made.groups, made.events, made.wake_at, made.confirm) == (
        obs.machine.status,
        (),
        (),
        None,
        (),
    )
    assert stored(obs, made) == obs
