"""Three hundred machines, twenty providers and two child clusters open in the morning and close in the evening, whatever happens.

What happens comes from a seed: answers that are lost, streams that end, servers that are away, leaders that die or hand
over. What must hold is looked at in every change, and the servers' own logs tell the rest.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

from fivespot.adapters.kube.control.machines import MachineController
from fivespot.adapters.kube.electing import Timing
from fivespot.adapters.kube.elector import Elector
from fivespot.adapters.kube.errors import ApiError, LeadershipLost
from fivespot.adapters.kube.gateway import Gateway
from fivespot.core.names import SYSTEM_NAMESPACE
from tests import builders
from tests.fakeapi import FakeApi, fake_api
from tests.fakeapi.requests import WRITES, Asked
from tests.faults.lives import DOWN_FOR, LEASE, Lab, lab
from tests.faults.others import MADE
from tests.faults.setting import NAMESPACE
from tests.faults.site import CLUSTER, MACHINES
from tests.faults.virtual import VirtualClock, run_virtually
from tests.faults.weather import Weather, forecast

MACHINE_COUNT, PROVIDER_COUNT = 300, 20
OTHER = "island"
PROVIDERS = "spotschedules.5spot.finos.org/v1alpha1"
LEASES = "leases.coordination.k8s.io"
MORNING, NOON, EVENING, NIGHT = 30.0, 240.0, 300.0, 600.0
FAULTS = 40
SEEDS = (1,)


class Replica:
    """One of the processes of a Deployment, and the next one in its place whenever it has ended."""

    def __init__(self, here: Lab, names: itertools.count[int]) -> None:
        self._here = here
        self._names = names
        self.name = ""
        self._work: asyncio.Task[None] | None = None
        self._controller: MachineController | None = None
        self._task = asyncio.ensure_future(self._keep())

    async def _keep(self) -> None:
        while True:
            self._work = asyncio.ensure_future(self._live())
            await asyncio.wait([self._work])
            error = None if self._work.cancelled() else self._work.exception()
            if error is not None and not _ends_a_process(error):
                raise error
            await asyncio.sleep(DOWN_FOR)

    async def _live(self) -> None:
        self.name = f"replica {next(self._names)}"
        here = self._here
        async with _gateway(here.management, self.name) as gateway:
            elector = Elector(
                gateway.urgent,
                here.clock,
                identity=self.name,
                namespace=SYSTEM_NAMESPACE,
                name=LEASE,
                timing=Timing(),
            )
            gateway.fence = elector.left
            self._controller = MachineController(gateway, here.clock, allow_local_child=True)
            electing = asyncio.ensure_future(elector.run())
            working = asyncio.ensure_future(self._controller.run(elector.won))
            try:
                await asyncio.wait([electing, working], return_when=asyncio.FIRST_COMPLETED)
                orderly = working.done() and not working.exception()
            finally:
                for task in (electing, working):
                    task.cancel()
                await asyncio.gather(electing, working, return_exceptions=True)
            if orderly:
                await elector.release()
            for task in (electing, working):
                if not task.cancelled():
                    task.result()

    async def kill(self) -> None:
        """SIGKILL."""
        if self._work is not None:
            self._work.cancel()

    def hand_over(self) -> None:
        """SIGTERM."""
        if self._controller is not None:
            self._controller.stop()

    async def end(self) -> None:
        """Whatever made it end by itself is raised."""
        failed = self._task.done()
        self._task.cancel()
        if self._work is not None:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)
        await asyncio.gather(self._task, return_exceptions=True)
        assert not failed, self._task.exception()


def _ends_a_process(error: BaseException) -> bool:
    """Whether a process ends with a message: it leads no more, or the server does not let it begin."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(_ends_a_process, error.exceptions))
    return isinstance(error, LeadershipLost | ApiError)


