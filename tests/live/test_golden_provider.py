"""Golden vectors through the running controllers, on a real API server: what is published at each instant, to the second.

The clock is the test's. It stands at the vectors' instants, at each boundary that they name, and at the second before it.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import attrs
import pytest

from fivespot.adapters.kube.control.providers import ProviderController
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.resources import NAMESPACES, Object, Resource
from fivespot.adapters.kube.watching import version_of
from fivespot.cli.leading import at_once
from fivespot.core.instant import format_instant, parse_instant
from fivespot.core.provider.kinds import BY_KIND
from fivespot.core.schedule import KINDS
from tests.controlplane.controlplane import ControlPlane
from tests.core.schedule import oracle
from tests.live import product
from tests.live.following import Kept
from tests.live.walking import SECOND, Moment, SetClock, Walk, known_instants, walks

NAMESPACE, USER = "golden", "test:golden"
WALKS = tuple(walks())
GONE = 404
READY = {
    ("TimeBasedSpotSchedule", True): "WindowOpen",
    ("TimeBasedSpotSchedule", False): "WindowClosed",
    ("CapitalMarketsSchedule", True): "SessionOpen",
    ("CapitalMarketsSchedule", False): "SessionClosed",
}


@attrs.define
class Stage:
    """Both controllers on the clock, and a watch of what they publish.

    Attributes:
        written: how often each object's status had to be written, by the oracle's word.
    """

    gateway: Gateway
    clock: SetClock
    resources: dict[str, Resource]
    kept: Kept = attrs.field(factory=Kept)
    written: Counter[str] = attrs.field(factory=Counter)

    async def at_rest(self, walk: Walk) -> Object:
        """The object as the server has it, when whoever was woken has had a turn."""
        for _ in range(20):
            await asyncio.sleep(0)
        return await self.gateway.get(self.resources[walk.kind], NAMESPACE, walk.name)


@asynccontextmanager
async def stage(plane: ControlPlane) -> AsyncIterator[Stage]:
    """The controllers of both kinds at work, where nothing is yet."""
    clock = SetClock(datetime(2026, 1, 1, tzinfo=UTC))
    async with (
        await Gateway.connect(kubeconfig=plane.admin_kubeconfig) as admin,
        await Gateway.connect(kubeconfig=plane.kubeconfig(USER, product.ADMINS)) as gateway,
    ):
        await admin.create(NAMESPACES, None, {"metadata": {"name": NAMESPACE}})
        kinds = [BY_KIND[kind] for kind in KINDS]
        resources = {of.kind.name: await admin.resolve(of.kind.group, of.kind.name) for of in kinds}
        here = Stage(admin, clock, resources)
        first = datetime.min.replace(tzinfo=UTC)
        controllers = [ProviderController(gateway, clock, of, clock_trusted_from=first) for of in kinds]
        tasks = [
            *(
                asyncio.ensure_future(here.kept.reflector(admin, r, NAMESPACE).run())
                for r in resources.values()
            ),
            *(asyncio.ensure_future(controller.run(at_once)) for controller in controllers),
        ]
        try:
            yield here
        finally:
            ended = [task for task in tasks if task.done()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert not ended, ended


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def here(control_plane: ControlPlane, runner: asyncio.Runner) -> Iterator[Stage]:
    product.install(control_plane)
    opened = stage(control_plane)
    yield runner.run(opened.__aenter__())
    runner.run(opened.__aexit__(None, None, None))


async def walked(here: Stage, walk: Walk) -> None:
    """The whole walk: a write exactly where what is published is no longer what the oracle says."""
    version, status = "", dict[str, Any]()
    for moment in walk.moments:
        here.clock.stand_at(moment.at)
        if not version:
            version = version_of(await here.gateway.create(*_to_create(here, walk)))
        if moment.active is status.get("active") and moment.agrees(status.get("nextTransitionTime")):
            assert version_of(await here.at_rest(walk)) == version, (
                f"written at {moment.at}, between boundaries"
            )
            continue
        before, old = status, version
        body = await here.kept.until(
            here.resources[walk.kind],
            walk.name,
            lambda found, old=old: found.get("status") and version_of(found) != old,  # type: ignore[misc]
        )
        version, status = version_of(body), body["status"]
        here.written[walk.name] += 1
        _right(walk, moment, before, status)
    await here.gateway.delete(here.resources[walk.kind], NAMESPACE, walk.name)


def _to_create(here: Stage, walk: Walk) -> tuple[Resource, str, Object]:
    return here.resources[walk.kind], NAMESPACE, walk.manifest(NAMESPACE)


def _right(walk: Walk, moment: Moment, before: dict[str, Any], status: dict[str, Any]) -> None:
    """Whether a status is that of the moment, after another one."""
    why = f"{moment.at}: {(moment.row or {}).get('why')}: {status}"
    assert status["active"] is moment.active, why
    same = before.get("active") is moment.active
    since = before["lastTransitionTime"] if same else format_instant(moment.at.replace(microsecond=0))
    assert status["lastTransitionTime"] == since, why
    due = status.get("nextTransitionTime")
    assert moment.agrees(due), why
    if due is not None and moment.row is None:
        # Of this instant there is no vector: the clock's readings around the boundary tell.
        at = parse_instant(due)
        assert oracle.active(walk.spec, at - SECOND) is moment.active is not oracle.active(walk.spec, at), why
    assert status["observedGeneration"] == 1
    assert status["effectiveTimezone"] == walk.spec.get("timezone", "UTC")
    (ready,) = status["conditions"]
    assert (ready["status"], ready["reason"]) == ("True", READY[walk.kind, moment.active]), why


def test_the_walks_are_all_vectors_of_both_kinds() -> None:
    assert {walk.kind for walk in WALKS} == set(KINDS)
    walked = {(str(walk.spec), moment.at) for walk in WALKS for moment in walk.moments if moment.row}
    for row in known_instants():
        assert (str(row["spec"]), parse_instant(row["instant"])) in walked, row["id"]


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.name)
def test_what_is_published_is_what_the_oracle_says(runner: asyncio.Runner, here: Stage, walk: Walk) -> None:
    runner.run(walked(here, walk))


def test_nothing_was_written_between_boundaries(control_plane: ControlPlane, here: Stage) -> None:
    """Of all the walks before, by the server's own word: each status as often as the oracle changed its mind."""
    written = Counter(
        event["objectRef"]["name"]
        for event in control_plane.audit_events()
        if event["user"].get("username") == USER
        and event["verb"] in ("create", "update", "patch", "delete")
        and event["objectRef"]["resource"] != "events"
        # The controllers answer for what other tests have left in this cluster as well.
        and event["objectRef"].get("namespace") == NAMESPACE
        and event["stage"] == "ResponseComplete"
        # The clock of the next walk may be set before it is seen that an object is gone.
        and event["responseStatus"]["code"] != GONE
    )
    assert written == here.written
