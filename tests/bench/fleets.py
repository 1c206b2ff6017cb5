"""A large fleet on a real API server, and a controller process whose figures can be read while it runs."""

import asyncio
import base64
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import attrs
import httpx

from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.resources import NAMESPACES, NODES, SECRETS, Object, Resource
from tests import builders
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.ports import free_ports
from tests.live.product import ADMINS, CONTROLLER, IN_CHILD, PROVIDER, Process
from tests.standins.clusterapi import HOSTS
from tests.standins.clusterapi import MACHINES as CAPI_MACHINES

SM = Resource("5spot.finos.org", "v1beta1", "scheduledmachines", "ScheduledMachine", namespaced=True)
PROVIDERS = Resource(
    "spotschedules.5spot.finos.org",
    "v1alpha1",
    "timebasedspotschedules",
    "TimeBasedSpotSchedule",
    namespaced=True,
)
CLUSTERS = Resource("cluster.x-k8s.io", "v1beta2", "clusters", "Cluster", namespaced=True)
AT_ONCE = 8
"""Requests in flight: a real API server does no more work for more."""
_IDLE = 0.03
"""Seconds of processor time in half a second of somebody who has nothing to do."""
WINDOW = {"windows": [{"days": ["mon-sun"], "start": "20:00", "end": "22:00"}]}


@attrs.frozen(kw_only=True)
class Fleet:
    """So many namespaces, each a cluster, with providers and machines that are spread over them evenly."""

    namespaces: int
    providers: int
    machines: int

    def namespace(self, number: int) -> str:
        return f"floor-{number % self.namespaces}"

    def provider(self, number: int) -> str:
        """The provider of a machine; always in the machine's namespace."""
        return f"nights-{number // self.namespaces % (self.providers // self.namespaces)}"


async def in_parallel(work: Iterable[Callable[[], Awaitable[object]]]) -> None:
    """Do it all, a few at a time."""
    todo = iter(work)

    async def worker() -> None:
        for job in todo:
            await job()

    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))


async def populate(gateway: Gateway, plane: ControlPlane, fleet: Fleet) -> None:
    """Everything that people and Cluster API would have put there; every provider says no."""
    kubeconfig = kubeconfig_of(plane)
    for number in range(fleet.namespaces):
        await add_namespace(gateway, fleet.namespace(number), kubeconfig)
    names = [(fleet.namespace(n), f"nights-{n // fleet.namespaces}") for n in range(fleet.providers)]
    await in_parallel(lambda at=at: add_provider(gateway, *at) for at in names)
    await in_parallel(
        lambda n=n: add_machine(gateway, fleet.namespace(n), f"desk-{n}", fleet.provider(n))
        for n in range(fleet.machines)
    )


def kubeconfig_of(plane: ControlPlane) -> str:
    """What a Secret says about a child that is the same server."""
    return base64.b64encode(plane.kubeconfig_text(IN_CHILD, ADMINS).encode()).decode()


async def add_namespace(gateway: Gateway, name: str, kubeconfig: str) -> None:
    """A namespace with a Cluster `grid` whose child is the same server."""
    await gateway.create(NAMESPACES, None, {"metadata": {"name": name}})
    await gateway.create(CLUSTERS, name, {"metadata": {"name": "grid"}, "spec": {}})
    secret = {"metadata": {"name": "grid-kubeconfig"}, "data": {"value": kubeconfig}}
    await gateway.create(SECRETS, name, secret)


async def add_provider(gateway: Gateway, namespace: str, name: str) -> None:
    """A provider that says no."""
    await gateway.create(PROVIDERS, namespace, {"metadata": {"name": name}, "spec": WINDOW})
    await say(gateway, namespace, name, active=False)


async def say(gateway: Gateway, namespace: str, name: str, *, active: bool) -> Object:
    """What a provider's controller writes."""
    body = {"status": {"active": active}}
    return await gateway.merge_patch(PROVIDERS, namespace, name, body, subresource="status")


async def add_machine(gateway: Gateway, namespace: str, name: str, provider: str) -> None:
    """A machine of realistic size on a provider."""
    body = builders.scheduled_machine(name)
    body["metadata"]["labels"] = {"team": "rates", "floor": namespace}
    body["spec"]["schedule"]["name"] = provider
    body["spec"]["nodeTaints"] = [{"key": "spot", "value": "true", "effect": "NoSchedule"}]
    await gateway.create(SM, namespace, body)


async def create_host(gateway: Gateway, namespace: str, name: str) -> None:
    """An infrastructure object as the controller makes one, by somebody who does nothing else."""
    spec = builders.scheduled_machine(name)["spec"]["infrastructureSpec"]["spec"]
    labels = {"5spot.finos.org/made-by": "a-benchmark", "cluster.x-k8s.io/cluster-name": "grid"}
    await gateway.create(HOSTS, namespace, {"metadata": {"name": name, "labels": labels}, "spec": spec})


