"""Machines under a real Cluster API: its core manager with its CRDs and webhooks; only the providers are stood in for."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from fivespot.core.names import (
    MACHINE_LABEL,
    PAUSED,
    UNPAUSED,
)
from tests.clusterapi.pytest_plugin import MakeClusterApi
from tests.controlplane.pytest_plugin import StartControlPlane
from tests.controlplane.waiting import wait_until
from tests.live import managed, product
from tests.live.managed import BOOTSTRAPS, CLUSTER, CLUSTERS, CREATED, HOSTS, MACHINES, USERS, machine
from tests.live.product import CONTROLLER, IN_CHILD, World
from tests.standins.providers import HOST, NEVER_JOINS, NEVER_LETS_GO

BOUNDS = {"gracefulShutdownTimeout": "3m", "nodeDrainTimeout": "2m"}
NAMESPACES = (
    *(
        "life",
        "killed",
        "doomed",
        "pause",
        "awake",
        "unborn",
        "returned",
        "slow",
        "failed",
        "replaced",
        "survivor",
    ),
    *("vanished", "again", "orphan", "rest"),
    *("noted-machines", "noted-sm", "held-machines", "held-k0sworkerconfigs", "held-remotemachines"),
    *("cascade-background", "cascade-foreground", "cascade-orphan"),
)
"""One for each test: a schedule, a pause and the end of a Cluster concern all of its machines."""


@pytest.fixture(scope="module")
def world(
    start_control_plane: StartControlPlane,
    make_cluster_api: MakeClusterApi,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[World]:
    """The product at work under Cluster API, in a cluster of its own: elsewhere these kinds are stood in for."""
    with start_control_plane() as plane, make_cluster_api(plane) as api:
        api.install()
        api.start()
        managed.install(plane)
        with managed.world(plane, tmp_path_factory.mktemp("product")) as running:
            managed.namespaces_with_clusters(running, *NAMESPACES)
            yield running


# Coming and going


def test_a_machine_comes_runs_is_drained_and_goes(world: World) -> None:
    namespace = "life"
    begun = datetime.now(UTC)
    name = managed.active(world, namespace, **BOUNDS)
    found = world.get(namespace, MACHINES, name)
    assert found["status"]["phase"] == "Running"
    _it_refers_to_its_host_and_bounds_its_end(found)
    _cluster_api_has_adopted_what_it_must(world, namespace, name)
    of_machines = [
        e for e in world.writes(CONTROLLER, since=begun) if e["objectRef"]["resource"] == "machines"
    ]
    # Whatever was looked at above was in the create: what is added later may be lost.
    assert [(e["verb"], e["objectRef"]["apiVersion"]) for e in of_machines] == [("create", "v1beta2")]

    world.apply(managed.pod(namespace, "work", name))
    wait_until(
        lambda: world.get(namespace, "pod", "work")["status"].get("phase") == "Running",
        seconds=30,
        what="the pod runs",
    )
    managed.close_schedule(world, namespace, name)
    assert world.get(namespace, "pod", "work") is None
    _only_the_machine_was_deleted_after_the_drain(world, begun)
    assert "MachineMissing" not in managed.event_reasons(world, namespace, name)


def _it_refers_to_its_host_and_bounds_its_end(found: dict[str, Any]) -> None:
    name, spec = found["metadata"]["name"], found["spec"]
    assert spec["infrastructureRef"] == {
        "apiGroup": "infrastructure.cluster.x-k8s.io",
        "kind": "RemoteMachine",
        "name": name,
    }
    assert spec["bootstrap"]["configRef"] == {
        "apiGroup": "bootstrap.cluster.x-k8s.io",
        "kind": "K0sWorkerConfig",
        "name": name,
    }
    assert spec["deletion"] == {
        "nodeDrainTimeoutSeconds": 120,
        "nodeVolumeDetachTimeoutSeconds": 120,
        "nodeDeletionTimeoutSeconds": 180,
    }


def _cluster_api_has_adopted_what_it_must(world: World, namespace: str, name: str) -> None:
    uid = world.get(namespace, "sm", name)["metadata"]["uid"]
    machine_uid = world.get(namespace, MACHINES, name)["metadata"]["uid"]
    for kind in CREATED:
        owners = {o["kind"]: o for o in world.get(namespace, kind, name)["metadata"]["ownerReferences"]}
        assert owners["ScheduledMachine"]["uid"] == uid
        assert owners["ScheduledMachine"].get("controller", False) is (kind == MACHINES)
        if kind != MACHINES:
            assert (owners["Machine"]["uid"], owners["Machine"]["controller"]) == (machine_uid, True)


def _only_the_machine_was_deleted_after_the_drain(world: World, begun: datetime) -> None:
    writes = world.writes(CONTROLLER, IN_CHILD, since=begun)
    shown = [
        (event["verb"], event["objectRef"].get("subresource") or event["objectRef"]["resource"])
        for event in writes
    ]
    deleted = [what for verb, what in shown if verb == "delete"]
    assert deleted == ["machines"]
    assert shown.index(("create", "eviction")) < shown.index(("delete", "machines"))


def test_a_killed_machine_goes_at_once_with_its_pods(world: World) -> None:
    namespace = "killed"
    name = managed.active(world, namespace)
    world.apply(managed.pod(namespace, "work", name))
    begun = datetime.now(UTC)
    world.patch(namespace, "sm", name, {"spec": {"killSwitch": True}})
    managed.wait_until_out(world, namespace, name)
    assert world.phases(namespace) == {name: "Terminated"}
    managed.require_nothing_left(world, namespace, name)
    assert not [e for e in world.writes(IN_CHILD, since=begun) if e["verb"] == "create"], "nothing is evicted"


# A Cluster that goes, and pauses


def test_a_cluster_that_is_deleted_takes_its_machines_with_it(world: World) -> None:
    """Cluster API waits for Machines that have another controller, and never deletes their Nodes."""
    namespace = "doomed"
    name = managed.active(world, namespace)
    world.apply(managed.pod(namespace, "work", name))
    begun = datetime.now(UTC)
    world.plane.kubectl("delete", CLUSTERS, CLUSTER, "-n", namespace, "--timeout=60s")
    for kind in CREATED:
        assert world.get(namespace, kind) == []
    managed.wait_until_out(world, namespace, name)
    # No node steps; a Node that is left over may be deleted, while the child cluster still answers.
    in_child = {(e["verb"], e["objectRef"]["resource"]) for e in world.writes(IN_CHILD, since=begun)}
    assert in_child <= {("delete", "nodes")}
    message = managed.wait_for_reason(world, namespace, name, "Provisioning")
    assert message == f"waits for Cluster {CLUSTER}, which does not exist"
    world.plane.kubectl("delete", "node", name, "--ignore-not-found")


def test_a_paused_cluster_keeps_its_machines_and_one_that_is_unpaused_is_woken(world: World) -> None:
    """Cluster API wakes nobody when a Cluster is unpaused: the Machine would go minutes later."""
    namespace = "pause"
    name = managed.active(world, namespace)
    before = managed.uids(world, namespace, name)
    begun = datetime.now(UTC)
    world.patch(namespace, CLUSTERS, CLUSTER, {"spec": {"paused": True}})
    world.apply(product.closed_now(namespace))
    message = managed.wait_for_reason(world, namespace, name, "Paused")
    assert message == f"waits for the end of a pause: Cluster {CLUSTER}, which is paused"
    assert managed.uids(world, namespace, name) == before
    changed = {e["objectRef"]["resource"] for e in world.writes(CONTROLLER, IN_CHILD, since=begun)}
    assert changed == {"scheduledmachines"}

    # The kill switch sends its delete all the same; Cluster API only takes note.
    world.patch(namespace, "sm", name, {"spec": {"killSwitch": True}})
    managed.wait_for_going(world, namespace, MACHINES, name)
    managed.wait_for_pause(world, namespace, name)
    assert managed.uids(world, namespace, name) == before
    world.patch(namespace, CLUSTERS, CLUSTER, {"spec": {"paused": False}})
    managed.wait_until_out(world, namespace, name)
    managed.require_nothing_left(world, namespace, name)


def test_a_machine_that_stood_through_a_pause_is_woken_without_a_removal(world: World) -> None:
    namespace = "awake"
    name = managed.active(world, namespace)
    world.patch(namespace, CLUSTERS, CLUSTER, {"spec": {"paused": True}})
    # Nobody is woken by a pause either: something has to happen meanwhile.
    managed.annotate(world, namespace, MACHINES, name, "example.com/note", "look")
    managed.wait_for_pause(world, namespace, name)
    world.patch(namespace, CLUSTERS, CLUSTER, {"spec": {"paused": False}})
    managed.wait_for_pause(world, namespace, name, paused=False)
    generation = world.get(namespace, CLUSTERS, CLUSTER)["metadata"]["generation"]
    annotations = world.get(namespace, MACHINES, name)["metadata"]["annotations"]
    assert annotations[UNPAUSED] == str(generation)


@pytest.mark.parametrize("kind", [MACHINES, "sm"])
def test_the_annotation_of_a_pause_is_waited_for(world: World, kind: str) -> None:
    namespace = f"noted-{kind.partition('.')[0]}"
    name = managed.active(world, namespace)
    before = managed.uids(world, namespace, name)
    # Any value pauses.
    managed.annotate(world, namespace, kind, name, PAUSED, "false")
    world.apply(product.closed_now(namespace))
    assert PAUSED in managed.wait_for_reason(world, namespace, name, "Paused")
    assert managed.uids(world, namespace, name) == before
    managed.annotate(world, namespace, kind, name, PAUSED, None)
    managed.close_schedule(world, namespace, name)


def test_nothing_is_created_for_a_paused_machine(world: World) -> None:
    namespace, name = "unborn", "unborn-1"
    paused = machine(namespace, name)
    paused["metadata"]["annotations"] = {PAUSED: ""}
    world.apply(product.open_now(namespace), paused)
    managed.wait_for_reason(world, namespace, name, "Paused")
    managed.require_nothing_left(world, namespace, name)
    managed.annotate(world, namespace, "sm", name, PAUSED, None)
    world.wait_for_phases(namespace, {name: "Active"})
    managed.close_schedule(world, namespace, name)


# What is not as it should be


def test_a_host_that_comes_back_is_emptied_before_its_node_can_be_taken_for_the_new_one(world: World) -> None:
    """Cluster API would take a Node with the same provider id for the new Machine's, and never change its mind."""
    namespace = "returned"
    name = managed.active(world, namespace)
    node = world.get(namespace, "node", name)
    managed.close_schedule(world, namespace, name)
    _switch_on_again(world, node, managed.pod(namespace, "work", name))
    stale = managed.uids(world, namespace, name)["node"]

    managed.open_schedule(world, namespace, name)
    fresh = managed.uids(world, namespace, name)["node"]
    assert fresh not in (None, stale)
    assert world.get(namespace, MACHINES, name)["status"]["nodeRef"]["name"] == name
    assert world.get(namespace, "sm", name)["status"]["nodeRef"]["uid"] == fresh
    managed.wait_for_event(world, namespace, name, "NodeReturned")
    assert world.get(namespace, "pod", "work") is None
    managed.close_schedule(world, namespace, name)


