"""One node: a containerd and a kubelet of its own, joined to a control plane, from construction until `stop`."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.errors import ControlPlaneFailed
from tests.controlplane.ports import free_ports
from tests.controlplane.processes import StoppedAtTheEnd, SupervisedProcesses
from tests.controlplane.waiting import wait_until
from tests.node import images, settings
from tests.node.binaries import NodePrograms

_ROOT = Path(__file__).parents[2]
_START_SECONDS = 60.0
"""For one program to be ready. It takes one; the rest is for a machine that is busy with something else."""

# -I and an appended path: our own modules cannot hide the standard library's.
HOST = f"import sys; sys.path.append({str(_ROOT)!r}); from tests.node import host; host.main()"
"""The program of a node's parent, for `python -I -c`."""


class Node(StoppedAtTheEnd):
    """A kubelet that has registered, and what it runs pods with.

    Args:
        plane: the control plane that it joins.
        programs: what it runs (`binaries.find_or_build`).
        name: of the Node; its certificate is that of `system:node:NAME`.
        provider_id: what it says in `spec.providerID`.
        static_pods: manifests that its kubelet runs by itself.

    Raises:
        ControlPlaneFailed: a program died, or did not become ready; with the tail of its log.
    """

    def __init__(
        self,
        plane: ControlPlane,
        programs: NodePrograms,
        *,
        name: str,
        provider_id: str,
        static_pods: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self.name = name
        self._plane = plane
        self._programs = programs
        self._processes = SupervisedProcesses(("-I", "-c", HOST))
        self.folder = self._processes.folder
        """Everything it writes; gone after `stop`."""
        try:
            self._start_containerd()
            self._start_kubelet(provider_id, static_pods)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """As pulling the plug, and nothing is left on the machine; the Node object stays. A second call does nothing."""
        self._processes.close()

    @property
    def pids(self) -> Mapping[str, int]:
        """kubelet and containerd, and the parent of everything."""
        return {**self._processes.pids, "host": self._processes.supervisor_pid}

    def kill_kubelet(self) -> None:
        """Dead at once, and nobody starts it again: its containers run on, and the node falls silent."""
        self._processes.end("kubelet", signal.SIGKILL)

    def log(self, name: str) -> str:
        """The tail of what kubelet or containerd said."""
        return self._processes.log(name)

    def _start_containerd(self) -> None:
        folder, ctr = self.folder, self._programs.containerd / "ctr"
        (folder / "cni").mkdir()
        (folder / "cni" / "test.conflist").write_text(settings.network(folder))
        (folder / "containerd.toml").write_text(settings.containerd(folder, self._programs))
        images.pack(self._programs.busybox, folder / "image.tar")
        program = self._programs.containerd / "containerd"
        self._processes.start("containerd", [str(program), "--config", str(folder / "containerd.toml")])
        asked = [str(ctr), "--address", str(folder / "containerd.sock"), "--namespace", "k8s.io"]
        self._await("containerd", lambda: _succeeds(*asked, "version"))
        # In the mounts of containerd: it is the client that unpacks.
        loaded = [*asked, "images", "import", "--local", "--snapshotter=native", str(folder / "image.tar")]
        self._processes.start("import", loaded)
        wait_until(
            lambda: self._processes.returncode("import") is not None, seconds=_START_SECONDS, what="the image"
        )
        if self._processes.returncode("import") != 0:
            raise ControlPlaneFailed(f"the image cannot be imported:\n{self.log('import')}")

    def _start_kubelet(self, provider_id: str, static_pods: Sequence[Mapping[str, Any]]) -> None:
        folder = self.folder
        (folder / "static-pods").mkdir()
        for number, pod in enumerate(static_pods):
            (folder / "static-pods" / f"{number}.json").write_text(json.dumps(pod))
        (port,) = free_ports(1)
        (folder / "kubelet.json").write_text(
            settings.kubelet(folder, port=port, authority=self._plane.ca_file)
        )
        identity = self._plane.kubeconfig(f"system:node:{self.name}", ["system:nodes"])
        command = [
            str(self._programs.kubernetes / "kubelet"),
            f"--config={folder / 'kubelet.json'}",
            f"--kubeconfig={identity}",
            f"--root-dir={folder / 'kubelet'}",
            f"--cert-dir={folder / 'kubelet-certs'}",
            f"--hostname-override={self.name}",
            f"--provider-id={provider_id}",
        ]
        self._processes.start("kubelet", command)
        self._await("kubelet", self._registered)

    def _registered(self) -> bool:
        asked = ("get", "node", self.name, "--ignore-not-found", "-o", "name")
        return bool(self._plane.kubectl(*asked).strip())

    def _await(self, name: str, ready: Callable[[], bool]) -> None:
        def ready_or_dead() -> bool:
            if (code := self._processes.returncode(name)) is not None:
                raise ControlPlaneFailed(f"{name} ended with {code}:\n{self.log(name)}")
            return ready()

        try:
            wait_until(ready_or_dead, seconds=_START_SECONDS, what=f"{name} ready")
        except TimeoutError as error:
            raise ControlPlaneFailed(f"{error}:\n{self.log(name)}") from error


def _succeeds(*command: str) -> bool:
    return subprocess.run(command, check=False, capture_output=True).returncode == 0
