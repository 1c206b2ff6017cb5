"""A real Prometheus that scrapes one number five times a second, over TLS, on loopback."""

from __future__ import annotations

import json
import signal
import ssl
from pathlib import Path

import httpx

from tests.controlplane.certs import Credential
from tests.controlplane.ports import free_ports
from tests.controlplane.processes import StoppedAtTheEnd, SupervisedProcesses
from tests.controlplane.waiting import wait_until
from tests.prometheus.around import Desk

_NAME = "prometheus"
_QUESTIONS = 'prometheus_http_requests_total{code="200",handler="/api/v1/query"}'


class PrometheusServer(StoppedAtTheEnd):
    """The server, and the desk that it watches.

    Attributes:
        desk: what it scrapes.
        url: its base.
    """

    def __init__(self, program: Path, credential: Credential, ca: bytes) -> None:
        self._program = program
        self._context = ssl.create_default_context(cadata=ca.decode())
        self._port = free_ports(1)[0]
        self.url = f"https://localhost:{self._port}"
        self.desk = Desk()
        self._processes = SupervisedProcesses()
        self._folder = self._processes.folder
        target = {"job_name": "desk", "static_configs": [{"targets": [self.desk.address]}]}
        # JSON is YAML.
        self._write("prometheus.yml", {"global": {"scrape_interval": "200ms"}, "scrape_configs": [target]})
        self._write("web.yml", {"tls_server_config": {"cert_file": "tls.crt", "key_file": "tls.key"}})
        self.present(credential)
        self.start()

    def present(self, credential: Credential) -> None:
        """Use a certificate; every new connection gets it."""
        (self._folder / "tls.crt").write_bytes(credential.certificate)
        (self._folder / "tls.key").write_bytes(credential.key)

    def start(self) -> None:
        """Start it, with what it knew before, and wait until it answers."""
        options = {
            "config.file": "prometheus.yml",
            "web.config.file": "web.yml",
            "web.listen-address": f"127.0.0.1:{self._port}",
            "storage.tsdb.path": "data",
        }
        self._processes.start(
            _NAME, [str(self._program), *(f"--{name}={value}" for name, value in options.items())]
        )
        wait_until(self._ready, seconds=30, what="Prometheus is ready", every=0.1)

    def kill(self) -> None:
        """End it."""
        self._processes.end(_NAME, signal.SIGKILL)

    def stall(self) -> None:
        """Connections are taken, by the kernel, and nothing is said."""
        self._processes.send_signal(_NAME, signal.SIGSTOP)

    def go_on(self) -> None:
        """End a stall."""
        self._processes.send_signal(_NAME, signal.SIGCONT)

    def value(self, query: str) -> str | None:
        """What it says to a query now; None for nothing."""
        answer = httpx.get(
            f"{self.url}/api/v1/query", params={"query": query}, verify=self._context, trust_env=False
        )
        result = answer.json()["data"]["result"]
        return result[0]["value"][1] if result else None

    def questions(self) -> int:
        """How many queries it has answered, by its own count; those of `value` among them."""
        text = httpx.get(f"{self.url}/metrics", verify=self._context, trust_env=False).text
        lines = (line.rpartition(" ") for line in text.splitlines())
        counts = [int(float(value)) for name, _, value in lines if name.startswith(_QUESTIONS)]
        return sum(counts)

    def stop(self) -> None:
        self._processes.close()
        self.desk.stop()

    def _write(self, name: str, content: object) -> None:
        (self._folder / name).write_text(json.dumps(content))

    def _ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/-/ready", verify=self._context, trust_env=False).is_success
        except httpx.HTTPError:
            return False
