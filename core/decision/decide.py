"""`decide`: the whole product in one function. Total, deterministic, free of I/O."""

from datetime import datetime

from fivespot.core.decision import verdict as verdicts
from fivespot.core.decision.actions import AddFinalizer, AdoptOwner, Decision, Group, Role
from fivespot.core.decision.knowledge import value_of
from fivespot.core.decision.observation import Observation, owned_by
from fivespot.core.decision.plan import Plan, required
from fivespot.core.decision.policy import DEFAULT_POLICY, Policy
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
    if first:
        # The owner is put right before anything else: the garbage collector takes one of unknown uid for gone.
        return Decision(status=status, groups=first)
    plan = plan_up(scene) if scene.target.up else plan_down(scene)
    if plan.confirm:
        return Decision(status=status, confirm=plan.confirm)
    return _answer(scene, plan)


def _answer(scene: Scene, plan: Plan) -> Decision:
    made = report(scene, plan)
    ending = scene.machine.metadata.deleting and plan.clear
    # An object that is about to go, and a create that is under way, are not worth a write of their own.
    status = scene.status if ending or not plan.write_status else made.status
    events = made.events if status != scene.status else ()
    return Decision(
        status=status,
        groups=plan.groups,
        events=events,
        wake_at=_earliest(scene, plan, made.wakes),
    )


def _earliest(scene: Scene, plan: Plan, more: tuple[datetime, ...]) -> datetime | None:
    overdue = verdicts.overdue_at(scene.verdict)
    instants = [*plan.wakes, *more, *((overdue,) if overdue is not None else ())]
    return min((at for at in instants if at > scene.now), default=None)


def _first_things(scene: Scene) -> tuple[Group, ...]:
    """The finalizer, and owners that a restore brought back with another uid."""
    meta = scene.machine.metadata
    groups = []
    adoptions = _adoptions(scene)
    if adoptions:
        groups.append(required(*adoptions))
    if not meta.deleting and FINALIZER not in meta.finalizers:
        groups.append(required(AddFinalizer(resource_version=meta.resource_version)))
    return tuple(groups)


def _adoptions(scene: Scene) -> tuple[AdoptOwner, ...]:
    meta = scene.machine.metadata
    parts = (
        (Role.MACHINE, value_of(scene.capi)),
        (Role.INFRASTRUCTURE, value_of(scene.infrastructure)),
        (Role.BOOTSTRAP, value_of(scene.bootstrap)),
    )
    found = []
    for role, view in parts:
        owner = owned_by(view.metadata, meta, MACHINE_KIND) if view is not None else None
        if view is not None and owner is not None and meta.uid and owner.uid != meta.uid:
            found.append(
                AdoptOwner(role=role, target=reference(view), resource_version=view.metadata.resource_version)
            )
    return tuple(found)
