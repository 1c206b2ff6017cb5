"""Facts about the real control plane that the other live tests stand on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from tests.controlplane.binaries import PROGRAMS, find_or_build, kubernetes_version
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.errors import ControlPlaneFailed, KubectlFailed
from tests.controlplane.pytest_plugin import StartControlPlane
from tests.controlplane.waiting import wait_until
from tests.gobuild.errors import ProgramsUnavailable

ROOT = Path(__file__).parents[2]
SERVERS = ("etcd", "kube-apiserver", "kube-controller-manager")

# Starts a control plane, says where, and waits for the signal that ends it.
HOLDER = """
import json, signal, sys, time
from pathlib import Path
from tests.controlplane.controlplane import ControlPlane
# Whoever runs the tests may have this ignored, as nohup does, and all that they start.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
plane = ControlPlane(Path(sys.argv[1]))
print(json.dumps({"folder": str(plane.folder), "pids": dict(plane.pids)}), flush=True)
while True:
    # Not signal.pause(): what comes just before it is taken note of, and slept over for ever.
    time.sleep(0.1)
"""


@pytest.fixture
def namespace(control_plane: ControlPlane) -> str:
    name = f"test-{uuid4().hex[:8]}"
    control_plane.kubectl("create", "namespace", name)
    control_plane.kubectl("wait", "--for=create", "serviceaccount/default", "-n", name, "--timeout=30s")
    return name


def alive(pids: Mapping[str, int]) -> list[str]:
    return [name for name, pid in pids.items() if psutil.pid_exists(pid)]


def test_the_server_is_the_version_of_go_mod(control_plane: ControlPlane) -> None:
    versions = json.loads(control_plane.kubectl("version", "--output=json"))
    assert versions["serverVersion"]["gitVersion"] == kubernetes_version() == "v1.37.2"


@pytest.mark.parametrize("name", SERVERS)
def test_every_process_listens_on_loopback_alone(control_plane: ControlPlane, name: str) -> None:
    sockets = psutil.Process(control_plane.pids[name]).net_connections(kind="inet")
    assert {s.laddr.ip for s in sockets if s.status == psutil.CONN_LISTEN} == {"127.0.0.1"}


def test_a_user_without_a_role_is_refused(control_plane: ControlPlane) -> None:
    with pytest.raises(KubectlFailed) as refusal:
        control_plane.kubectl("get", "nodes", kubeconfig=control_plane.kubeconfig("nobody", ["strangers"]))
    assert "(Forbidden)" in refusal.value.stderr
    assert 'User "nobody" cannot list resource "nodes"' in refusal.value.stderr


def test_a_role_is_what_a_user_needs(control_plane: ControlPlane, namespace: str) -> None:
    binding = f"readers-{namespace}"
    control_plane.kubectl("create", "clusterrolebinding", binding, "--clusterrole=view", "--group=readers")
    reader = control_plane.kubeconfig("somebody", ["others", "readers"])
    wait_until(
        lambda: (
            control_plane.kubectl("auth", "can-i", "list", "pods", check=False, kubeconfig=reader) == "yes\n"
        ),
        seconds=30,
        what="the role is in force",
    )


def test_a_node_reads_and_writes_itself_alone(control_plane: ControlPlane) -> None:
    own, other = f"node-{uuid4().hex[:8]}", f"node-{uuid4().hex[:8]}"
    kubelet = control_plane.kubeconfig(f"system:node:{own}", ["system:nodes"])
    nodes = {name: {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}} for name in (own, other)}
    for node in nodes.values():
        control_plane.kubectl("create", "-f", "-", input=json.dumps(node))
    control_plane.kubectl("annotate", "node", own, "fact=mine", kubeconfig=kubelet)
    with pytest.raises(KubectlFailed, match="only its own Node object"):
        control_plane.kubectl("get", "node", other, kubeconfig=kubelet)
    # Raw, without the read that most commands begin with.
    write = ("replace", "--raw", f"/api/v1/nodes/{other}", "-f", "-")
    with pytest.raises(KubectlFailed, match="is not allowed to modify node"):
        control_plane.kubectl(*write, input=json.dumps(nodes[other]), kubeconfig=kubelet)
    control_plane.kubectl("delete", "node", own, other)


def test_a_node_reads_a_secret_once_a_pod_of_its_own_names_it(
    control_plane: ControlPlane, namespace: str
) -> None:
    node = f"node-{uuid4().hex[:8]}"
    kubelet = control_plane.kubeconfig(f"system:node:{node}", ["system:nodes"])
    read = ("get", "secret", "treasure", "-n", namespace, "--output=name")
    control_plane.kubectl("create", "secret", "generic", "treasure", "-n", namespace)
    with pytest.raises(KubectlFailed, match="no relationship found between node"):
        control_plane.kubectl(*read, kubeconfig=kubelet)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "keeper", "namespace": namespace},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "keeper", "image": "none"}],
            "volumes": [{"name": "treasure", "secret": {"secretName": "treasure"}}],
        },
    }
    control_plane.kubectl("create", "-f", "-", input=json.dumps(pod))
    wait_until(
        lambda: control_plane.kubectl(*read, check=False, kubeconfig=kubelet) == "secret/treasure\n",
        seconds=30,
        what="the authorizer has seen the pod",
    )


def test_a_service_account_token_authenticates(control_plane: ControlPlane, namespace: str) -> None:
    token = control_plane.kubectl("create", "token", "default", "-n", namespace).strip()
    review = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": token},
    }
    answer = json.loads(control_plane.kubectl("create", "-f", "-", "-o", "json", input=json.dumps(review)))
    assert answer["status"]["user"]["username"] == f"system:serviceaccount:{namespace}:default"


def test_the_audit_log_holds_every_write(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.kubectl("create", "configmap", "written", "-n", namespace)

    def writes() -> list[tuple[str, str, str, int]]:
        return [
            (event["user"]["username"], event["level"], event["stage"], event["responseStatus"]["code"])
            for event in control_plane.audit_events()
            if event["verb"] == "create"
            and event["objectRef"].get("namespace") == namespace
            and event["objectRef"].get("name") == "written"
        ]

    found = wait_until(writes, seconds=10, what="the write is logged")
    assert found == [("admin", "Metadata", "ResponseComplete", 201)]


def test_the_garbage_collector_deletes_what_lost_its_owner(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.kubectl("create", "configmap", "owner", "-n", namespace)
    uid = control_plane.kubectl(
        "get", "configmap", "owner", "-n", namespace, "-o", "jsonpath={.metadata.uid}"
    )
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
    dependent = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "dependent", "namespace": namespace, "ownerReferences": [owner]},
    }
    control_plane.kubectl("create", "-f", "-", input=json.dumps(dependent))
    control_plane.kubectl("delete", "configmap", "owner", "-n", namespace)
    control_plane.kubectl("wait", "--for=delete", "configmap/dependent", "-n", namespace, "--timeout=60s")


def test_a_killed_api_server_comes_back_with_its_data(start_control_plane: StartControlPlane) -> None:
    with start_control_plane() as plane:
        url, pid = plane.url, plane.pids["kube-apiserver"]
        plane.kubectl("create", "namespace", "before")
        plane.kill("kube-apiserver")
        with pytest.raises(KubectlFailed, match="refused"):
            plane.kubectl("get", "namespaces")
        plane.restart("kube-apiserver")
        assert plane.kubectl("get", "namespace", "before", "-o", "name") == "namespace/before\n"
        assert plane.url == url
        assert plane.pids["kube-apiserver"] != pid


def test_two_control_planes_share_nothing(
    control_plane: ControlPlane, start_control_plane: StartControlPlane
) -> None:
    with start_control_plane() as child:
        child.kubectl("create", "namespace", "of-the-child")
        assert "of-the-child" not in control_plane.kubectl("get", "namespaces")
        with pytest.raises(KubectlFailed, match=r"certificate|x509"):
            child.kubectl("--server", control_plane.url, "get", "namespaces")


def test_stopping_leaves_no_process_and_no_file(start_control_plane: StartControlPlane) -> None:
    plane = start_control_plane()
    pids = plane.pids
    assert sorted(alive(pids)) == sorted([*SERVERS, "supervisor"])
    plane.stop()
    assert alive(pids) == []
    assert not plane.folder.exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_tests_that_are_ended_leave_no_process_and_no_file(control_plane_programs: Path, number: int) -> None:
    """The signal goes to the whole process group, as Ctrl-C in a terminal does."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(control_plane_programs)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as holder:
        assert holder.stdout is not None
        where = json.loads(holder.stdout.readline())
        assert len(alive(where["pids"])) == 4
        os.killpg(holder.pid, number)
    wait_until(
        lambda: not alive(where["pids"]) and not Path(where["folder"]).exists(),
        seconds=30,
        what="processes and folder gone",
    )


