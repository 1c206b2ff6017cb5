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
"""Phases in which nothing of ours exists (Terminated also while the last of it goes)."""

_COMING: Final = frozenset({Phase.PENDING, Phase.ACTIVE})
_GOING: Final = frozenset({Phase.SHUTTING_DOWN, Phase.TERMINATED, Phase.EMERGENCY_REMOVE})
_REPORT: Final = frozenset({Phase.ERROR})

ALLOWED: Final[Mapping[Phase | None, frozenset[Phase]]] = {
    # First seen. An object that was restored without its status may have a machine in any state.
    None: frozenset(Phase),
    # To rest at once: wanted no more before anything was created.
    Phase.PENDING: frozenset({Phase.ACTIVE}) | _GOING | RESTING | _REPORT,
    # Pending: its Machine vanished or is being deleted by somebody. To rest at once: the same, and wanted no more.
    Phase.ACTIVE: frozenset({Phase.PENDING}) | _GOING | RESTING | _REPORT,
    # Wanted again half-way: Active while its Machine still stands, Pending once that is being deleted.
    Phase.SHUTTING_DOWN: _COMING | (_GOING - {Phase.SHUTTING_DOWN}) | RESTING | _REPORT,
    # Active and the three of going are what an orphan that turns up becomes; and a machine whose status was not written
    # between its creation and its first Ready, since creating writes none.
    Phase.INACTIVE: _COMING | _GOING | (RESTING - {Phase.INACTIVE}) | _REPORT,
    Phase.DISABLED: _COMING | _GOING | (RESTING - {Phase.DISABLED}) | _REPORT,
    # Before anything is deleted a kill can be taken back: by a person who wants it up, or with a reclaim in progress.
    Phase.TERMINATED: _COMING | (_GOING - {Phase.TERMINATED}) | (RESTING - {Phase.TERMINATED}) | _REPORT,
    # Out, whatever happens: held (Disabled), or killed on the way. It is never wanted again before the hold is stored,
    # never goes with grace any more, and never rests as Inactive.
    Phase.EMERGENCY_REMOVE: frozenset({Phase.DISABLED, Phase.TERMINATED}) | _REPORT,
    Phase.ERROR: frozenset(Phase) - _REPORT,
}
"""For each phase, the phases that may be written over it."""
