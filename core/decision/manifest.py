"""The three objects that are created for a machine, as the API server wants them.

Owner references and time-outs are part of the create: added later, they can be lost to Cluster API's own list patches.
The Machine's controller is the ScheduledMachine, so that garbage collection works and deleting the Cluster does not
delete it behind our back; Cluster API has to become the controller of the other two, or the Machine stays Pending.
"""

import functools
import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from fivespot.core.api.common import Metadata
from fivespot.core.api.duration import Duration
from fivespot.core.api.scheduled_machine import (
    BootstrapTemplate,
    InfrastructureTemplate,
    ScheduledMachineSpec,
)
from fivespot.core.decision.actions import Create, Role
from fivespot.core.names import (
    CAPI_GROUP,
    CLUSTER_LABEL,
    CREATED_FROM,
    MACHINE_API_VERSION,
    MACHINE_KIND,
    MACHINE_LABEL,
    group_of,
)

V1BETA1: Final = "v1beta1"
V1BETA2: Final = "v1beta2"


def labels_of(machine: Metadata, spec: ScheduledMachineSpec) -> dict[str, str]:
    """The two labels that every object created for a machine carries."""
    return {MACHINE_LABEL: machine.name, CLUSTER_LABEL: spec.cluster_name}


def made_of(spec: ScheduledMachineSpec) -> str:
    """What of a spec a machine is created from and that no edit changes later: each field with a digest of its value.

    The CAPI Machine carries it in an annotation, so that an edit can be told from the machine that runs, whatever
    defaults providers have put into their objects since.
    """
    fields = (
        ("bootstrapSpec", _content(spec.bootstrap_spec)),
        ("infrastructureSpec", _content(spec.infrastructure_spec)),
        ("version", spec.version),
        ("failureDomain", spec.failure_domain),
    )
    return " ".join(f"{name}={_digest(value)}" for name, value in fields)


def _content(embedded: BootstrapTemplate | InfrastructureTemplate) -> list[Any]:
    meta = embedded.metadata
    return [embedded.api_version, embedded.kind, meta.labels, meta.annotations, embedded.spec]


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.blake2b(text.encode("utf-8", "backslashreplace"), digest_size=6).hexdigest()


def drift(wanted: str, annotations: Mapping[str, str]) -> str:
    """How the spec differs from the running machine, as an addition to a sentence; empty when nothing is known to."""
    found = annotations.get(CREATED_FROM)
    if not wanted or not found or found == wanted:
        return ""
    return _drift(wanted, found)


@functools.lru_cache(maxsize=256)
def _drift(wanted: str, found: str) -> str:
    before = frozenset(found.split())
    names = [entry.partition("=")[0] for entry in wanted.split() if entry not in before]
    if not names:
        return ""
    return (
        f"; {' and '.join(names)} of the spec differ from the running machine and count at its next creation"
    )


def creations(
    machine: Metadata, spec: ScheduledMachineSpec, capi_version: str
) -> tuple[Create, Create, Create]:
    """Bootstrap, infrastructure and Machine, in the order of creation."""
    return (
        Create(
            role=Role.BOOTSTRAP, name=machine.name, manifest=_dependent(machine, spec, spec.bootstrap_spec)
        ),
        Create(
            role=Role.INFRASTRUCTURE,
            name=machine.name,
            manifest=_dependent(machine, spec, spec.infrastructure_spec),
        ),
        Create(role=Role.MACHINE, name=machine.name, manifest=_machine(machine, spec, capi_version)),
    )


def _metadata(
    machine: Metadata,
    spec: ScheduledMachineSpec,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    *,
    controller: bool,
) -> dict[str, Any]:
    owner = {
        "apiVersion": MACHINE_API_VERSION,
        "kind": MACHINE_KIND,
        "name": machine.name,
        "uid": machine.uid,
        "controller": controller,
        "blockOwnerDeletion": True,
    }
    found: dict[str, Any] = {
        "name": machine.name,
        "namespace": machine.namespace,
        "labels": {**labels, **labels_of(machine, spec)},
        "ownerReferences": [owner],
    }
    if annotations:
        found["annotations"] = dict(annotations)
    return found


def _dependent(
    machine: Metadata, spec: ScheduledMachineSpec, embedded: BootstrapTemplate | InfrastructureTemplate
) -> dict[str, Any]:
    meta = embedded.metadata
    return {
        "apiVersion": embedded.api_version,
        "kind": embedded.kind,
        "metadata": _metadata(machine, spec, meta.labels, meta.annotations, controller=False),
        "spec": embedded.spec,
    }


def _machine(machine: Metadata, spec: ScheduledMachineSpec, capi_version: str) -> dict[str, Any]:
    template = spec.machine_template
    labels = template.labels if template else {}
    annotations = template.annotations if template else {}
    body: dict[str, Any] = {
        "clusterName": spec.cluster_name,
        "bootstrap": {"configRef": _reference(machine, spec.bootstrap_spec, capi_version)},
        "infrastructureRef": _reference(machine, spec.infrastructure_spec, capi_version),
        **_timeouts(spec, capi_version),
    }
    if spec.version is not None:
        body["version"] = spec.version
    if spec.failure_domain is not None:
        body["failureDomain"] = spec.failure_domain
    return {
        "apiVersion": f"{CAPI_GROUP}/{capi_version}",
        "kind": "Machine",
        "metadata": _metadata(
            machine, spec, labels, {**annotations, CREATED_FROM: made_of(spec)}, controller=True
        ),
        "spec": body,
    }


def _reference(
    machine: Metadata, embedded: BootstrapTemplate | InfrastructureTemplate, capi_version: str
) -> dict[str, str]:
    """v1beta2 refers by group, v1beta1 by version and namespace."""
    if capi_version == V1BETA1:
        return {
            "apiVersion": embedded.api_version,
            "kind": embedded.kind,
            "name": machine.name,
            "namespace": machine.namespace,
        }
    return {"apiGroup": group_of(embedded.api_version), "kind": embedded.kind, "name": machine.name}


def _timeouts(spec: ScheduledMachineSpec, capi_version: str) -> dict[str, Any]:
    """The Machine's own bounds: Cluster API reads 0 and a missing one as unlimited, so 0 of ours is 1 s there."""
    drain, whole = (
        _at_least_a_second(spec.node_drain_timeout),
        _at_least_a_second(spec.graceful_shutdown_timeout),
    )
    if capi_version == V1BETA1:
        return {
            "nodeDrainTimeout": f"{min(drain, whole)}s",
            "nodeVolumeDetachTimeout": f"{min(drain, whole)}s",
            "nodeDeletionTimeout": f"{whole}s",
        }
    return {
        "deletion": {
            "nodeDrainTimeoutSeconds": min(drain, whole),
            "nodeVolumeDetachTimeoutSeconds": min(drain, whole),
            "nodeDeletionTimeoutSeconds": whole,
        }
    }


def _at_least_a_second(duration: Duration) -> int:
    return max(1, duration.seconds)
