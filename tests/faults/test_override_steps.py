"""Overrides when answers get lost, streams break, and others are faster: whatever ends it, the same command completes it."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from fivespot.adapters.kube.errors import ApiError
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.overriding import look, perform
from fivespot.core.api.kinds import COMPOSITE, KINDS, MANUAL, crd
from fivespot.core.names import MACHINE_API_VERSION
from fivespot.core.override.plan import Clear, Override, OverrideRefused, Wish, plan
from fivespot.core.override.situation import Situation
from fivespot.core.override.steps import Await, Create, Delete, Step
from tests import builders
from tests.fakeapi import FakeApi, fake_api
from tests.fakeapi.faults import Answer, Cut, CutStream, Effect, EndStream, ErrorEvent, Hold

NAMESPACE, NAME, OVERRIDE = "default", "desk-7", "desk-7-override"
MANUALS, COMPOSITES, MACHINES = "manualspotschedules", "compositespotschedules", "scheduledmachines"
ON = Override(active=True)
GONE = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}


@dataclass
class Site:
    """A machine on a fake server, and whoever overrides it."""

    server: FakeApi
    gateway: Gateway

    async def seen(self) -> Situation:
        return await look(self.gateway, NAMESPACE, NAME)

    async def fulfil(self, wish: Wish) -> None:
        """As the command does, with a provider that answers at once."""
        for step in plan(await self.seen(), wish).steps:
            if isinstance(step, Await):
                self.answer(active=step.active)
            await perform(self.gateway, step)

    def answer(self, *, active: bool) -> None:
        """The provider controller says something for the composite as it is."""
        store, label = self.server.world.store, f"{COMPOSITES}.{COMPOSITE.group}"
        found = store.get(label, (NAMESPACE, OVERRIDE))
        assert found is not None
        status = {"active": active, "observedGeneration": found["metadata"]["generation"]}
        store.put(label, (NAMESPACE, OVERRIDE), {**found, "status": status})

    def object(self, plural: str, name: str) -> dict[str, Any] | None:
        group = "5spot.finos.org" if plural == MACHINES else COMPOSITE.group
        return self.server.world.store.get(f"{plural}.{group}", (NAMESPACE, name))

    def end(self) -> tuple[str, bool, bool]:
        """What the machine refers to, and which of the two schedules are there."""
        machine = self.object(MACHINES, NAME)
        assert machine is not None
        there = [self.object(plural, OVERRIDE) is not None for plural in (MANUALS, COMPOSITES)]
        return machine["spec"]["schedule"]["name"], there[0], there[1]


@asynccontextmanager
async def site() -> AsyncIterator[Site]:
    async with fake_api() as server, server.gateway() as gateway:
        server.install(crd(kind) for kind in KINDS)
        server.create(MACHINE_API_VERSION, MACHINES, builders.scheduled_machine(NAME), NAMESPACE)
        yield Site(server, gateway)


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 60))


def step_of(steps: tuple[Step, ...], kind: type[Any], of: object = None) -> Any:
    return next(step for step in steps if isinstance(step, kind) and of in (None, step.target.kind))


SET = [("create", MANUALS), ("create", COMPOSITES), ("patch", MACHINES)]
CLEARED = [("patch", MACHINES), ("delete", COMPOSITES), ("delete", MANUALS)]


@pytest.mark.parametrize("effect", [Answer(503), Answer(500, after=True), Cut(), Cut(after=True)], ids=str)
@pytest.mark.parametrize(
    ("wish", "verb", "resource", "expected"),
    [
        *((ON, *write, (OVERRIDE, True, True)) for write in SET),
        *((Clear(), *write, ("nights", False, False)) for write in CLEARED),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_write_that_fails_or_whose_answer_is_lost_is_made_good_by_the_same_wish(
    wish: Wish, verb: str, resource: str, expected: tuple[str, bool, bool], effect: Any
) -> None:
    async def scenario() -> None:
        async with site() as here:
            if isinstance(wish, Clear):
                await here.fulfil(ON)
            here.server.faults.add(effect, verb=verb, resource=resource, times=1)
            with pytest.raises(ApiError):
                await here.fulfil(wish)
            await here.fulfil(wish)
            assert here.end() == expected

    run(scenario())


@pytest.mark.parametrize("effect", [None, CutStream(), EndStream(), ErrorEvent(GONE)], ids=str)
def test_an_answer_that_comes_late_is_seen_also_when_the_stream_breaks(effect: Effect | None) -> None:
    async def scenario() -> None:
        async with site() as here:
            steps = plan(await here.seen(), ON).steps
            for step in steps[:2]:
                await perform(here.gateway, step)
            opened = asyncio.Event()
            if effect is not None:
                here.server.faults.add(effect, verb="watch", resource=COMPOSITES, times=1)
            rule = here.server.faults.add(Hold(opened), verb="watch", resource=COMPOSITES)
            waiting = asyncio.create_task(perform(here.gateway, step_of(steps, Await)))
            await rule.hit()
            here.answer(active=False)
            here.answer(active=True)
            opened.set()
            await waiting

    run(scenario())


def test_where_nobody_answers_the_objects_are_named_and_what_to_look_for() -> None:
    async def scenario() -> None:
        async with site() as here:
            steps = plan(await here.seen(), ON).steps
            for step in steps[:2]:
                await perform(here.gateway, step)
            here.answer(active=False)
            said = (
                f"no active from CompositeSpotSchedule {NAMESPACE}/{OVERRIDE} within 0.2 s: CompositeSpotSchedule/{OVERRIDE} "
                "says inactive; does `5spot provider run` answer for ManualSpotSchedule and CompositeSpotSchedule?"
            )
            with pytest.raises(OverrideRefused) as refused:
                await perform(here.gateway, step_of(steps, Await), patience=0.2)
            assert str(refused.value) == said

    run(scenario())


def test_a_composite_that_is_deleted_while_it_is_waited_for_is_said() -> None:
    async def scenario() -> None:
        async with site() as here:
            steps = plan(await here.seen(), ON).steps
            for step in steps[:2]:
                await perform(here.gateway, step)
            opened = asyncio.Event()
            rule = here.server.faults.add(Hold(opened), verb="watch", resource=COMPOSITES)
            waiting = asyncio.create_task(perform(here.gateway, step_of(steps, Await)))
            await rule.hit()
            for step in plan(await here.seen(), Clear()).steps:
                await perform(here.gateway, step)
            opened.set()
            with pytest.raises(OverrideRefused, match="has been deleted by somebody else just now"):
                await waiting

    run(scenario())


def test_two_people_at_once_do_not_overwrite_each_other() -> None:
    """The second has looked before the first was done."""

    async def scenario() -> None:
        async with site() as here:
            late = plan(await here.seen(), Override(active=False)).steps
            await here.fulfil(ON)
            with pytest.raises(
                OverrideRefused, match=rf"^ManualSpotSchedule {NAMESPACE}/{OVERRIDE} has been changed"
            ):
                await perform(here.gateway, step_of(late, Create, MANUAL))
            late = plan(await here.seen(), Override(active=False)).steps
            await here.fulfil(Override(active=True, until=None))
            manual = here.object(MANUALS, OVERRIDE)
            assert manual is not None
            here.server.world.store.put(
                f"{MANUALS}.{MANUAL.group}",
                (NAMESPACE, OVERRIDE),
                {**manual, "spec": {"active": True, "until": "x"}},
            )
            with pytest.raises(OverrideRefused, match="has been changed by somebody else just now"):
                await perform(here.gateway, late[0])

    run(scenario())


def test_what_is_gone_already_need_not_be_deleted_and_another_of_that_name_is_not() -> None:
    async def scenario() -> None:
        async with site() as here:
            await here.fulfil(ON)
            stale = step_of(plan(await here.seen(), Clear()).steps, Delete, MANUAL)
            await here.fulfil(Clear())
            await perform(here.gateway, stale)
            await here.fulfil(ON)
            with pytest.raises(OverrideRefused, match="has been changed by somebody else just now"):
                await perform(here.gateway, stale)
            assert here.end() == (OVERRIDE, True, True)

    run(scenario())


@pytest.mark.parametrize("missing", [MACHINES, MANUALS, COMPOSITES])
def test_a_kind_that_is_not_served_is_no_object_that_is_missing(missing: str) -> None:
    async def scenario() -> None:
        async with fake_api() as server, server.gateway() as gateway:
            server.install(crd(kind) for kind in KINDS if kind.plural != missing)
            if missing != MACHINES:
                server.create(MACHINE_API_VERSION, MACHINES, builders.scheduled_machine(NAME), NAMESPACE)
            with pytest.raises(
                ApiError, match=f"the cluster does not serve {missing}.*: is its CustomResource"
            ):
                await look(gateway, NAMESPACE, NAME)

    run(scenario())
