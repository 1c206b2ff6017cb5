"""What the rows of the phase table produce: a phase, its reason, and what to do. `report.py` makes a status of it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import attrs

from fivespot.core.api.scheduled_machine import (
    LastNode,
    NodeReference,
    Provisioning,
    Reclaim,
    Shutdown,
    Taint,
)
from fivespot.core.decision.actions import Action, Event, Group, Part
from fivespot.core.decision.phase import Phase

KEEP: Final = "keep"
"""Marks a part of status that a plan leaves as stored."""


@attrs.frozen(kw_only=True)
class Plan:
    """One pass.

    Attributes:
        phase: None keeps the stored one (something that matters could not be read).
        reason: the reason of the Ready condition.
        message: one sentence: what is the case, or what is waited for.
        clear: whether references, node and provider id are cleared, since nothing exists.
        shutdown, reclaim, provisioning, last_node: the new values of these parts of status.
        machine_ready: status and reason of the MachineReady condition, None to leave it out.
        wakes: instants at which time alone could change the answer.
        confirm: parts that must be read live first; then nothing else counts.
    """

    phase: Phase | None
    reason: str
    message: str
    groups: tuple[Group, ...] = ()
    events: tuple[Event, ...] = ()
    clear: bool = False
    shutdown: Shutdown | None = None
    reclaim: Reclaim | None = None
    provisioning: Provisioning | None = None
    last_node: LastNode | None = None
    node_ref: NodeReference | None = None
    machine_ready: tuple[str, str, str] | None = None
    taints: tuple[Taint, ...] = ()
    taint_condition: tuple[str, str, str] | None = None
    write_status: bool = True
    wakes: tuple[datetime, ...] = ()
    confirm: tuple[Part, ...] = ()


def required(*actions: Action) -> Group:
    """A group that must succeed before the next starts."""
    return Group(actions=actions)


def best_effort(*actions: Action) -> Group:
    """A group that never holds anything up."""
    return Group(actions=actions, required=False)


def groups_of(*groups: Group | None) -> tuple[Group, ...]:
    """The groups that have something to do."""
    return tuple(group for group in groups if group is not None and group.actions)


def listed(names: Sequence[str], limit: int = 3) -> str:
    """A few names for a message: `a, b, c and 4 more`."""
    more = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {more} more" if more > 0 else "")
