"""Two controllers and one Lease on a real API server: who acts, when, and never two at once."""

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import attrs
import pytest

from fivespot.adapters.kube.errors import LeadershipLost
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.resources import NODES
from fivespot.core.instant import parse_instant
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.waiting import wait_until
from tests.live import product
from tests.live.product import ADMINS, IN_CHILD, Process, World, machine
from tests.live.proxy import Wire, wire

LEASE_SECONDS, RENEW_SECONDS = 3.0, 2.0
TIMING = ("--lease-duration", "3", "--renew-deadline", "2", "--retry-period", "0.3")
LEASE = "election"
NAMES = ("left", "right")


@attrs.frozen
class Candidate:
    """A controller of its own user, in the management cluster and in the child."""

    user: str
    process: Process

    @property
    def log(self) -> str:
        return self.process.log.read_text()

    @property
    def pid(self) -> int:
        assert self.process.popen is not None
        return self.process.popen.pid


@attrs.frozen
class Pair:
    """Two candidates, by name."""

    world: World
    candidates: dict[str, Candidate]
    wires: dict[str, Wire]

    def leader(self) -> str:
        """Who the Lease names; empty when nobody."""
        lease = self.world.get("5spot-system", "lease", LEASE) or {"spec": {}}
        return str(lease["spec"].get("holderIdentity") or "").partition("_")[0]

    def wait_for_leader(self, *among: str, seconds: float = 20) -> str:
        def found() -> str:
            leader = self.leader()
            return leader if leader in (among or NAMES) and self.said(leader, "leading") else ""

        return wait_until(found, seconds=seconds, what=f"one of {among or NAMES} leads")

    def said(self, name: str, what: str) -> bool:
        """Whether a candidate has logged a message that begins like this."""
        return any(entry["message"].startswith(what) for entry in self.candidates[name].process.logged())

    def other(self, name: str) -> str:
        return next(found for found in NAMES if found != name)

    def writes(self, name: str, since: datetime) -> list[datetime]:
        """When this candidate's writes, Leases left out, were received by the server."""
        return [
            parse_instant(event["requestReceivedTimestamp"])
            for event in self.world.writes(self.candidates[name].user, since=since)
        ]

    def took_lease(self, name: str, since: datetime) -> datetime:
        """When the server had this candidate's first successful write of the Lease."""
        return min(
            parse_instant(event["stageTimestamp"])
            for event in self.world.plane.audit_events()
            if event["user"].get("username") == self.candidates[name].user
            and (event.get("objectRef") or {}).get("resource") == "leases"
            and event["verb"] in ("create", "update")
            and event["stage"] == "ResponseComplete"
            and event["responseStatus"]["code"] < 300
            and parse_instant(event["stageTimestamp"]) >= since
        )


