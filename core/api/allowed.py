"""From which API groups the bootstrap and infrastructure objects of machines may come.

The controller makes these objects with its own rights from what a user wrote, so the operator decides which kinds they may
be. Two places say so, the CRD's schema and the controller; both are made from one `AllowedGroups`.
"""

import re
from typing import Any, Final

import attrs

from fivespot.core.api.schema import Bounds, Schema
from fivespot.core.errors import InvalidSpec
from fivespot.core.names import BOOTSTRAP_GROUPS, INFRASTRUCTURE_GROUPS

VERSION_PATTERN: Final = "v[0-9][a-z0-9]{0,62}"
GROUP_PATTERN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)+"
"""Groups with a dot: those without one are Kubernetes' own, and no machine is made of Deployments or Secrets."""
_GROUP: Final = re.compile(GROUP_PATTERN)
_LONGEST: Final = 253
_GUARDED: Final = ("rbac.authorization.k8s.io", "authentication.k8s.io", "admissionregistration.k8s.io")
"""Who may make objects of these from a user's text gives that user the cluster."""


def _groups(_of: object, field: "attrs.Attribute[Any]", value: tuple[str, ...]) -> None:
    if not value:
        raise InvalidSpec(field.name, value, "name at least one group")
    for group in value:
        if len(group) > _LONGEST or not _GROUP.fullmatch(group):
            raise InvalidSpec(
                field.name, group, "write an API group with a dot, such as infrastructure.cluster.x-k8s.io"
            )
        if group in _GUARDED:
            raise InvalidSpec(
                field.name, group, "objects of this group give rights away; no machine is made of them"
            )


@attrs.frozen(kw_only=True)
class AllowedGroups:
    """The operator's two lists.

    Raises:
        InvalidSpec: one is empty, or has something that is no group, or one that gives rights away.
    """

    bootstrap: tuple[str, ...] = attrs.field(default=BOOTSTRAP_GROUPS, validator=_groups)
    infrastructure: tuple[str, ...] = attrs.field(default=INFRASTRUCTURE_GROUPS, validator=_groups)

    @property
    def every(self) -> tuple[str, ...]:
        """Both lists, each group once."""
        return tuple(dict.fromkeys((*self.bootstrap, *self.infrastructure)))


DEFAULT_GROUPS: Final = AllowedGroups()
"""Where the operator says nothing."""


def narrowed(machine: Schema, allowed: AllowedGroups) -> Schema:
    """The schema of a ScheduledMachine that takes embedded objects of these groups only."""
    spec = machine.properties["spec"]
    templates = {
        name: _of(spec.properties[name], groups, what)
        for name, groups, what in (
            ("bootstrapSpec", allowed.bootstrap, "bootstrap"),
            ("infrastructureSpec", allowed.infrastructure, "infrastructure"),
        )
    }
    spec = attrs.evolve(spec, properties={**spec.properties, **templates})
    return attrs.evolve(machine, properties={**machine.properties, "spec": spec})


def _of(template: Schema, groups: tuple[str, ...], what: str) -> Schema:
    choice = "|".join(group.replace(".", "[.]") for group in groups)
    bounds = Bounds(
        pattern=f"^({choice})/{VERSION_PATTERN}$",
        max_length=_LONGEST,
        remedy=f"{what} kinds must come from {' or '.join(groups)}, with a version",
    )
    version = attrs.evolve(template.properties["apiVersion"], bounds=bounds)
    return attrs.evolve(template, properties={**template.properties, "apiVersion": version})
