"""Paths of kinds and objects."""

import pytest

from fivespot.adapters.kube.discovery import resource_of, versions_of
from fivespot.adapters.kube.resources import LEASES, NODES, PODS, Resource

MACHINES = Resource("cluster.x-k8s.io", "v1beta2", "machines", "Machine", namespaced=True)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (NODES.path(), "/api/v1/nodes"),
        (NODES.path(None, "n1", "status"), "/api/v1/nodes/n1/status"),
        (NODES.path("ignored", "n1"), "/api/v1/nodes/n1"),
        (PODS.path(), "/api/v1/pods"),
        (PODS.path("ns"), "/api/v1/namespaces/ns/pods"),
        (PODS.path("ns", "p", "eviction"), "/api/v1/namespaces/ns/pods/p/eviction"),
        (MACHINES.path("ns", "m"), "/apis/cluster.x-k8s.io/v1beta2/namespaces/ns/machines/m"),
        (PODS.path("ns", "system:x"), "/api/v1/namespaces/ns/pods/system:x"),
        (PODS.path("ns", "a/../b?c#d"), "/api/v1/namespaces/ns/pods/a%2F..%2Fb%3Fc%23d"),
    ],
)
def test_a_path_is_where_the_server_has_it(path: str, expected: str) -> None:
    assert path == expected


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_would_reach_another_path_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be a name"):
        PODS.path("ns", name)
    with pytest.raises(ValueError, match="cannot be a name"):
        PODS.path(name, "p")


def test_an_object_in_namespaces_needs_one() -> None:
    with pytest.raises(ValueError, match="needs a namespace"):
        PODS.path(None, "p")


def test_a_sub_resource_needs_an_object() -> None:
    with pytest.raises(ValueError, match="needs the name"):
        PODS.path("ns", None, "status")


def test_labels_are_kubectls() -> None:
    assert (PODS.label, LEASES.label) == ("pods", "leases.coordination.k8s.io")
    assert (PODS.api_version, MACHINES.api_version) == ("v1", "cluster.x-k8s.io/v1beta2")


def test_the_preferred_version_comes_first() -> None:
    document = {
        "preferredVersion": {"version": "v2"},
        "versions": [{"version": "v1"}, {"version": "v2"}, {"version": "v1alpha1"}],
    }
    assert versions_of(document) == ["v2", "v1", "v1alpha1"]
    assert versions_of({"versions": ["v1"]}) == ["v1"]
    assert versions_of({"versions": [None, 1, {}], "preferredVersion": "x"}) == []


def test_a_sub_resource_is_no_kind() -> None:
    document = {
        "resources": [
            {"name": "machines/status", "kind": "Machine", "namespaced": True},
            {"name": "machines/scale", "kind": "Scale", "namespaced": True},
            {"name": "machines", "kind": "Machine", "namespaced": True},
        ]
    }
    assert resource_of(document, "cluster.x-k8s.io", "v1beta2", "Machine") == MACHINES
    assert resource_of(document, "cluster.x-k8s.io", "v1beta2", "Scale") is None
    assert resource_of({"resources": [None, {}]}, "g", "v1", "Machine") is None
