"""Which pods keep a node from being empty, and which of them to evict now.

The exceptions are kubectl's: mirror pods of static pods, DaemonSet pods, finished pods. Pods are never force-deleted by a
drain: they go with their Node, after the host was stopped.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

import attrs

from fivespot.core.decision.actions import EvictPod
from fivespot.core.decision.observation import BlockedEviction, NodeView, PodView

_STAYS: Final[tuple[Callable[[PodView], bool], ...]] = (
    lambda pod: pod.mirror,
    lambda pod: pod.daemon,
    lambda pod: pod.finished,
)


@attrs.frozen(kw_only=True)
class Drain:
    """How far a drain is.

    Attributes:
        remaining: pods that still have to go, terminating ones included where they are waited for.
        evictions: what to ask the Eviction API for now.
        blocked_by: `namespace/name: budget` of pods that a budget protected at the last try.
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
    return not any(stays(pod) for stays in _STAYS)


def drain_of(
    node: NodeView,
    pods: Sequence[PodView],
    blocked: Sequence[BlockedEviction],
    *,
    deadline: datetime | None,
    now: datetime,
) -> Drain:
    """Look at a node's pods.

    `deadline` is the drain bound: a pod's own grace period is capped to what is left of it, since a termination that
    has begun cannot be shortened later.
    """
    leaving = [pod for pod in pods if has_to_go(pod)]
    # Nobody is there to end a terminating pod on a node that stopped reporting.
    waited = [pod for pod in leaving if node.reachable or not pod.deleting]
    left = max(0, int((deadline - now).total_seconds())) if deadline is not None else None
    protectors = {entry.uid: entry.by for entry in blocked}
    return Drain(
        remaining=tuple(waited),
        evictions=tuple(_eviction(pod, left) for pod in leaving if not pod.deleting),
        blocked_by=tuple(
            f"{pod.namespace}/{pod.name}: {protectors[pod.uid]}"
            for pod in waited
            if pod.uid in protectors and not pod.deleting
        ),
        volumes=node.volumes_attached,
    )


def _eviction(pod: PodView, seconds_left: int | None) -> EvictPod:
    capped = seconds_left is not None and seconds_left < pod.grace_seconds
    return EvictPod(
        namespace=pod.namespace, name=pod.name, uid=pod.uid, grace_seconds=seconds_left if capped else None
    )
