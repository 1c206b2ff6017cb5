"""Drains of a real node: real pods that end in their own time, real budgets, and a kubelet that comes and goes.

A flip of the provider starts the kubelet of a host and stops it again; whatever happens to pods in between is the product's
doing, or its leaving alone. The audit log says who did what, and when.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import psutil
import pytest

from fivespot.core.instant import parse_instant
from fivespot.core.names import CORDONED_BY, RECLAIM_REASON, RECLAIM_REQUESTED, SKIP_REMEDIATION
from tests.controlplane.commands import DEFAULT_CONTROLLERS
from tests.controlplane.pytest_plugin import StartControlPlane
from tests.controlplane.waiting import wait_until
from tests.live import product
from tests.live.product import CONTROLLER, IN_CHILD, PROVIDER, World, machine
from tests.node.binaries import NodePrograms
from tests.node.hosts import RealHosts
from tests.node.pods import NEVER_ENDS, main, pod
from tests.node.scheduler import Scheduler
from tests.node.settings import LEASE_SECONDS

MACHINES = "machines.cluster.x-k8s.io"
SILENCE = timedelta(seconds=LEASE_SECONDS + 2)
"""After which a kubelet counts as dead."""
STATIC = "kept"
"""The namespace of the static pod."""


@attrs.frozen
class Lab:
    """The product at work, and the hosts that it works with."""

    world: World
    hosts: RealHosts

    def up(self, namespace: str, *names: str, **spec: Any) -> None:
        """Machines in a namespace of their own, whose nodes are Ready."""
        product.namespace_with_cluster(self.world, namespace, "grid")
        self.world.plane.kubectl(
            "wait", "--for=create", "serviceaccount/default", "-n", namespace, "--timeout=30s"
        )
        self.world.apply(
            product.open_now(namespace), *(machine(namespace, name, **spec) for name in names or (namespace,))
        )
        self.world.wait_for_phases(namespace, dict.fromkeys(names or (namespace,), "Active"))

    def run(self, *pods: Mapping[str, Any], ready: bool = True) -> None:
        """Apply pods, and wait until they run."""
        self.world.apply(*pods)
        for made in pods if ready else ():
            meta = made["metadata"]
            self.world.plane.kubectl(
                "wait",
                "--for=condition=Ready",
                f"pod/{meta['name']}",
                "-n",
                meta["namespace"],
                "--timeout=60s",
            )

    def close(self, namespace: str) -> None:
        """The provider says no."""
        self.world.apply(product.closed_now(namespace))

    def shutdown(self, namespace: str, name: str) -> dict[str, Any]:
        """What status says about a removal that is going on."""
        found = self.world.get(namespace, "sm", name) or {}
        shutdown: dict[str, Any] = found.get("status", {}).get("shutdown") or {}
        return shutdown

    def blocked(self, namespace: str, name: str, *by: str) -> None:
        """Wait until a drain says that budgets protect just these pods."""
        wait_until(
            lambda: self.shutdown(namespace, name).get("blockedBy") == list(by),
            seconds=30,
            what=f"{name} is blocked by {by}",
        )

    def evictions(self, namespace: str) -> dict[str, Counter[int]]:
        """How the evictions of each pod in a namespace were answered, and how often."""
        found: dict[str, Counter[int]] = {}
        for event in self.world.writes(CONTROLLER, IN_CHILD):
            target = event["objectRef"]
            if target.get("subresource") == "eviction" and target["namespace"] == namespace:
                found.setdefault(target["name"], Counter())[event["responseStatus"]["code"]] += 1
        return found

    def evicted_at(self, namespace: str, name: str) -> datetime:
        """When the eviction of a pod was accepted."""
        return self.when("create", "pods", namespace, name, IN_CHILD, subresource="eviction")

    def ended_at(self, namespace: str, name: str, node: str) -> datetime:
        """When the kubelet said that a pod's containers have ended."""
        return self.when("delete", "pods", namespace, name, f"system:node:{node}")

    def deleted_at(self, namespace: str, name: str) -> datetime:
        """When the product deleted the Machine."""
        return self.when("delete", "machines", namespace, name, CONTROLLER)

    def when(
        self, verb: str, resource: str, namespace: str, name: str, user: str, subresource: str | None = None
    ) -> datetime:
        """When a user did something, which succeeded once."""
        (at,) = (
            parse_instant(event["requestReceivedTimestamp"])
            for event in self.world.writes(user)
            if event["verb"] == verb
            and event["objectRef"]["resource"] == resource
            and event["objectRef"].get("subresource") == subresource
            and (event["objectRef"].get("namespace"), event["objectRef"].get("name")) == (namespace, name)
            and event["responseStatus"]["code"] < 300
        )
        return at

    def is_gone(self, namespace: str, name: str) -> None:
        """The host runs nothing any more, and neither Node nor Machine is there."""
        assert name not in self.hosts.nodes
        assert self.world.get(namespace, "node", name) is None
        assert self.world.get(namespace, MACHINES, name) is None


