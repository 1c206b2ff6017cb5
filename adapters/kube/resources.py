"""Kinds as the API server serves them, and the paths of their objects.

A plural is never guessed: it is one of the constants here, or comes from discovery (`Gateway.resolve`).
"""

from typing import Any, TypeAlias
from urllib.parse import quote

import attrs

Object: TypeAlias = dict[str, Any]
"""One Kubernetes object as decoded JSON, as a rule without managedFields; adapters decode it further or look at metadata."""


@attrs.frozen
class Resource:
    """One kind in one version.

    Attributes:
        group: API group; empty for the core group.
        version: such as `v1beta1`.
        plural: the name in paths, such as `machines`.
        kind: such as `Machine`.
        namespaced: whether its objects live in namespaces.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """As an object says it: `group/version`, or the version alone in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def label(self) -> str:
        """As people and kubectl say it: `machines.cluster.x-k8s.io`, or `pods`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(
        self, namespace: str | None = None, name: str | None = None, subresource: str | None = None
    ) -> str:
        """The URL path of an object, of its sub-resource, or of the collection when there is no name.

        Raises:
            ValueError: a name or namespace that would reach another path (empty, or dots), a namespaced object
                without a namespace, a sub-resource without an object. It is always a mistake of the caller:
                deleting the object with no name would delete them all.
        """
        if name is not None and self.namespaced and namespace is None:
            message = f"{self.label} {name!r} needs a namespace"
            raise ValueError(message)
        if subresource is not None and name is None:
            message = f"sub-resource {subresource!r} of {self.label} needs the name of an object"
            raise ValueError(message)
        parts = [group_version_path(self.group, self.version)]
        if namespace is not None and self.namespaced:
            parts += ["namespaces", _segment(namespace)]
        parts.append(self.plural)
        if name is not None:
            parts.append(_segment(name))
        if subresource is not None:
            parts.append(subresource)
        return "/".join(parts)


def group_version_path(group: str, version: str) -> str:
    """Where a group version is served; the core group has a root of its own."""
    return f"/apis/{_segment(group)}/{_segment(version)}" if group else f"/api/{_segment(version)}"


def group_path(group: str) -> str:
    """Where the versions of a group are listed."""
    return f"/apis/{_segment(group)}" if group else "/api"


def _segment(text: str) -> str:
    if text in ("", ".", ".."):
        message = f"{text!r} cannot be a name in a path"
        raise ValueError(message)
    return quote(text, safe=":")


NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
PODS = Resource("", "v1", "pods", "Pod", namespaced=True)
SECRETS = Resource("", "v1", "secrets", "Secret", namespaced=True)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", namespaced=True)
EVENTS = Resource("events.k8s.io", "v1", "events", "Event", namespaced=True)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", namespaced=True)
CRDS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
