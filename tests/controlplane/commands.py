"""The command lines of the three programs, and the files that they name.

All listen on 127.0.0.1 alone. Nothing is durable: the folder lives as long as the test run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane import certs

DEFAULT_CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "daemonset-controller",
    "disruption-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "node-lifecycle-controller",
    "pod-garbage-collector-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "taint-eviction-controller",
    "validatingadmissionpolicy-status-controller",
)
"""What acts on the objects that the product touches. No scheduler: a test binds pods itself."""

# Every request, once, when it is answered: the tests count writes.
_AUDIT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Where each program listens on 127.0.0.1."""

    etcd_client: int
    etcd_peer: int
    apiserver: int
    controller_manager: int


class Commands:
    """Builds the command lines for one set of programs and one folder."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs = programs
        self._folder = folder
        self.audit_log = folder / "audit.log"

    def write_files(self, authority: certs.CertificateAuthority) -> None:
        """Write the certificates, keys and policy that the command lines name."""
        server, accounts = authority.server(), certs.key_pair()
        for name, content in {
            "ca.crt": authority.certificate,
            "server.crt": server.certificate,
            "server.key": server.key,
            "service-accounts.pub": accounts.certificate,
            "service-accounts.key": accounts.key,
            "audit-policy.yaml": _AUDIT_POLICY.encode(),
        }.items():
            (self._folder / name).write_bytes(content)

    def etcd(self, ports: Ports) -> list[str]:
        """Keeps everything, without waiting for the disk."""
        client, peer = f"http://127.0.0.1:{ports.etcd_client}", f"http://127.0.0.1:{ports.etcd_peer}"
        return [
            str(self._programs / "etcd"),
            # A folder per try: data of another peer address would be refused.
            f"--data-dir={self._folder / f'etcd-{ports.etcd_peer}'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def apiserver(self, ports: Ports, extra: Sequence[str]) -> list[str]:
        """`extra` comes last, and so wins."""
        return [
            str(self._programs / "kube-apiserver"),
            f"--etcd-servers=http://127.0.0.1:{ports.etcd_client}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={ports.apiserver}",
            # Endpoints of the service "kubernetes" may not be loopback addresses; nobody needs them here.
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--allow-privileged=true",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            f"--client-ca-file={self._folder / 'ca.crt'}",
            f"--tls-cert-file={self._folder / 'server.crt'}",
            f"--tls-private-key-file={self._folder / 'server.key'}",
            f"--cert-dir={self._folder / 'apiserver-certs'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._folder / 'service-accounts.pub'}",
            f"--service-account-signing-key-file={self._folder / 'service-accounts.key'}",
            f"--audit-policy-file={self._folder / 'audit-policy.yaml'}",
            f"--audit-log-path={self.audit_log}",
            # Megabytes; large enough that the log is never rotated away under its reader.
            "--audit-log-maxsize=10000",
            *extra,
        ]

    def controller_manager(
        self, ports: Ports, kubeconfig: Path, controllers: Sequence[str], extra: Sequence[str]
    ) -> list[str]:
        """One of it, so there is nobody to elect; every controller acts as its own ServiceAccount."""
        return [
            str(self._programs / "kube-controller-manager"),
            f"--kubeconfig={kubeconfig}",
            f"--controllers={','.join(controllers)}",
            "--bind-address=127.0.0.1",
            f"--secure-port={ports.controller_manager}",
            f"--tls-cert-file={self._folder / 'server.crt'}",
            f"--tls-private-key-file={self._folder / 'server.key'}",
            f"--cert-dir={self._folder / 'controller-manager-certs'}",
            f"--root-ca-file={self._folder / 'ca.crt'}",
            f"--service-account-private-key-file={self._folder / 'service-accounts.key'}",
            "--use-service-account-credentials",
            "--leader-elect=false",
            *extra,
        ]
