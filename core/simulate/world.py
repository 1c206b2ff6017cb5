"""The discrete-event world: a queue of timed events, providers, machines, and the reconciler between them.

Between events nothing happens, so a year costs its transitions. At each instant every machine that was touched is decided
again and again until nothing changes any more; that it comes to rest, and changes phase only as the table allows, is
asserted here on every run.
"""

import heapq
from collections.abc import Iterable
from datetime import datetime
from typing import Final

import attrs

from fivespot.core.decision.actions import Create, Decision, Delete, Role
from fivespot.core.decision.decide import decide
from fivespot.core.decision.knowledge import Absent, Known, Present
from fivespot.core.decision.observation import ProviderView
from fivespot.core.decision.phase import ALLOWED, Phase
from fivespot.core.decision.policy import DEFAULT_POLICY, Policy
from fivespot.core.errors import FivespotError
from fivespot.core.fleet import Fleet
from fivespot.core.instant import later
from fivespot.core.simulate.cell import Cell, standing
from fivespot.core.simulate.pace import Pace
from fivespot.core.simulate.schedules import ProviderKey, Providers

_PASSES: Final = 64
"""Passes after which a machine that has not come to rest at one instant never will."""


class InvariantBroken(FivespotError):  # noqa: N818 - a fact about a run
    """The deciding code did what it must never do: a bug, never a user's mistake."""


@attrs.frozen(kw_only=True)
class Change:
    """A machine changed its phase.

    Attributes:
        at: the instant.
        machine: `namespace/name`.
        before: the phase before, None when the run begins with it.
        after: the phase from now on, None when the object is gone.
        cause: reason and sentence, as in the status.
        decided_by: who decided.
        verdict: what the provider said: Active, Inactive or Unresolved(reason).
    """

    at: datetime
    machine: str
    before: Phase | None
    after: Phase | None
    cause: str
    decided_by: str
    verdict: str


@attrs.define(kw_only=True)
class _Place:
    """A machine in the world: its cell, its provider, and when it wants to be looked at again."""

    key: str
    cell: Cell
    provider: ProviderKey | None
    wake: datetime | None = None


