"""Of which API groups machines may be made: the operator's lists, in the CRD and in what the controller reads."""

import re
from typing import Any

import pytest

from fivespot.core.api.admission import problems_of_document
from fivespot.core.api.allowed import DEFAULT_GROUPS, AllowedGroups
from fivespot.core.api.kinds import crd, kinds
from fivespot.core.errors import InvalidSpec
from fivespot.core.fleet import Fleet
from tests import builders
from tests.builders import changed

OWN = AllowedGroups(bootstrap=("boot.example.com",), infrastructure=("infra.example.com", "k0smotron.io"))


def made_of(bootstrap: str, infrastructure: str) -> dict[str, Any]:
    changes = {
        "spec.bootstrapSpec.apiVersion": f"{bootstrap}/v1",
        "spec.infrastructureSpec.apiVersion": f"{infrastructure}/v1",
    }
    return changed(builders.scheduled_machine(), changes)


def test_only_what_the_operator_lists_is_accepted() -> None:
    own = made_of("boot.example.com", "infra.example.com")
    assert problems_of_document(own, OWN) == ()
    assert [problem.field for problem in problems_of_document(own)] == [
        "spec.bootstrapSpec.apiVersion",
        "spec.infrastructureSpec.apiVersion",
    ]
    usual = made_of("bootstrap.cluster.x-k8s.io", "k0smotron.io")
    (problem,) = problems_of_document(usual, OWN)
    assert problem.field == "spec.bootstrapSpec.apiVersion"
    assert "must come from boot.example.com" in problem.remedy


def test_a_fleet_is_read_as_the_cluster_would_take_it() -> None:
    document = made_of("boot.example.com", "infra.example.com")
    (machine,) = Fleet.from_documents([document], allowed=OWN).machines
    assert machine.view.spec is not None
    assert machine.view.spec.infrastructure_spec.api_version == "infra.example.com/v1"
    assert Fleet.from_documents([document]).machines == ()


def test_the_crd_says_the_same() -> None:
    (machine,) = [crd(kind) for kind in kinds(OWN) if kind.name == "ScheduledMachine"]
    schema = machine["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    bootstrap = schema["bootstrapSpec"]["properties"]["apiVersion"]["pattern"]
    assert re.search(bootstrap, "boot.example.com/v1")
    for other in ("bootXexample.com/v1", "infra.example.com/v1", "boot.example.com.evil/v1", "apps/v1"):
        assert not re.search(bootstrap, other)


@pytest.mark.parametrize(
    "group", ["", "apps", "Example.com", "example.com/v1", ".com", "a..b", f"{'a' * 250}.com", "e.*"]
)
def test_what_is_no_group_with_a_dot_is_refused(group: str) -> None:
    with pytest.raises(InvalidSpec, match="write an API group with a dot"):
        AllowedGroups(bootstrap=(group,))


def test_a_group_that_gives_rights_away_is_refused() -> None:
    with pytest.raises(InvalidSpec, match="give rights away"):
        AllowedGroups(infrastructure=("rbac.authorization.k8s.io",))


def test_no_group_at_all_is_refused() -> None:
    with pytest.raises(InvalidSpec, match="at least one"):
        AllowedGroups(bootstrap=())


def test_a_group_in_both_lists_is_named_once() -> None:
    assert DEFAULT_GROUPS.every == (
        "bootstrap.cluster.x-k8s.io",
        "k0smotron.io",
        "infrastructure.cluster.x-k8s.io",
    )
