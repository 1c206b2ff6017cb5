"""Ten thousand machines and five hundred providers on a real API server: what one controller process takes for them.

About ten minutes, most of which the API server needs for a hundred thousand writes. Nothing here fails on a time; what has
to be true (no write at rest, every machine dealt with) does.
"""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fivespot.adapters.kube.gateway import Gateway
from tests.bench import crowds, fleets
from tests.bench.fleets import SM, Fleet, Running, in_parallel
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.pytest_plugin import StartControlPlane
from tests.live import product
from tests.live.product import CONTROLLER, IN_CHILD
from tests.standins import crds

FLEET = Fleet(namespaces=20, providers=500, machines=10_000)
NODES = Fleet(namespaces=1, providers=500, machines=10_000)
CROWD, CROWD_NAMESPACE = 1000, "crowd"
INACTIVE = 'fivespot_machines_by_phase{phase="Inactive"}'
FLIPS = 5
REST_SECONDS = 60

pytestmark = pytest.mark.timeout(3600)


@pytest.fixture(scope="module")
def plane(start_control_plane: StartControlPlane) -> Iterator[ControlPlane]:
    """A control plane of its own, with the fleet, none of which has ever been seen by a controller."""
    plane = start_control_plane()
    crds.install(plane)
    product.install(plane)
    begun = time.monotonic()
    asyncio.run(_with_gateway(plane, lambda gateway: fleets.populate(gateway, plane, FLEET)))
    print(f"\npopulated {FLEET} in {time.monotonic() - begun:.0f} s")
    yield plane
    plane.stop()


async def _with_gateway(plane: ControlPlane, work: Callable[[Gateway], Awaitable[None]]) -> None:
    async with await Gateway.connect(kubeconfig=plane.admin_kubeconfig) as gateway:
        await work(gateway)


def _queue_is_empty(metrics: Mapping[str, float]) -> bool:
    return metrics['fivespot_queue_depth{queue="machines"}'] == 0


def _in_phase(phase: str, count: int) -> Callable[[Mapping[str, float]], bool]:
    name = f'fivespot_machines_by_phase{{phase="{phase}"}}'
    return lambda metrics: metrics.get(name) == count and _queue_is_empty(metrics)


def _all_passed(metrics: Mapping[str, float]) -> bool:
    passes = sum(v for k, v in metrics.items() if k.startswith("fivespot_reconciliations_total"))
    return passes >= FLEET.machines and _queue_is_empty(metrics)


def _restarted(plane: ControlPlane, folder: Path, what: str) -> None:
    """Start to all reconciled, and memory, CPU and the audit log at rest after that."""
    with fleets.controller(plane, folder, "--no-leader-elect") as running:
        took = running.wait(_all_passed)
        print(f"{what}: start to all reconciled {took:.1f} s, CPU {running.cpu():.1f} s, {_memory(running)}")
        time.sleep(5)
        requests, cpu, passes = len(_requests(plane)), running.cpu(), running.passes()
        time.sleep(REST_SECONDS)
        found = _requests(plane)[requests:]
        used = (running.cpu() - cpu) / REST_SECONDS
        print(
            f"{what}: at rest for {REST_SECONDS} s: {len(found)} requests answered, {running.passes() - passes:.0f} passes, "
            f"CPU {100 * used:.2f} %, {_memory(running)}"
        )
        # The end of a stream is answered, and so is the beginning of the next; neither is a poll.
        assert {verb for verb, _ in found} <= {"watch"}


def _memory(running: Running) -> str:
    now, most = running.memory()
    return f"memory {now:.0f} MB, at most {most:.0f} MB"


def _requests(plane: ControlPlane) -> list[tuple[str, str]]:
    return [
        (event["verb"], event.get("objectRef", {}).get("resource", ""))
        for event in plane.audit_events()
        if event["user"].get("username") in (CONTROLLER, IN_CHILD) and event["stage"] == "ResponseComplete"
    ]


def test_ten_thousand_machines(plane: ControlPlane, tmp_path: Path) -> None:
    """First seen, started again, opened all at once, started again."""
    with fleets.controller(plane, tmp_path, "--no-leader-elect") as running:
        took = running.wait(_in_phase("Inactive", FLEET.machines), 1800)
        writes = sum(verb != "watch" for verb, _ in _requests(plane))
        print(
            f"first seen: {took:.0f} s for about {writes} requests, CPU {running.cpu():.0f} s, {_memory(running)}"
        )
    _restarted(plane, tmp_path, "all inactive")
    with fleets.controller(plane, tmp_path, "--no-leader-elect") as running:
        running.wait(_all_passed)
        asyncio.run(_with_gateway(plane, _open_all))
        took = running.wait(_in_phase("Pending", FLEET.machines), 1800)
        print(f"opened: {took:.0f} s to {FLEET.machines} Machines, {_memory(running)}")
    _restarted(plane, tmp_path, "all with Machines and hosts")


