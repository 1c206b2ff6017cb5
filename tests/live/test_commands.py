"""What the commands that need a cluster say when the cluster is not ready for them, or does not let them."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.pytest_plugin import StartControlPlane
from tests.controlplane.waiting import wait_until
from tests.live import product
from tests.live.product import Process

STRANGER = "test:stranger"
COMMANDS = [
    (("controller", "run"), "ScheduledMachine", "5spot.finos.org"),
    (("provider", "run"), "TimeBasedSpotSchedule", "spotschedules.5spot.finos.org"),
]


@pytest.fixture(scope="module")
def plane(start_control_plane: StartControlPlane) -> Iterator[ControlPlane]:
    """A cluster of our own: in the one that tests share, the CRDs come and stay."""
    with start_control_plane() as started:
        yield started


@pytest.fixture(scope="module")
def with_crds(plane: ControlPlane) -> ControlPlane:
    """The same, with our CRDs; tests that need it come after those that need it without."""
    product.install(plane)
    return plane


def _ended(*arguments: str) -> tuple[int, list[str]]:
    """The exit status of a command that ends by itself, and the lines of its standard error."""
    done = subprocess.run(
        [sys.executable, "-m", "fivespot", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stderr.splitlines()


@pytest.mark.parametrize(("command", "kind", "group"), COMMANDS, ids=["controller", "provider"])
def test_a_cluster_without_the_crd_ends_it_with_the_remedy(
    plane: ControlPlane, command: tuple[str, ...], kind: str, group: str
) -> None:
    status, said = _ended(*command, "--kubeconfig", str(plane.kubeconfig(STRANGER)))
    assert status == 1
    assert said[-1] == (
        f"Error: the cluster serves no kind {kind} in group {group}; install its CustomResourceDefinition: "
        "5spot crds | kubectl apply -f -"
    )
    assert len(said) == 2, "connected, and that"


def test_an_override_where_the_crds_are_missing_says_how_to_install_them(plane: ControlPlane) -> None:
    identity = str(plane.kubeconfig("test:admin", product.ADMINS))
    status, (line,) = _ended("override", "sm/desk-1", "on", "-n", "default", "--kubeconfig", identity)
    assert status == 1
    assert line == (
        "Error: get scheduledmachines.5spot.finos.org default/desk-1: 404 page not found (404); the cluster does not serve "
        "scheduledmachines.5spot.finos.org: is its CustomResourceDefinition installed? To install it: 5spot crds | kubectl apply -f -"
    )


def test_a_token_that_the_server_does_not_know_ends_it(plane: ControlPlane, tmp_path: Path) -> None:
    config = yaml.safe_load(plane.kubeconfig_text(STRANGER))
    config["users"][0]["user"] = {"token": "wrong"}
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    status, said = _ended("controller", "run", "--kubeconfig", str(path))
    assert status == 1
    (line,) = said
    assert line.startswith("Error: ")
    assert "Unauthorized" in line
    assert line.endswith("renew the token or the client certificate")


def _grant(plane: ControlPlane, name: str, *rules: dict[str, list[str]]) -> None:
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": STRANGER}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "subjects": [subject],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
    }
    items = [{**role, "rules": list(rules)}, binding]
    plane.kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def _rule(group: str, resource: str, *verbs: str) -> dict[str, list[str]]:
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}


def _let_it_lead(plane: ControlPlane) -> None:
    _grant(plane, "lead", _rule("coordination.k8s.io", "leases", "get", "list", "watch", "create", "update"))


def _wait_for_entry(process: Process, *parts: str, **fields: str) -> None:
    """Until something with these fields is logged, whose message has all the parts."""

    def found() -> bool:
        return any(
            entry.items() >= fields.items() and all(part in entry["message"] for part in parts)
            for entry in process.logged()
        )

    try:
        wait_until(found, seconds=30, what=f"{parts} with {fields}")
    except TimeoutError as error:
        raise AssertionError(f"no entry with {parts} and {fields}:\n{process.log.read_text()}") from error


def test_the_controller_names_the_permission_that_is_missing_and_works_once_it_is_granted(
    with_crds: ControlPlane, tmp_path: Path
) -> None:
    group = "5spot.finos.org"
    with_crds.kubectl("create", "namespace", "denied")
    machine = product.machine("denied", "desk-1")
    with_crds.kubectl("apply", "-f", "-", input=json.dumps(machine))
    kubeconfig = with_crds.kubeconfig(STRANGER)
    line = [sys.executable, "-m", "fivespot", "controller", "run", "--kubeconfig", str(kubeconfig)]
    # At the level at which only what needs a person is said.
    controller = Process([*line, "--log-level", "warning"], tmp_path / "controller.log")
    controller.start()
    try:
        _wait_for_entry(
            controller,
            f'list scheduledmachines.{group}: scheduledmachines.{group} is forbidden: User "{STRANGER}"',
            f'grant verb "list" on resource "scheduledmachines" in API group "{group}" in a ClusterRole',
            level="warning",
        )
        _wait_for_entry(
            controller,
            'grant verb "get" on resource "leases" in API group "coordination.k8s.io" in namespace 5spot-system',
            level="warning",
            lease="5spot-system/5spot-leader",
        )
        _let_it_lead(with_crds)
        _grant(with_crds, "see-machines", _rule(group, "scheduledmachines", "list"))
        _wait_for_entry(controller, 'grant verb "watch" on resource "scheduledmachines"')
        _grant(with_crds, "see-machines", _rule(group, "scheduledmachines", "list", "watch"))
        _wait_for_entry(
            controller, 'grant verb "patch" on resource "scheduledmachines', machine="denied/desk-1"
        )
        assert controller.popen is not None
        assert controller.popen.poll() is None, "it goes on, so that the permission can be granted meanwhile"
    finally:
        status = controller.stop()
    assert status == 0
    assert "Traceback" not in controller.log.read_text()


def test_a_provider_names_the_permission_that_is_missing_and_publishes_once_it_is_granted(
    with_crds: ControlPlane, tmp_path: Path
) -> None:
    group, resource = "spotschedules.5spot.finos.org", "timebasedspotschedules"
    with_crds.kubectl("create", "namespace", "unpublished")
    _let_it_lead(with_crds)
    with_crds.kubectl("apply", "-f", "-", input=json.dumps(product.open_now("unpublished")))
    kubeconfig = with_crds.kubeconfig(STRANGER)
    line = [
        sys.executable,
        "-m",
        "fivespot",
        "provider",
        "run",
        "time-based",
        "--kubeconfig",
        str(kubeconfig),
    ]
    provider = Process(line, tmp_path / "provider.log")
    provider.start()
    try:
        _wait_for_entry(
            provider, f'grant verb "list" on resource "{resource}" in API group "{group}"', level="warning"
        )
        _grant(with_crds, "see-schedules", _rule(group, resource, "list", "watch"))
        _wait_for_entry(
            provider,
            f'grant verb "patch" on resource "{resource}/status" in API group "{group}"',
            level="warning",
        )
        _grant(with_crds, "publish", _rule(group, f"{resource}/status", "patch"))
        _wait_for_entry(provider, "active", level="info", schedule="unpublished/nights")
    finally:
        status = provider.stop()
    assert status == 0
    found = with_crds.kubectl("get", "tbss", "-n", "unpublished", "nights", "-o", "jsonpath={.status.active}")
    assert found == "true"
