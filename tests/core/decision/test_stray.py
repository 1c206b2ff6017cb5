"""A Node without its Machine: left over, or returned."""

from typing import Any

import attrs
import pytest

from fivespot.core.api import reasons
from fivespot.core.api.scheduled_machine import LastNode, NodeReference, Reclaim, ReclaimState
from fivespot.core.decision.actions import Cordon, DeleteNode, Part
from fivespot.core.decision.knowledge import Known, Present, Unknown
from fivespot.core.decision.observation import NodeView, Observation
from fivespot.core.names import CORDONED_BY, NODE_CLUSTER_NAMESPACE, NODE_MACHINE
from tests.core.decision.observations import (
    CACHED,
    GONE,
    MARK,
    UNREACHABLE,
    UNREADABLE,
    actions,
    at_rest,
    cluster,
    cordoned,
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
    told,
    with_status,
    young_capi,
)

_LAST = LastNode(cluster="grid", name="node-1", uid="uid-node", system_uuid="system-1")
_LEFT = node(ready=False)
_BACK = node(uid="uid-2")
_CORDONED = cordoned(uid="uid-2")


def _down(seen: Known[NodeView], view: Any = None, **parts: Any) -> Observation:
    return attrs.evolve(with_status(at_rest(down(view)), last_node=_LAST), last_node=seen, **parts)


def _up(seen: Known[NodeView], **parts: Any) -> Observation:
    return _down(seen, **{"provider": provider(), **parts})


@pytest.mark.parametrize("obs", [_down(_LEFT), _up(_LEFT)])
def test_what_is_left_over_is_deleted_by_uid_up_or_down(obs: Observation) -> None:
    (action,) = actions(look(obs))
    assert isinstance(action, DeleteNode)
    assert (action.node, action.uid) == ("node-1", "uid-node")


@pytest.mark.parametrize("seen", [_BACK, node()])
def test_what_returned_is_cordoned_then_recorded_then_emptied_then_deleted(seen: Present[NodeView]) -> None:
    obs, made = follow(_up(seen, pods=Present((pod(),))))
    (action,) = actions(made)
    assert isinstance(action, Cordon)
    assert (action.mark, events(made), reason(made)) == (MARK, ["WaitingForPrevious"], "WaitingForPrevious")
    marked = attrs.evolve(seen.value, unschedulable=True, annotations={CORDONED_BY: MARK})
    obs, made = follow(attrs.evolve(obs, last_node=Present(marked)))
    assert (made.groups, events(made)) == ((), ["NodeReturned"])
    made = look(obs)
    assert (kinds(made), made.events) == (["EvictPod"], ())
    made = look(attrs.evolve(obs, pods=Present((pod(daemon=True),))))
    assert kinds(made) == ["DeleteNode"]
    assert actions(made)[0].uid == seen.value.uid  # type: ignore[union-attr]


@pytest.mark.parametrize("marked", [node(), cordoned()])
def test_the_very_node_that_was_seen_last_is_read_live_before_it_has_returned(
    marked: Present[NodeView],
) -> None:
    """The end of a Machine and the end of its Node are told by two servers, and the second may be late."""
    obs = _down(marked, last_node_confirmed=False)
    made = look(obs)
    assert (made.confirm, made.groups, made.events) == ((Part.LAST_NODE,), (), ())
    assert look(attrs.evolve(obs, last_node=GONE, last_node_confirmed=True)).events == ()
    # Another uid is another life: nothing has to be asked.
    assert look(attrs.evolve(obs, last_node=_BACK)).confirm == ()


def test_pods_that_nobody_has_listed_are_no_empty_node() -> None:
    obs, _ = follow(_down(_CORDONED))
    assert look(attrs.evolve(obs, pods=CACHED)).groups == ()
    assert look(attrs.evolve(obs, pods=UNREACHABLE)).groups == ()


@pytest.mark.parametrize(
    ("spec", "status"),
    [({"killSwitch": True}, {}), ({}, {"reclaim": Reclaim(state=ReclaimState.HELD)})],
)
def test_pods_get_no_grace_under_a_kill_or_a_hold(spec: dict[str, Any], status: dict[str, Any]) -> None:
    obs, _ = follow(with_status(told(_down(_CORDONED), **spec), **status))
    assert kinds(look(attrs.evolve(obs, pods=Present((pod(), pod("b", deleting=True)))))) == ["DeletePod"]


def test_a_node_whose_mark_somebody_took_off_is_theirs() -> None:
    obs, _ = follow(_up(_CORDONED))
    obs, made = follow(attrs.evolve(obs, last_node=_BACK))
    assert (made.groups, made.status.last_node, made.status.node_ref) == ((), None, None)
    assert "Create machine" in kinds(look(obs))


