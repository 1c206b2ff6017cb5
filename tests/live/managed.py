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


def namespace_with_cluster(running: World, namespace: str, version: str = "v1beta2") -> None:
    """A namespace with a Cluster that Cluster API takes for provisioned; the management cluster is its own child."""
    kubeconfigs = {
        # Cluster API reads the first, and may do anything; 5-Spot reads the second, and may do what its role says.
        f"{CLUSTER}-kubeconfig": ADMINS,
        "for-5spot": (),
    }
    running.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        *(_referred_to(namespace, *kind) for kind in crds.CLUSTERS),
        *(_secret(running, namespace, name, groups) for name, groups in kubeconfigs.items()),
    )
    for _, _, _, plural in crds.CLUSTERS:
        running.plane.kubectl(
            *("patch", plural, CLUSTER, "-n", namespace, "--subresource=status", "--type=merge"),
            *("-p", json.dumps({"status": _PROVISIONED})),
        )
    running.apply(cluster(running.plane, namespace, version))
    wait_until(
        lambda: _initialized(running, namespace),
        seconds=60,
        what=f"Cluster {namespace}/{CLUSTER} is taken for provisioned",
    )


def machine(namespace: str, name: str, **spec: Any) -> dict[str, Any]:
    """A machine of the Cluster on the schedule `nights`, with the kubeconfig of least rights."""
    return product.machine(namespace, name, kubeconfigSecretRef={"name": "for-5spot"}, **spec)


def host(key: str, value: str) -> dict[str, Any]:
    """An `infrastructureSpec` with an annotation."""
    spec: dict[str, Any] = product.machine("", "")["spec"]["infrastructureSpec"]
    return {**spec, "metadata": {"annotations": {key: value}}}


def cluster(plane: ControlPlane, namespace: str, version: str) -> dict[str, Any]:
    """The Cluster in either API version: they refer to other objects in shapes of their own."""
    infrastructure, control_plane = (_reference(namespace, kind, version) for kind in crds.CLUSTERS)
    port = urlsplit(plane.url).port
    return {
        "apiVersion": f"cluster.x-k8s.io/{version}",
        "kind": "Cluster",
        "metadata": {"name": CLUSTER, "namespace": namespace},
        "spec": {
            "controlPlaneEndpoint": {"host": "127.0.0.1", "port": port},
            "infrastructureRef": infrastructure,
            "controlPlaneRef": control_plane,
        },
    }


_PROVISIONED: Final = {
    "initialization": {"provisioned": True, "controlPlaneInitialized": True},
    # Else Cluster API would neither drain nor delete Nodes: it would look for control plane Machines first.
    "externalManagedControlPlane": True,
}


def _referred_to(namespace: str, group: str, version: str, kind: str, _plural: str) -> dict[str, Any]:
    return {
        "apiVersion": f"{group}/{version}",
        "kind": kind,
        "metadata": {"name": CLUSTER, "namespace": namespace},
        "spec": {},
    }


def _reference(namespace: str, kind: crds.Kind, version: str) -> dict[str, str]:
    group, of_group, name, _ = kind
    if version == "v1beta1":
        return {"apiVersion": f"{group}/{of_group}", "kind": name, "name": CLUSTER, "namespace": namespace}
    return {"apiGroup": group, "kind": name, "name": CLUSTER}


def _secret(running: World, namespace: str, name: str, groups: tuple[str, ...]) -> dict[str, Any]:
    text = running.child.kubeconfig_text(IN_CHILD if not groups else "test:child-admin", groups)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "cluster.x-k8s.io/secret",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"cluster.x-k8s.io/cluster-name": CLUSTER},
        },
        "data": {"value": base64.b64encode(text.encode()).decode()},
    }


def _initialized(running: World, namespace: str) -> bool:
    status = running.get(namespace, "clusters.cluster.x-k8s.io", CLUSTER).get("status", {})
    done = status.get("initialization", status)
    return bool(done.get("controlPlaneInitialized") or done.get("controlPlaneReady"))


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
        raise AssertionError(f"{error}: {running.get(namespace, 'sm', name)['status']}") from error


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

    wait_until(said, seconds=20, what=f"Cluster API says Paused={status} of {name}")


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
