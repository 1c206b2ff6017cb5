"""From a request on a socket to its answer: what was asked is written down, faults have their way, rights are asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import msgspec
from aiohttp import web

from tests.fakeapi.connections import reset
from tests.fakeapi.faults import Answer, Cut, Effect, Faults, Hold, RequestEffect, Silence, StreamEffect
from tests.fakeapi.operations import Content, perform, target_of
from tests.fakeapi.refusals import NotServed, NotUnderstood, Object, Refused, forbidden, unauthorized
from tests.fakeapi.requests import WRITES, Asked, asked
from tests.fakeapi.watching import Stream
from tests.fakeapi.world import World

ADMIN = "admin"


@dataclass(slots=True, kw_only=True)
class Entry:
    """A request in the audit log, from the moment it arrives.

    Attributes:
        code: of the answer; 0 while there is none, and for ever when the connection is cut.
        done: whether it was carried out, whatever the answer was.
    """

    asked: Asked
    user: str
    agent: str
    instant: datetime
    code: int = 0
    done: bool = False


class _CutOff(Exception):  # noqa: N818
    """There will be no answer."""


class Answering:
    """What a server does with requests.

    Attributes:
        world: the objects and kinds, for a test that wants to look without asking.
        faults: what shall go wrong.
        audit: every request so far.
        tokens: bearer tokens and whose they are; None lets everybody in, as the administrator.
        authorizer: whether a user may do something; None lets everybody do everything.
        problems: what the server did not understand, and its own defects; raised when it ends.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self.world = World(now)
        self.faults = Faults(lambda: self.streams, self._on_streams)
        self.audit: list[Entry] = []
        self.tokens: dict[str, str] | None = None
        self.authorizer: Callable[[str, Asked], bool] | None = None
        self.problems: list[Exception] = []
        self._now = now
        self._streams: set[Stream] = set()
        self.world.unserved = self._end_streams

    @property
    def writes(self) -> list[Entry]:
        """The requests that would change something."""
        return [entry for entry in self.audit if entry.asked.verb in WRITES]

    @property
    def streams(self) -> list[Asked]:
        """What is watched at the moment."""
        return [stream.asked for stream in self._streams]

    def compact(self) -> None:
        """Forget the history: all versions but the current one are too old now."""
        self.world.store.compact()

    def bookmark(self) -> None:
        """Send a bookmark on every stream that takes them."""
        for stream in self._streams:
            stream.bookmark()

    def _on_streams(self, match: Callable[[Asked], bool], effect: StreamEffect) -> int:
        found = [stream for stream in self._streams if match(stream.asked)]
        for stream in found:
            stream.apply(effect)
        return len(found)

    def _end_streams(self, label: str) -> None:
        for stream in self._streams:
            if stream.target.kind.label == label:
                stream.end()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._answer(request)
        except NotUnderstood as problem:
            self.problems.append(problem)
            return _status(501, Refused(501, "NotImplemented", f"the fake API server: {problem}").status)
        except ConnectionError:
            # The client has gone, and hears nothing of it.
            return web.Response(status=499)
        except Exception as problem:  # noqa: BLE001 - a defect has to be seen, and ends no server
            self.problems.append(problem)
            return _status(501, Refused(501, "NotImplemented", f"the fake API server: {problem!r}").status)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        names = list(request.query)
        if len(set(names)) != len(names):
            raise NotUnderstood(f"a query that repeats itself: {request.query_string}")
        query = dict(request.query)
        what = _with_name(asked(request.method, request.raw_path.partition("?")[0], query), body)
        content = Content(
            query=query, body=body, type=request.content_type, agent=request.headers.get("User-Agent", "")
        )
        user = self._user(request)
        entry = Entry(asked=what, user=user or "", agent=content.agent, instant=self._now())
        self.audit.append(entry)
        try:
            return await self._affected(request, entry, content, known=user is not None)
        except _CutOff:
            reset(request.transport)
            return web.Response(status=500)

    async def _affected(
        self, request: web.BaseRequest, entry: Entry, content: Content, *, known: bool
    ) -> web.StreamResponse:
        """The answer, or what the faults make of it."""
        effects = await self.faults.take(entry.asked)
        early = [effect for effect in effects if isinstance(effect, RequestEffect) and not effect.after]
        late = [effect for effect in effects if isinstance(effect, RequestEffect) and effect.after]
        response: web.StreamResponse | None = await _instead(early)
        if response is None:
            response = await self._usual(request, entry, content, effects, known=known)
            response = await _instead(late) or response
        entry.code = response.status
        return response

    async def _usual(
        self,
        request: web.BaseRequest,
        entry: Entry,
        content: Content,
        effects: tuple[Effect, ...],
        *,
        known: bool,
    ) -> web.StreamResponse:
        try:
            if not known:
                raise unauthorized()
            self._authorize(entry)
            if entry.asked.verb == "watch":
                target = target_of(self.world, entry.asked)
                stream = Stream(self.world, target, entry.asked, content.query)
                entry.code, entry.done = 200, True
                return await self._stream(request, stream, effects)
            code, answer = perform(self.world, entry.asked, content)
        except Refused as refused:
            return _status(refused.code, refused.status, refused.headers)
        except NotServed:
            return web.Response(status=404, text="404 page not found\n")
        entry.done = True
        return _status(code, answer)

    async def _stream(
        self, request: web.BaseRequest, stream: Stream, effects: tuple[Effect, ...]
    ) -> web.StreamResponse:
        for effect in effects:
            if not isinstance(effect, RequestEffect):
                stream.apply(effect)
        self._streams.add(stream)
        await self.faults.opened()
        try:
            return await stream.run(request)
        finally:
            self._streams.discard(stream)

    def _user(self, request: web.BaseRequest) -> str | None:
        if self.tokens is None:
            return ADMIN
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        return self.tokens.get(token) if scheme == "Bearer" else None

    def _authorize(self, entry: Entry) -> None:
        what, user = entry.asked, entry.user
        if self.authorizer is None or self.authorizer(user, what):
            return
        if what.is_document:
            message = f'forbidden: User "{user}" cannot {what.verb} path "{what.resource}"'
            raise Refused(403, "Forbidden", message, {})
        resource = f"{what.resource}/{what.subresource}" if what.subresource else what.resource
        where = f'in the namespace "{what.namespace}"' if what.namespace else "at the cluster scope"
        why = f'User "{user}" cannot {what.verb} resource "{resource}" in API group "{what.group}" {where}'
        # A creation's path has no name, except where it creates below one.
        name = "" if what.verb == "create" and not what.subresource else what.name
        raise forbidden(what.group, what.resource, name, why)


async def _instead(effects: list[RequestEffect]) -> web.Response | None:
    for effect in effects:
        match effect:
            case Hold(until=event):
                await event.wait()
            case Silence():
                await asyncio.Event().wait()
            case Cut():
                raise _CutOff
            case Answer(body=None):
                found = None if effect.details is None else dict(effect.details)
                refused = Refused(effect.code, effect.reason, effect.message, found)
                return _status(effect.code, refused.status, effect.headers)
            case Answer():
                return web.Response(status=effect.code, body=effect.body, headers=effect.headers)
    return None


def _with_name(what: Asked, body: bytes) -> Asked:
    if what.verb != "create" or what.name:
        return what
    try:
        name = msgspec.json.decode(body)["metadata"]["name"]
    except (msgspec.DecodeError, LookupError, TypeError):
        return what
    return replace(what, name=str(name))


def _status(code: int, body: Object, headers: Mapping[str, str] | None = None) -> web.Response:
    content = msgspec.json.encode(body) + b"\n"
    return web.Response(
        status=code, body=content, headers={"Content-Type": "application/json", **(headers or {})}
    )
