"""What a real API server says to a manifest: strict field validation, and nothing is stored unless asked."""

import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import attrs
import httpx
import yaml

from fivespot.core.api.kinds import KINDS
from tests.builders import Manifest
from tests.controlplane.waiting import wait_until

NAMESPACE = "parity"
_PLURALS = {kind.name: kind.plural for kind in KINDS}
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@attrs.frozen(kw_only=True)
class Answer:
    """One response.

    Attributes:
        accepted: whether it was a success.
        code: HTTP status.
        fields: the fields that it names as the causes of a refusal.
        message: the message of a refusal.
        document: the body.
        warning: the `Warning` header, empty when there was none.
    """

    accepted: bool
    code: int
    fields: tuple[str, ...]
    message: str
    document: Mapping[str, Any]
    warning: str


class Server:
    """A connection as the administrator."""

    def __init__(self, url: str, ca_file: Path, client_certificate: Path) -> None:
        context = ssl.create_default_context(cafile=str(ca_file))
        context.load_cert_chain(client_certificate)
        self._client = httpx.Client(base_url=url, verify=context, timeout=60)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._client.close()

    def create(self, manifest: Manifest, *, dry_run: bool = True) -> Answer:
        """POST, where kubectl would: to the manifest's own group, kind and namespace."""
        return self._send("POST", _collection(manifest), manifest, dry_run=dry_run)

    def replace(self, manifest: Manifest, *, dry_run: bool = True) -> Answer:
        """PUT."""
        return self._send("PUT", _object(manifest), manifest, dry_run=dry_run)

    def merge_status(self, manifest: Manifest, status: Mapping[str, Any]) -> Answer:
        """Merge patch of the status subresource, stored."""
        return self._send("PATCH", f"{_object(manifest)}/status", {"status": status}, dry_run=False)

    def delete(self, manifest: Manifest) -> Answer:
        """DELETE."""
        return self._send("DELETE", _object(manifest), None, dry_run=False)

    def get(self, path: str) -> Answer:
        """GET of any path."""
        return self._send("GET", path, None, dry_run=False)

    def install(self, crd: Manifest) -> Answer:
        """Create a CustomResourceDefinition, or replace the one that is there."""
        found = self.get(f"{_CRDS}/{crd['metadata']['name']}")
        if not found.accepted:
            return self._send("POST", _CRDS, crd, dry_run=False)
        version = found.document["metadata"]["resourceVersion"]
        replaced = {**crd, "metadata": {**crd["metadata"], "resourceVersion": version}}
        return self._send("PUT", f"{_CRDS}/{crd['metadata']['name']}", replaced, dry_run=False)

    def conditions(self, crd: Manifest) -> dict[str, str]:
        """The conditions of a CustomResourceDefinition."""
        found = self.get(f"{_CRDS}/{crd['metadata']['name']}").document
        return {entry["type"]: entry["status"] for entry in found.get("status", {}).get("conditions", [])}

    def install_all(self, files: Sequence[Path]) -> None:
        """Install CustomResourceDefinitions from their files, wait until they are served, and make our namespace."""
        self.create_namespace()
        crds = [yaml.safe_load(file.read_text()) for file in files]
        for crd in crds:
            answer = self.install(crd)
            assert answer.accepted, answer.message
            assert not answer.warning, answer.warning
        wait_until(
            lambda: all(self.get(f"{_collection(_any_of(crd))}").accepted for crd in crds),
            seconds=30,
            what="every kind is served",
        )

    def read(self, manifest: Manifest) -> Answer:
        """GET of the object."""
        return self.get(_object(manifest))

    def create_namespace(self) -> None:
        """Make the namespace that manifests without one go to."""
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        self._send("POST", "/api/v1/namespaces", namespace, dry_run=False)

    def _send(self, method: str, path: str, body: object, *, dry_run: bool) -> Answer:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        params = {"fieldValidation": "Strict"} if body is not None else {}
        if dry_run:
            params["dryRun"] = "All"
        response = self._client.request(
            method,
            path,
            params=params,
            headers={"Content-Type": kind},
            **({} if body is None else {"json": body}),
        )
        document = response.json() if "json" in response.headers.get("Content-Type", "") else {}
        causes = (document.get("details") or {}).get("causes") or [] if response.is_error else []
        return Answer(
            accepted=response.is_success,
            code=response.status_code,
            fields=tuple(cause["field"] for cause in causes if "field" in cause),
            message=document.get("message", response.text) if response.is_error else "",
            document=document,
            warning=response.headers.get("Warning", ""),
        )


def _any_of(crd: Manifest) -> Manifest:
    """A manifest of the kind that a CustomResourceDefinition defines."""
    version = crd["spec"]["versions"][0]["name"]
    return {"apiVersion": f"{crd['spec']['group']}/{version}", "kind": crd["spec"]["names"]["kind"]}


def _collection(manifest: Manifest) -> str:
    namespace = (manifest.get("metadata") or {}).get("namespace") or NAMESPACE
    plural = _PLURALS.get(str(manifest.get("kind")), "unknown")
    return f"/apis/{manifest.get('apiVersion', 'none')}/namespaces/{namespace}/{plural}"


def _object(manifest: Manifest) -> str:
    return f"{_collection(manifest)}/{manifest['metadata']['name']}"
