"""What follows from an observation before anything is planned: what is ours, which Node, who decides."""

from datetime import datetime
from enum import Enum
from typing import TypeVar

import attrs

from fivespot.core.api.common import Metadata, ObjectReference
from fivespot.core.api.scheduled_machine import ScheduledMachineStatus
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
from fivespot.core.decision.verdict import Effective, Verdict, effective, verdict_of
from fivespot.core.names import CORDONED_BY, MACHINE_KIND, MACHINE_LABEL, PAUSED

V = TypeVar("V", CapiMachineView, DependentView)

CAPI_MACHINE_KIND = "Machine"


@attrs.frozen(kw_only=True)
class Scene:
    """An observation, read. `capi`, `bootstrap` and `infrastructure` are ours or absent; a stranger's is in `foreign`."""

    obs: Observation
    now: datetime
    policy: Policy
    verdict: Verdict
    schedule: Effective
    facts: targets.Facts
    target: targets.Target
    capi: Known[CapiMachineView]
    bootstrap: Known[DependentView]
    infrastructure: Known[DependentView]
    node: Known[NodeView]
    foreign: tuple[Role, ...]

    @property
    def machine(self) -> MachineView:
        """The ScheduledMachine."""
        return self.obs.machine

    @property
    def status(self) -> ScheduledMachineStatus:
        """Its status, as stored."""
        return self.obs.machine.status

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
        return all(isinstance(part, Absent) for _, part in self.parts)

    @property
    def cluster(self) -> ClusterView | None:
        """The Cluster, when it is there and could be read."""
        return value_of(self.obs.cluster)

    @property
    def paused_by(self) -> str | None:
        """What pauses this machine, for a message; None when nothing does."""
        capi = value_of(self.capi)
        if PAUSED in self.machine.metadata.annotations:
            return f"the annotation {PAUSED} on this object"
        if capi is not None and PAUSED in capi.metadata.annotations:
            return f"the annotation {PAUSED} on its Machine"
        if self.cluster is not None and self.cluster.paused:
            return f"Cluster {self.machine.intent.cluster_name}, which is paused"
        return None

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


def scene_of(obs: Observation, now: datetime, policy: Policy) -> Scene:
    """Read an observation."""
    machine = obs.machine
    meta, status = machine.metadata, machine.status
    foreign: list[Role] = []
    capi = _ours(obs.capi_machine, meta, status.machine_ref, Role.MACHINE, foreign)
    seen = value_of(capi)
    bootstrap = _dependent(
        obs.bootstrap, meta, (status.bootstrap_ref, seen.bootstrap if seen else None), Role.BOOTSTRAP, foreign
    )
    infrastructure = _dependent(
        obs.infrastructure,
        meta,
        (status.infrastructure_ref, seen.infrastructure if seen else None),
        Role.INFRASTRUCTURE,
        foreign,
    )
    node = _our_node(obs, capi)
    verdict = verdict_of(obs.provider, machine.intent.schedule)
    schedule = effective(
        verdict, status.spot_schedule, machine_exists=seen is not None and not seen.metadata.deleting
    )
    facts = targets.Facts(obs=obs, verdict=verdict, schedule=schedule, node=value_of(node), now=now)
    return Scene(
        obs=obs,
        now=now,
        policy=policy,
        verdict=verdict,
        schedule=schedule,
        facts=facts,
        target=targets.target_of(facts),
        capi=capi,
        bootstrap=bootstrap,
        infrastructure=infrastructure,
        node=node,
        foreign=tuple(foreign),
    )


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
    references: tuple[ObjectReference | None, ObjectReference | None],
    role: Role,
    foreign: list[Role],
) -> Known[DependentView]:
    recorded, referenced = references
    if isinstance(seen, Present) and referenced is not None:
        view = seen.value
        if (referenced.kind, referenced.name) == (view.kind, view.metadata.name):
            return seen
    return _ours(seen, machine, recorded, role, foreign)


def _our_node(obs: Observation, capi: Known[CapiMachineView]) -> Known[NodeView]:
    """Our Node is the one whose provider id is the Machine's, or the recorded one while the Machine is Unknown."""
    if not isinstance(obs.node, Present):
        return obs.node
    node = obs.node.value
    if isinstance(capi, Unknown):
        wanted = obs.machine.status.provider_id or ""
    elif isinstance(capi, Present):
        wanted = capi.value.provider_id
    else:
        return Absent(live=True)
    if not node.provider_id:
        return Unknown("NoNodeYet", f"Node {node.name} has no provider id yet")
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
    return Reachable.UNKNOWN if isinstance(scene.obs.pods, Unknown) else Reachable.YES
