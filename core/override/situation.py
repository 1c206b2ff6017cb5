"""What there is to decide about: the machine, and whatever has the names of its override's schedules."""

from collections.abc import Mapping
from typing import Any

import attrs

from fivespot.core.api.codec import decode_metadata
from fivespot.core.api.kinds import COMPOSITE, MANUAL, SCHEDULED_MACHINE, Kind
from fivespot.core.decision.observation import MachineView
from fivespot.core.decision.reading import read_machine
from fivespot.core.override import objects
from fivespot.core.override.objects import Found, Target


@attrs.frozen(kw_only=True)
class Situation:
    """What is there; `body` is the machine as the API server has it, with managedFields."""

    machine: MachineView
    body: Mapping[str, Any]
    manual: Found | None
    composite: Found | None

    def target(self, kind: Kind) -> Target:
        """The machine, or one of the schedules of its override."""
        meta = self.machine.metadata
        name = meta.name if kind is SCHEDULED_MACHINE else objects.override_name(meta.name)
        return Target(kind=kind, namespace=meta.namespace, name=name)

    @property
    def schedules(self) -> tuple[Found, ...]:
        """What has the names of the two, what refers before what is referred to."""
        return tuple(found for found in (self.composite, self.manual) if found is not None)

    @property
    def stands(self) -> bool:
        """Whether the machine refers to the composite of an override."""
        schedule = self.machine.intent.schedule
        return schedule is not None and objects.refers_to(schedule, COMPOSITE, self.machine.metadata.name)


def situation(
    machine: Mapping[str, Any], manual: Mapping[str, Any] | None, composite: Mapping[str, Any] | None
) -> Situation:
    """Read the three objects, which come with their managedFields; None for one that is not there.

    Raises:
        InvalidSpec: the metadata or the status of one of them cannot be read.
    """
    return Situation(
        machine=read_machine(machine),
        body=machine,
        manual=_found(MANUAL, manual),
        composite=_found(COMPOSITE, composite),
    )


def _found(kind: Kind, body: Mapping[str, Any] | None) -> Found | None:
    if body is None:
        return None
    meta = decode_metadata(body.get("metadata"))
    return Found(target=Target(kind=kind, namespace=meta.namespace, name=meta.name), metadata=meta, body=body)
