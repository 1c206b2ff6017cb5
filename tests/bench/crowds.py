"""Many machines on one provider, and when each of their CAPI Machines is seen to come and to go."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import attrs

from fivespot.adapters.clock import SystemClock
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.reflector import Reflector
from fivespot.adapters.kube.resources import Object
from fivespot.adapters.kube.watching import whole
from tests.bench import fleets
from tests.controlplane.controlplane import ControlPlane
from tests.standins.clusterapi import MACHINES as CAPI_MACHINES

PROVIDER = "nights"


@attrs.define
class Crowd:
    """A namespace of machines that all hang on its provider `nights`.

    Attributes:
        seen: when each CAPI Machine that is there was seen first; monotonic seconds.
        going: the same for those that are being deleted.
    """

    gateway: Gateway
    namespace: str
    count: int
    seen: dict[str, float] = attrs.field(factory=dict)
    going: dict[str, float] = attrs.field(factory=dict)
    _changed: asyncio.Event = attrs.field(factory=asyncio.Event)

    async def say(self, *, active: bool) -> float:
        """Flip the provider; returns when that was begun."""
        begun = time.monotonic()
        await fleets.say(self.gateway, self.namespace, PROVIDER, active=active)
        return begun

    async def until(self, done: Callable[[], bool], seconds: float = 300) -> None:
        """Wait for Machines to come or go."""
        async with asyncio.timeout(seconds):
            while not done():
                self._changed.clear()
                await self._changed.wait()

    async def all_there(self) -> None:
        """Every machine has its Machine."""
        await self.until(lambda: len(self.seen) == self.count)

    async def none_left(self) -> None:
        """Every Machine is gone."""
        await self.until(lambda: not self.seen)

    def change(self, key: tuple[str, str], _old: Object | None, new: Object | None) -> None:
        """What the watch says."""
        now = time.monotonic()
        if new is None:
            self.seen.pop(key[1], None)
            self.going.setdefault(key[1], now)
        else:
            self.seen.setdefault(key[1], now)
            if new["metadata"].get("deletionTimestamp"):
                self.going.setdefault(key[1], now)
        self._changed.set()


async def populate(gateway: Gateway, plane: ControlPlane, namespace: str, count: int) -> None:
    """The namespace, its Cluster and provider, which says no, and the machines."""
    await fleets.add_namespace(gateway, namespace, fleets.kubeconfig_of(plane))
    await fleets.add_provider(gateway, namespace, PROVIDER)
    await fleets.in_parallel(
        [lambda n=n: fleets.add_machine(gateway, namespace, f"box-{n}", PROVIDER) for n in range(count)]
    )


@asynccontextmanager
async def followed(gateway: Gateway, namespace: str, count: int) -> AsyncIterator[Crowd]:
    """A crowd whose Machines are watched."""
    crowd = Crowd(gateway, namespace, count)
    machines = Reflector(
        gateway, CAPI_MACHINES, clock=SystemClock(), read=whole, namespace=namespace, on_change=crowd.change
    )
    following = asyncio.create_task(machines.run())
    await machines.synced.wait()
    try:
        yield crowd
    finally:
        following.cancel()
        await asyncio.wait([following])
