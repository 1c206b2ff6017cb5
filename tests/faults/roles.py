"""The shipped roles as an authorizer for the fake servers, with any single verb of any rule taken away."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.fakeapi.requests import Asked

DEPLOY = Path(__file__).parents[2] / "deploy"
MANAGEMENT = DEPLOY / "controller" / "rbac.yaml"
CHILD = DEPLOY / "child-cluster" / "rbac.yaml"


@dataclass(frozen=True, kw_only=True)
class Right:
    """One verb of one rule.

    Attributes:
        cluster: the file that it is in: what may be done in the management cluster, or in a child.
        place: which rule of that file.
        namespace: the only one in which it counts, where it is a Role's.
    """

    cluster: str
    place: str
    groups: tuple[str, ...]
    resources: tuple[str, ...]
    names: tuple[str, ...]
    namespace: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {','.join(self.resources)} in {','.join(self.groups) or 'core'} ({self.cluster})"

    def allows(self, asked: Asked) -> bool:
        """As RBAC says it: sub-resources are resources of their own, and names count where there is one."""
        resource = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
        return (
            asked.verb == self.verb
            and asked.group in self.groups
            and ("*" in self.resources or resource in self.resources)
            and self.namespace in ("", asked.namespace)
            and (not self.names or asked.name in self.names or asked.collection)
        )


@functools.cache
def rights() -> tuple[Right, ...]:
    """Everything that is granted, read off the manifests."""
    found = []
    for cluster, path in (("management", MANAGEMENT), ("child", CHILD)):
        roles = [
            item for item in yaml.safe_load_all(path.read_text()) if item["kind"] in ("ClusterRole", "Role")
        ]
        for role in roles:
            for number, rule in enumerate(role["rules"]):
                found += list(_of_rule(cluster, role, number, rule))
    return tuple(found)


def _of_rule(cluster: str, role: dict[str, Any], number: int, rule: dict[str, Any]) -> Iterable[Right]:
    for verb in rule["verbs"]:
        yield Right(
            cluster=cluster,
            place=f"{role['kind']} {role['metadata']['name']}, rule {number}",
            groups=tuple("" if group == '""' else group for group in rule["apiGroups"]),
            resources=tuple(rule["resources"]),
            names=tuple(rule.get("resourceNames", ())),
            namespace=role["metadata"].get("namespace", ""),
            verb=verb,
        )


def authorizer(cluster: str, without: Right | None = None) -> Callable[[str, Asked], bool]:
    """What a cluster lets its controller do; discovery is anybody's."""
    granted = [right for right in rights() if right.cluster == cluster and right != without]
    return lambda _, asked: asked.is_document or any(right.allows(asked) for right in granted)
