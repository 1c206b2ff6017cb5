"""Which cluster: the child's kubeconfig is missing, refused, or there at last. Nothing else is ever asked instead."""

import base64
import json
from collections.abc import Iterator

import pytest

from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.waiting import wait_until
from tests.live import product
from tests.live.product import IN_CHILD, World, machine

NAMESPACE = "children"


@pytest.fixture(scope="module")
def world(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The product at work, an open schedule, and no kubeconfig."""
    with product.world(control_plane, tmp_path_factory.mktemp("product")) as running:
        product.namespace_with_cluster(running, NAMESPACE, "grid")
        running.plane.kubectl("delete", "secret", "grid-kubeconfig", "-n", NAMESPACE)
        running.apply(product.open_now(NAMESPACE))
        yield running


def _give(world: World, text: str, name: str) -> None:
    world.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "data": {"value": base64.b64encode(text.encode()).decode()},
        }
    )


def _wait_for_reason(world: World, name: str, reason: str) -> str:
    wait_until(
        lambda: world.condition(NAMESPACE, name, "ChildClusterReachable").get("reason") == reason,
        seconds=40,
        what=f"ChildClusterReachable says {reason}",
    )
    return str(world.condition(NAMESPACE, name, "ChildClusterReachable")["message"])


def test_a_missing_kubeconfig_is_said_and_waited_for(world: World) -> None:
    world.apply(machine(NAMESPACE, "waits"))
    assert f"Secret {NAMESPACE}/grid-kubeconfig: it does not exist" in _wait_for_reason(
        world, "waits", "KubeconfigMissing"
    )
    assert world.phases(NAMESPACE)["waits"] == "Pending"
    assert world.condition(NAMESPACE, "waits", "ChildClusterReachable")["status"] == "Unknown"
    _give(world, world.plane.kubeconfig_text(IN_CHILD, product.ADMINS), "grid-kubeconfig")
    world.wait_for_phases(NAMESPACE, {"waits": "Active"})
    assert world.condition(NAMESPACE, "waits", "ChildClusterReachable")["status"] == "True"


def test_a_kubeconfig_that_would_run_a_program_is_refused_by_name(world: World) -> None:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "https://child.example.com"}}],
        "users": [{"name": "u", "user": {"exec": {"apiVersion": "v1", "command": "/bin/true"}}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    _give(world, json.dumps(config), "runs-a-program")
    world.apply(machine(NAMESPACE, "refused", kubeconfigSecretRef={"name": "runs-a-program"}))
    assert "exec" in _wait_for_reason(world, "refused", "KubeconfigRejected")


def test_a_removal_goes_on_when_its_bound_has_passed_without_a_sight_of_the_node(world: World) -> None:
    """The child cannot be seen: the drain waits for the whole bound, then the Machine goes all the same."""
    world.apply(
        machine(NAMESPACE, "unseen", kubeconfigSecretRef={"name": "nowhere"}, gracefulShutdownTimeout="3s")
    )
    _wait_for_reason(world, "unseen", "KubeconfigMissing")
    wait_until(
        lambda: world.get(NAMESPACE, "machines.cluster.x-k8s.io", "unseen"),
        seconds=20,
        what="its Machine is created",
    )
    world.patch(NAMESPACE, "sm", "unseen", {"spec": {"enabled": False}})
    world.wait_for_phases(NAMESPACE, {"unseen": "Disabled"}, seconds=40)
    assert world.get(NAMESPACE, "machines.cluster.x-k8s.io", "unseen") is None
