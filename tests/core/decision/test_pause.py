"""Cluster API's pauses: nothing is created, drained or deleted, and it is said."""

from datetime import timedelta
from typing import Any

import attrs
import pytest

from fivespot.core.api.scheduled_machine import Manner
from fivespot.core.decision.knowledge import Present
from fivespot.core.decision.observation import Observation
from fivespot.core.names import PAUSED, SKIP_REMEDIATION
from tests.core.decision.observations import (
    GONE,
    HOUR,
    NOW,
    actions,
    at_rest,
    bootstrap,
    capi,
    cluster,
    condition,
    deleted,
    down,
    follow,
    infrastructure,
    kinds,
    leaving,
    leaving_now,
    look,
    node,
    pod,
    provider,
    reason,
    shutdown,
    standing,
    told,
    up,
    with_meta,
    with_status,
    young_capi,
)


def _by_cluster(obs: Observation) -> Observation:
    return attrs.evolve(obs, cluster=cluster(paused=True))


def _by_object(obs: Observation) -> Observation:
    return with_meta(obs, annotations={PAUSED: "false"})


def _by_machine(obs: Observation) -> Observation:
    assert isinstance(obs.capi_machine, Present)
    view = obs.capi_machine.value
    marked = attrs.evolve(view.metadata, annotations={**view.metadata.annotations, PAUSED: ""})
    return attrs.evolve(obs, capi_machine=Present(attrs.evolve(view, metadata=marked)))


_NOTHING: dict[str, Any] = {"capi_machine": GONE, "bootstrap": GONE, "infrastructure": GONE, "node": GONE}


@pytest.mark.parametrize("paused", [_by_cluster, _by_object, _by_machine])
def test_a_drain_stops_and_its_bounds_with_it(paused: Any) -> None:
    obs, made = follow(paused(leaving(pod())), NOW + HOUR)
    removal = made.status.shutdown
    assert removal is not None
    assert (removal.started_at, removal.drain_deadline, removal.deadline) == (None, None, None)
    assert (made.groups, reason(made), made.status.phase) == ((), "Paused", "ShuttingDown")
    assert look(obs, NOW + 2 * HOUR).status == obs.machine.status


def test_they_are_stamped_anew_when_it_ends() -> None:
    obs, _ = follow(_by_cluster(leaving(pod(), removal=shutdown(drained_at=NOW))))
    obs, made = follow(attrs.evolve(obs, cluster=cluster()), NOW + HOUR)
    removal = made.status.shutdown
    assert removal is not None
    assert (removal.started_at, removal.deadline) == (NOW + HOUR, NOW + HOUR + timedelta(minutes=5))
    assert (made.groups, removal.drained_at) == ((), None)
    assert "EvictPod" in kinds(look(obs, NOW + HOUR))


@pytest.mark.parametrize("paused", [_by_cluster, _by_object, _by_machine])
def test_a_machine_that_stands_is_left_alone_and_says_so(paused: Any) -> None:
    made = look(paused(told(up(), machineTemplate={"labels": {"team": "x"}})))
    assert (made.groups, made.status.phase, made.status.ready) == ((), "Active", True)
    assert "paused by" in condition(made.status, "Ready").message


@pytest.mark.parametrize("paused", [_by_cluster, _by_object])
def test_nothing_is_created(paused: Any) -> None:
    made = look(paused(attrs.evolve(at_rest(down()), provider=provider())))
    assert (made.groups, made.status.phase, reason(made)) == ((), "Pending", "Paused")


def test_no_removal_begins_but_its_intent_is_stored() -> None:
    made = look(_by_cluster(up(provider=provider(active=False))))
    assert (made.groups, reason(made), made.status.shutdown.started_at) == ((), "Paused", None)  # type: ignore[union-attr]


def test_a_dying_cluster_that_is_paused_keeps_its_machines() -> None:
    obs, _ = follow(up(cluster=cluster(paused=True, deleting=True)))
    assert look(obs, NOW + HOUR).groups == ()


def test_what_cluster_api_left_stays() -> None:
    obs = leaving(**{**_NOTHING, "infrastructure": infrastructure(), "bootstrap": bootstrap()})
    assert look(_by_cluster(obs)).groups == ()


def test_a_machine_that_is_going_already_keeps_its_bounds_and_says_what_it_waits_for() -> None:
    obs = _by_cluster(leaving(capi_machine=capi(deleting=True)))
    made = look(obs)
    assert made.status.shutdown == obs.machine.status.shutdown
    assert "end of a pause" in (made.status.message or "")


def test_a_failed_machine_is_not_replaced() -> None:
    obs = at_rest(standing(capi_machine=young_capi(failure="x"), node=GONE))
    assert look(_by_cluster(obs), NOW + HOUR).groups == ()


# What goes on


def test_a_kill_stores_its_intent_and_sends_its_delete() -> None:
    obs, made = follow(_by_cluster(told(up(), killSwitch=True)))
    assert (made.groups, made.status.shutdown.manner) == ((), Manner.NOW)  # type: ignore[union-attr]
    assert kinds(look(obs)) == ["AnnotateMachine", "Delete machine"]
    assert kinds(look(_by_cluster(leaving_now()))) == ["AnnotateMachine", "Delete machine"]


def test_a_killed_machine_says_that_it_waits_for_the_end_of_the_pause() -> None:
    made = look(_by_cluster(leaving_now(capi_machine=capi(deleting=True))))
    assert "end of a pause" in (made.status.message or "")


@pytest.mark.parametrize("paused", [_by_cluster, _by_object])
def test_the_finalizer_goes_when_nothing_is_left(paused: Any) -> None:
    assert kinds(look(deleted(paused(leaving(**_NOTHING))))) == ["RemoveFinalizer"]


def test_owners_that_a_restore_brought_back_are_put_right() -> None:
    obs = _by_cluster(up(capi_machine=capi(owner="uid-before-the-restore")))
    assert kinds(look(obs)) == ["AdoptOwner machine"]


def test_a_change_of_mind_is_undone_after_the_pause() -> None:
    marked = capi(annotations={SKIP_REMEDIATION: ""})
    obs = with_status(up(capi_machine=marked, node=node()), shutdown=shutdown())
    obs, made = follow(_by_cluster(obs))
    assert (made.groups, made.status.shutdown is not None) == ((), True)
    assert [type(action).__name__ for action in actions(look(attrs.evolve(obs, cluster=cluster())))] == [
        "AnnotateMachine"
    ]
