"""Why is this machine up or down? The precedence with the value of each step, and what is being waited for.

It evaluates the same chain, by the same functions, as `decide`.
"""

from datetime import datetime
from typing import Final

import attrs

from fivespot.core.api import reasons
from fivespot.core.api.common import condition
from fivespot.core.api.scheduled_machine import ScheduledMachineStatus, ScheduleReference
from fivespot.core.decision.actions import Create, Decision
from fivespot.core.decision.decide import decide
from fivespot.core.decision.knowledge import Present
from fivespot.core.decision.observation import Observation
from fivespot.core.decision.phase import Phase
from fivespot.core.decision.policy import DEFAULT_POLICY, Policy
from fivespot.core.decision.scene import scene_of
from fivespot.core.decision.target import Decider, Step, Target, chain
from fivespot.core.decision.verdict import Verdict, verdict_of
from fivespot.core.errors import InvalidSpec
from fivespot.core.fleet import Fleet, Machine
from fivespot.core.instant import require_aware
from fivespot.core.names import FINALIZER
from fivespot.core.simulate.schedules import Answering
from fivespot.core.simulate.world import World

STORED: Final = "Status"
"""Who decided a provider's answer, where only its stored status is known."""


@attrs.frozen(kw_only=True)
class Explanation:
    """The answer about one machine at one instant. Instants are UTC.

    Attributes:
        machine: `namespace/name`.
        at: the instant.
        provider: `kind/name` that the spec refers to; empty when it refers to none that can be used.
        verdict: what that provider says.
        since: from when on it has said so, None when nobody knows.
        computed: whether the answer was computed for `at`; False: it is the provider's status as it was stored.
        timezone: the provider's zone, UTC where it has none.
        steps: the whole precedence, strongest first; the first that decides is the target's.
        target: what is wanted, by whom, and why.
        held: the verdict that is held in status, None when none ever resolved; `held_from` says whose it was.
        phase: as stored, None when nothing is stored.
        stored: the machine's status as it was stored.
        waiting: what its controller does or waits for, as `status.message` says it.
        next_transition: when the provider says its answer changes, None when it does not say.
    """

    machine: str
    at: datetime
    provider: str
    verdict: Verdict
    since: datetime | None = None
    computed: bool = False
    timezone: str = "UTC"
    steps: tuple[Step, ...]
    target: Target
    held: bool | None
    held_from: str | None
    phase: Phase | None
    stored: ScheduledMachineStatus
    waiting: str
    next_transition: datetime | None

    @property
    def until(self) -> datetime | None:
        """When what is wanted changes by itself; None: not before a person or a provider changes something."""
        if self.target.decider is Decider.PROVIDER:
            return self.next_transition
        if self.target.decider is Decider.RECLAIM and self.stored.reclaim is not None:
            return self.stored.reclaim.hold_until
        return None


@attrs.frozen(kw_only=True)
class Answer:
    """What one provider says at one instant.

    Attributes:
        kind: of the provider.
        namespace: of the provider.
        name: of the provider.
        at: the instant.
        verdict: as a machine reads it.
        decided_by: the reason of its `Ready`, such as `WindowOpen`, where the answer was computed for `at`; `Status`
            where it is the provider's status as it was stored.
        since: from when on it has said so, None when nobody knows.
        timezone: in which it reads the clock; UTC where it has none.
        machines: how many machines refer to it.
    """

    kind: str
    namespace: str
    name: str
    at: datetime
    verdict: Verdict
    decided_by: str
    since: datetime | None
    timezone: str
    machines: int

    @property
    def until(self) -> datetime | None:
        """When the answer changes, None when the provider does not say, or says never."""
        return self.verdict.next_transition


def explain_observation(obs: Observation, now: datetime, policy: Policy = DEFAULT_POLICY) -> Explanation:
    """Explain one machine from everything that was read about it; TypeError when `now` is naive."""
    now = require_aware(now)
    scene = scene_of(obs, now, policy)
    status, meta, schedule = obs.machine.status, obs.machine.metadata, obs.machine.intent.schedule
    spot = status.spot_schedule
    return Explanation(
        machine=f"{meta.namespace}/{meta.name}",
        at=now,
        provider=schedule.label if schedule is not None else "",
        verdict=scene.verdict,
        since=scene.verdict.last_transition,
        steps=chain(scene.facts),
        target=scene.target,
        held=spot.active if spot is not None else None,
        held_from=spot.held_from if spot is not None else None,
        phase=Phase(status.phase) if status.phase is not None else None,
        stored=status,
        waiting=_waiting(decide(_adopted(obs), now, policy)),
        next_transition=scene.verdict.next_transition,
    )


