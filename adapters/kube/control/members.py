"""The providers that other providers are made of: watched where referenced, one stream for each kind of them."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

import attrs

from fivespot.adapters.kube.control.observe import seen_provider
from fivespot.adapters.kube.control.streams import providers_stream
from fivespot.adapters.kube.control.watches import Stream, Watches
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.index import ReverseIndex
from fivespot.adapters.telemetry.metrics import Metrics
from fivespot.core.api.scheduled_machine import ScheduleReference
from fivespot.core.decision.knowledge import Known
from fivespot.core.decision.observation import ProviderView
from fivespot.core.ports import Clock

_Place = tuple[Stream[Any], str, str]
Referenced = Callable[[str, ScheduleReference], tuple[ScheduleReference, ...]]
"""What a provider of a namespace refers to itself."""


class MemberWatches:
    """Who is made of whom, and what the members publish.

    Args:
        on_news: told whose members have changed.
        referenced: what a member refers to itself.
    """

    def __init__(
        self,
        gateway: Gateway,
        clock: Clock,
        *,
        on_news: Callable[[Iterable[str]], None],
        referenced: Referenced,
        metrics: Metrics,
    ) -> None:
        self._clock = clock
        self._referenced = referenced
        self._users: ReverseIndex[str, _Place] = ReverseIndex()
        self._stale: dict[_Place, datetime] = {}
        self._watches = Watches(
            gateway,
            clock,
            on_change=lambda stream, of, _old, _new: on_news(self._users.of((stream, *of))),
            on_state=lambda _stream, users: on_news(users),
            metrics=metrics,
        )

    def want(self, key: str, namespace: str, references: Iterable[ScheduleReference]) -> None:
        """Say what a provider is made of from now on; of nothing, when it is gone."""
        places = [
            (providers_stream(reference.api_version, reference.kind), namespace, reference.name)
            for reference in references
        ]
        self._users.put(key, places)
        self._stale = {place: since for place, since in self._stale.items() if self._users.of(place)}
        self._watches.want(key, [stream for stream, _, _ in places])

    def above(self, of: Stream[Any], namespace: str, name: str) -> frozenset[str]:
        """Who is made of a provider, directly or through others of its own kind."""
        found: set[str] = set()
        due = [name]
        while due:
            users = self._users.of((of, namespace, due.pop())) - found
            found |= users
            due += [user.partition("/")[2] for user in users]
        return frozenset(found)

    def pending(self, key: str) -> bool:
        """Whether the first answer about a member is still under way."""
        return self._watches.pending_for(key)

    def of(self, namespace: str) -> "Neighbours":
        """The providers of a namespace, as its composites see them."""
        return Neighbours(self, namespace)

    async def close(self) -> None:
        """Stop every stream."""
        await self._watches.close()

    def seen(self, namespace: str, reference: ScheduleReference) -> Known[ProviderView]:
        """What a member publishes, and since when that has been stale."""
        place = (providers_stream(reference.api_version, reference.kind), namespace, reference.name)
        found, since = seen_provider(self._watches, *place, self._stale.get(place), self._clock.now())
        if since is None:
            self._stale.pop(place, None)
        else:
            self._stale[place] = since
        return found

    def members(self, namespace: str, reference: ScheduleReference) -> tuple[ScheduleReference, ...]:
        """What a member refers to itself."""
        return self._referenced(namespace, reference)


@attrs.frozen
class Neighbours:
    """The other providers of one namespace: the core's `Members`."""

    watches: MemberWatches
    namespace: str

    def seen(self, reference: ScheduleReference) -> Known[ProviderView]:
        """What a provider publishes."""
        return self.watches.seen(self.namespace, reference)

    def members(self, reference: ScheduleReference) -> tuple[ScheduleReference, ...]:
        """What a provider refers to itself."""
        return self.watches.members(self.namespace, reference)
