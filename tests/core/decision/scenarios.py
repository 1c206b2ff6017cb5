"""Stories of one machine, and how one is told: with at most one crash, conflict or failing step on the way."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tests.core.decision import life as lives
from tests.core.decision import moves
from tests.core.decision.fingerprint import fingerprint
from tests.core.decision.moves import ACTIVE, INACTIVE, NOT_FOUND, Move

Step: TypeAlias = Callable[["Told"], None]


class Told:
    """A scenario as it is lived, with at most one trouble: at the write of that number.

    `trouble` is a crash just before that write, a conflict that drops the pass if it is one of the status, or the reason
    for which that action fails (see `Life`).
    """

    def __init__(self, at: int | None = None, *, trouble: str = "crash") -> None:
        self.life = lives.start()
        self.at = at
        self.trouble = trouble
        self.machines: list[str] = []
        self.status_writes: list[int] = []

    def look(self) -> bool:
        """One pass."""
        life = self.life
        if life.cell.gone:
            return False
        before, stored = life.writes, life.cell.machine.status
        changed = life.step(self._cut())
        if life.cell.machine.status is not stored:
            self.status_writes.append(before)
        capi = life.cell.capi
        if capi is not None and capi.metadata.uid not in self.machines:
            self.machines.append(capi.metadata.uid)
        return changed

    def _cut(self) -> int | None:
        """After how many writes the next pass crashes; other trouble is left for its action to run into."""
        if self.at is None or self.life.crashes:
            return None
        left = self.at - self.life.writes
        if self.trouble == "crash":
            return left
        if self.trouble == "conflict":
            return 0 if left == 0 else None
        self.life.fault, self.life.fault_after = self.trouble, left
        self.at = None
        return None

    def settle(self) -> None:
        for _ in range(lives.PASSES):
            if not self.look():
                return
        raise lives.LawBroken("no rest")

    def end(self) -> tuple[Any, ...]:
        """Where it ended, without times and uids."""
        status = self.life.cell.machine.status
        if self.life.cell.gone:
            return (
                self.life.cell.capi,
                self.life.cell.infrastructure,
                self.life.cell.bootstrap,
                len(self.machines),
            )
        report = [(c.type, c.status, c.reason, c.message) for c in status.conditions]
        spot = status.spot_schedule
        return (
            fingerprint(self.life),
            status.decided_by,
            status.ready,
            status.message,
            sorted(report),
            (spot.active, spot.reason, spot.held_from) if spot is not None else None,
            len(self.machines),
        )


def happens(*events: Move) -> Step:
    """These moves, with passes until rest after each."""

    def step(told: Told) -> None:
        for move in events:
            assert move(told.life), move.__name__
            told.settle()

    return step


def goes_on(told: Told) -> None:
    """Everything that goes on by itself, until nothing does."""
    told.settle()
    for _ in range(moves.MOVES):
        if told.life.cell.gone or not any(
            move(told.life) for move in (*moves.CLUSTER_API, moves.time_passes)
        ):
            return
        told.settle()
    raise lives.LawBroken("it never ends")


UP: Sequence[Step] = (happens(ACTIVE), goes_on)
SCENARIOS: dict[str, Sequence[Step]] = {
    "coming up": UP,
    "leaving with grace, a budget in the way": (
        *UP,
        happens(moves.pods_appear, moves.toggle_budget, INACTIVE, moves.toggle_budget),
        goes_on,
    ),
    "leaving when the bound has passed": (
        *UP,
        happens(moves.pods_appear, moves.toggle_budget, INACTIVE, moves.time_passes),
        goes_on,
    ),
    "a change of mind during the drain": (
        *UP,
        happens(moves.pods_appear, moves.toggle_budget, INACTIVE, ACTIVE),
        goes_on,
    ),
    "a change of mind while the pods end": (*UP, happens(moves.pods_appear, INACTIVE, ACTIVE), goes_on),
    "a change of mind after the deletion": (*UP, happens(INACTIVE, moves.removal_step, ACTIVE), goes_on),
    "the kill switch": (*UP, happens(moves.pods_appear, moves.toggle_kill), goes_on),
    "the kill switch, taken back": (
        *UP,
        happens(moves.toggle_kill),
        goes_on,
        happens(moves.toggle_kill),
        goes_on,
    ),
    "deletion": (*UP, happens(moves.delete_object), goes_on),
    "deletion before anything was created": (goes_on, happens(moves.delete_object), goes_on),
    "a reclaim": (*UP, happens(moves.pods_appear, moves.request_reclaim), goes_on),
    "a reclaim of an empty node, released": (
        *UP,
        happens(moves.request_reclaim),
        goes_on,
        happens(moves.release_reclaim),
        goes_on,
    ),
    "a reclaim of an object that is being deleted": (
        *UP,
        happens(moves.pods_appear, moves.toggle_budget, moves.delete_object, moves.request_reclaim),
        goes_on,
    ),
    "a reclaim that gets out of reach": (
        *UP,
        happens(moves.pods_appear, moves.request_reclaim, moves.toggle_child),
        goes_on,
    ),
    "disabling": (*UP, happens(moves.toggle_enabled), goes_on),
    "a provider that goes, and comes back closed": (
        *UP,
        happens(NOT_FOUND),
        goes_on,
        happens(INACTIVE),
        goes_on,
    ),
    "a Cluster that is deleted": (*UP, happens(moves.delete_cluster), goes_on, happens(moves.cluster_goes)),
    "a failed Machine that is replaced": (happens(ACTIVE, moves.fail, moves.time_passes), goes_on),
    "a Machine that vanishes": (*UP, happens(moves.vanish), goes_on),
    "a Node that comes back without its Machine": (
        *UP,
        happens(INACTIVE),
        goes_on,
        happens(moves.node_returns),
        goes_on,
    ),
    "a restored backup": (*UP, happens(moves.restore), goes_on),
}


def lived(name: str, at: int | None = None, *, trouble: str = "crash") -> Told:
    """Live a scenario."""
    told = Told(at, trouble=trouble)
    for step in SCENARIOS[name]:
        step(told)
    return told
