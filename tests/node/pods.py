"""Manifests of pods that a real node runs: the image is there, and what a pod does is said in a line of shell."""

from __future__ import annotations

from typing import Any

from tests.node import images

ENDS_AT_ONCE = "trap 'exit 0' TERM; sleep 1000000 & wait"
"""As a well-behaved server: it ends when it is told to."""

NEVER_ENDS = "trap '' TERM; while :; do sleep 1000000; done"
"""Its grace period passes, and it is killed."""


def pod(
    namespace: str,
    name: str,
    node: str | None = None,
    *,
    does: str = ENDS_AT_ONCE,
    grace: int = 30,
    container: dict[str, Any] | None = None,
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A pod of one container on a node, or wherever a scheduler puts it; `spec` and `container` replace or add fields."""
    placed = {"nodeName": node} if node is not None else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
        "spec": placed
        | {
            "containers": [main(does) | (container or {})],
            "terminationGracePeriodSeconds": grace,
            # It gets no token, and so needs no ServiceAccount, nor a network that leads to the API server.
            "automountServiceAccountToken": False,
        }
        | spec,
    }


def main(does: str) -> dict[str, Any]:
    """The container."""
    return {
        "name": "main",
        "image": images.NAME,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", does],
    }
