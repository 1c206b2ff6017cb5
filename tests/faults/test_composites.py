"""What wakes a provider that is made of others, when something is wrong with what it is made of; and one odd object among good ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from fivespot.adapters.kube.control.providers import ProviderController
from fivespot.core.provider.kinds import PROVIDER_KINDS
from tests import builders
from tests.fakeapi import FakeApi, fake_api
from tests.fakeapi.faults import Answer
from tests.faults.setting import NAMESPACE, gateway_to, install
from tests.faults.virtual import VirtualClock, run_virtually

GROUP = "spotschedules.5spot.finos.org"
MANUALS, COMPOSITES = f"manualspotschedules.{GROUP}", f"compositespotschedules.{GROUP}"


@dataclass
class Fleet:
    """Providers on a fake server, and every controller of ours."""

    server: FakeApi

    def create(self, resource: str, body: dict[str, Any]) -> None:
        self.server.create(f"{GROUP}/v1alpha1", resource.partition(".")[0], body, NAMESPACE)

    def manual(self, name: str, **spec: Any) -> None:
        self.create(MANUALS, builders.manual(name, **spec))

    def composite(self, name: str, operator: str, *members: tuple[str, str]) -> None:
        references = [builders.reference(called, kind=kind) for kind, called in members]
        self.create(COMPOSITES, builders.composite(name, **{operator: references}))

    def edit(self, resource: str, name: str, **spec: Any) -> None:
        """As a person does: another generation."""
        store, key = self.server.world.store, (NAMESPACE, name)
        found = store.get(resource, key)
        assert found is not None
        meta = {**found["metadata"], "generation": found["metadata"]["generation"] + 1}
        store.put(resource, key, {**found, "metadata": meta, "spec": spec})

    def says(self, resource: str, name: str) -> tuple[bool | None, str]:
        """The answer, and the reason of Ready."""
        found = self.server.world.store.get(resource, (NAMESPACE, name)) or {}
        status = found.get("status") or {}
        ready = next((entry for entry in status.get("conditions", []) if entry["type"] == "Ready"), {})
        return status.get("active"), ready.get("reason", "")

    async def until(self, resource: str, name: str, *expected: object) -> None:
        """Wait a minute at most, which is no time."""
        for _ in range(60):
            if self.says(resource, name) == expected:
                return
            await asyncio.sleep(1)
        assert self.says(resource, name) == expected


@asynccontextmanager
async def working(server: FakeApi, clock: VirtualClock) -> AsyncIterator[None]:
    """Every controller, from a first look at what is there."""

    async def at_once() -> None:
        return

    async with gateway_to(server) as gateway:
        controllers = [
            ProviderController(gateway, clock, of, clock_trusted_from=clock.now() - timedelta(days=1))
            for of in PROVIDER_KINDS
        ]
        running = [asyncio.ensure_future(controller.run(at_once)) for controller in controllers]
        try:
            yield
        finally:
            assert not any(task.done() for task in running)
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)


def test_a_kind_that_cannot_be_listed_does_not_keep_a_composite_waiting_for_ever() -> None:
    """Its other member decides; nobody will tell when the list that fails has failed for long enough."""

    async def story(clock: VirtualClock) -> None:
        async with fake_api(now=clock.now) as server:
            install(server)
            fleet = Fleet(server)
            fleet.manual("yes", active=True)
            fleet.composite(
                "either", "anyOf", ("ManualSpotSchedule", "yes"), ("PrometheusSpotSchedule", "unheard")
            )
            server.faults.add(
                Answer(503, "ServiceUnavailable"),
                times=None,
                verb="list",
                resource=f"prometheusspotschedules.{GROUP}",
            )
            async with working(server, clock):
                await fleet.until(COMPOSITES, "either", True, "MembersActive")

    run_virtually(story)


def test_a_composite_far_above_is_told_that_the_chain_below_it_has_changed_its_length() -> None:
    async def story(clock: VirtualClock) -> None:
        async with fake_api(now=clock.now) as server:
            install(server)
            fleet = Fleet(server)
            fleet.manual("end", active=True)
            for number in range(1, 9):
                fleet.composite(f"c{number}", "allOf", ("CompositeSpotSchedule", f"c{number + 1}"))
            fleet.composite("c9", "allOf", ("ManualSpotSchedule", "end"))
            async with working(server, clock):
                await fleet.until(COMPOSITES, "c1", None, "ReferencesTooDeep")
                end = builders.reference("end", kind="ManualSpotSchedule")
                # What c8 and everybody above it say is the same as before.
                fleet.edit(COMPOSITES, "c8", allOf=[end])
                await fleet.until(COMPOSITES, "c1", True, "MembersActive")
                fleet.edit(COMPOSITES, "c8", allOf=[builders.reference("c9", kind="CompositeSpotSchedule")])
                await fleet.until(COMPOSITES, "c1", True, "ReferencesTooDeep")

    run_virtually(story)


def test_one_object_at_the_end_of_time_keeps_no_other_from_being_answered_for() -> None:
    async def story(clock: VirtualClock) -> None:
        async with fake_api(now=clock.now) as server:
            install(server)
            fleet = Fleet(server)
            fleet.manual("last", active=True, until="9999-12-31T23:59:59.5Z", then="Abstain")
            fleet.manual("plain", active=False)
            async with working(server, clock):
                await fleet.until(MANUALS, "plain", False, "SwitchedOff")
                await fleet.until(MANUALS, "last", True, "SwitchedOn")

    run_virtually(story)
