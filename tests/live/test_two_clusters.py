"""Two clusters, a management cluster and a child: who is asked for what, and what happens while the child is away."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from fivespot.adapters.kube.control.children import Child, ChildKey, Children
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.resources import SECRETS
from fivespot.core.instant import parse_instant
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.pytest_plugin import StartControlPlane
from tests.controlplane.relay import relay
from tests.controlplane.waiting import wait_until
from tests.live import product
from tests.live.following import HurriedClock, port_of, through, until
from tests.live.product import ADMINS, CONTROLLER, IN_CHILD, PROVIDER, World, machine

NAMESPACE, NAME = "apart", "desk-1"
CREATED = ("machines.cluster.x-k8s.io", "k0sworkerconfigs", "remotemachines")
TAINT = {"key": "example.com/borrowed", "value": "true", "effect": "NoSchedule"}

# Nobody who looks after Nodes and pods: what is there stays as the test made it, unless the product touches it.
MANAGEMENT_CONTROLLERS = (
    "garbage-collector-controller",
    "namespace-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
)


@pytest.fixture(scope="module")
def world(
    start_control_plane: StartControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """The product at work on two control planes, and in the management cluster a Node and a pod that look like ours."""
    with (
        start_control_plane(controllers=MANAGEMENT_CONTROLLERS) as management,
        start_control_plane() as child,
        product.world(management, tmp_path_factory.mktemp("product"), child) as running,
    ):
        product.namespace_with_cluster(running, NAMESPACE, "grid")
        child.kubectl("create", "namespace", NAMESPACE)
        for plane in (management, child):
            plane.kubectl("wait", "--for=create", "serviceaccount/default", "-n", NAMESPACE, "--timeout=60s")
        running.apply(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": NAME},
                "spec": {"providerID": f"stand-in://{NAMESPACE}/{NAME}"},
            },
            _pod("work"),
        )
        yield running


def _pod(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "nodeName": NAME,
            "containers": [{"name": "main", "image": "none"}],
            "terminationGracePeriodSeconds": 5,
            "tolerations": [{"operator": "Exists"}],
        },
    }


def _asked_of(plane: ControlPlane, user: str) -> set[str]:
    """The resources that a user asked for, whatever the verb."""
    return {
        "/".join(filter(None, (target["resource"], target.get("subresource"))))
        for event in plane.audit_events()
        if event["user"].get("username") == user and "resource" in (target := event.get("objectRef", {}))
    }


def _uids(world: World) -> dict[str, str]:
    found = {kind: world.get(NAMESPACE, kind, NAME) for kind in CREATED}
    found["node"] = world.in_child.get(NAMESPACE, "node", NAME)
    return {kind: item["metadata"]["uid"] for kind, item in found.items()}


def _moment(event: dict[str, Any]) -> datetime:
    return parse_instant(event["requestReceivedTimestamp"])


def test_a_machine_lives_in_two_clusters(world: World) -> None:
    look_alikes = [world.get(NAMESPACE, kind, name) for kind, name in (("node", NAME), ("pod", "work"))]
    world.apply(product.closed_now(NAMESPACE), machine(NAMESPACE, NAME, nodeTaints=[TAINT]))
    world.wait_for_phases(NAMESPACE, {NAME: "Inactive"})
    begun = datetime.now(UTC)
    world.apply(product.open_now(NAMESPACE))
    world.wait_for_phases(NAMESPACE, {NAME: "Active"})
    assert world.condition(NAMESPACE, NAME, "ChildClusterReachable")["status"] == "True"
    node = world.in_child.get(NAMESPACE, "node", NAME)
    assert TAINT in node["spec"]["taints"]
    assert world.get(NAMESPACE, "sm", NAME)["status"]["nodeRef"]["uid"] == node["metadata"]["uid"]
    assert world.child.kubectl("get", "crd", "-o", "name") == "", "the child knows none of our kinds"

    world.in_child.apply(_pod("work"))
    wait_until(
        lambda: world.in_child.get(NAMESPACE, "pod", "work")["status"].get("phase") == "Running",
        seconds=30,
        what="the pod runs",
    )
    world.apply(product.closed_now(NAMESPACE))
    world.wait_for_phases(NAMESPACE, {NAME: "Inactive"})
    assert [world.get(NAMESPACE, kind) for kind in CREATED] == [[], [], []]
    assert world.in_child.get(NAMESPACE, "node", NAME) is None
    assert world.in_child.get(NAMESPACE, "pod", "work") is None
    phases = [
        entry["phase"]
        for entry in world.controller.logged()
        if "phase" in entry and entry["machine"] == f"{NAMESPACE}/{NAME}"
    ]
    assert phases == ["Inactive", "Pending", "Active", "ShuttingDown", "Inactive"]

    writes = world.in_child.writes(IN_CHILD, since=begun)
    evictions = [event for event in writes if event["objectRef"].get("subresource") == "eviction"]
    assert [event["objectRef"]["name"] for event in evictions] == ["work"]
    deletions = [event for event in world.writes(CONTROLLER, since=begun) if event["verb"] == "delete"]
    assert [event["objectRef"]["resource"] for event in deletions] == ["machines"]
    assert _moment(evictions[0]) < _moment(deletions[0])
    assert look_alikes == [
        world.get(NAMESPACE, kind, name) for kind, name in (("node", NAME), ("pod", "work"))
    ]
    _each_cluster_was_asked_for_its_own(world)


def _each_cluster_was_asked_for_its_own(world: World) -> None:
    management, child = world.plane, world.child
    of_management = _asked_of(management, CONTROLLER) | _asked_of(management, PROVIDER)
    assert {
        "machines",
        "k0sworkerconfigs",
        "remotemachines",
        "clusters",
        "secrets",
        "events",
    } <= of_management
    assert not {name for name in of_management if name.partition("/")[0] in ("nodes", "pods")}
    assert _asked_of(child, IN_CHILD) == {"nodes", "pods", "pods/eviction"}
    assert _asked_of(management, IN_CHILD) == set()
    for user in (CONTROLLER, PROVIDER):
        assert _asked_of(child, user) == set()


def test_a_child_that_is_down_changes_nothing_and_comes_back_by_itself(world: World) -> None:
    world.apply(product.open_now(NAMESPACE), machine(NAMESPACE, NAME, nodeTaints=[TAINT]))
    world.wait_for_phases(NAMESPACE, {NAME: "Active"})
    before = _uids(world)
    assert world.controller.popen is not None
    pid = world.controller.popen.pid

    def reachable() -> dict[str, Any]:
        return world.condition(NAMESPACE, NAME, "ChildClusterReachable")

    killed = datetime.now(UTC)
    world.child.kill("kube-apiserver")
    wait_until(lambda: reachable()["status"] != "True", seconds=60, what="the child is said to be away")
    said = datetime.now(UTC)
    away = reachable()
    assert (away["status"], away["reason"]) == ("Unknown", "ChildClusterUnreachable")
    assert world.child.url in away["message"]
    assert world.phases(NAMESPACE) == {NAME: "Active"}
    # A look at everything, while the child is away: a change of the machine brings one.
    world.patch(NAMESPACE, "sm", NAME, {"metadata": {"annotations": {"example.com/note": "look again"}}})
    world.patch(
        NAMESPACE, CREATED[0], NAME, {"metadata": {"annotations": {"example.com/note": "look again"}}}
    )

    world.child.restart("kube-apiserver")
    back = datetime.now(UTC)
    wait_until(lambda: reachable()["status"] == "True", seconds=120, what="the child is seen again")
    print(
        f"child away: said after {(said - killed).total_seconds():.1f} s; "
        f"seen {(datetime.now(UTC) - back).total_seconds():.1f} s after it was back"
    )
    assert _uids(world) == before
    assert world.phases(NAMESPACE) == {NAME: "Active"}
    changes = {
        (event["objectRef"]["resource"], event["verb"]) for event in world.writes(CONTROLLER, since=killed)
    }
    assert changes == {("scheduledmachines", "patch")}
    assert world.in_child.writes(IN_CHILD, since=killed) == []

    # What is known of the child is right again: the Node's pods are found and evicted.
    world.in_child.apply(_pod("later"))
    world.apply(product.closed_now(NAMESPACE))
    world.wait_for_phases(NAMESPACE, {NAME: "Inactive"})
    evicted = [
        event["objectRef"]["name"]
        for event in world.in_child.writes(IN_CHILD, since=killed)
        if event["objectRef"].get("subresource") == "eviction"
    ]
    assert evicted == ["later"]
    assert world.in_child.get(NAMESPACE, "node", NAME) is None
    assert world.controller.popen.pid == pid
    assert world.controller.popen.poll() is None
    assert "Traceback" not in world.controller.log.read_text()


def test_a_quiet_child_is_not_away_the_moment_that_its_stream_breaks(world: World) -> None:
    """Nothing may have happened in it for a minute; it is away when it has failed for a while."""
    key = ChildKey(namespace=NAMESPACE, secret="through-relay", entry="value")

    async def scenario() -> None:
        async with (
            relay(port_of(world.child)) as line,
            await Gateway.connect(kubeconfig=world.plane.admin_kubeconfig) as gateway,
        ):
            text = through(line, world.child, world.child.kubeconfig_text("test:quiet", ADMINS))
            secret = {"metadata": {"name": key.secret}, "stringData": {key.entry: text}}
            await gateway.create(SECRETS, NAMESPACE, secret)
            children = Children(
                gateway,
                HurriedClock(),
                allow_local=True,
                on_change=lambda *_: None,
                on_state=lambda *_: None,
            )
            try:
                children.want("user", key)
                await until(lambda: not children.pending(key), "the child is connected")
                child = children.get(key)
                assert isinstance(child, Child)
                nodes = child.nodes
                assert nodes is not None
                await until(lambda: nodes.age > 30, "nothing has happened for half a minute")
                assert child.silence is None
                await line.cut()
                await until(lambda: nodes.failing is not None, "the stream breaks")
                assert child.silence is None
            finally:
                await children.close()

    asyncio.run(asyncio.wait_for(scenario(), 120))


def test_a_node_that_went_unseen_has_not_come_back(world: World) -> None:
    """Two servers tell of the ends of a Machine and of its Node; that of the child may be late."""
    namespace, name = "glimpses", "desk-2"

    def prepare(kubeconfig: str) -> None:
        product.namespace_with_cluster(world, namespace, "grid")
        secret = {"name": "grid-kubeconfig", "namespace": namespace}
        world.apply(
            {"apiVersion": "v1", "kind": "Secret", "metadata": secret, "stringData": {"value": kubeconfig}}
        )
        world.apply(product.open_now(namespace), machine(namespace, name))
        world.wait_for_phases(namespace, {name: "Active"})
        world.stand_in.stop()
        world.apply(product.closed_now(namespace))
        wait_until(
            lambda: "deletionTimestamp" in world.get(namespace, CREATED[0], name)["metadata"],
            seconds=30,
            what="the Machine is being deleted",
        )

    def the_machine_goes() -> None:
        world.stand_in.start()
        wait_until(
            lambda: world.get(namespace, CREATED[0], name) is None, seconds=30, what="the Machine is gone"
        )
        assert world.in_child.get(namespace, "node", name) is None

    async def scenario() -> None:
        async with relay(port_of(world.child)) as line:
            text = through(line, world.child, world.child.kubeconfig_text(IN_CHILD, ADMINS))
            await asyncio.to_thread(prepare, text)
            await line.cut()
            await asyncio.to_thread(the_machine_goes)
            await line.mend()
            await asyncio.to_thread(world.wait_for_phases, namespace, {name: "Inactive"})

    asyncio.run(asyncio.wait_for(scenario(), 200))
    assert f"Node {name} came back" not in world.controller.log.read_text()
