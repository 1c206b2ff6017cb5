"""A whole controller in this process: two fake servers, somebody who does what Cluster API and kubelets do, and a clock."""

from __future__ import annotations

import asyncio
import contextlib
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fivespot.adapters.kube.control.machines import MachineController
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.resources import Object
from fivespot.adapters.telemetry.metrics import Metrics
from fivespot.cli.leading import at_once
from tests import builders
from tests.fakeapi import FakeApi, fake_api
from tests.fakeapi.store import Change
from tests.faults.setting import DESK, NAMESPACE, HandClock, gateway_to, install, machine

CLUSTER = "grid"
SECRET = "grid-kubeconfig"
MACHINES = "scheduledmachines.5spot.finos.org"
CAPI = "machines.cluster.x-k8s.io"
BOOTSTRAPS = "k0sworkerconfigs.bootstrap.cluster.x-k8s.io"
HOSTS = "remotemachines.infrastructure.cluster.x-k8s.io"
SCHEDULES = "timebasedspotschedules.spotschedules.5spot.finos.org"


@dataclass
class Site:
    """What is there, and everything that has happened to it.

    Attributes:
        changes: of both clusters' objects, in order.
        joins: whether a Machine gets its Node at once.
    """

    management: FakeApi
    child: FakeApi
    gateway: Gateway
    clock: HandClock
    controller: MachineController
    changes: list[Change] = field(default_factory=list)
    joins: bool = True
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def happened(self, change: Change) -> None:
        """Take note, and do what others do about it in the loop's next turn."""
        self.changes.append(change)
        self.news.set()
        asyncio.get_running_loop().call_soon(self._others, change)

    def _others(self, change: Change) -> None:
        name = change.key[1]
        if change.resource == CAPI and change.old is None and self.joins:
            self.join(name)
        elif change.resource == CAPI and change.new is None:
            for server, label, key in (
                (self.management, BOOTSTRAPS, change.key),
                (self.management, HOSTS, change.key),
                (self.child, "nodes", ("", name)),
            ):
                if server.world.store.get(label, key) is not None:
                    server.world.store.remove(label, key)
        elif change.resource == "pods" and change.new and change.new["metadata"].get("deletionTimestamp"):
            # A deletion without grace is over by now.
            with contextlib.suppress(KeyError):
                self.child.world.store.remove("pods", change.key)

    def join(self, name: str) -> None:
        """The host of a Machine becomes a Node."""
        store, key = self.management.world.store, (NAMESPACE, name)
        found = store.get(CAPI, key)
        assert found is not None
        provider_id = f"x://{name}"
        node = {"metadata": {"name": name}, "spec": {"providerID": provider_id}}
        if self.child.world.store.get("nodes", ("", name)) is None:
            conditions = [{"type": "Ready", "status": "True"}]
            self.child.create("v1", "nodes", {**node, "status": {"conditions": conditions}})
        spec = {**found["spec"], "providerID": provider_id}
        store.put(
            CAPI, key, {**found, "spec": spec, "status": {"phase": "Running", "nodeRef": {"name": name}}}
        )

    def schedule(self, *, active: bool, name: str = "nights") -> None:
        """What the schedule says from now on."""
        store, key = self.management.world.store, (NAMESPACE, name)
        found = store.get(SCHEDULES, key)
        assert found is not None
        status = {"active": active, "observedGeneration": found["metadata"]["generation"]}
        store.put(SCHEDULES, key, {**found, "status": status})

    def add_machine(self, name: str = DESK, **spec: Any) -> None:
        self.management.create(
            "5spot.finos.org/v1beta1", "scheduledmachines", machine(name, **spec), NAMESPACE
        )

    def add_pod(self, name: str, node: str = DESK) -> None:
        """A pod that runs on a Node."""
        spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
        made = self.child.create("v1", "pods", {"metadata": {"name": name}, "spec": spec}, "default")
        self.child.world.store.put("pods", ("default", name), {**made, "status": {"phase": "Running"}})

    def give_kubeconfig(self, text: str | None = None, name: str = SECRET) -> None:
        """Put a kubeconfig, the child's own if none is given, into the Secret."""
        encoded = b64encode((self.child.kubeconfig() if text is None else text).encode()).decode()
        store, key = self.management.world.store, (NAMESPACE, name)
        if (found := store.get("secrets", key)) is None:
            body = {"metadata": {"name": name}, "data": {"value": encoded}}
            self.management.create("v1", "secrets", body, NAMESPACE)
        else:
            store.put("secrets", key, {**found, "data": {"value": encoded}})

    def machine(self, name: str = DESK) -> Object:
        found = self.management.world.store.get(MACHINES, (NAMESPACE, name))
        assert found is not None
        return found

    def phase(self, name: str = DESK) -> str:
        return str((self.machine(name).get("status") or {}).get("phase") or "")

    def condition(self, of_type: str, name: str = DESK) -> Object:
        conditions = (self.machine(name).get("status") or {}).get("conditions") or []
        return next((entry for entry in conditions if entry["type"] == of_type), {})

    def phases(self, name: str = DESK) -> list[str]:
        """The phases that a machine has been in, in order."""
        found = [
            (change.new.get("status") or {}).get("phase")
            for change in self.changes
            if change.resource == MACHINES and change.key[1] == name and change.new
        ]
        return [
            str(phase)
            for before, phase in zip([None, *found], found, strict=False)
            if phase and phase != before
        ]

    def there(self, label: str) -> list[str]:
        """The names of the objects of a kind, in either cluster."""
        servers = (self.management, self.child)
        return [key[1] for server in servers for key, _ in server.world.store.items(label)]

    def created(self, label: str) -> int:
        return sum(change.resource == label and change.old is None for change in self.changes)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Let time pass until something that happens makes it true."""
        async with self.clock.passing(0.5):
            while not condition():
                self.news.clear()
                await self.news.wait()

    async def until_phase(self, *phases: str, name: str = DESK) -> None:
        await self.until(lambda: self.phase(name) in phases)

    async def rest(self, seconds: float = 60.0) -> None:
        """Let so many seconds pass."""
        end = self.clock.monotonic() + seconds
        async with self.clock.passing(max(0.25, seconds / 150)):
            await self.clock.sleep_until(end)


AnySite = TypeVar("AnySite", bound=Site)


@asynccontextmanager
async def site(
    *,
    active: bool = True,
    kubeconfig: bool = True,
    start: bool = True,
    metrics: Metrics | None = None,
    clock: HandClock | None = None,
    kind: type[AnySite] = Site,
) -> AsyncIterator[AnySite]:
    """A cluster and its child, a schedule, and a controller at work; not a machine yet.

    Raises:
        BaseExceptionGroup: the controller has ended by itself.
    """
    clock = clock or HandClock()
    async with AsyncExitStack() as stack:
        management = await stack.enter_async_context(fake_api(now=clock.now))
        child = await stack.enter_async_context(fake_api(tls=True, now=clock.now))
        gateway = await stack.enter_async_context(gateway_to(management))
        install(management)
        management.create("cluster.x-k8s.io/v1beta2", "clusters", _named(CLUSTER, spec={}), NAMESPACE)
        group = "spotschedules.5spot.finos.org/v1alpha1"
        management.create(group, "timebasedspotschedules", builders.time_based(), NAMESPACE)
        controller = MachineController(gateway, clock, allow_local_child=True, metrics=metrics)
        here = kind(management, child, gateway, clock, controller)
        here.schedule(active=active)
        if kubeconfig:
            here.give_kubeconfig()
        for server in (management, child):
            stack.callback(server.world.store.listen(here.happened))
        if start:
            await stack.enter_async_context(running(here))
        yield here


@asynccontextmanager
async def running(here: Site) -> AsyncIterator[None]:
    """The controller at work."""
    working = asyncio.ensure_future(here.controller.run(at_once))
    try:
        yield
    finally:
        ended = working.done()
        working.cancel()
        results = await asyncio.gather(working, return_exceptions=True)
        assert not ended, results


def _named(name: str, **more: Any) -> Object:
    return {"metadata": {"name": name}, **more}
