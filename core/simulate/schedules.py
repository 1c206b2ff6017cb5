"""Providers in virtual time: the status that a provider's controller would publish, and when it changes.

The kinds that our controllers answer for are answered by the same code as in production. Any other kind, a stranger's or one
that asks the outside world, is taken as its `status` stands in the documents.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import attrs

from fivespot.core.api import reasons
from fivespot.core.api.codec import encode
from fivespot.core.api.providers import ProviderStatus
from fivespot.core.api.scheduled_machine import ScheduleReference
from fivespot.core.decision.knowledge import Absent, Known, Present
from fivespot.core.decision.observation import ProviderView
from fivespot.core.fleet import Provider
from fivespot.core.provider.answer import Logic, Members
from fivespot.core.provider.kinds import BY_KIND
from fivespot.core.provider.publish import publish, stored_status
from fivespot.core.provider.timed import Timed
from fivespot.core.schedule import Schedule

ProviderKey = tuple[str, str, str]
"""Kind, namespace, name."""


@attrs.define(kw_only=True)
class Answering:
    """One provider and its present answer.

    Attributes:
        view: what a machine reads now.
        logic: of its spec; None for a kind whose answer only its own controller knows.
        wake_at: when it changes by itself, None for never.
        flips: every instant at which `active` changed, with the new value; None while it is not known.
    """

    provider: Provider
    view: ProviderView
    logic: Logic | None = None
    status: ProviderStatus = attrs.field(factory=ProviderStatus)
    generation: int = 1
    wake_at: datetime | None = None
    flips: list[tuple[datetime, bool | None]] = attrs.field(factory=list)

    @property
    def schedule(self) -> Schedule | None:
        """The schedule behind it, for the kinds that have one."""
        return self.logic.schedule if isinstance(self.logic, Timed) else None

    @property
    def references(self) -> tuple[ScheduleReference, ...]:
        """The providers that it is made of."""
        return self.logic.references if self.logic is not None else ()

    @property
    def timezone(self) -> str:
        """The zone in which the clock is read, UTC where the kind has none."""
        return self.schedule.timezone if self.schedule is not None else "UTC"

    def advance(self, now: datetime, members: Members) -> bool:
        """State what is true at `now`; returns whether the published status changed."""
        if self.logic is None:
            self._note(now, _active(self.view.status))
            return False
        made = publish(self.logic, members, self.generation, self.status, now)
        self.wake_at = made.wake_at
        if made.status == self.status:
            return False
        self.status = made.status
        self.view = ProviderView(generation=self.generation, status=encode(made.status))
        self._note(now, made.answer)
        return True

    def _note(self, now: datetime, active: bool | None) -> None:  # noqa: FBT001 - a value, not a flag
        if not self.flips or self.flips[-1][1] is not active:
            self.flips.append((now, active))


@attrs.frozen
class _Neighbours:
    """The providers of one namespace, as a composite there sees them."""

    providers: "Providers"
    namespace: str

    def seen(self, reference: ScheduleReference) -> Known[ProviderView]:
        """What a provider publishes now."""
        found = self._of(reference)
        return Present(found.view) if found is not None else Absent(live=True, why=reasons.PROVIDER_NOT_FOUND)

    def members(self, reference: ScheduleReference) -> tuple[ScheduleReference, ...]:
        """What a provider refers to."""
        found = self._of(reference)
        return found.references if found is not None else ()

    def _of(self, reference: ScheduleReference) -> Answering | None:
        return self.providers.get((reference.kind, self.namespace, reference.name))


class Providers(Mapping[ProviderKey, Answering]):
    """All providers of a fleet, and which of them are made of which."""

    def __init__(self, providers: Iterable[Provider]) -> None:
        self._answering = {provider.key: answering(provider) for provider in providers}
        self._users: dict[ProviderKey, list[ProviderKey]] = {}
        for key in self._answering:
            for member in self._members_of(key):
                self._users.setdefault(member, []).append(key)

    def __getitem__(self, key: ProviderKey) -> Answering:
        return self._answering[key]

    def __iter__(self) -> Iterator[ProviderKey]:
        return iter(self._answering)

    def __len__(self) -> int:
        return len(self._answering)

    def advance(self, key: ProviderKey, now: datetime) -> list[ProviderKey]:
        """State what a provider says at `now`, and all that are made of it; returns those whose status changed."""
        changed, due = [], [key]
        while due:
            at = due.pop(0)
            if self.state(at, now):
                changed.append(at)
                due += self._users.get(at, ())
        return changed

    def state(self, key: ProviderKey, now: datetime) -> bool:
        """State what one provider says at `now`, and nobody else; returns whether its status changed."""
        return self._answering[key].advance(now, _Neighbours(self, key[1]))

    def members_first(self) -> list[ProviderKey]:
        """Every key, behind those that it is made of; in a circle in any order."""
        placed: dict[ProviderKey, None] = {}
        entered: set[ProviderKey] = set()
        for first in self._answering:
            pending = [first]
            while pending:
                key = pending[-1]
                below = (
                    []
                    if key in entered
                    else [member for member in self._members_of(key) if member not in entered]
                )
                entered.add(key)
                if below:
                    pending += below
                else:
                    placed[pending.pop()] = None
        return list(placed)

    def _members_of(self, key: ProviderKey) -> list[ProviderKey]:
        found = self._answering[key].references
        keys = [(reference.kind, key[1], reference.name) for reference in found]
        return [member for member in keys if member in self._answering]


def answering(provider: Provider) -> Answering:
    """A provider as its controller starts: the stored status, not yet looked at."""
    body = provider.body
    status = body.get("status")
    generation = (body.get("metadata") or {}).get("generation") or 1
    known = status if isinstance(status, Mapping) else None
    kind = BY_KIND.get(provider.kind)
    logic = kind.read(body.get("spec") or {}) if kind is not None else None
    if logic is not None and logic.question is not None:
        # Nobody is asked here.
        logic = None
    return Answering(
        provider=provider,
        view=ProviderView(generation=generation, status=known),
        logic=logic,
        status=stored_status(known) if logic is not None else ProviderStatus(),
        generation=generation,
    )


def _active(status: Mapping[str, Any] | None) -> bool | None:
    active = (status or {}).get("active")
    return active if isinstance(active, bool) else None
