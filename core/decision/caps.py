"""How many machines may come or go at once, and who is next: pure, over what the caches say.

A cap binds what is under way, and only for as long as that can take: a host that is switched off holds its slot until the
provisioning bound, a drain until its deadline. Kill switch, deletion, ClusterDeleting and reclaim never wait; what they do
counts all the same.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from enum import Enum

import attrs

from fivespot.core.api.scheduled_machine import Manner, ScheduledMachineStatus
from fivespot.core.decision.actions import Create, Decision, Role
from fivespot.core.decision.observation import MachineView
from fivespot.core.decision.phase import Phase
from fivespot.core.decision.policy import Policy
from fivespot.core.instant import later

Cluster = tuple[str, str]
"""Namespace and name of a CAPI Cluster."""


class Stage(Enum):
    """What a cap is about."""

    PROVISIONING = "provisioning"
    DRAINING = "draining"


@attrs.frozen(kw_only=True)
class Caps:
    """At most so many at once, in all and in each cluster; None is no limit."""

    overall: int | None = None
    per_cluster: int | None = None

    @property
    def none(self) -> bool:
        """Whether nothing ever waits."""
        return self.overall is None and self.per_cluster is None


@attrs.frozen(kw_only=True)
class Claim:
    """A machine that would like to begin, or has begun."""

    key: str
    cluster: Cluster
    priority: int = 50
    created_at: datetime | None = None


@attrs.frozen
class UnderWay:
    """A stage that a machine is in, and the instant from which that no longer counts."""

    stage: Stage
    until: datetime


def claim_of(machine: MachineView) -> Claim:
    """What a machine brings to the queue."""
    meta, spec = machine.metadata, machine.spec
    claim = Claim(
        key=f"{meta.namespace}/{meta.name}",
        cluster=(meta.namespace, machine.intent.cluster_name),
        created_at=meta.created_at,
    )
    # One whose spec cannot be read only goes down, and is as urgent as any.
    return claim if spec is None else attrs.evolve(claim, priority=spec.priority)


def admit(waiting: Iterable[Claim], under_way: Iterable[Claim], caps: Caps) -> tuple[str, ...]:
    """The keys that may begin now, in their order: by priority, higher first, then the older machine.

    A machine whose cluster is full holds nobody up who comes after it.
    """
    used = Counter(claim.cluster for claim in under_way)
    total = used.total()
    admitted = []
    for claim in sorted(waiting, key=_order):
        if caps.overall is not None and total >= caps.overall:
            break
        if caps.per_cluster is not None and used[claim.cluster] >= caps.per_cluster:
            continue
        used[claim.cluster] += 1
        total += 1
        admitted.append(claim.key)
    return tuple(admitted)


def begins(stored: ScheduledMachineStatus, decision: Decision) -> Stage | None:
    """The stage that a decision would begin."""
    if any(
        isinstance(action, Create) and action.role is Role.MACHINE
        for group in decision.groups
        for action in group.actions
    ):
        return Stage.PROVISIONING
    before, after = stored.shutdown, decision.status.shutdown
    began = before is not None and before.started_at is not None
    if after is not None and after.started_at is not None and not began and after.manner is Manner.GRACEFUL:
        return Stage.DRAINING
    return None


def under_way(status: ScheduledMachineStatus, policy: Policy) -> UnderWay | None:
    """What a machine is at, by its status."""
    shutdown, coming = status.shutdown, status.provisioning
    if shutdown is not None:
        if shutdown.started_at is None or shutdown.drain_deadline is None or shutdown.drained_at is not None:
            return None
        return UnderWay(Stage.DRAINING, shutdown.drain_deadline)
    if coming is not None and coming.started_at is not None and status.phase == Phase.PENDING.value:
        return UnderWay(Stage.PROVISIONING, later(coming.started_at, policy.provisioning_timeout))
    return None


def _order(claim: Claim) -> tuple[int, bool, float, str]:
    age = claim.created_at.timestamp() if claim.created_at is not None else 0.0
    return -claim.priority, claim.created_at is None, age, claim.key
