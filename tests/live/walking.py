"""The golden vectors as walks: the instants of one spec in order, and a clock that stands at one after the other."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs

from fivespot.adapters.clock import FakeClock
from fivespot.core.instant import parse_instant
from fivespot.core.zones import tzdata_version
from tests import vectors
from tests.builders import Manifest, provider

SECOND = timedelta(seconds=1)


class SetClock(FakeClock):
    """A clock that is set, to either side of where it stood, and wakes whose moment has come."""

    def stand_at(self, at: datetime) -> None:
        """Set the wall clock, exactly: no sum of seconds reaches from 1892 to 2400 to the microsecond."""
        self._now = at
        self._wake()


@attrs.frozen(kw_only=True)
class Moment:
    """What the oracle says of one instant.

    Attributes:
        row: the vector of this very instant; None where the answer is all that follows from another.
    """

    at: datetime
    active: bool
    row: dict[str, Any] | None = None

    def agrees(self, published: str | None) -> bool:
        """Whether a `nextTransitionTime` is what the oracle says; what it says nothing of is agreed to."""
        if self.row is None:
            return True
        if self.row["next_transition"] is None:
            return published is None or parse_instant(published) - self.at > vectors.HORIZON
        return published == self.row["next_transition"]


@attrs.frozen(kw_only=True)
class Walk:
    """One spec: the instants of its vectors, the boundaries that they name, and the second before each."""

    name: str
    kind: str
    spec: dict[str, Any]
    moments: tuple[Moment, ...]

    def manifest(self, namespace: str) -> Manifest:
        """The schedule."""
        made = provider(self.kind, self.name, **self.spec)
        made["metadata"]["namespace"] = namespace
        return made


def known_instants() -> Iterator[dict[str, Any]]:
    """The vectors whose zone data is no newer than ours, and of whose times a status can speak: from the year 1000 on."""
    known = tzdata_version() >= vectors.RELEASE
    return (
        row
        for row in vectors.instants()
        if (known or row.get("tz_stable", True)) and row["instant"] >= "1000"
    )


def walks() -> Iterator[Walk]:
    """The specs of those vectors."""
    specs: dict[str, list[dict[str, Any]]] = {}
    for row in known_instants():
        specs.setdefault(str(row["spec"]), []).append(row)
    for rows in specs.values():
        spec = rows[0]["spec"]
        yield Walk(name=rows[0]["id"], kind=vectors.kind_of(spec), spec=spec, moments=_moments(rows))


def _moments(rows: list[dict[str, Any]]) -> tuple[Moment, ...]:
    found = {at: Moment(at=at, active=row["active"], row=row) for row in rows for at in [_instant(row)]}
    for row in rows:
        if row["next_transition"] is not None:
            due = parse_instant(row["next_transition"])
            found.setdefault(due, Moment(at=due, active=not row["active"]))
            before = Moment(at=due - SECOND, active=row["active"], row=row)
            found.setdefault(before.at, before)
    return tuple(found[at] for at in sorted(found))


def _instant(row: dict[str, Any]) -> datetime:
    return parse_instant(row["instant"]).astimezone(UTC)
