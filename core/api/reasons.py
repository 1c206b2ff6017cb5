"""Types and reasons of conditions, and reasons of Events: every word that is written, once, with what it means.

`docs/api.md` lists them from here.
"""

from collections.abc import Mapping
from typing import Final

# Types of conditions
READY: Final = "Ready"
SCHEDULED: Final = "Scheduled"
SPOT_SCHEDULE_RESOLVED: Final = "SpotScheduleResolved"
MACHINE_READY: Final = "MachineReady"
REFERENCES_VALID: Final = "ReferencesValid"
NODE_TAINTED: Final = "NodeTainted"
CHILD_CLUSTER_REACHABLE: Final = "ChildClusterReachable"
RECLAIM_HONOURED: Final = "ReclaimHonoured"

CONDITION_TYPES: Final[Mapping[str, str]] = {
    READY: "Active, with a Ready node; otherwise its reason says what is the case",
    SCHEDULED: "whether the machine should exist now, and who decides it",
    SPOT_SCHEDULE_RESOLVED: "whether the provider's answer can be read",
    MACHINE_READY: "how far the CAPI Machine and its Node are",
    REFERENCES_VALID: "whether the spec is valid, and what it refers to may be read",
    NODE_TAINTED: "whether `nodeTaints` are on the Node; only while some are wanted or recorded",
    CHILD_CLUSTER_REACHABLE: "whether the Node's cluster can be seen; only while a machine exists",
    RECLAIM_HONOURED: "False while a reclaim request is on a Node whose machine has no emergency path",
}

# Reasons of conditions
RECONCILE_SUCCEEDED: Final = "ReconcileSucceeded"
MACHINE_CREATION_FAILED: Final = "MachineCreationFailed"
MACHINE_MISSING: Final = "MachineMissing"
MACHINE_DELETED: Final = "MachineDeleted"
MACHINE_DELETION_FAILED: Final = "MachineDeletionFailed"
PROVISIONING: Final = "Provisioning"
PROVISIONING_TIMED_OUT: Final = "ProvisioningTimedOut"
SCHEDULE_ACTIVE: Final = "ScheduleActive"
SCHEDULE_INACTIVE: Final = "ScheduleInactive"
SCHEDULE_DISABLED: Final = "ScheduleDisabled"
AWAITING_SCHEDULE: Final = "AwaitingSchedule"
GRACE_PERIOD_ACTIVE: Final = "GracePeriodActive"
NODE_DRAINING: Final = "NodeDraining"
NODE_DRAINED: Final = "NodeDrained"
NODE_DRAIN_TIMED_OUT: Final = "NodeDrainTimedOut"
NODE_DRAIN_FAILED: Final = "NodeDrainFailed"
KILL_SWITCH_ACTIVATED: Final = "KillSwitchActivated"
EMERGENCY_RECLAIM: Final = "EmergencyReclaim"
EMERGENCY_RECLAIM_DISABLED_SCHEDULE: Final = "EmergencyReclaimDisabledSchedule"
RESOLVED: Final = "Resolved"
PROVIDER_CRD_NOT_INSTALLED: Final = "ProviderCRDNotInstalled"
PROVIDER_NOT_FOUND: Final = "ProviderNotFound"
STATUS_ACTIVE_MISSING: Final = "StatusActiveMissing"
PROVIDER_NOT_READY: Final = "ProviderNotReady"
PROVIDER_STALE: Final = "ProviderStale"
PROVIDER_UNREADABLE: Final = "ProviderUnreadable"
REFERENCES_INVALID: Final = "ReferencesInvalid"
PERMISSION_DENIED: Final = "PermissionDenied"
KUBECONFIG_MISSING: Final = "KubeconfigMissing"
KUBECONFIG_REJECTED: Final = "KubeconfigRejected"
CHILD_CLUSTER_UNREACHABLE: Final = "ChildClusterUnreachable"
WAITING_FOR_SLOT: Final = "WaitingForSlot"
WAITING_FOR_PREVIOUS: Final = "WaitingForPrevious"
NAME_CONFLICT: Final = "NameConflict"
PAUSED: Final = "Paused"
APPLIED: Final = "Applied"
NO_NODE_YET: Final = "NoNodeYet"
NODE_NOT_READY: Final = "NodeNotReady"
PATCH_FAILED: Final = "PatchFailed"
TAINT_OWNERSHIP_CONFLICT: Final = "TaintOwnershipConflict"
RECLAIM_NOT_ENABLED: Final = "ReclaimNotEnabled"
FINALIZER_CLEANUP_TIMED_OUT: Final = "FinalizerCleanupTimedOut"

