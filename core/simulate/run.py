"""Simulate a fleet, and what came out: changes, timelines, hours."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import attrs

from fivespot.core.decision.phase import Phase
from fivespot.core.decision.policy import DEFAULT_POLICY, Policy
from fivespot.core.errors import InvalidSpec, plain
from fivespot.core.fleet import Fleet, Machine, Problem
from fivespot.core.instant import format_instant, require_aware
from fivespot.core.simulate.alike import Alike, group_alike
from fivespot.core.simulate.pace import Pace
from fivespot.core.simulate.world import Change, World

_HOUR = timedelta(hours=1)


@attrs.frozen(kw_only=True)
class PhaseInterval:
    """A machine is in one phase from `start` up to, but without, `end` (both UTC)."""

    start: datetime
    end: datetime
    phase: Phase
    cause: str
    verdict: str


@attrs.frozen(kw_only=True)
class AnswerInterval:
    """A provider gives one answer from `start` up to, but without, `end`; None: it cannot be read."""

    start: datetime
    end: datetime
    active: bool | None


@attrs.frozen(kw_only=True)
class MachineStory:
    """What happened to one machine. `hours_active` counts the phase Active; `transitions` the changes after the first."""

    namespace: str
    name: str
    provider: tuple[str, str, str] | None
    changes: tuple[Change, ...]
    intervals: tuple[PhaseInterval, ...]

    @property
    def hours_active(self) -> float:
        """Hours in phase Active."""
        spans = (i.end - i.start for i in self.intervals if i.phase is Phase.ACTIVE)
        return sum(spans, timedelta()) / _HOUR

    @property
    def transitions(self) -> int:
        """Phase changes, the state at the start not counted."""
        return max(0, len(self.changes) - 1)


@attrs.frozen(kw_only=True)
class ProviderStory:
    """What one provider answered."""

    kind: str
    namespace: str
    name: str
    timezone: str
    intervals: tuple[AnswerInterval, ...]


@attrs.frozen(kw_only=True)
class Run:
    """The outcome of a simulation over the half-open range from `start` to `end`."""

    start: datetime
    end: datetime
    machines: tuple[MachineStory, ...]
    providers: tuple[ProviderStory, ...]
    problems: tuple[Problem, ...] = ()

    @property
    def changes(self) -> tuple[Change, ...]:
        """Every phase change of every machine, in order of time."""
        found = [change for machine in self.machines for change in machine.changes]
        return tuple(sorted(found, key=lambda change: (change.at, change.machine)))

    def timeline(self, machine: str) -> tuple[PhaseInterval, ...]:
        """The phases of one machine, named `namespace/name`.

        Raises:
            KeyError: the fleet has no such machine.
        """
        for story in self.machines:
            if f"{story.namespace}/{story.name}" == machine:
                return story.intervals
        known = ", ".join(f"{story.namespace}/{story.name}" for story in self.machines)
        message = f"no machine {machine!r}; there are {known or 'none'}"
        raise KeyError(message)


def simulate(
    fleet: Fleet,
    *,
    start: datetime,
    end: datetime,
    script: Sequence[object] = (),
    policy: Policy = DEFAULT_POLICY,
    pace: Pace | None = None,
) -> Run:
    """Run a fleet from `start` up to, but without, `end`, in virtual time.

    Args:
        fleet: machines and providers; stored status is where the run begins.
        start: aware instant, where the run begins.
        end: aware instant, where it ends, not included.
        script: reserved for faults and people in a run; must be empty.
        policy: the operator's bounds.
        pace: how fast hosts come and go.

    Raises:
        TypeError: a naive datetime.
        InvalidSpec: `end` is not after `start`, or a script is given.
    """
    start, end = require_aware(start), require_aware(end)
    if end <= start:
        raise InvalidSpec("end", format_instant(end), f"it must be after the start, {format_instant(start)}")
    if script:
        raise InvalidSpec("script", script, "scripts are not understood by this version; leave it empty")
    alike = group_alike(fleet.machines)
    lived = attrs.evolve(fleet, machines=tuple(group.representative for group in alike))
    world = World.of(lived, start, policy=policy, pace=pace)
    world.run(end)
    by_machine: dict[str, list[Change]] = {machine.key: [] for machine in lived.machines}
    for change in world.changes:
        by_machine[change.machine].append(change)
    stories = [
        _story(group, member, by_machine[group.representative.key], end)
        for group in alike
        for member in group.members
    ]
    return Run(
        start=start,
        end=end,
        machines=tuple(sorted(stories, key=lambda story: (story.namespace, story.name))),
        providers=tuple(
            ProviderStory(
                kind=kind,
                namespace=namespace,
                name=name,
                timezone=answering.timezone,
                intervals=_answers(answering.flips, end),
            )
            for (kind, namespace, name), answering in sorted(world.providers.items(), key=_place)
        ),
        problems=fleet.problems,
    )


def _place(entry: tuple[tuple[str, str, str], object]) -> tuple[str, str, str]:
    kind, namespace, name = entry[0]
    return namespace, name, kind


def _story(group: Alike, machine: Machine, changes: Sequence[Change], end: datetime) -> MachineStory:
    # Not `evolve`, which takes four times as long; a year of a large fleet has millions.
    own = tuple(
        Change(
            at=change.at,
            machine=machine.key,
            before=change.before,
            after=change.after,
            cause=group.told_of(machine, change.cause),
            decided_by=change.decided_by,
            verdict=change.verdict,
        )
        for change in changes
    )
    return MachineStory(
        namespace=machine.view.metadata.namespace,
        name=machine.view.metadata.name,
        provider=machine.provider_key,
        changes=own,
        intervals=_phases(own, end),
    )


def _phases(changes: Sequence[Change], end: datetime) -> tuple[PhaseInterval, ...]:
    """Changes as stretches; several changes at one instant leave no empty ones behind."""
    ends = [*(change.at for change in changes[1:]), end]
    return (
        tuple(
            PhaseInterval(
                start=change.at, end=until, phase=change.after, cause=change.cause, verdict=change.verdict
            )
            for change, until in zip(changes, ends, strict=True)
            if change.after is not None and until > change.at
        )
        if changes
        else ()
    )


def _answers(flips: Sequence[tuple[datetime, bool | None]], end: datetime) -> tuple[AnswerInterval, ...]:
    ends = [*(at for at, _ in flips[1:]), end]
    return (
        tuple(
            AnswerInterval(start=at, end=until, active=active)
            for (at, active), until in zip(flips, ends, strict=True)
            if until > at
        )
        if flips
        else ()
    )


def as_json(run: Run) -> Mapping[str, Any]:
    """The run as the JSON value that `5spot simulate --output json` prints; docs/simulate.schema.json describes it."""
    return {
        "from": format_instant(run.start),
        "to": format_instant(run.end),
        "machines": [
            {
                "namespace": story.namespace,
                "name": story.name,
                "intervals": [
                    {
                        "from": format_instant(interval.start),
                        "to": format_instant(interval.end),
                        "phase": interval.phase.value,
                        "cause": interval.cause,
                        "verdict": interval.verdict,
                    }
                    for interval in story.intervals
                ],
                "hoursActive": round(story.hours_active, 4),
                "transitions": story.transitions,
            }
            for story in run.machines
        ],
        "providers": [
            {
                "kind": story.kind,
                "namespace": story.namespace,
                "name": story.name,
                "intervals": [
                    {
                        "from": format_instant(interval.start),
                        "to": format_instant(interval.end),
                        "active": interval.active,
                    }
                    for interval in story.intervals
                ],
            }
            for story in run.providers
        ],
        "problems": [
            {
                "file": problem.file,
                "line": problem.line,
                "object": problem.object,
                "field": problem.field,
                "value": plain(problem.value),
                "remedy": problem.remedy,
            }
            for problem in run.problems
        ],
    }
