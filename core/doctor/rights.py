"""Every permission that the machine controller uses, as RBAC says it.

deploy/controller/rbac.yaml and deploy/child-cluster/rbac.yaml grant exactly these, which a test proves; nothing else grants
or asks for any.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

import attrs

from fivespot.core.api.allowed import AllowedGroups
from fivespot.core.names import (
    CAPI_GROUP,
    LEADER_LEASE,
    MACHINE_GROUP,
    PROVIDER_GROUP,
    SYSTEM_NAMESPACE,
)

EVERY_KIND: Final = "*"
"""The resource of a rule about groups whose kinds are somebody else's choice."""
_READ: Final = ("get", "list", "watch")


@attrs.frozen(kw_only=True)
class Right:
    """One verb on one resource.

    Attributes:
        resource: plural, with the sub-resource behind a slash, or EVERY_KIND.
        namespace: None for all of them.
        name: of the only object that it is about; empty for all.
    """

    group: str
    resource: str
    verb: str
    namespace: str | None = None
    name: str = ""

    @property
    def label(self) -> str:
        """The resource as kubectl says it: `machines.cluster.x-k8s.io`, `pods/eviction`."""
        plural, slash, sub = self.resource.partition("/")
        return f"{plural}{f'.{self.group}' if self.group else ''}{slash}{sub}"


def _rights(group: str, resource: str, *verbs: str) -> tuple[Right, ...]:
    return tuple(Right(group=group, resource=resource, verb=verb) for verb in verbs)


def _lease(*verbs: str, name: str = "") -> tuple[Right, ...]:
    lease = Right(
        group="coordination.k8s.io", resource="leases", verb="", namespace=SYSTEM_NAMESPACE, name=name
    )
    return tuple(attrs.evolve(lease, verb=verb) for verb in verbs)


def controller(allowed: AllowedGroups) -> tuple[Right, ...]:
    """In the management cluster, for machines that are made of kinds of these groups."""
    return (
        *_rights(MACHINE_GROUP, "scheduledmachines", *_READ, "patch"),
        *_rights(MACHINE_GROUP, "scheduledmachines/status", "patch"),
        *_rights(MACHINE_GROUP, "scheduledmachines/finalizers", "update"),
        *_rights(PROVIDER_GROUP, EVERY_KIND, "list", "watch"),
        *_rights(CAPI_GROUP, "clusters", *_READ),
        *_rights(CAPI_GROUP, "machines", *_READ, "create", "patch", "delete"),
        *(
            right
            for group in allowed.every
            for right in _rights(group, EVERY_KIND, *_READ, "create", "patch", "delete")
        ),
        *_rights("", "secrets", "list", "watch"),
        *_rights("events.k8s.io", "events", "create", "patch"),
        *_lease("create"),
        *_lease(*_READ, "update", name=LEADER_LEASE),
    )


IN_CHILD: Final = (
    *_rights("", "nodes", *_READ, "patch", "delete"),
    *_rights("", "pods", "list", "watch", "delete"),
    *_rights("", "pods/eviction", "create"),
)
"""In every child cluster, as whoever its kubeconfig says."""


def of_kinds(rights: Iterable[Right], plurals: Iterable[tuple[str, str]]) -> tuple[Right, ...]:
    """The same, asked of the kinds that are in use instead of every kind of their groups.

    Args:
        rights: some with EVERY_KIND.
        plurals: (group, plural) of the kinds in use.
    """
    in_use = defaultdict(list)
    for group, plural in sorted(set(plurals)):
        in_use[group].append(plural)
    return tuple(
        attrs.evolve(right, resource=resource)
        for right in rights
        for resource in (in_use[right.group] if right.resource == EVERY_KIND else [right.resource])
    )


def of_secrets(rights: Iterable[Right], secrets: Iterable[tuple[str, str]]) -> tuple[Right, ...]:
    """The same, asked of the Secrets that are in use: a site may have granted these by name, and no others.

    Args:
        rights: some on all Secrets.
        secrets: (namespace, name) of those in use.
    """
    in_use = sorted(set(secrets))
    found: list[Right] = []
    for right in rights:
        if (right.group, right.resource) == ("", "secrets"):
            found += [attrs.evolve(right, namespace=namespace, name=name) for namespace, name in in_use]
        else:
            found.append(right)
    return tuple(found)


def told(denied: Iterable[Right]) -> tuple[tuple[str, str], ...]:
    """What may not be done, and what to grant, one pair for each resource: whoever grants writes one rule for it."""
    grouped: dict[Right, list[str]] = {}
    for right in denied:
        grouped.setdefault(attrs.evolve(right, verb=""), []).append(right.verb)
    return tuple(
        (f"may not {', '.join(verbs)} {_shown(right)}", _grant(right, verbs))
        for right, verbs in grouped.items()
    )


def _shown(right: Right) -> str:
    where = f" in namespace {right.namespace}" if right.namespace else ""
    return f"{right.label}{f' {right.name}' if right.name else ''}{where}"


def _grant(right: Right, verbs: list[str]) -> str:
    where = f"a Role in namespace {right.namespace}" if right.namespace else "a ClusterRole"
    named = f", resourceNames: [{right.name}]" if right.name else ""
    group = right.group or '""'
    return f"grant it in {where}: apiGroups: [{group}], resources: [{right.resource}], verbs: [{', '.join(verbs)}]{named}"
