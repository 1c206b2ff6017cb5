"""Which occurrence becomes an Event, which one more of a series, and which nothing: a pure state machine.

Theory of operation. What is equal (same object, same words) within SERIES of the last time is one Event whose series
counts. Each object has a bucket of tokens, and everything that is written about it takes one: whoever says something
again and again is cut short, and nobody else is. What is cut short is still counted, and the count is written with the
next occurrence that has a token.

    nothing --occurred--> Create --occurred--> Extend --occurred--> Extend ...
       ^                    |                     |
       +---- SERIES without an occurrence, or `lost` (the server does not have it)

The figures are client-go's: a burst of 25 for each object, one more every 5 min, a series that ends after 6 min
(`k8s.io/client-go/tools/record/events_cache.go`, `tools/events/event_broadcaster.go`).
"""

import attrs

SERIES = 360.0
"""Seconds after which an equal occurrence is a new Event."""
BURST = 25
"""Tokens of a full bucket."""
REFILL = 300.0
"""Seconds for one more token."""
_SWEEP = 1024
"""How often what has run out is thrown away: once in so many occurrences."""


@attrs.frozen(kw_only=True)
class Occurrence:
    """What makes two of them equal: the object, and what is said of it."""

    uid: str
    type: str
    reason: str
    note: str


@attrs.frozen(kw_only=True)
class Create:
    """A new Event; `count` is above one if the server has lost the Event of a series, or never had it."""

    name: str
    count: int = 1


@attrs.frozen(kw_only=True)
class Extend:
    """One more of an Event's series; `count` includes the first."""

    name: str
    count: int


@attrs.define
class _Series:
    name: str
    count: int
    last: float
    stored: bool


@attrs.define
class _Bucket:
    tokens: float
    at: float


class Correlator:
    """What has been said of which object lately. Times are readings of a monotonic clock, in seconds."""

    def __init__(self) -> None:
        self._series: dict[Occurrence, _Series] = {}
        self._buckets: dict[str, _Bucket] = {}
        self._until_sweep = _SWEEP

    def __len__(self) -> int:
        """How many series are remembered."""
        return len(self._series)

    def occurred(self, occurrence: Occurrence, name: str, now: float) -> Create | Extend | None:
        """What to write; None when the object has used up its tokens.

        Args:
            occurrence: what happened.
            name: of the Event, if it becomes one.
            now: the monotonic clock.
        """
        self._sweep(now)
        series = self._series.get(occurrence)
        if series is None or now - series.last >= SERIES:
            series = self._series[occurrence] = _Series(name, 0, now, stored=False)
        series.count += 1
        series.last = now
        if not self._take(occurrence.uid, now):
            return None
        if series.stored:
            return Extend(name=series.name, count=series.count)
        series.stored = True
        return Create(name=series.name, count=series.count)

    def lost(self, occurrence: Occurrence) -> None:
        """The server does not have the Event: the next occurrence is a new one."""
        self._series.pop(occurrence, None)

    def _take(self, uid: str, now: float) -> bool:
        bucket = self._buckets.setdefault(uid, _Bucket(BURST, now))
        bucket.tokens = min(BURST, bucket.tokens + (now - bucket.at) / REFILL)
        bucket.at = now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True

    def _sweep(self, now: float) -> None:
        """Forget what makes no difference any more: ended series, and buckets that are full again."""
        self._until_sweep -= 1
        if self._until_sweep:
            return
        self._until_sweep = _SWEEP
        self._series = {key: series for key, series in self._series.items() if now - series.last < SERIES}
        self._buckets = {
            uid: bucket
            for uid, bucket in self._buckets.items()
            if bucket.tokens + (now - bucket.at) / REFILL < BURST
        }