@pytest.fixture(scope="module")
def world(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The product at work, but for the controller: the tests bring their own."""
    with product.world(control_plane, tmp_path_factory.mktemp("product")) as running:
        running.controller.stop()
        yield running


@contextmanager
def pair(world: World, folder: Path, namespace: str) -> Iterator[Pair]:
    """Two controllers that both are ready to lead, one of which does; a machine whose schedule is closed."""
    product.namespace_with_cluster(world, namespace, "grid")
    world.apply(product.closed_now(namespace), machine(namespace, f"box-{namespace}"))
    with ExitStack() as started:
        candidates, wires = {}, {}
        for name in NAMES:
            user = f"test:{namespace}-{name}"
            wires[name] = started.enter_context(wire(urlsplit(world.plane.url).port or 0))
            kubeconfig = folder / f"{name}.yaml"
            text = world.plane.kubeconfig_text(user, ADMINS)
            kubeconfig.write_text(text.replace(world.plane.url, f"https://127.0.0.1:{wires[name].port}"))
            line = [
                *(sys.executable, "-m", "fivespot", "controller", "run", "--allow-local-child"),
                *("--kubeconfig", str(kubeconfig), "--lease-name", LEASE, *TIMING),
            ]
            process = Process(line, folder / f"{name}.log", {"OPERATOR_INSTANCE_ID": name})
            process.start()
            started.callback(process.kill)
            candidates[name] = Candidate(user, process)
        made = Pair(world, candidates, wires)
        leader = made.wait_for_leader()
        wait_until(lambda: made.said(made.other(leader), "standing by: "), seconds=20, what="one stands by")
        world.wait_for_phases(namespace, {f"box-{namespace}": "Inactive"})
        yield made


def _never_two(both: Pair, since: datetime) -> None:
    """All writes of one candidate precede all writes of the other."""
    first, second = sorted((times for name in NAMES if (times := both.writes(name, since))), key=min)
    assert max(first) < min(second)


def _open(world: World, namespace: str) -> datetime:
    """Something to do: the schedule opens. Returns when."""
    begun = datetime.now(UTC)
    world.apply(product.open_now(namespace))
    return begun


def test_a_leader_that_is_killed_is_followed_within_its_lease(world: World, tmp_path: Path) -> None:
    begun = datetime.now(UTC)
    with pair(world, tmp_path, "killed") as both:
        leader = both.leader()
        both.candidates[leader].process.kill()
        died = _open(world, "killed")
        follower = both.wait_for_leader(both.other(leader))
        world.wait_for_phases("killed", {"box-killed": "Active"})
        took = both.took_lease(follower, died) - died
        print(f"take-over after a kill: {took.total_seconds():.2f} s of a lease of {LEASE_SECONDS:g} s")
        assert took <= timedelta(seconds=LEASE_SECONDS + 1)
        _never_two(both, begun)
        assert both.writes(leader, died) == []


def test_a_leader_that_is_asked_to_end_hands_over_at_once(world: World, tmp_path: Path) -> None:
    begun = datetime.now(UTC)
    with pair(world, tmp_path, "asked") as both:
        leader = both.leader()
        follower = both.other(leader)
        assert both.writes(follower, begun) == []
        asked = datetime.now(UTC)
        assert both.candidates[leader].process.stop() == 0
        ended = datetime.now(UTC) - asked
        assert both.wait_for_leader(follower, seconds=2) == follower
        took = both.took_lease(follower, asked) - asked
        opened = _open(world, "asked")
        world.wait_for_phases("asked", {"box-asked": "Active"})
        acted = min(both.writes(follower, asked)) - opened
        print(
            f"hand-over: {took.total_seconds():.2f} s from SIGTERM to the next leader, "
            f"{ended.total_seconds():.2f} s to the end"
        )
        assert took <= timedelta(seconds=1)
        assert ended <= timedelta(seconds=10)
        assert acted <= timedelta(seconds=3), "the provider has to say it first"
        assert both.said(leader, "leadership is released")
        assert "Traceback" not in both.candidates[leader].log
        _never_two(both, begun)


def test_a_leader_that_was_paused_writes_nothing_after_the_other_took_over(
    world: World, tmp_path: Path
) -> None:
    begun = datetime.now(UTC)
    with pair(world, tmp_path, "paused") as both:
        leader = both.leader()
        follower = both.other(leader)
        stalled = both.candidates[leader]
        os.kill(stalled.pid, signal.SIGSTOP)
        try:
            paused = _open(world, "paused")
            both.wait_for_leader(follower)
            world.wait_for_phases("paused", {"box-paused": "Active"})
            # There is work for the paused one as well: the news of all this waits in its sockets.
            world.apply(product.closed_now("paused"))
        finally:
            os.kill(stalled.pid, signal.SIGCONT)
        assert stalled.process.popen is not None
        assert stalled.process.popen.wait(timeout=10) == 1
        world.wait_for_phases("paused", {"box-paused": "Inactive"})
        _never_two(both, begun)
        assert both.writes(leader, both.took_lease(follower, paused)) == []
        lines = stalled.log.splitlines()
        assert lines[-1].startswith(f"Error: leadership is lost (Lease 5spot-system/{LEASE}): ")
        assert "Traceback" not in stalled.log


def test_a_leader_that_is_cut_off_has_stopped_before_the_other_begins(world: World, tmp_path: Path) -> None:
    """It hears nothing, and is refused nothing; its child cluster it can still reach, and does not touch."""
    begun = datetime.now(UTC)
    with pair(world, tmp_path, "cut-off") as both:
        leader = both.leader()
        follower = both.other(leader)
        both.wires[leader].cut()
        alone = _open(world, "cut-off")
        both.wait_for_leader(follower)
        took = both.took_lease(follower, alone)
        popen = both.candidates[leader].process.popen
        assert popen is not None
        # It ends by itself: its time is up before anybody else may begin.
        assert popen.wait(timeout=10) == 1
        world.wait_for_phases("cut-off", {"box-cut-off": "Active"})
        # Whatever it had sent is still on its way, and arrives now.
        both.wires[leader].mend()
        world.apply(product.closed_now("cut-off"))
        world.wait_for_phases("cut-off", {"box-cut-off": "Inactive"})
        _never_two(both, begun)
        assert both.writes(leader, took) == []
        in_child = [parse_instant(e["requestReceivedTimestamp"]) for e in world.writes(IN_CHILD, since=alone)]
        assert all(at >= took for at in in_child)


def test_the_fence_holds_in_child_clusters_too(world: World) -> None:
    def closed() -> float:
        raise LeadershipLost

    async def scenario() -> None:
        text = world.plane.kubeconfig_text("test:fenced-child", ADMINS)
        async with await Gateway.from_kubeconfig(text, allow_local=True, fence=closed) as child:
            await child.list(NODES)
            with pytest.raises(LeadershipLost):
                await child.delete(NODES, None, "no-such-node")
            with pytest.raises(LeadershipLost):
                await child.evict("default", "no-such-pod")

    asyncio.run(scenario())
    assert world.writes("test:fenced-child") == []


def test_a_namespace_that_does_not_exist_ends_it_with_one_message(world: World, tmp_path: Path) -> None:
    kubeconfig = world.plane.kubeconfig("test:nowhere", ADMINS)
    line = [
        *(sys.executable, "-m", "fivespot", "controller", "run", "--kubeconfig", str(kubeconfig)),
        *("--lease-namespace", "nowhere"),
    ]
    process = Process(line, tmp_path / "nowhere.log")
    process.start()
    assert process.popen is not None
    assert process.popen.wait(timeout=20) == 1
    last = process.log.read_text().splitlines()[-1]
    assert last.startswith("Error: Lease nowhere/5spot-leader has no place to be: ")
    assert last.endswith("create the namespace, or name another one with --lease-namespace")
