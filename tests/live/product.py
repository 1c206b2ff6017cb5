"""The product's own processes, and short ways to look at a cluster, for the live tests."""

import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs

from fivespot.core.names import SYSTEM_NAMESPACE
from tests import builders
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.waiting import wait_until
from tests.standins import crds
from tests.standins.inthread import InThread
from tests.standins.kubelets import Hosts

ROOT = Path(__file__).parents[2]
CONTROLLER, PROVIDER, STAND_IN = "test:controller", "test:provider", "test:stand-in"
IN_CHILD = "test:controller-in-child"
"""Who the controller is in a child cluster: its kubeconfig says so."""
ADMINS = ("system:masters",)
PATIENCE = 60.0


@attrs.define
class Process:
    """One of our commands, running; its log is in a file."""

    command: Sequence[str]
    log: Path
    environment: Mapping[str, str] = attrs.field(factory=dict)
    popen: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        """Start it, the log going on where it was."""
        with self.log.open("ab") as log:
            self.popen = subprocess.Popen(
                self.command,
                stdout=log,
                stderr=log,
                cwd=self.log.parent,
                env=os.environ | {"PYTHONPATH": str(ROOT)} | dict(self.environment),
            )

    def logged(self) -> list[dict[str, Any]]:
        """What it has logged: JSON, since no terminal reads it. Its last words are for people, and not among it."""
        lines = self.log.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        assert self.popen is not None
        self.popen.kill()
        self.popen.wait()

    def stop(self) -> int:
        """SIGTERM, and the exit status."""
        assert self.popen is not None
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGTERM)
        return self.popen.wait(timeout=20)


@attrs.frozen
class World:
    """A management cluster with everything that 5-Spot needs, its child cluster, and the processes.

    Unless a test brings a second control plane, the management cluster is its own child.
    """

    plane: ControlPlane
    folder: Path
    controller: Process
    provider: Process
    stand_in: Process | InThread
    child: ControlPlane = attrs.field(default=attrs.Factory(lambda self: self.plane, takes_self=True))

    @property
    def in_child(self) -> "World":
        """The same, looking at the child cluster."""
        return attrs.evolve(self, plane=self.child)

    def apply(self, *documents: Mapping[str, Any]) -> None:
        """Apply documents as a user would."""
        body = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(documents)})
        self.plane.kubectl("apply", "-f", "-", input=body)

    def get(self, namespace: str, kind: str, name: str | None = None) -> Any:
        """An object, or all items of a kind; None when there is none of that name."""
        arguments = [
            "get",
            kind,
            *([name] if name else []),
            "-n",
            namespace,
            "-o",
            "json",
            "--ignore-not-found",
        ]
        text = self.plane.kubectl(*arguments)
        found = json.loads(text) if text.strip() else None
        if name is None:
            return found["items"] if found else []
        return found

    def patch(self, namespace: str, kind: str, name: str, patch: Mapping[str, Any]) -> None:
        """Merge patch as a user would."""
        self.plane.kubectl("patch", kind, name, "-n", namespace, "--type=merge", "-p", json.dumps(patch))

    def phases(self, namespace: str) -> dict[str, str]:
        """The phase of each machine."""
        return {
            sm["metadata"]["name"]: sm.get("status", {}).get("phase", "") for sm in self.get(namespace, "sm")
        }

    def wait_for_phases(self, namespace: str, wanted: Mapping[str, str], seconds: float = PATIENCE) -> None:
        """Wait until the machines have these phases."""
        what = f"phases {dict(wanted)}"
        try:
            wait_until(
                lambda: self.phases(namespace).items() >= wanted.items(),
                seconds=seconds,
                what=what,
                every=0.2,
            )
        except TimeoutError as error:
            raise AssertionError(
                f"{what}, but {self.phases(namespace)}\n{self.controller.log.read_text()[-4000:]}"
            ) from error

    def condition(self, namespace: str, name: str, of_type: str) -> dict[str, Any]:
        """A condition of a machine; empty when it has none of that type."""
        found = self.get(namespace, "sm", name) or {}
        entries = found.get("status", {}).get("conditions", [])
        return next((entry for entry in entries if entry["type"] == of_type), {})

    def crash_controller(self) -> None:
        """Kill the controller, and start it again as if its Lease had expired: what it does then is of interest."""
        self.controller.kill()
        self.plane.kubectl("delete", "lease", "5spot-leader", "-n", SYSTEM_NAMESPACE, "--ignore-not-found")
        self.controller.start()

    def writes(self, *users: str, since: datetime | None = None) -> list[dict[str, Any]]:
        """What these users wrote, from the audit log, in order; Events and the renewal of Leases left out."""
        changes = ("create", "update", "patch", "delete")
        return [event for event in self.requests(*users, since=since) if event["verb"] in changes]

    def requests(self, *users: str, since: datetime | None = None) -> list[dict[str, Any]]:
        """What these users read or wrote, and the ends of what they watched; Events and Leases left out."""
        start = f"{since:%Y-%m-%dT%H:%M:%S.%f}Z" if since is not None else ""
        return [
            event
            for event in self.plane.audit_events()
            if event["user"].get("username") in users  # a request that nobody made has none
            and event.get("objectRef", {}).get("resource") not in ("events", "leases")
            and event["stage"] == "ResponseComplete"
            and event["requestReceivedTimestamp"] >= start
        ]


