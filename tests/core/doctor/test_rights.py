"""What the controller is granted, what it asks for, and what a person is told to grant."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml

from fivespot.core.doctor.rights import CONTROLLER, EVERY_KIND, IN_CHILD, Right, of_kinds, of_secrets, told

DEPLOY = Path(__file__).parents[3] / "deploy"
PROVIDERS = "spotschedules.5spot.finos.org"


def granted(path: Path) -> Iterator[Right]:
    """Every right in the roles of a file, taken apart."""
    for document in yaml.safe_load_all(path.read_text()):
        if document["kind"] not in ("Role", "ClusterRole"):
            continue
        for rule in document["rules"]:
            yield from _of_rule(rule, document["metadata"].get("namespace"))


def _of_rule(rule: dict[str, Any], namespace: str | None) -> Iterator[Right]:
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                for name in rule.get("resourceNames", [""]):
                    yield Right(group=group, resource=resource, verb=verb, namespace=namespace, name=name)


@pytest.mark.parametrize(
    ("path", "rights"),
    [("controller/rbac.yaml", CONTROLLER), ("child-cluster/rbac.yaml", IN_CHILD)],
)
def test_the_shipped_roles_grant_exactly_what_is_listed(path: str, rights: tuple[Right, ...]) -> None:
    found = list(granted(DEPLOY / path))
    assert sorted(map(str, found)) == sorted(map(str, rights))


def test_no_right_has_a_wildcard_verb() -> None:
    assert {right.verb for right in (*CONTROLLER, *IN_CHILD)} <= {
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
