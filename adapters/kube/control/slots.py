"""Slots for machines that come and go: `core.decision.caps` with a clock and an event loop.

Who asks is not answered at once: those that are about to ask, after a flip or a start, are waited for a moment, so that the most
urgent of them is first. Whoever gets a slot, and whoever has to wait, is woken.
"""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

import attrs

from fivespot.adapters.clock import event_or_time
from fivespot.core.api.scheduled_machine import ScheduledMachineStatus
from fivespot.core.decision.caps import Caps, Claim, Stage, admit, claim_of, under_way
from fivespot.core.decision.observation import MachineView, Slot
from fivespot.core.decision.policy import Policy
from fivespot.core.instant import later
from fivespot.core.ports import Clock

_MOMENT: Final = 0.05
"""Seconds for which others are waited for before slots are dealt out."""


@attrs.frozen
class _Busy:
    claim: Claim
    until: datetime


class _Table:
    """One stage: who waits, and who has a slot."""

    def __init__(self, caps: Caps) -> None:
        self.caps = caps
        self.asking: dict[str, Claim] = {}
        self.waiting: dict[str, Claim] = {}
        self.busy: dict[str, _Busy] = {}

    def drop(self, key: str) -> bool:
        """Forget a machine; whether that frees a slot."""
        self.asking.pop(key, None)
        self.waiting.pop(key, None)
        return self.busy.pop(key, None) is not None

    def deal(self, now: datetime, until: datetime) -> list[str]:
        """Give the free slots away; who is to be woken."""
        self.busy = {key: busy for key, busy in self.busy.items() if now < busy.until}
        everybody = {**self.waiting, **self.asking}
        granted = admit(everybody.values(), (busy.claim for busy in self.busy.values()), self.caps)
        for key in granted:
            self.busy[key] = _Busy(everybody.pop(key), until)
        answered = [*granted, *(key for key in self.asking if key in everybody)]
        self.waiting, self.asking = everybody, {}
        return answered


class Slots:
    """Who may begin to come up, or to be drained.

    Args:
        caps: of each stage.
        policy: how long a stage counts.
        clock: `now` for that.
        wake: called with the key of a machine whose slot has been decided on.
    """

    def __init__(
        self, caps: Mapping[Stage, Caps], policy: Policy, clock: Clock, wake: Callable[[str], None]
    ) -> None:
        # A stage without a cap has no table: nobody waits for it, and nothing has to be known of it.
        self._tables = {stage: _Table(of) for stage, of in caps.items() if not of.none}
        self._policy = policy
        self._clock = clock
        self._wake = wake
        self._news = asyncio.Event()

    def ask(self, stage: Stage, machine: MachineView) -> Slot | None:
        """Whether a machine may begin; None when that is not decided yet, and the machine is woken once it is."""
        if (table := self._tables.get(stage)) is None:
            return Slot.GRANTED
        claim = claim_of(machine)
        if claim.key in table.busy:
            return Slot.GRANTED
        if claim.key in table.waiting:
            return Slot.WAITING
        table.asking[claim.key] = claim
        self._news.set()
        return None

    def seen(self, machine: MachineView) -> None:
        """Take in what a machine is at, by its status."""
        if not self._tables or (found := under_way(machine.status, self._policy)) is None:
            return
        claim = claim_of(machine)
        for stage, table in self._tables.items():
            if stage is not found.stage:
                self._freed(table.drop(claim.key))
            else:
                table.drop(claim.key)
                table.busy[claim.key] = _Busy(claim, found.until)

    def settled(self, key: str, status: ScheduledMachineStatus | None) -> None:
        """A machine neither begins anything nor waits: by its status, None for one that is gone, it may be at nothing."""
        if status is None or under_way(status, self._policy) is None:
            for table in self._tables.values():
                self._freed(table.drop(key))

    async def run(self) -> None:
        """Deal out slots, for ever: when somebody asks, when one is free, and when one counts no longer."""
        while True:
            ends = [
                busy.until for table in self._tables.values() if table.waiting for busy in table.busy.values()
            ]
            await event_or_time(self._news, self._clock, *([min(ends)] if ends else []))
            await self._clock.sleep_until(self._clock.monotonic() + _MOMENT)
            self._news.clear()
            now = self._clock.now()
            for table in self._tables.values():
                for key in table.deal(now, later(now, self._policy.provisioning_timeout)):
                    self._wake(key)

    def _freed(self, freed: bool) -> None:  # noqa: FBT001 - a value, not a flag
        if freed:
            self._news.set()
