"""ScheduledMachine: one physical machine, when it is to be lent, and how it joins.

The fields and their bounds are the compatibility surface: manifests written for finos/5-spot v1beta1 work unchanged.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Any, Final

import attrs

from fivespot.core.api.allowed import GROUP_PATTERN, VERSION_PATTERN
from fivespot.core.api.common import (
    KEY_PREFIX_LENGTH,
    KIND_NAME,
    LABEL_VALUE,
    NO_RESERVED_KEYS,
    NOT_RESERVED_KEY,
    OBJECT_NAME,
    QUALIFIED_KEY,
    QUALIFIED_KEYS,
    Condition,
    Metadata,
    ObjectReference,
)
from fivespot.core.api.duration import Duration
from fivespot.core.api.schema import Bounds, Rule, prop, rules
from fivespot.core.names import (
    KUBECONFIG_SECRET_KEY,
    PROVIDER_GROUP,
    group_of,
)

_LABELS: Final = Bounds(
    max_properties=64,
    item=LABEL_VALUE,
    rules=(NO_RESERVED_KEYS, QUALIFIED_KEYS),
)
_ANNOTATIONS: Final = Bounds(
    max_properties=64,
    item=Bounds(max_length=8192),
    rules=(NO_RESERVED_KEYS, QUALIFIED_KEYS),
)
_CLUSTER_NAME: Final = Bounds(
    pattern="^[A-Za-z0-9][A-Za-z0-9._-]*$",
    min_length=1,
    max_length=63,
    remedy="write the name of the Cluster: at most 63 letters, digits, '.', '_' or '-'",
)


class DrainTimeout(Enum):
    """What happens when the drain bound passes and budgets still protect pods."""

    FORCE = "Force"
    HOLD = "Hold"


class TaintEffect(Enum):
    """Kubernetes' taint effects."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


@attrs.frozen(kw_only=True)
class ScheduleReference:
    """The provider object that answers for this machine, in the machine's own namespace."""

    api_version: str = prop(
        "Group and version of the provider.",
        bounds=Bounds(
            pattern=f"^{PROVIDER_GROUP.replace('.', '[.]')}/v[0-9][a-z0-9]{{0,62}}$",
            max_length=253,
            remedy=f"only providers of the group {PROVIDER_GROUP} are trusted; write {PROVIDER_GROUP}/v1alpha1",
            rules=(
                Rule(
                    cel=f"self.startsWith('{PROVIDER_GROUP}/')",
                    holds=lambda value: group_of(value) == PROVIDER_GROUP,
                    remedy=f"the group must be {PROVIDER_GROUP}",
                ),
            ),
        ),
    )
    kind: str = prop("Kind of the provider.", bounds=KIND_NAME)
    name: str = prop("Name of the provider.", bounds=OBJECT_NAME)

    @property
    def label(self) -> str:
        """As people say it: `TimeBasedSpotSchedule/nights`."""
        return f"{self.kind}/{self.name}"


@attrs.frozen(kw_only=True)
class EmbeddedMetadata:
    """Labels and annotations of an object that we create."""

    labels: Mapping[str, str] = prop("Labels.", default=attrs.Factory(dict), bounds=_LABELS)
    annotations: Mapping[str, str] = prop("Annotations.", default=attrs.Factory(dict), bounds=_ANNOTATIONS)


_EMBEDDED_GROUP: Final = Bounds(
    pattern=f"^{GROUP_PATTERN}/{VERSION_PATTERN}$",
    max_length=253,
    remedy="write the group and version of a kind, such as infrastructure.cluster.x-k8s.io/v1beta1",
)
"""Any group that could be allowed; which ones are, the operator decides (`allowed.py`)."""


@attrs.frozen(kw_only=True)
class BootstrapTemplate:
    """The bootstrap object of the machine; `spec` is forwarded untouched."""

    api_version: str = prop("Group and version.", bounds=_EMBEDDED_GROUP)
    kind: str = prop("Kind, such as K0sWorkerConfig.", bounds=KIND_NAME)
    metadata: EmbeddedMetadata = prop(
        "Labels and annotations; the name and the namespace are the machine's.",
        default=attrs.Factory(EmbeddedMetadata),
        bounds=Bounds(forbidden=("name", "namespace")),
    )
    spec: Mapping[str, Any] = prop("Forwarded untouched.")


