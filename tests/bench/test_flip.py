"""Provider flip to CAPI Machine created, on the real API server: the whole way through our own process."""

import asyncio
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from fivespot.adapters.clock import SystemClock
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.reflector import Reflector
from fivespot.adapters.kube.watching import whole
from tests.controlplane.controlplane import ControlPlane
from tests.live import product
from tests.live.product import World
from tests.standins.clusterapi import MACHINES

NAMESPACE, ROUNDS = "flip", 60


@pytest.fixture
def world(control_plane: ControlPlane, tmp_path: Path) -> Iterator[World]:
    """The controller and a Cluster API; the provider's status is written by the benchmark."""
    with product.world(control_plane, tmp_path) as running:
        running.provider.stop()
        product.namespace_with_cluster(running, NAMESPACE, "grid")
        running.apply(product.closed_now(NAMESPACE), product.machine(NAMESPACE, "desk-1"))
        yield running


class Flips:
    """Flips a provider and watches Machines, in one event loop."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.changed = asyncio.Event()
        self.machines = Reflector(
            gateway,
            MACHINES,
            clock=SystemClock(),
            read=whole,
            namespace=NAMESPACE,
            on_change=lambda *_: self.changed.set(),
        )

    async def wait(self, *, there: bool) -> None:
        """Until the Machine is there, or gone."""
        while bool(self.machines.items()) is not there:
            self.changed.clear()
            await asyncio.wait_for(self.changed.wait(), 30)

    async def flip(self, *, active: bool) -> None:
        """What a provider's controller writes."""
        kind = await self.gateway.resolve("spotschedules.5spot.finos.org", "TimeBasedSpotSchedule")
        body: dict[str, Any] = {"status": {"active": active}}
        await self.gateway.merge_patch(kind, NAMESPACE, "nights", body, subresource="status")
        await self.wait(there=active)


def test_provider_flip_to_machine_created(world: World, benchmark: BenchmarkFixture) -> None:
    with asyncio.Runner() as runner:
        gateway = runner.run(Gateway.connect(kubeconfig=world.plane.admin_kubeconfig))
        flips = Flips(gateway)
        following = runner.get_loop().create_task(flips.machines.run())
        runner.run(flips.machines.synced.wait())
        runner.run(flips.flip(active=True))

        def closed() -> None:
            runner.run(flips.flip(active=False))
            world.wait_for_phases(NAMESPACE, {"desk-1": "Inactive"})

        benchmark.pedantic(lambda: runner.run(flips.flip(active=True)), setup=closed, rounds=ROUNDS)
        following.cancel()
        runner.run(asyncio.wait([following]))
        runner.run(gateway.close())
    times = sorted(benchmark.stats.stats.data)
    p50, p99 = statistics.median(times), times[int(len(times) * 0.99)]
    print(
        f"\nflip to Machine created and seen, {ROUNDS} rounds: p50 {p50 * 1000:.1f} ms, p99 {p99 * 1000:.1f} ms"
    )
