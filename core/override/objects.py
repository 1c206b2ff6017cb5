"""The two schedules of an override, as manifests: a toggle, and in front of the machine's own schedule a `firstOf`."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import attrs

from fivespot.core.api.codec import decode, encode
from fivespot.core.api.common import Metadata
from fivespot.core.api.kinds import COMPOSITE, MANUAL, SCHEDULED_MACHINE, Kind
from fivespot.core.api.providers import CompositeSpec, ManualSpec, Then
from fivespot.core.api.scheduled_machine import ScheduleReference
from fivespot.core.errors import InvalidSpec
from fivespot.core.names import OVERRIDE_LABEL, OVERRIDE_SUFFIX, PROVIDER_GROUP, group_of

Manifest = dict[str, Any]
MEMBERS: Final = 2
"""Of the composite: the toggle, and the schedule that decides when the toggle has let go."""


@attrs.frozen(kw_only=True)
class Target:
    """The object that a step is about."""

    kind: Kind
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind.name} {self.namespace}/{self.name}"


@attrs.frozen(kw_only=True)
class Found:
    """An object as the API server has it: `body` is all of it, with managedFields."""

    target: Target
    metadata: Metadata
    body: Mapping[str, Any]

    @property
    def spec(self) -> Mapping[str, Any]:
        """Its spec."""
        found: Mapping[str, Any] = self.body.get("spec") or {}
        return found

    def made_for(self, machine: str) -> bool:
        """Whether it is a part of that machine's override."""
        return self.metadata.labels.get(OVERRIDE_LABEL) == machine


def override_name(machine: str) -> str:
    """What the two schedules of a machine's override are called."""
    return machine + OVERRIDE_SUFFIX


def reference_to(kind: Kind, machine: str) -> ScheduleReference:
    """How one of the two is referred to."""
    return ScheduleReference(api_version=kind.api_version, kind=kind.name, name=override_name(machine))


def refers_to(reference: ScheduleReference, kind: Kind, machine: str) -> bool:
    """Whether a reference names one of the two, in whichever version."""
    named = (group_of(reference.api_version), reference.kind, reference.name)
    return named == (PROVIDER_GROUP, kind.name, override_name(machine))


def owners(machine: Metadata) -> list[Manifest]:
    """With the machine they go. It does not control them, and its deletion waits for nobody."""
    return [
        {
            "apiVersion": SCHEDULED_MACHINE.api_version,
            "kind": SCHEDULED_MACHINE.name,
            "name": machine.name,
            "uid": machine.uid,
            "controller": False,
        }
    ]


def manual(machine: Metadata, *, active: bool, until: datetime | None) -> Manifest:
    """The toggle. After `until` it abstains; without one it stands until it is taken away."""
    then = Then.ABSTAIN if until is not None else None
    return _manifest(MANUAL, machine, encode(ManualSpec(active=active, until=until, then=then)))


def composite(machine: Metadata, schedule: ScheduleReference) -> Manifest:
    """What the machine refers to meanwhile: the toggle, and when that abstains the schedule from before."""
    members = (reference_to(MANUAL, machine.name), schedule)
    return _manifest(COMPOSITE, machine, encode(CompositeSpec(first_of=members)))


def machine_part(machine: Metadata, schedule: ScheduleReference) -> Manifest:
    """The part of the machine that changes, as a patch of Git's manifest would say it."""
    return {
        "apiVersion": SCHEDULED_MACHINE.api_version,
        "kind": SCHEDULED_MACHINE.name,
        "metadata": {"name": machine.name, "namespace": machine.namespace},
        "spec": {"schedule": encode(schedule)},
    }


def for_git(manifest: Manifest) -> Manifest:
    """The same without owner: a uid is the cluster's and not Git's, and Git itself takes away what it no longer has."""
    metadata = {name: value for name, value in manifest["metadata"].items() if name != "ownerReferences"}
    return {**manifest, "metadata": metadata}


def underneath(spec: Mapping[str, Any], machine: str) -> ScheduleReference | None:
    """The schedule that an override's composite stands in front of; None when it is not as `composite` makes it."""
    try:
        members = decode(spec, CompositeSpec).first_of or ()
    except InvalidSpec:
        return None
    if len(members) != MEMBERS or not refers_to(members[0], MANUAL, machine):
        return None
    return members[1]


def _manifest(kind: Kind, machine: Metadata, spec: Manifest) -> Manifest:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {
            "name": override_name(machine.name),
            "namespace": machine.namespace,
            "labels": {OVERRIDE_LABEL: machine.name},
            "ownerReferences": owners(machine),
        },
        "spec": spec,
    }
