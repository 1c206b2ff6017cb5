"""From decoded JSON objects to the views of an observation; tolerant where a removal must go on, strict where one begins."""

from collections.abc import Mapping
from typing import Any, TypeVar

import attrs

from fivespot.core.api.codec import decode, decode_metadata
from fivespot.core.api.common import Metadata, ObjectReference
from fivespot.core.api.duration import Duration
from fivespot.core.api.kinds import SCHEDULED_MACHINE, Kind
from fivespot.core.api.scheduled_machine import (
    DrainTimeout,
    ScheduledMachineSpec,
    ScheduledMachineStatus,
    ScheduleReference,
    SecretKeyReference,
)
from fivespot.core.api.validate import problems_of
from fivespot.core.decision.manifest import made_of
from fivespot.core.decision.observation import (
    CapiMachineView,
    ClusterView,
    DependentView,
    FoundTaint,
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


def read_machine(
    document: Mapping[str, Any], before: MachineView | None = None, kind: Kind = SCHEDULED_MACHINE
) -> MachineView:
    """A ScheduledMachine.

    An invalid spec leaves `spec` None and says why in `problems`; what steers a removal is read all the same. A status
    is what this machine remembers: one that cannot be read is not the same as none.

    `before` is the same object as it was read last: a spec whose generation has not changed is not read again. `kind`
    says which groups may be embedded.

    Raises:
        InvalidSpec: the metadata or the status cannot be read; such an object is left alone.
    """
    metadata, status = decode_metadata(document.get("metadata")), _status(document.get("status"))
    if before is not None and _identity(before.metadata) == _identity(metadata) and metadata.generation:
        return attrs.evolve(before, metadata=metadata, status=status)
    raw = document.get("spec")
    problems = problems_of(kind.schema.properties["spec"], raw, "spec")
    spec = None
    if not problems:
        spec = decode(raw, ScheduledMachineSpec)
    return MachineView(
        metadata=metadata,
        intent=_intent(spec) if spec is not None else _intent_of_invalid(raw),
        spec=spec,
        status=status,
        problems=problems,
        made_of=made_of(spec) if spec is not None else "",
    )


def _identity(metadata: Metadata) -> tuple[str, int]:
    return metadata.uid, metadata.generation


def _status(raw: Any) -> ScheduledMachineStatus:
    try:
        return decode(raw if raw is not None else {}, ScheduledMachineStatus)
    except InvalidSpec as error:
        raise error.below("status") from error


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
        kubeconfig_secret_ref=spec.kubeconfig_secret_ref,
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
        kubeconfig_secret_ref=(
            read("kubeconfigSecretRef", SecretKeyReference, SecretKeyReference(name=""))
            if fields.get("kubeconfigSecretRef") is not None
            else None
        ),
    )


def _reference_of_invalid(raw: Any) -> ScheduleReference | None:
    try:
        found = decode(raw, ScheduleReference)
    except InvalidSpec:
        return None
    # The third of three checks of the group: schema, CEL, and here.
    bounds = SCHEDULED_MACHINE.schema.properties["spec"].properties["schedule"]
    return None if problems_of(bounds, raw) else found


# Other objects: anybody's, so every part of them may be anything