def _switch_on_again(world: World, node: dict[str, Any], pod: dict[str, Any]) -> None:
    """The old kubelet registers as it did before, and the Node has a new uid; there is a pod for it."""
    name, spec = node["metadata"]["name"], {"providerID": node["spec"]["providerID"]}
    world.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec}, pod)
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
    status = {"nodeInfo": node["status"]["nodeInfo"], "conditions": [ready]}
    managed.set_status(world, "default", "node", name, status)


def test_a_node_that_is_slow_to_go_is_waited_for(world: World) -> None:
    """Cluster API asks for its deletion and goes on; a new Machine would find the old Node."""
    namespace = "slow"
    name = managed.active(world, namespace)
    stale = managed.uids(world, namespace, name)["node"]
    world.patch(namespace, "node", name, {"metadata": {"finalizers": ["example.com/inventory"]}})
    world.apply(product.closed_now(namespace))
    managed.wait_for_going(world, namespace, "node", name)
    wait_until(lambda: world.get(namespace, MACHINES) == [], seconds=30, what="the Machine is gone")
    world.apply(product.open_now(namespace))
    message = managed.wait_for_reason(world, namespace, name, "WaitingForPrevious")
    assert message == f"Node {name} is left over: deleting it"
    assert world.get(namespace, MACHINES) == []
    world.patch(namespace, "node", name, {"metadata": {"finalizers": None}})
    world.wait_for_phases(namespace, {name: "Active"})
    assert managed.uids(world, namespace, name)["node"] not in (None, stale)
    managed.close_schedule(world, namespace, name)


