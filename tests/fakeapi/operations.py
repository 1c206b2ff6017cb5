"""From a request to what it does to the world, and the answer; everything but streams, which take time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import yaml

from tests.fakeapi import deleting, discovery, evicting, listing, patches, writing
from tests.fakeapi.kinds import POD
from tests.fakeapi.refusals import (
    NotServed,
    NotUnderstood,
    Object,
    Refused,
    bad_request,
    invalid,
    method_not_allowed,
    no_such_path,
    not_found,
    unrecognized,
    unsupported_media_type,
)
from tests.fakeapi.requests import Asked
from tests.fakeapi.world import Target, World, shown

_JSON_PATCH = "application/json-patch+json"
_MERGE_PATCH = "application/merge-patch+json"
_STRATEGIC = "application/strategic-merge-patch+json"
_APPLY = "application/apply-patch+yaml"
_PATCHES = (_JSON_PATCH, _MERGE_PATCH, _APPLY)
_BODIES = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
_LIMIT = 3 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The rest of a request: query, body, and who says that they are writing."""

    query: Mapping[str, str]
    body: bytes
    type: str
    agent: str

    @property
    def manager(self) -> str:
        """The field manager: as the query names it, else the client's program."""
        return self.query.get("fieldManager") or self.agent.partition("/")[0] or "unknown"


def target_of(world: World, asked: Asked) -> Target:
    """What a request is about, among the kinds that are served.

    Raises:
        Refused, NotServed: the path leads nowhere.
    """
    kind = world.kinds.find(asked.group, asked.version, asked.resource)
    if kind is None or (asked.namespace and not kind.namespaced):
        raise _nowhere(world, asked.group)
    if kind.namespaced and not asked.namespace and not asked.collection:
        raise _nowhere(world, asked.group)
    if asked.collection != (asked.verb in ("list", "watch", "create") and not asked.subresource):
        raise method_not_allowed()
    if asked.verb == "create" and kind.namespaced and not asked.namespace:
        raise method_not_allowed()
    known = {"status"} if asked.version in kind.status else set()
    if asked.subresource and asked.subresource not in known | ({"eviction"} if kind is POD else set()):
        raise not_found(kind.group, kind.plural, asked.name) if kind.custom else no_such_path()
    return Target(
        kind=kind,
        version=asked.version,
        namespace=asked.namespace,
        # A creation's name is its body's.
        name="" if asked.collection else asked.name,
        subresource=asked.subresource,
    )


def _nowhere(world: World, group: str) -> Exception:
    """A built-in group answers for its paths itself; for the others a web server does."""
    built_in = any(kind.group == group and not kind.custom for kind in world.kinds)
    return no_such_path() if built_in else NotServed()


def perform(world: World, asked: Asked, content: Content) -> tuple[int, Object]:
    """Do what is asked: the HTTP code, and the answer.

    Raises:
        Refused, NotServed: the answer is another.
        NotUnderstood: it is not known what the answer would be.
    """
    if asked.is_document:
        if asked.verb != "get":
            raise NotUnderstood(f"{asked.verb} of {asked.resource}")
        return 200, discovery.document(world.kinds, asked.resource)
    target = target_of(world, asked)
    if len(content.body) > _LIMIT:
        raise Refused(413, "RequestEntityTooLarge", f"Request entity too large: limit is {_LIMIT}", {})
    if asked.subresource and asked.verb in ("create", "delete"):
        if asked.subresource != "eviction" or asked.verb != "create":
            raise method_not_allowed()
        return 201, evicting.evict(world, target, _body(target, content))
    if asked.subresource == "eviction":
        raise method_not_allowed()
    return _OPERATIONS[asked.verb](world, target, content)


def _get(world: World, target: Target, content: Content) -> tuple[int, Object]:
    return 200, shown(target, world.current(target))


def _list(world: World, target: Target, content: Content) -> tuple[int, Object]:
    return 200, listing.page(world, target, content.query)


def _create(world: World, target: Target, content: Content) -> tuple[int, Object]:
    return 201, shown(target, writing.create(world, target, _body(target, content), content.manager))


def _update(world: World, target: Target, content: Content) -> tuple[int, Object]:
    item, new = writing.put(world, target, _body(target, content), content.manager)
    return 201 if new else 200, shown(target, item)


def _delete(world: World, target: Target, content: Content) -> tuple[int, Object]:
    answer = deleting.delete(world, target, _body(target, content) if content.body else {})
    return 200, answer if answer.get("kind") == "Status" else shown(target, answer)


def _changed(world: World, target: Target, content: Content) -> tuple[int, Object]:
    item, new = _patch(world, target, content)
    return 201 if new else 200, shown(target, item)


_OPERATIONS: dict[str, Callable[[World, Target, Content], tuple[int, Object]]] = {
    "get": _get,
    "list": _list,
    "create": _create,
    "update": _update,
    "patch": _changed,
    "delete": _delete,
}


def _patch(world: World, target: Target, content: Content) -> tuple[Object, bool]:
    if content.type == _STRATEGIC and not target.kind.custom:
        raise NotUnderstood("a strategic merge patch")
    if content.type not in _PATCHES:
        if target.kind.custom:
            raise unsupported_media_type(_PATCHES)
        raise Refused(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    if content.type == _APPLY:
        if "fieldManager" not in content.query:
            raise _bad_option(
                ("FieldValueRequired", "fieldManager", "Required value: is required for apply patch")
            )
        force = content.query.get("force", "false") in ("true", "1")
        return writing.apply(world, target, _yaml(content.body), content.manager, force=force)
    if "force" in content.query:
        rule = "Forbidden: may not be specified for non-apply patch"
        raise _bad_option(("FieldValueForbidden", "force", rule))
    try:
        patch = msgspec.json.decode(content.body)
    except msgspec.DecodeError as error:
        raise bad_request("invalid JSON patch") from error
    if content.type == _JSON_PATCH:
        return writing.patch(
            world, target, lambda item: patches.operated(item, patch), content.manager
        ), False
    if not isinstance(patch, dict):
        found = "array" if isinstance(patch, list) else "value"
        said = f"json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
        raise bad_request(f"error decoding patch: {said}")
    return writing.patch(world, target, lambda item: patches.merged(item, patch), content.manager), False


def _bad_option(cause: tuple[str, str, str]) -> Refused:
    return invalid("meta.k8s.io", "PatchOptions", "", cause)


def _body(target: Target, content: Content) -> Object:
    if content.type != "application/json":
        raise unsupported_media_type(_BODIES)
    try:
        decoded = msgspec.json.decode(content.body)
    except msgspec.DecodeError as error:
        raise unrecognized(
            target.kind.kind, f"couldn't get version/kind; json parse error: {error}"
        ) from error
    if not isinstance(decoded, dict):
        raise unrecognized(
            target.kind.kind, "couldn't get version/kind; json parse error: json: cannot unmarshal"
        )
    return decoded


def _yaml(body: bytes) -> Object:
    try:
        decoded: Any = msgspec.json.decode(body)
    except msgspec.DecodeError:
        try:
            decoded = yaml.safe_load(body)
        except yaml.YAMLError as error:
            raise bad_request(f"error decoding patch: error converting YAML to JSON: {error}") from error
    if not isinstance(decoded, dict):
        raise bad_request(
            "error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal"
        )
    return decoded