# Reasons of Events alone
RAPID_RE_RECLAIM: Final = "RapidReReclaim"
RECLAIM_REQUEST_STALE: Final = "ReclaimRequestStale"
NODE_RETURNED: Final = "NodeReturned"
DRAIN_BLOCKED: Final = "DrainBlocked"
ORPHAN_ADOPTED: Final = "OrphanAdopted"

# Reasons of a provider's Ready
WINDOW_OPEN: Final = "WindowOpen"
WINDOW_CLOSED: Final = "WindowClosed"
SESSION_OPEN: Final = "SessionOpen"
SESSION_CLOSED: Final = "SessionClosed"
SWITCHED_ON: Final = "SwitchedOn"
SWITCHED_OFF: Final = "SwitchedOff"
EXPIRED: Final = "Expired"
MEMBERS_ACTIVE: Final = "MembersActive"
MEMBERS_INACTIVE: Final = "MembersInactive"
MEMBER_UNRESOLVED: Final = "MemberUnresolved"
QUERY_TRUE: Final = "QueryTrue"
QUERY_FALSE: Final = "QueryFalse"
QUERY_FAILED: Final = "QueryFailed"
QUERY_UNUSABLE: Final = "QueryUnusable"
ADDRESS_REFUSED: Final = "AddressRefused"
REFERENCE_CYCLE: Final = "ReferenceCycle"
REFERENCES_TOO_DEEP: Final = "ReferencesTooDeep"
WINDOW_OPENED: Final = "WindowOpened"
INVALID_SPEC: Final = "InvalidSpec"
CLOCK_UNTRUSTED: Final = "ClockUntrusted"

PROVIDER_REASONS: Final[Mapping[str, str]] = {
    WINDOW_OPEN: "a window, or an hour, of the schedule is open",
    WINDOW_CLOSED: "none is; as an Event, of any kind: the answer has become inactive",
    WINDOW_OPENED: "as an Event, of any kind: the answer has become active",
    SESSION_OPEN: "a session of the market is open",
    SESSION_CLOSED: "none is",
    SWITCHED_ON: "a person has said active",
    SWITCHED_OFF: "a person has said inactive",
    EXPIRED: "not Ready: it abstains on purpose, after `until` with `then: Abstain`",
    MEMBERS_ACTIVE: "the members make it active",
    MEMBERS_INACTIVE: "the members make it inactive",
    MEMBER_UNRESOLVED: "not Ready: a member that matters has no answer",
    REFERENCE_CYCLE: "not Ready: the references come back to where they began; the message names the way",
    REFERENCES_TOO_DEEP: "not Ready: too many composites above one another",
    QUERY_TRUE: "a sample of the query is not zero",
    QUERY_FALSE: "all are, or there is none",
    QUERY_FAILED: "not Ready: no answer, or an error; the message has what Prometheus, or the way there, says",
    QUERY_UNUSABLE: "not Ready: an answer that is neither true nor false: NaN, a wrong type, incomplete, of another time",
    ADDRESS_REFUSED: "not Ready: the url leads to this machine, a link-local neighbour, a cloud's metadata service, or another place by a redirect",
    INVALID_SPEC: "not Ready: the spec is refused; the message has the field and the remedy",
    CLOCK_UNTRUSTED: "not Ready: the controller's clock is before the day on which it was built",
}

