"""What a provider says, and what holds while it says nothing.

A verdict is three-valued. An answer that cannot be read never moves a machine: the last one that could be read is held,
in the machine's own status, whatever has become of the reference since (ADR/0003).
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import attrs

from fivespot.core.api import reasons
from fivespot.core.api.common import in_brief
from fivespot.core.api.scheduled_machine import ScheduleReference, SpotScheduleStatus
from fivespot.core.decision.knowledge import Absent, Known, Present
from fivespot.core.decision.observation import ProviderView
from fivespot.core.instant import later, parse_instant

STALE_GRACE: Final = timedelta(seconds=30)
"""Every edit of a provider passes through staleness; only what lasts longer is worth writing down."""
OVERDUE: Final = timedelta(minutes=5)
"""A `nextTransitionTime` that passed this long ago without a transition: its controller may be dead."""

_DETAIL: Final = 1024
"""Characters of what a provider says about itself that are repeated."""

PROVIDER: Final = "Provider"
HELD: Final = "Held"
NEVER_RESOLVED: Final = "NeverResolved"


@attrs.frozen(kw_only=True)
class Verdict:
    """The provider's answer.

    Attributes:
        active: True or False when resolved, None when not.
        reason: Resolved, or why not.
        message: one sentence for people.
        next_transition, last_transition: as published, None when absent or unreadable.
        stale_since: set while the only fault is a stale answer.
    """

    active: bool | None
    reason: str
    message: str
    next_transition: datetime | None = None
    last_transition: datetime | None = None
    stale_since: datetime | None = None

    @property
    def resolved(self) -> bool:
        """Whether the provider could be read."""
        return self.active is not None


def verdict_of(provider: "Known[ProviderView]", reference: ScheduleReference | None) -> Verdict:
    """Read a provider by the contract in docs/api.md."""
    if reference is None:
        return Verdict(
            active=None,
            reason=reasons.PROVIDER_NOT_FOUND,
            message="spec.schedule names no provider that can be used",
        )
    name = reference.label
    if isinstance(provider, Present):
        return _of_status(provider.value, name)
    if isinstance(provider, Absent):
        if provider.why == reasons.PROVIDER_CRD_NOT_INSTALLED:
            text = f"no {reference.kind} is served: install its CRD"
            return Verdict(active=None, reason=reasons.PROVIDER_CRD_NOT_INSTALLED, message=text)
        return Verdict(
            active=None, reason=reasons.PROVIDER_NOT_FOUND, message=f"{name} does not exist in this namespace"
        )
    return Verdict(
        active=None, reason=reasons.PROVIDER_UNREADABLE, message=f"{name} could not be read: {provider.why}"
    )


def _of_status(provider: ProviderView, name: str) -> Verdict:
    status = provider.status or {}
    active = status.get("active")
    if not isinstance(active, bool):
        return Verdict(
            active=None,
            reason=reasons.STATUS_ACTIVE_MISSING,
            message=f"{name} publishes no boolean status.active",
        )
    fault = _not_ready(status)
    if fault is not None:
        return Verdict(active=None, reason=reasons.PROVIDER_NOT_READY, message=f"{name} is not Ready{fault}")
    if provider.stale:
        observed = status["observedGeneration"]
        text = f"{name} has answered for generation {observed}, not yet for {provider.generation}"
        return Verdict(
            active=None, reason=reasons.PROVIDER_STALE, message=text, stale_since=provider.stale_since
        )
    return Verdict(
        active=active,
        reason=reasons.RESOLVED,
        message=f"{name} says {'active' if active else 'inactive'}",
        next_transition=_instant(status.get("nextTransitionTime")),
        last_transition=_instant(status.get("lastTransitionTime")),
    )


def _not_ready(status: Mapping[str, Any]) -> str | None:
    """Why the provider is not Ready, as an addition to a sentence; None when there is nothing against it."""
    conditions = status.get("conditions")
    if conditions is None:
        return None
    if not isinstance(conditions, list):
        return ": its conditions are malformed"
    for entry in conditions:
        if isinstance(entry, Mapping) and entry.get("type") == "Ready" and entry.get("status") != "True":
            detail = " ".join(str(entry[key]) for key in ("reason", "message") if entry.get(key))
            return f": {in_brief(detail, _DETAIL)}" if detail else ""
    return None


def _instant(value: object) -> datetime | None:
    try:
        return parse_instant(value) if isinstance(value, str) else None
    except ValueError:
        return None


def overdue_at(verdict: Verdict) -> datetime | None:
    """From when on a resolved answer looks as if its controller were dead; None when it cannot be told.

    The answer stands all the same: only the condition and a metric say so.
    """
    due = verdict.next_transition
    if due is None or verdict.active is None:
        return None
    if verdict.last_transition is not None and verdict.last_transition >= due:
        return None
    return later(due, OVERDUE)


def stale_until(verdict: Verdict, now: datetime) -> datetime | None:
    """Until when a stale answer is too young to be written down; None when it is none, or old enough."""
    if verdict.reason != reasons.PROVIDER_STALE:
        return None
    until = later(verdict.stale_since or now, STALE_GRACE)
    return until if now < until else None


# What is held


def spot_schedule(
    verdict: Verdict,
    stored: SpotScheduleStatus | None,
    reference: ScheduleReference | None,
    now: datetime,
    *,
    begun: bool,
) -> SpotScheduleStatus:
    """`status.spotSchedule`: the answer, and the verdict that is held: the last that resolved, whoever gave it.

    `begun` tells that something was created which status does not know yet. Only an active verdict creates, and a create
    writes no status of its own (ADR/0009): the object is the record of that verdict until the next write.
    """
    stored = stored or _NOTHING
    if verdict.active is not None:
        name = reference.label if reference is not None else None
        if stored.resolved and (stored.active, stored.message, stored.held_from) == (
            verdict.active,
            verdict.message,
            name,
        ):
            return stored
        since = now if stored.active is not verdict.active else stored.last_transition_time
        return SpotScheduleStatus(
            resolved=True,
            active=verdict.active,
            reason=verdict.reason,
            message=verdict.message,
            held_from=name,
            last_transition_time=since,
        )
    if begun and stored.active is False:
        stored = attrs.evolve(stored, active=True)
    if stale_until(verdict, now) is not None:
        return stored
    if stored.active is None:
        message = f"{verdict.message}; it never resolved"
    else:
        answer = "active" if stored.active else "inactive"
        message = f"{verdict.message}; holding {answer} from {stored.held_from or 'before'}"
    return attrs.evolve(stored, resolved=False, reason=verdict.reason, message=message)


_NOTHING: Final = SpotScheduleStatus()


@attrs.frozen(kw_only=True)
class Effective:
    """What is wanted as far as the schedule goes.

    Attributes:
        active: whether the machine should exist.
        source: Provider (resolved), Held, or NeverResolved.
        text: one sentence for people.
    """

    active: bool
    source: str
    text: str


def effective(verdict: Verdict, spot: SpotScheduleStatus, *, machine_exists: bool) -> Effective:
    """The verdict when resolved, else the held one, else whether a machine of ours exists.

    A fleet restored from a backup has no status and may find no provider: what runs is not torn down for it. A stale
    answer that is too young to be written down leaves `spot` as stored, and so what is said here as well.
    """
    if verdict.active is not None:
        return Effective(active=verdict.active, source=PROVIDER, text=verdict.message)
    text = spot.message or verdict.message
    if spot.active is not None:
        return Effective(active=spot.active, source=PROVIDER if spot.resolved else HELD, text=text)
    return Effective(active=machine_exists, source=NEVER_RESOLVED, text=text)
