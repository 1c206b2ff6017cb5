"""A small closed world around one machine: an in-memory cluster, what happens in it, and passes that react to it.

Everything that can happen is a move: a function that changes a `Life` and says whether it could happen now. A pass is
what the controller does: observe, decide (reading live what is asked for), write the status, act. It can be cut after any
write, as a crash does. Reads come from caches: what is absent is so only as far as a cache can tell, until it is confirmed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

import attrs

from fivespot.core.api.scheduled_machine import ReclaimState
from fivespot.core.decision import actions as act
from fivespot.core.decision.decide import decide
from fivespot.core.decision.knowledge import Absent, Known, Present, Unknown
from fivespot.core.decision.observation import (
    BlockedEviction,
    CapiMachineView,
    ClusterView,
    DependentView,
    Failure,
    NodeView,
    Observation,
    PodView,
    ProviderView,
)
from fivespot.core.decision.phase import RESTING, Phase
from fivespot.core.instant import format_instant
from fivespot.core.names import PAUSED, RECLAIM_RELEASE, RECLAIM_REQUESTED
from fivespot.core.simulate.cell import Cell
from tests.core.decision import laws, model

PASSES: Final = 16
"""In so many passes every machine comes to rest when nothing else happens."""
MOVES: Final = 60
"""In so many further events every machine is where it is wanted, once nothing goes wrong any more."""

_POD: Final = PodView(namespace="default", name="web-1", uid="uid-pod")
_DAEMON: Final = PodView(namespace="kube-system", name="cni-1", uid="uid-daemon", daemon=True)
_BASES: Final = {
    (enabled, kill): model.machine(
        enabled=enabled,
        killSwitch=kill,
        nodeDrainTimeout="2m",
        nodeTaints=[{"key": "lent", "value": "yes", "effect": "NoSchedule"}],
    )
    for enabled in (True, False)
    for kill in (True, False)
}
_NODE_STEPS: Final = (
    act.Cordon, act.Uncordon, act.SetTaints, act.EvictPod, act.DeletePod, act.DeleteNode, act.ClearReclaimRequest
)  # fmt: skip


class LawBroken(AssertionError):  # noqa: N818 - a fact about a run
    """A decision, or a run, that must never be."""


@attrs.define(kw_only=True)
class Life:
    """One machine and its world.

    Attributes:
        child: whether the child cluster can be reached.
        budget: whether a budget protects the pods.
        unreadable: what no read gets at now, live or not.
        cache: what the cache says of parts whose watch has stopped; our own writes still reach it.
        fault: what an action runs into, after so many writes and so many times; see `_attempt`.
        touched: whether this pass changed anything.
        writes: how many writes there were: of the status, and actions.
        crashes: how many passes were cut.
        changes: phase changes that were written, shared by copies.
    """

    cell: Cell
    says: str = "inactive"
    now: datetime = model.NOW
    enabled: bool = True
    kill: bool = False
    child: bool = True
    budget: bool = False
    unreadable: frozenset[act.Part] = frozenset()
    cache: Mapping[act.Part, Known[Any]] = attrs.field(factory=dict)
    wake: datetime | None = None
    nodes: int = 0
    refused: bool = False
    failure: Failure | None = None
    fault: str | None = None
    fault_after: int = 0
    fault_times: int = 1
    touched: bool = False
    writes: int = 0
    crashes: int = 0
    changes: "Counter[tuple[str | None, str | None]]" = attrs.field(factory=Counter)

    def copy(self) -> "Life":
        """Another life that goes its own way from here."""
        return attrs.evolve(self, cell=attrs.evolve(self.cell))

    # What a pass does

    @property
    def provider(self) -> Known[ProviderView]:
        """What the provider's object looks like."""
        return model.VERDICTS[self.says]

    def observe(self, confirmed: Iterable[act.Part] = ()) -> Observation:
        """Read everything; `confirmed` parts live."""
        cell, live = self.cell, frozenset(confirmed)
        capi = self._read(act.Part.MACHINE, cell.capi, live)
        alone = isinstance(capi, Absent)
        node = self._read(act.Part.NODE, cell.node if _has_joined(cell) else None, live)
        last = _same_name(cell)
        return Observation(
            machine=cell.machine,
            provider=self.provider,
            cluster=self._cluster(live),
            capi_machine=capi,
            bootstrap=self._read(act.Part.BOOTSTRAP, cell.bootstrap, live),
            infrastructure=self._read(act.Part.INFRASTRUCTURE, cell.infrastructure, live),
            node=Absent(live=True) if alone else node,
            last_node=self._read(act.Part.NODE, last, live) if alone and last else Absent(),
            pods=Present(cell.pods) if self.child else model.OUT_OF_REACH,
            blocked=(BlockedEviction(uid=_POD.uid, by="web"),) if self.refused else (),
            failure=self.failure,
        )

    def _read(self, part: act.Part, value: Any, live: frozenset[act.Part]) -> Known[Any]:
        if part in self.unreadable:
            return Unknown("ProviderUnreadable", "time-out")
        if part is act.Part.NODE and not self.child:
            return model.OUT_OF_REACH
        if part in live:
            return Present(value) if value is not None else Absent(live=True)
        if part in self.cache:
            return self.cache[part]
        return Present(value) if value is not None else Absent()

    def _cluster(self, live: frozenset[act.Part]) -> Known[ClusterView]:
        if act.Part.CLUSTER in self.unreadable:
            return model.UNREAD
        seen = self.cell.cluster
        return Absent(live=act.Part.CLUSTER in live) if isinstance(seen, Absent) else seen

    def decide(self) -> act.Decision:
        """Decide, after reading live whatever a decision wants to have confirmed; every law is checked."""
        confirmed: set[act.Part] = set()
        for _ in range(len(act.Part) + 1):
            obs = self.observe(confirmed)
            decision = decide(obs, self.now)
            for wrong in laws.broken(laws.Seen(obs=obs, now=self.now, decision=decision)):
                raise LawBroken(wrong)
            if not decision.confirm:
                return decision
            if confirmed.issuperset(decision.confirm):
                raise LawBroken(f"asks again for {decision.confirm}")
            confirmed.update(decision.confirm)
        raise LawBroken("never stops asking")

    @property
    def faultless(self) -> bool:
        """Whether everything can be read and done."""
        broken = self.unreadable or self.cache or self.failure or self.fault or self.budget
        return self.child and not broken

    def step(self, crash_after: int | None = None) -> bool:
        """One pass; returns whether anything changed. A crash comes after so many writes; 0 loses the first one."""
        decision = self.decide()
        self.touched = decision.status != self.cell.machine.status
        if self.touched:
            if crash_after == 0:
                return self._crash()
            self._store(decision)
            crash_after = crash_after - 1 if crash_after is not None else None
        failed: str | None = None
        for group in decision.groups:
            fine = True
            for action in group.actions:
                if crash_after == 0:
                    return self._crash()
                fault = self._attempt(action)
                fine, failed = fine and fault is None, failed or (fault and f"{_step_name(action)}: {fault}")
                crash_after = crash_after - 1 if crash_after is not None else None
            if group.required and not fine:
                break
        self._remember(failed)
        self.wake = decision.wake_at
        if not self.touched and decision.groups and self.faultless:
            raise LawBroken(f"asks at rest for {decision.groups}")
        return self.touched

    def _remember(self, failed: str | None) -> None:
        """What a controller keeps of a pass: the first step that failed, and since when it does."""
        before, self.failure = self.failure, None
        if failed is not None:
            step, _, reason = failed.partition(": ")
            since = before.since if before is not None and before.step == step else self.now
            reason = reason.removeprefix("done, but ")
            self.failure = Failure(step=step, reason=reason, message=reason, since=since)
        self.touched = self.touched or self.failure != before

    def _crash(self) -> bool:
        """What was only in memory is lost."""
        self.failure = self.fault = self.wake = None
        self.crashes += 1
        return True

    def _store(self, decision: act.Decision) -> None:
        self.fault_after -= 1
        before = self.cell.machine.status.phase
        self.writes += 1
        self.cell.machine = attrs.evolve(self.cell.machine, status=decision.status)
        if before != decision.status.phase:
            self.changes[before, decision.status.phase] += 1

    def _attempt(self, action: act.Action) -> str | None:
        """Do it, and say what it ran into. A fault `done, but ...` fails only the report."""
        fault = self._fault()
        self.writes += 1
        if fault is None or fault.startswith("done"):
            self.touched = self._perform(action) or self.touched
            for part in self.cache:
                self.cache = {**self.cache, part: _known(self._truth(part))}
        return fault

    def _fault(self) -> str | None:
        """What this action runs into, once `fault_after` more writes were made, and `fault_times` in a row."""
        if self.fault is None:
            return None
        self.fault_after -= 1
        if self.fault_after >= 0:
            return None
        fault = self.fault
        self.fault_times -= 1
        if self.fault_times <= 0:
            self.fault, self.fault_times = None, 1
        return fault

    def _perform(self, action: act.Action) -> bool:
        cell = self.cell
        if isinstance(action, _NODE_STEPS) and not self.child:
            return False
        if isinstance(action, act.EvictPod):
            if self.budget:
                changed, self.refused = not self.refused, True
                return changed
            self.refused = False
            before = cell.pods
            cell.pods = tuple(attrs.evolve(p, deleting=True) if p.uid == action.uid else p for p in before)
            return cell.pods != before
        return cell.perform(action, self.now)

    def _truth(self, part: act.Part) -> Any:
        return self.cell.capi if part is act.Part.MACHINE else getattr(self.cell, part.value)

    # Where it should end

    @property
    def wanted(self) -> str:
        """Where the machine rests when nothing goes wrong any more, by the precedence of the design."""
        status = self.cell.machine.status
        reclaim, spot = status.reclaim, status.spot_schedule
        held = spot.active if spot is not None else None
        # A fleet that was restored without its status is not torn down.
        never = self.cell.capi is not None
        active = model.RESOLVED.get(self.says, never if held is None else held)
        cluster = self.cell.cluster
        if self.cell.machine.metadata.deleting:
            return "gone"
        if self.kill:
            return "Terminated"
        if reclaim is not None and reclaim.state is not None:
            return "Disabled"
        if not self.enabled:
            return "Disabled"
        if isinstance(cluster, Present) and cluster.value.deleting:
            return "Inactive"
        return "Active" if active else "Inactive"

    @property
    def arrived(self) -> str | None:
        """None when the machine is where it is wanted, else what is wrong."""
        cell, wanted = self.cell, self.wanted
        status = cell.machine.status
        if wanted == "gone" or cell.gone:
            return None if cell.gone and _empty(cell) else "it was to go"
        if wanted == "Active":
            if isinstance(cell.cluster, Absent):
                return (
                    None if cell.capi is not None or status.phase == "Pending" else "neither stands nor waits"
                )
            node = cell.node
            if cell.capi is not None and cell.capi.failure and not (node is not None and node.ready):
                # One that had a Node is left to people.
                return None if status.phase == "Error" else "a failed Machine is not reported"
            if cell.capi is not None and (cell.infrastructure is None or cell.bootstrap is None):
                # Somebody removed what the Machine is made of: it is reported, and nothing is deleted.
                return None if status.phase == "Pending" else f"{status.phase} instead of Pending"
            return None if status.phase == "Active" and status.ready else f"{status.phase} instead of Active"
        if status.phase != wanted or Phase(wanted) not in RESTING:
            return f"{status.phase} instead of {wanted}"
        if not _empty(cell):
            return "something is left"
        return None if cell.node is None or status.last_node is None else "a Node is left"


