"""One stream for each kind, whatever the versions that it is asked for in."""

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any

from fivespot.adapters.clock import FakeClock
from fivespot.adapters.kube.control.watches import Stream, Watches
from fivespot.adapters.kube.watching import whole
from tests.fakeapi import fake_api

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
GROUP = "cluster.x-k8s.io"


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 30))


def machines(version: str) -> Stream[Any]:
    return Stream(group=GROUP, kind="Machine", version=version, read=whole)


def crd(*versions: str) -> dict[str, Any]:
    return {
        "metadata": {"name": f"machines.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "plural": "machines",
                "singular": "machine",
                "kind": "Machine",
                "listKind": "MachineList",
            },
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": name == versions[0],
                    "schema": {
                        "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                    },
                }
                for name in versions
            ],
        },
    }


def test_two_versions_of_one_kind_are_one_stream() -> None:
    async def scenario() -> None:
        async with fake_api() as server, server.gateway() as gateway:
            server.install([crd("v1beta1", "v1beta2")])
            told: asyncio.Queue[Any] = asyncio.Queue()
            watches = Watches(
                gateway,
                FakeClock(NOON),
                on_change=lambda *_: None,
                on_state=lambda *args: told.put_nowait(args),
            )
            try:
                watches.want("a", [machines("v1beta1")])
                watches.want("b", [machines("v1beta2")])
                _, users = await told.get()
                assert users == {"a", "b"}
                assert len([asked for asked in server.streams if asked.resource == "machines"]) <= 1
                assert watches.reflector(machines("v1beta1")) is watches.reflector(machines("v1beta2"))
            finally:
                await watches.close()

    run(scenario())


def test_the_wanted_version_is_taken_once_it_is_served() -> None:
    """Cluster API may be upgraded while we run."""

    async def scenario() -> None:
        async with fake_api() as server, server.gateway() as gateway:
            server.install([crd("v1beta1")])
            clock, told = FakeClock(NOON), asyncio.Event()
            watches = Watches(gateway, clock, on_change=lambda *_: None, on_state=lambda *_: told.set())

            async def version() -> str:
                while (found := watches.reflector(wanted)) is None or not found.synced.is_set():
                    told.clear()
                    await told.wait()
                return found.resource.version

            wanted = machines("v1beta2")
            try:
                watches.want("a", [wanted])
                assert await version() == "v1beta1"
                kinds = await gateway.resolve("apiextensions.k8s.io", "CustomResourceDefinition")
                await gateway.merge_patch(kinds, None, f"machines.{GROUP}", crd("v1beta1", "v1beta2"))
                gateway._resolver._known.clear()
                while not clock.sleepers:  # noqa: ASYNC110 - nobody tells when somebody falls asleep
                    await asyncio.sleep(0)
                told.clear()
                clock.advance(400)
                await told.wait()
                assert watches.served(wanted)
                assert await version() == "v1beta2"
            finally:
                await watches.close()

    run(scenario())
