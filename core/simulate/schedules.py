"""Providers in virtual time: the status that a provider's controller would publish, and when it changes.

The kinds of the schedule engine are answered by the same code as in production. Any other kind, ours or a stranger's, is
taken as its `status` stands in the documents.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import attrs

from fivespot.core.api.codec import encode
from fivespot.core.api.kinds import SCHEDULE_KINDS
from fivespot.core.api.providers import ProviderStatus
from fivespot.core.decision.observation import ProviderView
from fivespot.core.fleet import Provider
from fivespot.core.provider.publish import publish, stored_status
from fivespot.core.schedule import Schedule, compile_schedule


@attrs.define(kw_only=True)
class Answering:
    """One provider and its present answer.

    Attributes:
        view: what a machine reads now.
        wake_at: when it changes by itself, None for never.
        flips: every instant at which `active` changed, with the new value; None while it is not known.
    """

    provider: Provider
    view: ProviderView
    schedule: Schedule | None = None
    status: ProviderStatus = attrs.field(factory=ProviderStatus)
    generation: int = 1
    wake_at: datetime | None = None
    flips: list[tuple[datetime, bool | None]] = attrs.field(factory=list)

    @property
    def timezone(self) -> str:
        """The zone in which the clock is read, UTC where the kind has none."""
        return self.schedule.timezone if self.schedule is not None else "UTC"

    def advance(self, now: datetime) -> bool:
        """State what is true at `now`; returns whether the published status changed."""
        if self.schedule is None:
            self._note(now, _active(self.view.status))
            return False
        made = publish(self.provider.kind, self.schedule, self.generation, self.status, now)
        self.wake_at = made.wake_at
        if made.status == self.status:
            return False
        self.status = made.status
        self.view = ProviderView(generation=self.generation, status=encode(made.status))
        self._note(now, made.status.active)
        return True

    def _note(self, now: datetime, active: bool | None) -> None:  # noqa: FBT001 - a value, not a flag
        if not self.flips or self.flips[-1][1] is not active:
            self.flips.append((now, active))


def answering(provider: Provider) -> Answering:
    """A provider as its controller starts: the stored status, not yet looked at."""
    body = provider.body
    status = body.get("status")
    generation = (body.get("metadata") or {}).get("generation") or 1
    known = status if isinstance(status, Mapping) else None
    if provider.kind not in SCHEDULE_KINDS:
        return Answering(
            provider=provider, view=ProviderView(generation=generation, status=known), generation=generation
        )
    return Answering(
        provider=provider,
        view=ProviderView(generation=generation, status=known),
        schedule=compile_schedule(provider.kind, body.get("spec")),
        status=stored_status(known),
        generation=generation,
    )


def _active(status: Mapping[str, Any] | None) -> bool | None:
    active = (status or {}).get("active")
    return active if isinstance(active, bool) else None
