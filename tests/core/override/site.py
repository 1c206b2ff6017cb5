"""A namespace with one machine, its schedule and perhaps its override, as values: plans are performed on it.

The provider controller that answers for the override's two schedules is the real logic, and sees what it has been shown.
"""

import copy
from datetime import UTC, datetime
from typing import Any

import attrs

from fivespot.core.api.codec import encode
from fivespot.core.api.scheduled_machine import ScheduleReference
from fivespot.core.decision.knowledge import Absent, Known, Present
from fivespot.core.decision.observation import ProviderView
from fivespot.core.decision.reading import read_provider
from fivespot.core.decision.verdict import verdict_of
from fivespot.core.override.plan import Plan, Wish, plan
from fivespot.core.override.situation import Situation, situation
from fivespot.core.override.steps import Await, Create, Delete, Edit, Step
from fivespot.core.provider.kinds import BY_KIND
from fivespot.core.provider.publish import publish, stored_status
from tests import builders
from tests.core.provider.neighbours import API

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
NAMESPACE, NAME = "floor-2", "desk-7"
OVERRIDE = f"{NAME}-override"
MANUAL, COMPOSITE, MACHINE = "ManualSpotSchedule", "CompositeSpotSchedule", "ScheduledMachine"
UID = "uid-of-the-machine"
Body = dict[str, Any]


def machine(schedule: str = "nights", *, metadata: Body | None = None, **spec: Any) -> Body:
    """The machine, on the schedule of that name."""
    made = builders.scheduled_machine(NAME, schedule=builders.reference(schedule), **spec)
    made["metadata"] = {"name": NAME, "namespace": NAMESPACE, "uid": UID, **(metadata or {})}
    return made


def on_override(**spec: Any) -> Body:
    """The machine, on the composite of its override."""
    made = machine(**spec)
    made["spec"]["schedule"] = builders.reference(OVERRIDE, kind=COMPOSITE)
    return made


@attrs.define
class Site:
    """What is stored."""

    machine: Body = attrs.field(factory=machine)
    objects: dict[str, Body] = attrs.field(factory=dict)
    """By kind; all have the override's name."""
    uids: int = 0

    def seen(self) -> Situation:
        """What a command reads."""
        return situation(self.machine, self.objects.get(MANUAL), self.objects.get(COMPOSITE))

    def plan(self, wish: Wish) -> Plan:
        return plan(self.seen(), wish)

    def fulfil(self, wish: Wish, steps: int | None = None) -> Plan:
        """Perform the first so many steps of what is planned, or all."""
        made = self.plan(wish)
        for step in made.steps[:steps]:
            self.perform(step)
        return made

    def perform(self, step: Step) -> None:
        """As an API server would; a step that it would refuse is an error of the test."""
        kind = step.target.kind.name
        match step:
            case Create():
                assert kind not in self.objects
                self.uids += 1
                made = copy.deepcopy(step.manifest)
                made["metadata"] |= {"uid": f"uid-{self.uids}", "generation": 1}
                self.objects[kind] = made
            case Edit():
                body = self.machine if kind == MACHINE else self.objects[kind]
                assert body["metadata"]["uid"] == step.uid
                for change in step.changes:
                    *way, last = change.path
                    within = body
                    for name in way:
                        within = within[name]
                    assert within[last] == change.before
                    within[last] = copy.deepcopy(change.after)
                    if change.path[0] == "spec":
                        body["metadata"]["generation"] = body["metadata"].get("generation", 1) + 1
            case Delete():
                assert self.objects.pop(kind)["metadata"]["uid"] == step.uid
            case Await():
                pass

    @property
    def reference(self) -> Body:
        found: Body = self.machine["spec"]["schedule"]
        return found

    def end(self) -> tuple[Body, dict[str, tuple[Body, Body]]]:
        """What is there, but for what a server makes of its own."""
        kept = ("name", "namespace", "labels", "ownerReferences")
        return self.reference, {
            kind: ({key: body["metadata"].get(key) for key in kept}, body["spec"])
            for kind, body in self.objects.items()
        }


@attrs.define
class Watched:
    """A site whose schedules are answered for, late perhaps, and whose machine holds what it last read."""

    site: Site
    schedule: bool
    """What the machine's own schedule says."""
    known: dict[str, Body] = attrs.field(factory=dict)
    """What the provider controller has been shown of the override's two schedules."""
    held: list[bool] = attrs.field(factory=list)
    """Every verdict of the machine, each change once."""

    def show(self, kind: str) -> None:
        """The provider controller's watch delivers."""
        found = self.site.objects.get(kind)
        if found is None:
            self.known.pop(kind, None)
        else:
            self.known[kind] = copy.deepcopy(found)

    def answer(self, kind: str) -> None:
        """It answers for what it has been shown."""
        spec = self.known.get(kind)
        stored = self.site.objects.get(kind)
        if spec is None or stored is None or spec["metadata"]["uid"] != stored["metadata"]["uid"]:
            return
        logic = BY_KIND[kind].read(spec["spec"])
        status = stored_status(stored.get("status"))
        said = publish(logic, self, spec["metadata"]["generation"], status, NOW)
        stored["status"] = encode(said.status)
        self.look()

    def settle(self) -> None:
        """All that is under way arrives."""
        for _ in range(2):
            for kind in (MANUAL, COMPOSITE):
                self.show(kind)
                self.answer(kind)
        self.look()

    def look(self) -> None:
        """The machine's controller reads its provider; an answer that cannot be read changes nothing."""
        at = self.site.reference
        reference = ScheduleReference(api_version=API, kind=at["kind"], name=at["name"])
        body = self.site.objects.get(COMPOSITE) if reference.name == OVERRIDE else self._own()
        view: Known[ProviderView] = Absent(live=True) if body is None else Present(read_provider(body))
        verdict = verdict_of(view, reference)
        if verdict.active is not None and self.held[-1:] != [verdict.active]:
            self.held.append(verdict.active)

    def ready(self, step: Step) -> bool:
        """Whether a command that performs the step would come to its end now."""
        if not isinstance(step, Await):
            return True
        return step.met(self.site.objects[COMPOSITE])

    def seen(self, reference: ScheduleReference) -> Known[ProviderView]:
        """For the composite: what is known of its members."""
        if reference.name != OVERRIDE:
            return Present(read_provider(self._own()))
        found = self.known.get(reference.kind)
        return Absent(live=True) if found is None else Present(read_provider(found))

    def members(self, reference: ScheduleReference) -> tuple[ScheduleReference, ...]:
        """None of the members is a composite."""
        return ()

    def _own(self) -> Body:
        return {"metadata": {"generation": 1}, "status": {"active": self.schedule, "observedGeneration": 1}}
