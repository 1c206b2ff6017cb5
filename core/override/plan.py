"""From what a person wishes and what is there to what has to be done, in the order in which it has to be done.

The order makes two promises. *Nothing flaps*: the schedules of an override are there, and say what is wished, before the
machine refers to them, and are deleted when it no longer does. *Any interruption heals*: every step leaves a state from
which the same wish leads to the same end, since only what is there counts and nothing is remembered elsewhere.

The schedule from before stands in the composite and nowhere else. So a second override changes the toggle alone, and a
composite that somebody has rebuilt is refused: what the machine was to go back to could only be guessed.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final, TypeAlias

import attrs

from fivespot.core.api.codec import encode
from fivespot.core.api.kinds import COMPOSITE, MANUAL, SCHEDULED_MACHINE
from fivespot.core.api.scheduled_machine import ScheduleReference
from fivespot.core.errors import FivespotError
from fivespot.core.names import OVERRIDE_FIELD_MANAGER, OVERRIDE_LABEL
from fivespot.core.override import objects
from fivespot.core.override.objects import Found, Manifest, Target
from fivespot.core.override.ownership import Evidence, evidence
from fivespot.core.override.situation import Situation
from fivespot.core.override.steps import Await, Change, Create, Delete, Edit, Step, edit

_SPEC: Final = ("spec",)
_SCHEDULE: Final = ("spec", "schedule")
_OWNERS: Final = ("metadata", "ownerReferences")


class OverrideRefused(FivespotError):  # noqa: N818 - as the other refusals
    """The wish cannot be fulfilled as things are; nothing is done for it."""


@attrs.frozen(kw_only=True)
class Override:
    """Active or not, until an instant (UTC, whole seconds), or until somebody takes it away."""

    active: bool
    until: datetime | None = None


@attrs.frozen
class Clear:
    """Away with it."""


Wish: TypeAlias = Override | Clear


@attrs.frozen(kw_only=True)
class Plan:
    """What to do about a wish.

    Attributes:
        steps: in order; none when all is as it is wished.
        documents: all that the steps write, as manifests.
        for_git: what to commit where Git owns the machine.
        schedule: who decides when the override has let go, or is taken away; None when there is none to take away.
        reverted: who would undo it; empty when nobody is seen to.
        notes: what a person should know, a sentence each.
    """

    steps: tuple[Step, ...]
    documents: tuple[Manifest, ...]
    for_git: tuple[Manifest, ...]
    schedule: ScheduleReference | None
    reverted: tuple[Evidence, ...]
    notes: tuple[str, ...]


def plan(seen: Situation, wish: Wish) -> Plan:
    """What to do.

    Raises:
        OverrideRefused: it cannot be done as things are.
    """
    return _clear(seen) if isinstance(wish, Clear) else _override(seen, wish)


# Setting


def _override(seen: Situation, wish: Override) -> Plan:
    meta = seen.machine.metadata
    _require_able(seen, wish)
    for found in seen.schedules:
        _require_usable(found, meta.name)
    before = _present_schedule(seen)
    after = objects.reference_to(COMPOSITE, meta.name)
    schedule = _underneath(seen) if seen.stands else before
    manual = objects.manual(meta, active=wish.active, until=wish.until)
    composite = objects.composite(meta, schedule)
    written = (
        *_put(seen.target(MANUAL), seen.manual, manual),
        *_put(seen.target(COMPOSITE), seen.composite, composite),
    )
    pointed = () if seen.stands else _point(seen, before, after)
    answer = Await(target=seen.target(COMPOSITE), machine=meta.name, active=wish.active)
    steps: tuple[Step, ...] = (*written, answer, *pointed) if written or pointed else ()
    part = objects.machine_part(meta, after)
    shown = {MANUAL: manual, COMPOSITE: composite, SCHEDULED_MACHINE: part}
    return Plan(
        steps=steps,
        documents=tuple(shown[step.target.kind] for step in steps if not isinstance(step, Await)),
        for_git=(objects.for_git(manual), objects.for_git(composite), part),
        schedule=schedule,
        reverted=tuple(_reverted(seen, steps)),
        notes=tuple(_notes(seen, wish)),
    )


def _require_able(seen: Situation, wish: Override) -> None:
    machine = seen.machine
    shown = seen.target(SCHEDULED_MACHINE)
    if machine.metadata.deleting:
        message = f"{shown} is being deleted, and no schedule brings it back"
        raise OverrideRefused(message)
    if machine.intent.kill_switch:
        message = f"{shown}: spec.killSwitch is true, which no override outweighs; set it to false first"
        raise OverrideRefused(message)
    if wish.active and not machine.intent.enabled:
        message = f"{shown}: spec.enabled is false, which no override outweighs; set it to true first"
        raise OverrideRefused(message)


def _require_usable(found: Found, machine: str) -> None:
    if not found.made_for(machine):
        message = f"{_stranger(found, machine)}; rename or delete it first"
        raise OverrideRefused(message)
    if found.metadata.deleting:
        message = f"{found.target} is being deleted; try again when it is gone"
        raise OverrideRefused(message)


def _stranger(found: Found, machine: str) -> str:
    return (
        f"{found.target} is in the way: it has the name that an override uses, and is none (no label "
        f"{OVERRIDE_LABEL}={machine})"
    )


def _present_schedule(seen: Situation) -> ScheduleReference:
    schedule = seen.machine.intent.schedule
    shown = seen.target(SCHEDULED_MACHINE)
    if schedule is None:
        message = f"{shown}: spec.schedule names no provider that can be used; set it right first"
        raise OverrideRefused(message)
    if objects.refers_to(schedule, MANUAL, seen.machine.metadata.name):
        message = f"{shown}: spec.schedule is {schedule.label}, the toggle itself; set it to the machine's own schedule first"
        raise OverrideRefused(message)
    return schedule


def _underneath(seen: Situation) -> ScheduleReference:
    """The schedule from before, where the machine refers to the composite."""
    name, found = seen.machine.metadata.name, seen.composite
    shown, remedy = seen.target(SCHEDULED_MACHINE), "set spec.schedule to the machine's own schedule first"
    if found is None:
        message = f"{shown} refers to {seen.target(COMPOSITE)}, which is not there: nobody knows what was before; {remedy}"
        raise OverrideRefused(message)
    schedule = objects.underneath(found.spec, name)
    if schedule is None:
        message = (
            f"{found.target}: spec is not what an override writes (firstOf: {objects.reference_to(MANUAL, name).label} and "
            f"one other), so nobody knows what was before; {remedy}"
        )
        raise OverrideRefused(message)
    return schedule


def _put(target: Target, found: Found | None, wanted: Manifest) -> tuple[Step, ...]:
    if found is None:
        return (Create(target=target, manifest=wanted),)
    spec = Change(path=_SPEC, before=found.spec, after=wanted["spec"])
    return edit(target, found.metadata.uid, spec, _owned(found, wanted["metadata"]["ownerReferences"][0]))


def _owned(found: Found, owner: Manifest) -> Change:
    """An owner of the same name and another uid was the machine before this one: what it owns is collected soon."""
    listed = (found.body.get("metadata") or {}).get("ownerReferences") or []
    right = [
        owner if (entry.get("kind"), entry.get("name")) == (owner["kind"], owner["name"]) else entry
        for entry in listed
    ]
    moved = [entry.get("uid") for entry in listed] != [entry.get("uid") for entry in right]
    return Change(path=_OWNERS, before=listed, after=right if moved else listed)


def _point(seen: Situation, before: ScheduleReference, after: ScheduleReference) -> tuple[Edit, ...]:
    change = Change(path=_SCHEDULE, before=encode(before), after=encode(after))
    return edit(seen.target(SCHEDULED_MACHINE), seen.machine.metadata.uid, change)


def _notes(seen: Situation, wish: Override) -> Iterator[str]:
    machine = seen.machine
    if wish.until is None:
        yield "without --until it stands until somebody takes it away with --clear"
    if not machine.intent.enabled:
        yield "spec.enabled is false: the machine stays out whatever its schedule says"
    stored = machine.status.reclaim
    if wish.active and stored is not None and stored.state is not None:
        yield "its owner has taken it back: it stays out until that is released, whatever its schedule says"


# Clearing


def _clear(seen: Situation) -> Plan:
    name = seen.machine.metadata.name
    ours = tuple(found for found in seen.schedules if found.made_for(name))
    others = tuple(found for found in seen.schedules if not found.made_for(name))
    notes = [
        f"{found.target} stays: it is no override's (no label {OVERRIDE_LABEL}={name})" for found in others
    ]
    current = seen.machine.intent.schedule
    schedule, pointed = current, tuple[Edit, ...]()
    if seen.machine.metadata.deleting:
        ours, notes = (), ["the machine is being deleted, and what overrides it goes with it"]
    elif current is not None and seen.stands and (ours or seen.composite is None):
        if seen.composite is not None and not seen.composite.made_for(name):
            raise OverrideRefused(_stranger(seen.composite, name))
        schedule = _underneath(seen)
        pointed = _point(seen, current, schedule)
    elif ours:
        said = current.label if current is not None else "no schedule"
        notes.append(f"the machine refers to {said} and not to the override, and is left as it is")
    gone = tuple(
        Delete(target=found.target, uid=found.metadata.uid) for found in ours if not found.metadata.deleting
    )
    steps: tuple[Step, ...] = (*pointed, *gone)
    documents = (objects.machine_part(seen.machine.metadata, schedule),) if pointed and schedule else ()
    return Plan(
        steps=steps,
        documents=documents,
        for_git=documents,
        schedule=schedule if steps else None,
        reverted=tuple(_reverted(seen, steps)),
        notes=tuple(notes),
    )


def _reverted(seen: Situation, steps: tuple[Step, ...]) -> Iterator[Evidence]:
    """Who would undo one of the steps; what is created is nobody's yet."""
    bodies = {found.target: found.body for found in seen.schedules}
    for step in steps:
        if step.target.kind is SCHEDULED_MACHINE:
            # A reference that we have written is not Git's: to take it back is what Git itself would do.
            yield from evidence(seen.body, _SCHEDULE, but_for=OVERRIDE_FIELD_MANAGER if seen.stands else "")
        elif isinstance(step, Edit | Delete):
            yield from evidence(bodies[step.target], _SPEC)
