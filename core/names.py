"""Every wire string that more than one place needs, once: groups, labels, annotations, finalizer, field managers.

What is written to or read from a cluster is compatibility: changing a value here breaks installed fleets.
"""

from typing import Final

MACHINE_GROUP: Final = "5spot.finos.org"
MACHINE_VERSION: Final = "v1beta1"
MACHINE_API_VERSION: Final = f"{MACHINE_GROUP}/{MACHINE_VERSION}"
MACHINE_KIND: Final = "ScheduledMachine"

PROVIDER_GROUP: Final = "spotschedules.5spot.finos.org"
PROVIDER_VERSION: Final = "v1alpha1"

CAPI_GROUP: Final = "cluster.x-k8s.io"

BOOTSTRAP_GROUPS: Final = ("bootstrap.cluster.x-k8s.io", "k0smotron.io")
"""Groups of embedded bootstrap kinds that are allowed by default."""
INFRASTRUCTURE_GROUPS: Final = ("infrastructure.cluster.x-k8s.io", "k0smotron.io")
"""Groups of embedded infrastructure kinds that are allowed by default."""

RESERVED_DOMAINS: Final = (MACHINE_GROUP, "kubernetes.io", "k8s.io", CAPI_GROUP)
"""Label, annotation and taint prefixes, with every sub-domain, that a user's manifest may not set."""

# Labels and selectors
MACHINE_LABEL: Final = f"{MACHINE_GROUP}/scheduled-machine"
"""On bootstrap, infrastructure and CAPI Machine, and the selector of every watch on them."""
CLUSTER_LABEL: Final = f"{CAPI_GROUP}/cluster-name"
AGENT_LABEL: Final = f"{MACHINE_GROUP}/reclaim-agent"
AGENT_LABEL_VALUE: Final = "enabled"

# Annotations on a Node
RECLAIM_REQUESTED: Final = f"{MACHINE_GROUP}/reclaim-requested"
RECLAIM_REASON: Final = f"{MACHINE_GROUP}/reclaim-reason"
RECLAIM_REQUESTED_AT: Final = f"{MACHINE_GROUP}/reclaim-requested-at"
APPLIED_TAINTS: Final = f"{MACHINE_GROUP}/applied-taints"
CORDONED_BY: Final = f"{MACHINE_GROUP}/cordoned-by"

# Annotations on a schedule that was made from somebody's calendar
CALENDAR: Final = f"{MACHINE_GROUP}/calendar"
CALENDAR_SOURCE: Final = f"{MACHINE_GROUP}/calendar-source"
CALENDAR_DAYS: Final = f"{MACHINE_GROUP}/calendar-days"
"""First and last day, `2026-01-01/2027-12-31`."""
CALENDAR_DURING: Final = f"{MACHINE_GROUP}/calendar-during"
"""What a schedule is while an event of the calendar lasts: `closed` or `open`; absent where it is open in sessions."""

# What `5spot override` makes
OVERRIDE_LABEL: Final = f"{MACHINE_GROUP}/override-of"
"""On the two schedules of an override: the machine's name, and the sign that they may be replaced and deleted again."""
OVERRIDE_SUFFIX: Final = "-override"
"""Both are called as the machine (at most 63 characters), and this: far from the 253 that a name may have."""
OVERRIDE_FIELD_MANAGER: Final = "5spot-override"

# Annotations on a ScheduledMachine
RECLAIM_RELEASE: Final = f"{MACHINE_GROUP}/reclaim-release"

# Cluster API's annotations
PAUSED: Final = f"{CAPI_GROUP}/paused"
SKIP_REMEDIATION: Final = f"{CAPI_GROUP}/skip-remediation"
EXCLUDE_NODE_DRAINING: Final = "machine.cluster.x-k8s.io/exclude-node-draining"
EXCLUDE_VOLUME_DETACH: Final = "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach"
UNPAUSED: Final = f"{MACHINE_GROUP}/unpaused"
CREATED_FROM: Final = f"{MACHINE_GROUP}/created-from"
"""On a CAPI Machine: digests of what of the spec it was created from."""
NODE_MACHINE: Final = f"{CAPI_GROUP}/machine"
"""On a Node: the CAPI Machine that Cluster API believes it belongs to."""
NODE_CLUSTER_NAMESPACE: Final = f"{CAPI_GROUP}/cluster-namespace"

# Kubernetes' own
MIRROR_POD: Final = "kubernetes.io/config.mirror"

FINALIZER: Final = f"{MACHINE_GROUP}/scheduledmachine"
FIELD_MANAGER: Final = "5spot-controller"
TAINT_FIELD_MANAGER: Final = "5spot-controller-node-taints"
PROVIDER_FIELD_MANAGER: Final = "5spot-provider"

SYSTEM_NAMESPACE: Final = "5spot-system"
LEADER_LEASE: Final = "5spot-leader"
KUBECONFIG_SECRET_SUFFIX: Final = "-kubeconfig"
KUBECONFIG_SECRET_KEY: Final = "value"


def group_of(api_version: str) -> str:
    """The API group in `group/version`, empty for the core group (`v1`)."""
    return api_version.rpartition("/")[0]


def is_reserved(key: str, domains: tuple[str, ...] = RESERVED_DOMAINS) -> bool:
    """Whether the prefix of a qualified key (`prefix/name`) is one of `domains` or below one of them."""
    prefix, slash, _ = key.partition("/")
    return bool(slash) and any(prefix == domain or prefix.endswith(f".{domain}") for domain in domains)