@pytest.fixture(scope="module")
def lab(
    start_control_plane: StartControlPlane,
    node_programs: NodePrograms,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Lab]:
    """A cluster with everything that acts on pods, which finds out soon that a kubelet is dead."""
    with (
        start_control_plane(
            controllers=(*DEFAULT_CONTROLLERS, "replicaset-controller"),
            extra_controller_manager_args=(
                f"--node-monitor-grace-period={SILENCE.seconds}s",
                "--node-monitor-period=1s",
            ),
        ) as plane,
        Scheduler(plane, node_programs),
        RealHosts(plane, node_programs, _static_pods) as hosts,
        product.world(plane, tmp_path_factory.mktemp("product"), hosts=hosts) as world,
    ):
        plane.kubectl("create", "namespace", STATIC)
        yield Lab(world, hosts)


def _static_pods(name: str) -> list[dict[str, Any]]:
    return [pod(STATIC, "static")] if name == "life" else []


def test_a_flip_adds_a_node_and_the_next_one_empties_it_and_takes_it_away(lab: Lab) -> None:
    lab.up("life")
    node = lab.world.get("life", "node", "life")
    assert node["spec"]["providerID"] == "stand-in://life/life"
    _run_everything(lab)
    processes = psutil.Process(lab.hosts.nodes["life"].pids["host"]).children(recursive=True)
    owners = {p["metadata"]["name"]: p for p in lab.world.get("life", "pods")}
    replicas = [name for name in owners if name.startswith("web-")]
    (daemon,) = (name for name in owners if name.startswith("daemon-"))
    lab.close("life")
    lab.world.wait_for_phases("life", {"life": "Inactive"})

    evicted = {*replicas, "slow", "stubborn", "scratch"}
    assert lab.evictions("life") == {name: Counter({201: 1}) for name in evicted}
    assert lab.evictions(STATIC) == {}
    took = {
        name: lab.ended_at("life", name, "life") - lab.evicted_at("life", name)
        for name in ("slow", "stubborn")
    }
    assert timedelta(seconds=3) <= took["slow"] < timedelta(seconds=15), "its hook was waited for"
    assert timedelta(seconds=2) <= took["stubborn"] < timedelta(seconds=15), "its grace period was waited for"
    for name in evicted:
        assert lab.ended_at("life", name, "life") <= lab.deleted_at("life", "life")
    touched = {
        event["objectRef"]["name"]
        for event in lab.world.writes(CONTROLLER, IN_CHILD)
        if event["objectRef"]["resource"] == "pods"
    }
    assert touched == evicted, f"not {daemon}, static pods or finished ones"
    lab.is_gone("life", "life")
    assert not [process for process in processes if process.is_running()]


