"""A cache of one resource that follows the server: list, then watch, for ever.

The reader never waits for whoever uses the cache: it updates the cache and calls `on_change`, which marks a key and
returns. What an event means for the cache is decided in `watching`; here are the waiting, the order and the callbacks.

Not here: which kinds are followed, and for whom.
"""

import logging
from asyncio import Event
from collections import Counter
from collections.abc import Callable
from contextlib import aclosing
from random import Random
from typing import Generic

from fivespot.adapters.kube.backoff import STREAM
from fivespot.adapters.kube.errors import ApiError, Forbidden, Gone, NotFound, Unauthorized
from fivespot.adapters.kube.reads import Reads
from fivespot.adapters.kube.resources import Object, Resource
from fivespot.adapters.kube.watching import Change, Key, Read, Tokens, V, Watching, no_tokens
from fivespot.core.ports import Clock

_LOG = logging.getLogger(__name__)

SHORTEST, LONGEST = 120.0, 240.0
"""Seconds that the server is asked to keep a stream; each stream draws its own, so that they do not end together."""
LOOK_AGAIN = 30.0
"""Seconds, give or take a fifth, after which a kind that is not served is looked for again."""
_PATIENCE = 60.0
"""Seconds that a server may ask us to stay away at most: a mistyped header must not end a stream for good."""
_SETTLED = 30.0
"""A stream that lasted so many seconds was alive, even if nothing happened in it."""


