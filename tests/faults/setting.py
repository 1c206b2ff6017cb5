"""What the tests of faults have in common: a scenario that leaves nothing behind, a clock, and one watched kind."""

from __future__ import annotations

import asyncio
import functools
import gc
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import attrs
import yaml

from fivespot.adapters.clock import FakeClock
from fivespot.adapters.kube.control.streams import (
    CAPI_MACHINES,
    CLUSTERS,
    MACHINES,
    NODES,
    dependent_stream,
    pods_stream,
    provider_stream,
    secret_stream,
)
from fivespot.adapters.kube.control.watches import Stream, Watches
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.reflector import Reflector
from fivespot.adapters.kube.resources import LEASES, Object
from fivespot.adapters.kube.watching import Key, key_of, version_of, whole
from fivespot.core.decision import reading
from fivespot.core.decision.actions import Role
from fivespot.core.names import MACHINE_LABEL
from tests import builders
from tests.fakeapi import FakeApi, fake_api
from tests.standins import crds

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
NAMESPACE = "ns"
DESK = "desk-1"
LONGEST_PAUSE = 31.0
"""More than any pause of a stream."""
_PATIENCE = 60.0


def run(scenario: Coroutine[Any, Any, None], patience: float = _PATIENCE) -> None:
    """Run a scenario, which leaves no task behind, and none whose error nobody has seen.

    Raises:
        AssertionError: it did.
    """
    problems: list[str] = []

    def note(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        # A server of asyncio's own streams that is stopped tells of each connection that was cancelled.
        if not isinstance(context.get("exception"), asyncio.CancelledError):
            problems.append(f"{context}")

    async def guarded() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(note)
        async with asyncio.timeout(patience):
            await scenario
        # Connections that were closed are told so in the loop's next turns.
        end = loop.time() + 1
        while (left := asyncio.all_tasks() - {asyncio.current_task()}) and loop.time() < end:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        problems.extend(f"left behind: {task}" for task in left)

    # What was there before need not be looked through for what this scenario has lost.
    gc.freeze()
    try:
        asyncio.run(guarded())
        gc.collect()
    finally:
        gc.unfreeze()
    assert not problems, "\n".join(problems)


class HandClock(FakeClock):
    """A clock that is moved by hand, and tells who sleeps.

    Attributes:
        pauses: how long everybody has slept who did, by the monotonic clock: seconds, in order.
    """

    def __init__(self, now: datetime = NOON) -> None:
        super().__init__(now)
        self.pauses: list[float] = []
        self._slept = asyncio.Event()

    async def sleep_until(self, when: datetime | float) -> None:
        if not isinstance(when, datetime) and when > self.monotonic():
            self.pauses.append(when - self.monotonic())
        self._slept.set()
        await super().sleep_until(when)

    async def asleep(self, count: int = 1) -> None:
        """Wait until so many are asleep."""
        while self._still_asleep() < count:
            self._slept.clear()
            await self._slept.wait()
            # Whoever is about to sleep does so in this turn.
            await asyncio.sleep(0)

    def _still_asleep(self) -> int:
        """Without those whose time has come and who have not had their turn yet."""
        return sum(not sleeper.done() for _, sleeper in self._sleepers)

    async def until_slept(self, pauses: int) -> None:
        """Wait until somebody has wanted to sleep so many times."""
        while len(self.pauses) < pauses:
            self._slept.clear()
            await self._slept.wait()

    @asynccontextmanager
    async def passing(self, step: float = 0.25) -> AsyncIterator[None]:
        """Let time pass, hundreds of times as fast as it does."""

        async def move() -> None:
            while True:
                await asyncio.sleep(0.001)
                self.advance(step)

        moving = asyncio.ensure_future(move())
        try:
            yield
        finally:
            moving.cancel()
            await asyncio.gather(moving, return_exceptions=True)


class Seen(NamedTuple):
    """What a cache keeps of an object in these tests: which version it was, and what the product keeps."""

    key: Key
    version: str
    view: Any


@dataclass(frozen=True)
class Watched:
    """A kind that the product watches, by the product's own stream; `names` are of objects that it shows."""

    stream: Stream[Any]
    plural: str
    names: tuple[str, ...]
    body: Callable[[str], Object]
    namespace: str = NAMESPACE

    def __str__(self) -> str:
        return self.stream.kind

    @property
    def label(self) -> str:
        """As the fake server calls the kind."""
        return f"{self.plural}.{self.stream.group}" if self.stream.group else self.plural

    @property
    def api_version(self) -> str:
        version = str(self.stream.version)
        return f"{self.stream.group}/{version}" if self.stream.group else version

    def key(self, name: str) -> Key:
        return self.namespace, name

    def seen(self) -> Stream[Seen]:
        """The stream, with the version of what is kept beside it."""

        def read(item: Object, before: Seen | None) -> Seen:
            key = key_of(item)
            assert key is not None
            return Seen(key, version_of(item), self.stream.read(item, before.view if before else None))

        return attrs.evolve(self.stream, read=read, tokens=lambda seen: self.stream.tokens(seen.view))


def named(name: str, **more: Any) -> Object:
    """An object of ours with nothing in it."""
    return {"metadata": {"name": name, "labels": {MACHINE_LABEL: name}}, **more}


def machine(name: str = DESK, **spec: Any) -> Object:
    """A ScheduledMachine as a user would make it."""
    made = builders.scheduled_machine(name, **spec)
    made["metadata"] |= {"namespace": NAMESPACE}
    return made


def _pod(name: str) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {"nodeName": DESK, "containers": [{"name": "c", "image": "i"}]},
    }