@attrs.define(kw_only=True)
class World:
    """A fleet in virtual time. `now` moves only forward, by `run`."""

    now: datetime
    policy: Policy
    pace: Pace
    providers: Providers
    places: dict[str, _Place]
    references: dict[ProviderKey, list[str]]
    changes: list[Change] = attrs.field(factory=list)
    _queue: list[tuple[datetime, int, str, str, str]] = attrs.field(factory=list)
    _count: int = 0

    @classmethod
    def of(
        cls, fleet: Fleet, start: datetime, *, policy: Policy = DEFAULT_POLICY, pace: Pace | None = None
    ) -> "World":
        """A fleet at `start`, before anything was looked at."""
        providers = Providers(fleet.providers)
        places: dict[str, _Place] = {}
        references: dict[ProviderKey, list[str]] = {}
        for machine in fleet.machines:
            key = machine.provider_key
            view = attrs.evolve(
                machine.view,
                metadata=attrs.evolve(
                    machine.view.metadata, uid=machine.view.metadata.uid or f"uid-{machine.key}"
                ),
            )
            places[machine.key] = _Place(key=machine.key, cell=standing(view, start), provider=key)
            if key is not None:
                references.setdefault(key, []).append(machine.key)
        return cls(
            now=start,
            policy=policy,
            pace=pace or Pace(),
            providers=providers,
            places=places,
            references=references,
        )

    def run(self, end: datetime) -> None:
        """Live from `now` up to, but without, `end`."""
        for key in self.providers.members_first():
            self._advance_provider(key)
        for place in self.places.values():
            self._note_start(place)
        self._settle(self.places)
        while self._queue and self._queue[0][0] < end:
            self._step()
        self.now = end

    def seen_by(self, place_key: str) -> Known[ProviderView]:
        """What a machine's provider says now."""
        key = self.places[place_key].provider
        found = self.providers.get(key) if key is not None else None
        return Present(found.view) if found is not None else Absent(live=True)

    def _step(self) -> None:
        """Everything that is due at the next instant, then every machine that it touched."""
        self.now = self._queue[0][0]
        touched: dict[str, None] = {}
        while self._queue and self._queue[0][0] == self.now:
            _, _, what, key, uid = heapq.heappop(self._queue)
            touched.update(dict.fromkeys(self._happen(what, key, uid)))
        self._settle(touched)

    def _happen(self, what: str, key: str, uid: str) -> Iterable[str]:
        if what == "boundary":
            return self._advance_provider(_split(key))
        place = self.places[key]
        if what == "wake":
            if place.wake != self.now:
                return ()
            place.wake = None
        elif what == "provision":
            place.cell.provision(uid)
            self._at(later(self.now, self.pace.join), "join", key, uid)
        elif what == "join":
            place.cell.join(uid)
        else:
            place.cell.remove(uid)
        return (key,)

    def _advance_provider(self, key: ProviderKey) -> Iterable[str]:
        changed = self.providers.advance(key, self.now)
        wake_at = self.providers[key].wake_at
        if wake_at is not None:
            self._at(wake_at, "boundary", "\n".join(key))
        return [machine for provider in changed for machine in self.references.get(provider, ())]

    def _settle(self, keys: Iterable[str]) -> None:
        for key in list(keys):
            place = self.places[key]
            for _ in range(_PASSES):
                if place.cell.gone or not self._pass(place):
                    break
            else:
                message = f"{key} did not come to rest at {self.now.isoformat()}"
                raise InvariantBroken(message)

    def _pass(self, place: _Place) -> bool:
        """Observe, decide, write the status, act. Returns whether anything changed."""
        cell = place.cell
        decision = decide(cell.observe(self.seen_by(place.key)), self.now, self.policy)
        changed = decision.status != cell.machine.status
        if changed:
            self._store(place, decision)
        for group in decision.groups:
            for action in group.actions:
                if cell.perform(action, self.now):
                    changed = True
                    self._follow(place, action)
        if cell.gone:
            self._note(
                place, cell.machine.status.phase, None, "Deleted: nothing is left", decision.status.decided_by
            )
        if not changed:
            self._wake(place, decision.wake_at)
        return changed

    def _store(self, place: _Place, decision: Decision) -> None:
        before = place.cell.machine.status
        place.cell.machine = attrs.evolve(place.cell.machine, status=decision.status)
        if decision.status.phase != before.phase:
            ready = next((c.reason for c in decision.status.conditions if c.type == "Ready"), "")
            cause = f"{ready}: {decision.status.message}"
            self._note(place, before.phase, decision.status.phase, cause, decision.status.decided_by)

    def _follow(self, place: _Place, action: object) -> None:
        """What Cluster API will do about an action, in its own time."""
        capi = place.cell.capi
        if capi is None:
            return
        if isinstance(action, Create) and action.role is Role.MACHINE:
            self._at(later(self.now, self.pace.provision), "provision", place.key, capi.metadata.uid)
        elif isinstance(action, Delete) and action.role is Role.MACHINE:
            self._at(later(self.now, self.pace.remove), "remove", place.key, capi.metadata.uid)

    def _note_start(self, place: _Place) -> None:
        """A run begins with what is stored; what was under way when it was stored goes on."""
        status, capi = place.cell.machine.status, place.cell.capi
        if status.phase is not None:
            self._note(place, None, status.phase, status.message or "", status.decided_by, check=False)
        if capi is not None and place.cell.node is None:
            self._at(later(self.now, self.pace.provision), "provision", place.key, capi.metadata.uid)
        elif capi is not None and place.cell.node is not None and not place.cell.node.ready:
            self._at(later(self.now, self.pace.join), "join", place.key, capi.metadata.uid)

    def _note(
        self,
        place: _Place,
        before: str | None,
        after: str | None,
        cause: str,
        decided_by: str | None,
        *,
        check: bool = True,
    ) -> None:
        old = Phase(before) if before is not None else None
        new = Phase(after) if after is not None else None
        if check and new is not None and new not in ALLOWED[old]:
            message = f"{place.key}: phase {before} must never become {after}"
            raise InvariantBroken(message)
        self.changes.append(
            Change(
                at=self.now,
                machine=place.key,
                before=old,
                after=new,
                cause=cause,
                decided_by=decided_by or "",
                verdict=_verdict_text(place),
            )
        )

    def _wake(self, place: _Place, at: datetime | None) -> None:
        if at is not None and at != place.wake:
            place.wake = at
            self._at(at, "wake", place.key)

    def _at(self, when: datetime, what: str, key: str, uid: str = "") -> None:
        self._count += 1
        heapq.heappush(self._queue, (when, self._count, what, key, uid))


def _verdict_text(place: _Place) -> str:
    spot = place.cell.machine.status.spot_schedule
    if spot is None or spot.reason is None:
        return ""
    if not spot.resolved:
        return f"Unresolved({spot.reason})"
    return "Active" if spot.active else "Inactive"


def _split(key: str) -> ProviderKey:
    kind, namespace, name = key.split("\n")
    return kind, namespace, name
