"""The order in which a process begins to lead and ends: with a real Lease behind a small server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fivespot.adapters.kube.electing import Timing
from fivespot.adapters.kube.errors import LeadershipLost
from fivespot.adapters.telemetry.health import Check
from fivespot.adapters.telemetry.metrics import Metrics
from fivespot.cli.leading import FINISH_SECONDS, Election, identity, lead
from fivespot.cli.main import cli
from fivespot.cli.serving import Process
from tests.adapters.kube.leases import NAME, NAMESPACE, LeaseServer
from tests.adapters.kube.scripted import connected, scripted

QUICK = Timing(lease_duration=2, renew_deadline=1, retry_period=0.1)


class Work:
    """A controller that tells how far it has come, and ends when the test lets it."""

    def __init__(self) -> None:
        self.standing, self.working, self.stopped = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.finished = asyncio.Event()
        self.cancelled = False

    async def run(self, won: Callable[[], Awaitable[object]]) -> None:
        try:
            self.standing.set()
            await won()
            self.working.set()
            await self.stopped.wait()
            await self.finished.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise

    def stop(self) -> None:
        self.stopped.set()

    def checks(self) -> list[Check]:
        return []


Scenario = Callable[[LeaseServer, Work, asyncio.Event, "asyncio.Task[None]"], Coroutine[Any, Any, None]]


def led(
    scenario: Scenario, *, held_by: str = "", enabled: bool = True, patience: float = FINISH_SECONDS
) -> None:
    """Run a scenario beside `lead`."""

    async def whole() -> None:
        leases, work, stop = LeaseServer(), Work(), asyncio.Event()
        if held_by:
            leases.held_by(held_by)
        election = Election(enabled=enabled, name=None, namespace=NAMESPACE, timing=QUICK)
        async with scripted(leases.handler) as server, connected(server) as gateway:
            process = Process(gateway, stop, Metrics())
            leading = lead(process, [work], election=election, default_name=NAME, patience=patience)
            leader = asyncio.create_task(leading)
            await scenario(leases, work, stop, leader)

    asyncio.run(asyncio.wait_for(whole(), 20))


def test_it_works_when_it_has_won_and_gives_back_when_the_work_is_done() -> None:
    async def scenario(leases: LeaseServer, work: Work, stop: asyncio.Event, leader: Any) -> None:
        await work.working.wait()
        assert leases.holder
        stop.set()
        await work.stopped.wait()
        renewals = len(leases.writes)
        while len(leases.writes) < renewals + 3:  # noqa: ASYNC110 - it goes on renewing
            await asyncio.sleep(0.05)
        assert leases.holder, "not while anything is in hand"
        work.finished.set()
        await leader
        assert not work.cancelled
        assert leases.holder is None

    led(scenario)


def test_work_that_does_not_end_in_time_is_abandoned_and_the_lease_left_to_expire(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(leases: LeaseServer, work: Work, stop: asyncio.Event, leader: Any) -> None:
        await work.working.wait()
        stop.set()
        await leader
        assert work.cancelled
        assert leases.holder

    led(scenario, patience=0.2)
    assert "the Lease left to expire" in caplog.text


def test_a_standby_that_is_asked_to_end_leaves_the_lease_alone() -> None:
    async def scenario(leases: LeaseServer, work: Work, stop: asyncio.Event, leader: Any) -> None:
        await work.standing.wait()
        stop.set()
        await leader
        assert not work.working.is_set()
        assert leases.holder == "somebody"
        assert leases.writes == []

    led(scenario, held_by="somebody")


def test_losing_the_lead_cancels_the_work() -> None:
    async def scenario(leases: LeaseServer, work: Work, stop: asyncio.Event, leader: Any) -> None:
        await work.working.wait()
        leases.held_by("somebody")
        with pytest.raises(LeadershipLost):
            await leader
        assert work.cancelled
        assert leases.holder == "somebody"

    led(scenario)


def test_losing_the_lead_while_ending_is_no_orderly_end() -> None:
    async def scenario(leases: LeaseServer, work: Work, stop: asyncio.Event, leader: Any) -> None:
        await work.working.wait()
        stop.set()
        await work.stopped.wait()
        leases.held_by("somebody")
        with pytest.raises(LeadershipLost):
            await leader
        assert work.cancelled

    led(scenario)


def test_without_an_election_it_works_at_once_and_ends_in_order() -> None:
    async def scenario(leases: LeaseServer, work: Work, stop: asyncio.Event, leader: Any) -> None:
        await work.working.wait()
        stop.set()
        await work.stopped.wait()
        work.finished.set()
        await leader
        assert not work.cancelled
        assert leases.lease is None

    led(scenario, enabled=False)


@pytest.mark.parametrize(
    ("environment", "starts"),
    [
        ({"OPERATOR_INSTANCE_ID": "blue", "POD_NAME": "pod-1"}, "blue_"),
        ({"POD_NAME": "pod-1"}, "pod-1_"),
        ({}, "host_"),
    ],
)
def test_an_identity_is_readable_and_never_twice_the_same(
    environment: dict[str, str], starts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPERATOR_INSTANCE_ID", "POD_NAME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("socket.gethostname", lambda: "host")
    made = {identity() for _ in range(100)}
    assert len(made) == 100
    assert all(one.startswith(starts) for one in made)


@pytest.mark.parametrize("count", ["2", "0", "many"])
def test_a_fleet_is_not_shared_out_among_instances(count: str) -> None:
    """Whoever migrates from sharded instances must not get several that all do everything, one by one, unseen."""
    done = CliRunner().invoke(cli, ["controller", "run"], env={"OPERATOR_INSTANCE_COUNT": count})
    assert done.exit_code == 2
    assert f"Invalid value for 'OPERATOR_INSTANCE_COUNT': {count} is refused" in done.output
    assert "replicas with leader election" in " ".join(done.output.split())


@pytest.mark.parametrize("count", ["", " ", "1"])
def test_one_instance_is_what_there_is_anyway(count: str, tmp_path: Path) -> None:
    environment = {"OPERATOR_INSTANCE_COUNT": count, "HOME": str(tmp_path), "KUBECONFIG": ""}
    done = CliRunner().invoke(cli, ["controller", "run"], env=environment)
    assert "no cluster to talk to" in done.output