def install(plane: ControlPlane) -> None:
    """What has to be there before our processes: our kinds, and the namespace of their Leases."""
    plane.kubectl("apply", "-f", str(ROOT / "deploy" / "crds"))
    plane.kubectl("wait", "--for=condition=Established", "--timeout=30s", "crd", "-l", "!none")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}}
    plane.kubectl("apply", "-f", "-", input=json.dumps(namespace))


@contextlib.contextmanager
def world(
    plane: ControlPlane, folder: Path, child: ControlPlane | None = None, hosts: Hosts | None = None
) -> Iterator[World]:
    """Everything installed and running, the Nodes in `child` if there is one; stopped at the end.

    With `hosts` the Nodes are real ones.
    """
    crds.install(plane)
    install(plane)
    with processes(plane, folder, child, hosts=hosts) as running:
        yield running


@contextlib.contextmanager
def processes(
    plane: ControlPlane,
    folder: Path,
    child: ControlPlane | None = None,
    *,
    stand_in: str = "tests.standins.clusterapi",
    hosts: Hosts | None = None,
    groups: Sequence[str] = ADMINS,
) -> Iterator[World]:
    """Our processes, in these groups, and a stand-in, where all that they need is installed; stopped at the end."""
    child = child or plane

    def ours(user: str, *command: str) -> Process:
        kubeconfig = plane.kubeconfig(user, groups)
        line = [sys.executable, "-m", *command, "--kubeconfig", str(kubeconfig)]
        return Process(line, folder / f"{user.partition(':')[2]}.log")

    running = World(
        plane,
        folder,
        ours(CONTROLLER, "fivespot", "controller", "run", "--allow-local-child"),
        ours(PROVIDER, "fivespot", "provider", "run", "time-based"),
        _stand_in(stand_in, plane, child, folder, hosts),
        child,
    )
    all_of_them = (running.controller, running.provider, running.stand_in)
    for process in all_of_them:
        process.start()
    try:
        yield running
    finally:
        for process in all_of_them:
            process.stop()


def _stand_in(
    module: str, plane: ControlPlane, child: ControlPlane, folder: Path, hosts: Hosts | None
) -> Process | InThread:
    identities = [cluster.kubeconfig(STAND_IN, ADMINS) for cluster in (plane, child)]
    if hosts is not None:
        # In this process, where the tests have the hosts at hand.
        return InThread(*identities, hosts)
    return Process([sys.executable, "-m", module, *map(str, identities)], folder / "stand-in.log")


def namespace_with_cluster(
    running: World, namespace: str, cluster: str, child_groups: Sequence[str] = ADMINS
) -> None:
    """A namespace with a Cluster whose kubeconfig points at the child, for a user in these groups."""
    text = running.child.kubeconfig_text(IN_CHILD, child_groups)
    running.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Cluster",
            "metadata": {"name": cluster, "namespace": namespace},
            "spec": {},
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": f"{cluster}-kubeconfig", "namespace": namespace},
            "data": {"value": base64.b64encode(text.encode()).decode()},
        },
    )


def machine(namespace: str, name: str, **spec: Any) -> dict[str, Any]:
    """A machine of cluster `grid` on the schedule `nights`."""
    made = builders.scheduled_machine(name, **spec)
    made["metadata"]["namespace"] = namespace
    return made


def schedule(namespace: str, opens: datetime, closes: datetime) -> dict[str, Any]:
    """A TimeBasedSpotSchedule `nights` with one window every day, to the minute, in UTC."""
    window = {"days": ["mon-sun"], "start": f"{opens:%H:%M}", "end": f"{closes:%H:%M}"}
    return {
        "apiVersion": "spotschedules.5spot.finos.org/v1alpha1",
        "kind": "TimeBasedSpotSchedule",
        "metadata": {"name": "nights", "namespace": namespace},
        "spec": {"windows": [window]},
    }


def open_now(namespace: str) -> dict[str, Any]:
    """A schedule that has been open for an hour, and will be for more."""
    now = datetime.now(UTC)
    return schedule(namespace, now - timedelta(hours=1), now + timedelta(hours=2))


def closed_now(namespace: str) -> dict[str, Any]:
    """A schedule that opens in two hours."""
    now = datetime.now(UTC)
    return schedule(namespace, now + timedelta(hours=2), now + timedelta(hours=3))


def next_full_minute(at_least: float) -> datetime:
    """The first full minute that is at least so many seconds away."""
    now = datetime.now(UTC) + timedelta(seconds=at_least)
    return now.replace(second=0, microsecond=0) + timedelta(minutes=1)
