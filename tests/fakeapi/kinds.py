"""Which kinds there are, built in and from CustomResourceDefinitions, and what is particular about each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from tests.fakeapi.refusals import NotUnderstood, Object, label

Path: TypeAlias = tuple[str, ...]
"""Field names from the top of an object, without the places in lists."""

Merging: TypeAlias = Literal["atomic", "set", "granular"] | tuple[str, ...]
"""How server-side apply treats a list or a mapping: as one value, or by its elements; a tuple names a list's keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind in all of its versions.

    Attributes:
        versions: served, the preferred one first.
        status: the versions that have it as a sub-resource.
        fields: what a built-in object may have at its top, besides type and metadata.
        generation: whether a change of anything but metadata and status is counted.
        unconditional: whether PUT may leave out the resourceVersion.
        created_on_update: whether PUT creates what is missing.
        created_with_status: whether POST keeps a status although it is a sub-resource: a kubelet registers with one.
        selectable: fields that field selectors may name.
        merging: for built-in kinds, what is not granular in a mapping or atomic in a list.
        schemas: of custom kinds, by version.
    """

    group: str
    plural: str
    kind: str
    singular: str
    namespaced: bool
    versions: tuple[str, ...] = ("v1",)
    status: frozenset[str] = frozenset()
    custom: bool = False
    fields: frozenset[str] = frozenset()
    generation: bool = False
    unconditional: bool = True
    created_on_update: bool = False
    created_with_status: bool = False
    selectable: frozenset[str] = frozenset({"metadata.name", "metadata.namespace"})
    merging: Mapping[Path, Merging] = field(default_factory=dict)
    schemas: Mapping[str, Object] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return label(self.group, self.plural)

    def api_version(self, version: str) -> str:
        return f"{self.group}/{version}" if self.group else version

    def reset(self, subresource: str) -> tuple[str, ...]:
        """The top fields that a write to an object or to its status leaves as they are."""
        if subresource == "status":
            return ("spec", "metadata") if self.custom else ("spec",)
        return ("status",) if self.status else ()


_CONDITIONS: dict[Path, Merging] = {("status", "conditions"): ("type",)}
_META: dict[Path, Merging] = {("metadata", "finalizers"): "set", ("metadata", "ownerReferences"): ("uid",)}
_V1 = frozenset({"v1"})
_SPECIFIED = frozenset({"spec", "status"})


def _built_in(group: str, plural: str, kind: str, *fields: str, namespaced: bool = True, **more: Any) -> Kind:
    merging = {**_META, **more.pop("merging", {})}
    names = {"metadata.name", *(["metadata.namespace"] if namespaced else []), *more.pop("selectable", ())}
    return Kind(
        group=group,
        plural=plural,
        kind=kind,
        singular=kind.lower(),
        namespaced=namespaced,
        fields=frozenset(fields),
        merging=merging,
        selectable=frozenset(names),
        **more,
    )


NAMESPACE = _built_in(
    "",
    "namespaces",
    "Namespace",
    *_SPECIFIED,
    namespaced=False,
    status=_V1,
    selectable={"status.phase"},
    merging={("spec", "finalizers"): "atomic", **_CONDITIONS},
)
NODE = _built_in(
    "",
    "nodes",
    "Node",
    *_SPECIFIED,
    namespaced=False,
    status=_V1,
    created_with_status=True,
    selectable={"spec.unschedulable"},
    merging={("spec", "taints"): "atomic", ("spec", "podCIDRs"): "set", **_CONDITIONS},
)
POD = _built_in(
    "",
    "pods",
    "Pod",
    *_SPECIFIED,
    status=_V1,
    generation=True,
    selectable={"spec.nodeName", "status.phase"},
    merging={
        ("spec", "containers"): ("name",),
        ("spec", "tolerations"): "atomic",
        ("spec", "nodeSelector"): "atomic",
        **_CONDITIONS,
    },
)
BUDGET = _built_in(
    "policy",
    "poddisruptionbudgets",
    "PodDisruptionBudget",
    *_SPECIFIED,
    status=_V1,
    generation=True,
    unconditional=False,
    merging={("spec", "selector"): "atomic", **_CONDITIONS},
)
CRD = _built_in(
    "apiextensions.k8s.io",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    *_SPECIFIED,
    namespaced=False,
    status=_V1,
    generation=True,
    unconditional=False,
)
_EVENT_FIELDS = (
    "eventTime series reportingController reportingInstance action reason regarding related note type deprecatedSource "
    "deprecatedFirstTimestamp deprecatedLastTimestamp deprecatedCount"
)
_BUILT_IN = (
    NAMESPACE,
    NODE,
    POD,
    _built_in("", "configmaps", "ConfigMap", "data", "binaryData"),
    _built_in("", "secrets", "Secret", "data", "stringData", "type", selectable={"type"}),
    _built_in(
        "events.k8s.io",
        "events",
        "Event",
        *_EVENT_FIELDS.split(),
        created_on_update=True,
        merging={("regarding",): "atomic", ("related",): "atomic"},
    ),
    _built_in("coordination.k8s.io", "leases", "Lease", "spec", unconditional=False, created_on_update=True),
    BUDGET,
    CRD,
)


class Kinds:
    """The kinds that are served now."""

    def __init__(self) -> None:
        self._kinds = {kind.label: kind for kind in _BUILT_IN}

    def __iter__(self) -> Iterator[Kind]:
        return iter(list(self._kinds.values()))

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """The kind behind a path, if it is served in that version."""
        kind = self._kinds.get(label(group, plural))
        return kind if kind and version in kind.versions else None

    def serve(self, crd: Object) -> None:
        """Serve what a definition defines, instead of what one of that name defined before."""
        kind = kind_of(crd)
        self._kinds[kind.label] = kind

    def drop(self, name: str) -> None:
        """Serve a custom kind no longer."""
        self._kinds.pop(name, None)

    def custom(self, name: str) -> Kind | None:
        """The custom kind of a definition's name."""
        kind = self._kinds.get(name)
        return kind if kind and kind.custom else None

    def groups(self) -> dict[str, list[str]]:
        """The groups but the core one, each with its versions, the preferred one first."""
        found: dict[str, set[str]] = {}
        for kind in self._kinds.values():
            if kind.group and kind.versions:
                found.setdefault(kind.group, set()).update(kind.versions)
        return {group: sorted(versions, key=_rank, reverse=True) for group, versions in found.items()}

    def in_version(self, group: str, version: str) -> list[Kind]:
        """The kinds of one group in one version."""
        return [kind for kind in self._kinds.values() if kind.group == group and version in kind.versions]


