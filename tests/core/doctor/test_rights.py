"""What the controller is granted, what it asks for, and what a person is told to grant."""

import itertools
from collections.abc import Iterator

import attrs
import pytest

from fivespot.core.api.allowed import DEFAULT_GROUPS, AllowedGroups
from fivespot.core.doctor.rights import EVERY_KIND, IN_CHILD, Right, controller, of_kinds, of_secrets, told
from tests.faults.roles import rights

PROVIDERS = "spotschedules.5spot.finos.org"


def granted(cluster: str) -> Iterator[Right]:
    """Every right in the shipped roles, taken apart."""
    for rule in rights():
        if rule.cluster == cluster:
            for group, resource, name in itertools.product(rule.groups, rule.resources, rule.names or ("",)):
                yield Right(
                    group=group,
                    resource=resource,
                    verb=rule.verb,
                    namespace=rule.namespace or None,
                    name=name,
                )


@pytest.mark.parametrize(
    ("cluster", "listed"),
    [("management", controller(DEFAULT_GROUPS)), ("child", IN_CHILD)],
)
def test_the_shipped_roles_grant_exactly_what_is_listed(cluster: str, listed: tuple[Right, ...]) -> None:
    found = list(granted(cluster))
    assert sorted(map(str, found)) == sorted(map(str, listed))


def test_no_right_has_a_wildcard_verb() -> None:
    assert {right.verb for right in (*controller(DEFAULT_GROUPS), *IN_CHILD)} <= {
        *("get", "list", "watch", "create", "update", "patch", "delete")
    }


def test_rights_on_every_kind_of_a_group_are_asked_for_those_in_use() -> None:
    every = Right(group=PROVIDERS, resource=EVERY_KIND, verb="watch")
    other = Right(group="k0smotron.io", resource=EVERY_KIND, verb="create")
    plain = Right(group="", resource="secrets", verb="list")
    kinds = [(PROVIDERS, "timebasedspotschedules"), (PROVIDERS, "manualspotschedules")]
    assert of_kinds([every, other, plain], kinds) == (
        attrs.evolve(every, resource="manualspotschedules"),
        attrs.evolve(every, resource="timebasedspotschedules"),
        plain,
    )


def test_what_is_missing_on_one_resource_is_one_rule_to_write() -> None:
    status = Right(group="5spot.finos.org", resource="scheduledmachines/status", verb="patch")
    nodes = Right(group="", resource="nodes", verb="patch")
    lease = Right(
        group="coordination.k8s.io",
        resource="leases",
        verb="update",
        namespace="5spot-system",
        name="5spot-leader",
    )
    assert told([status, nodes, attrs.evolve(nodes, verb="delete"), lease]) == (
        (
            "may not patch scheduledmachines.5spot.finos.org/status",
            "grant it in a ClusterRole: apiGroups: [5spot.finos.org], resources: [scheduledmachines/status], verbs: [patch]",
        ),
        (
            "may not patch, delete nodes",
            'grant it in a ClusterRole: apiGroups: [""], resources: [nodes], verbs: [patch, delete]',
        ),
        (
            "may not update leases.coordination.k8s.io 5spot-leader in namespace 5spot-system",
            "grant it in a Role in namespace 5spot-system: apiGroups: [coordination.k8s.io], resources: [leases], verbs: [update], resourceNames: [5spot-leader]",
        ),
    )


def test_secrets_are_asked_for_one_by_one() -> None:
    """A site may have granted these by name, in a Role of each namespace, and no others."""
    listed = Right(group="", resource="secrets", verb="list")
    nodes = Right(group="", resource="nodes", verb="list")
    assert of_secrets([listed, nodes], [("b", "grid-kubeconfig"), ("a", "own")]) == (
        attrs.evolve(listed, namespace="a", name="own"),
        attrs.evolve(listed, namespace="b", name="grid-kubeconfig"),
        nodes,
    )


def test_kinds_of_another_group_need_the_same_rights() -> None:
    allowed = AllowedGroups(infrastructure=("infra.example.com",))
    of_group = [right for right in controller(allowed) if right.group == "infra.example.com"]
    assert [right.verb for right in of_group] == ["get", "list", "watch", "create", "patch", "delete"]
    assert not [right for right in controller(allowed) if right.group == "infrastructure.cluster.x-k8s.io"]