def _run_everything(lab: Lab) -> None:
    here = {"kubernetes.io/hostname": "life"}
    lab.run(
        pod("life", "slow", "life", container={"lifecycle": {"preStop": {"sleep": {"seconds": 3}}}}),
        pod("life", "stubborn", "life", does=NEVER_ENDS, grace=2),
        pod(
            "life",
            "scratch",
            "life",
            container={"volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}]},
            volumes=[{"name": "scratch", "emptyDir": {}}],
        ),
    )
    lab.run(
        pod("life", "succeeded", "life", does="exit 0", restartPolicy="Never"),
        pod("life", "failed", "life", does="exit 1", restartPolicy="Never"),
        _set_of_pods("ReplicaSet", "web", here, replicas=2),
        _set_of_pods("DaemonSet", "daemon", here),
        ready=False,
    )

    def phases() -> Counter[tuple[str, str]]:
        pods = [*lab.world.get("life", "pods"), *lab.world.get(STATIC, "pods")]
        return Counter((p["metadata"]["name"].partition("-")[0], p["status"].get("phase", "")) for p in pods)

    alone = ("slow", "stubborn", "scratch", "daemon", "static")
    wanted = Counter({(name, "Running"): 1 for name in alone})
    wanted += Counter({("web", "Running"): 2, ("succeeded", "Succeeded"): 1, ("failed", "Failed"): 1})
    wait_until(lambda: phases() == wanted, seconds=60, what=f"pods are {wanted}, {phases()}")


def _set_of_pods(kind: str, name: str, where: Mapping[str, str], **spec: Any) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {
            "containers": [main("sleep 1000000")],
            "nodeSelector": where,
            "terminationGracePeriodSeconds": 1,
        },
    }
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "life"},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template, **spec},
    }


def test_a_host_that_comes_back_is_a_node_again_and_the_kill_switch_waits_for_no_pod(lab: Lab) -> None:
    lab.up("back")
    first = lab.world.get("back", "node", "back")["metadata"]["uid"]
    lab.close("back")
    lab.world.wait_for_phases("back", {"back": "Inactive"})
    lab.world.apply(product.open_now("back"))
    lab.world.wait_for_phases("back", {"back": "Active"})
    assert lab.world.get("back", "node", "back")["metadata"]["uid"] != first
    lab.run(pod("back", "busy", "back", does=NEVER_ENDS, grace=600))
    begun = datetime.now(UTC)
    lab.world.patch("back", "sm", "back", {"spec": {"killSwitch": True}})
    lab.world.wait_for_phases("back", {"back": "Terminated"})
    wait_until(
        lambda: lab.world.get("back", MACHINES, "back") is None, seconds=30, what="the Machine is gone"
    )
    assert not lab.world.writes(IN_CHILD, since=begun), "nothing is asked of pods or Node"
    lab.is_gone("back", "back")


def test_a_budget_blocks_is_named_and_lets_go(lab: Lab) -> None:
    lab.up("budget")
    lab.world.apply(_budget("budget", "guarded"))
    lab.run(
        pod("budget", "guarded", "budget", labels={"app": "guarded"}),
        pod("budget", "free", "budget"),
    )
    _has_seen(lab, "budget", "guarded")
    lab.close("budget")
    lab.blocked("budget", "budget", "budget/guarded: PodDisruptionBudget guarded")
    wait_until(
        lambda: lab.world.get("budget", "pod", "free") is None, seconds=30, what="the free pod is gone"
    )
    wait_until(
        lambda: lab.evictions("budget")["guarded"][429] >= 3, seconds=30, what="it is tried again and again"
    )
    condition = lab.world.condition("budget", "budget", "Ready")
    assert "budget/guarded: PodDisruptionBudget guarded" in condition["message"]
    events = [
        event
        for event in lab.world.get("budget", "events")
        if event["reason"] == "DrainBlocked" and "budget/guarded" in (event.get("message") or event["note"])
    ]
    assert len(events) == 1
    lab.world.plane.kubectl("delete", "pdb", "guarded", "-n", "budget")
    lab.world.wait_for_phases("budget", {"budget": "Inactive"})
    evictions = lab.evictions("budget")
    assert evictions.pop("free") == {201: 1}
    assert evictions["guarded"][201] == 1
    assert set(evictions["guarded"]) == {201, 429}
    lab.is_gone("budget", "budget")


def test_a_pod_that_is_terminating_already_is_waited_for_and_not_evicted(lab: Lab) -> None:
    lab.up("ending")
    lab.run(pod("ending", "slow", "ending", container={"lifecycle": {"preStop": {"sleep": {"seconds": 5}}}}))
    lab.world.plane.kubectl("delete", "pod", "slow", "-n", "ending", "--wait=false")
    lab.close("ending")
    lab.world.wait_for_phases("ending", {"ending": "Inactive"})
    assert lab.evictions("ending") == {}
    assert lab.ended_at("ending", "slow", "ending") <= lab.deleted_at("ending", "ending")
    lab.is_gone("ending", "ending")


