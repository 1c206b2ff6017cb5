"""Everything admission would refuse, and what it would not but a person should know."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from enum import Enum
from typing import Any, Final

import attrs

from fivespot.core.api.kinds import MANUAL, PROMETHEUS, SCHEDULE_KINDS
from fivespot.core.errors import shown
from fivespot.core.fleet import Fleet, Origin, Problem, Provider, one_line
from fivespot.core.instant import require_aware
from fivespot.core.provider.kinds import BY_KIND
from fivespot.core.provider.prometheus import filtered_to_zero
from fivespot.core.schedule import lint_schedule


class Level(Enum):
    """An error would be refused; a warning would be taken, and may surprise; a note says how something is read."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@attrs.frozen(kw_only=True)
class Finding:
    """One thing about one field of one object.

    Attributes:
        level: how bad it is.
        file: as it was named or found; empty for documents that came from no file.
        line: from 1; 0 when nobody knows.
        object: kind, namespace and name.
        field: path of the field, such as `spec.windows[0].start`.
        value: what stands there, None when nothing does.
        text: what it means, and what to do about it.
    """

    level: Level
    file: str
    line: int
    object: str
    field: str
    value: Any
    text: str

    def __str__(self) -> str:
        # A file that cannot be read is its own value: to name it once is enough.
        nothing = self.value is None or self.value == self.file
        said = self.text if nothing else f"{shown(self.value)}: {self.text}"
        return one_line(self.file, self.line, self.level.value, self.object, self.field, said)


_ORDER: Final = tuple(Level)


def lint(fleet: Fleet, *, at: datetime | None = None) -> tuple[Finding, ...]:
    """Look over a fleet: errors, then warnings, then notes, each by file and line.

    Args:
        fleet: machines, providers, and the problems of what is neither.
        at: the instant from which dates are judged as past, aware; without it no advice depends on the present.

    Raises:
        TypeError: `at` is naive.
    """
    at = require_aware(at) if at is not None else None
    found = [
        *(_error(problem) for problem in fleet.problems),
        *_schedules(fleet, at),
        *_queries(fleet),
        *_references(fleet),
        *_providers(fleet),
    ]
    return tuple(sorted(found, key=lambda it: (_ORDER.index(it.level), it.file, it.line)))


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


def _advice(
    origin: Origin, label: str, field: str, value: Any, text: str, level: Level = Level.WARNING
) -> Finding:
    return Finding(
        level=level,
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
                level = Level.NOTE if advice.usual else Level.WARNING
                yield _advice(provider.origin, provider.label, field, advice.value, advice.text, level)


def _queries(fleet: Fleet) -> Iterator[Finding]:
    for provider in fleet.providers:
        if provider.kind == PROMETHEUS.name:
            query = provider.body["spec"]["query"]
            if found := filtered_to_zero(query):
                text = f"where `{found}` lets a 0 through, the answer is 0, which is false; `{found} bool` gives 1"
                yield _advice(provider.origin, provider.label, "spec.query", query, text)


def _references(fleet: Fleet) -> Iterator[Finding]:
    providers = {provider.key: provider for provider in fleet.providers}
    refused = {problem.object for problem in fleet.problems}
    for machine in fleet.machines:
        key = machine.provider_key
        found = providers.get(key) if key is not None else None
        label = f"ScheduledMachine {machine.key}"
        if found is None and key is not None and refused.isdisjoint(_labels(*key)):
            text = _missing(key, providers)
            yield _advice(machine.origin, label, "spec.schedule.name", key[2], text)
        elif found is not None and _abstains(found):
            text = "after `until` it abstains, and a machine that refers to it directly holds; put it into a composite"
            yield _advice(machine.origin, label, "spec.schedule.name", found.name, text)


def _labels(kind: str, namespace: str, name: str) -> tuple[str, str]:
    """How a document that provides it is called, with and without its namespace."""
    return f"{kind} {namespace}/{name}", f"{kind} {name}"


def _missing(key: tuple[str, str, str], providers: Iterable[tuple[str, str, str]]) -> str:
    kind, namespace, name = key
    text = f"no document provides {kind} {name} in namespace {namespace}; until it exists the machine holds"
    elsewhere = sorted(other for of, other, called in providers if (of, called) == (kind, name))
    if elsewhere:
        return f"{text}; the one in namespace {elsewhere[0]} does not count: a reference has no namespace"
    near = difflib.get_close_matches(
        name, [called for of, other, called in providers if (of, other) == (kind, namespace)], n=1
    )
    return f"{text}; did you mean {near[0]}?" if near else text


def _abstains(provider: Provider) -> bool:
    return provider.kind == MANUAL.name and (provider.body.get("spec") or {}).get("then") == "Abstain"


def _providers(fleet: Fleet) -> Iterator[Finding]:
    """Those that nobody refers to, and those whose answer only their own controller knows."""
    used = {machine.provider_key for machine in fleet.machines} | set(_members(fleet))
    for provider in fleet.providers:
        if provider.key not in used:
            text = "no machine refers to it"
            yield _advice(provider.origin, provider.label, "metadata.name", provider.name, text)
        elif provider.kind not in BY_KIND:
            status = provider.body.get("status")
            active = status.get("active") if isinstance(status, Mapping) else None
            what = (
                f"status.active: {str(active).lower()}"
                if isinstance(active, bool)
                else "no status.active, so its machines hold"
            )
            text = f"simulations take its status as it stands here: {what}"
            yield _advice(provider.origin, provider.label, "kind", provider.kind, text, Level.NOTE)


def _members(fleet: Fleet) -> Iterator[tuple[str, str, str]]:
    """The providers that composites refer to."""
    for provider in fleet.providers:
        spec = provider.body.get("spec") or {}
        for name in ("allOf", "anyOf", "not", "firstOf"):
            for member in spec.get(name) or ():
                yield member["kind"], provider.namespace, member["name"]
