"""Slots over time: who is woken, when a slot is free again, and what a restart finds."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs

from fivespot.adapters.clock import FakeClock
from fivespot.adapters.kube.control.slots import Slots
from fivespot.core.api.scheduled_machine import Provisioning, ScheduledMachineStatus
from fivespot.core.decision.caps import Caps, Stage
from fivespot.core.decision.observation import MachineView, Slot
from fivespot.core.decision.policy import DEFAULT_POLICY
from fivespot.core.decision.reading import read_machine
from tests import builders

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
UP = Stage.PROVISIONING


def machine(name: str, priority: int = 50, **status: Any) -> MachineView:
    body = builders.scheduled_machine(name, priority=priority)
    body["metadata"] |= {"namespace": "ns", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return attrs.evolve(read_machine(body), status=ScheduledMachineStatus(**status))


def coming(view: MachineView, since: datetime = NOON) -> MachineView:
    status = ScheduledMachineStatus(phase="Pending", provisioning=Provisioning(started_at=since))
    return attrs.evolve(view, status=status)


@attrs.define
class Table:
    """The slots under test, and who was woken."""

    slots: Slots
    clock: FakeClock
    woken: "asyncio.Queue[str]"

    async def dealt(self) -> None:
        """Let the moment pass for which others are waited for."""
        for _ in range(20):
            await asyncio.sleep(0)
            self.clock.advance(0.05)


def run(caps: dict[Stage, Caps], scenario: Callable[[Table], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with table(caps) as made:
            await asyncio.wait_for(scenario(made), 20)

    asyncio.run(whole())


@asynccontextmanager
async def table(caps: dict[Stage, Caps]) -> AsyncIterator[Table]:
    clock, woken = FakeClock(NOON), asyncio.Queue[str]()
    slots = Slots(caps, DEFAULT_POLICY, clock, woken.put_nowait)
    dealing = asyncio.create_task(slots.run())
    try:
        yield Table(slots, clock, woken)
    finally:
        dealing.cancel()
        await asyncio.wait([dealing])


def test_without_a_cap_nobody_is_kept_waiting_for_an_answer() -> None:
    async def scenario(it: Table) -> None:
        assert it.slots.ask(UP, machine("a")) is Slot.GRANTED

    run({Stage.DRAINING: Caps(overall=1)}, scenario)


def test_the_most_urgent_of_those_who_ask_together_is_first() -> None:
    async def scenario(it: Table) -> None:
        asking = [machine("idle", 10), machine("urgent", 90), machine("usual")]
        assert [it.slots.ask(UP, view) for view in asking] == [None, None, None]
        await it.dealt()
        assert [it.slots.ask(UP, view) for view in asking] == [Slot.WAITING, Slot.GRANTED, Slot.WAITING]
        assert it.woken.qsize() == 3, "who got it, and who has to wait, is told once"

    run({UP: Caps(overall=1)}, scenario)


def test_a_slot_that_is_free_again_wakes_the_next() -> None:
    async def scenario(it: Table) -> None:
        first, second = machine("a", 90), machine("b")
        it.slots.ask(UP, first)
        it.slots.ask(UP, second)
        await it.dealt()
        while not it.woken.empty():
            it.woken.get_nowait()
        it.slots.seen(coming(first))
        await it.dealt()
        assert it.woken.empty(), "it is on its way, and has not arrived"
        it.slots.settled("ns/a", ScheduledMachineStatus(phase="Active"))
        await it.dealt()
        assert it.woken.get_nowait() == "ns/b"
        assert it.slots.ask(UP, second) is Slot.GRANTED

    run({UP: Caps(overall=1)}, scenario)


def test_a_host_that_never_comes_up_holds_its_slot_for_the_provisioning_bound() -> None:
    async def scenario(it: Table) -> None:
        it.slots.seen(coming(machine("dead")))
        it.slots.ask(UP, machine("b"))
        await it.dealt()
        assert it.woken.get_nowait() == "ns/b"
        assert it.slots.ask(UP, machine("b")) is Slot.WAITING
        it.clock.advance(timedelta(minutes=15).total_seconds())
        await it.dealt()
        assert it.woken.get_nowait() == "ns/b"
        assert it.slots.ask(UP, machine("b")) is Slot.GRANTED

    run({UP: Caps(overall=1)}, scenario)


def test_a_machine_that_is_deleted_leaves_its_slot_and_its_place() -> None:
    async def scenario(it: Table) -> None:
        for name in ("a", "b", "c"):
            it.slots.ask(UP, machine(name))
        await it.dealt()
        it.slots.settled("ns/b", None)
        it.slots.settled("ns/a", None)
        await it.dealt()
        assert it.slots.ask(UP, machine("c")) is Slot.GRANTED

    run({UP: Caps(overall=1)}, scenario)


def test_clusters_have_slots_of_their_own() -> None:
    async def scenario(it: Table) -> None:
        here, there = machine("a"), machine("b")
        there = attrs.evolve(there, intent=attrs.evolve(there.intent, cluster_name="other"))
        it.slots.seen(coming(here))
        it.slots.ask(UP, machine("c"))
        it.slots.ask(UP, there)
        await it.dealt()
        assert it.slots.ask(UP, machine("c")) is Slot.WAITING
        assert it.slots.ask(UP, there) is Slot.GRANTED

    run({UP: Caps(per_cluster=1)}, scenario)
