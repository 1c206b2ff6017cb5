"""Which pods keep a node from being empty, and which of them to evict now.

The exceptions are mirror pods of static pods, DaemonSet pods, and finished pods that nobody has told to go. Pods are
never force-deleted by a drain: they go with their Node, after the host was stopped.
"""

from collections.abc import Sequence
from datetime import datetime

import attrs

from fivespot.core.decision.actions import EvictPod
from fivespot.core.decision.observation import BlockedEviction, NodeView, PodView


@attrs.frozen(kw_only=True)
class Drain:
    """How far a drain is.

    Attributes:
        remaining: pods that still have to go, terminating ones included where they are waited for.
        evictions: what to ask the Eviction API for now.
        blocked_by: `namespace/name: budget` of pods that a budget protects.
        volumes: volumes that are still attached.
    """

    remaining: tuple[PodView, ...]
    evictions: tuple[EvictPod, ...]
    blocked_by: tuple[str, ...]
    volumes: tuple[str, ...]

    @property
    def done(self) -> bool:
        """Whether the node is empty."""
        return not self.remaining and not self.volumes


def has_to_go(pod: PodView) -> bool:
    """Whether a drain removes this pod."""
    return not (pod.mirror or pod.daemon or pod.finished)


def _is_ending(pod: PodView) -> bool:
    """Whether a pod has ended because it was told to, and is still to be gone.

    Its kubelet reports the end of the containers first, and then unmounts its volumes.
    """
    return pod.finished and pod.deleting and not (pod.mirror or pod.daemon)


def drain_of(
    node: NodeView,
    pods: Sequence[PodView],
    blocked: Sequence[BlockedEviction],
    *,
    deadline: datetime | None,
    now: datetime,
    known_blocked: Sequence[str] = (),
) -> Drain:
    """Look at a node's pods.

    `deadline` is the drain bound: a pod's own grace period is capped to what is left of it, since a termination that
    has begun cannot be shortened later; None caps nothing. `known_blocked` is what `blocked_by` said before: a budget
    that was named stays named until its pod goes, whatever a process that was just started has not tried yet.
    """
    leaving = [pod for pod in pods if has_to_go(pod) or _is_ending(pod)]
    # Nobody is there to end a terminating pod on a node that stopped reporting.
    waited = tuple([pod for pod in leaving if node.reachable or not pod.deleting])
    # A grace of 0 would be a forced deletion.
    left = max(1, int((deadline - now).total_seconds())) if deadline is not None else None
    return Drain(
        remaining=waited,
        evictions=tuple([_eviction(pod, left) for pod in leaving if not pod.deleting]),
        blocked_by=_blocked(waited, blocked, known_blocked) if blocked or known_blocked else (),
        volumes=node.volumes_attached,
    )


def _blocked(
    waited: Sequence[PodView], blocked: Sequence[BlockedEviction], known: Sequence[str]
) -> tuple[str, ...]:
    before = {entry.partition(": ")[0]: entry for entry in known}
    protectors = {entry.uid: entry.by for entry in blocked}
    found = []
    for pod in waited:
        name = f"{pod.namespace}/{pod.name}"
        if pod.deleting:
            continue
        if pod.uid in protectors:
            found.append(f"{name}: {protectors[pod.uid]}")
        elif name in before:
            found.append(before[name])
    return tuple(sorted(found))


def _eviction(pod: PodView, seconds_left: int | None) -> EvictPod:
    capped = seconds_left is not None and seconds_left < pod.grace_seconds
    return EvictPod(
        namespace=pod.namespace, name=pod.name, uid=pod.uid, grace_seconds=seconds_left if capped else None
    )
