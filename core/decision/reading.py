"""From decoded JSON objects to the views of an observation; tolerant where a removal must go on, strict where one begins."""

from collections.abc import Mapping
from typing import Any, TypeVar

import attrs

from fivespot.core.api.codec import decode, decode_metadata
from fivespot.core.api.common import ObjectReference
from fivespot.core.api.duration import Duration
from fivespot.core.api.kinds import SCHEDULED_MACHINE
from fivespot.core.api.scheduled_machine import (
    DrainTimeout,
    ScheduledMachineSpec,
    ScheduledMachineStatus,
    ScheduleReference,
    Taint,
)
from fivespot.core.api.validate import problems_of
from fivespot.core.decision.observation import (
    CapiMachineView,
    ClusterView,
    DependentView,
    Intent,
    MachineView,
    NodeView,
    PodView,
    ProviderView,
)
from fivespot.core.errors import InvalidSpec
from fivespot.core.names import MIRROR_POD

T = TypeVar("T")
_DEFAULTS = Intent()
_FINISHED = ("Succeeded", "Failed")
_DEFAULT_GRACE = 30


def read_machine(document: Mapping[str, Any]) -> MachineView:
    """A ScheduledMachine.

    An invalid spec leaves `spec` None and says why in `problems`; what steers a removal is read all the same. A status
    that cannot be read counts as none.

    Raises:
        InvalidSpec: the metadata cannot be read.
    """
    metadata = decode_metadata(document.get("metadata"))
    raw = document.get("spec")
    problems = problems_of(SCHEDULED_MACHINE.schema.properties["spec"], raw, "spec")
    spec = None
    if not problems:
        spec = decode(raw, ScheduledMachineSpec)
    return MachineView(
        metadata=metadata,
        intent=_intent(spec) if spec is not None else _intent_of_invalid(raw),
        spec=spec,
        status=_status(document.get("status")),
        problems=problems,
    )


def _status(raw: Any) -> ScheduledMachineStatus:
    try:
        return decode(raw or {}, ScheduledMachineStatus)
    except InvalidSpec:
        return ScheduledMachineStatus()


def _intent(spec: ScheduledMachineSpec) -> Intent:
    return Intent(
        enabled=spec.enabled,
        kill_switch=spec.kill_switch,
        cluster_name=spec.cluster_name,
        schedule=spec.schedule,
        graceful_shutdown_timeout=spec.graceful_shutdown_timeout,
        node_drain_timeout=spec.node_drain_timeout,
        on_drain_timeout=spec.on_drain_timeout,
        reclaim_enabled=bool(spec.kill_if_commands) or spec.reclaim is not None,
        rejoin_after=spec.reclaim.rejoin_after if spec.reclaim is not None else None,
    )


def _intent_of_invalid(raw: Any) -> Intent:
    """Each field by itself; one that cannot be read has its default."""
    fields = raw if isinstance(raw, Mapping) else {}

    def read(name: str, model: type[T], default: T) -> T:
        try:
            return decode(fields[name], model) if fields.get(name) is not None else default
        except InvalidSpec:
            return default

    timeout = _DEFAULTS.graceful_shutdown_timeout
    commands, reclaim = fields.get("killIfCommands"), fields.get("reclaim")
    return Intent(
        enabled=read("enabled", bool, _DEFAULTS.enabled),
        kill_switch=read("killSwitch", bool, _DEFAULTS.kill_switch),
        cluster_name=read("clusterName", str, ""),
        schedule=_reference_of_invalid(fields.get("schedule")),
        graceful_shutdown_timeout=read("gracefulShutdownTimeout", Duration, timeout),
        node_drain_timeout=read("nodeDrainTimeout", Duration, timeout),
        on_drain_timeout=read("onDrainTimeout", DrainTimeout, _DEFAULTS.on_drain_timeout),
        reclaim_enabled=bool(commands) or isinstance(reclaim, Mapping),
    )


def _reference_of_invalid(raw: Any) -> ScheduleReference | None:
    try:
        found = decode(raw, ScheduleReference)
    except InvalidSpec:
        return None
    # The third of three checks of the group: schema, CEL, and here.
    bounds = SCHEDULED_MACHINE.schema.properties["spec"].properties["schedule"]
    return None if problems_of(bounds, raw) else found


