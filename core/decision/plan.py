"""What the rows of the phase table produce: a phase, its reason, and what to do. `report.py` makes a status of it."""

from collections.abc import Sequence
from datetime import datetime
from typing import TypeAlias

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

Fact: TypeAlias = tuple[str, str, str]
"""Status, reason and message of a condition."""


@attrs.frozen(kw_only=True)
class Taints:
    """What is said about the Node's taints: those of ours that it has, and the condition, None for none."""

    applied: tuple[Taint, ...]
    condition: Fact | None


@attrs.define(kw_only=True, eq=False)
class Plan:
    """One pass. Kept within it, so it does without the cost of being frozen.

    Attributes:
        phase: None keeps the stored one (something that matters could not be read).
        reason: the reason of the Ready condition.
        message: one sentence: what is the case, or what is waited for.
        clear: whether references, node, provider id and taints are cleared, since nothing exists.
        shutdown, reclaim, provisioning, last_node, node_ref: the new values of these parts of status.
        machine_ready: the MachineReady condition, None for False with the reason and the message of this plan.
        scheduled: the message of the Scheduled condition, empty for what the target says.
        taints: None leaves what is said about taints as stored.
        write_status: False leaves the status for the next pass, which will have more to say.
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
    machine_ready: Fact | None = None
    scheduled: str = ""
    taints: Taints | None = None
    write_status: bool = True
    wakes: tuple[datetime, ...] = ()
    confirm: tuple[Part, ...] = ()


def ask(*parts: Part) -> Plan:
    """A plan that only wants parts read live."""
    return Plan(phase=None, reason="", message="", confirm=parts)


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
    """A few names for a message, in order whatever order they came in: `a, b, c and 4 more`."""
    more = len(names) - limit
    return ", ".join(sorted(names)[:limit]) + (f" and {more} more" if more > 0 else "")
