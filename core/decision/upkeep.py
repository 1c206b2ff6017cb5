"""What is kept right about a Machine that stands and its Node, whatever the row: annotations, labels, cordon, taints.

Level-triggered: each is compared with what was seen, so nothing is asked for that is already so. A pause stops all of it.
"""

from collections.abc import Mapping

import attrs

from fivespot.core.api import reasons
from fivespot.core.api.scheduled_machine import ReclaimedNode, Shutdown, Taint
from fivespot.core.decision import reclaim as reclaims
from fivespot.core.decision.actions import (
    Action,
    AnnotateMachine,
    ClearReclaimRequest,
    LabelMachine,
    SetTaints,
    Uncordon,
)
from fivespot.core.decision.knowledge import Unknown
from fivespot.core.decision.observation import CapiMachineView, NodeView
from fivespot.core.decision.plan import Fact, Taints, listed
from fivespot.core.decision.scene import Scene, cordoned_by_us, reference
from fivespot.core.decision.taints import TaintPlan, applied_taints, plan_taints
from fivespot.core.names import (
    APPLIED_TAINTS,
    CORDONED_BY,
    EXCLUDE_NODE_DRAINING,
    EXCLUDE_VOLUME_DETACH,
    SKIP_REMEDIATION,
    UNPAUSED,
)
from fivespot.core.text import counted

_OF_A_REMOVAL = (SKIP_REMEDIATION, EXCLUDE_NODE_DRAINING, EXCLUDE_VOLUME_DETACH)


def unpause(scene: Scene, capi: CapiMachineView) -> tuple[AnnotateMachine, ...]:
    """Wake a Machine that still believes in a pause: Cluster API does not, when a Cluster is unpaused."""
    if not capi.paused_condition or scene.paused_by is not None or scene.cluster is None:
        return ()
    wake = str(scene.cluster.generation)
    if capi.metadata.annotations.get(UNPAUSED) == wake:
        return ()
    return (AnnotateMachine(target=reference(capi), annotations={UNPAUSED: wake}),)


def marks_of_removal(capi: CapiMachineView) -> dict[str, str | None]:
    """The annotations that a removal put on the Machine, as the change that takes them off."""
    annotations = capi.metadata.annotations
    return {key: None for key in _OF_A_REMOVAL if key in annotations} if annotations else {}


def undone_shutdown(scene: Scene, capi: CapiMachineView) -> Shutdown | None:
    """A change of mind: the removal is remembered until its marks are off the Machine.

    Its bounds end at once, so that a removal that begins meanwhile gets new ones.
    """
    stored = scene.status.shutdown
    if stored is None or not marks_of_removal(capi):
        return None
    return Shutdown(cause=stored.cause, cordoned=stored.cordoned)


def machine_actions(scene: Scene, capi: CapiMachineView) -> tuple[Action, ...]:
    """What to change about the CAPI Machine."""
    if scene.paused_by is not None:
        return ()
    found: list[Action] = list(unpause(scene, capi))
    undone = marks_of_removal(capi) if scene.status.shutdown is not None else None
    if undone:
        found.append(AnnotateMachine(target=reference(capi), annotations=undone))
    spec = scene.machine.spec
    template = spec.machine_template if spec is not None else None
    if template is not None:
        labels = _missing(template.labels, capi.metadata.labels)
        annotations = _missing(template.annotations, capi.metadata.annotations)
        if labels or annotations:
            found.append(LabelMachine(target=reference(capi), labels=labels, annotations=annotations))
    return tuple(found)


def _missing(wanted: Mapping[str, str], found: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in wanted.items() if found.get(key) != value}


@attrs.frozen(kw_only=True)
class NodeUpkeep:
    """What to change about the Node, and what is said about its taints."""

    actions: tuple[Action, ...]
    taints: Taints | None


def node_upkeep(scene: Scene, node: NodeView | None, capi: CapiMachineView) -> NodeUpkeep:
    """Keep the cordon mark and the taints of a Node right."""
    if node is None:
        return NodeUpkeep(actions=(), taints=_without_node(scene))
    found: list[Action] = []
    recorded = applied_taints(node.annotations)
    plan = _taint_plan(scene, node, recorded)
    if scene.paused_by is None:
        if CORDONED_BY in node.annotations and cordoned_by_us(node, scene.mark):
            # A change of mind, or a machine that was taken up again: only our own cordon is taken off.
            found.append(Uncordon(node=node.name, resource_version=node.resource_version))
        elif plan is not None and plan.changed and node.ready:
            found.append(_set_taints(node, plan))
    if scene.stale is not None:
        found.extend(_clear_stale(scene, node, capi, scene.stale))
    return NodeUpkeep(actions=tuple(found), taints=_said(scene, node, recorded, plan))


def _set_taints(node: NodeView, plan: TaintPlan) -> SetTaints:
    return SetTaints(
        node=node.name, resource_version=node.resource_version, taints=plan.taints, applied=plan.applied
    )


def _clear_stale(
    scene: Scene, node: NodeView, capi: CapiMachineView, request: reclaims.Request
) -> tuple[ClearReclaimRequest, ...]:
    """Once it is stored that this request is being cleared: another one that follows it is live."""
    record = scene.status.reclaim
    if record is None or record.stale_cleared_for != capi.metadata.uid:
        return ()
    target = ReclaimedNode(name=node.name, uid=node.uid)
    return (ClearReclaimRequest(node=target, requested_at=request.requested_at),)


# Taints


def _taint_plan(scene: Scene, node: NodeView, recorded: tuple[Taint, ...]) -> TaintPlan | None:
    """None when neither is anything wanted nor recorded as ours."""
    spec = scene.machine.spec
    if spec is None or not (spec.node_taints or APPLIED_TAINTS in node.annotations):
        return None
    return plan_taints(spec.node_taints, node.taints, recorded)


def _without_node(scene: Scene) -> Taints | None:
    spec = scene.machine.spec
    if spec is None or isinstance(scene.node, Unknown):
        return None
    condition = ("False", reasons.NO_NODE_YET, "taints are applied once the Node is there")
    return Taints(applied=scene.status.applied_node_taints, condition=condition if spec.node_taints else None)


def _said(scene: Scene, node: NodeView, recorded: tuple[Taint, ...], plan: TaintPlan | None) -> Taints | None:
    if plan is None:
        return None if scene.machine.spec is None else Taints(applied=(), condition=None)
    # Status reports what the Node's own record says, never what is about to be written there.
    return Taints(applied=recorded, condition=_condition(scene, node, plan))


def _condition(scene: Scene, node: NodeView, plan: TaintPlan) -> Fact:
    if plan.conflicts:
        names = listed([f"{taint.key}:{taint.effect}" for taint in plan.conflicts])
        return ("False", reasons.TAINT_OWNERSHIP_CONFLICT, f"somebody else owns {names}")
    if not plan.changed:
        return ("True", reasons.APPLIED, counted(len(plan.applied), "taint"))
    if scene.paused_by is not None:
        return ("False", reasons.PAUSED, "taints are applied after the pause")
    if not node.ready:
        return ("False", reasons.NODE_NOT_READY, "taints are applied once the Node is Ready")
    return ("False", reasons.PROVISIONING, "applying taints")