def _part(of: Any, name: str) -> Mapping[str, Any]:
    """A field that is an object; empty when it is absent or something else."""
    found = of.get(name) if isinstance(of, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _entries(of: Any, name: str) -> list[Mapping[str, Any]]:
    """A field that is a list of objects, without what is none."""
    found = of.get(name) if isinstance(of, Mapping) else None
    return [entry for entry in found if isinstance(entry, Mapping)] if isinstance(found, list) else []


def _text(of: Mapping[str, Any], name: str) -> str:
    found = of.get(name)
    return found if isinstance(found, str) else ""


def read_provider(document: Mapping[str, Any]) -> ProviderView:
    """Any provider: its generation and its status, nothing else."""
    status = document.get("status")
    generation = _part(document, "metadata").get("generation")
    return ProviderView(
        generation=generation if isinstance(generation, int) else 0,
        status=status if isinstance(status, Mapping) else None,
    )


def read_cluster(document: Mapping[str, Any]) -> ClusterView:
    """The CAPI Cluster.

    Raises:
        InvalidSpec: the metadata cannot be read.
    """
    metadata = decode_metadata(document.get("metadata"))
    return ClusterView(
        paused=_part(document, "spec").get("paused") is True,
        deleting=metadata.deleting,
        generation=metadata.generation,
    )


def read_capi_machine(document: Mapping[str, Any]) -> CapiMachineView:
    """The CAPI Machine, of either API version.

    Raises:
        InvalidSpec: the metadata cannot be read.
    """
    spec, status = _part(document, "spec"), _part(document, "status")
    old = _part(_part(status, "deprecated"), "v1beta1")
    return CapiMachineView(
        metadata=decode_metadata(document.get("metadata")),
        api_version=_text(document, "apiVersion"),
        phase=_text(status, "phase"),
        bootstrap=_reference(_part(spec, "bootstrap").get("configRef")),
        infrastructure=_reference(spec.get("infrastructureRef")),
        provider_id=_text(spec, "providerID"),
        node_name=_text(_part(status, "nodeRef"), "name"),
        failure=_text(status, "failureReason") or _text(old, "failureReason"),
        # v1beta1 has its own conditions in this place, without a pause among them, and those of v1beta2 beside them.
        paused_condition="True"
        in (_condition_status(status, "Paused"), _condition_status(_part(status, "v1beta2"), "Paused")),
    )


def _reference(raw: Any) -> ObjectReference | None:
    if not isinstance(raw, Mapping):
        return None
    return ObjectReference(
        api_version=_text(raw, "apiVersion") or _text(raw, "apiGroup"),
        kind=_text(raw, "kind"),
        name=_text(raw, "name"),
    )


def _condition_status(status: Mapping[str, Any], of_type: str) -> str:
    for entry in _entries(status, "conditions"):
        if entry.get("type") == of_type:
            return _text(entry, "status")
    return ""


def read_dependent(document: Mapping[str, Any]) -> DependentView:
    """A bootstrap or infrastructure object of any kind.

    Raises:
        InvalidSpec: the metadata cannot be read.
    """
    return DependentView(
        metadata=decode_metadata(document.get("metadata")),
        api_version=_text(document, "apiVersion"),
        kind=_text(document, "kind"),
    )


def read_node(document: Mapping[str, Any]) -> NodeView:
    """A Node.

    Raises:
        InvalidSpec: the metadata cannot be read.
    """
    metadata = decode_metadata(document.get("metadata"))
    spec, status = _part(document, "spec"), _part(document, "status")
    ready = _condition_status(status, "Ready")
    return NodeView(
        name=metadata.name,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
        provider_id=_text(spec, "providerID"),
        system_uuid=_text(_part(status, "nodeInfo"), "systemUUID"),
        ready=ready == "True",
        reachable=ready != "Unknown",
        unschedulable=spec.get("unschedulable") is True,
        taints=tuple(
            [
                FoundTaint(
                    key=_text(entry, "key"),
                    value=_text(entry, "value") or None,
                    effect=_text(entry, "effect"),
                    time_added=_text(entry, "timeAdded") or None,
                )
                for entry in _entries(spec, "taints")
            ]
        ),
        labels=metadata.labels,
        annotations=metadata.annotations,
        volumes_attached=tuple([_text(entry, "name") for entry in _entries(status, "volumesAttached")]),
    )


def read_pod(document: Mapping[str, Any]) -> PodView:
    """A Pod.

    Raises:
        InvalidSpec: the metadata cannot be read.
    """
    metadata = decode_metadata(document.get("metadata"))
    grace = _part(document, "spec").get("terminationGracePeriodSeconds")
    return PodView(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        daemon=any(owner.controller and owner.kind == "DaemonSet" for owner in metadata.owners),
        mirror=MIRROR_POD in metadata.annotations,
        finished=_part(document, "status").get("phase") in _FINISHED,
        deleting=metadata.deleting,
        grace_seconds=grace if isinstance(grace, int) else _DEFAULT_GRACE,
    )
