"""CRDs of the kinds that Cluster API and its providers would install, open but for their status sub-resource."""

import json
from typing import Any

from tests.controlplane.controlplane import ControlPlane

KINDS = (
    ("cluster.x-k8s.io", "v1beta2", "Cluster", "clusters"),
    ("cluster.x-k8s.io", "v1beta2", "Machine", "machines"),
    ("bootstrap.cluster.x-k8s.io", "v1beta1", "K0sWorkerConfig", "k0sworkerconfigs"),
    ("infrastructure.cluster.x-k8s.io", "v1beta1", "RemoteMachine", "remotemachines"),
)


def crd(group: str, version: str, kind: str, plural: str) -> dict[str, Any]:
    """One open CRD."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            # Without this the API server keeps the group, *.x-k8s.io being its own, for approved APIs only.
            "annotations": {"api-approved.kubernetes.io": "https://example.com/stand-in"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {
                        "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                    },
                }
            ],
        },
    }


def install(plane: ControlPlane) -> None:
    """Install them, and wait until they are served."""
    items = [crd(*kind) for kind in KINDS]
    plane.kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    names = [f"crd/{plural}.{group}" for group, _, _, plural in KINDS]
    plane.kubectl("wait", "--for=condition=Established", "--timeout=30s", *names)
