"""Cluster API that comes late, speaks an old version, is upgraded, and is taken away; a fleet restored from a backup.

The tests go in order: each finds Cluster API, and the machine in the namespace `old`, as the one before has left them.
"""

import contextlib
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
from tests.live.backups import Backup
from tests.live.managed import BOOTSTRAPS, CLUSTER, CLUSTERS, CREATED, HOSTS, MACHINES, machine
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


@contextlib.contextmanager
def _served(api: ClusterApi, *versions: str) -> Iterator[None]:
    """Only these versions are served for a while; then both are again."""
    api.install(served=versions)
    try:
        yield
    finally:
        api.install()


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
    managed.namespaces_with_clusters(world, namespace)
    # A kind that is not there is looked for every half a minute.
    world.wait_for_phases(namespace, {name: "Active"}, seconds=90)
    assert _created_in(world, name) == NEW
    managed.close_schedule(world, namespace, name)


def test_where_only_the_old_version_is_served_a_machine_lives_in_it_and_an_upgrade_changes_nothing(
    world: World, api: ClusterApi
) -> None:
    namespace, name = "old", "old-1"
    managed.namespaces_with_clusters(world, namespace)
    with _served(api, OLD):
        world.apply(product.open_now(namespace), machine(namespace, name))
        found = wait_until(
            lambda: _in(OLD, world, namespace, name), seconds=60, what="the Machine is there", every=0.2
        )
        assert _created_in(world, name) == OLD
        _it_refers_to_its_host_as_the_old_version_does(found, namespace)

    # Cluster API's manager speaks the new version only. Our controller looks for a better one every five minutes.
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
    world.patch(namespace, CLUSTERS, CLUSTER, {"spec": {"paused": True}})
    managed.annotate(world, namespace, MACHINES, name, "example.com/note", "look")
    managed.wait_for_pause(world, namespace, name)
    world.patch(namespace, CLUSTERS, CLUSTER, {"spec": {"paused": False}})
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
    with _served(api, NEW):
        managed.close_schedule(world, namespace, name)
        managed.open_schedule(world, namespace, name)
        assert not {*before.values(), None} & {*managed.uids(world, namespace, name).values()}
        assert _created_in(world, name) == NEW


def test_when_cluster_api_is_taken_away_everything_is_held(world: World, api: ClusterApi) -> None:
    """Not served any more says nothing about Machines: they are neither gone nor to be created again."""
    namespace, name = "old", "old-1"
    begun = datetime.now(UTC)
    with _served(api):
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

    # A kind that is not there is looked for every half a minute.
    world.wait_for_phases(namespace, {name: "Inactive"}, seconds=90)
    managed.require_nothing_left(world, namespace, name)


# A fleet restored from a backup: docs/operating.md says in what order


@pytest.fixture
def lost(world: World, request: pytest.FixtureRequest) -> tuple[str, Backup, dict[str, Any]]:
    """A namespace whose fleet was running when all of its objects were lost, a backup, and the Nodes of before."""
    namespace = str(request.param)
    names = [f"{namespace}-{number}" for number in range(3)]
    managed.namespaces_with_clusters(world, namespace)
    world.apply(*(machine(namespace, name) for name in names))
    managed.open_schedule(world, namespace, *names)
    world.patch(namespace, CLUSTERS, CLUSTER, {"spec": {"paused": True}})
    backup = Backup.taken(world, namespace)
    nodes = {name: managed.uids(world, namespace, name)["node"] for name in names}
    backup.lose(world)
    return namespace, backup, nodes


