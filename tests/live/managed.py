"""The product under a real Cluster API, with exactly the rights of deploy/: what has to be there, and what a Cluster needs."""

import base64
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.waiting import wait_until
from tests.live import product
from tests.live.product import ADMINS, CONTROLLER, IN_CHILD, PROVIDER, ROOT, World
from tests.standins import crds

CLUSTER: Final = "grid"
CLUSTERS: Final = "clusters.cluster.x-k8s.io"
MACHINES: Final = "machines.cluster.x-k8s.io"
BOOTSTRAPS, HOSTS = "k0sworkerconfigs", "remotemachines"
CREATED: Final = (MACHINES, BOOTSTRAPS, HOSTS)
USERS: Final = (CONTROLLER, IN_CHILD, PROVIDER)

_DEPLOY: Final = ROOT / "deploy"
_BINDINGS: Final = (
    ("clusterrolebinding", "clusterrole", "5spot-controller", CONTROLLER),
    ("rolebinding", "role", "5spot-controller", CONTROLLER),
    ("clusterrolebinding", "clusterrole", "5spot-provider", PROVIDER),
    ("rolebinding", "role", "5spot-provider", PROVIDER),
    ("clusterrolebinding", "clusterrole", "5spot-controller-in-child", IN_CHILD),
)


def install(plane: ControlPlane) -> None:
    """Everything but Cluster API itself: the kinds of its providers, ours, and our rights."""
    crds.install(plane, (*crds.PROVIDERS, *crds.CLUSTERS))
    product.install(plane)
    for part in ("controller", "providers"):
        plane.kubectl("apply", "-k", str(_DEPLOY / part))
    plane.kubectl("apply", "-f", str(_DEPLOY / "child-cluster" / "rbac.yaml"))
    for binding, of, role, user in _BINDINGS:
        name = f"{role}-{user.partition(':')[2]}"
        plane.kubectl("create", binding, name, f"--{of}={role}", f"--user={user}", "-n", "5spot-system")


@contextlib.contextmanager
def world(plane: ControlPlane, folder: Path) -> Iterator[World]:
    """Our processes at work, and stand-ins for the providers; stopped at the end. `install` comes first."""
    with product.processes(plane, folder, stand_in="tests.standins.providers", groups=()) as running:
        yield running


def namespaces_with_clusters(running: World, *namespaces: str) -> None:
    """In each a Cluster that Cluster API takes for provisioned; the management cluster is its own child."""
    running.apply(*(document for namespace in namespaces for document in _with_cluster(running, namespace)))
    provisioned = "--for=jsonpath={.status.initialization.controlPlaneInitialized}=true"
    running.plane.kubectl("wait", CLUSTERS, "--all", "-A", provisioned, "--timeout=60s")


def _with_cluster(running: World, namespace: str) -> Iterator[dict[str, Any]]:
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    # Cluster API reads the first, and may do anything; 5-Spot reads the second, and may do what its role says.
    yield _secret(
        namespace, f"{CLUSTER}-kubeconfig", running.child.kubeconfig_text("test:child-admin", ADMINS)
    )
    yield _secret(namespace, "for-5spot", running.child.kubeconfig_text(IN_CHILD))
    meta = {"name": CLUSTER, "namespace": namespace}
    for group, version, kind, _ in crds.CLUSTERS:
        yield {"apiVersion": f"{group}/{version}", "kind": kind, "metadata": meta, "status": _PROVISIONED}
    infrastructure, control_plane = (
        {"apiGroup": group, "kind": kind, "name": CLUSTER} for group, _, kind, _ in crds.CLUSTERS
    )
    yield {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": meta,
        "spec": {
            "controlPlaneEndpoint": {"host": "127.0.0.1", "port": urlsplit(running.child.url).port},
            "infrastructureRef": infrastructure,
            "controlPlaneRef": control_plane,
        },
    }


_PROVISIONED: Final = {
    "initialization": {"provisioned": True, "controlPlaneInitialized": True},
    # Else Cluster API would neither drain nor delete Nodes: it would look for control plane Machines first.
    "externalManagedControlPlane": True,
}


def _secret(namespace: str, name: str, kubeconfig: str) -> dict[str, Any]:
    labels = {"cluster.x-k8s.io/cluster-name": CLUSTER}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "cluster.x-k8s.io/secret",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "data": {"value": base64.b64encode(kubeconfig.encode()).decode()},
    }


def machine(namespace: str, name: str, **spec: Any) -> dict[str, Any]:
    """A machine of the Cluster on the schedule `nights`, with the kubeconfig of least rights."""
    return product.machine(namespace, name, kubeconfigSecretRef={"name": "for-5spot"}, **spec)