class Reflector(Generic[V]):
    """The objects of one resource, or of a part of it that selectors name.

    Args:
        gateway: where to ask.
        resource: what to follow.
        clock: for pauses and for `age`.
        read: what is kept of an object (`watching.whole`: all of it).
        tokens: by what else than its name it is looked for (`by_token`).
        namespace: one namespace; all of them when None.
        label_selector: as in a URL.
        field_selector: as in a URL.
        on_change: called with a key and what is kept of its object, before and after, once the cache has changed; must
            not block.
        on_served_change: called with the new value when `served` changes; must not block.
        on_end: called with the reason when a stream has ended.
        on_failing: called when a try has failed, and when one after it has not.
        random: for jitter.
        lasting: seconds that a stream is asked to last, at least and at most.

    Attributes:
        synced: set once it is known what there is: a list has been read, or the kind is not served.
        failing: the error of the last try, None while all is well.
        restart_reasons: how often a stream has ended, by reason: `end`, `gone`, `error`.
    """

    def __init__(
        self,
        gateway: Reads,
        resource: Resource,
        *,
        clock: Clock,
        read: Read[V],
        on_change: Callable[[Key, V | None, V | None], None],
        on_served_change: Callable[[bool], None] | None = None,
        on_end: Callable[[str], None] | None = None,
        on_failing: Callable[[], None] | None = None,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        tokens: Tokens[V] = no_tokens,
        random: Random | None = None,
        lasting: tuple[float, float] = (SHORTEST, LONGEST),
    ) -> None:
        self.resource = resource
        self.synced = Event()
        self.failing: ApiError | None = None
        self.restart_reasons: Counter[str] = Counter()
        self._gateway = gateway
        self._clock = clock
        self._selection = (namespace, label_selector, field_selector)
        self._on_change = on_change
        self._on_served_change = on_served_change or (lambda _: None)
        self._on_end = on_end or (lambda _: None)
        self._on_failing = on_failing or (lambda: None)
        self._random = random or Random()  # noqa: S311 - for jitter
        self._lasting = lasting
        self._state = Watching(read, tokens)
        self._failures = 0
        # Whether the last stream that ended did so because its version was too old, and no other has lived since.
        self._outdated = False
        self._heard = float("-inf")
        self._failing_since = float("inf")

    async def run(self) -> None:
        """Follow for ever; cancel it to stop."""
        while True:
            delay = await self.step()
            await self._clock.sleep_until(self._clock.monotonic() + delay)

    async def step(self) -> float:
        """One list, or one stream to its end.

        Returns:
            Seconds to wait before the next step.
        """
        if self._state.version is None:
            return await self._list()
        return await self._watch(self._state.version)

    @property
    def served(self) -> bool:
        """False once the server has said that it does not serve the kind; the cache is empty then, and says nothing."""
        return self._state.served

    @property
    def age(self) -> float:
        """Seconds since the server was last heard of this resource: list, event or bookmark; infinite before."""
        return self._clock.monotonic() - self._heard

    @property
    def failing_for(self) -> float:
        """Seconds since the first of the tries that have failed in a row; 0 while all is well."""
        return max(0.0, self._clock.monotonic() - self._failing_since)

    @property
    def restarts(self) -> int:
        """How many streams have ended."""
        return self.restart_reasons.total()

    def __len__(self) -> int:
        return len(self._state.objects)

    def get(self, namespace: str | None, name: str) -> V | None:
        """What is cached of an object; read only, and perhaps not the latest."""
        return self._state.objects.get((namespace or "", name))

    def items(self) -> list[V]:
        """All that is cached, in no order."""
        return list(self._state.objects.values())

    def by_token(self, token: str) -> list[V]:
        """What is cached of the objects that have a token."""
        return self._state.by_token(token)

    def feed(self, item: Object) -> None:
        """Take in the answer to a write of our own, unless the stream has told of something later.

        The object has to belong here: selectors are the server's business, and are not looked at.
        """
        self._tell(self._state.fed(item))

    def forget(self, namespace: str | None, name: str, uid: str | None = None) -> None:
        """Take in that the server has told us that an object is gone: a 404, or a deletion without finalizers."""
        self._tell(self._state.forgotten((namespace or "", name), uid))

    async def _list(self) -> float:
        was_served = self._state.served
        try:
            result = await self._gateway.list(self.resource, *self._selection)
            changes = self._state.listed(result.each(), result.resource_version)
        except NotFound as error:
            return self._not_served(error)
        except ApiError as error:
            return self._failed(error)
        self._alive()
        if not was_served:
            _LOG.info("the kind is served", extra={"resource": self.resource.label})
            self._on_served_change(True)  # noqa: FBT003 - the callback's only argument
        for change in changes:
            self._tell(change)
        self.synced.set()
        return 0.0

    async def _watch(self, version: str) -> float:
        seconds = self._random.uniform(*self._lasting)
        begun = self._clock.monotonic()
        delivered, error = False, None
        try:
            async with aclosing(
                self._gateway.watch(
                    self.resource,
                    *self._selection,
                    resource_version=version,
                    timeout_seconds=seconds,
                    opened=self._alive,
                )
            ) as events:
                async for event in events:
                    delivered = True
                    self._alive()
                    self._tell(self._state.event(event))
        except ApiError as raised:
            error = raised
        settled = self._clock.monotonic() - begun >= _SETTLED
        # One that says something and then that we are too late has not got us anywhere.
        if settled or (delivered and not isinstance(error, Gone | NotFound)):
            self._failures, self._outdated = 0, False
        return self._ended(error)

    def _ended(self, error: ApiError | None) -> float:
        # 404 may mean that the kind is gone, which the list will tell; to go on from the version is pointless.
        if isinstance(error, Gone | NotFound):
            self._count("gone")
            self._state.expired()
            again, self._outdated = self._outdated, True
            delay = self._failed(error)
            # The list can follow at once, but a server that always says "too old" must not be asked all the time.
            return delay if again else 0.0
        if error is not None:
            self._count("error")
            return self._failed(error)
        self._count("end")
        self._failures += 1
        return STREAM.delay(self._failures, self._random)

    def _count(self, reason: str) -> None:
        self.restart_reasons[reason] += 1
        self._on_end(reason)

    def _not_served(self, error: NotFound) -> float:
        if self._state.unserved():
            _LOG.warning("%s", error, extra={"resource": self.resource.label})
            self._on_served_change(False)  # noqa: FBT003 - the callback's only argument
        self.failing, self._failures, self._failing_since = None, 0, float("inf")
        self.synced.set()
        return LOOK_AGAIN * self._random.uniform(0.8, 1.2)

    def _failed(self, error: ApiError) -> float:
        self._failures += 1
        self.failing = error
        self._failing_since = min(self._failing_since, self._clock.monotonic())
        self._on_failing()
        # What a person has to put right is said at every level; a server that is down comes back. One that has just
        # started forbids everything for a second, until it has read its roles.
        for_people = isinstance(error, Forbidden | Unauthorized) and self._failures > 1
        level = logging.WARNING if for_people else logging.INFO
        _LOG.log(
            level,
            "%s: trying again",
            error,
            extra={"resource": self.resource.label, "failures": self._failures},
        )
        return max(STREAM.delay(self._failures, self._random), min(error.retry_after or 0.0, _PATIENCE))

    def _alive(self) -> None:
        self._heard = self._clock.monotonic()
        failed, self.failing, self._failing_since = self.failing is not None, None, float("inf")
        if failed:
            self._on_failing()

    def _tell(self, change: Change[V] | None) -> None:
        if change is not None:
            self._on_change(change.key, change.old, change.new)
