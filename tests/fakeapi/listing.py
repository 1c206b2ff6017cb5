"""Lists, in pages that all show one version."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any

from tests.fakeapi.refusals import NotUnderstood, Object, bad_request
from tests.fakeapi.selectors import selector
from tests.fakeapi.store import Key, list_expired
from tests.fakeapi.world import Target, World, shown


def page(world: World, target: Target, query: Mapping[str, str]) -> Object:
    """One page, or all of it when there is no limit."""
    if query.get("resourceVersion", "0") != "0":
        raise NotUnderstood("a list at a version")
    kind, store = target.kind, world.store
    wanted = selector(kind, query.get("labelSelector", ""), query.get("fieldSelector", ""))
    try:
        limit = int(query.get("limit", "0"))
    except ValueError as error:
        raise bad_request(str(error)) from error
    items, revision, start = store.items(kind.label), store.revision, None
    if token := query.get("continue"):
        start, version = _read(token)
        if version > 0:
            try:
                items, revision = store.page(kind.label, version), version
            except KeyError as error:
                raise list_expired(_write(start, -1)) from error
    found = [
        (key, item)
        for key, item in items
        if (not target.namespace or key[0] == target.namespace)
        and (start is None or key >= start)
        and wanted(item)
    ]
    metadata: Object = {"resourceVersion": str(revision)}
    if 0 < limit < len(found):
        store.keep_page(kind.label, items, revision)
        namespace, name = found[limit - 1][0]
        metadata["continue"] = _write((namespace, f"{name}\0"), revision)
        if not query.get("labelSelector") and not query.get("fieldSelector"):
            metadata["remainingItemCount"] = len(found) - limit
        found = found[:limit]
    return {
        "kind": f"{kind.kind}List",
        "apiVersion": target.api_version,
        "metadata": metadata,
        "items": [_listed(target, item) for _, item in found],
    }


def _listed(target: Target, item: Object) -> Object:
    if target.kind.custom:
        return shown(target, item)
    # A typed list says once what its items are.
    return {key: value for key, value in item.items() if key not in ("apiVersion", "kind")}


def _write(start: Key, version: int) -> str:
    token = {"v": "meta.k8s.io/v1", "rv": version, "start": "/".join(start)}
    return base64.urlsafe_b64encode(json.dumps(token).encode()).decode().rstrip("=")


def _read(token: str) -> tuple[Key, int]:
    try:
        found: Any = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        namespace, _, name = found["start"].rpartition("/")
        return (namespace, name), int(found["rv"])
    except (binascii.Error, ValueError, KeyError, TypeError) as error:
        raise bad_request(f"continue key is not valid: {error}") from error