def _step_name(action: act.Action) -> str:
    verb = {act.Create: "create", act.Delete: "delete", act.EvictPod: "evict", act.SetTaints: "taint"}
    return f"{verb.get(type(action), 'patch')} {type(action).__name__}"


def _known(value: Any) -> Known[Any]:
    return Present(value) if value is not None else Absent()


def _has_joined(cell: Cell) -> bool:
    capi, node = cell.capi, cell.node
    if node is None:
        return False
    wanted = capi.provider_id if capi is not None else cell.machine.status.provider_id
    return bool(wanted) and node.provider_id == wanted


def _same_name(cell: Cell) -> NodeView | None:
    last, node = cell.machine.status.last_node, cell.node
    return node if last is not None and node is not None and node.name == last.name else None


def _empty(cell: Cell) -> bool:
    return cell.capi is None and cell.bootstrap is None and cell.infrastructure is None


# Moves

Move: TypeAlias = Callable[[Life], bool]


def _says(name: str) -> Move:
    def move(life: Life) -> bool:
        changed = life.says != name
        life.says = name
        return changed

    move.__name__ = f"the provider: {name}"
    return move


def _respecify(life: Life) -> None:
    base = _BASES[life.enabled, life.kill]
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
    stray = cell.node
    cell.provision(capi.metadata.uid)
    if stray is not None:
        # A kubelet that finds its Node registers with that one.
        cell.node = attrs.evolve(stray, provider_id=cell.capi.provider_id if cell.capi else "")
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
    elif cell.node is not None and life.child and _has_joined(cell):
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
    if _empty(life.cell):
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
    return True


