"""Who decides whether the machine should exist, and how it goes down if not.

The chain below is the whole precedence, in order; the first step that applies decides. `explain` prints the same chain.
"""

from collections.abc import Callable
from datetime import datetime
from enum import Enum
from typing import Final

import attrs

from fivespot.core.api.scheduled_machine import Manner
from fivespot.core.decision import reclaim
from fivespot.core.decision.knowledge import value_of
from fivespot.core.decision.observation import NodeView, Observation
from fivespot.core.decision.verdict import Effective, Verdict


class Decider(Enum):
    """`status.decidedBy`."""

    DELETED = "Deleted"
    KILL_SWITCH = "KillSwitch"
    RECLAIM = "Reclaim"
    DISABLED = "Disabled"
    CLUSTER_DELETING = "ClusterDeleting"
    PROVIDER = "Provider"
    HELD = "Held"
    NEVER_RESOLVED = "NeverResolved"


@attrs.frozen(kw_only=True)
class Facts:
    """What the steps of the precedence look at."""

    obs: Observation
    verdict: Verdict
    schedule: Effective
    node: NodeView | None
    now: datetime

    @property
    def requested(self) -> reclaim.Request | None:
        """A reclaim request that starts one now."""
        return reclaim.fresh_request(self.obs, self.node)

    @property
    def cluster_deleting(self) -> bool:
        """Whether the Cluster is going."""
        cluster = value_of(self.obs.cluster)
        return cluster is not None and cluster.deleting


@attrs.frozen
class _Link:
    """One link of the chain: who decides, when, and how a person is told what was seen."""

    decider: Decider
    decides: Callable[[Facts], bool]
    text: Callable[[Facts], str]


@attrs.frozen(kw_only=True)
class Step:
    """One step of the precedence as `explain` prints it."""

    decider: Decider
    decides: bool
    up: bool
    text: str


@attrs.frozen(kw_only=True)
class Target:
    """What is wanted, and why in one sentence. `manner` matters only when `up` is False."""

    up: bool
    decider: Decider
    manner: Manner
    why: str


def _held_by_reclaim(facts: Facts) -> bool:
    machine = facts.obs.machine
    return reclaim.held(machine.status.reclaim) and not reclaim.is_released(machine, facts.now)


def _reclaim_decides(facts: Facts) -> bool:
    return (
        reclaim.in_progress(facts.obs.machine.status.reclaim)
        or _held_by_reclaim(facts)
        or facts.requested is not None
    )


def _reclaim_text(facts: Facts) -> str:
    stored, requested = facts.obs.machine.status.reclaim, facts.requested
    if stored is not None and reclaim.in_progress(stored):
        return f"reclaim in progress: {stored.reason}"
    if stored is not None and _held_by_reclaim(facts):
        return f"held after a reclaim: {stored.reason}"
    return f"reclaim requested: {requested.reason}" if requested is not None else "no reclaim"


_CHAIN: Final = (
    _Link(
        Decider.DELETED,
        lambda facts: facts.obs.machine.metadata.deleting,
        lambda facts: "being deleted" if facts.obs.machine.metadata.deleting else "not being deleted",
    ),
    _Link(
        Decider.KILL_SWITCH,
        lambda facts: facts.obs.machine.intent.kill_switch,
        lambda facts: f"spec.killSwitch is {str(facts.obs.machine.intent.kill_switch).lower()}",
    ),
    _Link(Decider.RECLAIM, _reclaim_decides, _reclaim_text),
    _Link(
        Decider.DISABLED,
        lambda facts: not facts.obs.machine.intent.enabled,
        lambda facts: f"spec.enabled is {str(facts.obs.machine.intent.enabled).lower()}",
    ),
    _Link(
        Decider.CLUSTER_DELETING,
        lambda facts: facts.cluster_deleting,
        lambda facts: (
            f"Cluster {facts.obs.machine.intent.cluster_name} is {'' if facts.cluster_deleting else 'not '}being deleted"
        ),
    ),
)
"""The precedence, strongest first; after it comes the schedule, which always decides."""


def chain(facts: Facts) -> tuple[Step, ...]:
    """Every step of the precedence with its value, the strongest first."""
    links = tuple(
        Step(decider=link.decider, decides=link.decides(facts), up=False, text=link.text(facts))
        for link in _CHAIN
    )
    return (*links, _schedule_step(facts))


def _schedule_step(facts: Facts) -> Step:
    schedule = facts.schedule
    return Step(
        decider=Decider(schedule.source),
        decides=True,
        up=schedule.active,
        text=_schedule_text(facts.verdict, schedule),
    )


def _schedule_text(verdict: Verdict, schedule: Effective) -> str:
    answer = "active" if schedule.active else "inactive"
    if schedule.source == Decider.PROVIDER.value:
        return verdict.message
    if schedule.source == Decider.HELD.value:
        return f"held {answer}: {verdict.message}"
    return f"{answer}, since the provider never resolved: {verdict.message}"


def target_of(facts: Facts) -> Target:
    """The first step that decides, and the manner of going down, which only tightens within one removal."""
    manner = _manner(facts)
    for link in _CHAIN:
        if link.decides(facts):
            return Target(up=False, decider=link.decider, manner=manner, why=link.text(facts))
    last = _schedule_step(facts)
    return Target(up=last.up, decider=last.decider, manner=manner, why=last.text)


def _manner(facts: Facts) -> Manner:
    machine = facts.obs.machine
    stored = machine.status.shutdown
    urgent = (
        machine.intent.kill_switch
        or reclaim.in_progress(machine.status.reclaim)
        or facts.requested is not None
        or (stored is not None and stored.manner is Manner.NOW)
    )
    return Manner.NOW if urgent else Manner.GRACEFUL
