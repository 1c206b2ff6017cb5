"""A removal with grace: cordon, drain, let the agent leave, then delete the Machine."""

import attrs

from fivespot.core.api import reasons
from fivespot.core.api.scheduled_machine import DrainTimeout, Shutdown
from fivespot.core.decision.actions import Cordon, Event, Part, Severity
from fivespot.core.decision.drain import Drain, drain_of
from fivespot.core.decision.knowledge import Absent, Unknown, gone, value_of
from fivespot.core.decision.observation import CapiMachineView, NodeView, PodView
from fivespot.core.decision.plan import Plan, ask, best_effort, listed, required
from fivespot.core.decision.scene import Reachable, Scene, cordoned_by_us, node_reach
from fivespot.core.decision.steps import (
    annotate,
    delete_machine,
    leaving,
    unreadable,
    until_gone,
    waiting_message,
)
from fivespot.core.instant import later
from fivespot.core.names import SKIP_REMEDIATION


def graceful(scene: Scene, shutdown: Shutdown) -> Plan:
    """The next step of a removal whose intent is stored."""
    if isinstance(scene.capi, Unknown):
        return unreadable(scene, shutdown, scene.capi)
    capi = value_of(scene.capi)
    if capi is None or capi.metadata.deleting:
        return until_gone(scene, shutdown)
    if shutdown.started_at is None or scene.paused_by is not None:
        reason = reasons.PAUSED if scene.paused_by else reasons.WAITING_FOR_SLOT
        return leaving(scene, shutdown, reason, waiting_message(scene))
    return _node_steps(scene, shutdown, capi)


def _node_steps(scene: Scene, shutdown: Shutdown, capi: CapiMachineView) -> Plan:
    reach = node_reach(scene)
    if isinstance(scene.obs.cluster, Absent) and not gone(scene.obs.cluster):
        return ask(Part.CLUSTER)
    if reach is Reachable.CLUSTER_GONE:
        why = f"Cluster {scene.machine.intent.cluster_name} is gone or going: node steps are skipped"
        return delete_machine(scene, shutdown, capi, why, reasons.CHILD_CLUSTER_UNREACHABLE)
    if reach is Reachable.NOTHING_THERE:
        if not gone(scene.node):
            return ask(Part.NODE)
        return delete_machine(scene, shutdown, capi, "it has no Node to drain", reasons.GRACE_PERIOD_ACTIVE)
    node = value_of(scene.node)
    if reach is Reachable.UNKNOWN or node is None:
        return _out_of_sight(scene, shutdown, capi)
    return _drain(scene, shutdown, capi, node)


def _out_of_sight(scene: Scene, shutdown: Shutdown, capi: CapiMachineView) -> Plan:
    """The child cannot be seen: wait for the whole bound, then go on; under Hold, stay."""
    why = scene.node if isinstance(scene.node, Unknown) else scene.obs.pods
    text = why.why if isinstance(why, Unknown) else "its pods have not been listed"
    if not _holds(scene) and shutdown.deadline is not None and scene.now >= shutdown.deadline:
        why_now = f"the bound passed while the node was out of sight: {text}"
        return delete_machine(scene, shutdown, capi, why_now, reasons.NODE_DRAIN_TIMED_OUT)
    reason = why.reason if isinstance(why, Unknown) else reasons.NODE_DRAINING
    return leaving(scene, shutdown, reason, f"waits for the node: {text}")


def _holds(scene: Scene) -> bool:
    """Whether no bound deletes: only an empty node, kill switch, reclaim or a change of mind ends the wait."""
    return scene.machine.intent.on_drain_timeout is DrainTimeout.HOLD


def _drain(scene: Scene, shutdown: Shutdown, capi: CapiMachineView, node: NodeView) -> Plan:
    """Whether the node is empty is looked at each time: pods that came back are evicted again."""
    pods: tuple[PodView, ...] = value_of(scene.obs.pods) or ()
    drain = drain_of(
        node,
        pods,
        scene.obs.blocked,
        deadline=None if _holds(scene) else shutdown.drain_deadline,
        now=scene.now,
        known_blocked=shutdown.blocked_by,
    )
    empty = drain.done and node.unschedulable
    was_empty = shutdown.drained_at is not None
    shutdown = attrs.evolve(
        shutdown,
        cordoned=cordoned_by_us(node, scene.mark),
        remaining_pods=len(drain.remaining),
        blocked_by=drain.blocked_by,
        drained_at=(shutdown.drained_at or scene.now) if empty else None,
    )
    if empty and not was_empty:
        # Written before the Machine is deleted: a crash in between must not drain again from the beginning.
        return leaving(scene, shutdown, reasons.NODE_DRAINED, f"Node {node.name} is empty")
    if empty:
        return _after_drain(scene, shutdown, capi)
    over = shutdown.drain_deadline is not None and scene.now >= shutdown.drain_deadline
    if over and not _holds(scene):
        why = f"the drain bound passed with {_left(drain)}"
        return delete_machine(scene, shutdown, capi, why, reasons.NODE_DRAIN_TIMED_OUT)
    return _evict(
        scene, shutdown, capi, node, drain, reasons.NODE_DRAIN_TIMED_OUT if over else reasons.NODE_DRAINING
    )


def _evict(
    scene: Scene, shutdown: Shutdown, capi: CapiMachineView, node: NodeView, drain: Drain, reason: str
) -> Plan:
    message = f"draining Node {node.name}: {_left(drain)}"
    if drain.blocked_by:
        message += f"; protected: {listed(drain.blocked_by)}"
    return leaving(
        scene,
        shutdown,
        reason,
        message,
        required(*_cordon(scene, node)),
        annotate(capi, SKIP_REMEDIATION),
        best_effort(*drain.evictions),
        wakes=(shutdown.drain_deadline,),
        events=_blocked_events(scene, drain),
    )


def _cordon(scene: Scene, node: NodeView) -> tuple[Cordon, ...]:
    """Cordon with our mark, unless somebody else has cordoned already: that cordon is theirs."""
    if node.unschedulable:
        return ()
    return (Cordon(node=node.name, resource_version=node.resource_version, mark=scene.mark),)


def _blocked_events(scene: Scene, drain: Drain) -> tuple[Event, ...]:
    before = scene.status.shutdown.blocked_by if scene.status.shutdown else ()
    if not drain.blocked_by or before:
        return ()
    text = f"a budget protects {listed(drain.blocked_by)}"
    return (Event(severity=Severity.WARNING, reason=reasons.DRAIN_BLOCKED, message=text),)


def _left(drain: Drain) -> str:
    parts = []
    if drain.remaining:
        names = listed([f"{pod.namespace}/{pod.name}" for pod in drain.remaining])
        parts.append(f"{len(drain.remaining)} pods left ({names})")
    if drain.volumes:
        parts.append(f"{len(drain.volumes)} volumes attached")
    return " and ".join(parts) or "nothing left"


def _after_drain(scene: Scene, shutdown: Shutdown, capi: CapiMachineView) -> Plan:
    until = later(shutdown.drained_at or scene.now, scene.policy.agent_grace)
    if scene.obs.agent_present and scene.now < until:
        text = "waits for the agent to leave the host clean"
        return leaving(scene, shutdown, reasons.NODE_DRAINED, text, wakes=(until,))
    return delete_machine(scene, shutdown, capi, "its node is empty")