def test_a_failure_for_good_is_reported_though_cluster_api_has_no_phase_for_it(world: World) -> None:
    namespace, name = "failed", "failed-1"
    never = managed.host(HOST, NEVER_JOINS)
    world.apply(product.open_now(namespace), machine(namespace, name, infrastructureSpec=never))
    wait_until(lambda: world.get(namespace, HOSTS, name), seconds=30, what="the host's object is there")
    failure = {"failureReason": "CreateError", "failureMessage": "no such host"}
    managed.set_status(world, namespace, HOSTS, name, failure)
    world.wait_for_phases(namespace, {name: "Error"})
    assert world.get(namespace, MACHINES, name)["status"]["phase"] != "Failed"
    assert "CreateError" in world.condition(namespace, name, "Ready")["message"]
    # It never had a Node: it is replaced, but not at once.
    planned = world.get(namespace, "sm", name)["status"]["provisioning"]
    assert planned["replacing"] == managed.uids(world, namespace, name)[MACHINES]
    assert planned["notBefore"] is not None
    managed.close_schedule(world, namespace, name)


def test_a_machine_that_failed_before_it_had_a_node_is_replaced_when_its_time_has_come(world: World) -> None:
    """The five minutes pass in the status: that is all the controller knows of them."""
    namespace, name = "replaced", "replaced-1"
    never = managed.host(HOST, NEVER_JOINS)
    world.apply(product.open_now(namespace), machine(namespace, name, infrastructureSpec=never))
    wait_until(lambda: world.get(namespace, HOSTS, name), seconds=30, what="the host's object is there")
    managed.set_status(world, namespace, HOSTS, name, {"failureReason": "CreateError"})
    world.wait_for_phases(namespace, {name: "Error"})
    before = managed.uids(world, namespace, name)
    past = {"provisioning": {"notBefore": "2026-01-01T00:00:00Z"}}
    managed.set_status(world, namespace, "sm", name, past)
    wait_until(
        lambda: (
            None not in (after := [managed.uids(world, namespace, name)[kind] for kind in CREATED])
            and not {*after} & {*before.values()}
        ),
        seconds=60,
        what="all three are there anew",
    )
    world.wait_for_phases(namespace, {name: "Pending"})
    # The count outlives the Machine: the next failure waits longer.
    assert world.get(namespace, "sm", name)["status"]["provisioning"]["attempt"] == 1
    assert "MachineMissing" not in managed.event_reasons(world, namespace, name)
    managed.close_schedule(world, namespace, name)


