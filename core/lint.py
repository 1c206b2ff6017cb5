"""Everything admission would refuse, and what it would not but a person should know."""

from collections.abc import Iterator
from datetime import datetime
from enum import Enum
from typing import Any

import attrs

from fivespot.core.api.kinds import MANUAL, SCHEDULE_KINDS, kind_of
from fivespot.core.errors import shown
from fivespot.core.fleet import Fleet, Origin, Problem, Provider
from fivespot.core.schedule import lint_schedule


class Level(Enum):
    """An error would be refused; a warning would be taken, and may surprise."""

    ERROR = "error"
    WARNING = "warning"


@attrs.frozen(kw_only=True)
class Finding:
    """One thing about one field of one object."""

    level: Level
    file: str
    line: int
    object: str
    field: str
    value: Any
    text: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.line else f"{self.file}: " if self.file else ""
        subject = ": ".join(part for part in (self.object, self.field) if part)
        value = f"{shown(self.value)}: " if self.value is not None else ""
        return f"{place}{self.level.value}: {subject}: {value}{self.text}"


def lint(fleet: Fleet, *, at: datetime | None = None) -> tuple[Finding, ...]:
    """Look over a fleet; errors first, then warnings in the order of the documents.

    `at` is the instant from which dates are judged as past, aware; without it no advice depends on the present.
    """
    errors = tuple(_error(problem) for problem in fleet.problems)
    return (*errors, *_schedules(fleet, at), *_references(fleet), *_unreferenced(fleet))


def _error(problem: Problem) -> Finding:
    return Finding(
        level=Level.ERROR,
        file=problem.file,
        line=problem.line,
        object=problem.object,
        field=problem.field,
        value=problem.value,
        text=problem.remedy,
    )


def _warning(origin: Origin, label: str, field: str, value: Any, text: str) -> Finding:
    return Finding(
        level=Level.WARNING,
        file=origin.file,
        line=origin.line_of(field),
        object=label,
        field=field,
        value=value,
        text=text,
    )


def _schedules(fleet: Fleet, at: datetime | None) -> Iterator[Finding]:
    for provider in fleet.providers:
        if provider.kind in SCHEDULE_KINDS:
            for advice in lint_schedule(provider.kind, provider.body["spec"], at=at):
                field = f"spec.{advice.field}" if advice.field else "spec"
                yield _warning(provider.origin, _label(provider), field, advice.value, advice.text)


def _references(fleet: Fleet) -> Iterator[Finding]:
    providers = {provider.key: provider for provider in fleet.providers}
    for machine in fleet.machines:
        key = machine.provider_key
        found = providers.get(key) if key is not None else None
        label = f"ScheduledMachine {machine.key}"
        if found is None and key is not None:
            text = f"no document provides {key[0]} {key[2]} in namespace {key[1]}; until it exists the machine holds"
            yield _warning(machine.origin, label, "spec.schedule.name", key[2], text)
        elif found is not None and _abstains(found):
            text = "after `until` it abstains, and a machine that refers to it directly holds; put it into a composite"
            yield _warning(machine.origin, label, "spec.schedule.name", found.name, text)


def _abstains(provider: Provider) -> bool:
    return provider.kind == MANUAL.name and (provider.body.get("spec") or {}).get("then") == "Abstain"


def _unreferenced(fleet: Fleet) -> Iterator[Finding]:
    used = {machine.provider_key for machine in fleet.machines} | set(_members(fleet))
    for provider in fleet.providers:
        if provider.key not in used:
            yield _warning(
                provider.origin, _label(provider), "metadata.name", provider.name, "no machine refers to it"
            )
        elif kind_of(provider.api_version, provider.kind) is None:
            text = "not a kind of ours: its status is taken as it stands"
            yield _warning(provider.origin, _label(provider), "kind", provider.kind, text)


def _members(fleet: Fleet) -> Iterator[tuple[str, str, str]]:
    """The providers that composites refer to."""
    for provider in fleet.providers:
        spec = provider.body.get("spec") or {}
        for name in ("allOf", "anyOf", "not", "firstOf"):
            for member in spec.get(name) or ():
                yield member["kind"], provider.namespace, member["name"]


def _label(provider: Provider) -> str:
    return f"{provider.kind} {provider.namespace}/{provider.name}"