REASONS: Final[Mapping[str, str]] = {
    RECONCILE_SUCCEEDED: "everything is as it should be",
    MACHINE_READY: "the Node is Ready",
    PROVISIONING: "the machine is being created, or its Node is awaited",
    PROVISIONING_TIMED_OUT: "no Node after 15 minutes: is the host switched on and reachable?",
    MACHINE_CREATION_FAILED: "a create fails, or the Machine reports a terminal failure",
    MACHINE_MISSING: "the Machine vanished though nobody here removed it; it is created again",
    MACHINE_DELETED: "the Machine is being removed, or none exists",
    MACHINE_DELETION_FAILED: "a deletion fails",
    SCHEDULE_ACTIVE: "the machine should exist",
    SCHEDULE_INACTIVE: "the provider says inactive, or the Cluster is going",
    SCHEDULE_DISABLED: "`spec.enabled` is false",
    AWAITING_SCHEDULE: "no provider ever resolved",
    GRACE_PERIOD_ACTIVE: "a graceful removal has begun",
    NODE_DRAINING: "pods are being evicted, or waited for",
    NODE_DRAINED: "the Node is empty",
    NODE_DRAIN_TIMED_OUT: "the drain bound passed while pods or volumes were left",
    NODE_DRAIN_FAILED: "an eviction fails for another reason than a budget",
    KILL_SWITCH_ACTIVATED: "`spec.killSwitch` is true",
    EMERGENCY_RECLAIM: "the owner wants the host back: a reclaim is in progress",
    EMERGENCY_RECLAIM_DISABLED_SCHEDULE: "held out after a reclaim; the message has the command that releases it",
    RESOLVED: "it could be read, and is valid",
    PROVIDER_CRD_NOT_INSTALLED: "no API server serves the provider's kind",
    PROVIDER_NOT_FOUND: "there is no such provider object",
    STATUS_ACTIVE_MISSING: "the provider publishes no boolean `status.active`",
    PROVIDER_NOT_READY: "the provider says that it is not Ready",
    PROVIDER_STALE: "the provider has not answered for its present spec, or its announced transition is overdue",
    PROVIDER_UNREADABLE: "the provider could not be read",
    REFERENCES_INVALID: "the spec is invalid, or something that it names is not served or not readable",
    PERMISSION_DENIED: "a permission is missing; the message has the verb and the resource",
    KUBECONFIG_MISSING: "the Secret with the child cluster's kubeconfig, or its key, is not there",
    KUBECONFIG_REJECTED: "the child cluster's kubeconfig is refused; the message names the field",
    CHILD_CLUSTER_UNREACHABLE: "the child cluster does not answer, or is gone",
    WAITING_FOR_SLOT: "a concurrency cap is reached",
    WAITING_FOR_PREVIOUS: "something of the life before is still there",
    NAME_CONFLICT: "an object of that name exists and is not ours",
    PAUSED: "a pause of Cluster API's kind; the message says whose",
    APPLIED: "the taints are on the Node",
    NO_NODE_YET: "there is no Node yet, or none with a provider id",
    NODE_NOT_READY: "the Node is not Ready",
    PATCH_FAILED: "a patch fails",
    TAINT_OWNERSHIP_CONFLICT: "somebody else owns a taint of that key and effect",
    RECLAIM_NOT_ENABLED: "a reclaim request on a machine with neither `killIfCommands` nor `reclaim`",
    FINALIZER_CLEANUP_TIMED_OUT: "a removal cannot finish; the message says what is waited for",
    RAPID_RE_RECLAIM: "reclaimed for the third time within ten minutes",
    RECLAIM_REQUEST_STALE: "a reclaim request from before this machine existed was cleared",
    NODE_RETURNED: "a Node came back without its Machine; it is cordoned, emptied and deleted",
    DRAIN_BLOCKED: "a disruption budget protects pods of a machine that is to go",
    ORPHAN_ADOPTED: "a Machine of ours that status did not know was taken up",
}
