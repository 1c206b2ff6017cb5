"""Why is this machine up or down? The precedence with the value of each step, and what is being waited for.

It evaluates the same chain, by the same functions, as `decide`.
"""

from datetime import datetime

import attrs

from fivespot.core.decision.decide import decide
from fivespot.core.decision.observation import Observation
from fivespot.core.decision.phase import Phase
from fivespot.core.decision.policy import DEFAULT_POLICY, Policy
from fivespot.core.decision.scene import scene_of
from fivespot.core.decision.target import Step, Target, chain
from fivespot.core.decision.verdict import Verdict
from fivespot.core.errors import InvalidSpec
from fivespot.core.fleet import Fleet, Machine
from fivespot.core.instant import require_aware
from fivespot.core.names import FINALIZER
from fivespot.core.simulate.world import World


@attrs.frozen(kw_only=True)
class Explanation:
    """The answer about one machine at one instant.

    Attributes:
        steps: the whole precedence, strongest first; the first that decides is the target's.
        held: the verdict that is held in status, None when none ever resolved; `held_from` says whose it was.
        phase: as stored, None when nothing is stored.
        waiting: what the next pass would say in `status.message`.
        next_transition: when the provider says its answer changes, None when it does not say.
    """

    machine: str
    at: datetime
    provider: str
    verdict: Verdict
    steps: tuple[Step, ...]
    target: Target
    held: bool | None
    held_from: str | None
    phase: Phase | None
    waiting: str
    next_transition: datetime | None


def explain_observation(obs: Observation, now: datetime, policy: Policy = DEFAULT_POLICY) -> Explanation:
    """Explain one machine from everything that was read about it; TypeError when `now` is naive."""
    now = require_aware(now)
    scene = scene_of(obs, now, policy)
    status, meta, schedule = obs.machine.status, obs.machine.metadata, obs.machine.intent.schedule
    spot = status.spot_schedule
    return Explanation(
        machine=f"{meta.namespace}/{meta.name}",
        at=now,
        provider=f"{schedule.kind}/{schedule.name}" if schedule is not None else "",
        verdict=scene.verdict,
        steps=chain(scene.facts),
        target=scene.target,
        held=spot.active if spot is not None else None,
        held_from=spot.held_from if spot is not None else None,
        phase=Phase(status.phase) if status.phase is not None else None,
        waiting=decide(_adopted(obs), now, policy).status.message or "",
        next_transition=scene.verdict.next_transition,
    )


def _adopted(obs: Observation) -> Observation:
    """The observation as it is once our finalizer is on the object: the pass before says nothing yet."""
    meta = obs.machine.metadata
    if FINALIZER in meta.finalizers or meta.deleting:
        return obs
    named = attrs.evolve(meta, finalizers=(*meta.finalizers, FINALIZER))
    return attrs.evolve(obs, machine=attrs.evolve(obs.machine, metadata=named))


def explain(fleet: Fleet, machine: str, at: datetime) -> Explanation:
    """Explain a machine of a fleet at an instant, its providers' answers computed for that instant.

    Args:
        fleet: machines and providers.
        machine: NAME or NAMESPACE/NAME.
        at: aware instant.

    Raises:
        InvalidSpec: no such machine, or several of that name in different namespaces.
        TypeError: `at` is naive.
    """
    found = find(fleet, machine)
    return _explained(fleet, (found,), require_aware(at))[0]


def verdicts(fleet: Fleet, at: datetime) -> tuple[Explanation, ...]:
    """Explain every machine of a fleet at one instant: a dry run; TypeError when `at` is naive."""
    return _explained(fleet, fleet.machines, require_aware(at))


def find(fleet: Fleet, name: str) -> Machine:
    """The machine called NAME or NAMESPACE/NAME.

    Raises:
        InvalidSpec: there is none, or NAME alone is not enough.
    """
    matches = [m for m in fleet.machines if name in (m.key, m.view.metadata.name)]
    if not matches:
        known = ", ".join(sorted(m.key for m in fleet.machines)[:10]) or "none"
        raise InvalidSpec("machine", name, f"name one of the machines that were read: {known}")
    if len(matches) > 1:
        raise InvalidSpec("machine", name, f"say which: {', '.join(sorted(m.key for m in matches))}")
    return matches[0]


def _explained(fleet: Fleet, machines: tuple[Machine, ...], at: datetime) -> tuple[Explanation, ...]:
    world = World.of(attrs.evolve(fleet, machines=machines), at)
    for answering in world.providers.values():
        answering.advance(at)
    return tuple(
        explain_observation(world.places[m.key].cell.observe(world.seen_by(m.key)), at) for m in machines
    )