@attrs.frozen(kw_only=True)
class InfrastructureTemplate:
    """The infrastructure object of the machine; `spec` is forwarded untouched."""

    api_version: str = prop("Group and version.", bounds=_EMBEDDED_GROUP)
    kind: str = prop("Kind, such as RemoteMachine.", bounds=KIND_NAME)
    metadata: EmbeddedMetadata = prop(
        "Labels and annotations; the name and the namespace are the machine's.",
        default=attrs.Factory(EmbeddedMetadata),
        bounds=Bounds(forbidden=("name", "namespace")),
    )
    spec: Mapping[str, Any] = prop("Forwarded untouched.")


Embedded = BootstrapTemplate | InfrastructureTemplate


@attrs.frozen(kw_only=True)
class NodeTaint:
    """A taint that the Node carries while it is lent; identity is (key, effect)."""

    key: str = prop(
        "Qualified key.", bounds=attrs.evolve(QUALIFIED_KEY, rules=(KEY_PREFIX_LENGTH, NOT_RESERVED_KEY))
    )
    value: str | None = prop("Value.", default=None, bounds=LABEL_VALUE)
    effect: TaintEffect = prop("NoSchedule, PreferNoSchedule or NoExecute.")


@attrs.frozen(kw_only=True)
class SecretKeyReference:
    """One key of a Secret in the same namespace."""

    name: str = prop("Name of the Secret.", bounds=OBJECT_NAME)
    key: str = prop(
        "Key inside the Secret.",
        default=KUBECONFIG_SECRET_KEY,
        server_default=KUBECONFIG_SECRET_KEY,
        bounds=Bounds(
            pattern="^[-._a-zA-Z0-9]+$",
            min_length=1,
            max_length=253,
            remedy="write the key of the Secret's data",
        ),
    )


@attrs.frozen(kw_only=True)
class ReclaimPolicy:
    """Present: a person's reclaim request is honoured even without `killIfCommands`."""

    rejoin_after: Duration | None = prop(
        "How long a reclaimed machine stays out unless a person releases it; absent: until a person does.",
        default=None,
    )


_IMMUTABLE: Final = (
    "delete the machine first, or wait until no machine exists: this field cannot change while one does"
)


def _unchanged_while_machine(field: str, defaults: Mapping[str, Any] | None = None) -> Rule:
    """`field` of spec may change only while status names no CAPI Machine; `defaults` is what the server fills into it."""

    def value_of(machine: Mapping[str, Any]) -> Any:
        value = (machine.get("spec") or {}).get(field)
        return {**defaults, **_given(value)} if defaults and value is not None else value

    return Rule(
        cel=(
            f"!(has(oldSelf.status) && has(oldSelf.status.machineRef)) || "
            f"(has(self.spec.{field}) == has(oldSelf.spec.{field}) && "
            f"(!has(self.spec.{field}) || self.spec.{field} == oldSelf.spec.{field}))"
        ),
        holds=lambda new, old: (
            (old.get("status") or {}).get("machineRef") is None or value_of(new) == value_of(old)
        ),
        remedy=f"spec.{field}: {_IMMUTABLE}",
        field=f"spec.{field}",
        transition=True,
    )


def _given(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if item is not None}


