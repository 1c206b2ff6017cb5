"""What belongs to a machine, and what is never touched."""

from typing import Any

import attrs
import pytest

from fivespot.core.api.common import ObjectReference
from fivespot.core.decision.actions import AdoptOwner
from fivespot.core.decision.observation import Observation
from tests.core.decision.observations import (
    GONE,
    actions,
    bootstrap,
    capi,
    down,
    infrastructure,
    kinds,
    leaving,
    leaving_now,
    look,
    machine,
    node,
    pod,
    provider,
    reason,
    standing,
    up,
    with_status,
)


def _bare(uid: str = "uid-capi") -> Any:
    """A Machine that lost label and owner."""
    return capi(uid, ours=False)


def test_an_object_that_status_recorded_is_ours_whatever_it_lost() -> None:
    assert look(up(capi_machine=_bare())).status.phase == "Active"


def test_an_object_of_our_name_that_status_does_not_know_and_that_is_not_marked_is_not() -> None:
    made = look(up(capi_machine=_bare("uid-other"), bootstrap=GONE, infrastructure=GONE))
    assert made.status.phase == "Pending"
    assert made.groups == ()


@pytest.mark.parametrize("labels", [{}, {"5spot.finos.org/scheduled-machine": "another"}])
def test_an_owner_without_our_label_is_not_enough(labels: dict[str, str]) -> None:
    made = look(down(provider=provider(), capi_machine=capi(labels=labels)))
    assert reason(made) == "NameConflict"


def test_what_a_machine_of_ours_refers_to_is_ours() -> None:
    obs = leaving(
        bootstrap=bootstrap(ours=False),
        infrastructure=infrastructure(ours=False),
        capi_machine=capi(deleting=True),
    )
    status = look(with_status(obs, bootstrap_ref=None, infrastructure_ref=None)).status
    assert (status.bootstrap_ref.uid, status.infrastructure_ref.uid) == (
        "uid-bootstrap",
        "uid-infrastructure",
    )  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "obs",
    [
        down(capi_machine=_bare()),
        down(bootstrap=bootstrap(ours=False)),
        down(infrastructure=infrastructure(ours=False)),
    ],
)
def test_a_strangers_object_is_nothing_to_remove(obs: Observation) -> None:
    made = look(obs)
    assert (made.groups, made.status.phase) == ((), "Inactive")


@pytest.mark.parametrize(
    "obs", [leaving_now(capi_machine=_bare("uid-other")), leaving(capi_machine=_bare("uid-other"))]
)
def test_a_stranger_that_took_our_name_is_not_deleted_with_us(obs: Observation) -> None:
    obs = attrs.evolve(obs, bootstrap=GONE, infrastructure=GONE)
    assert look(obs).groups == ()


def test_a_removal_goes_by_what_was_seen_and_not_by_what_the_spec_says_now() -> None:
    obs = leaving(pod(), capi_machine=capi(deleting=True))
    other = machine(
        obs.machine.status,
        infrastructureSpec={
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "Other",
            "spec": {},
        },
    )
    gone = attrs.evolve(obs, machine=other, capi_machine=GONE, infrastructure=infrastructure())
    (deletion,) = actions(look(gone))
    assert deletion.target == ObjectReference(  # type: ignore[union-attr]
        api_version="infrastructure.cluster.x-k8s.io/v1beta1",
        kind="RemoteMachine",
        name="desk-042",
        uid="uid-infrastructure",
    )


# Restored from a backup


def test_every_owner_that_a_restore_brought_back_is_put_right_before_anything_else() -> None:
    obs = leaving_now(
        capi_machine=capi(owner="old"),
        infrastructure=infrastructure(owner="old"),
        bootstrap=bootstrap(owner="old"),
    )
    made = look(obs)
    assert kinds(made) == ["AdoptOwner machine", "AdoptOwner infrastructure", "AdoptOwner bootstrap"]
    assert made.status == obs.machine.status
    for action in actions(made):
        assert isinstance(action, AdoptOwner)
        assert (bool(action.target.uid), action.resource_version) == (True, "11")


def test_a_fleet_restored_without_status_goes_on_running() -> None:
    made = look(standing(capi_machine=capi(owner="old"), provider=GONE))
    assert kinds(made) == ["AdoptOwner machine"]
    made = look(standing(provider=GONE))
    assert made.status.phase == "Active"


def test_a_strangers_owner_is_not_put_right() -> None:
    assert "AdoptOwner machine" not in kinds(look(down(capi_machine=capi(ours=False))))


# Whose Node


def test_a_node_with_another_provider_id_is_somebody_elses() -> None:
    made = look(up(node=node(provider_id="metal://other")))
    assert (made.groups, made.status.ready) == ((), False)


def test_whether_a_node_is_ours_cannot_be_told_before_the_machine_has_a_provider_id() -> None:
    made = look(standing(capi_machine=capi(provider_id="")))
    assert (reason(made), made.status.node_ref) == ("NoNodeYet", None)
