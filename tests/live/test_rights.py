"""The shipped rights are enough: the product under exactly the ServiceAccounts and roles of deploy/."""

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml

from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.pytest_plugin import StartControlPlane
from tests.controlplane.waiting import wait_until
from tests.live import product
from tests.live.product import IN_CHILD, ROOT, Process, World, machine

NAMESPACE = "rights"
DEPLOY = ROOT / "deploy"
ACCOUNTS = {
    "5spot-controller": ("controller", "run", "--allow-local-child"),
    "5spot-provider": ("provider", "run"),
}


def _kubeconfig(plane: ControlPlane, account: str, folder: Path) -> Path:
    """A kubeconfig with a token of a ServiceAccount, and nothing else."""
    config = yaml.safe_load(plane.kubeconfig_text(account))
    token = plane.kubectl("create", "token", account, "-n", "5spot-system").strip()
    config["users"][0]["user"] = {"token": token}
    path = folder / f"{account}.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


@pytest.fixture(scope="module")
def world(
    start_control_plane: StartControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """Controller and providers with the rights of deploy/, in the child cluster too."""
    plane, folder = start_control_plane(), tmp_path_factory.mktemp("product")
    with product.world(plane, folder) as running:
        running.controller.stop()
        running.provider.stop()
        for part in ("controller", "providers"):
            plane.kubectl("apply", "-k", str(DEPLOY / part))
        plane.kubectl("apply", "-f", str(DEPLOY / "child-cluster" / "rbac.yaml"))
        # Whoever the child's kubeconfig names is no administrator here, as everywhere else in these tests.
        bound = ("--clusterrole=5spot-controller-in-child", f"--user={IN_CHILD}")
        plane.kubectl("create", "clusterrolebinding", "in-child", *bound)
        processes = {
            account: Process(
                [
                    *(sys.executable, "-m", "fivespot", *command),
                    *("--kubeconfig", str(_kubeconfig(plane, account, folder))),
                ],
                folder / f"{account}.log",
            )
            for account, command in ACCOUNTS.items()
        }
        for process in processes.values():
            process.start()
        product.namespace_with_cluster(running, NAMESPACE, "grid", child_groups=())
        try:
            yield attrs.evolve(
                running, controller=processes["5spot-controller"], provider=processes["5spot-provider"]
            )
        finally:
            for process in processes.values():
                process.stop()
    plane.stop()


def test_a_machine_comes_is_drained_and_goes_and_nothing_is_forbidden(world: World) -> None:
    taint = {"key": "example.com/lent", "value": "true", "effect": "NoSchedule"}
    world.apply(
        product.open_now(NAMESPACE),
        machine(NAMESPACE, "box-1", nodeTaints=[taint]),
        machine(NAMESPACE, "box-2"),
    )
    world.wait_for_phases(NAMESPACE, {"box-1": "Active", "box-2": "Active"})
    node = world.get(NAMESPACE, "sm", "box-1")["status"]["nodeRef"]["name"]
    wait_until(
        lambda: any(
            t["key"] == taint["key"] for t in world.get("default", "node", node)["spec"].get("taints", [])
        ),
        seconds=20,
        what="the Node is tainted",
    )
    world.plane.kubectl(
        "run", "work", "--image=x", "-n", NAMESPACE, f'--overrides={{"spec":{{"nodeName":"{node}"}}}}'
    )
    wait_until(
        lambda: world.get(NAMESPACE, "pod", "work")["status"]["phase"] == "Running",
        seconds=20,
        what="a pod runs",
    )
    world.patch(NAMESPACE, "sm", "box-2", {"spec": {"killSwitch": True}})
    world.apply(product.closed_now(NAMESPACE))
    world.wait_for_phases(NAMESPACE, {"box-1": "Inactive", "box-2": "Terminated"})
    assert world.get(NAMESPACE, "pod", "work") is None
    world.plane.kubectl("delete", "sm", "--all", "-n", NAMESPACE, "--timeout=30s")
    users = (*(f"system:serviceaccount:5spot-system:{account}" for account in ACCOUNTS), IN_CHILD)
    refused = [
        (event["user"]["username"], event["verb"], event.get("objectRef"))
        for event in world.plane.audit_events()
        if event["user"].get("username") in users
        and event.get("responseStatus", {}).get("code") in (401, 403)
    ]
    assert refused == []
    events = world.plane.kubectl("get", "events.events.k8s.io", "-n", NAMESPACE, "-o", "name")
    assert "box-1" in events


@attrs.frozen
class Missing:
    """A verb that is taken away, and whether it is missed when a machine goes, or when it comes."""

    role: str
    resource: str
    verb: str
    closing: bool

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}"


MISSING = (
    Missing("5spot-controller", "machines", "create", closing=False),
    Missing("5spot-controller", "machines", "watch", closing=False),
    Missing("5spot-controller", "machines", "delete", closing=True),
    Missing("5spot-controller-in-child", "pods/eviction", "create", closing=True),
)
"""A sample: tests/faults takes every single one away."""


@pytest.mark.parametrize("missing", MISSING, ids=str)
def test_without_one_right_it_is_said_which_and_all_goes_on_once_it_is_back(
    world: World, missing: Missing
) -> None:
    namespace = f"without-{missing.verb}-{missing.resource.replace('/', '-')}"
    product.namespace_with_cluster(world, namespace, "grid", child_groups=())
    if missing.closing:
        world.apply(product.open_now(namespace), machine(namespace, namespace))
        world.wait_for_phases(namespace, {namespace: "Active"})
        node = world.get(namespace, "sm", namespace)["status"]["nodeRef"]["name"]
        overrides = f'--overrides={{"spec":{{"nodeName":"{node}"}}}}'
        world.plane.kubectl("run", "work", "--image=x", "-n", namespace, overrides)
    with without(world, missing):
        if missing.closing:
            world.apply(product.closed_now(namespace))
        else:
            world.apply(product.open_now(namespace), machine(namespace, namespace))
        said = f'grant verb "{missing.verb}" on resource "{missing.resource}"'
        wait_until(
            lambda: (
                said
                in str(world.get(namespace, "sm", namespace).get("status", {}).get("conditions")).replace(
                    "\\", ""
                )
            ),
            seconds=60,
            what=said,
        )
    world.wait_for_phases(namespace, {namespace: "Inactive" if missing.closing else "Active"}, seconds=120)


@contextlib.contextmanager
def without(world: World, missing: Missing) -> Iterator[None]:
    """A controller that has been started without a right, which it is given at the end."""
    role = json.loads(world.plane.kubectl("get", "clusterrole", missing.role, "-o", "json"))
    narrowed = (
        {**rule, "verbs": [verb for verb in rule["verbs"] if verb != missing.verb]}
        if missing.resource in rule["resources"]
        else rule
        for rule in role["rules"]
    )
    rules = [rule for rule in narrowed if rule["verbs"]]

    def grant(granted: list[dict[str, Any]]) -> None:
        patch = json.dumps({"rules": granted})
        world.plane.kubectl("patch", "clusterrole", missing.role, "--type=merge", "-p", patch)

    grant(rules)
    try:
        world.crash_controller()
        yield
    finally:
        grant(role["rules"])