@pytest.mark.parametrize("lost", ["restored"], indirect=True)
def test_a_fleet_is_restored_under_owners_that_are_there(
    world: World, lost: tuple[str, Backup, dict[str, Any]]
) -> None:
    """The garbage collector runs all the time, and has nothing to collect."""
    namespace, backup, nodes = lost
    begun = datetime.now(UTC)
    backup.restore(world, "sm")
    backup.restore(world, BOOTSTRAPS, HOSTS, MACHINES, owners=True)
    _it_runs_as_before(world, namespace, nodes)
    backup.restore(world, "tbss")
    world.patch(namespace, CLUSTERS, CLUSTER, {"spec": {"paused": False}})
    _cluster_api_has_taken_it_up(world, namespace, nodes)
    _it_runs_as_before(world, namespace, nodes)
    assert _deletions(world, namespace, begun) == []
    managed.close_schedule(world, namespace, *nodes)


@pytest.mark.parametrize("lost", ["rescued"], indirect=True)
def test_owners_of_unknown_uid_are_put_right_while_the_garbage_collector_is_away(
    world: World, lost: tuple[str, Backup, dict[str, Any]]
) -> None:
    """In a pause too. It would take objects whose owners have other uids for orphans, and is faster than anybody."""
    namespace, backup, nodes = lost
    begun = datetime.now(UTC)
    world.plane.kill("kube-controller-manager")
    backup.restore(world, MACHINES, BOOTSTRAPS, HOSTS)
    backup.restore(world, "sm")
    _it_runs_as_before(world, namespace, nodes)
    for kind in CREATED:
        wait_until(
            lambda of=kind: _owned(world, namespace, of), seconds=30, what=f"owners of {kind} are right"
        )
    world.plane.restart("kube-controller-manager")
    backup.restore(world, "tbss")
    world.patch(namespace, CLUSTERS, CLUSTER, {"spec": {"paused": False}})
    _cluster_api_has_taken_it_up(world, namespace, nodes)
    _it_runs_as_before(world, namespace, nodes)
    assert _deletions(world, namespace, begun) == []
    managed.close_schedule(world, namespace, *nodes)


def _it_runs_as_before(world: World, namespace: str, nodes: dict[str, Any]) -> None:
    world.wait_for_phases(namespace, dict.fromkeys(nodes, "Active"))
    assert {name: managed.uids(world, namespace, name)["node"] for name in nodes} == nodes


def _cluster_api_has_taken_it_up(world: World, namespace: str, nodes: dict[str, Any]) -> None:
    """Its Machines are Running, and it is the controller of their hosts again, once nobody else is."""
    for name in nodes:
        wait_until(
            lambda of=name: world.get(namespace, MACHINES, of).get("status", {}).get("phase") == "Running",
            seconds=60,
            what=f"Machine {name} runs",
        )
        uid = world.get(namespace, MACHINES, name)["metadata"]["uid"]
        for kind in (HOSTS, BOOTSTRAPS):
            owners = world.get(namespace, kind, name)["metadata"]["ownerReferences"]
            assert [owner["uid"] for owner in owners if owner["kind"] == "Machine"] == [uid]


def _owned(world: World, namespace: str, kind: str) -> bool:
    """Whether every object of a kind has the ScheduledMachine of its name as an owner, by its uid."""
    uids = {sm["metadata"]["name"]: sm["metadata"]["uid"] for sm in world.get(namespace, "sm")}
    found = {
        item["metadata"]["name"]: owner["uid"]
        for item in world.get(namespace, kind)
        for owner in item["metadata"]["ownerReferences"]
        if owner["kind"] == "ScheduledMachine"
    }
    return found == uids


def _deletions(world: World, namespace: str, since: datetime) -> list[dict[str, Any]]:
    """Whatever anybody deleted of what makes up the fleet."""
    start = f"{since:%Y-%m-%dT%H:%M:%S.%f}Z"
    kinds = {kind.partition(".")[0] for kind in CREATED} | {"nodes", "scheduledmachines"}
    return [
        event
        for event in world.plane.audit_events()
        if event["verb"] == "delete"
        and event["objectRef"].get("resource") in kinds
        and event["objectRef"].get("name", "").startswith(f"{namespace}-")
        and event["requestReceivedTimestamp"] >= start
    ]
