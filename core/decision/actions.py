"""One thing to do to a cluster, as a value; and the shape of a decision.

Every action is idempotent, and carries a uid or resourceVersion wherever it encodes a choice, so that performing it
late, twice or against a changed world does no harm.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Any, Final, TypeAlias

import attrs

from fivespot.core.api.common import ObjectReference
from fivespot.core.api.scheduled_machine import ReclaimedNode, ScheduledMachineStatus, Taint
from fivespot.core.decision.observation import FoundTaint
from fivespot.core.names import RECLAIM_REASON, RECLAIM_REQUESTED, RECLAIM_REQUESTED_AT


class Role(Enum):
    """The three objects that are created for a machine, in the order of creation."""

    BOOTSTRAP = "bootstrap"
    INFRASTRUCTURE = "infrastructure"
    MACHINE = "machine"


class Part(Enum):
    """Parts of an observation that a decision may want confirmed by a live read."""

    CLUSTER = "cluster"
    MACHINE = "capi_machine"
    BOOTSTRAP = "bootstrap"
    INFRASTRUCTURE = "infrastructure"
    NODE = "node"
    LAST_NODE = "last_node"


@attrs.frozen(kw_only=True)
class AddFinalizer:
    """Put our finalizer on the ScheduledMachine."""

    resource_version: str


@attrs.frozen(kw_only=True)
class RemoveFinalizer:
    """Take our finalizer off: nothing of ours is left."""

    resource_version: str


@attrs.frozen(kw_only=True)
class AdoptOwner:
    """Put the owner's uid right on an object that a restore brought back with another one."""

    role: Role
    target: ObjectReference
    resource_version: str


@attrs.frozen(kw_only=True)
class Create:
    """Create one of the three objects by POST. An existing one of ours is success, anything else a conflict."""

    role: Role
    manifest: Mapping[str, Any] = attrs.field(eq=False)
    name: str


@attrs.frozen(kw_only=True)
class Delete:
    """Delete one of the three objects, if it still has that uid."""

    role: Role
    target: ObjectReference


@attrs.frozen(kw_only=True)
class AnnotateMachine:
    """Set annotations on the CAPI Machine; None takes one off."""

    target: ObjectReference
    annotations: Mapping[str, str | None] = attrs.field(hash=False)


@attrs.frozen(kw_only=True)
class LabelMachine:
    """Set labels and annotations of `machineTemplate` on the CAPI Machine in place."""

    target: ObjectReference
    labels: Mapping[str, str] = attrs.field(hash=False)
    annotations: Mapping[str, str] = attrs.field(hash=False)


@attrs.frozen(kw_only=True)
class Cordon:
    """Make the Node unschedulable, with our mark."""

    node: str
    resource_version: str
    mark: str


@attrs.frozen(kw_only=True)
class Uncordon:
    """Make the Node schedulable and take our mark off."""

    node: str
    resource_version: str


@attrs.frozen(kw_only=True)
class SetTaints:
    """Replace the Node's taints and the list of those that are ours, in one patch."""

    node: str
    resource_version: str
    taints: tuple[FoundTaint, ...]
    applied: tuple[Taint, ...]


@attrs.frozen(kw_only=True)
class EvictPod:
    """Ask the Eviction API, which honours budgets; `grace_seconds` None leaves the pod's own."""

    namespace: str
    name: str
    uid: str
    grace_seconds: int | None = None


@attrs.frozen(kw_only=True)
class DeletePod:
    """Delete a pod with grace 0: a reclaim."""

    namespace: str
    name: str
    uid: str


@attrs.frozen(kw_only=True)
class DeleteNode:
    """Delete the Node object, if it still has that uid."""

    node: str
    uid: str


@attrs.frozen(kw_only=True)
class ClearReclaimRequest:
    """Take the three reclaim annotations off the Node, if the request is still the one that was acted on.

    `requested_at` is the value of its time annotation, None when it had none.
    """

    node: ReclaimedNode
    requested_at: str | None = None


NO_REQUEST: Final[Mapping[str, None]] = dict.fromkeys(
    (RECLAIM_REQUESTED, RECLAIM_REASON, RECLAIM_REQUESTED_AT)
)
"""What takes a reclaim request off a Node."""

Action: TypeAlias = (
    AddFinalizer
    | RemoveFinalizer
    | AdoptOwner
    | Create
    | Delete
    | AnnotateMachine
    | LabelMachine
    | Cordon
    | Uncordon
    | SetTaints
    | EvictPod
    | DeletePod
    | DeleteNode
    | ClearReclaimRequest
)


@attrs.frozen(kw_only=True)
class Group:
    """Actions that may run in parallel. A required group must succeed before the next starts."""

    actions: tuple[Action, ...]
    required: bool = True


class Severity(Enum):
    """The two types of Kubernetes Events."""

    NORMAL = "Normal"
    WARNING = "Warning"


@attrs.frozen(kw_only=True)
class Event:
    """Something worth telling a person once."""

    severity: Severity
    reason: str
    message: str


@attrs.frozen(kw_only=True)
class Decision:
    """The answer of `decide`.

    Attributes:
        status: the complete new status; not written when it equals the stored one.
        groups: what to do, in order, after the status was written.
        events: what to tell people, after the status was written.
        wake_at: the next instant at which time alone could change the answer, None for never.
        confirm: parts that must be read live before this machine is decided again; when not empty, nothing else is
            asked for.
    """

    status: ScheduledMachineStatus
    groups: tuple[Group, ...] = ()
    events: tuple[Event, ...] = ()
    wake_at: datetime | None = None
    confirm: tuple[Part, ...] = ()
