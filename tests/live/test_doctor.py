"""`5spot doctor` against real clusters: what is well, and every trouble with its fix."""

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.ports import free_ports
from tests.controlplane.pytest_plugin import StartControlPlane
from tests.controlplane.waiting import wait_until
from tests.live import product
from tests.live.product import ADMINS, IN_CHILD, ROOT, World, machine
from tests.standins import crds

SITE, BROKEN = "site", "broken"
ACCOUNT = "system:serviceaccount:5spot-system:5spot-controller"
Finding = dict[str, str]


def doctor(kubeconfig: Path, *options: str) -> tuple[int, list[Finding]]:
    """The exit status, and everything that was found."""
    line = [
        sys.executable,
        "-m",
        "fivespot",
        "doctor",
        "--kubeconfig",
        str(kubeconfig),
        "-o",
        "json",
        *options,
    ]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(done.stdout)


def troubles(findings: list[Finding]) -> dict[str, str]:
    """What is not well, by subject; every one of them says what to do."""
    found = [finding for finding in findings if finding["level"] != "ok"]
    assert all(finding["fix"] for finding in found)
    return {finding["subject"]: finding["message"] for finding in found}


@pytest.fixture(scope="module")
def world(
    start_control_plane: StartControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """A site where all is well, with the shipped roles."""
    plane = start_control_plane()
    with product.world(plane, tmp_path_factory.mktemp("product")) as running:
        plane.kubectl("apply", "-k", str(ROOT / "deploy" / "controller"))
        plane.kubectl("apply", "-f", str(ROOT / "deploy" / "child-cluster" / "rbac.yaml"))
        bound = ("--clusterrole=5spot-controller-in-child", f"--user={IN_CHILD}")
        plane.kubectl("create", "clusterrolebinding", "in-child", *bound)
        for group, version, _, plural in crds.KINDS:
            plane.kubectl(
                "label", "--overwrite", "crd", f"{plural}.{group}", f"cluster.x-k8s.io/v1beta2={version}"
            )
        product.namespace_with_cluster(running, SITE, "grid", child_groups=())
        running.apply(product.open_now(SITE), machine(SITE, "box-1"))
        running.wait_for_phases(SITE, {"box-1": "Active"})
        yield running
    plane.stop()


@pytest.fixture(scope="module")
def admin(world: World) -> Path:
    """Somebody who may act as the controller's account."""
    return world.plane.kubeconfig("test:admin", ADMINS)


def examined(admin: Path, *options: str) -> tuple[int, list[Finding]]:
    return doctor(admin, "--as", ACCOUNT, "--allow-local-child", *options)


def test_where_all_is_well_there_is_nothing_to_do(world: World, admin: Path) -> None:
    status, findings = examined(admin)
    assert troubles(findings) == {}
    assert status == 0
    sections = list(dict.fromkeys(finding["section"] for finding in findings))
    assert sections == [
        *("management cluster", "machines", "Cluster API", "permissions", "schedules", "child clusters"),
    ]
    said = " ".join(f"{finding['subject']}: {finding['message']}" for finding in findings)
    assert f"is Kubernetes v1.37.2, knows us as {ACCOUNT}" in said
    assert f"knows us as {IN_CHILD}" in said
    assert "TimeBasedSpotSchedule: 1 in use answers" in said


def test_people_get_lines_and_a_summary(world: World, admin: Path) -> None:
    line = [*(sys.executable, "-m", "fivespot", "doctor", "--as", ACCOUNT, "--allow-local-child")]
    done = subprocess.run(
        [*line, "--kubeconfig", str(admin)], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == "management cluster"
    assert lines[1].startswith("  ok    API server: https://127.0.0.1:")
    assert lines[-1].endswith("checks, nothing to do")


def test_it_writes_nothing(world: World, admin: Path) -> None:
    examined(admin)
    assert [
        event["objectRef"]
        for event in world.plane.audit_events()
        if event["user"].get("username") == "test:admin"
        and event["verb"] in ("create", "update", "patch", "delete")
        and event["objectRef"]["resource"] not in ("selfsubjectreviews", "selfsubjectaccessreviews")
    ] == []


def test_a_right_that_is_taken_away_is_named_and_heals(world: World, admin: Path) -> None:
    role = world.get("5spot-system", "clusterrole", "5spot-controller")
    less: dict[str, Any] = {
        "rules": [
            {**rule, "verbs": [verb for verb in rule["verbs"] if verb != "delete"]}
            for rule in role["rules"]
            if "scheduledmachines/status" not in rule["resources"]
        ]
    }
    world.patch("5spot-system", "clusterrole", "5spot-controller", less)

    def denied() -> bool:
        return "permissions" in troubles(examined(admin)[1])

    wait_until(denied, seconds=30, what="the authorizer has seen it")
    status, findings = examined(admin)
    missing = {finding["message"] for finding in findings if finding["level"] == "failed"}
    assert missing == {
        "may not patch scheduledmachines.5spot.finos.org/status",
        "may not delete machines.cluster.x-k8s.io",
        "may not delete k0sworkerconfigs.bootstrap.cluster.x-k8s.io",
        "may not delete remotemachines.infrastructure.cluster.x-k8s.io",
    }
    assert status == 1
    world.plane.kubectl("apply", "-k", str(ROOT / "deploy" / "controller"))
    wait_until(lambda: not denied(), seconds=30, what="it has been given back")


def secret(name: str, text: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": BROKEN},
        "data": {"value": base64.b64encode(text.encode()).decode()},
    }


def test_every_trouble_of_a_fleet_is_told_with_what_to_do(world: World, admin: Path) -> None:
    product.namespace_with_cluster(world, BROKEN, "grid", child_groups=())
    config = yaml.safe_load(world.plane.kubeconfig_text(IN_CHILD))
    (port,) = free_ports(1)
    down = {
        **config,
        "clusters": [{**config["clusters"][0], "cluster": {**config["clusters"][0]["cluster"]}}],
    }
    down["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
    runs = {**config, "users": [{"name": config["users"][0]["name"], "user": {"exec": {"command": "true"}}}]}
    stranger = world.plane.kubeconfig_text("test:stranger")
    odd = yaml.safe_dump(down).replace(f"127.0.0.1:{port}", "a..b:1")
    names = {"down": yaml.safe_dump(down), "runs": yaml.safe_dump(runs), "stranger": stranger, "odd": odd}
    world.apply(
        product.open_now(BROKEN),
        *(secret(f"{name}-kubeconfig", text) for name, text in names.items()),
        *(
            {
                "apiVersion": "cluster.x-k8s.io/v1beta2",
                "kind": "Cluster",
                "metadata": {"name": name, "namespace": BROKEN},
                "spec": {"paused": True} if name == "runs" else {},
            }
            for name in (*names, "bare")
        ),
        *(machine(BROKEN, f"m-{name}", clusterName=name) for name in (*names, "bare", "nowhere")),
        machine(
            BROKEN,
            "m-provider",
            schedule={
                "apiVersion": "spotschedules.5spot.finos.org/v1alpha1",
                "kind": "ManualSpotSchedule",
                "name": "nobody",
            },
        ),
        machine(
            BROKEN,
            "m-kind",
            infrastructureSpec={
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                "kind": "UnheardOfMachine",
                "spec": {},
            },
        ),
    )
    status, findings = examined(admin)
    found = troubles(findings)
    assert status == 1
    expected = {
        f"Cluster {BROKEN}/nowhere": "does not exist, and 1 machine names it",
        f"Cluster {BROKEN}/runs": "is paused",
        "UnheardOfMachine of infrastructure.cluster.x-k8s.io": "the cluster serves no kind UnheardOfMachine",
        f"ManualSpotSchedule {BROKEN}/nobody": "does not exist in this namespace",
        f"Secret {BROKEN}/bare-kubeconfig": "KubeconfigMissing: it does not exist",
        f"Secret {BROKEN}/nowhere-kubeconfig": "KubeconfigMissing: it does not exist",
        f"Secret {BROKEN}/runs-kubeconfig": "users[0].user.exec",
        f"Secret {BROKEN}/down-kubeconfig": f"TCP: 127.0.0.1 port {port}",
        f"Secret {BROKEN}/odd-kubeconfig": "DNS: the name a..b does not resolve",
        f"permissions by Secret {BROKEN}/stranger-kubeconfig": "may not create pods/eviction",
    }
    assert found.keys() == expected.keys()
    assert {subject: words for subject, words in expected.items() if words not in found[subject]} == {}
    world.plane.kubectl("delete", "namespace", BROKEN, "--wait=false")


def test_local_children_are_refused_unless_they_are_allowed(world: World, admin: Path) -> None:
    _, findings = doctor(admin, "--as", ACCOUNT)
    assert "KubeconfigRejected" in troubles(findings)[f"Secret {SITE}/grid-kubeconfig"]


# The way to the server


def changed(world: World, tmp_path: Path, **cluster: str) -> Path:
    config = yaml.safe_load(world.plane.kubeconfig_text("test:admin", ADMINS))
    config["clusters"][0]["cluster"].update(cluster)
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


def only(path: Path) -> str:
    status, findings = doctor(path)
    assert status == 1
    (finding,) = findings
    assert (finding["level"], finding["subject"]) == ("failed", "API server")
    assert finding["fix"]
    return finding["message"]


def test_a_name_that_does_not_resolve_is_dns(world: World, tmp_path: Path) -> None:
    path = changed(world, tmp_path, server="https://nowhere.invalid:6443")
    assert only(path) == "DNS: the name nowhere.invalid does not resolve"


def test_a_port_where_nothing_listens_is_tcp(world: World, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    path = changed(world, tmp_path, server=f"https://127.0.0.1:{port}")
    assert only(path).startswith(f"TCP: 127.0.0.1 port {port}")


def test_a_certificate_of_another_authority_is_tls(
    world: World, start_control_plane: StartControlPlane, bare: ControlPlane, tmp_path: Path
) -> None:
    other = yaml.safe_load(bare.kubeconfig_text("x"))["clusters"][0]["cluster"]
    path = changed(world, tmp_path, **{"certificate-authority-data": other["certificate-authority-data"]})
    assert only(path).startswith("TLS: ")


def test_a_token_that_the_server_does_not_know_is_told(world: World, tmp_path: Path) -> None:
    path = changed(world, tmp_path)
    config = yaml.safe_load(path.read_text())
    config["users"][0]["user"] = {"token": "nobody's"}
    path.write_text(yaml.safe_dump(config))
    assert "does not know us" in only(path)


# A cluster where nothing is installed


@pytest.fixture(scope="module")
def bare(start_control_plane: StartControlPlane) -> Iterator[ControlPlane]:
    """A cluster without anything of ours, or of Cluster API."""
    plane = start_control_plane()
    yield plane
    plane.stop()


def test_what_is_not_installed_is_said_with_the_command_that_does(bare: ControlPlane) -> None:
    kubeconfig = bare.kubeconfig("test:admin", ADMINS)
    status, findings = doctor(kubeconfig)
    found = troubles(findings)
    assert status == 1
    assert found["ScheduledMachine"] == "5spot.finos.org/v1beta1 is not served"
    assert found["TimeBasedSpotSchedule"] == "spotschedules.5spot.finos.org/v1alpha1 is not served"
    assert "serves no kind Machine" in found["Cluster API"]
    assert found["Lease 5spot-system/5spot-leader"] == "nobody leads"
    assert any("5spot crds | kubectl apply" in finding["fix"] for finding in findings)


def test_a_crd_of_an_older_version_is_told_field_by_field(bare: ControlPlane) -> None:
    path = ROOT / "deploy" / "crds" / "scheduledmachines.5spot.finos.org.yaml"
    definition = yaml.safe_load(path.read_text())
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    del schema["properties"]["status"]["properties"]["lastNode"]
    bare.kubectl("apply", "-f", "-", input=json.dumps(definition))
    bare.kubectl(
        "wait", "--for=condition=Established", "--timeout=30s", f"crd/{definition['metadata']['name']}"
    )
    kubeconfig = bare.kubeconfig("test:admin", ADMINS)
    wait_until(
        lambda: "lacks status.lastNode," in troubles(doctor(kubeconfig)[1]).get("ScheduledMachine", ""),
        seconds=20,
        what="the missing field is named",
    )
