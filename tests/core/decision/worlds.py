"""Small closed worlds: which moves there are in each, beside what goes on by itself."""

from collections.abc import Sequence

import attrs

from fivespot.core.decision.actions import Part
from tests.core.decision import moves
from tests.core.decision.moves import ACTIVE, INACTIVE, LAGS, NOT_FOUND, UNREADABLE, Move

PLENTY = 1_000_000
BOUND = 2_000

_GOES_ON = (*moves.CLUSTER_API, moves.time_passes)


@attrs.frozen
class World:
    """The moves beside what goes on by itself. `limit` bounds the walk of a world that is not closed in time."""

    moves: Sequence[Move]
    crashes: bool = False
    limit: int = PLENTY

    @property
    def all_moves(self) -> tuple[Move, ...]:
        return (*self.moves, *_GOES_ON)


WORLDS = {
    "a provider that flips and vanishes": World((ACTIVE, INACTIVE, NOT_FOUND)),
    "crashes after the first write of any pass": World((ACTIVE, INACTIVE), crashes=True),
    "people who enable and kill": World((ACTIVE, moves.toggle_enabled, moves.toggle_kill)),
    "deletion of the object": World((ACTIVE, moves.delete_object, moves.toggle_kill)),
    "budgets and pods": World((ACTIVE, INACTIVE, moves.pods_appear, moves.toggle_budget)),
    "a child cluster out of reach": World(
        (ACTIVE, INACTIVE, moves.toggle_child, moves.lose_node), limit=BOUND
    ),
    "pauses": World((ACTIVE, INACTIVE, moves.toggle_pause, moves.toggle_machine_pause)),
    "owners who come back": World(
        (ACTIVE, moves.request_reclaim, moves.release_reclaim, moves.pods_appear, moves.toggle_child)
    ),
    "owners, killing and deletion": World(
        (ACTIVE, moves.request_reclaim, moves.toggle_kill, moves.delete_object), limit=2 * BOUND
    ),
    "Machines that vanish, fail or are deleted": World(
        (ACTIVE, INACTIVE, moves.vanish, moves.somebody_deletes_machine, moves.fail)
    ),
    "Nodes without their Machine": World(
        (ACTIVE, moves.toggle_enabled, moves.node_returns, moves.lose_node, moves.take_mark_off)
    ),
    "Nodes without their Machine, with pods": World(
        (ACTIVE, INACTIVE, moves.hasty_removal, moves.node_returns, moves.take_mark_off, moves.pods_appear),
        limit=BOUND,
    ),
    "Clusters that go and come": World(
        (ACTIVE, moves.delete_cluster, moves.cluster_goes, moves.cluster_comes, moves.delete_object)
    ),
    "restored backups": World((ACTIVE, INACTIVE, moves.restore)),
    "a cache of Machines that lags": World(
        (ACTIVE, INACTIVE, LAGS[Part.MACHINE], moves.hasty_removal), limit=2 * BOUND
    ),
    "caches of dependents that lag": World(
        (ACTIVE, INACTIVE, LAGS[Part.INFRASTRUCTURE], LAGS[Part.BOOTSTRAP], moves.vanish), limit=BOUND
    ),
    "what cannot be read": World((ACTIVE, INACTIVE, *UNREADABLE.values()), limit=BOUND),
}
EVERYTHING = (
    *dict.fromkeys(move for world in WORLDS.values() for move in world.all_moves),
    moves.toggle_cluster_pause,
    moves.an_hour_passes,
)
WORLDS["everything that can happen"] = World(EVERYTHING, crashes=True, limit=BOUND)
