"""A removal now: the kill switch deletes the Machine at once; a reclaim gets the pods off the host first.

All node steps are best effort here: nothing about the node holds the deletion of the Machine up for long.
"""

import attrs

from fivespot.core.api import reasons
from fivespot.core.api.scheduled_machine import Reclaim, Shutdown
from fivespot.core.decision import reclaim as reclaims
from fivespot.core.decision.actions import Cordon, Delete, DeleteNode, DeletePod, Group, Role
from fivespot.core.decision.drain import has_to_go
from fivespot.core.decision.knowledge import CHILD_OUT_OF_REACH, Absent, Present, Unknown, value_of
from fivespot.core.decision.observation import NodeView
from fivespot.core.decision.plan import Plan, best_effort, groups_of, required
from fivespot.core.decision.scene import Scene
from fivespot.core.decision.steps import deletion, leaving, unreadable, until_gone
from fivespot.core.instant import later


def now(scene: Scene, shutdown: Shutdown) -> Plan:
    """The next step of an urgent removal whose intent is stored."""
    capi = value_of(scene.capi)
    if isinstance(scene.capi, Absent) or (capi is not None and capi.metadata.deleting):
        return until_gone(scene, shutdown)
    record = scene.status.reclaim
    if record is not None and reclaims.in_progress(record) and not scene.machine.intent.kill_switch:
        return _reclaim(scene, shutdown, record)
    return _delete(scene, shutdown, scene.target.why)


def _delete(
    scene: Scene, shutdown: Shutdown, why: str, *before: Group, empty_node: NodeView | None = None
) -> Plan:
    """Delete the Machine: the one that is seen, else the one that status recorded.

    By uid: if it is another one by now, nothing happens. A Node without pods goes with it.
    """
    node = best_effort(DeleteNode(node=empty_node.name, uid=empty_node.uid)) if empty_node else None
    if isinstance(scene.capi, Present):
        capi = scene.capi.value
        text = f"deleting Machine {capi.metadata.name}: {why}"
        return leaving(scene, shutdown, "", text, *before, *deletion(capi), node)
    recorded = scene.status.machine_ref
    if recorded is None or not recorded.uid:
        unknown = scene.capi if isinstance(scene.capi, Unknown) else Unknown(reasons.MACHINE_MISSING)
        plan = unreadable(scene, shutdown, unknown)
        return attrs.evolve(plan, groups=groups_of(*before, *plan.groups))
    text = f"deleting Machine {recorded.name}, which could not be read: {why}"
    gone = required(Delete(role=Role.MACHINE, target=recorded))
    return leaving(scene, shutdown, "", text, *before, gone, node)


def _reclaim(scene: Scene, shutdown: Shutdown, record: Reclaim) -> Plan:
    """Get the pods off the host, then let Cluster API stop it.

    Only a living kubelet ends containers, and it takes up to 3.2 s after the objects are gone; hence the wait, unless
    there was no pod to end. An empty list alone proves nothing: `shutdown.remainingPods` remembers that there were some.
    """
    node, pods = value_of(scene.node), scene.obs.pods
    if node is None or (isinstance(pods, Unknown) and pods.reason in CHILD_OUT_OF_REACH):
        return _delete(scene, shutdown, "the node cannot be reached; the host is stopped")
    listed = isinstance(pods, Present)
    leaving_pods = [pod for pod in pods.value if has_to_go(pod)] if isinstance(pods, Present) else []
    stopping = [pod for pod in leaving_pods if not pod.deleting]
    empty_node = node if listed and not leaving_pods else None
    had_pods = bool(stopping or shutdown.remaining_pods or record.pods_deleted_at)
    if listed and not had_pods:
        return _delete(scene, shutdown, "its node had no pod to stop", empty_node=empty_node)
    if stopping and not shutdown.remaining_pods:
        shutdown = attrs.evolve(shutdown, remaining_pods=len(leaving_pods))
    if listed and not stopping and record.pods_deleted_at is None:
        record = attrs.evolve(record, pods_deleted_at=scene.now)
    freeing = (
        best_effort(*_cordon(scene, node)),
        best_effort(*[DeletePod(namespace=pod.namespace, name=pod.name, uid=pod.uid) for pod in stopping]),
    )
    due = later(record.pods_deleted_at or record.observed_at or scene.now, scene.policy.pods_to_machine)
    if scene.now >= due:
        plan = _delete(scene, shutdown, "the owner wants the host back", *freeing, empty_node=empty_node)
        return attrs.evolve(plan, reclaim=record)
    text = f"leaving the cluster: reclaim in progress: {record.reason}"
    return leaving(scene, shutdown, "", text, *freeing, wakes=(due,), reclaim=record)


def _cordon(scene: Scene, node: NodeView) -> tuple[Cordon, ...]:
    """No taint: a NoExecute taint begins graceful deletions that nothing can shorten."""
    if node.unschedulable:
        return ()
    return (Cordon(node=node.name, resource_version=node.resource_version, mark=scene.mark),)
