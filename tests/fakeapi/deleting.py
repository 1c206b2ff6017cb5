"""How objects go: finalizers, grace, preconditions, and what goes with a namespace or a definition.

There is no garbage collector: dependents stay. Of propagation policies it is only known that they are there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.fakeapi import definitions
from tests.fakeapi.definitions import CLEANUP
from tests.fakeapi.kinds import CRD, NAMESPACE, POD
from tests.fakeapi.refusals import NotUnderstood, Object, bad_request, conflict, details, invalid
from tests.fakeapi.world import Target, World

_OPTIONS = {"apiVersion", "kind", "preconditions", "gracePeriodSeconds", "propagationPolicy"}
_POLICIES = {"Foreground": "foregroundDeletion", "Orphan": "orphan", "Background": ""}


def delete(world: World, target: Target, options: Object) -> Object:
    """DELETE: the object that goes or is marked, or a Status that says it is gone."""
    answer = _delete(world, target, options)
    settle(world)
    return answer


def _delete(world: World, target: Target, options: Object) -> Object:
    transient = _finalizer(options)
    item = world.current(target)
    _preconditions(target, item, options.get("preconditions") or {})
    if target.kind in (NAMESPACE, CRD):
        return _empty(world, target, item)
    grace = _grace(target, item, options.get("gracePeriodSeconds"))
    metadata = item["metadata"]
    marked = "deletionTimestamp" in metadata
    finalizers = list(metadata.get("finalizers") or [])
    if marked:
        transient = ""
        before = metadata.get("deletionGracePeriodSeconds") or 0
        if grace >= before > 0 or (finalizers and not before):
            return item
    elif transient:
        finalizers.append(transient)
    ends = not finalizers and not grace
    if ends and target.kind is not POD:
        world.store.remove(target.kind.label, target.key)
        return _success(target, item)
    metadata = {**metadata, "deletionTimestamp": world.later(grace), "deletionGracePeriodSeconds": grace}
    metadata |= {"finalizers": finalizers} if finalizers else {}
    metadata |= {"generation": metadata["generation"] + 1} if "generation" in metadata and not marked else {}
    stored = world.store.put(target.kind.label, target.key, {**item, "metadata": metadata})
    if ends:
        # A pod is marked even when its time is up at once, which its watchers see.
        return world.store.remove(target.kind.label, target.key)
    if transient:
        _collected(world, target, stored, transient)
    return stored


def _finalizer(options: Object) -> str:
    """The finalizer that a propagation policy works by, until the garbage collector is done; often none."""
    if unknown := set(options) - _OPTIONS:
        raise NotUnderstood(f"deletion with {unknown}")
    if (named := options.get("kind") or "DeleteOptions") != "DeleteOptions":
        raise bad_request(f'no kind "{named}" is registered for version "{options.get("apiVersion")}"')
    policy = options.get("propagationPolicy") or "Background"
    if policy not in _POLICIES:
        rule = 'supported values: "Foreground", "Background", "Orphan", "nil"'
        cause = ("FieldValueNotSupported", "propagationPolicy", f'Unsupported value: "{policy}": {rule}')
        raise invalid("meta.k8s.io", "DeleteOptions", "", cause)
    return _POLICIES[policy]


def settle(world: World) -> None:
    """End the namespaces and definitions that wait for nothing but their last object, now that it may be gone."""
    for label, key in list(world.ending):
        item, crd = world.store.get(label, key), label == CRD.label
        finalizers = [] if item is None else item["metadata"].get("finalizers") or []
        if set(finalizers) - {CLEANUP} or any(_belongs(target, crd, key[1]) for target in world.targets()):
            continue
        world.ending.remove((label, key))
        world.store.remove(label, key)
        if crd:
            definitions.undefined(world, key[1])


def _empty(world: World, target: Target, item: Object) -> Object:
    """Mark a namespace or a definition, and delete all that belongs to it."""
    if item["metadata"].get("deletionTimestamp"):
        return item
    crd = target.kind is CRD
    metadata = {**item["metadata"], "deletionTimestamp": world.now()}
    status: dict[str, Any] = {**item["status"], **({} if crd else {"phase": "Terminating"})}
    if crd:
        metadata["finalizers"] = [*(metadata.get("finalizers") or []), CLEANUP]
        said = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
        ending = definitions.condition(world, "Terminating", "InstanceDeletionPending", said)
        status["conditions"] = [*(status.get("conditions") or []), ending]
    marked = world.store.put(target.kind.label, target.key, {**item, "metadata": metadata, "status": status})
    world.ending.append((target.kind.label, target.key))
    for content in list(world.targets()):
        if _belongs(content, crd, target.name):
            _delete(world, content, {})
    return marked


def _belongs(content: Target, crd: bool, name: str) -> bool:
    return content.kind.label == name if crd else content.kind.namespaced and content.namespace == name


def _grace(target: Target, item: Object, asked: int | None) -> int:
    """Seconds until a pod may go; nothing else waits."""
    if target.kind is not POD:
        return 0
    spec, metadata = item["spec"], item["metadata"]
    if asked is None:
        asked = metadata.get("deletionGracePeriodSeconds", spec.get("terminationGracePeriodSeconds", 30))
    ended = item["status"].get("phase") in ("Succeeded", "Failed")
    return 0 if ended or not spec.get("nodeName") else 1 if asked < 0 else asked


def _preconditions(target: Target, item: Object, wanted: Object) -> None:
    if unknown := set(wanted) - {"uid", "resourceVersion"}:
        raise NotUnderstood(f"preconditions on {unknown}")
    kind, metadata = target.kind, item["metadata"]
    special = kind in (NAMESPACE, CRD)
    for field, shown, happened in (
        ("uid", "UID", "deleted and then recreated"),
        ("resourceVersion", "ResourceVersion", "modified"),
    ):
        asked, found = wanted.get(field), metadata[field]
        if not asked or asked == found:
            continue
        if special:
            first = "P" if kind is NAMESPACE else "p"
            why = f"{first}recondition failed: {shown} in precondition: {asked}, {shown} in object meta: {found}"
            raise conflict(kind.group, kind.plural, target.name, why)
        why = (
            f"the {shown} in the precondition ({asked}) does not match the {shown} in record ({found}). "
            f"The object might have been {happened}"
        )
        raise conflict(kind.group, kind.kind, target.name, why)


def _collected(world: World, target: Target, stored: Object, finalizer: str) -> None:
    """What the garbage collector does about an object without dependents."""
    uid = stored["metadata"]["uid"]
    for other in world.targets():
        item = world.current(other)
        if any(owner.get("uid") == uid for owner in item["metadata"].get("ownerReferences") or []):
            raise NotUnderstood(f"deletion of an object with dependents by {finalizer}")
    left = [name for name in stored["metadata"]["finalizers"] if name != finalizer]
    if left or stored["metadata"]["deletionGracePeriodSeconds"]:
        metadata = {**stored["metadata"], "finalizers": left}
        world.store.put(target.kind.label, target.key, {**stored, "metadata": metadata})
    else:
        world.store.remove(target.kind.label, target.key)


def _success(target: Target, item: Object) -> Object:
    kind = target.kind
    found = details(target.name, kind.group, kind.plural, uid=item["metadata"]["uid"])
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": found}


def remove_pod(world: World, target: Target, options: Object) -> None:
    """The deletion that an eviction ends in; the pod then says why it goes."""
    item = world.current(target)
    _preconditions(replace(target, subresource=""), item, options.get("preconditions") or {})
    reason = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastTransitionTime": world.now(),
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    others = [c for c in item["status"].get("conditions") or [] if c["type"] != reason["type"]]
    status = {**item["status"], "conditions": [*others, reason]}
    world.store.put(target.kind.label, target.key, {**item, "status": status})
    wanted = {key: value for key, value in (options.get("preconditions") or {}).items() if key == "uid"}
    delete(world, replace(target, subresource=""), {**options, "preconditions": wanted})
