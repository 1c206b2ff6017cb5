"""One running control plane: where it is, who may talk to it, and what it has been asked."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import signal
import ssl
import subprocess
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from tests.controlplane.certs import CertificateAuthority
from tests.controlplane.commands import DEFAULT_CONTROLLERS, Commands, Ports
from tests.controlplane.errors import ControlPlaneFailed, KubectlFailed
from tests.controlplane.health import answers
from tests.controlplane.kubeconfig import render
from tests.controlplane.ports import free_ports
from tests.controlplane.processes import StoppedAtTheEnd, SupervisedProcesses
from tests.controlplane.waiting import wait_until

_START_SECONDS = 90.0
"""For one program to be ready. It takes three; the rest is for a machine that is busy with something else."""

_KUBECTL_SECONDS = 120.0

# What a controller does first thing: when it is there, the controller works. Its own health check says less.
_FIRST_DEEDS = {
    "serviceaccount-controller": "/api/v1/namespaces/default/serviceaccounts/default",
    "root-ca-certificate-publisher-controller": "/api/v1/namespaces/default/configmaps/kube-root-ca.crt",
}


class ControlPlane(StoppedAtTheEnd):
    """etcd, kube-apiserver and kube-controller-manager, alive from construction until `stop`.

    Args:
        programs: the folder of their executables (`binaries.find_or_build`).
        extra_apiserver_args: flags of kube-apiserver that are added to ours, or replace them.
        controllers: names for kube-controller-manager's --controllers.
        extra_controller_manager_args: flags of kube-controller-manager, in the same way.

    Raises:
        ControlPlaneFailed: a program died or did not become ready; with the tail of its log.
    """

    def __init__(
        self,
        programs: Path,
        *,
        extra_apiserver_args: Sequence[str] = (),
        controllers: Sequence[str] = DEFAULT_CONTROLLERS,
        extra_controller_manager_args: Sequence[str] = (),
    ) -> None:
        self._programs = programs
        self._controllers = tuple(controllers)
        self._authority = CertificateAuthority()
        self._numbers = itertools.count(1)
        self._audit_read = 0
        self._audit_events: list[dict[str, Any]] = []
        self._processes = SupervisedProcesses()
        self.folder = self._processes.folder
        """Everything it writes; gone after `stop`."""
        self.ca_file = self.folder / "ca.crt"
        self._commands = Commands(programs, self.folder)
        try:
            self._commands.write_files(self._authority)
            self._tls = self._admin_tls()
            self._start_on_free_ports(extra_apiserver_args, extra_controller_manager_args)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the processes and remove the folder; a second call does nothing."""
        self._processes.close()

    @property
    def url(self) -> str:
        """The address of the API server."""
        return f"https://127.0.0.1:{self._ports.apiserver}"

    @property
    def pids(self) -> Mapping[str, int]:
        """The processes by name: etcd, kube-apiserver, kube-controller-manager, and the supervisor."""
        return {**self._processes.pids, "supervisor": self._processes.supervisor_pid}

    def kubeconfig_text(self, user: str, groups: Sequence[str] = ()) -> str:
        """A kubeconfig for a user that needs no making: a fresh certificate is all there is to one."""
        return render(
            server=self.url,
            authority=self._authority.certificate,
            user=user,
            credential=self._authority.client(user, groups),
        )

    def kubeconfig(self, user: str, groups: Sequence[str] = ()) -> Path:
        """`kubeconfig_text` in a new file."""
        path = self.folder / f"kubeconfig-{next(self._numbers)}.yaml"
        path.touch(mode=0o600)
        path.write_text(self.kubeconfig_text(user, groups))
        return path

    def kubectl(
        self,
        *args: str,
        input: str | None = None,  # noqa: A002 - as subprocess calls it
        check: bool = True,
        kubeconfig: Path | None = None,
    ) -> str:
        """Run kubectl, as the administrator unless a kubeconfig says otherwise, and answer what it prints.

        Raises:
            KubectlFailed: it failed, and `check` is on.
        """
        done = subprocess.run(
            [str(self._programs / "kubectl"), *args],
            # Its caches belong in our folder, and no setting of this machine's user to it.
            env={
                "KUBECONFIG": str(kubeconfig or self.admin_kubeconfig),
                "HOME": str(self.folder),
                "PATH": os.environ.get("PATH", ""),
            },
            input=input or "",
            capture_output=True,
            text=True,
            check=False,
            timeout=_KUBECTL_SECONDS,
        )
        if check and done.returncode != 0:
            raise KubectlFailed(shlex.join(["kubectl", *args]), done.stderr)
        return done.stdout

    def audit_events(self) -> list[dict[str, Any]]:
        """Every request so far, oldest first, at level Metadata; a watch also when it begins."""
        if self._commands.audit_log.exists():
            with self._commands.audit_log.open("rb") as log:
                log.seek(self._audit_read)
                # A line that is still being written is left for the next time.
                whole = log.read().rpartition(b"\n")[0]
            self._audit_read += len(whole) + (1 if whole else 0)
            self._audit_events += map(json.loads, whole.splitlines())
        return list(self._audit_events)

    def kill(self, name: str) -> None:
        """Kill one process, as a power cut would, and wait until it is dead."""
        self._processes.end(name, signal.SIGKILL)

    def send_signal(self, name: str, number: int) -> None:
        """Send one process a signal, such as SIGSTOP for a server that accepts and says nothing."""
        self._processes.send_signal(name, number)

    def restart(self, name: str, *extra_args: str) -> None:
        """Start one process again, on the same port with the same data, and wait until it is ready.

        It is ended first if it still runs. `extra_args` are flags for this time only; they come last, and so win.
        """
        self._processes.end(name)
        self._processes.start(name, [*self._argv[name], *extra_args])
        self._await(name)

    def compact(self, revision: int) -> None:
        """Make etcd forget what was before a revision, as the API server does every five minutes.

        Revisions are what API objects call resourceVersion.

        Raises:
            ControlPlaneFailed: etcd refuses, as it does for a revision that is forgotten or still to come.
        """
        connection = HTTPConnection("127.0.0.1", self._ports.etcd_client, timeout=10)
        try:
            connection.request("POST", "/v3/kv/compaction", json.dumps({"revision": str(revision)}))
            answer = connection.getresponse()
            said = answer.read().decode(errors="replace")
        finally:
            connection.close()
        if answer.status != HTTPStatus.OK:
            raise ControlPlaneFailed(f"etcd does not compact revision {revision}: {said}")

    def _start_on_free_ports(self, for_apiserver: Sequence[str], for_manager: Sequence[str]) -> None:
        tries = 5
        for left in reversed(range(tries)):
            self._ports = Ports(**dict(zip(Ports.__slots__, free_ports(4), strict=True)))
            try:
                self._start(for_apiserver, for_manager)
            except ControlPlaneFailed as error:
                # Another program was faster than ours to take the port.
                if not left or "address already in use" not in str(error):
                    raise
                for name in reversed(self._processes.pids):
                    self._processes.end(name)
            else:
                return

    def _start(self, for_apiserver: Sequence[str], for_manager: Sequence[str]) -> None:
        self.admin_kubeconfig = self.kubeconfig("admin", ["system:masters"])
        """The administrator, whom no authorizer is asked about."""
        manager = self.kubeconfig("system:kube-controller-manager")
        self._argv = {
            "etcd": self._commands.etcd(self._ports),
            "kube-apiserver": self._commands.apiserver(self._ports, for_apiserver),
            "kube-controller-manager": self._commands.controller_manager(
                self._ports, manager, self._controllers, for_manager
            ),
        }
        for name, argv in self._argv.items():
            self._processes.start(name, argv)
            self._await(name)

    def _await(self, name: str) -> None:
        ready = self._is_ready(name)

        def ready_or_dead() -> bool:
            if (code := self._processes.returncode(name)) is not None:
                raise ControlPlaneFailed(f"{name} ended with {code}:\n{self._processes.log(name)}")
            return ready()

        try:
            wait_until(ready_or_dead, seconds=_START_SECONDS, what=f"{name} ready")
        except TimeoutError as error:
            raise ControlPlaneFailed(f"{error}:\n{self._processes.log(name)}") from error

    def _is_ready(self, name: str) -> Callable[[], bool]:
        ports = self._ports
        if name == "etcd":
            return lambda: answers(ports.etcd_client, "/health")
        if name == "kube-apiserver":
            return lambda: answers(ports.apiserver, "/readyz", self._tls)
        deeds = [path for controller, path in _FIRST_DEEDS.items() if controller in self._controllers]
        return lambda: (
            answers(ports.controller_manager, "/healthz", self._tls)
            and all(answers(ports.apiserver, path, self._tls) for path in deeds)
        )

    def _admin_tls(self) -> ssl.SSLContext:
        admin = self._authority.client("admin", ["system:masters"])
        both = self.folder / "admin.pem"
        both.write_bytes(admin.certificate + admin.key)
        context = ssl.create_default_context(cafile=self.ca_file)
        context.load_cert_chain(both)
        return context
