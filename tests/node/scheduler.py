"""kube-scheduler for a control plane: who places the pods of a ReplicaSet or DaemonSet on a node."""

from __future__ import annotations

from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.ports import free_ports
from tests.controlplane.processes import StoppedAtTheEnd, SupervisedProcesses
from tests.node.binaries import NodePrograms


class Scheduler(StoppedAtTheEnd):
    """At work from construction until `stop`. Nobody waits for it: pods that wait show that it is not there yet."""

    def __init__(self, plane: ControlPlane, programs: NodePrograms) -> None:
        self._processes = SupervisedProcesses()
        (port,) = free_ports(1)
        command = [
            str(programs.kubernetes / "kube-scheduler"),
            f"--kubeconfig={plane.kubeconfig('system:kube-scheduler')}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--cert-dir={self._processes.folder / 'certs'}",
            "--leader-elect=false",
        ]
        self._processes.start("kube-scheduler", command)

    def stop(self) -> None:
        """End it; a second call does nothing."""
        self._processes.close()
