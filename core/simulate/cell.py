"""The in-memory cluster around one machine: what `observe` reads and `perform` changes.

It has the semantics that decisions rely on: deletion needs a matching uid, a Machine keeps its dependents until it is gone,
a create of something that exists changes nothing. Reads are always live.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import attrs

from fivespot.core.api.common import Metadata, OwnerReference
from fivespot.core.decision import actions as act
from fivespot.core.decision.knowledge import Absent, Known, Present
from fivespot.core.decision.manifest import creations
from fivespot.core.decision.observation import (
    CapiMachineView,
    ClusterView,
    DependentView,
    MachineView,
    NodeView,
    Observation,
    PodView,
    ProviderView,
)
from fivespot.core.decision.reading import read_capi_machine, read_dependent
from fivespot.core.decision.scene import CAPI_MACHINE_KIND
from fivespot.core.decision.taints import taints_annotation
from fivespot.core.instant import format_instant
from fivespot.core.names import APPLIED_TAINTS, CORDONED_BY, FINALIZER

_LIVE = Absent(live=True)
_CLUSTER = Present(ClusterView())


@attrs.define(kw_only=True)
class Cell:
    """One machine's slice of the world; parts that do not exist are None."""

    machine: MachineView
    capi: CapiMachineView | None = None
    bootstrap: DependentView | None = None
    infrastructure: DependentView | None = None
    node: NodeView | None = None
    pods: tuple[PodView, ...] = ()
    cluster: Known[ClusterView] = _CLUSTER
    gone: bool = False
    created: int = 0

    def observe(self, provider: Known[ProviderView]) -> Observation:
        """Everything about the machine, read at once."""
        return Observation(
            machine=self.machine,
            provider=provider,
            cluster=self.cluster,
            capi_machine=_known(self.capi),
            bootstrap=_known(self.bootstrap),
            infrastructure=_known(self.infrastructure),
            node=_known(self.node),
            last_node=_known(self.node),
            last_node_confirmed=True,
            pods=Present(self.pods),
        )

    def perform(self, action: act.Action, now: datetime) -> bool:
        """Do one action; returns whether anything changed."""
        before = (
            self.machine,
            self.capi,
            self.bootstrap,
            self.infrastructure,
            self.node,
            self.pods,
            self.gone,
        )
        match action:
            case act.AddFinalizer() | act.RemoveFinalizer():
                self._finalizer(add=isinstance(action, act.AddFinalizer))
            case act.Create():
                self._create(action, now)
            case act.Delete():
                self._delete(action, now)
            case act.AnnotateMachine():
                self._annotate(action.annotations)
            case act.LabelMachine():
                self._label(action)
            case act.EvictPod() | act.DeletePod():
                self.pods = tuple(pod for pod in self.pods if pod.uid != action.uid)
            case act.AdoptOwner():
                self._adopt(action)
            case _:
                self._on_node(action)
        return before != (
            self.machine, self.capi, self.bootstrap, self.infrastructure, self.node, self.pods, self.gone
        )  # fmt: skip

    def _finalizer(self, *, add: bool) -> None:
        meta = self.machine.metadata
        kept = tuple(name for name in meta.finalizers if name != FINALIZER)
        finalizers = (*kept, FINALIZER) if add else kept
        self.machine = attrs.evolve(self.machine, metadata=attrs.evolve(meta, finalizers=finalizers))
        self.gone = meta.deleting and not finalizers

    def _create(self, action: act.Create, now: datetime) -> None:
        # Creation counts make every uid and version different, as an API server does.
        self.created += 1
        meta = {
            **action.manifest["metadata"],
            "uid": f"{action.role.value}-{action.name}-{self.created}",
            "resourceVersion": str(self.created),
            "creationTimestamp": format_instant(now),
        }
        document = {**action.manifest, "metadata": meta}
        if action.role is act.Role.MACHINE:
            self.capi = self.capi or read_capi_machine(document)
        elif action.role is act.Role.BOOTSTRAP:
            self.bootstrap = self.bootstrap or read_dependent(document)
        else:
            self.infrastructure = self.infrastructure or read_dependent(document)

    def _delete(self, action: act.Delete, now: datetime) -> None:
        def going(meta: Metadata) -> Metadata:
            return attrs.evolve(meta, deleting_since=meta.deleting_since or now)

        if action.role is act.Role.MACHINE:
            if self.capi is not None and self.capi.metadata.uid == action.target.uid:
                self.capi = attrs.evolve(self.capi, metadata=going(self.capi.metadata))
        elif action.role is act.Role.BOOTSTRAP:
            # Nothing holds a dependent whose Machine is gone.
            if self.bootstrap is not None and self.bootstrap.metadata.uid == action.target.uid:
                self.bootstrap = None
        elif self.infrastructure is not None and self.infrastructure.metadata.uid == action.target.uid:
            self.infrastructure = None

    def _annotate(self, annotations: Mapping[str, str | None]) -> None:
        if self.capi is not None:
            meta = self.capi.metadata
            merged = _merged(meta.annotations, annotations)
            self.capi = attrs.evolve(self.capi, metadata=attrs.evolve(meta, annotations=merged))

    def _label(self, action: act.LabelMachine) -> None:
        self._annotate(dict(action.annotations))
        if self.capi is not None:
            meta = self.capi.metadata
            labels = {**meta.labels, **action.labels}
            self.capi = attrs.evolve(self.capi, metadata=attrs.evolve(meta, labels=labels))

    def _adopt(self, action: act.AdoptOwner) -> None:
        uid = self.machine.metadata.uid

        def adopted(meta: Metadata) -> Metadata:
            owners = tuple(
                attrs.evolve(owner, uid=uid) if owner.name == self.machine.metadata.name else owner
                for owner in meta.owners
            )
            return attrs.evolve(meta, owners=owners)

        if action.role is act.Role.MACHINE and self.capi is not None:
            self.capi = attrs.evolve(self.capi, metadata=adopted(self.capi.metadata))
        elif action.role is act.Role.BOOTSTRAP and self.bootstrap is not None:
            self.bootstrap = attrs.evolve(self.bootstrap, metadata=adopted(self.bootstrap.metadata))
        elif action.role is act.Role.INFRASTRUCTURE and self.infrastructure is not None:
            self.infrastructure = attrs.evolve(
                self.infrastructure, metadata=adopted(self.infrastructure.metadata)
            )

    def _on_node(self, action: act.Action) -> None:
        if self.node is None:
            return
        annotations = self.node.annotations
        match action:
            case act.Cordon():
                marked = {**annotations, CORDONED_BY: action.mark}
                self.node = attrs.evolve(self.node, unschedulable=True, annotations=marked)
            case act.Uncordon():
                unmarked = _merged(annotations, {CORDONED_BY: None})
                self.node = attrs.evolve(self.node, unschedulable=False, annotations=unmarked)
            case act.SetTaints():
                applied = taints_annotation(action.applied)
                marked = {**annotations, APPLIED_TAINTS: applied}
                self.node = attrs.evolve(self.node, taints=action.taints, annotations=marked)
            case act.DeleteNode():
                if self.node.uid == action.uid:
                    # Kubernetes collects the pods of a Node that is gone.
                    self.node, self.pods = None, ()
            case act.ClearReclaimRequest():
                self.node = attrs.evolve(self.node, annotations=_merged(annotations, act.NO_REQUEST))
            case _:
                pass

    # What Cluster API and its providers do, when the world says it is time

    def provision(self, uid: str) -> None:
        """The host is set up: dependents belong to the Machine, and a Node appears, not Ready yet."""
        if self.capi is None or self.capi.metadata.uid != uid or self.capi.metadata.deleting:
            return
        name = self.machine.metadata.name
        owner = OwnerReference(
            api_version=self.capi.api_version, kind=CAPI_MACHINE_KIND, name=name, uid=uid, controller=True
        )
        self.bootstrap, self.infrastructure = (
            _owned(self.bootstrap, owner),
            _owned(self.infrastructure, owner),
        )
        provider_id = f"sim://{self.machine.metadata.namespace}/{name}"
        self.capi = attrs.evolve(self.capi, phase="Provisioned", provider_id=provider_id, node_name=name)
        self.node = NodeView(
            name=name,
            uid=f"node-{uid}",
            resource_version="1",
            provider_id=provider_id,
            system_uuid=f"system-{name}",
        )

    def join(self, uid: str) -> None:
        """The Node is Ready."""
        if self.node is not None and self.node.uid == f"node-{uid}" and self.capi is not None:
            self.node = attrs.evolve(self.node, ready=True)
            self.capi = attrs.evolve(self.capi, phase="Running")

    def remove(self, uid: str) -> None:
        """The host is stopped: Machine, dependents and Node are gone."""
        if self.capi is not None and self.capi.metadata.uid == uid:
            self.capi = self.bootstrap = self.infrastructure = self.node = None
            self.pods = ()


def standing(machine: MachineView, now: datetime) -> Cell:
    """The cell of a machine as its status says it was when the documents were written."""
    cell = Cell(machine=machine)
    status, spec = machine.status, machine.spec
    if status.machine_ref is None or spec is None:
        return cell
    since = status.last_scheduled_time or machine.metadata.created_at
    for create in creations(machine.metadata, spec, "v1beta2"):
        cell.perform(create, since or now)
    uid = status.machine_ref.uid or ""
    if cell.capi is not None:
        cell.capi = attrs.evolve(cell.capi, metadata=attrs.evolve(cell.capi.metadata, uid=uid))
    if status.node_ref is not None:
        cell.provision(uid)
        if status.ready:
            cell.join(uid)
    return cell


def _known(value: Any) -> Any:
    return Present(value) if value is not None else _LIVE


def _merged(found: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    merged = {key: value for key, value in found.items() if key not in changes}
    return merged | {key: value for key, value in changes.items() if value is not None}


def _owned(view: DependentView | None, owner: OwnerReference) -> DependentView | None:
    if view is None:
        return None
    return attrs.evolve(view, metadata=attrs.evolve(view.metadata, owners=(*view.metadata.owners, owner)))
