"""The bodies and queries of requests that every kind has in common."""

from collections.abc import Mapping
from typing import Any

from fivespot.adapters.kube.resources import Object, Resource


def typed(resource: Resource, body: Mapping[str, Any]) -> Object:
    """The object with apiVersion and kind, which server-side apply insists on."""
    return {"apiVersion": resource.api_version, "kind": resource.kind, **body}


def selectors(label: str | None, field: str | None) -> dict[str, str]:
    """The query of a list or a watch."""
    named = {"labelSelector": label, "fieldSelector": field}
    return {key: value for key, value in named.items() if value}


def delete_options(uid: str | None, grace_seconds: int | None) -> Object:
    """What a deletion or an eviction insists on: that it is this very object; and how long its end may take."""
    options: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if uid is not None:
        options["preconditions"] = {"uid": uid}
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    return options


def eviction(namespace: str, name: str, uid: str | None, grace_seconds: int | None) -> Object:
    """The body of the pod's sub-resource `eviction`."""
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
        "deleteOptions": delete_options(uid, grace_seconds),
    }