async def join(gateway: Gateway, namespace: str, name: str) -> None:
    """What Cluster API and a kubelet add to a Machine that has been created: a provider id, and a Node that is ready."""
    provider_id = f"k0s://{namespace}/{name}"
    node = f"{namespace}-{name}"
    await gateway.create(
        NODES,
        None,
        {
            "metadata": {
                "name": node,
                "labels": {
                    "kubernetes.io/hostname": node,
                    "kubernetes.io/os": "linux",
                    "kubernetes.io/arch": "amd64",
                },
            },
            "spec": {"providerID": provider_id},
            "status": {
                "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
                "nodeInfo": node_info(node),
            },
        },
    )
    await gateway.merge_patch(CAPI_MACHINES, namespace, name, {"spec": {"providerID": provider_id}})
    status = {"phase": "Running", "nodeRef": {"name": node}}
    await gateway.merge_patch(CAPI_MACHINES, namespace, name, {"status": status}, subresource="status")


def node_info(node: str) -> dict[str, str]:
    """What a kubelet says of its host."""
    found = dict.fromkeys(
        (
            "architecture",
            "bootID",
            "containerRuntimeVersion",
            "kernelVersion",
            "kubeProxyVersion",
            "kubeletVersion",
            "machineID",
            "operatingSystem",
            "osImage",
        ),
        "x",
    )
    return {**found, "systemUUID": f"uuid-{node}"}


def first_actions(plane: ControlPlane, namespace: str, flips: Iterable[datetime]) -> list[float]:
    """Seconds from each flip to the first create of the controller in that namespace to reach the server, by its audit log."""
    creates = sorted(
        datetime.fromisoformat(event["requestReceivedTimestamp"])
        for event in plane.audit_events()
        if event["verb"] == "create"
        and event["user"].get("username") == CONTROLLER
        and event.get("objectRef", {}).get("namespace") == namespace
        and event["objectRef"]["resource"] != "events"
        and event["stage"] == "ResponseComplete"
    )
    return [(next(at for at in creates if at > flip) - flip).total_seconds() for flip in flips]


@attrs.frozen
class Running:
    """A controller process, and what can be seen of it from outside."""

    process: Process
    port: int

    @property
    def pid(self) -> int:
        assert self.process.popen is not None
        return self.process.popen.pid

    def memory(self) -> tuple[float, float]:
        """Resident memory in MB, now and at most."""
        lines = dict(
            line.split(":", 1)
            for line in Path(f"/proc/{self.pid}/status").read_text().splitlines()
            if ":" in line
        )
        return tuple(int(lines[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))  # type: ignore[return-value]

    def cpu(self) -> float:
        """Seconds of processor time so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def metrics(self) -> dict[str, float]:
        """Every sample of /metrics, by its name and labels."""
        text = httpx.get(f"http://127.0.0.1:{self.port}/metrics", trust_env=False, timeout=30).text
        pairs = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, _, value in pairs}

    def passes(self) -> float:
        """Passes over machines so far."""
        return sum(v for k, v in self.metrics().items() if k.startswith("fivespot_reconciliations_total"))

    def wait(self, done: Callable[[dict[str, float]], bool], seconds: float = 600) -> float:
        """Wait until the metrics say so; returns the seconds that it took."""
        begun = time.monotonic()
        while True:
            try:
                if done(self.metrics()):
                    return time.monotonic() - begun
            except httpx.HTTPError:
                pass
            if time.monotonic() - begun > seconds:
                raise TimeoutError(self.process.log.read_text()[-2000:])
            time.sleep(0.1)

    def at_rest(self, seconds: float = 600) -> None:
        """Wait until it has used no processor to speak of for two seconds: to ask it would be something to do."""
        begun = time.monotonic()
        before, quiet = self.cpu(), 0
        while quiet < 4:
            time.sleep(0.5)
            now = self.cpu()
            quiet = quiet + 1 if now - before <= _IDLE else 0
            before = now
            if time.monotonic() - begun > seconds:
                raise TimeoutError(self.process.log.read_text()[-2000:])


@contextmanager
def controller(plane: ControlPlane, folder: Path, *options: str) -> Iterator[Running]:
    """The machine controller as a process of its own, for as long as the block."""
    line = ("controller", "run", "--allow-local-child")
    with _running(plane, folder, CONTROLLER, *line, *options) as found:
        yield found


@contextmanager
def provider(plane: ControlPlane, folder: Path, *options: str) -> Iterator[Running]:
    """The controller of the schedules, likewise."""
    with _running(plane, folder, PROVIDER, "provider", "run", "time-based", *options) as found:
        yield found


@contextmanager
def _running(plane: ControlPlane, folder: Path, user: str, *command: str) -> Iterator[Running]:
    (port,) = free_ports(1)
    line = [
        *(sys.executable, "-m", "fivespot", *command, "--kubeconfig", str(plane.kubeconfig(user, ADMINS))),
        *("--metrics-port", str(port), "--bind-address", "127.0.0.1", "--log-level", "warning"),
    ]
    running = Running(Process(line, folder / f"{user.partition(':')[2]}.log"), port)
    running.process.start()
    try:
        yield running
    finally:
        running.process.stop()
