"""Create, replace and patch: what the real server checks, resets and counts, in its order."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace

from tests.fakeapi import definitions, ownership, validity
from tests.fakeapi.deleting import settle
from tests.fakeapi.kinds import CRD, NAMESPACE, POD
from tests.fakeapi.ownership import Manager, Shape
from tests.fakeapi.refusals import (
    Object,
    Refused,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    not_found,
)
from tests.fakeapi.world import Target, World

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SYSTEM = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds")
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


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
        why = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {uid}"
        raise conflict(target.kind.group, target.kind.plural, target.name, why)
    if old is None:
        return _create(world, target, item, who), True
    return _change(world, target, old, item, lambda new: _updated(world, target, old, new, who)), False


def patch(world: World, target: Target, make: Callable[[Object], Object], manager: str) -> Object:
    """PATCH by a function from the object, as it is read in this version, to the object as it shall be."""
    old = world.current(target)
    item = typed(target, make({**old, "apiVersion": target.api_version, "kind": target.kind.kind}))
    if item["metadata"].get("name") != target.name:
        raise _other_name(target, item["metadata"].get("name") or "")
    who = _manager(target, manager, "Update")
    return _change(world, target, old, item, lambda new: _updated(world, target, old, new, who))


def apply(world: World, target: Target, config: Object, manager: str, *, force: bool) -> tuple[Object, bool]:
    """Server-side apply: the object, and whether it is new."""
    kind = target.kind
    given = config.get("apiVersion") or "", config.get("kind") or ""
    if given != (target.api_version, kind.kind):
        group, _, version = given[0].rpartition("/")
        raise bad_request(f"invalid object type: {group}/{version}, Kind={given[1]}")
    config = typed(target, config)
    metadata = config["metadata"]
    if metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    if metadata.get("name", target.name) != target.name:
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
    return _change(world, target, old, item, lambda new: new), False


def typed(target: Target, body: Object) -> Object:
    """The body with the type that its path says, and the namespace.

    Raises:
        Refused: it says something else.
    """
    kind = target.kind
    if kind.custom and (lacking := {"apiVersion": "apiVersion", "kind": "Kind"}.keys() - body.keys()):
        raise bad_request(f"Object '{'Kind' if 'kind' in lacking else 'apiVersion'}' is missing")
    if (given := body.get("apiVersion") or target.api_version) != target.api_version:
        expected = target.api_version
        raise bad_request(
            f"the API version in the data ({given}) does not match the expected API version ({expected})"
        )
    if (given := body.get("kind") or kind.kind) != kind.kind:
        raise bad_request(f'{given} in version "{target.version}" cannot be handled as a {kind.kind}')
    item = {**body, "apiVersion": target.api_version, "kind": kind.kind}
    validity.decodes(kind, item)
    metadata = dict(item.get("metadata") or {})
    if kind.namespaced:
        if metadata.get("namespace", target.namespace) != target.namespace:
            raise bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        metadata["namespace"] = target.namespace
    elif metadata.pop("namespace", ""):
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    return {**item, "metadata": metadata}


def _create(world: World, target: Target, item: Object, who: Manager | None) -> Object:
    kind = target.kind
    _admit(world, target)
    metadata = {key: value for key, value in item["metadata"].items() if key not in _SYSTEM}
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
    if world.store.get(kind.label, target.key) is not None:
        raise already_exists(kind.group, kind.plural, target.name)
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


def _change(
    world: World, target: Target, old: Object, item: Object, manage: Callable[[Object], Object]
) -> Object:
    """Put a new state of an object into the place of the old one, if it is one."""
    kind, was, given = target.kind, old["metadata"], item["metadata"]
    version = given.get("resourceVersion") or ""
    if not version and not kind.unconditional:
        cause = validity.wrong("metadata.resourceVersion", 0, "must be specified for an update")
        raise invalid(kind.group, kind.plural, target.name, cause)
    if version and version != was["resourceVersion"]:
        raise conflict(kind.group, kind.plural, target.name, MODIFIED)
    new = manage(_prepared(target, old, item))
    _check_change(target, old, new)
    if _same(old, new):
        return old
    metadata = new["metadata"]
    ended = metadata.get("deletionTimestamp") and not metadata.get("finalizers")
    if ended and not metadata.get("deletionGracePeriodSeconds") and kind not in (NAMESPACE, CRD):
        world.store.remove(kind.label, target.key)
        stored = new
    else:
        stored = world.store.put(kind.label, target.key, new)
    if kind is CRD and new["spec"] != old["spec"]:
        definitions.redefined(world, stored)
    settle(world)
    return stored


def _prepared(target: Target, old: Object, item: Object) -> Object:
    """The new state with what this path may not change as it was, and the generation that follows."""
    kind, was = target.kind, old["metadata"]
    if target.subresource == "status" and kind.custom:
        new = {key: value for key, value in old.items() if key != "status"}
        new |= {"status": item["status"]} if "status" in item else {}
        managed = item["metadata"].get("managedFields")
        new["metadata"] = {**was, **({"managedFields": managed} if managed else {})}
        return new
    kept = (
        ("spec",) if target.subresource == "status" else ("status",) if target.version in kind.status else ()
    )
    new = {key: value for key, value in item.items() if key not in kept}
    new |= {key: old[key] for key in kept if key in old}
    # In one version at rest, whichever it was written in.
    new["apiVersion"] = old["apiVersion"]
    metadata = {key: value for key, value in item["metadata"].items() if key not in _SYSTEM or key == "uid"}
    metadata |= {key: was[key] for key in _SYSTEM if key in was and (key != "uid" or not metadata.get("uid"))}
    counted = ("spec",) if not kind.custom else tuple({*old, *new} - {"metadata", "apiVersion", "kind"})
    if kind.generation and any(old.get(key) != new.get(key) for key in counted):
        metadata["generation"] = was["generation"] + 1
    return {**new, "metadata": metadata}


def _check_change(target: Target, old: Object, new: Object) -> None:
    was, metadata = old["metadata"], new["metadata"]
    causes = []
    if metadata["uid"] != was["uid"]:
        causes.append(validity.wrong("metadata.uid", metadata["uid"], "field is immutable"))
    added = [f for f in metadata.get("finalizers") or [] if f not in (was.get("finalizers") or [])]
    if added and was.get("deletionTimestamp"):
        shown = ", ".join(f'"{finalizer}"' for finalizer in added)
        rule = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{shown}}}"
        causes.append(validity.banned("metadata.finalizers", rule))
    if target.kind is POD and old.get("spec") != new.get("spec"):
        before, after = ({**spec, "tolerations": None} for spec in (old["spec"], new.get("spec") or {}))
        if before != after:
            causes.append(validity.banned("spec", "pod updates may not change fields other than tolerations"))
    if causes:
        raise invalid(target.kind.group, target.kind.kind, target.name, *causes)
    validity.check(target.kind, new)


def _updated(world: World, target: Target, old: Object, new: Object, who: Manager) -> Object:
    shape = Shape(target.kind, target.version, strict=False)
    return ownership.updated(shape, old, new, who, world.now(), target.kind.reset(target.subresource))


def _same(old: Object, new: Object) -> bool:
    """Whether nothing changes but the instants of managedFields."""

    def timeless(item: Object) -> Object:
        lines = [{**line, "time": ""} for line in item["metadata"].get("managedFields") or []]
        return {**item, "metadata": {**item["metadata"], "managedFields": lines, "resourceVersion": ""}}

    return timeless(old) == timeless(new)


def _manager(target: Target, name: str, operation: str) -> Manager:
    return Manager(name, operation, target.api_version, target.subresource)


def _other_name(target: Target, name: str) -> Refused:
    return bad_request(f"the name of the object ({name}) does not match the name on the URL ({target.name})")


def _uid() -> str:
    text = secrets.token_hex(16)
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
