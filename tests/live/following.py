"""What a reflector tells, kept in order, and short ways to run one against a real API server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

from fivespot.adapters.clock import SystemClock
from fivespot.adapters.kube.errors import Gone
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.reflector import Reflector
from fivespot.adapters.kube.resources import Object, Resource
from fivespot.adapters.kube.watching import Key, version_of, whole
from fivespot.core.ports import Clock
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.relay import Relay

GONE: Final = ""
"""As a version: the object is not there."""


class HurriedClock(SystemClock):
    """Time that runs ten times as fast: for pauses that are right in production, and not what a test is about."""

    RATE: Final = 10.0

    def monotonic(self) -> float:
        """Seconds of its own."""
        return super().monotonic() * self.RATE

    def _left(self, when: datetime | float) -> float:
        return super()._left(when) / (1.0 if isinstance(when, datetime) else self.RATE)


class Told:
    """Every change that was told: the key, and the resourceVersions before and after."""

    def __init__(self) -> None:
        self.changes: list[tuple[Key, str, str]] = []

    def change(self, key: Key, old: Object | None, new: Object | None) -> None:
        """A reflector's `on_change`."""
        before, after = (GONE if item is None else version_of(item) for item in (old, new))
        self.changes.append((key, before, after))

    def versions(self) -> dict[str, list[str]]:
        """By name, what was told after one another: versions, and GONE."""
        found: dict[str, list[str]] = {}
        for (_, name), _, after in self.changes:
            found.setdefault(name, []).append(after)
        return found

    def kinds(self, since: int = 0) -> list[tuple[str, str]]:
        """What happened to whom, from the change of that number on, sorted by name."""
        words = {(True, False): "added", (False, False): "changed", (False, True): "deleted"}
        return sorted(
            (name, words[before == GONE, after == GONE]) for (_, name), before, after in self.changes[since:]
        )

    def reflector(
        self, gateway: Gateway, resource: Resource, clock: Clock | None = None, **options: Any
    ) -> Reflector[Object]:
        """A reflector that keeps whole objects, and tells this."""
        return Reflector(
            gateway,
            resource,
            clock=clock or SystemClock(),
            read=whole,
            on_change=self.change,
            **options,
        )


class Kept:
    """The objects of some resources as watches tell them, by plural and name, and a way to wait for what they say."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Object] = {}
        self._news = asyncio.Event()

    def reflector(self, gateway: Gateway, resource: Resource, namespace: str) -> Reflector[Object]:
        """A reflector that fills this."""

        def change(key: Key, _: Object | None, new: Object | None) -> None:
            if new is None:
                self.objects.pop((resource.plural, key[1]), None)
            else:
                self.objects[resource.plural, key[1]] = new
            self._news.set()

        return Reflector(
            gateway, resource, clock=SystemClock(), read=whole, on_change=change, namespace=namespace
        )

    async def until(
        self, resource: Resource, name: str, check: Callable[[Object], object], seconds: float = 60
    ) -> Object:
        """The object, once it is there and `check` says yes."""
        async with asyncio.timeout(seconds):
            while not (found := self.objects.get((resource.plural, name))) or not check(found):
                self._news.clear()
                await self._news.wait()
        return found


@asynccontextmanager
async def running(*reflectors: Reflector[Object]) -> AsyncIterator[None]:
    """Reflectors at work, and synced; one that ends by itself is a failure."""
    tasks = [asyncio.create_task(reflector.run()) for reflector in reflectors]
    try:
        for reflector in reflectors:
            await asyncio.wait_for(reflector.synced.wait(), 30)
        yield
        assert not any(task.done() for task in tasks), tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def until(check: Callable[[], bool], what: str, seconds: float = 60) -> float:
    """Wait until `check` says yes.

    Returns:
        How long it took.
    """
    begun = time.monotonic()
    while not check():
        assert time.monotonic() - begun < seconds, what
        await asyncio.sleep(0.02)
    return time.monotonic() - begun


async def tried(attempt: Callable[[], Awaitable[Any]], *errors: type[Exception], seconds: float = 30) -> Any:
    """The answer of `attempt`, once it no longer raises one of `errors`."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return await attempt()
        except errors:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)


async def refused(
    attempt: Callable[[], Awaitable[Any]], error: type[Exception], what: str, seconds: float = 30
) -> None:
    """Return once `attempt` raises `error`."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            await attempt()
        except error:
            return
        assert time.monotonic() < deadline, what
        await asyncio.sleep(0.05)


async def events_from(gateway: Gateway, resource: Resource, namespace: str, version: str) -> int:
    """How many events a watch of a second delivers from a version.

    Raises:
        Gone: it is too old.
    """
    stream = gateway.watch(resource, namespace, resource_version=version, timeout_seconds=1)
    async with aclosing(stream):
        return len([event async for event in stream])


async def forgotten(gateway: Gateway, resource: Resource, namespace: str, version: str) -> None:
    """Return once the server no longer knows what came after a version."""
    await refused(
        lambda: events_from(gateway, resource, namespace, version), Gone, "the version is compacted"
    )


async def cache_is_right(
    reflector: Reflector[Object], gateway: Gateway, namespace: str, seconds: float = 90
) -> float:
    """Wait until a cache holds what a fresh list says, object by object in the same version.

    Returns:
        How long it took.
    """
    fresh = await tried(lambda: gateway.list(reflector.resource, namespace), Exception)
    wanted = {_key(item): version_of(item) for item in fresh.items}
    return await until(
        lambda: {_key(item): version_of(item) for item in reflector.items()} == wanted,
        "the cache is what the list says",
        seconds,
    )


def _key(item: Object) -> Key:
    return item["metadata"]["namespace"], item["metadata"]["name"]


def asked(plane: ControlPlane, user: str, verb: str, resource: str) -> list[dict[str, Any]]:
    """What a user asked of a kind, answered or refused, from the audit log."""
    return [
        event
        for event in plane.audit_events()
        if event["user"].get("username") == user
        and event["verb"] == verb
        and event.get("objectRef", {}).get("resource") == resource
        and event["stage"] == "ResponseComplete"
    ]


def codes(events: list[dict[str, Any]]) -> list[int]:
    """How requests were answered."""
    return [event["responseStatus"]["code"] for event in events]


def port_of(plane: ControlPlane) -> int:
    """The port of the API server."""
    port = urlsplit(plane.url).port
    assert port is not None
    return port


def through(relay: Relay, plane: ControlPlane, kubeconfig: str) -> str:
    """A kubeconfig's text that leads through a relay."""
    return kubeconfig.replace(plane.url, f"https://127.0.0.1:{relay.port}")
