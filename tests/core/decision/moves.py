"""Everything that can happen to a machine and its world: moves, and how a world behaves in which nothing goes wrong.

A move changes a `Life` and says whether it could happen now.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, TypeAlias

import attrs

from fivespot.core.api.scheduled_machine import ReclaimState
from fivespot.core.decision import actions as act
from fivespot.core.decision.knowledge import Absent, Present
from fivespot.core.decision.observation import ClusterView, NodeView
from fivespot.core.instant import format_instant
from fivespot.core.names import PAUSED, RECLAIM_RELEASE, RECLAIM_REQUESTED
from tests.core.decision import model
from tests.core.decision.fingerprint import fingerprint
from tests.core.decision.life import (
    BASES,
    DAEMON,
    OF_REMOVALS,
    PASSES,
    POD,
    LawBroken,
    Life,
    has_joined,
    is_empty,
    known,
)

MOVES: Final = 60
"""In so many further events every machine is where it is wanted, once nothing goes wrong any more."""

Move: TypeAlias = Callable[[Life], bool]


def _says(name: str) -> Move:
    def move(life: Life) -> bool:
        changed = life.says != name
        life.says = name
        return changed

    move.__name__ = f"the provider: {name}"
    return move


def _respecify(life: Life) -> None:
    base = BASES[life.enabled, life.kill]
    life.cell.machine = attrs.evolve(life.cell.machine, spec=base.spec, intent=base.intent)


def toggle_enabled(life: Life) -> bool:
    life.enabled = not life.enabled
    _respecify(life)
    return True


def toggle_kill(life: Life) -> bool:
    life.kill = not life.kill
    _respecify(life)
    return True


def _metadata(life: Life, **changes: Any) -> None:
    meta = attrs.evolve(life.cell.machine.metadata, **changes)
    life.cell.machine = attrs.evolve(life.cell.machine, metadata=meta)


def delete_object(life: Life) -> bool:
    if life.cell.machine.metadata.deleting:
        return False
    _metadata(life, deleting_since=life.now)
    # An object without a finalizer goes at once.
    life.cell.gone = not life.cell.machine.metadata.finalizers
    return True


def _annotations(life: Life, key: str, value: str | None) -> None:
    kept = {name: text for name, text in life.cell.machine.metadata.annotations.items() if name != key}
    _metadata(life, annotations=kept if value is None else {**kept, key: value})


def toggle_pause(life: Life) -> bool:
    paused = PAUSED in life.cell.machine.metadata.annotations
    _annotations(life, PAUSED, None if paused else "true")
    return True


def toggle_cluster_pause(life: Life) -> bool:
    cluster = life.cell.cluster
    if not isinstance(cluster, Present):
        return False
    view = cluster.value
    life.cell.cluster = Present(attrs.evolve(view, paused=not view.paused, generation=view.generation + 1))
    return True


def toggle_machine_pause(life: Life) -> bool:
    capi = life.cell.capi
    if capi is None:
        return False
    found = dict(capi.metadata.annotations)
    if found.pop(PAUSED, None) is None:
        found[PAUSED] = ""
    life.cell.capi = attrs.evolve(capi, metadata=attrs.evolve(capi.metadata, annotations=found))
    return True


def delete_cluster(life: Life) -> bool:
    cluster = life.cell.cluster
    if not isinstance(cluster, Present) or cluster.value.deleting:
        return False
    life.cell.cluster = Present(attrs.evolve(cluster.value, deleting=True))
    return True


def cluster_goes(life: Life) -> bool:
    if isinstance(life.cell.cluster, Absent):
        return False
    life.cell.cluster = Absent()
    # A Node is forgotten with its Cluster.
    life.unrecorded = True
    return True


def cluster_comes(life: Life) -> bool:
    if not isinstance(life.cell.cluster, Absent):
        return False
    life.cell.cluster = Present(ClusterView())
    return True


def request_reclaim(life: Life) -> bool:
    node = life.cell.node
    if node is None or RECLAIM_REQUESTED in node.annotations:
        return False
    life.cell.node = attrs.evolve(node, annotations={**node.annotations, RECLAIM_REQUESTED: "true"})
    return True


def release_reclaim(life: Life) -> bool:
    reclaim = life.cell.machine.status.reclaim
    if reclaim is None or reclaim.state is not ReclaimState.HELD or reclaim.observed_at is None:
        return False
    value = format_instant(reclaim.observed_at)
    if life.cell.machine.metadata.annotations.get(RECLAIM_RELEASE) == value:
        return False
    _annotations(life, RECLAIM_RELEASE, value)
    return True


def _capi_acts(life: Life) -> bool:
    """Whether Cluster API does anything for this Machine now."""
    capi, cluster = life.cell.capi, life.cell.cluster
    paused = isinstance(cluster, Present) and cluster.value.paused
    return capi is not None and not paused and PAUSED not in capi.metadata.annotations


def provision(life: Life) -> bool:
    """The host is set up and its Node appears."""
    cell = life.cell
    capi = cell.capi
    if capi is None or not _capi_acts(life) or capi.provider_id or capi.failure or capi.metadata.deleting:
        return False
    if cell.infrastructure is None or cell.bootstrap is None or not isinstance(cell.cluster, Present):
        return False
    stray, life.theirs = cell.node, False
    cell.provision(capi.metadata.uid)
    if stray is not None:
        # A kubelet that finds its Node registers with that one.
        cell.node = attrs.evolve(stray, provider_id=cell.capi.provider_id if cell.capi else "")
    life.unrecorded = True
    return True


def join(life: Life) -> bool:
    cell = life.cell
    if cell.capi is None or cell.node is None or cell.node.ready or cell.capi.metadata.deleting:
        return False
    cell.node = attrs.evolve(cell.node, ready=True, reachable=True)
    cell.capi = attrs.evolve(cell.capi, phase="Running")
    return True


def lose_node(life: Life) -> bool:
    """The kubelet stops reporting."""
    if life.cell.node is None or not life.cell.node.ready:
        return False
    life.cell.node = attrs.evolve(life.cell.node, ready=False, reachable=False)
    return True


def removal_step(life: Life) -> bool:
    """Cluster API removes infrastructure, then bootstrap, then Node, then the Machine."""
    cell = life.cell
    if cell.capi is None or not cell.capi.metadata.deleting or not _capi_acts(life):
        return False
    if cell.infrastructure is not None:
        cell.infrastructure = None
    elif cell.bootstrap is not None:
        cell.bootstrap = None
    elif cell.node is not None and life.child and has_joined(cell):
        cell.node, cell.pods = None, ()
    else:
        cell.capi = None
    return True


def hasty_removal(life: Life) -> bool:
    """Machine and host go, the rest is left, as when somebody took Cluster API's finalizer off."""
    if life.cell.capi is None:
        return False
    life.cell.capi = None
    return True