def kind_of(crd: Object) -> Kind:
    """The kind that a definition defines.

    Raises:
        NotUnderstood: it has what the fake cannot do.
    """
    spec, names = crd["spec"], crd["spec"]["names"]
    if (strategy := (spec.get("conversion") or {}).get("strategy", "None")) != "None":
        raise NotUnderstood(f"conversion by {strategy}")
    for version in spec["versions"]:
        subresources = set(version.get("subresources") or {})
        if unknown := (subresources - {"status"}) | ({"selectableFields"} & set(version)):
            raise NotUnderstood(f"{unknown} in the definition of {names['kind']}")
    served = [version for version in spec["versions"] if version["served"]]
    return Kind(
        group=spec["group"],
        plural=names["plural"],
        kind=names["kind"],
        singular=names.get("singular") or names["kind"].lower(),
        namespaced=spec["scope"] == "Namespaced",
        versions=tuple(sorted((version["name"] for version in served), key=_rank, reverse=True)),
        status=frozenset(
            version["name"] for version in served if "status" in (version.get("subresources") or {})
        ),
        custom=True,
        generation=True,
        unconditional=False,
        selectable=frozenset(
            {"metadata.name", *(["metadata.namespace"] if spec["scope"] == "Namespaced" else [])}
        ),
        schemas={version["name"]: version["schema"]["openAPIV3Schema"] for version in served},
    )


def _rank(version: str) -> tuple[int, int, int, str]:
    """v2, v1, v1beta2, v1beta1, v1alpha1, anything else: the real server's order, the highest first."""
    if match := re.fullmatch(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?", version):
        maturity = {None: 3, "beta": 2, "alpha": 1}[match[2]]
        return maturity, int(match[1]), int(match[3] or 0), version
    return 0, 0, 0, version