def test_a_new_machine_does_not_inherit_the_node_that_returned() -> None:
    obs, _ = follow(_up(_CORDONED))
    assert obs.machine.status.node_ref is not None
    obs, made = follow(attrs.evolve(obs, last_node=GONE))
    assert (made.status.node_ref, made.groups) == (None, ())
    assert "Create machine" in kinds(look(obs))
    made = look(attrs.evolve(obs, capi_machine=young_capi(created_at=None), node=GONE))
    assert made.status.phase == "Pending"


@pytest.mark.parametrize(
    "seen",
    [
        node(ready=False, system_uuid="system-2"),
        node(ready=False, system_uuid=""),
        node(name="node-2", ready=False),
        node(ready=False, annotations={NODE_MACHINE: "another"}),
        node(ready=False, annotations={NODE_MACHINE: "desk-042", NODE_CLUSTER_NAMESPACE: "another"}),
    ],
)
def test_another_hosts_node_is_not_touched(seen: Present[NodeView]) -> None:
    assert look(_down(seen)).groups == ()
    assert "Create machine" in kinds(look(_up(seen)))


def test_a_node_that_names_our_machine_is_ours() -> None:
    seen = node(ready=False, annotations={NODE_MACHINE: "desk-042", NODE_CLUSTER_NAMESPACE: "floor-2"})
    assert kinds(look(_down(seen))) == ["DeleteNode"]


def test_a_node_that_another_machine_claims_is_not_touched() -> None:
    assert look(_down(_LEFT, last_node_claimed=True)).groups == ()


def test_a_host_without_a_system_uuid_is_never_recognised() -> None:
    obs = with_status(_down(node(ready=False, system_uuid="")), last_node=attrs.evolve(_LAST, system_uuid=""))
    assert look(obs).groups == ()


def test_nothing_is_created_while_it_is_unknown_whether_the_node_is_still_there() -> None:
    made = look(_up(UNREACHABLE))
    assert (made.groups, made.status.phase, reason(made)) == ((), "Inactive", "ChildClusterUnreachable")


def test_it_blocks_creation_only_in_its_own_cluster_and_is_removed_beside_it() -> None:
    made = look(told(_up(_LEFT), clusterName="other"))
    assert kinds(made) == ["DeleteNode", "Create bootstrap", "Create infrastructure", "Create machine"]
    assert "Create machine" in kinds(look(told(_up(UNREACHABLE), clusterName="other")))


def test_it_is_forgotten_when_its_cluster_is_gone_for_sure() -> None:
    assert [part.value for part in look(_down(_LEFT, cluster=CACHED)).confirm] == ["cluster"]
    made = look(_down(_LEFT, cluster=GONE))
    assert (made.status.last_node, made.groups) == (None, ())
    assert look(_down(_LEFT, cluster=UNREADABLE)).status.last_node == _LAST
    elsewhere = told(_down(_LEFT, cluster=GONE), clusterName="other")
    assert look(elsewhere).status.last_node == _LAST


def test_a_pause_leaves_it_alone() -> None:
    made = look(_down(_LEFT, cluster=cluster(paused=True)))
    assert made.groups == ()
    assert "pause" in (made.status.message or "")


def test_it_waits_until_machine_and_infrastructure_are_gone() -> None:
    obs = leaving(capi_machine=GONE, infrastructure=infrastructure(deleting=True), node=GONE, last_node=_LEFT)
    assert look(obs).groups == ()


def test_a_node_that_the_machine_had_is_not_taken_for_one_that_was_released() -> None:
    obs = leaving(capi_machine=GONE, infrastructure=GONE, bootstrap=GONE, node=GONE, last_node=node())
    made = look(obs)
    assert kinds(made) == ["Cordon"]
    assert isinstance(obs.machine.status.node_ref, NodeReference)


def test_a_stray_node_does_not_hold_the_finalizer() -> None:
    obs = _down(_LEFT, machine(deleting=True))
    assert kinds(look(obs)) == ["DeleteNode", "RemoveFinalizer"]


@pytest.mark.parametrize("part", ["cluster", "last_node"])
def test_what_may_not_be_read_about_the_last_node_is_said_at_rest(part: str) -> None:
    denied = Unknown(reasons.PERMISSION_DENIED, 'grant verb "get"')
    made = look(attrs.evolve(_down(GONE), **{part: denied}))
    assert made.status.message == (
        "TimeBasedSpotSchedule/nights says inactive; whether its last Node is still there could not be read: "
        'grant verb "get"'
    )
    assert (made.status.phase, made.status.last_node) == ("Inactive", _LAST)


def test_a_child_that_is_down_changes_nothing_about_a_machine_at_rest() -> None:
    obs = _down(UNREACHABLE)
    assert look(obs).status == obs.machine.status
