"""Does some tool own a field, so that a change by hand would be undone? Told from the traces that such tools leave.

Two traces count: the field is owned by the tool's field manager (Server-Side Apply, KEP-555, and what the API server
records of every other write), or the object carries the mark by which the tool knows its own. Marks that people put on
by hand as well (`app.kubernetes.io/instance`) do not count.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from fivespot.core.errors import shown

_ARGO, _FLUX, _HELM, _FLEET = "Argo CD", "Flux", "Helm", "Fleet"
_CONFIG_SYNC, _KAPP = "Config Sync", "kapp"

_MANAGERS: Final[Mapping[str, str]] = {
    "argocd-controller": _ARGO,
    "argocd-application-controller": _ARGO,
    "kustomize-controller": _FLUX,
    "helm-controller": _FLUX,
    "helm": _HELM,
    "fleetagent": _FLEET,
    "kapp": _KAPP,
    "kapp-controller": _KAPP,
    "Terraform": "Terraform",
}
"""Field managers of those who apply again what they once applied. People and their scripts (`kubectl`, `Go-http-client`) do not."""
_PULUMI: Final = "pulumi-kubernetes"
"""Pulumi adds something of its own to it for every object."""

_MARKS: Final[Sequence[tuple[str, str | None, str]]] = (
    ("argocd.argoproj.io/tracking-id", None, _ARGO),
    ("argocd.argoproj.io/instance", None, _ARGO),
    ("kustomize.toolkit.fluxcd.io/name", None, _FLUX),
    ("helm.toolkit.fluxcd.io/name", None, _FLUX),
    # Fleet deploys through Helm, and leaves Helm's marks too: the first that is found names the tool.
    ("objectset.rio.cattle.io/id", None, _FLEET),
    ("configsync.gke.io/manager", None, _CONFIG_SYNC),
    ("configsync.gke.io/resource-id", None, _CONFIG_SYNC),
    ("configmanagement.gke.io/managed", "enabled", _CONFIG_SYNC),
    ("kapp.k14s.io/identity", None, _KAPP),
    ("kapp.k14s.io/app", None, _KAPP),
    ("meta.helm.sh/release-name", None, _HELM),
    ("app.kubernetes.io/managed-by", "Helm", _HELM),
)
"""Keys of annotations or labels, and the only value that counts where not every one does."""


@attrs.frozen(kw_only=True)
class Evidence:
    """One trace of one tool.

    Attributes:
        tool: as its users call it.
        trace: what was seen, as a person can find it again.
    """

    tool: str
    trace: str

    def __str__(self) -> str:
        return f"{self.tool}: {self.trace}"


def evidence(body: Mapping[str, Any], path: Sequence[str], *, but_for: str = "") -> tuple[Evidence, ...]:
    """The traces of tools that would undo a change of a field, strongest first; empty when there is none.

    Args:
        body: the object, with its managedFields.
        path: of the field, such as `("spec", "schedule")`.
        but_for: a field manager; when it has set the field, marks on the object say nothing about the present value.
    """
    metadata = body.get("metadata") or {}
    owning = _owning(metadata.get("managedFields") or (), path)
    field = ".".join(path)
    found = [
        Evidence(tool=tool, trace=f"field manager {name} owns {field}")
        for name in owning
        if (tool := _tool(name))
    ]
    if but_for not in owning:
        found += _marked(metadata)
    return tuple(found)


def _tool(manager: str) -> str | None:
    return "Pulumi" if manager.startswith(_PULUMI) else _MANAGERS.get(manager)


def _owning(entries: Sequence[Any], path: Sequence[str]) -> list[str]:
    """The field managers that own a field, or a part of it, each once."""
    names = [
        str(entry.get("manager"))
        for entry in entries
        if isinstance(entry, Mapping) and not entry.get("subresource") and _owns(entry.get("fieldsV1"), path)
    ]
    return list(dict.fromkeys(names))


def _owns(fields: Any, path: Sequence[str]) -> bool:
    for name in path:
        fields = fields.get(f"f:{name}") if isinstance(fields, Mapping) else None
    return fields is not None


def _marked(metadata: Mapping[str, Any]) -> Iterator[Evidence]:
    for key, only, tool in _MARKS:
        for where in ("annotations", "labels"):
            value = (metadata.get(where) or {}).get(key)
            if value is not None and only in (None, value):
                yield Evidence(tool=tool, trace=f"{where[:-1]} {key}: {shown(value)}")
