"""Create, replace and patch: what the real server checks, resets and counts, in its order."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace

from tests.fakeapi import definitions, ownership, schemas, validity
from tests.fakeapi.changing import SYSTEM, change
from tests.fakeapi.fields import Shape
from tests.fakeapi.kinds import CRD
from tests.fakeapi.ownership import Manager
from tests.fakeapi.refusals import (
    Object,
    Refused,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    not_found,
    patch_makes_no_object,
    precondition_failed,
    unrecognized,
)
from tests.fakeapi.world import Target, World

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def create(world: World, target: Target, body: Object, manager: str) -> Object:
    """POST."""
    item = typed(target, body)
    metadata = item["metadata"]
    name = metadata.get("name") or ""
    if not name and (prefix := metadata.get("generateName")):
        name = prefix + "".join(secrets.choice(_ALPHABET) for _ in range(5))
    if metadata.get("resourceVersion"):
        raise Refused(500, "", "resourceVersion should not be set on objects to be created")
    item = {**item, "metadata": {**metadata, "name": name} if name else metadata}
    target = replace(target, name=name)
    return _create(world, target, item, _manager(target, manager, "Update"))


def put(world: World, target: Target, body: Object, manager: str) -> tuple[Object, bool]:
    """PUT: the object, and whether it is new."""
    item = typed(target, body)
    metadata = item["metadata"]
    if not metadata.get("name"):
        raise bad_request("name must be provided")
    if metadata["name"] != target.name:
        raise _other_name(target, metadata["name"])
    who = _manager(target, manager, "Update")
    old = world.store.get(target.kind.label, target.key)
    if old is None and (target.subresource or not target.kind.created_on_update):
        raise not_found(target.kind.group, target.kind.plural, target.name)
    uid = "" if old is None else old["metadata"]["uid"]
    if (wanted := metadata.get("uid")) and wanted != uid:
        raise precondition_failed(target.kind.group, target.kind.plural, _storage_key(target), wanted, uid)
    if old is None:
        return _create(world, target, item, who), True
    return change(world, target, old, item, lambda new: _updated(world, target, old, new, who)), False


def patch(world: World, target: Target, make: Callable[[Object], Object], manager: str) -> Object:
    """PATCH by a function from the object, as it is read in this version, to the object as it shall be."""
    old = world.current(target)
    made = make({**old, "apiVersion": target.api_version, "kind": target.kind.kind})
    try:
        item = typed(target, made)
    except Refused as refused:
        if target.kind.custom or "namespace" in refused.status["message"]:
            raise
        raise patch_makes_no_object(refused.status["message"]) from refused
    if item["metadata"].get("name") != target.name:
        raise _other_name(target, item["metadata"].get("name") or "")
    who = _manager(target, manager, "Update")
    return change(world, target, old, item, lambda new: _updated(world, target, old, new, who))


def apply(world: World, target: Target, config: Object, manager: str, *, force: bool) -> tuple[Object, bool]:
    """Server-side apply: the object, and whether it is new."""
    kind = target.kind
    given = config.get("apiVersion") or "", config.get("kind") or ""
    if given != (target.api_version, kind.kind):
        group, _, version = given[0].rpartition("/")
        raise bad_request(f"invalid object type: {group}/{version}, Kind={given[1]}")
    config = typed(target, config)
    metadata = dict(config["metadata"])
    if metadata.pop("managedFields", None) is not None:
        raise bad_request("metadata.managedFields must be nil")
    if not metadata.get("name"):
        said = (
            f"the name of the object ({target.name} based on URL) was undeterminable: name must be provided"
        )
        raise bad_request(said)
    if metadata["name"] != target.name:
        raise _other_name(target, metadata["name"])
    who = _manager(target, manager, "Apply")
    shape, reset = Shape(kind, target.version, strict=True), kind.reset(target.subresource)
    old = world.store.get(kind.label, target.key)
    if old is None:
        if target.subresource:
            raise not_found(kind.group, kind.plural, target.name)
        if metadata.get("uid"):
            why = f"uid mismatch: the provided object specified uid {metadata['uid']}, and no existing object was found"
            raise conflict(kind.group, kind.plural, target.name, why)
        metadata = {**metadata, "name": target.name}
        empty = {"apiVersion": target.api_version, "kind": kind.kind, "metadata": {}}
        item = ownership.applied(shape, empty, config, who, world.now(), reset, force=force)
        item = {**item, "metadata": {**item["metadata"], **metadata}}
        return _create(world, target, item, None), True
    live = {**old, "apiVersion": target.api_version, "kind": kind.kind}
    item = ownership.applied(shape, live, config, who, world.now(), reset, force=force)
    asked = {name: metadata[name] for name in ("uid", "resourceVersion") if metadata.get(name)}
    item = {**item, "metadata": {**item["metadata"], **asked}}
    return change(world, target, old, item, lambda new: new), False


def typed(target: Target, body: Object) -> Object:
    """The body with the type that its path says, and the namespace.

    Raises:
        Refused: it says something else.
    """
    kind = target.kind
    if kind.custom and (lacking := [name for name in ("kind", "apiVersion") if not body.get(name)]):
        raise unrecognized(kind.kind, f"Object '{lacking[0].capitalize()}' is missing")
    version, name = body.get("apiVersion") or target.api_version, body.get("kind") or kind.kind
    if not kind.custom and (version, name) != (target.api_version, kind.kind):
        raise bad_request(
            f'{name} in version "{version.rpartition("/")[2]}" cannot be handled as a {kind.kind}'
        )
    if version != target.api_version:
        expected = target.api_version
        raise bad_request(
            f"the API version in the data ({version}) does not match the expected API version ({expected})"
        )
    item = {**body, "apiVersion": version, "kind": name}
    validity.decodes(kind, item)
    metadata = dict(item.get("metadata") or {})
    if kind.namespaced:
        if (metadata.get("namespace") or target.namespace) != target.namespace:
            raise bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        metadata["namespace"] = target.namespace
    else:
        metadata.pop("namespace", None)
    return schemas.shaped(kind, target.version, {**item, "metadata": metadata})


def _create(world: World, target: Target, item: Object, who: Manager | None) -> Object:
    kind = target.kind
    _admit(world, target)
    metadata = {key: value for key, value in item["metadata"].items() if key not in SYSTEM}
    metadata.pop("resourceVersion", None)
    if kind.generation:
        metadata["generation"] = 1
    metadata |= {"uid": _uid(), "creationTimestamp": world.now()}
    gone = () if kind.created_with_status or target.version not in kind.status else ("status",)
    item = {key: value for key, value in item.items() if key not in gone} | {"metadata": metadata}
    if who is not None:
        metadata.pop("managedFields", None)
        shape = Shape(kind, target.version, strict=False)
        item = ownership.updated(shape, None, item, who, world.now(), kind.reset(""))
    item = validity.completed(kind, item) if metadata.get("name") else item
    validity.check(kind, item)
    schemas.check(kind, target.version, item)
    if (taken := world.store.get(kind.label, target.key)) is not None:
        going = bool(taken["metadata"].get("deletionTimestamp"))
        raise already_exists(kind.group, kind.plural, target.name, going=going)
    stored = world.store.put(kind.label, target.key, item)
    if kind is CRD:
        definitions.defined(world, target, stored)
    return stored


def _admit(world: World, target: Target) -> None:
    """What admission says about a place for a new object."""
    kind = target.kind
    if kind.namespaced:
        if (home := world.namespace(target.namespace)) is None:
            raise not_found("", "namespaces", target.namespace)
        if home["metadata"].get("deletionTimestamp"):
            why = (
                f"unable to create new content in namespace {target.namespace} because it is being terminated"
            )
            said = f"namespace {target.namespace} is being terminated"
            causes = [("NamespaceTerminating", "metadata.namespace", said)]
            raise forbidden(kind.group, kind.plural, target.name, why, causes)
    if kind.custom and (world.definition(kind) or {"metadata": {}})["metadata"].get("deletionTimestamp"):
        why = "create not allowed while custom resource definition is terminating"
        raise forbidden(kind.group, kind.plural, target.name, why)


def _updated(world: World, target: Target, old: Object, new: Object, who: Manager) -> Object:
    shape = Shape(target.kind, target.version, strict=False)
    return ownership.updated(shape, old, new, who, world.now(), target.kind.reset(target.subresource))


def _manager(target: Target, name: str, operation: str) -> Manager:
    return Manager(name, operation, target.api_version, target.subresource)


def _other_name(target: Target, name: str) -> Refused:
    return bad_request(f"the name of the object ({name}) does not match the name on the URL ({target.name})")


def _storage_key(target: Target) -> str:
    kind = target.kind
    parts = ["/registry", kind.group if kind.custom else "", kind.plural, target.namespace, target.name]
    return "/".join(part for part in parts if part)


def _uid() -> str:
    text = secrets.token_hex(16)
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