@asynccontextmanager
async def _gateway(server: FakeApi, token: str) -> AsyncIterator[Gateway]:
    """The product's gateway, by a name of its own."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "kubeconfig"
        path.write_text(server.kubeconfig(token))
        async with await Gateway.connect(kubeconfig=path) as gateway:
            yield gateway


class Day:
    """A site for a day."""

    def __init__(self, here: Lab, seed: int) -> None:
        self.here = here
        self._chance = Random(f"{seed} is the site's, not the weather's")
        self.machines = [f"desk-{number}" for number in range(MACHINE_COUNT)]
        self._schedules = [f"hours-{number}" for number in range(PROVIDER_COUNT)]

    def build(self, second: FakeApi) -> None:
        here, management = self.here, self.here.management
        management.create("v1", "namespaces", {"metadata": {"name": SYSTEM_NAMESPACE}})
        here.children[OTHER] = second
        body = {"metadata": {"name": OTHER}, "spec": {}}
        management.create("cluster.x-k8s.io/v1beta2", "clusters", body, NAMESPACE)
        here.give_kubeconfig(second.kubeconfig(), name=f"{OTHER}-kubeconfig")
        for name in self._schedules:
            management.create(PROVIDERS, "timebasedspotschedules", builders.time_based(name), NAMESPACE)
            here.schedule(active=False, name=name)
        for number, name in enumerate(self.machines):
            here.add_machine(
                name,
                schedule=builders.reference(self._schedules[number % PROVIDER_COUNT]),
                clusterName=(CLUSTER, OTHER)[number % 2],
                gracefulShutdownTimeout="30m",
                nodeDrainTimeout="20m",
            )

    async def flip(self, *, active: bool, within: float) -> None:
        """The schedules change one after the other, each at its own time."""
        times = sorted(self._chance.uniform(0, within) for _ in self._schedules)
        for last, (at, name) in itertools.pairwise([(0.0, ""), *zip(times, self._schedules, strict=True)]):
            await asyncio.sleep(at - last[0])
            self.here.schedule(active=active, name=name)

    def employ(self) -> None:
        """Pods on the Nodes that there are; one of six is protected for a while in the evening."""
        for cluster, child in self.here.children.items():
            for (_, name), node in child.world.store.items("nodes"):
                for number in range(self._chance.randint(1, 2)):
                    self._pod(child, f"{name}-{number}", node["metadata"]["name"])
            for number in range(2):
                self._budget(child, f"{cluster}-{number}", allowed=0)

    def _pod(self, child: FakeApi, name: str, node: str) -> None:
        meta = {
            "name": name,
            "labels": {"app": f"{self._chance.choice([CLUSTER, OTHER])}-{self._chance.randrange(6)}"},
        }
        spec = {
            "nodeName": node,
            "containers": [{"name": "c", "image": "i"}],
            "terminationGracePeriodSeconds": self._chance.randint(1, 20),
        }
        made = child.create("v1", "pods", {"metadata": meta, "spec": spec}, "default")
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        child.world.store.put("pods", ("default", name), {**made, "status": status})
        if self._chance.random() < 0.3:
            self.here.others.slow_pods.add(name)

    def _budget(self, child: FakeApi, app: str, allowed: int) -> None:
        label, key, store = "poddisruptionbudgets.policy", ("default", app), child.world.store
        found = store.get(label, key)
        if found is None:
            spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}}
            body = {"metadata": {"name": app}, "spec": spec}
            found = child.create("policy/v1", "poddisruptionbudgets", body, "default")
        status = {
            "disruptionsAllowed": allowed,
            "currentHealthy": 1,
            "desiredHealthy": 1,
            "observedGeneration": 1,
        }
        store.put(label, key, {**found, "status": status})

    def relent(self) -> None:
        """All budgets allow everything."""
        for cluster, child in self.here.children.items():
            for number in range(2):
                self._budget(child, f"{cluster}-{number}", allowed=1000)

    def phases(self) -> Counter[str]:
        return Counter(self.here.phase(name) for name in self.machines)

    async def until_all(self, phase: str) -> None:
        await self.here.until(lambda: self.phases() == {phase: MACHINE_COUNT})


@asynccontextmanager
async def _two_clusters(clock: VirtualClock, seed: int) -> AsyncIterator[Day]:
    async with lab(clock) as here, fake_api(tls=True, now=clock.now) as second:
        quiet = second.world.store.listen(here.happened)
        here.others.collects = False
        day = Day(here, seed)
        day.build(second)
        try:
            yield day
        finally:
            quiet()


def _watch_the_leader(here: Lab) -> None:
    """Whoever writes holds the Lease, as the server has it when the write arrives."""

    def allowed(user: str, asked: Asked) -> bool:
        if asked.verb in WRITES and asked.resource not in ("leases", "events"):
            lease = here.management.world.store.get(LEASES, (SYSTEM_NAMESPACE, LEASE))
            holder = lease["spec"].get("holderIdentity") if lease else None
            if holder != user:
                here.broken.append(f"{user} wrote {asked} while {holder} leads")
        return True

    here.management.authorizer = allowed
    here.management.tokens = _Anybody()


class _Anybody(dict[str, str]):
    """Tokens that are the names of those who have them."""

    def get(self, token: str, default: str | None = None) -> str | None:  # type: ignore[override]
        return token or default


async def _lived(clock: VirtualClock, seed: int) -> None:
    async with _two_clusters(clock, seed) as day, AsyncExitStack() as stack:
        here, names = day.here, itertools.count(1)
        _watch_the_leader(here)
        replicas = [Replica(here, names) for _ in range(2)]
        for replica in replicas:
            stack.push_async_callback(replica.end)

        def leader() -> Replica:
            lease = here.management.world.store.get(LEASES, (SYSTEM_NAMESPACE, LEASE)) or {"spec": {}}
            holder = lease["spec"].get("holderIdentity")
            return next((replica for replica in replicas if replica.name == holder), replicas[0])

        async def hand_over() -> None:
            leader().hand_over()

        async def kill() -> None:
            await leader().kill()

        servers = (here.management, *here.children.values())
        faults = forecast(seed, faults=FAULTS, begin=5, end=NIGHT, clusters=len(servers))
        weather = asyncio.ensure_future(Weather(servers, kill=kill, hand_over=hand_over).run(faults))
        await asyncio.sleep(MORNING)
        await day.flip(active=True, within=60)
        await day.until_all("Active")
        day.employ()
        await asyncio.sleep(max(0.0, EVENING - clock.monotonic()))
        await day.flip(active=False, within=60)
        await asyncio.sleep(60)
        day.relent()
        await weather
        await day.until_all("Inactive")
        await _rests(here)
        _look_back(day)


async def _rests(here: Lab) -> None:
    await here.rest(330)
    servers = (here.management, *here.children.values())
    before = sum(_asked(server) for server in servers)
    await here.rest(120)
    assert sum(_asked(server) for server in servers) == before


def _asked(server: FakeApi) -> int:
    """Everything but streams and the Lease."""
    return sum(entry.asked.verb != "watch" and entry.asked.resource != "leases" for entry in server.audit)


def _look_back(day: Day) -> None:
    here = day.here
    for label in (*MADE, "nodes"):
        assert here.there(label) == []
    assert [here.created(label) for label in MADE] == [MACHINE_COUNT] * 3
    for child in here.children.values():
        evicted = Counter(
            entry.asked.name
            for entry in child.writes
            if entry.asked.subresource == "eviction" and entry.code == 201
        )
        assert {name: count for name, count in evicted.items() if count > 1} == {}
        assert child.world.store.items("pods") == []
    finalizers = [item["metadata"]["finalizers"] for _, item in here.management.world.store.items(MACHINES)]
    assert finalizers == [["5spot.finos.org/scheduledmachine"]] * MACHINE_COUNT
    assert not here.broken, "\n".join(here.broken[:20])


@pytest.mark.parametrize("seed", SEEDS)
def test_a_day_comes_to_its_end_whatever_happens(seed: int) -> None:
    try:
        run_virtually(lambda clock: _lived(clock, seed))
    except BaseException as error:
        error.add_note(f"seed {seed}")
        raise


def test_the_same_seed_is_the_same_weather() -> None:
    days = [forecast(seed, faults=FAULTS, begin=5, end=NIGHT, clusters=3) for seed in (1, 1, 2)]
    assert days[0] == days[1] != days[2]
