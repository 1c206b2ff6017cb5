"""What a running process shows of itself: metrics, health, readiness, logs; leader and standby."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import httpx
import pytest

from fivespot.core.provider.kinds import BY_KIND
from tests import builders
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.ports import free_ports
from tests.controlplane.pytest_plugin import StartControlPlane
from tests.controlplane.waiting import wait_until
from tests.live import product
from tests.live.product import ADMINS, Process, World, machine

NAMESPACE, SPEAKER = "shown", "speaker"


@attrs.frozen
class Shown:
    """A process with both ports."""

    process: Process
    metrics_port: int
    health_port: int

    def get(self, path: str) -> httpx.Response:
        port = self.metrics_port if path == "/metrics" else self.health_port
        return httpx.get(f"http://127.0.0.1:{port}{path}", trust_env=False, timeout=20)

    def metric(self, name: str) -> float | None:
        lines = self.get("/metrics").text.splitlines()
        return next(
            (float(line.rpartition(" ")[2]) for line in lines if line.rpartition(" ")[0] == name), None
        )

    def wait(self, name: str, value: float) -> None:
        wait_until(lambda: self.metric(name) == value, seconds=40, what=f"{name} is {value}", every=0.2)

    def wait_until_ready(self) -> None:
        def ready() -> bool:
            try:
                return self.get("/readyz").status_code == 200
            except httpx.HTTPError:
                return False

        wait_until(ready, seconds=40, what="it is ready", every=0.2)


def _started(plane: ControlPlane, folder: Path, user: str, *command: str) -> Shown:
    metrics_port, health_port = free_ports(2)
    line = [
        *(sys.executable, "-m", "fivespot", *command, "--kubeconfig", str(plane.kubeconfig(user, ADMINS))),
        *("--metrics-port", str(metrics_port), "--health-port", str(health_port)),
        *("--bind-address", "127.0.0.1"),
    ]
    process = Process(line, folder / f"{user.partition(':')[2]}.log")
    process.start()
    return Shown(process, metrics_port, health_port)


@pytest.fixture(scope="module")
def world(
    start_control_plane: StartControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """A cluster of its own: what is counted is counted in all namespaces."""
    plane = start_control_plane()
    with product.world(plane, tmp_path_factory.mktemp("product")) as running:
        # The tests of this module bring their own, which can be looked at.
        running.controller.stop()
        product.namespace_with_cluster(running, NAMESPACE, "grid")
        yield running
    plane.stop()


@pytest.fixture(scope="module")
def leader(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    shown = _started(
        world.plane,
        tmp_path_factory.mktemp("leader"),
        "test:shown-leader",
        *("controller", "run", "--allow-local-child", "--lease-name", "shown"),
    )
    shown.wait_until_ready()
    shown.wait("fivespot_is_leader", 1)
    yield shown
    shown.process.stop()


def test_what_happens_to_a_machine_can_be_read_off_the_metrics(world: World, leader: Shown) -> None:
    world.apply(product.open_now(NAMESPACE), machine(NAMESPACE, "box-1"))
    world.wait_for_phases(NAMESPACE, {"box-1": "Active"})
    leader.wait("fivespot_machines_active", 1)
    leader.wait('fivespot_machines_by_phase{phase="Active"}', 1)
    leader.wait('fivespot_queue_depth{queue="machines"}', 0)
    assert (leader.metric('fivespot_reconciliations_total{phase="Active",result="ok"}') or 0) >= 1
    assert (leader.metric('fivespot_api_requests_total{code="201",verb="create"}') or 0) >= 3
    assert leader.metric('fivespot_child_kubeconfig_resolutions_total{result="connected"}') == 1
    assert leader.metric("fivespot_held_verdicts") == 0
    world.apply(product.closed_now(NAMESPACE))
    world.wait_for_phases(NAMESPACE, {"box-1": "Inactive"})
    leader.wait("fivespot_machines_active", 0)
    transitions = (
        f'fivespot_spot_schedule_transitions_total{{kind="TimeBasedSpotSchedule",namespace="{NAMESPACE}"}}'
    )
    leader.wait(transitions, 1)
    leader.wait('fivespot_node_drains_total{result="drained"}', 1)


def _providers(*, active: bool) -> list[dict[str, Any]]:
    """One of each kind that says so by itself; what the composite says is the opposite of the toggle."""
    windows = (product.open_now if active else product.closed_now)(NAMESPACE)["spec"]
    toggle = builders.reference(SPEAKER, "ManualSpotSchedule")
    found = [
        builders.provider("TimeBasedSpotSchedule", SPEAKER, **windows),
        builders.provider("CapitalMarketsSchedule", SPEAKER, **windows, timezone="UTC"),
        builders.provider("ManualSpotSchedule", SPEAKER, active=active),
        builders.provider("CompositeSpotSchedule", SPEAKER, **{"not": [toggle]}),
    ]
    for each in found:
        each["metadata"]["namespace"] = NAMESPACE
    return found


def test_providers_show_what_their_schedules_say_and_how_often_that_has_changed(
    world: World, tmp_path: Path
) -> None:
    world.provider.stop()
    world.apply(*_providers(active=True))
    line = ("provider", "run", "--lease-name", "shown-p")
    shown = _started(world.plane, tmp_path, "test:shown-provider", *line)
    labels = f'{{name="{SPEAKER}",namespace="{NAMESPACE}"}}'
    kinds = {"time_based": True, "capital_markets": True, "manual": True, "composite": False}
    try:
        shown.wait_until_ready()
        # Without an answer it is not active either.
        wait_until(
            lambda: ((world.get(NAMESPACE, "css", SPEAKER) or {}).get("status") or {}).get("active") is False,
            seconds=40,
            what="the composite has an answer",
            every=0.2,
        )
        for kind, answer in kinds.items():
            shown.wait(f"fivespot_{kind}_active{labels}", answer)
            assert shown.metric(f"fivespot_{kind}_transitions_total{labels}") is None, (
                "the first is no change"
            )
        world.apply(*_providers(active=False))
        for kind, answer in kinds.items():
            shown.wait(f"fivespot_{kind}_active{labels}", not answer)
            shown.wait(f"fivespot_{kind}_transitions_total{labels}", 1)
        assert "watch TimeBasedSpotSchedule" in shown.get("/readyz?verbose").text

        assert shown.metric('fivespot_provider_queries_total{result="failed"}') == 0
        local = builders.prometheus(SPEAKER)
        local["metadata"]["namespace"] = NAMESPACE
        local["spec"]["url"] = "http://127.0.0.1:9090"
        world.apply(local)
        wait_until(
            lambda: shown.metric('fivespot_provider_queries_total{result="failed"}') or 0,
            seconds=40,
            what="a question has failed",
            every=0.2,
        )
        assert shown.metric(f"fivespot_prometheus_active{labels}") == 0
    finally:
        assert shown.process.stop() == 0
        world.provider.start()


def test_only_the_kinds_that_are_named_are_answered_for(world: World, tmp_path: Path) -> None:
    line = ("provider", "run", "manual", "composite", "--lease-name", "shown-two")
    shown = _started(world.plane, tmp_path, "test:shown-two", *line)
    try:
        shown.wait_until_ready()
        told = shown.get("/readyz?verbose").text
        assert {kind for kind in BY_KIND if f"watch {kind}." in told} == {
            "ManualSpotSchedule",
            "CompositeSpotSchedule",
        }
    finally:
        assert shown.process.stop() == 0


def test_a_standby_is_ready_and_says_that_it_does_not_lead(
    world: World, leader: Shown, tmp_path: Path
) -> None:
    standby = _started(
        world.plane,
        tmp_path,
        "test:shown-standby",
        *("controller", "run", "--allow-local-child", "--lease-name", "shown"),
    )
    try:
        standby.wait_until_ready()
        assert standby.metric("fivespot_is_leader") == 0
        assert leader.metric("fivespot_is_leader") == 1
    finally:
        assert standby.process.stop() == 0


def test_a_tenants_dead_child_cluster_and_missing_provider_leave_it_ready(
    world: World, leader: Shown
) -> None:
    unserved = machine(NAMESPACE, "unserved", kubeconfigSecretRef={"name": "nowhere"})
    unserved["spec"]["schedule"]["kind"] = "NobodysSchedule"
    world.apply(unserved)
    wait_until(
        lambda: (
            world.condition(NAMESPACE, "unserved", "SpotScheduleResolved").get("reason")
            == "ProviderCRDNotInstalled"
        ),
        seconds=40,
        what="the missing kind is said",
    )
    found = leader.get("/readyz?verbose")
    assert found.status_code == 200, found.text
    assert "[+]watch NobodysSchedule.spotschedules.5spot.finos.org ok" in found.text
    world.plane.kubectl("delete", "sm", "unserved", "-n", NAMESPACE)


def test_without_cluster_api_it_is_alive_and_not_ready_and_says_why(
    start_control_plane: StartControlPlane, tmp_path: Path
) -> None:
    plane = start_control_plane()
    try:
        product.install(plane)
        plane.kubectl("apply", "-f", "-", input=json.dumps(machine("default", "alone")))
        shown = _started(plane, tmp_path, "test:alone", "controller", "run", "--no-leader-elect")
        try:
            wait_until(
                lambda: (
                    shown.process.log.exists()
                    and any(
                        "install its CustomResourceDefinition" in e["message"] for e in shown.process.logged()
                    )
                ),
                seconds=30,
                what="what is missing is logged",
            )
            found = shown.get("/readyz")
            assert found.status_code == 503
            assert (
                "[-]watch Machine.cluster.x-k8s.io failed: the cluster serves no kind Machine" in found.text
            )
            assert shown.get("/healthz").status_code == 200
            plane.kill("kube-apiserver")
            wait_until(
                lambda: "[-]api failed" in shown.get("/readyz").text,
                seconds=60,
                what="the API is gone",
                every=1,
            )
        finally:
            assert shown.process.stop() == 0
    finally:
        plane.stop()


def test_a_port_in_use_ends_it_with_one_message(world: World, leader: Shown, tmp_path: Path) -> None:
    line = [
        *(sys.executable, "-m", "fivespot", "controller", "run", "--bind-address", "127.0.0.1"),
        *("--kubeconfig", str(world.plane.kubeconfig("test:in-use", ADMINS))),
        *("--metrics-port", str(leader.metrics_port)),
    ]
    process = Process(line, tmp_path / "in-use.log")
    process.start()
    assert process.popen is not None
    assert process.popen.wait(timeout=20) == 1
    (last,) = process.log.read_text().splitlines()
    assert last.startswith(f"Error: 127.0.0.1 port {leader.metrics_port} cannot be listened on: ")


def test_no_secret_and_no_object_is_in_any_line_that_was_logged(world: World, leader: Shown) -> None:
    lines = leader.process.log.read_text()
    assert "BEGIN CERTIFICATE" not in lines
    assert "client-key-data" not in lines
    assert max(len(line) for line in lines.splitlines()) < 5000
