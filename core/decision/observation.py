"""Everything read about one machine at one instant, as plain values.

Views hold what the core needs of an object and no more; adapters build them from whatever API version is served.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Any

import attrs

from fivespot.core.api.common import Metadata, ObjectReference, OwnerReference
from fivespot.core.api.duration import Duration
from fivespot.core.api.scheduled_machine import (
    DrainTimeout,
    ScheduledMachineSpec,
    ScheduledMachineStatus,
    ScheduleReference,
    SecretKeyReference,
)
from fivespot.core.decision.knowledge import Absent, Known
from fivespot.core.errors import InvalidSpec

_FIVE_MINUTES = Duration.parse("5m")


@attrs.frozen(kw_only=True)
class Intent:
    """What of a spec steers a removal, readable even where the rest of the spec is not.

    An object that became invalid can still be killed, reclaimed, disabled and deleted; time-outs that cannot be read
    are the defaults. A `kubeconfig_secret_ref` that cannot be read has no name: it is not the same as none, which means
    another Secret, and perhaps another cluster.
    """

    enabled: bool = True
    kill_switch: bool = False
    cluster_name: str = ""
    schedule: ScheduleReference | None = None
    graceful_shutdown_timeout: Duration = _FIVE_MINUTES
    node_drain_timeout: Duration = _FIVE_MINUTES
    on_drain_timeout: DrainTimeout = DrainTimeout.FORCE
    reclaim_enabled: bool = False
    rejoin_after: Duration | None = None
    kubeconfig_secret_ref: SecretKeyReference | None = None


@attrs.frozen(kw_only=True)
class MachineView:
    """The ScheduledMachine. `spec` is None when it is invalid; `problems` then say why.

    `made_of` names what of the spec a machine is created from, as the CAPI Machine records it (`manifest.py`).
    """

    metadata: Metadata
    intent: Intent
    spec: ScheduledMachineSpec | None
    status: ScheduledMachineStatus
    problems: tuple[InvalidSpec, ...] = ()
    made_of: str = ""


@attrs.frozen(kw_only=True)
class ProviderView:
    """All that is ever read of a provider object.

    Attributes:
        generation: `metadata.generation`, 0 when unknown.
        status: as found; None when there is none.
        stale_since: when this controller first saw `observedGeneration` behind `generation`; None when it is not.
    """

    generation: int = 0
    status: Mapping[str, Any] | None = None
    stale_since: datetime | None = None

    @property
    def stale(self) -> bool:
        """Whether the answer is about an older spec than the present one."""
        observed = (self.status or {}).get("observedGeneration")
        return isinstance(observed, int | float) and observed < self.generation


@attrs.frozen(kw_only=True)
class ClusterView:
    """The CAPI Cluster."""

    paused: bool = False
    deleting: bool = False
    generation: int = 0


@attrs.frozen(kw_only=True)
class CapiMachineView:
    """The CAPI Machine.

    Attributes:
        failure: the terminal failure reason, empty when there is none.
        paused_condition: whether Cluster API reports `Paused=True`.
        node_name: the Node that the Machine names, empty when it names none yet.
    """

    metadata: Metadata
    api_version: str
    phase: str = ""
    bootstrap: ObjectReference | None = None
    infrastructure: ObjectReference | None = None
    provider_id: str = ""
    node_name: str = ""
    failure: str = ""
    paused_condition: bool = False


@attrs.frozen(kw_only=True)
class DependentView:
    """A bootstrap or infrastructure object."""

    metadata: Metadata
    api_version: str
    kind: str


@attrs.frozen(kw_only=True)
class FoundTaint:
    """A taint on a Node; `time_added` is Kubernetes' own and goes back as it came."""

    key: str
    value: str | None = None
    effect: str = ""
    time_added: str | None = None


@attrs.frozen(kw_only=True)
class NodeView:
    """A Node. `reachable` is False when its kubelet stopped reporting (`Ready=Unknown`)."""

    name: str
    uid: str
    resource_version: str = ""
    provider_id: str = ""
    system_uuid: str = ""
    ready: bool = False
    reachable: bool = True
    unschedulable: bool = False
    taints: tuple[FoundTaint, ...] = ()
    labels: Mapping[str, str] = attrs.field(factory=dict)
    annotations: Mapping[str, str] = attrs.field(factory=dict)
    volumes_attached: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class PodView:
    """A Pod on the node. `daemon` is owned by a DaemonSet, `mirror` a static pod's image in the API."""

    namespace: str
    name: str
    uid: str
    daemon: bool = False
    mirror: bool = False
    finished: bool = False
    deleting: bool = False
    grace_seconds: int = 30


@attrs.frozen(kw_only=True)
class BlockedEviction:
    """A pod whose eviction a budget refused at the last try."""

    uid: str
    by: str


class Slot(Enum):
    """Whether a concurrency cap lets this machine go on."""

    GRANTED = "Granted"
    WAITING = "Waiting"


@attrs.frozen(kw_only=True)
class Failure:
    """The step that failed at the last try, kept by whoever performs actions.

    Attributes:
        step: what was tried, such as `create infrastructure`.
        reason: the API's reason, such as Forbidden, or NameConflict.
        since: when it first failed without a success in between.
    """

    step: str
    reason: str
    message: str
    since: datetime


@attrs.frozen(kw_only=True)
class Observation:
    """One machine and all that matters to it. Every part is three-valued; see `knowledge.py`.

    Attributes:
        node: the Node with the Machine's provider id, or the one the Machine names; in the child cluster.
        last_node: the Node named by `status.lastNode`, else by `status.reclaim.node`, in the cluster it was found in;
            looked for only when no Machine of ours exists.
        last_node_claimed: whether another CAPI Machine has the provider id of `last_node`.
        pods: on `node`, else on `last_node`; listed only while a removal or a stray Node needs them.
        agent_present: whether the agent's label, ConfigMap or pod is on the node.
        last_node_confirmed: whether `last_node` was read live for this very decision.
        failure: of the last pass, kept by whoever performs actions; its message must not change from try to try.
        status_written_at: when this process last wrote the status, None when it has not.
    """

    machine: MachineView
    provider: Known[ProviderView] = Absent()
    cluster: Known[ClusterView] = Absent()
    capi_machine: Known[CapiMachineView] = Absent()
    bootstrap: Known[DependentView] = Absent()
    infrastructure: Known[DependentView] = Absent()
    node: Known[NodeView] = Absent()
    last_node: Known[NodeView] = Absent()
    last_node_claimed: bool = False
    last_node_confirmed: bool = False
    pods: Known[tuple[PodView, ...]] = Absent()
    agent_present: bool = False
    blocked: tuple[BlockedEviction, ...] = ()
    slot: Slot = Slot.GRANTED
    failure: Failure | None = None
    capi_version: str = "v1beta2"
    status_written_at: datetime | None = None


def owned_by(metadata: Metadata, owner: Metadata, kind: str) -> OwnerReference | None:
    """The reference by which `metadata` belongs to an object of that kind and name, whatever uid it records.

    Backups restore owners with new uids; the name is what a restore keeps.
    """
    for entry in metadata.owners:
        if entry.kind == kind and entry.name == owner.name:
            return entry
    return None
