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
from fivespot.core.decision.observation import Observation
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
    """What the steps of the precedence look at; `requested` is a reclaim request that starts one now."""

    obs: Observation
    verdict: Verdict
    schedule: Effective
    requested: reclaim.Request | None
    now: datetime


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


def _reclaim_decides(facts: Facts) -> bool:
    machine = facts.obs.machine
    stored = machine.status.reclaim
    if facts.requested is not None or reclaim.in_progress(stored):
        return True
    return reclaim.held(stored) and not reclaim.is_released(machine, facts.now)


def _reclaim_text(facts: Facts) -> str:
    stored, requested = facts.obs.machine.status.reclaim, facts.requested
    if stored is not None and reclaim.in_progress(stored):
        return f"reclaim in progress: {stored.reason}"
    if stored is not None and _reclaim_decides(facts) and requested is None:
        return f"held after a reclaim: {stored.reason}"
    return f"reclaim requested: {requested.reason}" if requested is not None else "no reclaim"


def _cluster_deleting(facts: Facts) -> bool:
    cluster = value_of(facts.obs.cluster)
    return cluster is not None and cluster.deleting


def _cluster_text(facts: Facts) -> str:
    return f"Cluster {facts.obs.machine.intent.cluster_name} is {'' if _cluster_deleting(facts) else 'not '}being deleted"


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
    _Link(Decider.CLUSTER_DELETING, _cluster_deleting, _cluster_text),
)
"""The precedence, strongest first; after it comes the schedule, which always decides."""

_BY_SOURCE: Final = {decider.value: decider for decider in Decider}


def chain(facts: Facts) -> tuple[Step, ...]:
    """Every step of the precedence with its value, the strongest first."""
    links = tuple(
        Step(decider=link.decider, decides=link.decides(facts), up=False, text=link.text(facts))
        for link in _CHAIN
    )
    schedule = facts.schedule
    last = Step(decider=_BY_SOURCE[schedule.source], decides=True, up=schedule.active, text=schedule.text)
    return (*links, last)


def target_of(facts: Facts) -> Target:
    """The first step that decides, and the manner of going down."""
    for link in _CHAIN:
        if link.decides(facts):
            return Target(up=False, decider=link.decider, manner=_manner(facts), why=link.text(facts))
    schedule = facts.schedule
    return Target(
        up=schedule.active,
        decider=_BY_SOURCE[schedule.source],
        manner=Manner.GRACEFUL if schedule.active else _manner(facts),
        why=schedule.text,
    )


def _manner(facts: Facts) -> Manner:
    """Now for the kill switch and a reclaim, whatever the target; within one removal it only tightens."""
    machine = facts.obs.machine
    stored = machine.status.shutdown
    urgent = (
        machine.intent.kill_switch
        or facts.requested is not None
        or reclaim.in_progress(machine.status.reclaim)
        or (stored is not None and stored.manner is Manner.NOW)
    )
    return Manner.NOW if urgent else Manner.GRACEFUL
