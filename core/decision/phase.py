"""The phases of a machine, and every change between them that may ever be written.

A phase is a report: it is derived from what is wanted and what is observed, and nothing is decided by reading it back.
Two rules keep it honest. First, `ALLOWED` is the only place that knows which changes exist; the model checker walks
every reachable observation and proves that no other change is ever decided. Second, Error lies over the other phases:
it can come from anywhere and leads back to wherever the observation says, so it is never a trap.

The life of a machine, read along the rows below:

* up: Pending (nothing yet, or provisioning) -> Active (its Node was Ready once).
* down with grace: ShuttingDown -> Inactive (its schedule), Disabled (`enabled: false`, or a held reclaim).
* down now: Terminated (kill switch) or EmergencyRemove (the owner came back); a removal only tightens, so ShuttingDown
  may become either and neither becomes ShuttingDown again while something still exists.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final


class Phase(Enum):
    """What `status.phase` says."""

    PENDING = "Pending"
    ACTIVE = "Active"
    SHUTTING_DOWN = "ShuttingDown"
    INACTIVE = "Inactive"
    DISABLED = "Disabled"
    TERMINATED = "Terminated"
    EMERGENCY_REMOVE = "EmergencyRemove"
    ERROR = "Error"


RESTING: Final = frozenset({Phase.INACTIVE, Phase.DISABLED, Phase.TERMINATED})
"""Phases in which nothing of ours exists."""

_ALL: Final = frozenset(Phase)

ALLOWED: Final[Mapping[Phase | None, frozenset[Phase]]] = {
    # First seen. A restored object has no status but may have a machine in any state.
    None: _ALL,
    Phase.PENDING: _ALL,
    Phase.ACTIVE: _ALL,
    # Wanted again half-way: Active while its Machine still stands, Pending once it is being deleted.
    Phase.SHUTTING_DOWN: _ALL,
    # A resting machine has no Node of its own: it must provision before it is Active. An orphan that turns up is shut
    # down or taken up like any other.
    Phase.INACTIVE: _ALL,
    Phase.DISABLED: _ALL,
    Phase.TERMINATED: _ALL,
    Phase.EMERGENCY_REMOVE: _ALL - {Phase.SHUTTING_DOWN, Phase.ACTIVE},
    Phase.ERROR: _ALL,
}
