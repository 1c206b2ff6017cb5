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
        raise bad_request(f'strconv.ParseInt: parsing "{query["limit"]}": invalid syntax') from error
    items, revision, start = store.items(kind.label), store.revision, None
    if token := query.get("continue"):
        start, version = _read(token)
        if version > 0:
            try:
                items, revision = store.page(kind.label, version), version
            except KeyError as error:
                raise list_expired(_write(start, -1)) from error
    here = [
        (key, item)
        for key, item in items
        if (not target.namespace or key[0] == target.namespace) and (start is None or key >= start)
    ]
    found: list[Object] = []
    metadata: Object = {"resourceVersion": str(revision)}
    if kind.custom:
        metadata["continue"] = ""
    for place, (key, item) in enumerate(here, 1):
        if wanted(item):
            found.append(item)
        # Whether any of the rest is wanted is found out by the next page.
        if len(found) == limit > 0 and place < len(here):
            store.keep_page(kind.label, items, revision)
            metadata["continue"] = _write((key[0], f"{key[1]}\0"), revision)
            if not query.get("labelSelector") and not query.get("fieldSelector"):
                metadata["remainingItemCount"] = len(here) - place
            break
    return {
        "kind": f"{kind.kind}List",
        "apiVersion": target.api_version,
        "metadata": metadata,
        "items": [_listed(target, item) for item in found],
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
        raise bad_request(f"invalid continue token: continue key is not valid: {error}") from error