def test_ten_thousand_machines_with_their_nodes(
    start_control_plane: StartControlPlane, tmp_path: Path
) -> None:
    """In one child cluster: the server is every child here, and each would have all the Nodes."""
    with start_control_plane() as plane:
        crds.install(plane)
        product.install(plane)
        asyncio.run(_with_gateway(plane, lambda gateway: fleets.populate(gateway, plane, NODES)))
        asyncio.run(_with_gateway(plane, lambda gateway: _open_all(gateway, NODES)))
        with fleets.controller(plane, tmp_path, "--no-leader-elect") as running:
            running.wait(_in_phase("Pending", NODES.machines), 1800)
            asyncio.run(_with_gateway(plane, _join_all))
            # Nobody renews the Leases of these Nodes, so that not all of them stay ready until the last has come.
            running.wait(_in_phase("Active", NODES.machines), 1800)
            print(f"\nall active, with their Nodes: {_memory(running)}")
        _restarted(plane, tmp_path, "all active, with Machines, hosts and Nodes")


async def _open_all(gateway: Gateway, fleet: Fleet = FLEET) -> None:
    names = [(fleet.namespace(n), f"nights-{n // fleet.namespaces}") for n in range(fleet.providers)]
    await in_parallel([lambda at=at: fleets.say(gateway, *at, active=True) for at in names])


async def _join_all(gateway: Gateway) -> None:
    await in_parallel(
        [lambda n=n: fleets.join(gateway, NODES.namespace(n), f"desk-{n}") for n in range(NODES.machines)]
    )


def test_reading_ten_thousand_machines(plane: ControlPlane) -> None:
    """A list, and the same ten thousand as events of a watch that begins before them."""

    async def measure(gateway: Gateway) -> None:
        begun = time.monotonic()
        found = await gateway.list(SM)
        listed = time.monotonic() - begun
        count = sum(1 for _ in found.each())
        print(
            f"list of {count} machines: {listed:.2f} s with the server, {time.monotonic() - begun:.2f} s decoded"
        )
        oldest = min(int(body["metadata"]["resourceVersion"]) for body in found.each())
        begun, seen = time.monotonic(), 0
        async for _ in gateway.watch(SM, resource_version=str(oldest - 1), timeout_seconds=60):
            seen += 1
            if seen >= count:
                break
        took = time.monotonic() - begun
        print(f"watch: {seen} events in {took:.2f} s, {seen / took:.0f} a second, server included")

    asyncio.run(_with_gateway(plane, measure))


def test_one_provider_flips_for_a_thousand_machines(plane: ControlPlane, tmp_path: Path) -> None:
    """From the flip to the first Machine that a watcher sees, and to the last; beside ten thousand others."""
    firsts, lasts, ends = [], [], []
    flips: list[datetime] = []

    async def rounds(running: Running) -> None:
        async with (
            await Gateway.connect(kubeconfig=plane.admin_kubeconfig) as gateway,
            crowds.followed(gateway, CROWD_NAMESPACE, CROWD) as crowd,
        ):
            await asyncio.to_thread(running.wait, _all_passed, 1800)
            before = running.metrics()[INACTIVE]
            await crowds.populate(gateway, plane, CROWD_NAMESPACE, CROWD)
            await asyncio.to_thread(
                running.wait, lambda m: m[INACTIVE] == before + CROWD and _queue_is_empty(m)
            )
            for _ in range(FLIPS):
                flips.append(datetime.now(UTC))
                begun = await crowd.say(active=True)
                await crowd.all_there()
                firsts.append(min(crowd.seen.values()) - begun)
                lasts.append(max(crowd.seen.values()) - begun)
                await asyncio.to_thread(running.wait, _queue_is_empty)
                ends.append(time.monotonic() - begun)
                await crowd.say(active=False)
                await crowd.none_left()
                await asyncio.to_thread(
                    running.wait, lambda m: m[INACTIVE] == before + CROWD and _queue_is_empty(m)
                )

    with fleets.controller(plane, tmp_path, "--no-leader-elect") as running:
        asyncio.run(rounds(running))
    actions = fleets.first_actions(plane, CROWD_NAMESPACE, flips)
    print(
        f"one flip for {CROWD} machines, {FLIPS} rounds: first action p50 {1000 * statistics.median(actions):.0f} ms, at most "
        f"{1000 * max(actions):.0f} ms; first Machine p50 {1000 * statistics.median(firsts):.0f} ms, "
        f"at most {1000 * max(firsts):.0f} ms; last Machine p50 {statistics.median(lasts):.1f} s; at rest again p50 "
        f"{statistics.median(ends):.1f} s ({4 * CROWD} writes and as many Events as machines)"
    )