def pods_appear(life: Life) -> bool:
    if life.cell.node is None or life.cell.pods or life.cell.node.unschedulable:
        return False
    life.cell.pods = (_POD, _DAEMON)
    return True


def pods_end(life: Life) -> bool:
    kept = tuple(pod for pod in life.cell.pods if not pod.deleting)
    changed = kept != life.cell.pods
    life.cell.pods = kept
    return changed


def restore(life: Life) -> bool:
    """A backup is restored: our status is lost, and every object has another uid."""
    machine = life.cell.machine
    if machine.status == type(machine.status)():
        return False
    life.cell.machine = attrs.evolve(machine, status=type(machine.status)())
    _metadata(life, uid=f"{machine.metadata.uid}'")
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
            life.cache = {**life.cache, part: _known(life._truth(part))}
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


def start(
    provider: str = "inactive", changes: "Counter[tuple[str | None, str | None]] | None" = None
) -> Life:
    """A machine that was just created."""
    base = _BASES[True, False]
    fresh = attrs.evolve(base, metadata=attrs.evolve(base.metadata, finalizers=()))
    life = Life(cell=Cell(machine=fresh), says=provider)
    life.changes = changes if changes is not None else life.changes
    return life


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
            break
    else:
        raise LawBroken(f"does not come to rest ({passes} passes, {moves} moves): {life.cell}")
    if known is not None:
        known.update(trail)