def test_a_pod_whose_namespace_is_being_deleted_is_waited_for(lab: Lab) -> None:
    """No eviction is accepted there. Whoever deletes the namespace deletes the pod, in its own time."""
    lab.up("host")
    lab.world.plane.kubectl("create", "namespace", "guests")
    lab.world.plane.kubectl("wait", "--for=create", "serviceaccount/default", "-n", "guests", "--timeout=30s")
    lab.run(pod("guests", "visitor", "host"))
    lab.world.plane.send_signal("kube-controller-manager", signal.SIGSTOP)
    try:
        lab.world.plane.kubectl("delete", "namespace", "guests", "--wait=false")
        lab.close("host")
        wait_until(lambda: lab.evictions("guests"), seconds=30, what="the pod's eviction is refused")
        wait_until(
            lambda: "guests/visitor" in lab.world.condition("host", "host", "Ready")["message"],
            seconds=30,
            what="the pod that is left is named",
        )
        assert lab.world.phases("host") == {"host": "ShuttingDown"}
    finally:
        lab.world.plane.send_signal("kube-controller-manager", signal.SIGCONT)
    lab.world.wait_for_phases("host", {"host": "Inactive"})
    assert set(lab.evictions("guests")["visitor"]) == {403}
    assert lab.ended_at("guests", "visitor", "host") <= lab.deleted_at("host", "host")
    logged = [entry for entry in lab.world.controller.logged() if entry.get("machine") == "host/host"]
    assert {entry["level"] for entry in logged} == {"info"}, "nothing is wrong with that"
    lab.is_gone("host", "host")


def test_either_bound_ends_a_drain_and_caps_every_grace_period(lab: Lab) -> None:
    """Under `Force` the machine goes when the shorter one passes, whatever is still protected."""
    seconds = {"drain-bound": 4, "whole-bound": 3}
    lab.up("bounds", "drain-bound", nodeDrainTimeout="4s", onDrainTimeout="Force")
    lab.world.apply(machine("bounds", "whole-bound", gracefulShutdownTimeout="3s", nodeDrainTimeout="5m"))
    lab.world.wait_for_phases("bounds", dict.fromkeys(seconds, "Active"))
    lab.world.apply(_budget("bounds", "guarded"))
    for name in seconds:
        lab.run(
            pod("bounds", f"guarded-{name}", name, labels={"app": "guarded"}),
            pod("bounds", f"stubborn-{name}", name, does=NEVER_ENDS, grace=600),
        )
    lab.world.patch("bounds", "pdb", "guarded", {"spec": {"minAvailable": 2}})
    _has_seen(lab, "bounds", "guarded", healthy=2)
    lab.close("bounds")
    granted: dict[str, int] = {}

    def both_are_terminating() -> bool:
        for found in lab.world.get("bounds", "pods"):
            meta = found["metadata"]
            if meta["name"].startswith("stubborn-") and meta.get("deletionTimestamp"):
                granted[meta["name"].removeprefix("stubborn-")] = meta["deletionGracePeriodSeconds"]
        return granted.keys() == seconds.keys()

    wait_until(both_are_terminating, seconds=10, what="the stubborn pods are terminating")
    assert all(0 < granted[name] <= seconds[name] for name in seconds)
    started = {name: parse_instant(lab.shutdown("bounds", name)["startedAt"]) for name in seconds}
    lab.world.wait_for_phases("bounds", dict.fromkeys(seconds, "Inactive"))
    for name, bound in seconds.items():
        passed = lab.deleted_at("bounds", name) - started[name]
        # Instants in status are whole seconds.
        assert timedelta(seconds=bound) <= passed < timedelta(seconds=bound + 3)
        assert lab.evictions("bounds")[f"stubborn-{name}"] == {201: 1}
        assert set(lab.evictions("bounds")[f"guarded-{name}"]) == {429}
        lab.is_gone("bounds", name)


