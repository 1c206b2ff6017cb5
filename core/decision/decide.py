"""`decide`: the whole product in one function. Total, deterministic, free of I/O."""

from datetime import datetime

from fivespot.core.api.common import Metadata
from fivespot.core.decision import verdict as verdicts
from fivespot.core.decision.actions import AddFinalizer, AdoptOwner, Decision, Group, Role
from fivespot.core.decision.knowledge import Present
from fivespot.core.decision.observation import Observation
from fivespot.core.decision.plan import Plan, best_effort, required
from fivespot.core.decision.policy import DEFAULT_POLICY, Policy
from fivespot.core.decision.reclaim import hold_until
from fivespot.core.decision.removal import plan_down
from fivespot.core.decision.report import report
from fivespot.core.decision.rising import plan_up
from fivespot.core.decision.scene import Scene, reference, scene_of
from fivespot.core.instant import require_aware
from fivespot.core.names import FINALIZER, MACHINE_KIND


def decide(observation: Observation, now: datetime, policy: Policy = DEFAULT_POLICY) -> Decision:
    """What should be written and done about one machine, and when to look again.

    Args:
        observation: everything that was read about it.
        now: the instant of the observation, aware.
        policy: the operator's bounds.

    Raises:
        TypeError: `now` is naive.
    """
    scene = scene_of(observation, require_aware(now), policy)
    meta, status = scene.machine.metadata, scene.status
    if meta.deleting and FINALIZER not in meta.finalizers:
        return Decision(status=status)
    first = _first_things(scene)
    if first and observation.failure is None:
        # The owner is put right before anything else: the garbage collector takes one of unknown uid for gone.
        return Decision(status=status, groups=first)
    plan = plan_up(scene) if scene.target.up else plan_down(scene)
    if plan.confirm:
        return Decision(status=status, confirm=plan.confirm)
    return _answer(scene, plan, first)


def _answer(scene: Scene, plan: Plan, first: tuple[Group, ...]) -> Decision:
    """`first` is what keeps failing: it goes on being tried, and is reported, while what can be done is done."""
    made = report(scene, plan)
    ending = plan.clear and scene.machine.metadata.deleting and scene.obs.failure is None
    # An object that is about to go, and a create that is under way, are not worth a write of their own.
    quiet = ending or not plan.write_status
    return Decision(
        status=scene.status if quiet else made.status,
        groups=first + plan.groups if first else plan.groups,
        events=() if quiet else made.events,
        wake_at=_earliest(scene, plan, made.wakes),
    )


def _earliest(scene: Scene, plan: Plan, more: tuple[datetime | None, ...]) -> datetime | None:
    """Of what the plan waits for, what the report waits for, the provider's silence and the end of a hold."""
    overdue = verdicts.overdue_at(scene.verdict)
    hold = hold_until(scene.machine) if scene.status.reclaim is not None else None
    now, found = scene.now, None
    for at in (*plan.wakes, *more, overdue, hold):
        if at is not None and at > now and (found is None or at < found):
            found = at
    return found


def _first_things(scene: Scene) -> tuple[Group, ...]:
    """The finalizer, and owners that a restore brought back with another uid."""
    meta = scene.machine.metadata
    adoptions = _adoptions(scene)
    groups = (best_effort(*adoptions),) if adoptions else ()
    if meta.deleting or FINALIZER in meta.finalizers:
        return groups
    return (*groups, required(AddFinalizer(resource_version=meta.resource_version)))


def _adoptions(scene: Scene) -> tuple[AdoptOwner, ...]:
    meta = scene.machine.metadata
    found: list[AdoptOwner] = []
    for role, known in (
        (Role.MACHINE, scene.capi),
        (Role.INFRASTRUCTURE, scene.infrastructure),
        (Role.BOOTSTRAP, scene.bootstrap),
    ):
        if isinstance(known, Present) and _has_another_owner(known.value.metadata, meta):
            version = known.value.metadata.resource_version
            found.append(AdoptOwner(role=role, target=reference(known.value), resource_version=version))
    return tuple(found)


def _has_another_owner(metadata: Metadata, machine: Metadata) -> bool:
    """Whether the owner of our name has another uid than we have."""
    for owner in metadata.owners:
        if owner.uid != machine.uid and owner.name == machine.name and owner.kind == MACHINE_KIND:
            return bool(machine.uid)
    return False
