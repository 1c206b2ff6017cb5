"""Performs what was decided: one API call for each action, with the precondition that the action carries.

The answer of every write is fed into the cache, so that the next pass sees it. What cannot be done is raised as
`StepFailed`, in the words that the next observation shows to the core.
"""

import asyncio
import re
from collections.abc import Awaitable, Mapping
from typing import Any, Final

import attrs

from fivespot.adapters.kube.control.children import Child, Children, child_key
from fivespot.adapters.kube.control.streams import CAPI_MACHINES, MACHINES, dependent_stream
from fivespot.adapters.kube.control.watches import Stream, Watches
from fivespot.adapters.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    KindNotServed,
    NotFound,
    Throttled,
)
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.reflector import Reflector
from fivespot.adapters.kube.resources import NODES, PODS, Object, Resource
from fivespot.adapters.telemetry.metrics import BLOCKED, EVICTED, FAILED, Metrics
from fivespot.core.api import reasons
from fivespot.core.api.codec import decode_metadata
from fivespot.core.decision import actions as act
from fivespot.core.decision.knowledge import Unknown, value_of
from fivespot.core.decision.observation import BlockedEviction, FoundTaint, MachineView
from fivespot.core.decision.scene import is_ours
from fivespot.core.decision.taints import taints_annotation
from fivespot.core.errors import FivespotError
from fivespot.core.names import (
    APPLIED_TAINTS,
    CORDONED_BY,
    FIELD_MANAGER,
    FINALIZER,
    MACHINE_KIND,
    RECLAIM_REQUESTED,
    RECLAIM_REQUESTED_AT,
    TAINT_FIELD_MANAGER,
)

_BUDGET: Final = re.compile(r"disruption budget (\S+) needs")
_NAMESPACE_TERMINATING: Final = "NamespaceTerminating"