# Fingerprints


def fingerprint(life: Life) -> Any:
    """All that can matter, without times and names: instants as passed or not, uids as whose they are."""
    cell, now = life.cell, life.now
    machine, capi, node = cell.machine, cell.capi, cell.node
    status = machine.status
    return (
        cell.gone,
        life.says,
        life.enabled,
        life.kill,
        life.child,
        life.budget,
        life.refused,
        life.unreadable,
        life.failure is not None,
        life.fault,
        tuple(
            (part.value, _seen_mark(seen, capi))
            for part, seen in sorted(life.cache.items(), key=lambda i: i[0].value)
        ),
        attrs.evolve(cell.cluster.value, generation=0) if isinstance(cell.cluster, Present) else None,
        machine.metadata.deleting,
        machine.metadata.finalizers,
        PAUSED in machine.metadata.annotations,
        _capi_mark(capi, now),
        _taken_by(cell.infrastructure, capi),
        _taken_by(cell.bootstrap, capi),
        _node_mark(node, capi),
        tuple((pod.uid, pod.deleting) for pod in cell.pods),
        life.wake is not None and life.wake > now,
        *_status_mark(life, status, now),
    )


def _seen_mark(seen: Known[Any], capi: CapiMachineView | None) -> Any:
    if not isinstance(seen, Present):
        return type(seen).__name__
    view = seen.value
    if isinstance(view, CapiMachineView):
        return _capi_mark(view, model.NOW), capi is not None and capi.metadata.uid == view.metadata.uid
    return _taken_by(view, capi)


