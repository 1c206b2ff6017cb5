"""One stream per kind in use, whatever the number of machines: it starts with the first user and stops with the last."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from random import Random
from typing import Any, Final, Generic, TypeAlias

import attrs

from fivespot.adapters.clock import event_or_time
from fivespot.adapters.kube.errors import ApiError, Forbidden, KindNotServed
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.reflector import Reflector
from fivespot.adapters.kube.resources import Object, Resource
from fivespot.adapters.kube.watching import Key, Read, Tokens, V, no_tokens
from fivespot.adapters.telemetry.health import Check
from fivespot.adapters.telemetry.metrics import Metrics
from fivespot.core.errors import FivespotError
from fivespot.core.ports import Clock

_LOG: Final = logging.getLogger(__name__)
_LOOK_AGAIN: Final = 30.0
_TRY_AGAIN: Final = 5.0
_BETTER: Final = 300.0
"""Seconds between looks at whether the wanted version is served by now: a kind is upgraded once in months."""
_DENIED: Final = 15.0
"""Seconds for which a stream has been forbidden, after which what it told before is not relied on."""
_ALIVE: Final = 60.0
"""Seconds for which a stream may be on its way back without anybody being told."""


@attrs.frozen(kw_only=True)
class Stream(Generic[V]):
    """What is watched: a kind, and which of its objects. Two versions of one kind are one stream.

    Attributes:
        version: the one that is taken if it is served; any other otherwise. Of several wishes the first counts.
        namespace: the only one that is looked into; all of them when None.
        label: the label that an object must have, whatever its value.
        fields: a field selector, as in a URL.
        read: what is kept of an object.
        tokens: by what else than its name it is looked for.
    """

    group: str
    kind: str
    version: str | None = attrs.field(default=None, eq=False)
    namespace: str | None = None
    label: str | None = None
    fields: str | None = None
    read: Read[V] = attrs.field(eq=False, repr=False)
    tokens: Tokens[V] = attrs.field(default=no_tokens, eq=False, repr=False)


Changed: TypeAlias = Callable[[Stream[Any], Key, Any, Any], None]
"""Called with the stream, a key, and what was kept and is kept of its object; must not block."""
StateChanged: TypeAlias = Callable[[Stream[Any], frozenset[str]], None]
"""Called with a stream and its users when it became synced, served, or not served any more, denied, or not denied any more."""


@attrs.define(kw_only=True, eq=False)
class _Running:
    users: set[str] = attrs.field(factory=set)
    task: "asyncio.Task[None] | None" = None
    reflector: Reflector[Any] | None = None
    served: bool = True
    denied: bool = False
    fault: FivespotError | None = None


class Watches:
    """Reflectors by stream, with the users of each. A kind that is not served is looked for every 30 s with jitter."""

    def __init__(
        self,
        gateway: Gateway,
        clock: Clock,
        *,
        on_change: Changed,
        on_state: StateChanged,
        metrics: Metrics | None = None,
        random: Random | None = None,
    ) -> None:
        self._gateway = gateway
        self._metrics = metrics or Metrics()
        self._clock = clock
        self._on_change = on_change
        self._on_state = on_state
        self._random = random or Random()  # noqa: S311 - jitter, not a secret
        self._running: dict[Stream[Any], _Running] = {}
        self._wanted: dict[str, frozenset[Stream[Any]]] = {}
        self._stopping: set[asyncio.Task[None]] = set()
        self._closed = False

    def want(self, user: str, streams: Iterable[Stream[Any]]) -> None:
        """Say which streams a user needs from now on; none releases all of them."""
        if self._closed:
            # What a stream still tells while it is being stopped must not begin another one.
            return
        wanted = frozenset(streams)
        before = self._wanted.get(user, frozenset())
        if wanted:
            self._wanted[user] = wanted
        else:
            self._wanted.pop(user, None)
        for stream in wanted - before:
            self._join(user, stream)
        for stream in before - wanted:
            self._leave(user, stream)

    def reflector(self, stream: Stream[V]) -> Reflector[V] | None:
        """The cache of a stream, None while its kind is not known to be served."""
        running = self._running.get(stream)
        return running.reflector if running is not None else None

    def served(self, stream: Stream[Any]) -> bool:
        """False once the API server has said that it does not serve the kind."""
        running = self._running.get(stream)
        if running is None or not running.served:
            return False
        return running.reflector is None or running.reflector.served

    def feed(self, stream: Stream[Any], body: Object) -> None:
        """Take in an object that was read or written by name, if the stream shows such objects.

        One without the stream's label would stay in the cache for good: nobody would tell when it goes.
        """
        reflector = self.reflector(stream)
        if reflector is not None and (stream.label is None or stream.label in labels_of(body)):
            reflector.feed(body)

    def pending(self, stream: Stream[Any]) -> bool:
        """Whether the first answer about a stream is still under way: nothing is known, and nothing is wrong yet."""
        running = self._running.get(stream)
        if running is None or running.fault or not running.served:
            return False
        reflector = running.reflector
        return reflector is None or (not reflector.synced.is_set() and reflector.failing is None)

    def pending_for(self, user: str) -> bool:
        """Whether any stream of a user is pending."""
        return any(self.pending(stream) for stream in self._wanted.get(user, ()))

    def fault(self, stream: Stream[Any]) -> FivespotError | None:
        """Why a stream has nothing yet, or nothing new; None when nothing is wrong."""
        running = self._running.get(stream)
        if running is None:
            return None
        return running.fault or (running.reflector.failing if running.reflector is not None else None)

    def denied(self, stream: Stream[Any]) -> Forbidden | None:
        """Why a stream may not go on; None while it may, and for a moment after.

        What it told before grows old in the cache, and nobody will ever tell that it does. A server that is down, or too
        busy, comes back; this does not end by itself.
        """
        reflector = self.reflector(stream)
        if reflector is None or reflector.failing_for < _DENIED:
            return None
        return reflector.failing if isinstance(reflector.failing, Forbidden) else None

    def checks(self, required: Collection[Stream[Any]] = ()) -> list[Check]:
        """Whether every stream is alive, for people; a kind that is not served is wrong only where it is required."""
        return [
            Check(f"watch {stream.kind}{f'.{stream.group}' if stream.group else ''}", problem)
            for stream in self._running
            for problem in [self._problem(stream, required=stream in required)]
        ]

    def _problem(self, stream: Stream[Any], *, required: bool) -> str:
        if not self.served(stream):
            return f"{self.fault(stream) or 'the kind is not served'}" if required else ""
        if self.pending(stream):
            return "it has not been read yet"
        fault = self.fault(stream)
        reflector = self.reflector(stream)
        if fault is None or (reflector is not None and reflector.failing_for < _ALIVE):
            return ""
        return str(fault)

    async def close(self) -> None:
        """Stop every stream, for good."""
        self._closed = True
        for running in self._running.values():
            self._stop(running)
        self._running.clear()
        self._wanted.clear()
        await asyncio.gather(*self._stopping, return_exceptions=True)

    def _join(self, user: str, stream: Stream[Any]) -> None:
        running = self._running.get(stream)
        if running is None:
            running = self._running[stream] = _Running()
            running.task = asyncio.get_running_loop().create_task(
                self._run(stream, running), name=f"watch {stream.kind}"
            )
        running.users.add(user)

    def _leave(self, user: str, stream: Stream[Any]) -> None:
        running = self._running[stream]
        running.users.discard(user)
        if not running.users:
            del self._running[stream]
            self._stop(running)

    def _stop(self, running: _Running) -> None:
        if running.task is not None:
            running.task.cancel()
            self._stopping.add(running.task)
            running.task.add_done_callback(self._stopping.discard)

    async def _run(self, stream: Stream[Any], running: _Running) -> None:
        """Find the kind and reflect it, and find it anew when it is served no longer, for as long as anybody uses it.

        A CRD may come back with another version or another plural; nothing of before is assumed then.
        """
        while True:
            resource = await self._resolve(stream, running)
            lost = asyncio.Event()
            running.reflector = reflector = self._made(stream, running, resource, lost)
            following = asyncio.get_running_loop().create_task(
                self._follow(reflector), name=f"follow {resource.label}"
            )
            telling = asyncio.get_running_loop().create_task(
                self._tell_when_synced(stream, running, reflector)
            )
            try:
                await self._until_lost(stream, resource, lost)
            finally:
                for task in (following, telling):
                    task.cancel()
                await asyncio.gather(following, telling, return_exceptions=True)
            running.reflector, running.served, running.denied = None, not lost.is_set(), False
            self._tell(stream, running)

    async def _until_lost(self, stream: Stream[Any], resource: Resource, lost: asyncio.Event) -> None:
        """Until the kind is not served any more; or the wanted version is, where another one had to do."""
        while not lost.is_set():
            if stream.version in (None, resource.version):
                await lost.wait()
                return
            pause = _BETTER * self._random.uniform(0.8, 1.2)
            await event_or_time(lost, self._clock, self._clock.monotonic() + pause)
            with contextlib.suppress(ApiError, KindNotServed):
                if await self._gateway.resolve(stream.group, stream.kind, stream.version) != resource:
                    return

    async def _follow(self, reflector: Reflector[Any]) -> None:
        """What nobody foresaw is logged, and the reflector goes on from where it was: a cache must not just stand still."""
        while True:
            try:
                await reflector.run()
            except Exception:  # noqa: BLE001 - nobody waits for this task: what ends it would never be seen
                _LOG.exception("the stream broke", extra={"resource": reflector.resource.label})
            await self._clock.sleep_until(self._clock.monotonic() + _TRY_AGAIN)

    def _made(
        self, stream: Stream[V], running: _Running, resource: Resource, lost: asyncio.Event
    ) -> Reflector[V]:
        return Reflector(
            self._gateway,
            resource,
            namespace=stream.namespace,
            label_selector=stream.label,
            field_selector=stream.fields,
            clock=self._clock,
            read=stream.read,
            tokens=stream.tokens,
            on_change=lambda key, old, new: self._change(stream, key, old, new),
            on_served_change=lambda served: None if served else lost.set(),
            on_end=lambda reason: self._metrics.restarted(stream.kind, reason),
            on_failing=lambda: self._look_whether_denied(stream, running),
        )

    def _look_whether_denied(self, stream: Stream[Any], running: _Running) -> None:
        denied = self.denied(stream) is not None
        if denied is not running.denied:
            running.denied = denied
            self._tell(stream, running)

    def _change(self, stream: Stream[V], key: Key, old: V | None, new: V | None) -> None:
        """One object's surprise must not keep the changes of the others from being told."""
        try:
            self._on_change(stream, key, old, new)
        except Exception:  # noqa: BLE001 - see above
            _LOG.exception(
                "a change could not be taken in",
                extra={"kind": stream.kind, "object": "/".join(filter(None, key))},
            )

    async def _tell_when_synced(
        self, stream: Stream[Any], running: _Running, reflector: Reflector[Any]
    ) -> None:
        await reflector.synced.wait()
        self._tell(stream, running)

    async def _resolve(self, stream: Stream[Any], running: _Running) -> Resource:
        fault: FivespotError
        while True:
            try:
                resource = await self._gateway.resolve(stream.group, stream.kind, stream.version)
            except KindNotServed as error:
                wait, served, fault = _LOOK_AGAIN, False, error
            except ApiError as error:
                # Says nothing about the kind.
                wait, served, fault = _TRY_AGAIN, running.served, error
            except Exception as error:  # noqa: BLE001 - such as a group that cannot stand in a path; see _follow
                wait, served = _LOOK_AGAIN, running.served
                fault = FivespotError(f"kind {stream.kind} cannot be looked for: {error!r}")
            else:
                running.served, running.fault = True, None
                return resource
            if (served, str(fault)) != (running.served, str(running.fault)):
                _LOG.warning("%s", fault)
                running.served, running.fault = served, fault
                self._tell(stream, running)
            # Never earlier: discovery remembers for so long what it has not found.
            jitter = self._random.uniform(1.01, 1.2)
            await self._clock.sleep_until(self._clock.monotonic() + wait * jitter)

    def _tell(self, stream: Stream[Any], running: _Running) -> None:
        self._on_state(stream, frozenset(running.users))


def labels_of(body: Object) -> Mapping[str, str]:
    """An object's labels."""
    return (body.get("metadata") or {}).get("labels") or {}
