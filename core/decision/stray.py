"""A Node without its Machine: left over when its host was stopped, or returned when the host came back by itself.

Until such a Node is settled no Machine is created in that cluster: a new one would take a stale Node with the same
provider id for its own and never change its mind.
"""

import attrs

from fivespot.core.api import reasons
from fivespot.core.api.scheduled_machine import LastNode, NodeReference
from fivespot.core.decision import reclaim as reclaims
from fivespot.core.decision.actions import (
    Cordon,
    DeleteNode,
    DeletePod,
    Event,
    EvictPod,
    Group,
    Part,
    Severity,
)
from fivespot.core.decision.drain import drain_of
from fivespot.core.decision.knowledge import Absent, Unknown, gone, value_of
from fivespot.core.decision.observation import NodeView
from fivespot.core.decision.plan import best_effort, groups_of
from fivespot.core.decision.scene import Scene, cordoned_by_us
from fivespot.core.names import NODE_CLUSTER_NAMESPACE, NODE_MACHINE


@attrs.frozen(kw_only=True)
class Settlement:
    """What to do about the Node that was seen last; no groups and no message when there is nothing to settle.

    `elsewhere` says that it is in another cluster than the one that the machine joins now, where it blocks nothing;
    `unknown` that it could not be looked for.
    """

    last_node: LastNode | None
    node_ref: NodeReference | None = None
    groups: tuple[Group, ...] = ()
    events: tuple[Event, ...] = ()
    message: str = ""
    elsewhere: bool = False
    unknown: Unknown | None = None
    confirm: tuple[Part, ...] = ()

    @property
    def pending(self) -> bool:
        """Whether a stray Node is still there."""
        return bool(self.message)


def settle(scene: Scene) -> Settlement:
    """Look for a Node of ours without its Machine, and get rid of it.

    `status.nodeRef`, empty whenever no Machine exists, remembers that a returned Node has been cordoned and reported:
    if our mark is gone from it afterwards, a person took it off, and the Node is theirs.
    """
    last = scene.status.last_node
    if last is None:
        return Settlement(last_node=None)
    elsewhere = last.cluster != scene.machine.intent.cluster_name
    if isinstance(scene.obs.cluster, Absent) and not elsewhere:
        # With its cluster it went; only a live answer says so.
        confirmed = gone(scene.obs.cluster)
        return Settlement(last_node=None if confirmed else last, confirm=() if confirmed else (Part.CLUSTER,))
    if isinstance(scene.obs.last_node, Unknown) and last.system_uuid:
        return Settlement(
            last_node=last,
            node_ref=_remembered(scene),
            elsewhere=elsewhere,
            unknown=scene.obs.last_node,
        )
    node = value_of(scene.obs.last_node)
    if node is None or not _is_stray(scene, last, node):
        return Settlement(last_node=last)
    return attrs.evolve(_settled(scene, last, node), elsewhere=elsewhere)


def _remembered(scene: Scene) -> NodeReference | None:
    """The returned Node that is on record. While references are recorded, nodeRef speaks of the Machine's own Node."""
    return scene.status.node_ref if scene.status.machine_ref is None else None


def _is_stray(scene: Scene, last: LastNode, node: NodeView) -> bool:
    if scene.obs.last_node_claimed or node.name != last.name:
        return False
    if not last.system_uuid or node.system_uuid != last.system_uuid:
        return False
    meta = scene.machine.metadata
    owner = node.annotations.get(NODE_MACHINE, meta.name)
    namespace = node.annotations.get(NODE_CLUSTER_NAMESPACE, meta.namespace)
    return (owner, namespace) == (meta.name, meta.namespace)


def _settled(scene: Scene, last: LastNode, node: NodeView) -> Settlement:
    if scene.paused_by is not None:
        text = f"Node {node.name} has no Machine; it waits for the end of a pause: {scene.paused_by}"
        return Settlement(last_node=last, node_ref=_remembered(scene), message=text)
    if node.uid == last.uid and not node.ready:
        return Settlement(
            last_node=last,
            groups=(best_effort(DeleteNode(node=node.name, uid=node.uid)),),
            message=f"Node {node.name} is left over: deleting it",
        )
    return _returned(scene, last, node)


def _returned(scene: Scene, last: LastNode, node: NodeView) -> Settlement:
    mark = cordoned_by_us(node, scene.mark)
    ref = _remembered(scene)
    known = ref is not None and ref.uid == node.uid
    if node.uid == last.uid and not known and not scene.obs.last_node_confirmed:
        # Its end is told by another server than that of its Machine, and may be on its way.
        return Settlement(last_node=last, node_ref=ref, confirm=(Part.LAST_NODE,))
    if known and not mark:
        return Settlement(last_node=None)
    message = f"Node {node.name} came back without its Machine: emptying it"
    if not mark:
        cordon = Cordon(node=node.name, resource_version=node.resource_version, mark=scene.mark)
        return Settlement(last_node=last, groups=(best_effort(cordon),), message=message)
    here = NodeReference(name=node.name, uid=node.uid, cluster=last.cluster)
    # Its pods go only once it is on record.
    return Settlement(
        last_node=last,
        node_ref=here,
        groups=_empty(scene, node) if known else (),
        events=() if known else (_event(node),),
        message=message,
    )


def _empty(scene: Scene, node: NodeView) -> tuple[Group, ...]:
    pods = value_of(scene.obs.pods)
    if pods is None:
        return ()
    drain = drain_of(node, pods, scene.obs.blocked, deadline=None, now=scene.now)
    if not drain.remaining:
        return (best_effort(DeleteNode(node=node.name, uid=node.uid)),)
    urgent = scene.machine.intent.kill_switch or reclaims.held(scene.status.reclaim)
    return groups_of(best_effort(*(_forced(pod) for pod in drain.evictions) if urgent else drain.evictions))


def _forced(pod: EvictPod) -> DeletePod:
    return DeletePod(namespace=pod.namespace, name=pod.name, uid=pod.uid)


def _event(node: NodeView) -> Event:
    text = f"Node {node.name} came back without its Machine; it is cordoned and emptied"
    return Event(severity=Severity.WARNING, reason=reasons.NODE_RETURNED, message=text)
