"""Elections over real sockets, with a server that misbehaves, and a clock that the test moves."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import attrs
import pytest

from fivespot.adapters.clock import FakeClock
from fivespot.adapters.kube.electing import Timing
from fivespot.adapters.kube.elector import Elector, NoPlaceForLease
from fivespot.adapters.kube.errors import LeadershipLost, Unavailable
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.resources import CONFIG_MAPS, LEASES
from tests.adapters.kube.leases import NAME, NAMESPACE, LeaseServer
from tests.adapters.kube.scripted import Reply, Request, Scripted, connected, scripted

MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 30))


async def until(check: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not check():  # noqa: ASYNC110 - the server has no events to wait for
            await asyncio.sleep(0.005)


@attrs.define
class Scene:
    """A server with a Lease, a clock, and a way to it."""

    leases: LeaseServer
    server: Scripted
    gateway: Gateway
    clock: FakeClock
    started: list[asyncio.Task[None]] = attrs.field(factory=list)

    def elector(self, identity: str = "a", timing: Timing | None = None) -> Elector:
        return Elector(
            self.gateway.urgent,
            self.clock,
            identity=identity,
            namespace=NAMESPACE,
            name=NAME,
            timing=timing or Timing(),
        )

    def running(self, elector: Elector) -> asyncio.Task[None]:
        self.started.append(asyncio.create_task(elector.run()))
        return self.started[-1]

    async def pass_time(self, seconds: float) -> None:
        """In steps, once everybody is asleep or waits for the server."""
        for _ in range(round(seconds * 2)):
            await until(lambda: self.clock.sleepers or all(task.done() for task in self.started))
            self.clock.advance(0.5)
            await asyncio.sleep(0.01)


@asynccontextmanager
async def scene() -> AsyncIterator[Scene]:
    leases = LeaseServer()
    async with scripted(leases.handler) as server, connected(server) as gateway:
        made = Scene(leases, server, gateway, FakeClock(datetime(2026, 3, 2, tzinfo=UTC), monotonic=1000.0))
        try:
            yield made
        finally:
            for task in made.started:
                task.cancel()
            await asyncio.gather(*made.started, return_exceptions=True)


def test_it_takes_the_lease_and_renews_it() -> None:
    async def scenario() -> None:
        async with scene() as it:
            elector = it.elector()
            it.running(elector)
            await elector.won()
            assert elector.leads()
            assert elector.left() == 10.0
            spec = it.leases.writes[0]["spec"]
            assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == (
                "a",
                15,
                0,
            )
            assert MICRO_TIME.fullmatch(spec["acquireTime"])
            assert MICRO_TIME.fullmatch(spec["renewTime"])
            await it.pass_time(20)
            assert elector.leads()
            renewals = [request for request in it.server.requests if request.method == "PUT"]
            assert len(renewals) == 10
            assert it.leases.writes[-1]["spec"]["acquireTime"] == spec["acquireTime"]
            assert it.leases.writes[-1]["spec"]["renewTime"] > spec["renewTime"]

    run(scenario())


def test_it_does_not_stand_before_somebody_wants_it_to() -> None:
    async def scenario() -> None:
        async with scene() as it:
            elector = it.elector()
            it.running(elector)
            await asyncio.sleep(0.05)
            assert it.server.requests == []
            assert not elector.leads()
            with pytest.raises(LeadershipLost, match="never won"):
                elector.left()

    run(scenario())


def test_a_standby_takes_a_released_lease_at_once() -> None:
    async def scenario() -> None:
        async with scene() as it:
            first, second = it.elector("a"), it.elector("b")
            running = it.running(first)
            await first.won()
            it.running(second)
            waiting = asyncio.create_task(second.won())
            await until(lambda: any(request.query.get("watch") for request in it.server.requests[-1:]))
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await first.release()
            assert not first.leads()
            await asyncio.wait_for(waiting, 1)
            assert it.leases.holder == "b"
            assert it.leases.writes[-1]["spec"]["leaseTransitions"] == 1
            assert it.clock.monotonic() == 1000.0, "no time has passed"

    run(scenario())


def test_a_standby_takes_over_after_the_lease_and_not_before() -> None:
    async def scenario() -> None:
        async with scene() as it:
            it.leases.held_by("dead")
            elector = it.elector()
            it.running(elector)
            waiting = asyncio.create_task(elector.won())
            await it.pass_time(14.5)
            assert not elector.leads()
            assert it.leases.writes == []
            await it.pass_time(0.5)
            await asyncio.wait_for(waiting, 1)
            assert it.leases.holder == "a"

    run(scenario())


def test_somebody_else_in_the_lease_ends_it_at_once_and_names_them() -> None:
    async def scenario() -> None:
        async with scene() as it:
            elector = it.elector()
            running = it.running(elector)
            await elector.won()
            await until(lambda: any(request.query.get("watch") for request in it.server.requests))
            it.leases.held_by("intruder")
            with pytest.raises(LeadershipLost, match=f"Lease {NAMESPACE}/{NAME}.*: intruder leads now"):
                await asyncio.wait_for(running, 1)
            with pytest.raises(LeadershipLost):
                elector.left()

    run(scenario())


def test_renewals_that_fail_end_it_at_the_deadline_with_the_reason() -> None:
    async def scenario() -> None:
        async with scene() as it:
            elector = it.elector()
            running = it.running(elector)
            await elector.won()

            async def broken(request: Request, reply: Reply) -> bool:
                if request.method != "PUT":
                    return False
                await reply.status(500, "InternalError")
                return True

            it.leases.before = broken
            begun = it.clock.monotonic()
            while not running.done() and it.clock.monotonic() < begun + 30:
                await it.pass_time(0.5)
            assert it.clock.monotonic() <= begun + 10.5
            with pytest.raises(LeadershipLost, match=r"could not be renewed within 10 s: .*InternalError"):
                await running

    run(scenario())


def test_a_renewal_whose_answer_is_lost_gives_nothing_and_is_read_again() -> None:
    async def scenario() -> None:
        async with scene() as it:
            elector = it.elector()
            it.running(elector)
            await elector.won()
            cuts = 0

            async def cut(request: Request, reply: Reply) -> bool:
                nonlocal cuts
                if request.method != "PUT" or cuts:
                    return False
                cuts += 1
                it.leases.held_by("a")
                reply.cut()
                return True

            it.leases.before = cut
            await it.pass_time(2)
            await until(lambda: cuts)
            assert elector.left() == 8.0
            await it.pass_time(2)
            await until(lambda: elector.left() == 10.0)

    run(scenario())


def test_a_server_that_is_silent_gets_a_second_chance_within_the_deadline() -> None:
    async def scenario() -> None:
        async with scene() as it:
            elector = it.elector(timing=Timing(lease_duration=3, renew_deadline=1, retry_period=0.2))
            it.running(elector)
            await elector.won()
            silent = asyncio.Event()

            async def dead(request: Request, reply: Reply) -> bool:
                if request.method != "PUT" or silent.is_set():
                    return False
                silent.set()
                await asyncio.sleep(30)
                return True

            it.leases.before = dead
            await it.pass_time(0.5)
            await silent.wait()
            # Half the deadline, in real time, is what one request may take.
            await until(lambda: it.clock.sleepers)
            it.clock.advance(0.2)
            await until(lambda: len(it.leases.writes) > 1)
            assert elector.leads()

    run(scenario())


def test_a_namespace_that_does_not_exist_ends_it_with_the_remedy() -> None:
    async def scenario() -> None:
        async with scene() as it:

            async def missing(request: Request, reply: Reply) -> bool:
                await reply.status(404, "NotFound")
                return True

            it.leases.before = missing
            elector = it.elector()
            running = it.running(elector)
            waiting = asyncio.create_task(elector.won())
            with pytest.raises(NoPlaceForLease, match="create the namespace, or name another"):
                await asyncio.wait_for(running, 5)
            waiting.cancel()

    run(scenario())


def test_a_missing_permission_is_said_once_and_can_be_granted(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with scene() as it:

            async def forbidden(request: Request, reply: Reply) -> bool:
                if request.method == "GET" and request.path.endswith(NAME):
                    await reply.status(403, "Forbidden")
                    return True
                return False

            it.leases.before = forbidden
            elector = it.elector()
            it.running(elector)
            waiting = asyncio.create_task(elector.won())
            await it.pass_time(8)
            assert not elector.leads()
            warned = [
                r for r in caplog.records if r.levelname == "WARNING" and "get leases" in r.getMessage()
            ]
            assert len(warned) == 1
            it.leases.before = None
            await it.pass_time(2.5)
            await asyncio.wait_for(waiting, 1)

    run(scenario())


def test_it_is_released_even_if_a_renewal_that_nobody_waited_for_was_done() -> None:
    async def scenario() -> None:
        async with scene() as it:
            elector = it.elector()
            running = it.running(elector)
            await elector.won()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            it.leases.held_by("a")
            await elector.release()
            assert it.leases.lease is not None
            assert "holderIdentity" not in it.leases.lease["spec"]

    run(scenario())


def test_what_belongs_to_somebody_else_is_not_released() -> None:
    async def scenario() -> None:
        async with scene() as it:
            elector = it.elector()
            running = it.running(elector)
            await elector.won()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            it.leases.held_by("b")
            await elector.release()
            assert it.leases.holder == "b"

    run(scenario())


def test_the_fence_refuses_writes_and_lets_reads_and_the_lease_through() -> None:
    async def scenario() -> None:
        async with scene() as it:
            elector = it.elector()
            it.gateway.fence = elector.left
            with pytest.raises(LeadershipLost):
                await it.gateway.create(CONFIG_MAPS, "ns", {"metadata": {"name": "x"}})
            with pytest.raises(LeadershipLost):
                await it.gateway.delete(CONFIG_MAPS, "ns", "x")
            assert it.server.requests == [], "nothing was sent"
            await it.gateway.list(LEASES, NAMESPACE)
            it.running(elector)
            await elector.won()

    run(scenario())


def test_a_write_that_waits_is_asked_when_its_turn_comes() -> None:
    """It had leave to write when it began to wait; that is not what counts."""

    async def scenario() -> None:
        held, go_on = asyncio.Event(), asyncio.Event()

        async def handler(_: Request, reply: Reply) -> None:
            held.set()
            await go_on.wait()
            await reply.json({"metadata": {"name": "x"}})

        leading = True

        def fence() -> float:
            if not leading:
                raise LeadershipLost
            return 10.0

        async with scripted(handler) as server, connected(server, in_flight=1) as gateway:
            gateway.fence = fence
            first = asyncio.create_task(gateway.create(CONFIG_MAPS, "ns", {"metadata": {"name": "x"}}))
            await held.wait()
            second = asyncio.create_task(gateway.create(CONFIG_MAPS, "ns", {"metadata": {"name": "y"}}))
            await asyncio.sleep(0)
            leading = False
            go_on.set()
            await first
            with pytest.raises(LeadershipLost):
                await second
            assert len(server.requests) == 1

    run(scenario())


def test_a_write_is_given_up_when_leadership_would_end() -> None:
    async def scenario() -> None:
        async def handler(_: Request, reply: Reply) -> None:
            await asyncio.sleep(20)

        async with scripted(handler) as server, connected(server) as gateway:
            gateway.fence = lambda: 0.2
            with pytest.raises(Unavailable) as given_up:
                await asyncio.wait_for(gateway.delete(CONFIG_MAPS, "ns", "x"), 5)
            assert given_up.value.outcome_unknown

    run(scenario())


def test_an_update_without_a_version_is_a_mistake_of_the_caller() -> None:
    async def scenario() -> None:
        async with scene() as it:
            with pytest.raises(ValueError, match="needs the resourceVersion"):
                await it.gateway.update(CONFIG_MAPS, "ns", {"metadata": {"name": "x"}})
            assert it.server.requests == []

    run(scenario())