def vanish(life: Life) -> bool:
    """All three go behind our back; the Node stays."""
    if is_empty(life.cell):
        return False
    life.cell.capi = life.cell.bootstrap = life.cell.infrastructure = None
    return True


def somebody_deletes_machine(life: Life) -> bool:
    capi = life.cell.capi
    if capi is None or capi.metadata.deleting:
        return False
    life.cell.capi = attrs.evolve(capi, metadata=attrs.evolve(capi.metadata, deleting_since=life.now))
    return True


def fail(life: Life) -> bool:
    """The Machine fails for good."""
    capi = life.cell.capi
    if capi is None or capi.failure:
        return False
    life.cell.capi = attrs.evolve(capi, failure="CreateError")
    return True


def node_returns(life: Life) -> bool:
    """A host that was off when it was removed comes back with its old kubelet."""
    last = life.cell.machine.status.last_node
    if life.cell.capi is not None or life.cell.node is not None or last is None:
        return False
    life.nodes += 1
    life.theirs = False
    life.cell.node = NodeView(
        name=last.name,
        uid=f"returned-{life.nodes}",
        resource_version="1",
        provider_id=f"sim://{model.NAMESPACE}/{model.NAME}",
        system_uuid=last.system_uuid,
        ready=True,
    )
    return True


def take_mark_off(life: Life) -> bool:
    """A person takes our cordon mark off a Node that came back."""
    node = life.cell.node
    if node is None or life.cell.capi is not None or not node.unschedulable:
        return False
    life.cell.node = attrs.evolve(node, unschedulable=False, annotations={})
    life.theirs = True
    return True


