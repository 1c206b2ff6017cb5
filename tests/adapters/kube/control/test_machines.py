"""The controller's loop against a server that answers late, or had another writer: when it decides, and on what."""

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from fivespot.adapters.clock import FakeClock
from fivespot.adapters.kube.control.machines import MachineController
from fivespot.cli.leading import at_once
from fivespot.core.api.allowed import DEFAULT_GROUPS, AllowedGroups
from fivespot.core.names import FINALIZER
from tests import builders
from tests.adapters.kube.scripted import Reply, Request, connected, scripted

OWN_GROUPS = AllowedGroups(infrastructure=("infra.example.com",))
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
KINDS = (
    "ScheduledMachine",
    "TimeBasedSpotSchedule",
    "Cluster",
    "Machine",
    "K0sWorkerConfig",
    "RemoteMachine",
)
DISCOVERY = {"resources": [{"name": f"{kind.lower()}s", "kind": kind, "namespaced": True} for kind in KINDS]}


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 30))


class Server:
    """Serves one machine and nothing else; its streams say nothing.

    Attributes:
        silent: the kind whose list is never answered.
        refused: how many times objects are not to be read, before they are not there.
    """

    def __init__(self, clock: FakeClock, *finalizers: str, silent: str = "", refused: int = 0) -> None:
        self.clock = clock
        self.silent = silent
        self.refused = refused
        self.machine = builders.scheduled_machine("desk-1")
        self.machine["metadata"] |= {
            "namespace": "ns",
            "uid": "u1",
            "generation": 1,
            "resourceVersion": "5",
            "finalizers": list(finalizers),
        }
        self.read = asyncio.Event()
        self.patches: asyncio.Queue[tuple[float, str]] = asyncio.Queue()

    async def __call__(self, request: Request, reply: Reply) -> None:
        last = request.path.rpartition("/")[2]
        if last == self.silent or "watch" in request.query:
            self.read.set()
            await asyncio.Event().wait()
        elif request.path.startswith("/apis/") and request.path.count("/") == 3:
            await reply.json(DISCOVERY)
        elif request.method == "PATCH":
            await self._patch(json.loads(request.body), reply)
        elif last == "desk-1" and "scheduledmachines" in request.path:
            await reply.json(self.machine)
        elif last.endswith("s") and "namespaces" not in request.path:
            items = [self.machine] if last == "scheduledmachines" else []
            await reply.json({"metadata": {"resourceVersion": "10"}, "items": items})
        elif last == "desk-1" and self.refused:
            self.refused -= 1
            await reply.status(403, "Forbidden")
        else:
            await reply.status(404, "NotFound")

    async def _patch(self, patch: dict[str, Any], reply: Reply) -> None:
        version = patch["metadata"]["resourceVersion"]
        self.patches.put_nowait((self.clock.monotonic(), version))
        if version != self.machine["metadata"]["resourceVersion"]:
            await reply.status(409, "Conflict")
            return
        self.touch()
        self.machine["metadata"] |= {
            "finalizers": patch["metadata"].get("finalizers", self.machine["metadata"]["finalizers"])
        }
        self.machine |= {"status": patch["status"]} if "status" in patch else {}
        await reply.json(self.machine)

    def touch(self) -> None:
        """Change the machine as somebody else would, without a word on any stream."""
        metadata = self.machine["metadata"]
        self.machine = {
            **self.machine,
            "metadata": {**metadata, "resourceVersion": str(int(metadata["resourceVersion"]) + 20)},
        }


@asynccontextmanager
async def controlling(serving: Server, **options: Any) -> AsyncIterator[None]:
    async with scripted(serving) as server, connected(server) as gateway:
        tasks = [
            asyncio.ensure_future(MachineController(gateway, serving.clock, **options).run(at_once)),
            asyncio.ensure_future(_let_time_pass(serving.clock)),
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _let_time_pass(clock: FakeClock) -> None:
    while True:
        await asyncio.sleep(0.002)
        clock.advance(0.1)


def test_first_answers_are_awaited_for_five_seconds_and_not_for_five_in_every_pass() -> None:
    async def scenario() -> None:
        serving = Server(FakeClock(NOON), silent="clusters")
        async with controlling(serving):
            finalizer, _ = await serving.patches.get()
            status, _ = await serving.patches.get()
            assert finalizer >= 5
            assert status - finalizer < 3

    run(scenario())


def test_a_status_that_came_too_late_is_decided_anew_on_what_the_other_one_wrote() -> None:
    """The stream has not told of it, and perhaps will not for long."""

    async def scenario() -> None:
        serving = Server(FakeClock(NOON), FINALIZER, silent="clusters")
        async with controlling(serving):
            await serving.read.wait()
            serving.touch()
            versions = [(await serving.patches.get())[1] for _ in range(2)]
            assert versions == ["5", "25"]

    run(scenario())


def test_what_could_not_be_read_live_is_read_again_though_nothing_happens() -> None:
    """A machine that goes waits for the answer that its objects are gone; no stream tells when it can be had."""

    async def scenario() -> None:
        serving = Server(FakeClock(NOON), FINALIZER, refused=30)
        serving.machine["metadata"]["deletionTimestamp"] = "2026-03-02T11:59:00Z"
        async with controlling(serving):
            while serving.machine["metadata"]["finalizers"]:
                await serving.patches.get()
            assert serving.refused == 0

    run(scenario())


@pytest.mark.parametrize(("allowed", "refused"), [(DEFAULT_GROUPS, True), (OWN_GROUPS, False)])
def test_machines_are_made_of_the_groups_that_the_operator_allows_and_of_no_other(
    allowed: AllowedGroups, refused: bool
) -> None:
    """With a schema that lets everything in: what is written of the machine says whether the spec counts."""

    async def scenario() -> None:
        server = Server(FakeClock(NOON), FINALIZER)
        server.machine["spec"]["infrastructureSpec"]["apiVersion"] = "infra.example.com/v1"
        async with controlling(server, allowed=allowed):
            await server.patches.get()
            while "status" not in server.machine:
                await server.patches.get()
        conditions = {entry["type"]: entry for entry in server.machine["status"]["conditions"]}
        message = conditions["ReferencesValid"]["message"]
        assert ("spec.infrastructureSpec.apiVersion" in message) is refused, message

    run(scenario())
