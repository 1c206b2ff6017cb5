"""The providers of one namespace, as a test wants them to be seen."""

from collections.abc import Mapping
from typing import Any

import attrs

from fivespot.core.api.scheduled_machine import ScheduleReference
from fivespot.core.decision.knowledge import Absent, Known, Present
from fivespot.core.decision.observation import ProviderView

API = "spotschedules.5spot.finos.org/v1alpha1"
MANUAL, COMPOSITE = "ManualSpotSchedule", "CompositeSpotSchedule"


def ref(name: str, kind: str = MANUAL) -> ScheduleReference:
    return ScheduleReference(api_version=API, kind=kind, name=name)


def spec_ref(name: str, kind: str = MANUAL) -> dict[str, str]:
    return {"apiVersion": API, "kind": kind, "name": name}


def says(
    active: bool | None, ready: str | None = "True", reason: str = "X", **status: Any
) -> Known[ProviderView]:
    """A provider that publishes this, in answer to its first generation."""
    found: dict[str, Any] = {"observedGeneration": 1, **status}
    if active is not None:
        found["active"] = active
    if ready is not None:
        since = "2026-03-01T00:00:00Z"
        found["conditions"] = [
            {"type": "Ready", "status": ready, "reason": reason, "message": "m", "lastTransitionTime": since}
        ]
    return Present(ProviderView(generation=1, status=found))


def abstains(active: bool | None = True) -> Known[ProviderView]:
    """One whose time is over."""
    return says(active, "False", "Expired")


@attrs.frozen
class Neighbours:
    """By name: what each publishes, and what each refers to."""

    known: Mapping[str, Known[ProviderView]] = attrs.field(factory=dict)
    below: Mapping[str, tuple[ScheduleReference, ...]] = attrs.field(factory=dict)

    def seen(self, reference: ScheduleReference) -> Known[ProviderView]:
        return self.known.get(reference.name, Absent(live=True, why="ProviderNotFound"))

    def members(self, reference: ScheduleReference) -> tuple[ScheduleReference, ...]:
        return self.below.get(reference.name, ())
