"""The custom kinds that the contract is about: those we ship, those we stand in for, and two of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from fivespot.adapters.kube.resources import Resource
from tests.standins.crds import KINDS, crd

GROUP = "contract.5spot.test"

WIDGETS = Resource(GROUP, "v1", "widgets", "Widget", namespaced=True)
"""Served as v1 and v1beta1, with a status sub-resource."""
OLD_WIDGETS = Resource(GROUP, "v1beta1", "widgets", "Widget", namespaced=True)
BEACONS = Resource(GROUP, "v1alpha1", "beacons", "Beacon", namespaced=False)
"""Cluster-wide, and its status is a field like any other."""

_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_NAMED = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string"}, "value": {"type": "string"}, "more": {"type": "string"}},
}
_SPEC = {
    **_OPEN,
    "properties": {
        "size": {"type": "integer"},
        "parts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": _NAMED,
        },
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "order": {"type": "array", "items": {"type": "string"}},
    },
}
_SCHEMA = {"openAPIV3Schema": {"type": "object", "properties": {"spec": _SPEC, "status": _OPEN}}}


def definition(
    group: str, plural: str, kind: str, scope: str, versions: list[dict[str, Any]]
) -> dict[str, Any]:
    """A CustomResourceDefinition; of the versions, name, `served`, `storage` and `subresources`."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "versions": [
                {"schema": _SCHEMA, "served": True, "storage": True, **version} for version in versions
            ],
        },
    }


_STATUS: dict[str, Any] = {"subresources": {"status": {}}}
_OURS = [
    definition(
        GROUP,
        "widgets",
        "Widget",
        "Namespaced",
        [
            {"name": "v1alpha1", "served": False, "storage": False},
            {"name": "v1beta1", "storage": False, **_STATUS},
            {"name": "v1", **_STATUS},
        ],
    ),
    definition(GROUP, "beacons", "Beacon", "Cluster", [{"name": "v1alpha1"}]),
]
_SHIPPED = [
    yaml.safe_load(path.read_text())
    for path in sorted((Path(__file__).parents[2] / "deploy" / "crds").glob("*.yaml"))
]
CRDS: list[dict[str, Any]] = [*_OURS, *_SHIPPED, *(crd(*kind) for kind in KINDS)]
