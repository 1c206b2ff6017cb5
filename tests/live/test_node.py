"""Facts about the real node that the tests of drains stand on; the first is that a machine is afterwards as it was."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.controlplane import binaries as of_the_plane
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.errors import ControlPlaneFailed
from tests.controlplane.processes import SupervisedProcesses
from tests.controlplane.waiting import wait_until
from tests.node import host
from tests.node.binaries import NodePrograms
from tests.node.node import HOST as NODE_HOST
from tests.node.node import Node
from tests.node.pods import NEVER_ENDS, pod

ROOT = Path(__file__).parents[2]

# Starts a node with pods for a control plane, says where, and waits for the signal that ends it.
HOLDER = """
import json, sys, time
from pathlib import Path
from tests.controlplane.binaries import find_or_build
from tests.controlplane.controlplane import ControlPlane
from tests.live.test_node import begin
from tests.node import binaries
with ControlPlane(find_or_build(print)) as plane:
    node = begin(plane, binaries.find_or_build(print))
    print(json.dumps({"folder": str(node.folder), "pid": node.pids["host"]}), flush=True)
    while True:
        time.sleep(0.1)
"""


def begin(plane: ControlPlane, programs: NodePrograms, name: str = "real-1") -> Node:
    """A node with two pods that end no sooner than they must, one of them with a network of its own."""
    node = Node(plane, programs, name=name, provider_id=f"test://{name}")
    plane.kubectl("wait", "--for=create", "serviceaccount/default", "-n", "default", "--timeout=30s")
    made = [
        pod("default", f"{name}-a", name, does=NEVER_ENDS, grace=600),
        pod("default", f"{name}-b", name, does=NEVER_ENDS, grace=600, hostNetwork=True),
    ]
    plane.kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": made}))
    plane.kubectl("wait", "--for=condition=Ready", f"node/{name}", "--timeout=60s")
    plane.kubectl(
        "wait", "--for=condition=Ready", f"pod/{name}-a", f"pod/{name}-b", "-n", "default", "--timeout=60s"
    )
    return node


# Known by hand: what the host keeps from changing would not be missed there.
SETTINGS = (
    "kernel/keys/root_maxbytes",
    "kernel/keys/root_maxkeys",
    "kernel/panic",
    "kernel/panic_on_oops",
    "net/ipv4/conf/all/route_localnet",
    "net/ipv4/ip_forward",
    "net/ipv6/conf/all/forwarding",
    "net/netfilter/nf_conntrack_max",
    "vm/max_map_count",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
)
FOLDERS = (
    "/etc/cni",
    "/opt/cni",
    "/opt/containerd",
    "/run/containerd",
    "/run/netns",
    "/run/nri",
    "/usr/libexec/kubernetes",
    "/var/lib/cni",
    "/var/lib/kubelet",
    "/var/log/containers",
    "/var/log/pods",
)

# What nodes have while they run; those of other test runs come and go meanwhile.
PASSING = {"cgroup", "folder", "link", "route"}


def traces() -> set[tuple[str, str]]:
    """What a node could leave behind on a machine: a kind, and what it is."""
    found = {
        "mount": [line.split()[4] for line in _lines("/proc/self/mountinfo")],
        "link": os.listdir("/sys/class/net"),  # noqa: PTH208 - names
        "route": _lines("/proc/net/route"),
        "rule": [rule for program in ("iptables-save", "ip6tables-save") for rule in _rules(program)],
        "setting": [f"{name} {_lines(f'/proc/sys/{name}')}" for name in SETTINGS],
        # At the top of one hierarchy, or of each.
        "cgroup": [
            path for depth in ("", "*/") for path in Path("/sys/fs/cgroup").glob(f"{depth}{host.PREFIX}*")
        ],
        "file": [
            path for folder in map(Path, FOLDERS) for path in (folder, *folder.rglob("*")) if path.exists()
        ],
        "folder": Path(tempfile.gettempdir()).glob(f"{host.PREFIX}*"),
    }
    return {(kind, str(one)) for kind, those in found.items() for one in those}


def _lines(path: str) -> list[str]:
    found = Path(path)
    return found.read_text().splitlines() if found.exists() else []


def _rules(program: str) -> list[str]:
    if (found := shutil.which(program)) is None:
        return []
    printed = subprocess.run([found], capture_output=True, text=True, check=False).stdout
    return [line for line in printed.splitlines() if not line.startswith("#")]


@pytest.fixture
def before() -> set[tuple[str, str]]:
    return traces()


@pytest.fixture
def node(
    before: set[tuple[str, str]], control_plane: ControlPlane, node_programs: NodePrograms
) -> Iterator[Node]:
    made = begin(control_plane, node_programs)
    yield made
    made.stop()
    control_plane.kubectl("delete", "node", made.name, "--ignore-not-found")
    control_plane.kubectl("delete", "pods", "--all", "-n", "default", "--grace-period=0", "--force")


def test_the_kubelet_is_the_version_of_the_control_plane(node_programs: NodePrograms) -> None:
    kubelet = node_programs.kubernetes / "kubelet"
    said = subprocess.run([kubelet, "--version"], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["Kubernetes", of_the_plane.kubernetes_version()]


def test_a_node_leaves_nothing_behind(
    before: set[tuple[str, str]], node: Node, control_plane: ControlPlane
) -> None:
    processes = psutil.Process(node.pids["host"]).children(recursive=True)
    names = [process.name() for process in processes]
    # Two sleeps each: a pod's pause container, and what its shell waits for.
    assert {name: names.count(name) for name in sorted(set(names))} == {
        "containerd": 1, "containerd-shim-runc-v2": 2, "kubelet": 1, "sh": 2, "sleep": 4,
    }  # fmt: skip
    info = json.loads(control_plane.kubectl("get", "node", node.name, "-o", "json"))
    assert info["spec"]["providerID"] == "test://real-1"
    during = traces()
    assert {kind for kind, _ in during - before} == PASSING
    node.stop()
    _nothing_is_left(before, during, processes)
    assert control_plane.kubectl("get", "node", node.name, "-o", "name").strip() == f"node/{node.name}"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_tests_that_are_ended_leave_nothing_behind(
    before: set[tuple[str, str]],
    control_plane_programs: Path,
    node_programs: NodePrograms,
    tmp_path: Path,
    number: int,
) -> None:
    with (
        (tmp_path / "holder.log").open("w") as log,
        subprocess.Popen(
            [sys.executable, "-c", HOLDER],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        ) as holder,
    ):
        assert holder.stdout is not None
        line = holder.stdout.readline()
        assert line, (tmp_path / "holder.log").read_text()
        where = json.loads(line)
        processes = psutil.Process(where["pid"]).children(recursive=True)
        assert len(processes) > 5
        during = traces()
        os.killpg(holder.pid, number)
    _nothing_is_left(before, during, processes)


def _nothing_is_left(
    before: set[tuple[str, str]], during: set[tuple[str, str]], processes: list[psutil.Process]
) -> None:
    wait_until(
        lambda: not any(process.is_running() for process in processes), seconds=30, what="no process is left"
    )

    def left() -> set[tuple[str, str]]:
        new = traces() - before
        return {trace for trace in new if trace in during or trace[0] not in PASSING}

    # The kernel takes a pod's network down after its last process has gone.
    with contextlib.suppress(TimeoutError):
        wait_until(lambda: not left(), seconds=10, what="the machine is as it was", every=0.2)
    assert left() == set()


def test_a_node_whose_kubelet_is_killed_runs_its_pods_on(node: Node) -> None:
    processes = psutil.Process(node.pids["host"]).children(recursive=True)
    node.kill_kubelet()
    assert [process.pid for process in processes if not process.is_running()] == [node.pids["kubelet"]]


def test_a_host_that_cannot_have_what_it_needs_says_what() -> None:
    """Here a mount of its own, where no folder is."""
    setting = "host.OWN_SETTINGS = (); host.OWN_FOLDERS = ('/no/such/folder',)"
    program = NODE_HOST.replace("host.main()", f"{setting}; host.main()")
    before = traces()
    with pytest.raises(
        ControlPlaneFailed, match=r"cannot start: .*mount.*'/no/such'.*No such file or directory"
    ):
        SupervisedProcesses(("-I", "-c", program))
    assert traces() - before == set()


@pytest.mark.parametrize(("required", "outcome"), [("", "1 skipped"), ("1", "1 error")])
def test_a_machine_without_runc_says_so_in_one_line(tmp_path: Path, required: str, outcome: str) -> None:
    """Skipped, or an error where FIVESPOT_REQUIRE_LIVE asks for it."""
    one = f"{__file__}::{test_the_kubelet_is_the_version_of_the_control_plane.__name__}"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", one],
        cwd=ROOT,
        env={**os.environ, "PATH": str(tmp_path), "FIVESPOT_REQUIRE_LIVE": required},
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome in done.stdout
    assert done.stdout.count("NOT RUN: every test on a real node: no runc on this machine: install") == 1
