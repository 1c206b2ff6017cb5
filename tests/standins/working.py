"""What every stand-in has: objects that are watched, and one pass after the other over those that changed."""

import asyncio
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path

from fivespot.adapters.clock import SystemClock
from fivespot.adapters.kube.errors import ApiError, NotFound
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.reflector import Reflector
from fivespot.adapters.kube.resources import Object, Resource
from fivespot.adapters.kube.watching import whole

TRY_AGAIN = 0.05


class Worker(ABC):
    """Looks at each object of some kinds again whenever it has changed, and after an error."""

    def __init__(self, *watched: tuple[Gateway, Resource]) -> None:
        self._gateways = {resource: gateway for gateway, resource in watched}
        self._dirty: asyncio.Queue[tuple[Resource, str, str]] = asyncio.Queue()

    @abstractmethod
    async def look_at(self, resource: Resource, body: Object) -> None:
        """One pass over one object, as it is now."""

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            for resource, gateway in self._gateways.items():
                reflector = Reflector(
                    gateway,
                    resource,
                    clock=SystemClock(),
                    read=whole,
                    on_change=lambda key, _old, new, of=resource: self._mark(of, key, new),
                )
                group.create_task(reflector.run())
            group.create_task(self._work())

    def again(self, resource: Resource, namespace: str, name: str, after: float) -> None:
        """Look at it again after so many seconds."""
        asyncio.get_running_loop().call_later(after, self._dirty.put_nowait, (resource, namespace, name))

    def _mark(self, resource: Resource, key: tuple[str, str], new: Object | None) -> None:
        if new is not None:
            self._dirty.put_nowait((resource, *key))

    async def _work(self) -> None:
        while True:
            resource, namespace, name = await self._dirty.get()
            try:
                await self.look_at(resource, await self._gateways[resource].get(resource, namespace, name))
            except NotFound:
                continue
            except ApiError:
                # A busy server, or one that is going down.
                self.again(resource, namespace, name, TRY_AGAIN)


Makes = Callable[[Gateway, Gateway], Sequence[Worker]]
"""Makes workers of gateways to the management and to the child cluster."""


async def work(management: Path, child: Path, make: Makes) -> None:
    """Run what `make` makes of gateways by these kubeconfigs, until cancelled."""
    async with (
        await Gateway.connect(kubeconfig=management) as gateway,
        await Gateway.connect(kubeconfig=child) as nodes,
        asyncio.TaskGroup() as group,
    ):
        for worker in make(gateway, nodes):
            group.create_task(worker.run())


async def serve(make: Makes) -> None:
    """The same for a process, whose arguments are the two kubeconfigs."""
    management, child = map(Path, sys.argv[1:])
    await work(management, child, make)