class StepFailed(FivespotError):  # noqa: N818 - what the core calls a Failure
    """An action could not be done.

    Attributes:
        step: what was tried, `create infrastructure`.
        reason: the API's reason, or NameConflict.
        retry_after: seconds that the server asks to wait, if it does.
    """

    def __init__(self, step: str, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(step, reason, message)
        self.retry_after = retry_after
        self.step = step
        self.reason = reason
        self.message = message

    def __str__(self) -> str:
        return f"{self.step}: {self.message}"


@attrs.define(kw_only=True)
class Outcome:
    """What came of a decision's actions.

    Attributes:
        failed: the first action that could not be done, one that ended the pass before one that did not.
        outdated: whether a precondition did not hold: somebody was faster, and the next pass sees what they did.
        evicted: uids of pods whose eviction was accepted.
        blocked: evictions that a budget refused.
    """

    failed: StepFailed | None = None
    outdated: bool = False
    evicted: set[str] = attrs.field(factory=set)
    blocked: list[BlockedEviction] = attrs.field(factory=list)


class Performer:
    """Performs actions for any machine; `machines` is the resource of ScheduledMachines."""

    def __init__(
        self,
        gateway: Gateway,
        watches: Watches,
        children: Children,
        machines: Resource,
        metrics: Metrics | None = None,
    ) -> None:
        self._metrics = metrics or Metrics()
        self._gateway = gateway
        self._watches = watches
        self._children = children
        self._machines = machines

    async def perform(self, machine: MachineView, groups: tuple[act.Group, ...]) -> Outcome:
        """Do the groups in order, the members of each in parallel; a required group that was not done ends it."""
        outcome = Outcome()
        for group in groups:
            results = await asyncio.gather(
                *(self._one(machine, action, outcome) for action in group.actions), return_exceptions=True
            )
            failed: StepFailed | None = None
            outdated = False
            for result in results:
                if isinstance(result, StepFailed):
                    failed = failed or result
                elif isinstance(result, Conflict):
                    outdated = True
                elif result is not None:
                    raise result
            outcome.outdated = outcome.outdated or outdated
            if group.required and (failed or outdated):
                outcome.failed = failed or outcome.failed
                break
            outcome.failed = outcome.failed or failed
        return outcome

    async def _one(self, machine: MachineView, action: act.Action, outcome: Outcome) -> None:
        step = _step(action)
        try:
            match action:
                case act.AddFinalizer() | act.RemoveFinalizer():
                    await self._finalizer(machine, action)
                case act.Create():
                    await self._create(machine, action)
                case act.Delete():
                    await self._delete(machine, action)
                case act.AnnotateMachine() | act.LabelMachine() | act.AdoptOwner():
                    await self._patch_ours(machine, action)
                case _:
                    await self._in_child(machine, action, outcome)
        except Conflict:
            raise
        except (ApiError, KindNotServed) as error:
            reason = error.reason if isinstance(error, ApiError) else "NotServed"
            after = error.retry_after if isinstance(error, ApiError) else None
            raise StepFailed(step, reason or type(error).__name__, str(error), after) from error

    # The machine itself

    async def _finalizer(self, machine: MachineView, action: act.AddFinalizer | act.RemoveFinalizer) -> None:
        meta = machine.metadata
        kept = [name for name in meta.finalizers if name != FINALIZER]
        finalizers = [*kept, FINALIZER] if isinstance(action, act.AddFinalizer) else kept
        patch = {"metadata": {"resourceVersion": action.resource_version, "finalizers": finalizers}}
        try:
            body = await self._gateway.merge_patch(
                self._machines, meta.namespace, meta.name, patch, field_manager=FIELD_MANAGER
            )
        except NotFound:
            return
        self._feed(MACHINES, body)

    # What is created for it

    def _stream(self, machine: MachineView, role: act.Role) -> Stream[Any] | None:
        return CAPI_MACHINES if role is act.Role.MACHINE else dependent_stream(machine, role)

    async def _create(self, machine: MachineView, action: act.Create) -> None:
        group, _, version = str(action.manifest["apiVersion"]).rpartition("/")
        resource = await self._gateway.resolve(group, str(action.manifest["kind"]), version)
        namespace = machine.metadata.namespace
        stream = self._stream(machine, action.role)
        try:
            self._feed(stream, await self._gateway.create(resource, namespace, dict(action.manifest)))
        except AlreadyExists as error:
            body = await self._gateway.get(resource, namespace, action.name)
            self._require_ours(machine, action, body)
            self._feed(stream, body)
            if _going(body):
                raise Conflict(
                    error.asked, status=error.status, reason=error.reason, message=error.message
                ) from error
        except Conflict as error:
            # A create has no precondition: a quota was being counted, and nothing was created.
            raise StepFailed(_step(action), error.reason, str(error)) from error

    def _require_ours(self, machine: MachineView, action: act.Create, body: Object) -> None:
        """An object of ours is success; one that is going is waited for; anything else is never adopted."""
        recorded = {
            act.Role.MACHINE: machine.status.machine_ref,
            act.Role.BOOTSTRAP: machine.status.bootstrap_ref,
            act.Role.INFRASTRUCTURE: machine.status.infrastructure_ref,
        }[action.role]
        if not is_ours(decode_metadata(body.get("metadata")), machine.metadata, recorded):
            message = f"{body.get('kind')} {action.name} exists and is not ours; rename it or this machine"
            raise StepFailed(_step(action), reasons.NAME_CONFLICT, message)

    async def _delete(self, machine: MachineView, action: act.Delete) -> None:
        target = action.target
        group, _, version = target.api_version.rpartition("/")
        # v1beta2 references carry the group alone.
        group, version = (target.api_version, "") if not group else (group, version)
        resource = await self._gateway.resolve(group, target.kind, version or None)
        namespace = machine.metadata.namespace
        stream = self._stream(machine, action.role)
        reflector = self._watches.reflector(stream) if stream is not None else None
        deletion = self._gateway.delete(
            resource, namespace, target.name, uid=target.uid, propagation="Background"
        )
        await _deleted(deletion, reflector, namespace, target.name, target.uid)

    async def _patch_ours(
        self, machine: MachineView, action: act.AnnotateMachine | act.LabelMachine | act.AdoptOwner
    ) -> None:
        role = action.role if isinstance(action, act.AdoptOwner) else act.Role.MACHINE
        stream = self._stream(machine, role)
        reflector = self._watches.reflector(stream) if stream is not None else None
        if stream is None or reflector is None:
            return
        namespace, target = machine.metadata.namespace, action.target
        patch: dict[str, Any] = {"uid": target.uid}
        try:
            if isinstance(action, act.AnnotateMachine):
                patch |= {"annotations": dict(action.annotations)}
            elif isinstance(action, act.LabelMachine):
                patch |= {"labels": dict(action.labels), "annotations": dict(action.annotations)}
            else:
                # What is kept of an object has no room for what others say in its owners, and a list is replaced whole.
                found = await self._gateway.get(reflector.resource, namespace, target.name)
                patch |= {
                    "resourceVersion": action.resource_version,
                    "ownerReferences": _adopted(found, machine),
                }
            body = await self._gateway.merge_patch(
                reflector.resource, namespace, target.name, {"metadata": patch}, field_manager=FIELD_MANAGER
            )
        except NotFound:
            return
        self._feed(stream, body)

    # The child cluster

    async def _in_child(self, machine: MachineView, action: act.Action, outcome: Outcome) -> None:
        child = self._children.get(child_key(machine))
        if isinstance(child, Unknown):
            raise StepFailed(_step(action), child.reason, child.why)
        match action:
            case act.Cordon():
                patch = {
                    "spec": {"unschedulable": True},
                    "metadata": {"annotations": {CORDONED_BY: action.mark}},
                }
                await self._patch_node(child, action.node, action.resource_version, patch, FIELD_MANAGER)
            case act.Uncordon():
                patch = {"spec": {"unschedulable": None}, "metadata": {"annotations": {CORDONED_BY: None}}}
                await self._patch_node(child, action.node, action.resource_version, patch, FIELD_MANAGER)
            case act.SetTaints():
                await self._set_taints(child, action)
            case act.EvictPod():
                await self._evict(child, action, outcome)
            case act.DeletePod():
                deletion = child.gateway.delete(
                    PODS, action.namespace, action.name, uid=action.uid, grace_seconds=0
                )
                await _deleted(deletion, None, action.namespace, action.name, action.uid)
            case act.DeleteNode():
                deletion = child.gateway.delete(NODES, None, action.node, uid=action.uid)
                await _deleted(deletion, child.nodes, None, action.node, action.uid)
            case act.ClearReclaimRequest():
                await self._clear_request(child, action)
            case _:
                message = f"no way to perform {action!r}"
                raise TypeError(message)

    async def _patch_node(
        self, child: Child, node: str, resource_version: str, patch: dict[str, Any], manager: str
    ) -> None:
        patch.setdefault("metadata", {})["resourceVersion"] = resource_version
        body = await child.gateway.merge_patch(NODES, None, node, patch, field_manager=manager)
        if child.nodes is not None:
            child.nodes.feed(body)

    async def _set_taints(self, child: Child, action: act.SetTaints) -> None:
        taints = [_taint(taint) for taint in action.taints]
        annotation = taints_annotation(action.applied) if action.applied else None
        patch = {
            "spec": {"taints": taints or None},
            "metadata": {"annotations": {APPLIED_TAINTS: annotation}},
        }
        await self._patch_node(child, action.node, action.resource_version, patch, TAINT_FIELD_MANAGER)

    async def _evict(self, child: Child, action: act.EvictPod, outcome: Outcome) -> None:
        try:
            await child.gateway.evict(
                action.namespace, action.name, uid=action.uid, grace_seconds=action.grace_seconds
            )
            self._metrics.evicted(EVICTED)
            outcome.evicted.add(action.uid)
        except NotFound:
            return
        except Throttled as error:
            if not error.cause:
                self._metrics.evicted(FAILED)
                raise
            self._metrics.evicted(BLOCKED)
            outcome.blocked.append(BlockedEviction(uid=action.uid, by=_budget(error)))
        except Forbidden as error:
            if _NAMESPACE_TERMINATING not in error.causes:
                self._metrics.evicted(FAILED)
                raise

    async def _clear_request(self, child: Child, action: act.ClearReclaimRequest) -> None:
        found = child.nodes.get(None, action.node.name) if child.nodes is not None else None
        node = value_of(found)
        annotations = node.annotations if node is not None else {}
        if (
            RECLAIM_REQUESTED not in annotations
            or annotations.get(RECLAIM_REQUESTED_AT) != action.requested_at
        ):
            return
        # Only the request that was acted on: another one that came meanwhile has another time.
        tested = [("/metadata/uid", action.node.uid)]
        tested += [(_annotation(key), annotations[key]) for key in act.NO_REQUEST if key in annotations]
        patch: list[Mapping[str, Any]] = [
            {"op": "test", "path": path, "value": value} for path, value in tested
        ]
        patch += [{"op": "remove", "path": _annotation(key)} for key in act.NO_REQUEST if key in annotations]
        body = await child.gateway.json_patch(
            NODES, None, action.node.name, patch, field_manager=FIELD_MANAGER
        )
        if child.nodes is not None:
            child.nodes.feed(body)

    def _feed(self, stream: Stream[Any] | None, body: Object) -> None:
        if stream is not None:
            self._watches.feed(stream, body)


async def _deleted(
    deletion: Awaitable[Object | None],
    reflector: Reflector[Any] | None,
    namespace: str | None,
    name: str,
    uid: str | None,
) -> None:
    """Delete, and let the cache know: what is gone already is as good as deleted."""
    try:
        body = await deletion
    except NotFound:
        body = None
    if reflector is None:
        return
    if body is not None and _going(body):
        reflector.feed(body)
    else:
        reflector.forget(namespace, name, uid)


def _going(body: Object) -> bool:
    return bool((body.get("metadata") or {}).get("deletionTimestamp"))


def _adopted(body: Object, machine: MachineView) -> list[dict[str, Any]]:
    owners = (body.get("metadata") or {}).get("ownerReferences") or []
    name, uid = machine.metadata.name, machine.metadata.uid
    return [
        {**owner, "uid": uid}
        if (owner.get("kind"), owner.get("name")) == (MACHINE_KIND, name)
        else dict(owner)
        for owner in owners
    ]


def _budget(error: Throttled) -> str:
    """The name of the budget, which the server gives only inside a sentence; that counts pods, and would change."""
    causes = error.details.get("causes") or []
    texts = [
        str(cause.get("message")) for cause in causes if isinstance(cause, Mapping) and cause.get("message")
    ]
    text = texts[0] if texts else error.message
    named = _BUDGET.search(text)
    return f"PodDisruptionBudget {named.group(1)}" if named else text


def _annotation(key: str) -> str:
    """An annotation as a JSON pointer (RFC 6901)."""
    return f"/metadata/annotations/{key.replace('~', '~0').replace('/', '~1')}"


def _taint(taint: FoundTaint) -> dict[str, str]:
    """A taint as it goes into a Node's spec; `timeAdded` of somebody else's goes back as it came."""
    fields = (
        ("key", taint.key),
        ("value", taint.value),
        ("effect", taint.effect),
        ("timeAdded", taint.time_added),
    )
    return {name: value for name, value in fields if value}


def _step(action: act.Action) -> str:
    """What is tried, in the verbs that `core.decision.report` knows."""
    match action:
        case act.Create() | act.Delete():
            return f"{'create' if isinstance(action, act.Create) else 'delete'} {action.role.value}"
        case act.EvictPod():
            return f"evict {action.namespace}/{action.name}"
        case act.SetTaints():
            return f"taint node {action.node}"
        case _:
            return type(action).__name__
