"""From a request to what it does to the world, and the answer; everything but streams, which take time."""

from __future__ import annotations

from collections.abc import Mapping
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
    label,
    unsupported_media_type,
)
from tests.fakeapi.requests import Asked
from tests.fakeapi.world import Target, World, shown

_JSON_PATCH = "application/json-patch+json"
_MERGE_PATCH = "application/merge-patch+json"
_STRATEGIC = "application/strategic-merge-patch+json"
_APPLY = "application/apply-patch+yaml"
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
        NotServed: the path leads nowhere.
    """
    kind = world.kinds.find(asked.group, asked.version, asked.resource)
    if kind is None or (asked.namespace and not kind.namespaced):
        raise NotServed
    if kind.namespaced and not asked.namespace and (asked.name or asked.verb == "create"):
        raise NotServed
    known = {"status"} if asked.version in kind.status else set()
    if asked.subresource and asked.subresource not in known | ({"eviction"} if kind is POD else set()):
        raise NotServed
    return Target(
        kind=kind,
        version=asked.version,
        namespace=asked.namespace,
        # Only of a creation does the name come from the body, which is read later.
        name=asked.name,
        subresource=asked.subresource,
    )


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
    if asked.subresource == "eviction":
        if asked.verb != "create":
            raise NotUnderstood(f"{asked.verb} of an eviction")
        return 201, evicting.evict(world, target, _body(content))
    match asked.verb:
        case "get":
            return 200, shown(target, world.current(target))
        case "list":
            return 200, listing.page(world, target, content.query)
        case "create":
            if asked.subresource:
                raise _no_such_method(asked)
            made = writing.create(world, _named(target, ""), _body(content), content.manager)
            return 201, shown(target, made)
        case "update":
            item, new = writing.put(world, target, _body(content), content.manager)
            return 201 if new else 200, shown(target, item)
        case "patch":
            item, new = _patch(world, target, content)
            return 201 if new else 200, shown(target, item)
        case "delete":
            if asked.subresource:
                raise _no_such_method(asked)
            answer = deleting.delete(world, target, _body(content) if content.body else {})
            return 200, answer if answer.get("kind") == "Status" else shown(target, answer)
    raise NotUnderstood(asked.verb)


def _patch(world: World, target: Target, content: Content) -> tuple[Object, bool]:
    if content.type == _STRATEGIC and not target.kind.custom:
        raise NotUnderstood("a strategic merge patch")
    accepted = [_JSON_PATCH, _MERGE_PATCH, *([] if target.kind.custom else [_STRATEGIC]), _APPLY]
    if content.type not in accepted:
        raise unsupported_media_type(accepted)
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
    patch = _json(content.body)
    if content.type == _JSON_PATCH:
        return writing.patch(
            world, target, lambda item: patches.operated(item, patch), content.manager
        ), False
    if not isinstance(patch, dict):
        raise bad_request(
            "error decoding patch: json: cannot unmarshal into Go value of type map[string]interface {}"
        )
    return writing.patch(world, target, lambda item: patches.merged(item, patch), content.manager), False


def _bad_option(cause: tuple[str, str, str]) -> Refused:
    return invalid("meta.k8s.io", "PatchOptions", "", cause)


def _no_such_method(asked: Asked) -> Refused:
    shown_name = label(asked.group, asked.resource)
    said = f"{asked.verb} is not supported on resources of kind {shown_name!r}"
    return Refused(405, "MethodNotAllowed", said, {"group": asked.group, "kind": asked.resource})


def _named(target: Target, name: str) -> Target:
    return Target(
        kind=target.kind, version=target.version, namespace=target.namespace, name=name, subresource=""
    )


def _body(content: Content) -> Object:
    if content.type != "application/json":
        raise unsupported_media_type(["application/json"])
    decoded = _json(content.body)
    if not isinstance(decoded, dict):
        raise bad_request("couldn't get version/kind; json parse error: json: cannot unmarshal into Go value")
    return decoded


def _json(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise bad_request(f"error decoding patch: {error}") from error


def _yaml(body: bytes) -> Object:
    try:
        return _mapping(msgspec.json.decode(body))
    except msgspec.DecodeError:
        pass
    try:
        return _mapping(yaml.safe_load(body))
    except yaml.YAMLError as error:
        raise bad_request(f"error decoding patch: {error}") from error


def _mapping(value: Any) -> Object:
    if not isinstance(value, dict):
        raise bad_request(
            "error decoding patch: cannot unmarshal into Go value of type map[string]interface {}"
        )
    return value
