"""Who decides, and in what manner a machine goes down."""

from typing import Any

import attrs
import pytest

from fivespot.core.api.scheduled_machine import Manner, Reclaim, ReclaimedNode, ReclaimState
from fivespot.core.decision.observation import Observation
from fivespot.core.decision.policy import DEFAULT_POLICY
from fivespot.core.decision.scene import scene_of
from fivespot.core.decision.target import Target, chain
from tests.core.decision.observations import (
    GONE,
    NOW,
    cluster,
    deleted,
    down,
    leaving,
    machine,
    node,
    provider,
    requested,
    shutdown,
    told,
    up,
    with_status,
)

_RECLAIM = Reclaim(
    state=ReclaimState.IN_PROGRESS,
    observed_at=NOW,
    reason="java",
    node=ReclaimedNode(name="node-1", uid="uid-node"),
)
_HELD = attrs.evolve(_RECLAIM, state=ReclaimState.HELD)


def _target(obs: Observation) -> Target:
    return scene_of(obs, NOW, DEFAULT_POLICY).target


def _all_at_once(
    *, killed: bool = True, enabled: bool = False, reclaim: Reclaim | None = _RECLAIM, going: bool = True
) -> Observation:
    obs = up(
        machine(killSwitch=killed, enabled=enabled),
        provider=provider(active=False),
        cluster=cluster(deleting=going),
    )
    return with_status(obs, reclaim=reclaim)


@pytest.mark.parametrize(
    ("obs", "decider"),
    [
        (deleted(_all_at_once()), "Deleted"),
        (_all_at_once(), "KillSwitch"),
        (_all_at_once(killed=False), "Reclaim"),
        (_all_at_once(killed=False, enabled=True, reclaim=_HELD), "Reclaim"),
        (_all_at_once(killed=False, reclaim=None), "Disabled"),
        (_all_at_once(killed=False, enabled=True, reclaim=None), "ClusterDeleting"),
        (_all_at_once(killed=False, enabled=True, reclaim=None, going=False), "Provider"),
    ],
)
def test_the_strongest_that_applies_decides(obs: Observation, decider: str) -> None:
    target = _target(obs)
    assert (target.decider.value, target.up) == (decider, False)


def test_the_chain_that_is_explained_is_the_chain_that_decides() -> None:
    obs = _all_at_once(killed=False)
    steps = chain(scene_of(obs, NOW, DEFAULT_POLICY).facts)
    assert [step.decider.value for step in steps] == [
        "Deleted", "KillSwitch", "Reclaim", "Disabled", "ClusterDeleting", "Provider",
    ]  # fmt: skip
    assert next(step for step in steps if step.decides).decider is _target(obs).decider
    assert [step.text for step in steps if step.decides][:2] == [
        "reclaim in progress: java",
        "spec.enabled is false",
    ]


def test_a_disabled_machine_is_not_held_by_a_reclaim_any_more() -> None:
    assert _target(_all_at_once(killed=False, reclaim=_HELD)).decider.value == "Disabled"


@pytest.mark.parametrize("lowest", [True, False])
def test_a_cluster_that_is_gone_decides_nothing(lowest: bool) -> None:
    target = _target(up(cluster=GONE, provider=provider(active=lowest)))
    assert (target.decider.value, target.up) == ("Provider", lowest)


# The manner


@pytest.mark.parametrize(
    ("spec", "parts", "status", "manner"),
    [
        ({}, {"provider": provider(active=False)}, {}, Manner.GRACEFUL),
        ({"enabled": False}, {}, {}, Manner.GRACEFUL),
        ({}, {"cluster": cluster(deleting=True)}, {}, Manner.GRACEFUL),
        ({"killSwitch": True}, {}, {}, Manner.NOW),
        ({}, {}, {"reclaim": _RECLAIM}, Manner.NOW),
        ({}, {}, {"reclaim": _HELD}, Manner.GRACEFUL),
        ({"killIfCommands": ["java"]}, {"node": node(annotations=requested())}, {}, Manner.NOW),
        ({"reclaim": {}}, {"node": node(annotations=requested())}, {}, Manner.NOW),
        ({"enabled": False, "reclaim": {}}, {"node": node(annotations=requested())}, {}, Manner.NOW),
        (
            {"killIfCommands": []},
            {"provider": provider(active=False), "node": node(annotations=requested())},
            {},
            Manner.GRACEFUL,
        ),
    ],
)
def test_kill_switch_and_reclaim_leave_at_once_whatever_the_target(
    spec: dict[str, Any], parts: dict[str, Any], status: dict[str, Any], manner: Manner
) -> None:
    target = _target(with_status(told(up(**parts), **spec), **status))
    assert (target.up, target.manner) == (False, manner)


def test_an_object_that_is_being_deleted_leaves_at_once_when_its_owner_starts_a_program() -> None:
    obs = deleted(up(machine(reclaim={}), node=node(annotations=requested())))
    target = _target(obs)
    assert (target.decider.value, target.manner) == ("Deleted", Manner.NOW)


def test_a_manner_never_loosens_within_one_removal() -> None:
    obs = with_status(leaving(), shutdown=shutdown(manner=Manner.NOW))
    assert _target(obs).manner is Manner.NOW


def test_nothing_is_wanted_of_a_request_on_a_node_that_is_somebody_elses() -> None:
    stranger = node(provider_id="metal://other", annotations=requested())
    assert _target(up(machine(reclaim={}), node=stranger)).up
    assert not _target(down(machine(reclaim={}), node=stranger)).up
