"""One schedule, open from 12:00 to 14:00, and the controller that says so, on a clock that is moved by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from fivespot.adapters.kube.control.providers import ProviderController
from fivespot.adapters.kube.resources import Object
from fivespot.cli.leading import at_once
from fivespot.core.provider.kinds import BY_KIND
from tests import builders
from tests.fakeapi import FakeApi, fake_api
from tests.faults.setting import NAMESPACE, HandClock, gateway_to, install, until_open
from tests.faults.site import SCHEDULES

MORNING = datetime(2026, 3, 2, 11, 30, tzinfo=UTC)
SECOND = 1.0
MINUTE = 60.0
HOUR = 60 * MINUTE
DAY = 24 * HOUR
NAME = "noon"


@dataclass
class Publishing:
    """The schedule, its server and its controller's clock."""

    server: FakeApi
    clock: HandClock

    def schedule(self) -> Object:
        found = self.server.world.store.get(SCHEDULES, (NAMESPACE, NAME))
        assert found is not None
        return found

    def status(self) -> Object:
        return self.schedule().get("status") or {}

    def answer(self) -> bool | None:
        return self.status().get("active")

    def ready(self) -> tuple[str, str]:
        """The status and the reason of the condition `Ready`."""
        (found,) = self.status()["conditions"]
        return found["status"], found["reason"]

    def copy(self, name: str) -> None:
        """Another schedule with the same hours."""
        body = builders.provider("TimeBasedSpotSchedule", name, **self.schedule()["spec"])
        self.server.create(body["apiVersion"], "timebasedspotschedules", body, NAMESPACE)

    def edit(self, *hours: str) -> None:
        """Other hours, as a person writes them: another generation."""
        found = self.schedule()
        meta = {**found["metadata"], "generation": found["metadata"]["generation"] + 1}
        spec = {**found["spec"], "hoursOfDay": list(hours)}
        self.server.world.store.put(SCHEDULES, (NAMESPACE, NAME), {**found, "metadata": meta, "spec": spec})

    def told(self) -> list[str]:
        """The reasons of the Events, each as often as it is counted."""
        return [
            event["reason"]
            for _, event in self.server.world.store.items("events.events.k8s.io")
            for _ in range((event.get("series") or {}).get("count", 1))
        ]

    def written(self) -> list[Any]:
        """What each write of the status that was done has said."""
        return [entry for entry in self.server.writes if entry.asked.subresource == "status" and entry.done]

    async def until(self, check: Callable[[], bool]) -> None:
        """Wait until it is so; the clock stands still."""
        async with asyncio.timeout(5):
            while not check():  # noqa: ASYNC110 - told by nothing else
                await asyncio.sleep(0.001)

    async def says(self, answer: bool | None) -> None:
        """Wait until it does; the clock stands still."""
        await self.until(lambda: self.answer() is answer)

    async def until_it_expects(self, transition: str) -> None:
        """Wait until it says that the answer changes then; the clock stands still."""
        await self.until(lambda: self.status().get("nextTransitionTime") == transition)

    async def goes_on_saying(self, answer: bool) -> None:
        """Whatever was about to happen has happened, and it says the same."""
        writes = len(self.server.writes)
        for _ in range(50):
            await asyncio.sleep(0)
        assert self.answer() is answer
        # The Event about the last change comes when it comes.
        assert [entry for entry in self.server.writes[writes:] if entry.asked.resource != "events"] == []


@asynccontextmanager
async def publishing() -> AsyncIterator[Publishing]:
    """The controller at work, half an hour before the schedule opens."""
    clock = HandClock(MORNING)
    async with fake_api(now=clock.now) as server, gateway_to(server) as gateway:
        install(server)
        body = builders.provider("TimeBasedSpotSchedule", NAME, hoursOfDay=["12-13"], daysOfWeek=["mon-sun"])
        group = "spotschedules.5spot.finos.org/v1alpha1"
        server.create(group, "timebasedspotschedules", body, NAMESPACE)
        controller = ProviderController(
            gateway, clock, BY_KIND["TimeBasedSpotSchedule"], clock_trusted_from=MORNING - timedelta(days=1)
        )
        working = asyncio.ensure_future(controller.run(at_once))
        here = Publishing(server, clock)
        try:
            await here.says(answer=False)
            await until_open(server, "timebasedspotschedules")
            yield here
        finally:
            assert not working.done()
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