def _watched() -> tuple[Watched, ...]:
    view = reading.read_machine(machine())
    provider, bootstrap, infrastructure = (
        provider_stream(view),
        dependent_stream(view, Role.BOOTSTRAP),
        dependent_stream(view, Role.INFRASTRUCTURE),
    )
    assert provider is not None
    assert bootstrap is not None
    assert infrastructure is not None
    two = ("one", "two")
    lease = Stream(
        group=LEASES.group,
        kind=LEASES.kind,
        version=LEASES.version,
        namespace=NAMESPACE,
        fields="metadata.name=leader",
        read=whole,
    )
    return (
        Watched(MACHINES, "scheduledmachines", two, builders.scheduled_machine),
        Watched(provider, "timebasedspotschedules", two, builders.time_based),
        Watched(CLUSTERS, "clusters", two, lambda name: named(name, spec={})),
        Watched(CAPI_MACHINES, "machines", two, lambda name: named(name, spec={"providerID": f"x://{name}"})),
        Watched(bootstrap, "k0sworkerconfigs", two, lambda name: named(name, spec={})),
        Watched(infrastructure, "remotemachines", two, lambda name: named(name, spec={})),
        Watched(
            secret_stream(NAMESPACE, "grid-kubeconfig"),
            "secrets",
            ("grid-kubeconfig",),
            lambda name: {"metadata": {"name": name}, "stringData": {"value": "text"}},
        ),
        Watched(lease, "leases", ("leader",), lambda name: {"metadata": {"name": name}, "spec": {}}),
        Watched(
            NODES, "nodes", two, lambda name: named(name, spec={"providerID": f"x://{name}"}), namespace=""
        ),
        Watched(pods_stream(DESK), "pods", two, _pod),
    )


WATCHED = _watched()


@functools.cache
def our_crds() -> tuple[Object, ...]:
    """The definitions that are shipped."""
    folder = Path(__file__).parents[2] / "deploy" / "crds"
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return tuple(yaml.load(path.read_text(), loader) for path in sorted(folder.glob("*.yaml")))


def install(server: FakeApi) -> None:
    """Everything that a management cluster has before the first machine."""
    server.install([*our_crds(), *(crds.crd(*kind) for kind in crds.KINDS)])
    server.create("v1", "namespaces", {"metadata": {"name": NAMESPACE}})


def put(server: FakeApi, watched: Watched, name: str, **annotations: str) -> Object:
    """Change an object as somebody else would, or make it."""
    kind, key, store = watched.label, watched.key(name), server.world.store
    if (found := store.get(kind, key)) is None:
        return server.create(watched.api_version, watched.plural, watched.body(name), key[0])
    metadata = found["metadata"]
    merged = {**(metadata.get("annotations") or {}), **annotations}
    return store.put(kind, key, {**found, "metadata": {**metadata, "annotations": merged}})


