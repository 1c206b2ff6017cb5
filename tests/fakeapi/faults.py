"""What can be made to go wrong, for which requests, and how often.

    server.faults.add(Answer(503), verb="patch", resource="nodes", times=2)
    server.faults.add(Cut(after=True), verb="create", resource="machines")     # it is done, but nobody hears of it
    rule = server.faults.add(Hold(event), verb="list", resource="pods")
    await rule.hit()                                                            # such a request has come
    server.faults.on_streams(CutStream(), resource="pods")                      # those that are open now

The oldest rule that matches a request is the one that counts. Effects on streams wait for their turn behind the
events that have happened before them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.fakeapi.refusals import label
from tests.fakeapi.requests import Asked


@dataclass(frozen=True, slots=True)
class Answer:
    """Another answer: a Status, or `body` as it is. With `after`, what was asked is done all the same."""

    code: int
    reason: str = ""
    message: str = "a fault of the test's making"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    details: Mapping[str, Any] | None = None
    after: bool = False


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection is reset instead of an answer. With `after`, what was asked is done all the same."""

    after: bool = False


@dataclass(frozen=True, slots=True)
class Hold:
    """The request waits for an event and goes on as if nothing had been. With `after`, it is the answer that waits."""

    until: asyncio.Event
    after: bool = False


@dataclass(frozen=True, slots=True)
class Silence:
    """No answer, ever. With `after`, what was asked is done all the same."""

    after: bool = False


@dataclass(frozen=True, slots=True)
class CutStream:
    """The connection ends after so many more bytes, in the middle of a frame or not."""

    after_bytes: int = 0


@dataclass(frozen=True, slots=True)
class EndStream:
    """The stream ends in good order after so many more frames."""

    after_frames: int = 0


@dataclass(frozen=True, slots=True)
class MuteStream:
    """Half open: not a byte, not even the end, until the event; then everything."""

    until: asyncio.Event


@dataclass(frozen=True, slots=True)
class ErrorEvent:
    """An ERROR frame with a Status, or with whatever is given for one."""

    status: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RawBytes:
    """Bytes that are no frame, or one of a test's own."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Pieces:
    """From now on every so many bytes are an HTTP chunk of their own."""

    size: int = 1


@dataclass(frozen=True, slots=True)
class Split:
    """From now on every frame comes in two HTTP chunks, the first of so many bytes."""

    offset: int


RequestEffect: TypeAlias = Answer | Cut | Hold | Silence
StreamEffect: TypeAlias = CutStream | EndStream | MuteStream | ErrorEvent | RawBytes | Pieces | Split
Effect: TypeAlias = RequestEffect | StreamEffect


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Which requests; None stands for any. `resource` is a plural, with or without its group, or a path.

    `when` is asked of those that match otherwise.
    """

    verb: str | None = None
    resource: str | None = None
    namespace: str | None = None
    name: str | None = None
    subresource: str | None = None
    when: Callable[[Asked], bool] | None = None

    def __call__(self, asked: Asked) -> bool:
        wanted = (
            (self.verb, (asked.verb,)),
            (self.resource, (asked.resource, label(asked.group, asked.resource))),
            (self.namespace, (asked.namespace,)),
            (self.name, (asked.name,)),
            (self.subresource, (asked.subresource,)),
        )
        found = all(value is None or value in found for value, found in wanted)
        return found and (self.when is None or self.when(asked))


class Rule:
    """Effects on the requests that match, for a number of times, or until it is removed.

    Attributes:
        hits: how often it has taken effect.
    """

    def __init__(self, effects: tuple[Effect, ...], match: Match, times: int | None) -> None:
        self.effects = effects
        self.hits = 0
        self._match = match
        self._times = times
        self._news = asyncio.Condition()

    def remove(self) -> None:
        """No effect on any further request."""
        self._times = self.hits

    async def hit(self, count: int = 1) -> None:
        """Wait until it has taken effect that often."""
        async with self._news:
            await self._news.wait_for(lambda: self.hits >= count)

    async def _take(self, asked: Asked) -> bool:
        if self.hits == self._times or not self._match(asked):
            return False
        self.hits += 1
        async with self._news:
            self._news.notify_all()
        return True


class Faults:
    """The rules of one server."""

    def __init__(
        self,
        streams: Callable[[], list[Asked]],
        on_streams: Callable[[Callable[[Asked], bool], StreamEffect], int],
    ) -> None:
        self._rules: list[Rule] = []
        self._streams = streams
        self._on_streams = on_streams
        self._opened = asyncio.Condition()

    def add(
        self,
        *effects: Effect,
        times: int | None = 1,
        when: Callable[[Asked], bool] | None = None,
        **match: str | None,
    ) -> Rule:
        """Have effects on requests to come; with `times=None` until the rule is removed.

        Args:
            effects: in this order.
            times: on so many requests.
            when: asked of each that matches, in the order in which they come.
            match: as for Match: verb, resource, namespace, name, subresource.
        """
        rule = Rule(effects, Match(**match, when=when), times)
        self._rules.append(rule)
        return rule

    def clear(self) -> None:
        """Remove all rules."""
        for rule in self._rules:
            rule.remove()
        self._rules.clear()

    def on_streams(self, effect: StreamEffect, **match: str | None) -> int:
        """Have an effect on the streams that are open, and answer how many there are.

        Raises:
            LookupError: there is none, which would be no test of anything.
        """
        if not (count := self._on_streams(Match(**match), effect)):
            raise LookupError(f"no open stream is for {match}")
        return count

    async def watched(self, count: int = 1, **match: str | None) -> None:
        """Wait until so many open streams match."""
        wanted = Match(**match)
        async with self._opened:
            await self._opened.wait_for(lambda: sum(map(wanted, self._streams())) >= count)

    async def opened(self) -> None:
        """Say that there is one stream more."""
        async with self._opened:
            self._opened.notify_all()

    async def take(self, asked: Asked) -> tuple[Effect, ...]:
        """What shall happen to a request."""
        for rule in self._rules:
            if await rule._take(asked):
                return rule.effects
        return ()