def test_a_killed_supervisor_leaves_no_process(start_control_plane: StartControlPlane) -> None:
    plane = start_control_plane()
    servers = {name: plane.pids[name] for name in SERVERS}
    os.kill(plane.pids["supervisor"], signal.SIGKILL)
    wait_until(lambda: not alive(servers), seconds=10, what="its children are gone")
    plane.stop()
    assert not plane.folder.exists()


def test_a_program_that_dies_at_start_shows_its_log(start_control_plane: StartControlPlane) -> None:
    with pytest.raises(ControlPlaneFailed, match=r"kube-apiserver ended with 1:\n(?s:.*)--no-such-flag"):
        start_control_plane(extra_apiserver_args=["--no-such-flag"])


def test_a_folder_that_lacks_programs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "etcd").touch(mode=0o755)
    monkeypatch.setenv("FIVESPOT_CONTROL_PLANE", str(tmp_path))
    with pytest.raises(ProgramsUnavailable, match=f"{tmp_path} lacks {', '.join(PROGRAMS[1:])}$"):
        find_or_build(pytest.fail)


@pytest.mark.parametrize(("required", "outcome"), [("", "1 skipped"), ("1", "1 error")])
def test_a_machine_without_programs_says_so_in_one_line(tmp_path: Path, required: str, outcome: str) -> None:
    """Skipped, or an error where FIVESPOT_REQUIRE_LIVE asks for it."""
    one = f"{__file__}::{test_the_server_is_the_version_of_go_mod.__name__}"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            one,
        ],
        cwd=ROOT,
        env={**os.environ, "FIVESPOT_CONTROL_PLANE": str(tmp_path), "FIVESPOT_REQUIRE_LIVE": required},
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome in done.stdout
    assert done.stdout.count("NOT RUN: every test against a real control plane: FIVESPOT_CONTROL_PLANE=") == 1
