"""A small closed world around one machine: an in-memory cluster, what happens in it, and passes that react to it.

Everything that can happen is a move (`moves.py`): a function that changes a `Life` and says whether it could. A pass is
what the controller does: observe, decide (reading live what is asked for), write the status, act. It can be cut after any
write, as a crash does. Reads come from caches: what is absent is so only as far as a cache can tell, until it is confirmed.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import attrs

from fivespot.core.decision import actions as act
from fivespot.core.decision.decide import decide
from fivespot.core.decision.knowledge import Absent, Known, Present, Unknown
from fivespot.core.decision.observation import (
    BlockedEviction,
    ClusterView,
    Failure,
    NodeView,
    Observation,
    PodView,
    ProviderView,
)
from fivespot.core.decision.phase import RESTING, Phase
from fivespot.core.names import (
    CORDONED_BY,
    EXCLUDE_NODE_DRAINING,
    EXCLUDE_VOLUME_DETACH,
    SKIP_REMEDIATION,
)
from fivespot.core.simulate.cell import Cell
from tests.core.decision import laws, model

PASSES: Final = 16
"""In so many passes every machine comes to rest when nothing else happens."""
_LONG: Final = timedelta(days=30)

POD: Final = PodView(namespace="default", name="web-1", uid="uid-pod")
DAEMON: Final = PodView(namespace="kube-system", name="cni-1", uid="uid-daemon", daemon=True)
BASES: Final = {
    (enabled, kill): model.machine(
        enabled=enabled,
        killSwitch=kill,
        nodeDrainTimeout="2m",
        nodeTaints=[{"key": "lent", "value": "yes", "effect": "NoSchedule"}],
    )
    for enabled in (True, False)
    for kill in (True, False)
}
OF_REMOVALS: Final = (SKIP_REMEDIATION, EXCLUDE_NODE_DRAINING, EXCLUDE_VOLUME_DETACH)
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
        theirs: whether a person took our mark off the Node.
        unrecorded: whether the Node has not been seen yet, or not since a backup or a Cluster took its record along.
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
    theirs: bool = False
    unrecorded: bool = False
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
        node = self._read(act.Part.NODE, cell.node if has_joined(cell) else None, live)
        last = _same_name(cell)
        seen_last = live | {act.Part.NODE} if act.Part.LAST_NODE in live else live
        return Observation(
            machine=cell.machine,
            provider=self.provider,
            cluster=self._cluster(live),
            capi_machine=capi,
            bootstrap=self._read(act.Part.BOOTSTRAP, cell.bootstrap, live),
            infrastructure=self._read(act.Part.INFRASTRUCTURE, cell.infrastructure, live),
            node=Absent(live=True) if alone else node,
            last_node=self._read(act.Part.NODE, last, seen_last) if alone and last else Absent(),
            last_node_confirmed=act.Part.LAST_NODE in live,
            pods=Present(cell.pods) if self.child else model.OUT_OF_REACH,
            blocked=(BlockedEviction(uid=POD.uid, by="web"),) if self.refused else (),
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

    def keeps_still(self) -> None:
        """At rest, time alone changes nothing before the instant that was asked for, or ever."""
        later = self.copy()
        later.now = self.wake - timedelta(microseconds=1) if self.wake is not None else self.now + _LONG
        if later.step():
            raise LawBroken(f"time alone changes it by {later.now}, but it wants to be woken at {self.wake}")

    def _crash(self) -> bool:
        """What was only in memory is lost."""
        self.failure = self.fault = self.wake = None
        self.crashes += 1
        return True

    def _store(self, decision: act.Decision) -> None:
        self.fault_after -= 1
        last, node = decision.status.last_node, self.cell.node
        seen = last is not None and node is not None and last.uid == node.uid
        self.unrecorded = self.unrecorded and (isinstance(self.cell.cluster, Absent) or not seen)
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
                self.cache = {**self.cache, part: known(self.truth(part))}
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

    def truth(self, part: act.Part) -> Any:
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
            return None if cell.gone and is_empty(cell) else "it was to go"
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
            if status.phase != "Active" or not status.ready:
                return f"{status.phase} instead of Active"
            return _unkempt(cell)
        if status.phase != wanted or Phase(wanted) not in RESTING:
            return f"{status.phase} instead of {wanted}"
        if not is_empty(cell):
            return "something is left"
        return None if cell.node is None or self.theirs or self.unrecorded else "a Node is left"


def _unkempt(cell: Cell) -> str | None:
    """What a change of mind has left behind, or upkeep has forgotten, of a machine that is Active."""
    capi, node = cell.capi, cell.node
    if capi is None or node is None:
        return "Active without a Machine or a Node"
    if node.unschedulable or CORDONED_BY in node.annotations:
        return "still cordoned"
    if not capi.metadata.annotations.keys().isdisjoint(OF_REMOVALS):
        return f"still annotated: {dict(capi.metadata.annotations)}"
    return None if [taint.key for taint in node.taints] == ["lent"] else f"tainted {node.taints}"


def _step_name(action: act.Action) -> str:
    verb = {act.Create: "create", act.Delete: "delete", act.EvictPod: "evict", act.SetTaints: "taint"}
    return f"{verb.get(type(action), 'patch')} {type(action).__name__}"


def known(value: Any) -> Known[Any]:
    return Present(value) if value is not None else Absent()


def has_joined(cell: Cell) -> bool:
    capi, node = cell.capi, cell.node
    if node is None:
        return False
    wanted = capi.provider_id if capi is not None else cell.machine.status.provider_id
    return bool(wanted) and node.provider_id == wanted


def _same_name(cell: Cell) -> NodeView | None:
    last, node = cell.machine.status.last_node, cell.node
    return node if last is not None and node is not None and node.name == last.name else None


def is_empty(cell: Cell) -> bool:
    return cell.capi is None and cell.bootstrap is None and cell.infrastructure is None


def start(
    provider: str = "inactive", changes: "Counter[tuple[str | None, str | None]] | None" = None
) -> Life:
    """A machine that was just created."""
    base = BASES[True, False]
    fresh = attrs.evolve(base, metadata=attrs.evolve(base.metadata, finalizers=()))
    life = Life(cell=Cell(machine=fresh), says=provider)
    life.changes = changes if changes is not None else life.changes
    return life
