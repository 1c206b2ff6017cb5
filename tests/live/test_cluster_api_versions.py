"""Cluster API that comes late, speaks an old version, is upgraded, and is taken away, while the controller runs."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.clusterapi.manager import BOTH, ClusterApi
from tests.clusterapi.pytest_plugin import MakeClusterApi
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.pytest_plugin import StartControlPlane
from tests.controlplane.waiting import wait_until
from tests.live import managed, product
from tests.live.managed import BOOTSTRAPS, HOSTS, MACHINES, machine
from tests.live.product import CONTROLLER, IN_CHILD, World
from tests.standins.providers import HOST, NEVER_JOINS

OLD, NEW = BOTH


@pytest.fixture(scope="module")
def plane(start_control_plane: StartControlPlane) -> Iterator[ControlPlane]:
    """A cluster of its own: its kinds come and go."""
    with start_control_plane() as running:
        managed.install(running)
        yield running


@pytest.fixture(scope="module")
def api(plane: ControlPlane, make_cluster_api: MakeClusterApi) -> Iterator[ClusterApi]:
    """Cluster API, not there yet."""
    with make_cluster_api(plane) as made:
        yield made


@pytest.fixture(scope="module")
def world(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The product at work, without Cluster API."""
    with managed.world(plane, tmp_path_factory.mktemp("product")) as running:
        yield running


def test_without_cluster_api_the_controller_waits_and_goes_on_when_it_comes(
    world: World, api: ClusterApi
) -> None:
    namespace, name = "late", "late-1"
    world.plane.kubectl("create", "namespace", namespace)
    world.apply(product.open_now(namespace), machine(namespace, name))
    message = managed.wait_for_reason(world, namespace, name, "ReferencesInvalid")
    assert "Machine" in message
    assert world.get(namespace, HOSTS) == world.get(namespace, BOOTSTRAPS) == []
    api.install()
    api.start()
    managed.namespace_with_cluster(world, namespace)
    # A kind that is not there is looked for every half a minute.
    world.wait_for_phases(namespace, {name: "Active"}, seconds=90)
    assert _created_in(world, name) == NEW
    managed.close_schedule(world, namespace, name)


def test_where_only_the_old_version_is_served_a_machine_lives_in_it_and_an_upgrade_changes_nothing(
    world: World, api: ClusterApi
) -> None:
    namespace, name = "old", "old-1"
    managed.namespace_with_cluster(world, namespace)
    api.install(served=[OLD])
    world.apply(product.open_now(namespace), machine(namespace, name))
    found = wait_until(
        lambda: _in(OLD, world, namespace, name), seconds=60, what="the Machine is there", every=0.2
    )
    assert _created_in(world, name) == OLD
    _it_refers_to_its_host_as_the_old_version_does(found, namespace)

    # Cluster API's manager speaks the new version only. Our controller looks for a better one every five minutes.
    api.install()
    world.wait_for_phases(namespace, {name: "Active"})
    found = world.get(namespace, MACHINES, name)
    reference = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "RemoteMachine", "name": name}
    assert found["spec"]["infrastructureRef"] == reference
    assert found["spec"]["deletion"] == {
        "nodeDrainTimeoutSeconds": 300,
        "nodeVolumeDetachTimeoutSeconds": 300,
        "nodeDeletionTimeoutSeconds": 300,
    }


def _it_refers_to_its_host_as_the_old_version_does(found: dict[str, Any], namespace: str) -> None:
    name, spec = found["metadata"]["name"], found["spec"]
    assert spec["infrastructureRef"] == {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "RemoteMachine",
        "name": name,
        "namespace": namespace,
    }
    assert spec["bootstrap"]["configRef"] == {
        "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
        "kind": "K0sWorkerConfig",
        "name": name,
        "namespace": namespace,
    }
    bounds = ("nodeDrainTimeout", "nodeVolumeDetachTimeout", "nodeDeletionTimeout")
    assert [spec[bound] for bound in bounds] == ["5m0s"] * 3


def _in(version: str, world: World, namespace: str, name: str) -> Any:
    return world.get(namespace, f"machines.{version}.cluster.x-k8s.io", name)


def _created_in(world: World, name: str) -> str:
    """The version in which our controller created the Machine of a name, last."""
    created = [
        event["objectRef"]
        for event in world.writes(CONTROLLER)
        if event["verb"] == "create" and event["objectRef"]["resource"] == "machines"
    ]
    return [target["apiVersion"] for target in created if target.get("name") == name][-1]


def test_a_pause_that_ends_is_told_in_the_old_version_too(world: World) -> None:
    """The controller still speaks the old version, which has this condition elsewhere."""
    namespace, name = "old", "old-1"
    clusters = "clusters.cluster.x-k8s.io"
    world.patch(namespace, clusters, managed.CLUSTER, {"spec": {"paused": True}})
    managed.annotate(world, namespace, MACHINES, name, "example.com/note", "look")
    managed.wait_for_pause(world, namespace, name)
    world.patch(namespace, clusters, managed.CLUSTER, {"spec": {"paused": False}})
    managed.wait_for_pause(world, namespace, name, paused=False)


def test_a_failure_for_good_is_seen_in_the_old_version_too(world: World) -> None:
    namespace, name = "old", "old-2"
    world.apply(machine(namespace, name, infrastructureSpec=managed.host(HOST, NEVER_JOINS)))
    wait_until(lambda: world.get(namespace, HOSTS, name), seconds=30, what="the host's object is there")
    managed.set_status(world, namespace, HOSTS, name, {"failureReason": "CreateError"})
    world.wait_for_phases(namespace, {name: "Error"})
    assert _created_in(world, name) == OLD
    assert _in(OLD, world, namespace, name)["status"]["failureReason"] == "CreateError"
    world.plane.kubectl("delete", "sm", name, "-n", namespace, "--timeout=60s")


def test_when_the_old_version_is_withdrawn_the_controller_goes_on_in_the_new_one(
    world: World, api: ClusterApi
) -> None:
    namespace, name = "old", "old-1"
    before = managed.uids(world, namespace, name)
    api.install(served=[NEW])
    managed.close_schedule(world, namespace, name)
    managed.open_schedule(world, namespace, name)
    assert not {*before.values(), None} & {*managed.uids(world, namespace, name).values()}
    assert _created_in(world, name) == NEW
    api.install()


def test_when_cluster_api_is_taken_away_everything_is_held(world: World, api: ClusterApi) -> None:
    """Not served any more says nothing about Machines: they are neither gone nor to be created again."""
    namespace, name = "old", "old-1"
    before = managed.uids(world, namespace, name)
    begun = datetime.now(UTC)
    api.install(served=[])
    managed.wait_for_reason(world, namespace, name, "ReferencesInvalid")
    world.apply(product.closed_now(namespace))
    wait_until(
        lambda: world.get(namespace, "sm", name)["status"]["inSchedule"] is False,
        seconds=30,
        what="the schedule has closed",
    )
    assert world.writes(IN_CHILD, since=begun) == []
    changed = {(e["objectRef"]["resource"], e["verb"]) for e in world.writes(CONTROLLER, since=begun)}
    assert changed == {("scheduledmachines", "patch")}
    assert world.controller.popen is not None
    assert world.controller.popen.poll() is None

    api.install()
    # A kind that is not there is looked for every half a minute.
    world.wait_for_phases(namespace, {name: "Inactive"}, seconds=90)
    managed.require_nothing_left(world, namespace, name)
    assert before[MACHINES] is not None
