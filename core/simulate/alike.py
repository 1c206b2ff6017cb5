"""Machines that share a provider and see the same inputs share the evaluation: one of them lives for all.

The one that lives carries a name that no machine can have, so that sentences about it can be told of any of them.
"""

import json
from collections.abc import Iterable
from typing import Final

import attrs

from fivespot.core.api.codec import encode
from fivespot.core.fleet import Machine

_PRIVATE: Final = "\ue000"
"""A character of the private use area: no Kubernetes name contains it."""


@attrs.frozen(kw_only=True)
class Alike:
    """Machines that differ in nothing but their name, and the one that lives for all of them."""

    representative: Machine
    members: tuple[Machine, ...]

    def told_of(self, member: Machine, text: str) -> str:
        """A sentence about the representative, told of a member."""
        return text.replace(self.representative.view.metadata.name, member.view.metadata.name)


def group_alike(machines: Iterable[Machine]) -> tuple[Alike, ...]:
    """Sort machines into sets that share their evaluation."""
    groups: dict[str, list[Machine]] = {}
    for machine in machines:
        groups.setdefault(_fingerprint(machine), []).append(machine)
    return tuple(
        Alike(representative=_representative(members[0], index), members=tuple(members))
        for index, members in enumerate(groups.values())
    )


def _is_fresh(machine: Machine) -> bool:
    """Whether nothing is stored yet; what is stored speaks of objects by name, and is like no other."""
    view = machine.view
    return view.spec is not None and view.status.phase is None and not view.metadata.deleting


def _fingerprint(machine: Machine) -> str:
    """Everything but the name that a decision about the machine can depend on."""
    meta, spec = machine.view.metadata, machine.view.spec
    if not _is_fresh(machine):
        return machine.key
    marks = (meta.namespace, meta.generation, dict(meta.annotations), dict(meta.labels), meta.finalizers)
    return json.dumps([marks, encode(spec)], sort_keys=True, default=str)


def _representative(machine: Machine, index: int) -> Machine:
    if not _is_fresh(machine):
        return machine
    named = attrs.evolve(machine.view.metadata, name=f"{_PRIVATE}{index}{_PRIVATE}", uid=f"uid-{index}")
    return attrs.evolve(machine, view=attrs.evolve(machine.view, metadata=named))