def read_provider(document: Mapping[str, Any]) -> ProviderView:
    """Any provider: its generation and its status, nothing else."""
    status = document.get("status")
    generation = (document.get("metadata") or {}).get("generation")
    return ProviderView(
        generation=generation if isinstance(generation, int) else 0,
        status=status if isinstance(status, Mapping) else None,
    )


def read_cluster(document: Mapping[str, Any]) -> ClusterView:
    """The CAPI Cluster."""
    metadata = decode_metadata(document.get("metadata"))
    return ClusterView(
        paused=(document.get("spec") or {}).get("paused") is True,
        deleting=metadata.deleting,
        generation=metadata.generation,
    )


def read_capi_machine(document: Mapping[str, Any]) -> CapiMachineView:
    """The CAPI Machine, of either API version."""
    spec, status = document.get("spec") or {}, document.get("status") or {}
    old = (status.get("deprecated") or {}).get("v1beta1") or {}
    return CapiMachineView(
        metadata=decode_metadata(document.get("metadata")),
        api_version=document.get("apiVersion") or "",
        phase=status.get("phase") or "",
        bootstrap=_reference((spec.get("bootstrap") or {}).get("configRef")),
        infrastructure=_reference(spec.get("infrastructureRef")),
        provider_id=spec.get("providerID") or "",
        node_name=(status.get("nodeRef") or {}).get("name") or "",
        failure=status.get("failureReason") or old.get("failureReason") or "",
        paused_condition=_condition_true(status, "Paused"),
    )


def _reference(raw: Any) -> ObjectReference | None:
    if not isinstance(raw, Mapping):
        return None
    return ObjectReference(
        api_version=raw.get("apiVersion") or raw.get("apiGroup") or "",
        kind=raw.get("kind") or "",
        name=raw.get("name") or "",
    )


def _condition_true(status: Mapping[str, Any], of_type: str) -> bool:
    return _condition_status(status, of_type) == "True"


def _condition_status(status: Mapping[str, Any], of_type: str) -> str:
    for entry in status.get("conditions") or ():
        if entry.get("type") == of_type:
            return str(entry.get("status"))
    return ""


def read_dependent(document: Mapping[str, Any]) -> DependentView:
    """A bootstrap or infrastructure object of any kind."""
    return DependentView(
        metadata=decode_metadata(document.get("metadata")),
        api_version=document.get("apiVersion") or "",
        kind=document.get("kind") or "",
    )


def read_node(document: Mapping[str, Any]) -> NodeView:
    """A Node."""
    metadata = decode_metadata(document.get("metadata"))
    spec, status = document.get("spec") or {}, document.get("status") or {}
    ready = _condition_status(status, "Ready")
    return NodeView(
        name=metadata.name,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
        provider_id=spec.get("providerID") or "",
        system_uuid=(status.get("nodeInfo") or {}).get("systemUUID") or "",
        ready=ready == "True",
        reachable=ready != "Unknown",
        unschedulable=spec.get("unschedulable") is True,
        taints=tuple(
            Taint(
                key=entry.get("key") or "", value=entry.get("value") or None, effect=entry.get("effect") or ""
            )
            for entry in spec.get("taints") or ()
        ),
        labels=metadata.labels,
        annotations=metadata.annotations,
        volumes_attached=tuple(entry.get("name") or "" for entry in status.get("volumesAttached") or ()),
    )


def read_pod(document: Mapping[str, Any]) -> PodView:
    """A Pod."""
    metadata = decode_metadata(document.get("metadata"))
    grace = (document.get("spec") or {}).get("terminationGracePeriodSeconds")
    return PodView(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        daemon=any(owner.controller and owner.kind == "DaemonSet" for owner in metadata.owners),
        mirror=MIRROR_POD in metadata.annotations,
        finished=(document.get("status") or {}).get("phase") in _FINISHED,
        deleting=metadata.deleting,
        grace_seconds=grace if isinstance(grace, int) else _DEFAULT_GRACE,
    )


def with_status(view: MachineView, status: ScheduledMachineStatus) -> MachineView:
    """The machine as it is once `status` is stored."""
    return attrs.evolve(view, status=status)