def test_a_change_of_mind_takes_off_our_own_cordon_alone(lab: Lab) -> None:
    """Under `Hold`, for which no bound deletes; both nodes stay as they were found, and their pods run on."""
    names = ("ours", "theirs")
    lab.up("minds", *names, nodeDrainTimeout="1s", onDrainTimeout="Hold")
    lab.world.apply(_budget("minds", "guarded"))
    lab.run(*(pod("minds", f"guarded-{name}", name, labels={"app": "guarded"}) for name in names))
    lab.world.patch("minds", "pdb", "guarded", {"spec": {"minAvailable": 2}})
    _has_seen(lab, "minds", "guarded", healthy=2)
    lab.world.plane.kubectl("cordon", "theirs")
    before = {p["metadata"]["name"]: p["metadata"]["uid"] for p in lab.world.get("minds", "pods")}
    lab.close("minds")
    for name in names:
        wait_until(
            lambda of=name: lab.world.condition("minds", of, "Ready").get("reason") == "NodeDrainTimedOut",
            seconds=30,
            what=f"{name} says that its bound has passed",
        )
        lab.blocked("minds", name, f"minds/guarded-{name}: PodDisruptionBudget guarded")
        assert SKIP_REMEDIATION in lab.world.get("minds", MACHINES, name)["metadata"]["annotations"]
    nodes = {name: lab.world.get("minds", "node", name) for name in names}
    assert all(node["spec"]["unschedulable"] for node in nodes.values())
    assert nodes["ours"]["metadata"]["annotations"][CORDONED_BY] == "minds/ours"
    assert CORDONED_BY not in nodes["theirs"]["metadata"]["annotations"]
    assert lab.world.phases("minds") == dict.fromkeys(names, "ShuttingDown")

    lab.world.apply(product.open_now("minds"))
    lab.world.wait_for_phases("minds", dict.fromkeys(names, "Active"))
    wait_until(
        lambda: "unschedulable" not in lab.world.get("minds", "node", "ours")["spec"],
        seconds=30,
        what="our cordon is off",
    )
    assert CORDONED_BY not in lab.world.get("minds", "node", "ours")["metadata"]["annotations"]
    for name in names:
        wait_until(
            lambda of=name: (
                SKIP_REMEDIATION
                not in lab.world.get("minds", MACHINES, of)["metadata"].get("annotations", {})
            ),
            seconds=30,
            what=f"{name} may be remediated again",
        )
    assert lab.world.get("minds", "node", "theirs")["spec"]["unschedulable"] is True
    assert {p["metadata"]["name"]: p["metadata"]["uid"] for p in lab.world.get("minds", "pods")} == before
    assert all(set(codes) == {429} for codes in lab.evictions("minds").values())


def test_an_object_that_is_deleted_half_way_through_its_drain_goes_on_with_it(lab: Lab) -> None:
    lab.up("half")
    lab.world.apply(_budget("half", "guarded"))
    lab.run(pod("half", "guarded", "half", labels={"app": "guarded"}), pod("half", "free", "half"))
    _has_seen(lab, "half", "guarded")
    lab.close("half")
    lab.blocked("half", "half", "half/guarded: PodDisruptionBudget guarded")
    started = lab.shutdown("half", "half")["startedAt"]
    lab.world.plane.kubectl("delete", "sm", "half", "-n", "half", "--wait=false")
    wait_until(
        lambda: lab.world.get("half", "sm", "half")["status"]["decidedBy"] == "Deleted",
        seconds=30,
        what="the deletion is noticed",
    )
    assert lab.shutdown("half", "half")["startedAt"] == started
    assert lab.world.get("half", "pod", "guarded")["metadata"].get("deletionTimestamp") is None
    lab.world.plane.kubectl("delete", "pdb", "guarded", "-n", "half")
    wait_until(lambda: lab.world.get("half", "sm", "half") is None, seconds=30, what="the object is gone")
    assert lab.evictions("half")["free"] == {201: 1}
    assert lab.evictions("half")["guarded"][201] == 1
    assert lab.ended_at("half", "guarded", "half") <= lab.deleted_at("half", "half")
    lab.is_gone("half", "half")