def _past(at: datetime | None, now: datetime, more: float = 0) -> bool | None:
    return None if at is None else at + timedelta(seconds=more) <= now


def _capi_mark(capi: CapiMachineView | None, now: datetime) -> Any:
    if capi is None:
        return None
    meta = capi.metadata
    return (
        meta.deleting, capi.phase, capi.provider_id, capi.failure,
        frozenset(meta.annotations), _past(meta.created_at, now, 900),
    )  # fmt: skip


def _taken_by(view: DependentView | None, capi: CapiMachineView | None) -> Any:
    if view is None:
        return None
    owners = [owner.uid for owner in view.metadata.owners if owner.kind == "Machine"]
    return view.metadata.deleting, bool(owners), capi is not None and capi.metadata.uid in owners


def _node_mark(node: NodeView | None, capi: CapiMachineView | None) -> Any:
    if node is None:
        return None
    return (
        node.ready, node.reachable, node.unschedulable, frozenset(node.annotations), len(node.taints),
        capi is not None and capi.provider_id == node.provider_id,
    )  # fmt: skip


def _same(uid: str | None, view: Any) -> Any:
    if uid is None or view is None:
        return uid is not None
    found = view.uid if isinstance(view, NodeView) else view.metadata.uid
    return "same" if found == uid else "other"


def _status_mark(life: Life, status: Any, now: datetime) -> Iterator[Any]:
    cell = life.cell
    shutdown, reclaim, provisioning = status.shutdown, status.reclaim, status.provisioning
    yield status.phase, status.provider_id is not None
    yield tuple(
        _same(ref.uid if ref else None, view)
        for ref, view in (
            (status.machine_ref, cell.capi),
            (status.bootstrap_ref, cell.bootstrap),
            (status.infrastructure_ref, cell.infrastructure),
            (status.node_ref, cell.node),
            (status.last_node, cell.node),
        )
    )
    spot = status.spot_schedule
    yield (spot.resolved, spot.active, spot.reason) if spot is not None else None
    if shutdown is not None:
        yield (
            shutdown.manner.value, shutdown.cordoned, shutdown.remaining_pods, bool(shutdown.blocked_by),
            _past(shutdown.started_at, now), _past(shutdown.drain_deadline, now), _past(shutdown.deadline, now),
            _past(shutdown.deadline, now, 600), _past(shutdown.drained_at, now, 30),
        )  # fmt: skip
    if reclaim is not None:
        released = reclaim.observed_at is not None and (
            cell.machine.metadata.annotations.get(RECLAIM_RELEASE) == format_instant(reclaim.observed_at)
        )
        yield (
            reclaim.state, min(len(reclaim.history), 1), released,
            _same(reclaim.node.uid if reclaim.node else None, cell.node),
            _past(reclaim.observed_at, now, 3.5), _past(reclaim.pods_deleted_at, now, 3.5),
            _same(reclaim.stale_cleared_for, cell.capi),
        )  # fmt: skip
    if provisioning is not None:
        yield (
            min(provisioning.attempt or 0, 1), _same(provisioning.replacing, cell.capi),
            _past(provisioning.not_before, now),
        )  # fmt: skip