def pods_appear(life: Life) -> bool:
    if life.cell.node is None or life.cell.pods or life.cell.node.unschedulable:
        return False
    life.cell.pods = (POD, DAEMON)
    return True


def pods_end(life: Life) -> bool:
    kept = tuple(pod for pod in life.cell.pods if not pod.deleting)
    changed = kept != life.cell.pods
    life.cell.pods = kept
    return changed


def restore(life: Life) -> bool:
    """A backup from before any removal is restored: our status is lost, and this object has another uid."""
    machine = life.cell.machine
    if machine.status == type(machine.status)():
        return False
    life.cell.machine = attrs.evolve(machine, status=type(machine.status)())
    _metadata(life, uid=f"{machine.metadata.uid}'")
    life.unrecorded = True
    capi = life.cell.capi
    if capi is not None:
        kept = {key: text for key, text in capi.metadata.annotations.items() if key not in OF_REMOVALS}
        life.cell.capi = attrs.evolve(capi, metadata=attrs.evolve(capi.metadata, annotations=kept))
    return True


def toggle_budget(life: Life) -> bool:
    life.budget = not life.budget
    return True


def toggle_child(life: Life) -> bool:
    life.child = not life.child
    return True


def _unreadable(part: act.Part) -> Move:
    def move(life: Life) -> bool:
        life.unreadable ^= {part}
        return True

    move.__name__ = f"{part.value} cannot be read, or can again"
    return move


def _lags(part: act.Part) -> Move:
    def move(life: Life) -> bool:
        if part in life.cache:
            life.cache = {name: seen for name, seen in life.cache.items() if name is not part}
        else:
            life.cache = {**life.cache, part: known(life.truth(part))}
        return True

    move.__name__ = f"the cache of {part.value} stops, or catches up"
    return move


def time_passes(life: Life) -> bool:
    """Until the instant that the last pass asked for."""
    if life.wake is None or life.wake <= life.now:
        return False
    life.now = life.wake
    return True


def an_hour_passes(life: Life) -> bool:
    life.now += timedelta(hours=1)
    return True


ACTIVE, INACTIVE, NOT_FOUND, NOT_READY = (
    _says(name) for name in ("active", "inactive", "not found", "not ready")
)
UNREADABLE: Final = {part: _unreadable(part) for part in act.Part}
LAGS: Final = {part: _lags(part) for part in (act.Part.MACHINE, act.Part.INFRASTRUCTURE, act.Part.BOOTSTRAP)}

CLUSTER_API: Final[tuple[Move, ...]] = (provision, join, removal_step, pods_end)
"""What goes on by itself."""


def mend(life: Life) -> None:
    """Nothing goes wrong any more: no pause, no fault, nothing that cannot be read; the Node of a Machine is Ready."""
    life.child, life.budget, life.unreadable, life.cache = True, False, frozenset(), {}
    life.failure, life.fault = None, None
    _annotations(life, PAUSED, None)
    cluster, capi = life.cell.cluster, life.cell.capi
    if isinstance(cluster, Present):
        life.cell.cluster = Present(attrs.evolve(cluster.value, paused=False))
    if capi is not None and PAUSED in capi.metadata.annotations:
        toggle_machine_pause(life)


def behave(life: Life, known: "set[Any] | None" = None) -> None:
    """Mend the world and let it run until the machine rests where it is wanted.

    Raises:
        LawBroken: it does not get there, or a law is broken on the way.
    """
    mend(life)
    trail = []
    passes = moves = 0
    while passes <= PASSES and moves <= MOVES:
        if known is not None:
            mark = fingerprint(life)
            if mark in known:
                break
            trail.append(mark)
        if not life.cell.gone and life.step():
            passes += 1
        elif not life.cell.gone and any(move(life) for move in (*CLUSTER_API, time_passes)):
            passes, moves = 0, moves + 1
        elif (wrong := life.arrived) is not None:
            raise LawBroken(f"rests, but {wrong}: {life.cell}")
        else:
            if not life.cell.gone:
                life.keeps_still()
            break
    else:
        raise LawBroken(f"does not come to rest ({passes} passes, {moves} moves): {life.cell}")
    if known is not None:
        known.update(trail)
