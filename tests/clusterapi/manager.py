"""Cluster API's core manager at work in a control plane, with its kinds and webhooks."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from tests.clusterapi.binaries import LOOPBACK, Found
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.errors import ControlPlaneFailed
from tests.controlplane.health import answers
from tests.controlplane.ports import free_ports
from tests.controlplane.processes import StoppedAtTheEnd, SupervisedProcesses
from tests.controlplane.waiting import wait_until

BOTH: Final = ("v1beta1", "v1beta2")
"""The versions of its own kinds, and of its contracts with providers."""

_START_SECONDS: Final = 90.0
_NAME: Final = "cluster-api"
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class ClusterApi(StoppedAtTheEnd):
    """The core manager and its CRDs, in one control plane, from `install` and `start` until `stop`.

    Its webhooks convert between its API versions, and admit and default its objects, as in a real installation.

    Args:
        found: the program and its CRDs (`binaries.find_or_build`).
        plane: the management cluster, which is its own child: from its network the manager reaches no other.
    """

    def __init__(self, found: Found, plane: ControlPlane) -> None:
        self._found = found
        self._plane = plane
        self._webhooks, self._health = free_ports(2)
        self._processes = SupervisedProcesses()

    def install(self, served: Iterable[str] = BOTH) -> None:
        """Its CRDs, of which only these versions are served, and its webhooks; waits until the kinds are there."""
        definitions = [self._definition(document, set(served)) for document in _documents(self._found.crds)]
        self._apply(definitions)
        names = [f"crd/{definition['metadata']['name']}" for definition in definitions]
        self._plane.kubectl("wait", "--for=condition=Established", "--timeout=60s", *names)
        self._apply([self._configuration(document) for document in _documents(self._found.webhooks)])

    def start(self) -> None:
        """Start the manager, and wait until it works.

        Raises:
            ControlPlaneFailed: it died or did not become ready; with the tail of its log.
        """
        self._processes.start(_NAME, self._command())

        def ready_or_dead() -> bool:
            if (code := self._processes.returncode(_NAME)) is not None:
                raise ControlPlaneFailed(f"the manager ended with {code}:\n{self.log()}")
            return answers(self._health, "/readyz")

        try:
            wait_until(ready_or_dead, seconds=_START_SECONDS, what="Cluster API's manager ready")
        except TimeoutError as error:
            raise ControlPlaneFailed(f"{error}:\n{self.log()}") from error

    def stop(self) -> None:
        """End the manager; what is installed stays. A second call does nothing."""
        self._processes.close()

    def log(self) -> str:
        """The tail of what the manager printed."""
        return self._processes.log(_NAME)

    def _command(self) -> list[str]:
        plane = self._plane
        return [
            *LOOPBACK,
            *("--inward", str(self._webhooks), str(self._health)),
            *("--outward", str(urlsplit(plane.url).port)),
            *("--", str(self._found.program)),
            f"--kubeconfig={plane.kubeconfig('test:cluster-api', ['system:masters'])}",
            f"--webhook-port={self._webhooks}",
            # The API server's own certificate: it is for 127.0.0.1 too.
            f"--webhook-cert-dir={plane.folder}",
            "--webhook-cert-name=server.crt",
            "--webhook-key-name=server.key",
            f"--health-addr=127.0.0.1:{self._health}",
            "--diagnostics-address=0",
            # A step a second is its pace in production, and not what these tests are about.
            "--feature-gates=ReconcilerRateLimiting=false",
            # The tests decide which versions are stored and served.
            "--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields",
        ]

    def _definition(self, document: dict[str, Any], served: set[str]) -> dict[str, Any]:
        """A CRD as Cluster API's own manifests have it, but for where the webhook is."""
        document["metadata"].setdefault("labels", {}).update(
            {f"cluster.x-k8s.io/{contract}": contract for contract in BOTH}
        )
        versions = document["spec"]["versions"]
        for version in versions:
            # The other groups have versions of their own.
            version["served"] = version["name"] not in BOTH or version["name"] in served
        document["spec"]["conversion"] = {
            "strategy": "Webhook",
            "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": self._client("/convert")},
        }
        return document

    def _configuration(self, document: dict[str, Any]) -> dict[str, Any]:
        for webhook in document["webhooks"]:
            webhook["clientConfig"] = self._client(webhook["clientConfig"]["service"]["path"])
        document["metadata"]["name"] = f"capi-{document['metadata']['name']}"
        return document

    def _client(self, path: str) -> dict[str, str]:
        authority = base64.b64encode(self._plane.ca_file.read_bytes()).decode()
        return {"url": f"https://127.0.0.1:{self._webhooks}{path}", "caBundle": authority}

    def _apply(self, documents: list[dict[str, Any]]) -> None:
        body = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
        # On the server: some are too long for the annotation that kubectl would leave in them.
        options = ("--server-side", "--force-conflicts", "--validate=false")
        self._plane.kubectl("apply", *options, "-f", "-", input=body)


def _documents(path: Path) -> list[dict[str, Any]]:
    """What a YAML file holds, or all of a folder."""
    paths = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
    return [document for one in paths for document in yaml.load_all(one.read_text(), Loader=_LOADER)]
