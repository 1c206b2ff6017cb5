"""Put a new state into the place of an old one: what is reset, counted and refused on the way."""

from __future__ import annotations

from collections.abc import Callable

from tests.fakeapi import definitions, schemas, validity
from tests.fakeapi.deleting import settle
from tests.fakeapi.kinds import CRD, NAMESPACE, POD
from tests.fakeapi.refusals import Object, Refused, conflict, invalid
from tests.fakeapi.world import Target, World

SYSTEM = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds")
"""Metadata that is the server's own."""
_MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def change(
    world: World, target: Target, old: Object, item: Object, manage: Callable[[Object], Object]
) -> Object:
    """Put a new state of an object into the place of the old one, if it is one."""
    kind, was, given = target.kind, old["metadata"], item["metadata"]
    version = given.get("resourceVersion") or ""
    if not version and not kind.unconditional:
        cause = validity.wrong("metadata.resourceVersion", 0, "must be specified for an update")
        raise invalid(kind.group, kind.plural, target.name, cause)
    if not version.isdecimal() and version:
        raise Refused(500, "", f'strconv.ParseUint: parsing "{version}": invalid syntax')
    if version and version != was["resourceVersion"]:
        raise conflict(kind.group, kind.plural, target.name, _MODIFIED)
    new = manage(_prepared(target, old, item))
    _check_change(target, old, new, item["metadata"])
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
    metadata = {key: value for key, value in item["metadata"].items() if key not in SYSTEM}
    metadata |= {key: was[key] for key in ("name", *SYSTEM) if key in was}
    counted = ("spec",) if not kind.custom else tuple({*old, *new} - {"metadata", "apiVersion", "kind"})
    if kind.generation and any(old.get(key) != new.get(key) for key in counted):
        metadata["generation"] = was["generation"] + 1
    return {**new, "metadata": metadata}


def _check_change(target: Target, old: Object, new: Object, given: Object) -> None:
    was, metadata = old["metadata"], new["metadata"]
    fixed = ("uid", *(() if was.get("deletionTimestamp") else ("deletionTimestamp",)))
    # A custom kind's status takes nothing else from what is given.
    causes = [
        validity.wrong(f"metadata.{field}", given[field], "field is immutable")
        for field in fixed
        if given.get(field)
        and given[field] != was.get(field)
        and not (target.subresource and target.kind.custom)
    ]
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
    if target.kind.plural == "events":
        validity.check_event_change(target.kind, old, new)
    validity.check(target.kind, new)
    schemas.check(target.kind, target.version, new)


def _same(old: Object, new: Object) -> bool:
    """Whether nothing changes but the instants of managedFields."""

    def timeless(item: Object) -> Object:
        lines = [{**line, "time": ""} for line in item["metadata"].get("managedFields") or []]
        return {**item, "metadata": {**item["metadata"], "managedFields": lines, "resourceVersion": ""}}

    return timeless(old) == timeless(new)
