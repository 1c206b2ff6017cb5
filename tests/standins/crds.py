"""CRDs of the kinds that Cluster API and its providers would install, open but for their status sub-resource."""

import json
from typing import Any

from tests.controlplane.controlplane import ControlPlane

Kind = tuple[str, str, str, str]
"""Group, version, kind and plural."""

PROVIDERS: tuple[Kind, ...] = (
    ("bootstrap.cluster.x-k8s.io", "v1beta1", "K0sWorkerConfig", "k0sworkerconfigs"),
    ("infrastructure.cluster.x-k8s.io", "v1beta1", "RemoteMachine", "remotemachines"),
)
KINDS: tuple[Kind, ...] = (
    ("cluster.x-k8s.io", "v1beta2", "Cluster", "clusters"),
    ("cluster.x-k8s.io", "v1beta2", "Machine", "machines"),
    *PROVIDERS,
)
CLUSTERS: tuple[Kind, ...] = (
    ("infrastructure.cluster.x-k8s.io", "v1beta1", "RemoteCluster", "remoteclusters"),
    ("controlplane.cluster.x-k8s.io", "v1beta1", "K0sControlPlane", "k0scontrolplanes"),
)
"""What a Cluster refers to, where there is a real Cluster API to look at it. Nobody reconciles them: a status can be created."""
CONTRACT = "v1beta2"
"""The contract with Cluster API that the stand-ins for its providers keep."""


def crd(group: str, version: str, kind: str, plural: str, *, status: bool = True) -> dict[str, Any]:
    """One open CRD; `status` says whether the status is a sub-resource."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            # How Cluster API finds out in which version it may speak of a provider's kind.
            "labels": {f"cluster.x-k8s.io/{CONTRACT}": version},
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
                    "subresources": {"status": {}} if status else {},
                    "schema": {
                        "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                    },
                }
            ],
        },
    }


def install(plane: ControlPlane, kinds: tuple[Kind, ...] = KINDS) -> None:
    """Install them, and wait until they are served."""
    items = [crd(*kind, status=kind not in CLUSTERS) for kind in kinds]
    plane.kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    names = [f"crd/{plural}.{group}" for group, _, _, plural in kinds]
    plane.kubectl("wait", "--for=condition=Established", "--timeout=30s", *names)
