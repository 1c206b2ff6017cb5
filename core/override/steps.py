"""The steps of an override, as values: whoever performs them decides nothing."""

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import attrs

from fivespot.core.decision.knowledge import Present
from fivespot.core.decision.reading import read_provider
from fivespot.core.decision.verdict import verdict_of
from fivespot.core.doctor.rights import Right
from fivespot.core.override.objects import Manifest, Target, reference_to


@attrs.frozen(kw_only=True)
class Create:
    """A new object; one that has its name already is in the way."""

    target: Target
    manifest: Manifest

    def __str__(self) -> str:
        return f"create {self.target}"


@attrs.frozen(kw_only=True)
class Change:
    """One field of an object: changed only while it is as it was seen."""

    path: tuple[str, ...]
    before: Any
    after: Any


@attrs.frozen(kw_only=True)
class Edit:
    """Some fields of an object, all or none; refused when it is another object by now, or one of them has changed."""

    target: Target
    uid: str
    changes: tuple[Change, ...]

    def __str__(self) -> str:
        return f"change {', '.join('.'.join(change.path) for change in self.changes)} of {self.target}"


@attrs.frozen(kw_only=True)
class Await:
    """Wait until a composite says what is wished.

    A composite that has not answered yet does no harm: machines hold. But one that is left from before may still say
    what its toggle said then, and nothing in its status tells which state of the toggle it speaks of.
    """

    target: Target
    machine: str
    active: bool

    def __str__(self) -> str:
        return f"wait until {self.target} says {'active' if self.active else 'inactive'}"

    def met(self, body: Manifest) -> bool:
        """Whether it does."""
        reference = reference_to(self.target.kind, self.machine)
        return verdict_of(Present(read_provider(body)), reference).active is self.active

    def said(self, body: Manifest) -> str:
        """What it says instead, for people."""
        reference = reference_to(self.target.kind, self.machine)
        return verdict_of(Present(read_provider(body)), reference).message


@attrs.frozen(kw_only=True)
class Delete:
    """An object that was seen; one that is gone already is as good."""

    target: Target
    uid: str

    def __str__(self) -> str:
        return f"delete {self.target}"


Step: TypeAlias = Create | Edit | Await | Delete

_VERBS: Final = {Create: ("create",), Edit: ("patch",), Await: ("get", "watch"), Delete: ("delete",)}


def rights(steps: Iterable[Step]) -> tuple[Right, ...]:
    """What somebody has to be allowed who performs them."""
    return tuple(
        Right(
            group=step.target.kind.group,
            resource=step.target.kind.plural,
            verb=verb,
            namespace=step.target.namespace,
            # A create is authorized before the name is looked at.
            name="" if verb == "create" else step.target.name,
        )
        for step in steps
        for verb in _VERBS[type(step)]
    )


def edit(target: Target, uid: str, *changes: Change) -> tuple[Edit, ...]:
    """A step for those changes that change something; none when none does."""
    real = tuple(change for change in changes if change.before != change.after)
    return (Edit(target=target, uid=uid, changes=real),) if real else ()
