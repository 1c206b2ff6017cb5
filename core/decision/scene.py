"""What follows from an observation before anything is planned: what is ours, which Node, who decides."""

from datetime import datetime
from enum import Enum
from typing import Final, TypeVar

import attrs

from fivespot.core.api import reasons
from fivespot.core.api.common import Metadata, ObjectReference
from fivespot.core.api.scheduled_machine import (
    LastNode,
    NodeReference,
    Reclaim,
    ScheduledMachineStatus,
    SpotScheduleStatus,
)
from fivespot.core.decision import reclaim as reclaims
from fivespot.core.decision import target as targets
from fivespot.core.decision.actions import Part, Role
from fivespot.core.decision.knowledge import Absent, Known, Present, Unknown, gone, value_of
from fivespot.core.decision.observation import (
    CapiMachineView,
    ClusterView,
    DependentView,
    MachineView,
    NodeView,
    Observation,
    owned_by,
)
from fivespot.core.decision.policy import Policy
from fivespot.core.decision.verdict import Effective, Verdict, effective, spot_schedule, verdict_of
from fivespot.core.names import CORDONED_BY, MACHINE_KIND, MACHINE_LABEL, PAUSED

V = TypeVar("V", CapiMachineView, DependentView)

CAPI_MACHINE_KIND: Final = "Machine"


@attrs.define(kw_only=True, eq=False)
class Scene:
    """An observation, read. Made once per pass and kept within it, so it does without the cost of being frozen.

    Attributes:
        capi, bootstrap, infrastructure: ours, or absent; a stranger's is in `foreign`.
        node: the Node with our Machine's provider id.
        spot: the new `status.spotSchedule`.
        request: a reclaim request on the Node; `facts.requested` when it starts one now.
        stale: the same when it was meant for the life before.
        cluster: the Cluster, None when it is not there or could not be read.
        paused_by: what pauses this machine, for a message; None when nothing does.
    """

    obs: Observation
    now: datetime
    policy: Policy
    machine: MachineView
    status: ScheduledMachineStatus
    verdict: Verdict
    spot: SpotScheduleStatus
    schedule: Effective
    facts: targets.Facts
    target: targets.Target
    capi: Known[CapiMachineView]
    bootstrap: Known[DependentView]
    infrastructure: Known[DependentView]
    node: Known[NodeView]
    request: reclaims.Request | None
    stale: reclaims.Request | None
    foreign: tuple[Role, ...]
    cluster: ClusterView | None
    paused_by: str | None

    @property
    def parts(self) -> tuple[tuple[Part, "Known[CapiMachineView] | Known[DependentView]"], ...]:
        """What can exist for a machine, in the order in which it goes."""
        return (
            (Part.MACHINE, self.capi),
            (Part.INFRASTRUCTURE, self.infrastructure),
            (Part.BOOTSTRAP, self.bootstrap),
        )

    @property
    def unknown(self) -> Unknown | None:
        """The first of the three that could not be read."""
        return next((part for _, part in self.parts if isinstance(part, Unknown)), None)

    @property
    def nothing_exists(self) -> bool:
        """Whether none of the three exists, as far as a cache can tell."""
        return (
            isinstance(self.capi, Absent)
            and isinstance(self.infrastructure, Absent)
            and isinstance(self.bootstrap, Absent)
        )

    @property
    def mark(self) -> str:
        """What our cordon mark says on a Node."""
        return f"{self.machine.metadata.namespace}/{self.machine.metadata.name}"


def cordoned_by_us(node: NodeView, mark: str) -> bool:
    """Whether the Node carries our cordon mark, for this machine."""
    return node.annotations.get(CORDONED_BY) == mark


def reference(view: CapiMachineView | DependentView) -> ObjectReference:
    """A reference to what was seen, uid included."""
    kind = CAPI_MACHINE_KIND if isinstance(view, CapiMachineView) else view.kind
    return ObjectReference(
        api_version=view.api_version, kind=kind, name=view.metadata.name, uid=view.metadata.uid or None
    )