def test_a_failure_of_a_machine_whose_node_is_ready_changes_nothing(world: World) -> None:
    namespace = "survivor"
    name = managed.active(world, namespace)
    managed.set_status(world, namespace, HOSTS, name, {"failureReason": "UpdateError"})
    wait_until(
        lambda: world.get(namespace, MACHINES, name)["status"].get("deprecated", {}).get("v1beta1", {}),
        seconds=30,
        what="the Machine has failed",
    )
    before = managed.uids(world, namespace, name)
    managed.annotate(world, namespace, "sm", name, "example.com/note", "look again")
    assert world.phases(namespace) == {name: "Active"}
    assert managed.uids(world, namespace, name) == before
    managed.close_schedule(world, namespace, name)


def test_a_machine_that_somebody_deletes_is_created_again(world: World) -> None:
    namespace = "vanished"
    name = managed.active(world, namespace)
    before = managed.uids(world, namespace, name)
    world.plane.kubectl("delete", MACHINES, name, "-n", namespace, "--timeout=60s")
    wait_until(
        lambda: not {*before.values(), None} & {*managed.uids(world, namespace, name).values()},
        seconds=60,
        what="all of it is there anew",
    )
    world.wait_for_phases(namespace, {name: "Active"})
    managed.wait_for_event(world, namespace, name, "MachineMissing")
    managed.close_schedule(world, namespace, name)


def test_a_machine_that_is_still_going_is_waited_for_when_the_schedule_opens_again(world: World) -> None:
    namespace = "again"
    name = managed.active(world, namespace)
    before = managed.uids(world, namespace, name)
    managed.annotate(world, namespace, HOSTS, name, HOST, NEVER_LETS_GO)
    world.apply(product.closed_now(namespace))
    managed.wait_for_going(world, namespace, HOSTS, name)
    world.apply(product.open_now(namespace))
    message = managed.wait_for_reason(world, namespace, name, "WaitingForPrevious")
    assert message == f"waits until Machine {name} is gone"
    assert managed.uids(world, namespace, name) == before
    managed.annotate(world, namespace, HOSTS, name, HOST, None)
    world.wait_for_phases(namespace, {name: "Active"})
    assert not {*before.values(), None} & {*managed.uids(world, namespace, name).values()}
    assert "MachineMissing" not in managed.event_reasons(world, namespace, name)
    managed.close_schedule(world, namespace, name)


# Whose it is