def test_nobody_waits_for_the_pods_of_a_kubelet_that_died_during_the_drain(lab: Lab) -> None:
    """They go with the host, long before any bound."""
    lab.up("silent")
    lab.run(pod("silent", "stubborn", "silent", does=NEVER_ENDS, grace=600))
    lab.close("silent")
    wait_until(lambda: lab.evictions("silent"), seconds=30, what="the pod is evicted")
    host = lab.hosts.nodes["silent"]
    processes = psutil.Process(host.pids["host"]).children(recursive=True)
    host.kill_kubelet()
    lab.world.wait_for_phases("silent", {"silent": "Inactive"}, seconds=90)
    assert lab.evictions("silent") == {"stubborn": {201: 1}}
    waited = lab.deleted_at("silent", "silent") - lab.evicted_at("silent", "stubborn")
    assert waited > SILENCE - timedelta(seconds=LEASE_SECONDS / 4 + 1), "until it was known to be dead"
    assert not [process for process in processes if process.is_running()]
    lab.is_gone("silent", "silent")


def test_a_reclaim_ends_what_runs_on_a_host_while_its_kubelet_is_alive(lab: Lab) -> None:
    """Neither hook nor grace period nor budget counts, and the host would have been there long enough to see to it."""
    lab.up("owner", killIfCommands=["java"])
    hook = {"lifecycle": {"preStop": {"sleep": {"seconds": 600}}}}
    lab.world.apply(_budget("owner", "stubborn"))
    made = pod(
        "owner", "stubborn", "owner", does=NEVER_ENDS, grace=1200, labels={"app": "stubborn"}, container=hook
    )
    lab.run(made)
    _has_seen(lab, "owner", "stubborn")
    host = lab.hosts.nodes["owner"]
    shells = [p for p in psutil.Process(host.pids["host"]).children(recursive=True) if p.name() == "sh"]
    assert shells
    # A provider that takes its time: the host lives on.
    lab.world.stand_in.stop()
    try:
        lab.world.plane.kubectl(
            "annotate", "node", "owner", f"{RECLAIM_REQUESTED}=true", f"{RECLAIM_REASON}=java"
        )
        _, alive = psutil.wait_procs(shells, timeout=15)
        assert not alive
        assert psutil.pid_exists(host.pids["kubelet"])
        wait_until(
            lambda: lab.world.get("owner", MACHINES, "owner")["metadata"].get("deletionTimestamp"),
            seconds=15,
            what="the Machine is being deleted",
        )
        assert lab.world.phases("owner") == {"owner": "EmergencyRemove"}
    finally:
        lab.world.stand_in.start()
    lab.world.wait_for_phases("owner", {"owner": "Disabled"})
    assert lab.evictions("owner") == {}
    pod_deleted_at = lab.when("delete", "pods", "owner", "stubborn", IN_CHILD)
    assert lab.deleted_at("owner", "owner") - pod_deleted_at >= timedelta(seconds=3.4)
    lab.is_gone("owner", "owner")


def test_at_rest_real_nodes_cost_nothing(lab: Lab) -> None:
    """Twenty seconds in which kubelets report and pods run: nothing is written, and nothing read but by watches."""
    lab.up("rest")
    lab.run(pod("rest", "work", "rest"))
    ours = (CONTROLLER, IN_CHILD, PROVIDER)
    wait_until(
        lambda: not lab.world.writes(*ours, since=datetime.now(UTC) - timedelta(seconds=3)),
        seconds=60,
        what="the last write is three seconds old",
    )
    begun = datetime.now(UTC)
    quiet = begun + timedelta(seconds=20)
    wait_until(lambda: datetime.now(UTC) >= quiet, seconds=30, what="twenty seconds", every=0.5)
    assert [e for e in lab.world.requests(*ours, since=begun) if e["verb"] != "watch"] == []
    assert len(lab.world.writes("system:node:rest", since=begun)) >= 3, "its Node changed meanwhile"


def _budget(namespace: str, app: str) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": namespace},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}},
    }


def _has_seen(lab: Lab, namespace: str, budget: str, healthy: int = 1) -> None:
    """Wait until a budget allows nothing because it knows its pods, and not because it knows none."""

    def knows() -> bool:
        found = lab.world.get(namespace, "pdb", budget)
        status = found.get("status", {})
        return (status.get("observedGeneration"), status.get("currentHealthy")) == (
            found["metadata"]["generation"],
            healthy,
        )

    wait_until(knows, seconds=30, what="the budget has seen its pods")
