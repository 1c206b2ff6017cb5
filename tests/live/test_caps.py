"""Caps on a real API server: how many come up at once, in which order, and what the others say meanwhile."""

import sys
from collections.abc import Iterator

import attrs
import pytest

from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.waiting import wait_until
from tests.live import product
from tests.live.product import ADMINS, CONTROLLER, Process, World, machine

NAMESPACE = "caps"
NAMES = ("low", "middle", "high")


@pytest.fixture(scope="module")
def world(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A controller that brings one machine up at a time, and drains one at a time."""
    folder = tmp_path_factory.mktemp("product")
    with product.world(control_plane, folder) as running:
        running.controller.stop()
        line = [
            *(sys.executable, "-m", "fivespot", "controller", "run", "--allow-local-child"),
            *("--kubeconfig", str(control_plane.kubeconfig(CONTROLLER, ADMINS))),
            *("--max-provisioning", "1", "--max-draining", "1"),
        ]
        capped = Process(line, folder / "capped.log")
        capped.start()
        product.namespace_with_cluster(running, NAMESPACE, "grid")
        running.apply(
            product.closed_now(NAMESPACE),
            *(
                machine(NAMESPACE, name, priority=priority)
                for name, priority in zip(NAMES, (1, 50, 99), strict=True)
            ),
        )
        running.wait_for_phases(NAMESPACE, dict.fromkeys(NAMES, "Inactive"))
        try:
            yield attrs.evolve(running, controller=capped)
        finally:
            capped.stop()


def _order(world: World, verb: str) -> list[str]:
    return [
        event["objectRef"]["name"]
        for event in world.writes(CONTROLLER)
        if event["verb"] == verb
        and event["objectRef"]["resource"] == "machines"
        and event["objectRef"]["namespace"] == NAMESPACE
        and event["responseStatus"]["code"] < 300
    ]


def test_one_at_a_time_comes_up_the_most_urgent_first_and_the_others_say_what_they_wait_for(
    world: World,
) -> None:
    world.apply(product.open_now(NAMESPACE))
    wait_until(
        lambda: "--max-provisioning" in world.get(NAMESPACE, "sm", "low")["status"]["message"],
        seconds=20,
        what="the last one says what it waits for",
    )
    world.wait_for_phases(NAMESPACE, dict.fromkeys(NAMES, "Active"))
    assert _order(world, "create") == ["high", "middle", "low"]
    joined = {
        name: world.get(NAMESPACE, "machines.cluster.x-k8s.io", name)["metadata"]["creationTimestamp"]
        for name in NAMES
    }
    assert joined["high"] <= joined["middle"] <= joined["low"]


def test_one_at_a_time_is_drained_and_a_kill_does_not_wait(world: World) -> None:
    world.patch(NAMESPACE, "sm", "low", {"spec": {"killSwitch": True}})
    world.apply(product.closed_now(NAMESPACE))
    world.wait_for_phases(NAMESPACE, {"high": "Inactive", "middle": "Inactive", "low": "Terminated"})
    gone = _order(world, "delete")
    assert sorted(gone) == sorted(NAMES)
    assert gone.index("high") < gone.index("middle")
    phases = [
        (entry["machine"], entry["phase"])
        for entry in world.controller.logged()
        if entry.get("phase") in ("ShuttingDown", "Inactive")
        and entry["machine"].endswith(("high", "middle"))
    ]
    assert phases[-1] == (f"{NAMESPACE}/middle", "Inactive")
