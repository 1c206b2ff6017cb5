"""A process that is asked to end while it has more to tell than it has time for."""

import asyncio
from datetime import timedelta

from fivespot.adapters.kube.control.providers import ProviderController
from fivespot.adapters.kube.electing import Timing
from fivespot.adapters.telemetry.metrics import Metrics
from fivespot.cli.leading import Election, lead
from fivespot.cli.serving import Process
from fivespot.core.names import SYSTEM_NAMESPACE
from fivespot.core.provider.kinds import BY_KIND
from tests import builders
from tests.fakeapi import FakeApi, fake_api
from tests.fakeapi.faults import Hold
from tests.faults.publishing import MINUTE, MORNING, SCHEDULES, Publishing
from tests.faults.setting import NAMESPACE, HandClock, gateway_to, install, run

MANY = 50
LEASE = "5spot-provider-time-based"


def _answers(server: FakeApi) -> list[bool | None]:
    return [(body.get("status") or {}).get("active") for _, body in server.world.store.items(SCHEDULES)]


def test_events_that_wait_do_not_keep_the_lease_from_the_next_leader() -> None:
    """A whole fleet's boundary, and an API server that takes its time with what is told of it."""

    async def scenario() -> None:
        clock = HandClock(MORNING)
        async with fake_api(now=clock.now) as server, gateway_to(server) as gateway:
            install(server)
            here = Publishing(server, clock)
            server.create("v1", "namespaces", {"metadata": {"name": SYSTEM_NAMESPACE}})
            for number in range(MANY):
                body = builders.provider(
                    "TimeBasedSpotSchedule", f"noon-{number}", hoursOfDay=["12-13"], daysOfWeek=["mon-sun"]
                )
                server.create(body["apiVersion"], "timebasedspotschedules", body, NAMESPACE)
            controller = ProviderController(
                gateway,
                clock,
                BY_KIND["TimeBasedSpotSchedule"],
                clock_trusted_from=MORNING - timedelta(days=1),
            )
            stop, held = asyncio.Event(), asyncio.Event()
            election = Election(enabled=True, name=LEASE, namespace=SYSTEM_NAMESPACE, timing=Timing())
            leading = asyncio.ensure_future(
                lead(Process(gateway, stop, Metrics()), [controller], election=election, default_name=LEASE)
            )
            await here.until(lambda: _answers(server) == [False] * MANY)
            server.faults.add(Hold(held), resource="events", times=None)
            clock.advance(30 * MINUTE)
            await here.until(lambda: _answers(server) == [True] * MANY)
            stop.set()
            await leading
            (lease,) = (body for _, body in server.world.store.items("leases.coordination.k8s.io"))
            assert not lease["spec"].get("holderIdentity"), "it is free"

    run(scenario())