@dataclass
class Following:
    """A kind that is followed from a server, and everything that was told of it."""

    server: FakeApi
    gateway: Gateway
    clock: HandClock
    watched: Watched
    watches: Watches
    stream: Stream[Seen]
    told: list[tuple[Key, Seen | None, Seen | None]]
    news: asyncio.Event

    @property
    def reflector(self) -> Reflector[Seen]:
        found = self.watches.reflector(self.stream)
        assert found is not None
        return found

    @property
    def one(self) -> str:
        """The name of an object that the stream shows."""
        return self.watched.names[0]

    @property
    def match(self) -> dict[str, str]:
        """The kind, for the port of faults."""
        return {"resource": self.watched.label}

    def count(self, verb: str) -> int:
        """How many such requests there were for the kind."""
        asked = Counter(entry.asked.verb for entry in self.server.audit if self._mine(entry.asked.resource))
        return asked[verb]

    def _mine(self, plural: str) -> bool:
        return plural == self.watched.plural

    def put(self, name: str, **annotations: str) -> Object:
        """Change or make an object as somebody else would."""
        return put(self.server, self.watched, name, **annotations)

    def change_everything(self, how: str) -> None:
        """Change the first object, and have another one instead of the last."""
        *_, last = self.watched.names
        self.put(self.one, changed=how)
        self.server.world.store.remove(self.watched.label, self.watched.key(last))
        self.put(last)

    def truth(self) -> dict[Key, str]:
        """The version of every object on the server."""
        return {key: version_of(item) for key, item in self.server.world.store.items(self.watched.label)}

    def cache(self) -> dict[Key, str]:
        """The version of every object in the cache."""
        return {seen.key: seen.version for seen in self.reflector.items()}

    def replayed(self) -> dict[Key, str]:
        """What somebody believes who knows nothing but what was told."""
        believed: dict[Key, str] = {}
        for key, old, new in self.told:
            assert believed.pop(key, None) == (old.version if old else None)
            if new is not None:
                believed[key] = new.version
        return believed

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something told makes it true."""
        while not condition():
            self.news.clear()
            await self.news.wait()

    async def until_watched(self) -> None:
        """Wait until the cache is right and its stream is open."""
        await self.until_current()
        await until_open(self.server, self.watched.plural)

    async def until_unwatched(self) -> None:
        """Wait until the server has noticed that a stream is not read any more; it has no event of its own for it."""
        while any(asked.resource == self.watched.plural for asked in self.server.streams):  # noqa: ASYNC110
            await asyncio.sleep(0.001)

    async def until_current(self) -> None:
        """Wait until the cache is what the server has, and so is what was told."""
        await self.until(
            lambda: self.watches.reflector(self.stream) is not None and self.cache() == self.truth()
        )
        assert self.replayed() == self.truth()


@asynccontextmanager
async def gateway_to(server: FakeApi) -> AsyncIterator[Gateway]:
    """The product's gateway, without the authorities of the whole world: to load them takes longer than most tests."""
    config = json.loads(server.kubeconfig())
    config["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = True
    with TemporaryDirectory() as folder:
        path = Path(folder) / "kubeconfig"
        path.write_text(json.dumps(config))
        async with await Gateway.connect(kubeconfig=path) as gateway:
            yield gateway


@asynccontextmanager
async def followed(server: FakeApi, gateway: Gateway, watched: Watched) -> AsyncIterator[Following]:
    """One kind, followed by the product's own stream of it; its objects are there, and nothing is awaited."""
    told: list[tuple[Key, Seen | None, Seen | None]] = []
    clock, news = HandClock(), asyncio.Event()

    def changed(_: Stream[Any], key: Key, old: Any, new: Any) -> None:
        told.append((key, old, new))
        news.set()

    watches = Watches(gateway, clock, on_change=changed, on_state=lambda *_: news.set())
    here = Following(server, gateway, clock, watched, watches, watched.seen(), told, news)
    for name in watched.names:
        here.put(name)
    watches.want("me", [here.stream])
    try:
        yield here
    finally:
        await watches.close()


@asynccontextmanager
async def following(watched: Watched = WATCHED[0]) -> AsyncIterator[Following]:
    """One kind on a server of its own, once its objects have been read and its stream is open."""
    async with (
        fake_api() as server,
        gateway_to(server) as gateway,
    ):
        install(server)
        async with followed(server, gateway, watched) as here:
            await here.until_watched()
            yield here


def everywhere(check: Callable[[Following], Coroutine[Any, Any, None]]) -> None:
    """Check something of every kind that the product watches, one after the other, on one server.

    Raises:
        Exception: what was raised, with a note of the kind.
    """

    async def scenario() -> None:
        async with fake_api() as server, gateway_to(server) as gateway:
            install(server)
            for watched in WATCHED:
                async with followed(server, gateway, watched) as here:
                    await here.until_watched()
                    await noted(watched, check(here))

    run(scenario(), patience=3 * _PATIENCE)


async def noted(watched: Watched, checking: Coroutine[Any, Any, None]) -> None:
    """Wait for a check; what it raises has a note of the kind."""
    try:
        async with asyncio.timeout(_PATIENCE / 3):
            await checking
    except Exception as error:
        error.add_note(f"of the kind {watched}")
        raise


async def until_open(server: FakeApi, plural: str, count: int = 1) -> None:
    """Wait until so many streams of a kind are open; the server has no event of its own for it."""
    while sum(asked.resource == plural for asked in server.streams) < count:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