def test_an_orphan_of_ours_is_taken_up_and_taken_out(world: World) -> None:
    namespace = "orphan"
    name = managed.active(world, namespace)
    before = managed.uids(world, namespace, name)
    world.controller.stop()
    _forget_status(world, namespace, name)
    world.controller.start()
    managed.wait_for_event(world, namespace, name, "OrphanAdopted")
    world.wait_for_phases(namespace, {name: "Active"})
    assert managed.uids(world, namespace, name) == before
    assert world.get(namespace, "sm", name)["status"]["machineRef"]["uid"] == before[MACHINES]

    world.controller.stop()
    _forget_status(world, namespace, name)
    world.apply(product.closed_now(namespace))
    world.controller.start()
    wait_until(lambda: world.get(namespace, MACHINES) == [], seconds=60, what="the orphan is out")
    managed.close_schedule(world, namespace, name)


def _forget_status(world: World, namespace: str, name: str) -> None:
    found = world.get(namespace, "sm", name)
    found["status"] = {}
    world.plane.kubectl("replace", "--subresource=status", "-f", "-", input=json.dumps(found))


@pytest.mark.parametrize("kind", [MACHINES, HOSTS, BOOTSTRAPS])
def test_a_name_that_somebody_else_holds_is_left_to_them(world: World, kind: str) -> None:
    namespace = f"held-{kind.partition('.')[0]}"
    name = f"{namespace}-1"
    theirs = _theirs(namespace, name, kind)
    world.apply(theirs)
    before = world.get(namespace, kind, name)["metadata"]["uid"]
    begun = datetime.now(UTC)
    world.apply(product.open_now(namespace), machine(namespace, name))
    message = managed.wait_for_reason(world, namespace, name, "NameConflict")
    assert f"{name} exists and is not ours" in message
    world.plane.kubectl("delete", "sm", name, "-n", namespace, "--timeout=60s")
    after = world.get(namespace, kind, name)["metadata"]
    assert after["uid"] == before
    assert "deletionTimestamp" not in after
    assert MACHINE_LABEL not in after.get("labels", {})
    touched = [
        e
        for e in world.writes(CONTROLLER, since=begun)
        if e["objectRef"]["resource"] == kind.partition(".")[0] and e["verb"] != "create"
    ]
    assert touched == []
    world.plane.kubectl("delete", kind, name, "-n", namespace, "--timeout=60s")


def _theirs(namespace: str, name: str, kind: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": namespace, "labels": {"example.com/owner": "another-team"}}
    if kind == MACHINES:
        reference = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "RemoteMachine", "name": "theirs"}
        bootstrap = {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "K0sWorkerConfig", "name": "theirs"}
        spec = {
            "clusterName": CLUSTER,
            "infrastructureRef": reference,
            "bootstrap": {"configRef": bootstrap},
        }
        return {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": meta, "spec": spec}
    group, of_kind = {
        HOSTS: ("infrastructure.cluster.x-k8s.io", "RemoteMachine"),
        BOOTSTRAPS: ("bootstrap.cluster.x-k8s.io", "K0sWorkerConfig"),
    }[kind]
    return {"apiVersion": f"{group}/v1beta1", "kind": of_kind, "metadata": meta, "spec": {}}


@pytest.mark.parametrize("cascade", ["background", "foreground", "orphan"])
def test_a_deleted_object_takes_its_machine_out_whatever_the_garbage_collector_does(
    world: World, cascade: str
) -> None:
    """In the foreground it deletes the Machine before us and strips owners; with orphan it strips all of them."""
    namespace = f"cascade-{cascade}"
    name = managed.active(world, namespace)
    world.plane.kubectl("delete", "sm", name, "-n", namespace, f"--cascade={cascade}", "--timeout=60s")
    managed.require_nothing_left(world, namespace, name)


def test_at_rest_nobody_of_ours_writes_or_reads_anything(world: World) -> None:
    """Twenty seconds after all of the above, with a machine that runs: no write, and no read but watches."""
    managed.active(world, "rest")

    def last_seconds(seconds: float) -> list[dict[str, Any]]:
        since = datetime.now(UTC).timestamp() - seconds
        return _asked(world, datetime.fromtimestamp(since, UTC))

    wait_until(lambda: not last_seconds(3), seconds=60, what="the last request is three seconds old")
    begun = datetime.now(UTC)
    wait_until(lambda: (datetime.now(UTC) - begun).total_seconds() >= 20, seconds=30, what="20 s", every=0.5)
    assert _asked(world, begun) == []


def _asked(world: World, since: datetime) -> list[dict[str, Any]]:
    return [event for event in world.requests(*USERS, since=since) if event["verb"] != "watch"]