def is_ours(meta: Metadata, machine: Metadata, recorded: ObjectReference | None) -> bool:
    """Whether an object belongs to this machine: recorded in status, or labelled and owned by our name.

    The owner's uid does not matter: backups restore owners with new ones.
    """
    if recorded is not None and recorded.uid and recorded.uid == meta.uid:
        return True
    return (
        meta.labels.get(MACHINE_LABEL) == machine.name and owned_by(meta, machine, MACHINE_KIND) is not None
    )


def taken(view: DependentView) -> bool:
    """Whether a CAPI Machine ever made a bootstrap or infrastructure object its own."""
    return any(owner.kind == CAPI_MACHINE_KIND for owner in view.metadata.owners)


def node_reference(scene: Scene, node: NodeView | None) -> NodeReference | None:
    """`status.nodeRef`. Not recorded while a request of the life before is on the Node: from then on all are live."""
    stored = scene.status.node_ref
    if node is None or scene.stale is not None:
        return stored
    cluster = scene.machine.intent.cluster_name
    if stored is not None and (stored.uid, stored.name, stored.cluster) == (node.uid, node.name, cluster):
        return stored
    return NodeReference(name=node.name, uid=node.uid, cluster=cluster)


def last_node(scene: Scene, node: NodeView | None) -> LastNode | None:
    """`status.lastNode`: the Node that is seen, else the one before."""
    stored = scene.status.last_node
    if node is None:
        return stored
    seen = (scene.machine.intent.cluster_name, node.name, node.uid, node.system_uuid)
    if stored is not None and (stored.cluster, stored.name, stored.uid, stored.system_uuid) == seen:
        return stored
    return LastNode(cluster=seen[0], name=seen[1], uid=seen[2], system_uuid=seen[3])


def reclaim_record(scene: Scene) -> Reclaim | None:
    """`status.reclaim` as stored; a hold that was released leaves its history only."""
    record = scene.status.reclaim
    if record is None or not reclaims.held(record) or not reclaims.is_released(scene.machine, scene.now):
        return record
    return reclaims.release(record)


def scene_of(obs: Observation, now: datetime, policy: Policy) -> Scene:
    """Read an observation."""
    machine = obs.machine
    meta, status, intent = machine.metadata, machine.status, machine.intent
    foreign: list[Role] = []
    capi = _ours(obs.capi_machine, meta, status.machine_ref, Role.MACHINE, foreign)
    seen = capi.value if isinstance(capi, Present) else None
    bootstrap = _dependent(
        obs.bootstrap, meta, status.bootstrap_ref, seen.bootstrap if seen else None, Role.BOOTSTRAP, foreign
    )
    infrastructure = _dependent(
        obs.infrastructure,
        meta,
        status.infrastructure_ref,
        seen.infrastructure if seen else None,
        Role.INFRASTRUCTURE,
        foreign,
    )
    node = _our_node(obs, capi)
    node_seen = node.value if isinstance(node, Present) else None
    request = reclaims.request_on(node_seen)
    awaited = request if request is not None and reclaims.is_awaited(machine) else None
    stale = awaited if awaited is not None and reclaims.is_stale(awaited, machine, seen) else None
    verdict = verdict_of(obs.provider, intent.schedule)
    begun = _begun(status, seen, value_of(bootstrap), value_of(infrastructure))
    spot = spot_schedule(verdict, status.spot_schedule, intent.schedule, now, begun=begun)
    # A machine that cannot be seen may exist: nothing is begun on account of an Unknown.
    exists = isinstance(capi, Unknown) or (seen is not None and not seen.metadata.deleting)
    schedule = effective(verdict, spot, machine_exists=exists)
    facts = targets.Facts(
        obs=obs, verdict=verdict, schedule=schedule, requested=awaited if stale is None else None, now=now
    )
    cluster = value_of(obs.cluster)
    return Scene(
        obs=obs,
        now=now,
        policy=policy,
        machine=machine,
        status=status,
        verdict=verdict,
        spot=spot,
        schedule=schedule,
        facts=facts,
        target=targets.target_of(facts),
        capi=capi,
        bootstrap=bootstrap,
        infrastructure=infrastructure,
        node=node,
        request=request,
        stale=stale,
        foreign=tuple(foreign),
        cluster=cluster,
        paused_by=_paused_by(machine, seen, cluster),
    )