@attrs.frozen(kw_only=True)
class ScheduledMachineSpec:
    """What its owner and the platform team want of a machine."""

    schedule: ScheduleReference = prop("The provider that says when this machine is lent.")
    enabled: bool = prop("Administrative master switch.", default=True, server_default=True)
    cluster_name: str = prop("The Cluster it joins; immutable while a machine exists.", bounds=_CLUSTER_NAME)
    bootstrap_spec: BootstrapTemplate = prop("How it bootstraps.")
    infrastructure_spec: InfrastructureTemplate = prop("What it is made of.")
    machine_template: EmbeddedMetadata | None = prop(
        "Labels and annotations of the CAPI Machine.", default=None
    )
    version: str | None = prop(
        "Kubernetes version, becomes Machine.spec.version.",
        default=None,
        bounds=Bounds(min_length=1, max_length=256),
    )
    failure_domain: str | None = prop(
        "Becomes Machine.spec.failureDomain.", default=None, bounds=Bounds(min_length=1, max_length=256)
    )
    priority: int = prop(
        "Order in which machines are provisioned and drained when a concurrency cap binds; higher first.",
        default=50,
        server_default=50,
        bounds=Bounds(minimum=0, maximum=255, remedy="write a whole number from 0 to 255"),
    )
    graceful_shutdown_timeout: Duration = prop(
        "Bound on the whole graceful removal.", default=Duration.parse("5m"), server_default="5m"
    )
    node_drain_timeout: Duration = prop(
        "Bound on the drain inside it.", default=Duration.parse("5m"), server_default="5m"
    )
    on_drain_timeout: DrainTimeout = prop(
        "When the drain bound passes and budgets still protect pods: go on (Force), or stay (Hold).",
        default=DrainTimeout.FORCE,
        server_default="Force",
    )
    kill_switch: bool = prop("Terminal teardown; always wins.", default=False, server_default=False)
    kill_if_commands: tuple[str, ...] | None = prop(
        "Programs whose start takes the machine out of the cluster at once.",
        default=None,
        bounds=Bounds(
            max_items=100,
            remedy="write at most 100 commands",
            item=Bounds(
                min_length=1,
                max_length=256,
                pattern="[^\\t\\n\\v\\f\\r ]",
                remedy="write a command of 1 to 256 characters that is not blank",
            ),
        ),
    )
    reclaim: ReclaimPolicy | None = prop("Honour a person's reclaim request.", default=None)
    node_taints: tuple[NodeTaint, ...] = prop(
        "Taints on the Node while it is lent.",
        default=(),
        bounds=Bounds(
            max_items=100,
            map_keys=("key", "effect"),
            remedy="each pair of key and effect may occur once, at most 100",
        ),
    )
    kubeconfig_secret_ref: SecretKeyReference | None = prop(
        "The child cluster's kubeconfig; absent: Secret <clusterName>-kubeconfig, key value.", default=None
    )


@attrs.frozen(kw_only=True)
class NodeReference:
    """The Node of the machine, and the cluster in which it was found."""

    api_version: str = prop("v1.", default="v1")
    kind: str = prop("Node.", default="Node")
    name: str = prop("Name.", default="")
    uid: str | None = prop("Unique id.", default=None)
    cluster: str | None = prop("The Cluster in which it was found.", default=None)


@attrs.frozen(kw_only=True)
class LastNode:
    """The Node that was seen last; a Node without its Machine is recognised by it."""

    cluster: str = prop("The Cluster in which it was found.", default="")
    name: str = prop("Name.", default="")
    uid: str = prop("Unique id.", default="")
    system_uuid: str = prop("status.nodeInfo.systemUUID.", default="", wire="systemUUID")


@attrs.frozen(kw_only=True)
class Taint:
    """A taint as a Node has it."""

    key: str = prop("Key.", default="")
    value: str | None = prop("Value.", default=None)
    effect: str = prop("Effect.", default="")


@attrs.frozen(kw_only=True)
class SpotScheduleStatus:
    """What the provider says, and the verdict that is held while it cannot be read."""

    resolved: bool = prop("Whether the provider could be read.", default=False)
    active: bool | None = prop("The last verdict that resolved: the held one.", default=None)
    reason: str | None = prop("Why it is not resolved, or Resolved.", default=None)
    message: str | None = prop("For people.", default=None)
    held_from: str | None = prop("The reference (kind/name) that gave the held verdict.", default=None)
    last_transition_time: datetime | None = prop("When `active` last changed.", default=None)


class Manner(Enum):
    """How a machine goes down; within one removal it only tightens."""

    GRACEFUL = "Graceful"
    NOW = "Now"


@attrs.frozen(kw_only=True)
class Shutdown:
    """A removal in progress. Null deadlines: not granted a slot yet, or paused."""

    started_at: datetime | None = prop("When the bounds began to run.", default=None)
    cause: str | None = prop("Who decided it, as `decidedBy`.", default=None)
    manner: Manner = prop("Graceful or Now.", default=Manner.GRACEFUL)
    drain_deadline: datetime | None = prop("When the drain bound passes.", default=None)
    deadline: datetime | None = prop("When the bound on the whole removal passes.", default=None)
    drained_at: datetime | None = prop("When the node was found empty.", default=None)
    cordoned: bool = prop("Whether the cordon is ours.", default=False)
    remaining_pods: int | None = prop("Pods still to go.", default=None)
    blocked_by: tuple[str, ...] = prop("Pods and the budgets that protect them.", default=())


@attrs.frozen(kw_only=True)
class ReclaimedNode:
    """The Node that was reclaimed."""

    name: str = prop("Name.", default="")
    uid: str = prop("Unique id.", default="")