def _adopted(obs: Observation) -> Observation:
    """The observation as it is once our finalizer is on the object: the pass before says nothing yet."""
    meta = obs.machine.metadata
    if FINALIZER in meta.finalizers or meta.deleting:
        return obs
    named = attrs.evolve(meta, finalizers=(*meta.finalizers, FINALIZER))
    return attrs.evolve(obs, machine=attrs.evolve(obs.machine, metadata=named))


def _waiting(decision: Decision) -> str:
    """What is done next. A create that is under way writes no status of its own, so it is told from the actions."""
    created = [
        f"{action.manifest['kind']} {action.name}"
        for group in decision.groups
        for action in group.actions
        if isinstance(action, Create)
    ]
    return f"to be created: {', '.join(created)}" if created else decision.status.message or ""


def explain(fleet: Fleet, machine: str, at: datetime, *, stored: bool = False) -> Explanation:
    """Explain a machine of a fleet at an instant.

    Args:
        fleet: machines and providers.
        machine: NAME or NAMESPACE/NAME.
        at: aware instant.
        stored: take what the documents store as the present: the answers of providers that have a status, and what the
            machine's controller last said it waits for. Otherwise answers are computed for `at`.

    Raises:
        InvalidSpec: no such machine, or several of that name in different namespaces.
        TypeError: `at` is naive.
    """
    found = find(fleet, machine)
    return _explained(fleet, (found,), require_aware(at), stored=stored)[0]


def verdicts(fleet: Fleet, at: datetime) -> tuple[Explanation, ...]:
    """Explain every machine of a fleet at one instant, by namespace and name: a dry run.

    Raises:
        TypeError: `at` is naive.
    """
    return _explained(fleet, fleet.machines, require_aware(at), stored=False)


def answers(fleet: Fleet, at: datetime) -> tuple[Answer, ...]:
    """What every provider of a fleet says at one instant, by namespace, name and kind.

    Raises:
        TypeError: `at` is naive.
    """
    at = require_aware(at)
    world = World.of(fleet, at)
    for key in world.providers.members_first():
        world.providers.state(key, at)
    found = (
        _answer(answering, at, machines=len(world.references.get(key, ())))
        for key, answering in world.providers.items()
    )
    return tuple(sorted(found, key=lambda it: (it.namespace, it.name, it.kind)))


def _answer(answering: Answering, at: datetime, *, machines: int) -> Answer:
    provider, schedule = answering.provider, answering.schedule
    reference = ScheduleReference(api_version=provider.api_version, kind=provider.kind, name=provider.name)
    verdict = verdict_of(Present(answering.view), reference)
    ready = condition(answering.status.conditions, reasons.READY) if answering.logic is not None else None
    return Answer(
        kind=provider.kind,
        namespace=provider.namespace,
        name=provider.name,
        at=at,
        verdict=verdict,
        decided_by=(ready.reason if ready is not None else None) or STORED,
        since=schedule.prev_transition(at) if schedule is not None else verdict.last_transition,
        timezone=answering.timezone,
        machines=machines,
    )


def find(fleet: Fleet, name: str) -> Machine:
    """The machine called NAME or NAMESPACE/NAME.

    Raises:
        InvalidSpec: there is none, or NAME alone is not enough.
    """
    matches = fleet.called(name)
    if not matches:
        raise InvalidSpec("machine", name, fleet.whom_else(name))
    if len(matches) > 1:
        raise InvalidSpec("machine", name, f"say which: {', '.join(sorted(m.key for m in matches))}")
    return matches[0]


def _explained(
    fleet: Fleet, machines: tuple[Machine, ...], at: datetime, *, stored: bool
) -> tuple[Explanation, ...]:
    world = World.of(attrs.evolve(fleet, machines=machines), at)
    for key in world.providers.members_first():
        if not (stored and world.providers[key].view.status is not None):
            world.providers.state(key, at)
    return tuple(
        _placed(world, machine.key, stored=stored) for machine in sorted(machines, key=lambda m: m.key)
    )


def _placed(world: World, key: str, *, stored: bool) -> Explanation:
    """One machine explained, with what only its provider's schedule knows."""
    place = world.places[key]
    found = explain_observation(place.cell.observe(world.seen_by(key)), world.now)
    said = place.cell.machine.status.message
    if stored and said:
        # Pods and Nodes are not in the documents; the controller has seen them.
        found = attrs.evolve(found, waiting=said)
    answering = world.providers.get(place.provider) if place.provider is not None else None
    if answering is None:
        return found
    schedule = answering.schedule
    computed = answering.logic is not None and bool(answering.flips)
    since = schedule.prev_transition(world.now) if schedule is not None and computed else found.since
    return attrs.evolve(found, since=since, computed=computed, timezone=answering.timezone)
