"""The provider of deploy/examples/third-party: forty lines that know nothing of our code move a machine."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from tests.controlplane.pytest_plugin import StartControlPlane
from tests.controlplane.waiting import wait_until
from tests.live import product
from tests.live.product import ADMINS, ROOT, Process, World, machine

NAMESPACE, USER = "third-party", "test:third-party"
EXAMPLE = ROOT / "deploy" / "examples" / "third-party"
REFERENCE = {"apiVersion": "spotschedules.5spot.finos.org/v1", "kind": "LockSpotSchedule", "name": "desk"}


@pytest.fixture(scope="module")
def world(
    start_control_plane: StartControlPlane,
    control_plane_programs: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[World]:
    """The controller, and the example in the place of our providers; its kind is new to the cluster."""
    plane, folder = start_control_plane(), tmp_path_factory.mktemp("product")
    with product.world(plane, folder) as running:
        product.namespace_with_cluster(running, NAMESPACE, "grid")
        environment = {
            "KUBECONFIG": str(plane.kubeconfig(USER, ADMINS)),
            "PATH": f"{control_plane_programs}{os.pathsep}{os.environ['PATH']}",
        }
        plane.kubectl("apply", "-f", str(EXAMPLE / "crd.yaml"))
        plane.kubectl(
            "wait",
            "--for=condition=Established",
            "--timeout=30s",
            "crd/lockspotschedules.spotschedules.5spot.finos.org",
        )
        line = [sys.executable, str(EXAMPLE / "provider.py"), "0.2"]
        example = Process(line, folder / "third-party.log", environment)
        example.start()
        try:
            yield attrs.evolve(running, provider=example)
        finally:
            example.kill()
    plane.stop()


def test_a_lock_takes_the_machine_away_and_its_end_brings_it_back(world: World, tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    world.apply(
        {
            "apiVersion": REFERENCE["apiVersion"],
            "kind": REFERENCE["kind"],
            "metadata": {"name": "desk", "namespace": NAMESPACE},
            "spec": {"path": str(lock)},
        },
        machine(NAMESPACE, "desk-1", schedule=REFERENCE),
    )
    world.wait_for_phases(NAMESPACE, {"desk-1": "Active"})
    lock.touch()
    world.wait_for_phases(NAMESPACE, {"desk-1": "Inactive"})
    lock.unlink()
    world.wait_for_phases(NAMESPACE, {"desk-1": "Active"})
    # Three answers, three writes: it is quiet in between.
    written = [event for event in world.writes(USER) if event["objectRef"]["resource"] == "lockspotschedules"]
    assert len(written) == 3


def test_a_machine_holds_while_its_provider_is_not_there(world: World, tmp_path: Path) -> None:
    """Nobody answers for an edit; when somebody does, it counts."""
    world.provider.kill()
    lock = tmp_path / "other"
    lock.touch()
    world.patch(NAMESPACE, "lockspotschedules", "desk", {"spec": {"path": str(lock)}})
    wait_until(
        lambda: world.get(NAMESPACE, "lockspotschedules", "desk")["metadata"]["generation"] == 2,
        seconds=10,
        what="the edit is there",
    )
    assert world.phases(NAMESPACE) == {"desk-1": "Active"}
    world.provider.start()
    world.wait_for_phases(NAMESPACE, {"desk-1": "Inactive"})


def test_it_is_no_longer_than_it_is_said_to_be_and_knows_nothing_of_ours() -> None:
    text = (EXAMPLE / "provider.py").read_text()
    assert len([line for line in text.splitlines() if line.strip()]) <= 40
    assert "fivespot" not in text