@attrs.frozen(kw_only=True)
class ReclaimRecord:
    """One reclaim that is over."""

    observed_at: datetime | None = prop("When it was noticed.", default=None)
    held_at: datetime | None = prop("When the machine was out.", default=None)
    reason: str | None = prop("Its reason.", default=None)


class ReclaimState(Enum):
    """The two states of a reclaim; no reclaim is no object."""

    IN_PROGRESS = "InProgress"
    HELD = "Held"


@attrs.frozen(kw_only=True)
class Reclaim:
    """An emergency reclaim, in progress or held, and those before it."""

    state: ReclaimState | None = prop("InProgress, Held, or null.", default=None)
    reason: str | None = prop("The request's reason.", default=None)
    requested_at: str | None = prop("As the request says; workstation clocks are wrong.", default=None)
    observed_at: datetime | None = prop("When the controller noticed it.", default=None)
    pods_deleted_at: datetime | None = prop("When the first pods were deleted.", default=None)
    node: ReclaimedNode | None = prop("The Node.", default=None)
    history: tuple[ReclaimRecord, ...] = prop("The last ten.", default=())
    hold_until: datetime | None = prop("When the hold ends by itself.", default=None)
    stale_cleared_for: str | None = prop(
        "The CAPI Machine uid a stale request was cleared for.", default=None
    )


@attrs.frozen(kw_only=True)
class Provisioning:
    """A machine on its way up."""

    started_at: datetime | None = prop("When the CAPI Machine was created.", default=None)
    attempt: int | None = prop("How often a failed Machine was replaced.", default=None)
    replacing: str | None = prop("The uid of the failed Machine that is to be replaced.", default=None)
    not_before: datetime | None = prop("When it is replaced.", default=None)


@attrs.frozen(kw_only=True)
class ScheduledMachineStatus:
    """What we found and decided. No field is a function of the current time."""

    phase: str | None = prop("Phase.", default=None)
    ready: bool | None = prop("Active with a Ready node.", default=None)
    in_schedule: bool | None = prop("The effective verdict.", default=None)
    message: str | None = prop("For people.", default=None)
    observed_generation: int | None = prop("The generation of the spec this speaks of.", default=None)
    decided_by: str | None = prop("One word for who decided.", default=None)
    conditions: tuple[Condition, ...] = prop(
        "Conditions.", default=(), bounds=Bounds(map_keys=("type",), max_items=64)
    )
    machine_ref: ObjectReference | None = prop("The CAPI Machine.", default=None)
    bootstrap_ref: ObjectReference | None = prop("The bootstrap object.", default=None)
    infrastructure_ref: ObjectReference | None = prop("The infrastructure object.", default=None)
    node_ref: NodeReference | None = prop("The Node.", default=None)
    last_node: LastNode | None = prop("The Node seen last.", default=None)
    provider_id: str | None = prop("The Machine's provider id.", default=None, wire="providerID")
    applied_node_taints: tuple[Taint, ...] = prop("Taints of ours on the Node.", default=())
    last_scheduled_time: datetime | None = prop("When a machine was last created.", default=None)
    next_activation: datetime | None = prop("When the provider says it opens next.", default=None)
    next_cleanup: datetime | None = prop("When the provider says it closes next.", default=None)
    next_transition: datetime | None = prop("The provider's next transition.", default=None)
    spot_schedule: SpotScheduleStatus | None = prop("The provider's answer.", default=None)
    shutdown: Shutdown | None = prop("A removal in progress.", default=None)
    reclaim: Reclaim | None = prop("An emergency reclaim.", default=None)
    provisioning: Provisioning | None = prop("A machine on its way up.", default=None)


@rules(
    Rule(
        cel="size(self.metadata.name) <= 63",
        holds=lambda value: len((value.get("metadata") or {}).get("name") or "") <= 63,  # noqa: PLR2004 - a label value
        remedy="choose a name of at most 63 characters: it becomes a label value",
        field="metadata.name",
    ),
    _unchanged_while_machine("clusterName"),
    _unchanged_while_machine("kubeconfigSecretRef", {"key": KUBECONFIG_SECRET_KEY}),
)
@attrs.frozen(kw_only=True)
class ScheduledMachine:
    """A physical machine that is lent to a cluster while its schedule says so."""

    metadata: Metadata
    spec: ScheduledMachineSpec = prop("What is wanted.")
    status: ScheduledMachineStatus = prop("What is.", default=attrs.Factory(ScheduledMachineStatus))