def host(key: str, value: str) -> dict[str, Any]:
    """An `infrastructureSpec` with an annotation."""
    spec: dict[str, Any] = product.machine("", "")["spec"]["infrastructureSpec"]
    return {**spec, "metadata": {"annotations": {key: value}}}


def active(running: World, namespace: str, **spec: Any) -> str:
    """The name of a machine of that namespace, created and Active."""
    name = f"{namespace}-1"
    running.apply(product.open_now(namespace), machine(namespace, name, **spec))
    running.wait_for_phases(namespace, {name: "Active"})
    return name


def open_schedule(running: World, namespace: str, *names: str) -> None:
    """Open the schedule, and wait until these machines are Active."""
    running.apply(product.open_now(namespace))
    running.wait_for_phases(namespace, dict.fromkeys(names, "Active"))


def close_schedule(running: World, namespace: str, *names: str) -> None:
    """Close the schedule, and wait until these machines are out and nothing of them is left."""
    running.apply(product.closed_now(namespace))
    running.wait_for_phases(namespace, dict.fromkeys(names, "Inactive"))
    for name in names:
        require_nothing_left(running, namespace, name)


def require_nothing_left(running: World, namespace: str, name: str) -> None:
    """Neither the three objects of a machine nor its Node."""
    left = {kind: running.get(namespace, kind, name) for kind in (*CREATED, "node")}
    assert not any(left.values()), left


def wait_for_reason(running: World, namespace: str, name: str, reason: str) -> str:
    """Wait until a machine is not Ready for this reason, and answer the message."""
    try:
        return wait_until(
            lambda: _message(running.condition(namespace, name, "Ready"), reason),
            seconds=60,
            what=f"{name} says {reason}",
            every=0.2,
        )
    except TimeoutError as error:
        raise AssertionError(f"{error}: {running.get(namespace, 'sm', name).get('status')}") from error


def _message(condition: dict[str, Any], reason: str) -> str:
    return str(condition["message"]) if condition.get("reason") == reason else ""


def event_reasons(running: World, namespace: str, name: str) -> list[str]:
    """The reasons of the Events about a machine."""
    return [
        event["reason"]
        for event in running.get(namespace, "events.events.k8s.io")
        if event["regarding"].get("name") == name and event["regarding"]["kind"] == "ScheduledMachine"
    ]


def wait_for_event(running: World, namespace: str, name: str, reason: str) -> None:
    """Events are published on the side."""
    wait_until(
        lambda: reason in event_reasons(running, namespace, name),
        seconds=20,
        what=f"Event {reason}",
        every=0.2,
    )


def uids(running: World, namespace: str, name: str) -> dict[str, str | None]:
    """Of the three objects and the Node; None for one that is not there."""
    found = {kind: running.get(namespace, kind, name) for kind in (*CREATED, "node")}
    return {kind: body["metadata"]["uid"] if body else None for kind, body in found.items()}


def wait_for_going(running: World, namespace: str, kind: str, name: str) -> None:
    """Wait until an object is being deleted."""
    wait_until(
        lambda: "deletionTimestamp" in (running.get(namespace, kind, name) or {"metadata": {}})["metadata"],
        seconds=30,
        what=f"{kind} {name} is being deleted",
    )


def wait_until_out(running: World, namespace: str, name: str) -> None:
    """Wait until a machine's status knows of no Machine any more."""
    wait_until(
        lambda: not running.get(namespace, "sm", name)["status"].get("machineRef"),
        seconds=60,
        what=f"{name} is out",
        every=0.2,
    )


def wait_for_pause(running: World, namespace: str, name: str, *, paused: bool = True) -> None:
    """Wait until Cluster API says of a Machine that it is paused, or is not."""
    status = "True" if paused else "False"

    def said() -> bool:
        conditions = running.get(namespace, MACHINES, name)["status"].get("conditions", [])
        return any((entry["type"], entry["status"]) == ("Paused", status) for entry in conditions)

    # Whenever the served versions have changed, its informers look again after up to half a minute (client-go's back-off).
    wait_until(said, seconds=90, what=f"Cluster API says Paused={status} of {name}")


def set_status(running: World, namespace: str, kind: str, name: str, status: dict[str, Any]) -> None:
    """Merge into the status of an object, as its controller would."""
    patch = json.dumps({"status": status})
    running.plane.kubectl(
        *("patch", kind, name, "-n", namespace, "--subresource=status", "--type=merge", "-p", patch)
    )


def annotate(running: World, namespace: str, kind: str, name: str, key: str, value: str | None) -> None:
    """Set an annotation; None takes it off."""
    running.patch(namespace, kind, name, {"metadata": {"annotations": {key: value}}})


def pod(namespace: str, name: str, node: str) -> dict[str, Any]:
    """A pod that runs on a Node."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "image": "none"}],
            "terminationGracePeriodSeconds": 5,
            "tolerations": [{"operator": "Exists"}],
        },
    }
