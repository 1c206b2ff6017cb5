"""Small closed worlds: which moves there are in each, beside what goes on by itself."""

from collections.abc import Sequence

import attrs

from fivespot.core.decision.actions import Part
from tests.core.decision import life
from tests.core.decision.life import ACTIVE, INACTIVE, LAGS, NOT_FOUND, UNREADABLE, Move

PLENTY = 1_000_000
BOUND = 2_000

_GOES_ON = (*life.CLUSTER_API, life.time_passes)


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
    "people who enable and kill": World((ACTIVE, life.toggle_enabled, life.toggle_kill)),
    "deletion of the object": World((ACTIVE, life.delete_object, life.toggle_kill)),
    "budgets and pods": World((ACTIVE, INACTIVE, life.pods_appear, life.toggle_budget)),
    "a child cluster out of reach": World((ACTIVE, INACTIVE, life.toggle_child, life.lose_node), limit=BOUND),
    "pauses": World((ACTIVE, INACTIVE, life.toggle_pause, life.toggle_machine_pause)),
    "owners who come back": World(
        (ACTIVE, life.request_reclaim, life.release_reclaim, life.pods_appear, life.toggle_child)
    ),
    "owners, killing and deletion": World(
        (ACTIVE, life.request_reclaim, life.toggle_kill, life.delete_object), limit=2 * BOUND
    ),
    "Machines that vanish, fail or are deleted": World(
        (ACTIVE, INACTIVE, life.vanish, life.somebody_deletes_machine, life.fail)
    ),
    "Nodes without their Machine": World(
        (ACTIVE, life.toggle_enabled, life.node_returns, life.lose_node, life.take_mark_off)
    ),
    "Nodes without their Machine, with pods": World(
        (ACTIVE, INACTIVE, life.hasty_removal, life.node_returns, life.take_mark_off, life.pods_appear),
        limit=BOUND,
    ),
    "Clusters that go and come": World(
        (ACTIVE, life.delete_cluster, life.cluster_goes, life.cluster_comes, life.delete_object)
    ),
    "restored backups": World((ACTIVE, INACTIVE, life.restore)),
    "a cache of Machines that lags": World(
        (ACTIVE, INACTIVE, LAGS[Part.MACHINE], life.hasty_removal), limit=2 * BOUND
    ),
    "caches of dependents that lag": World(
        (ACTIVE, INACTIVE, LAGS[Part.INFRASTRUCTURE], LAGS[Part.BOOTSTRAP], life.vanish), limit=BOUND
    ),
    "what cannot be read": World((ACTIVE, INACTIVE, *UNREADABLE.values()), limit=BOUND),
}
EVERYTHING = (
    *dict.fromkeys(move for world in WORLDS.values() for move in world.all_moves),
    life.toggle_cluster_pause,
    life.an_hour_passes,
)
WORLDS["everything that can happen"] = World(EVERYTHING, crashes=True, limit=BOUND)