def _paused_by(machine: MachineView, capi: CapiMachineView | None, cluster: ClusterView | None) -> str | None:
    if PAUSED in machine.metadata.annotations:
        return f"the annotation {PAUSED} on this object"
    if capi is not None and PAUSED in capi.metadata.annotations:
        return f"the annotation {PAUSED} on its Machine"
    if cluster is not None and cluster.paused:
        return f"Cluster {machine.intent.cluster_name}, which is paused"
    return None


def _begun(
    status: ScheduledMachineStatus, capi: CapiMachineView | None, *dependents: DependentView | None
) -> bool:
    """Whether a create was under way when status was last written, and no removal has begun on it since."""
    if status.machine_ref is not None or status.shutdown is not None:
        return False
    if capi is not None:
        return not capi.metadata.deleting
    return any(view is not None and not view.metadata.deleting and not taken(view) for view in dependents)


def _ours(
    seen: "Known[V]", machine: Metadata, recorded: ObjectReference | None, role: Role, foreign: list[Role]
) -> "Known[V]":
    """`seen`, or absent when it is a stranger's."""
    if not isinstance(seen, Present) or is_ours(seen.value.metadata, machine, recorded):
        return seen
    foreign.append(role)
    return Absent(live=True)


def _dependent(
    seen: Known[DependentView],
    machine: Metadata,
    recorded: ObjectReference | None,
    referenced: ObjectReference | None,
    role: Role,
    foreign: list[Role],
) -> Known[DependentView]:
    """As `_ours`; what a Machine of ours refers to is ours too."""
    if isinstance(seen, Present) and referenced is not None:
        view = seen.value
        if referenced.kind == view.kind and referenced.name == view.metadata.name:
            return seen
    return _ours(seen, machine, recorded, role, foreign)


def _our_node(obs: Observation, capi: Known[CapiMachineView]) -> Known[NodeView]:
    """Our Node is the one whose provider id is the Machine's, or the recorded one while the Machine is Unknown."""
    if not isinstance(obs.node, Present):
        return obs.node
    if isinstance(capi, Absent):
        return Absent(live=True)
    node = obs.node.value
    wanted = capi.value.provider_id if isinstance(capi, Present) else obs.machine.status.provider_id
    if not node.provider_id:
        return Unknown(reasons.NO_NODE_YET, f"Node {node.name} has no provider id yet")
    if not wanted:
        return Unknown(
            reasons.NO_NODE_YET, f"whether Node {node.name} is ours cannot be told without a provider id"
        )
    # Another provider id is another machine's Node that happens to have this name: hands off.
    return obs.node if node.provider_id == wanted else Absent(live=True)


class Reachable(Enum):
    """Whether node steps can and need to be done."""

    YES = "yes"
    UNKNOWN = "unknown"
    NOTHING_THERE = "nothing there"
    CLUSTER_GONE = "cluster gone"


def node_reach(scene: Scene) -> Reachable:
    """What stands between us and the Node."""
    if gone(scene.obs.cluster) or (scene.cluster is not None and scene.cluster.deleting):
        return Reachable.CLUSTER_GONE
    if isinstance(scene.node, Unknown):
        return Reachable.UNKNOWN
    if isinstance(scene.node, Absent):
        return Reachable.NOTHING_THERE
    # Pods that nobody has listed yet are no empty node.
    return Reachable.YES if isinstance(scene.obs.pods, Present) else Reachable.UNKNOWN
