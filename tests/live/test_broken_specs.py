"""Specs that are broken in every way of the parity table, past a schema that would have refused them, and mended again.

The objects live all at once, beside one another: what is wrong with one of them is no other's business.
"""

import asyncio
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

import attrs
import pytest
import yaml

from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.resources import EVENTS, Object, Resource
from fivespot.core.api.scheduled_machine import ScheduleReference
from fivespot.core.decision.knowledge import Present
from fivespot.core.decision.observation import ProviderView
from fivespot.core.decision.verdict import verdict_of
from fivespot.core.provider.kinds import BY_KIND
from tests import builders
from tests.bench.fleets import in_parallel
from tests.builders import Manifest, reference
from tests.controlplane.errors import KubectlFailed
from tests.controlplane.ports import free_ports
from tests.controlplane.pytest_plugin import StartControlPlane
from tests.controlplane.waiting import wait_until
from tests.live import product
from tests.live.following import Kept, running
from tests.live.product import PROVIDER, ROOT, Process, World, machine
from tests.parity.row import Row
from tests.parity.server import Server
from tests.parity.table import BROKEN
from tests.prometheus.around import Sayer

NAMESPACE = "broken"
COMPOSITE, MANUAL = "CompositeSpotSchedule", "ManualSpotSchedule"
ALWAYS = {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]}
SAYER_PORT = free_ports(1)[0]
YES, ABSTAINS = reference("yes", kind=MANUAL), reference("abstains", kind=MANUAL)
GOOD: Mapping[str, dict[str, Any]] = {
    "TimeBasedSpotSchedule": ALWAYS,
    "CapitalMarketsSchedule": {"sessions": [ALWAYS]},
    MANUAL: {"active": True},
    COMPOSITE: {"allOf": [YES]},
    "PrometheusSpotSchedule": {"url": f"http://127.0.0.1:{SAYER_PORT}", "query": "yes", "interval": "1h"},
}
"""A spec of each kind that says yes, for ever."""


@attrs.frozen
class Way:
    """One way to break a spec.

    Attributes:
        name: of its object.
        says: a pattern of what the condition has to say.
    """

    id: str
    kind: str
    name: str
    spec: dict[str, Any]
    reason: str
    says: str


def _over(name: str, says: str, reason: str, *members: Manifest, operator: str = "allOf") -> Way:
    """A composite that the schema has nothing against."""
    return Way(f"{COMPOSITE}: {name}", COMPOSITE, name, {operator: list(members)}, reason, says)


def _composite(name: str) -> Manifest:
    return reference(name, kind=COMPOSITE)


REFUSED = tuple(
    # The field, the value, and what to write instead.
    Way(
        row.id,
        row.kind,
        f"row-{number}",
        row.document["spec"],
        "InvalidSpec",
        r"^spec[^ ]*: .+ is refused: .+",
    )
    for number, row in enumerate(BROKEN)
)
TANGLED = (
    _over("itself", r"circle: .*/itself -> .*/itself", "ReferenceCycle", _composite("itself")),
    _over("ring-a", r"circle: .*/ring-a -> ", "ReferenceCycle", _composite("ring-b")),
    _over("ring-b", r"circle: .*/ring-b -> ", "ReferenceCycle", _composite("ring-a"), operator="firstOf"),
    _over("above", r"circle: .*/itself", "ReferenceCycle", YES, _composite("itself"), operator="anyOf"),
    _over("too-deep", r"more than 8 composites", "ReferencesTooDeep", _composite("chain-1")),
    _over(
        "nobody", r"ManualSpotSchedule/nobody does not exist", "MemberUnresolved", reference("nobody", MANUAL)
    ),
    _over(
        "unheard", r"no OtherSpotSchedule is served", "MemberUnresolved", reference("x", "OtherSpotSchedule")
    ),
    _over("on-broken", r"is not Ready: InvalidSpec", "MemberUnresolved", reference("member", MANUAL)),
    _over("silent", r"every member of firstOf abstains", "Expired", ABSTAINS, operator="firstOf"),
    _over("waits", r"abstains publishes no boolean", "MemberUnresolved", ABSTAINS),
)
WAYS = (*REFUSED, *TANGLED)


@attrs.define
class Life:
    """An object whose spec was good, broken, and mended: how it looked each time, once its controller had answered."""

    good: Object
    bad: Object
    mended: Object
    told: Counter[str]


@pytest.fixture(scope="module")
def world(
    start_control_plane: StartControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """A cluster of its own, since its CRDs are replaced by ones that refuse nothing; every provider, and machines."""
    plane, folder = start_control_plane(), tmp_path_factory.mktemp("product")
    with product.world(plane, folder) as started:
        started.provider.stop()
        line = [sys.executable, "-m", "fivespot", "provider", "run", "--allow-local-prometheus"]
        kubeconfig = str(plane.kubeconfig(PROVIDER, product.ADMINS))
        provider = Process([*line, "--kubeconfig", kubeconfig], folder / "provider.log")
        with Sayer(SAYER_PORT):
            provider.start()
            product.namespace_with_cluster(started, NAMESPACE, "grid")
            yield attrs.evolve(started, provider=provider)
            assert provider.stop() == 0
        assert "Traceback" not in provider.log.read_text()
    plane.stop()


@pytest.fixture(scope="module")
def door(world: World) -> Iterator[Server]:
    """The server while its CRDs are those that ship."""
    with Server(world.plane.url, world.plane.ca_file, world.plane.folder / "admin.pem") as server:
        yield server


@pytest.fixture(scope="module")
def lax(world: World) -> World:
    """The same, after an administrator has installed CRDs that let everything in."""
    for kind in GOOD:
        of = BY_KIND[kind].kind
        definition = yaml.safe_load((ROOT / "deploy" / "crds" / f"{of.plural}.{of.group}.yaml").read_text())
        schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        schema["properties"]["spec"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        world.plane.kubectl("replace", "-f", "-", input=json.dumps(definition))
        probe = json.dumps(_body(kind, "probe", {"unheardOf": 1}))

        def lets_in(probe: str = probe) -> bool:
            try:
                world.plane.kubectl("create", "--dry-run=server", "-f", "-", input=probe)
            except KubectlFailed:
                return False
            return True

        wait_until(lets_in, seconds=30, what=f"the lax CRD of {kind} counts")
    return world


@attrs.frozen
class Cast:
    """All objects at once, and whoever waits for what is said of them."""

    gateway: Gateway
    resources: Mapping[str, Resource]
    kept: Kept

    async def each(self, work: Callable[[Resource, Way], Awaitable[Object]]) -> dict[str, Object]:
        """Do it to every object, a few at a time; returns what each looked like then, by the id of its way."""
        done: dict[str, Object] = {}

        async def one(way: Way) -> None:
            done[way.id] = await work(self.resources[way.kind], way)

        await in_parallel([lambda way=way: one(way) for way in WAYS])  # type: ignore[misc]
        return done

    async def create(self, kind: str, name: str, spec: dict[str, Any]) -> Object:
        """Make an object, and return it once it has been answered for."""
        await self.gateway.create(self.resources[kind], NAMESPACE, _body(kind, name, spec))
        return await self.kept.until(self.resources[kind], name, _answered)

    async def neighbours(self) -> None:
        """Those that the composites are made of."""
        await self.create(MANUAL, "yes", {"active": True})
        member = Way("", MANUAL, "member", {"active": "?"}, "", "")
        await self.create(MANUAL, member.name, GOOD[MANUAL])
        await self.broken(self.resources[MANUAL], member)
        past = {"active": True, "until": "2026-01-01T00:00:00Z", "then": "Abstain"}
        await self.create(MANUAL, "abstains", past)
        for number in range(8, 0, -1):
            below = _composite(f"chain-{number + 1}") if number < 8 else YES
            await self.create(COMPOSITE, f"chain-{number}", {"allOf": [below]})

    async def edit(self, resource: Resource, way: Way, new: dict[str, Any]) -> None:
        """Write another spec, as a whole; return once it has been answered for."""
        # A merge patch keeps the fields that are not named.
        old = self.kept.objects[resource.plural, way.name]["spec"]
        patch = {"spec": {**dict.fromkeys(old), **new}}
        edited = await self.gateway.merge_patch(resource, NAMESPACE, way.name, patch)
        wanted = edited["metadata"]["generation"]
        await self.kept.until(resource, way.name, lambda body: _observed(body) == wanted)

    async def good(self, _: Resource, way: Way) -> Object:
        return await self.create(way.kind, way.name, GOOD[way.kind])

    async def broken(self, resource: Resource, way: Way) -> Object:
        await self.edit(resource, way, way.spec)
        return self.kept.objects[resource.plural, way.name]

    async def said(self, resource: Resource, way: Way) -> Object:
        """That a neighbour is broken too may be known a moment later."""
        return await self.kept.until(resource, way.name, lambda body: _ready(body)["reason"] == way.reason)

    async def touched(self, resource: Resource, way: Way) -> Object:
        """A change that is none of its controller's business."""
        patch = {"metadata": {"labels": {"touched": "again"}}}
        return await self.gateway.merge_patch(resource, NAMESPACE, way.name, patch)

    async def mended(self, resource: Resource, way: Way) -> Object:
        await self.edit(resource, way, GOOD[way.kind])
        return self.kept.objects[resource.plural, way.name]

    async def well(self, resource: Resource, way: Way) -> Object:
        return await self.kept.until(resource, way.name, lambda body: _ready(body)["status"] == "True")

    async def told(self) -> dict[tuple[str, str], Counter[str]]:
        """The reasons of all Events, by the kind and the name of what they are about."""
        found: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for event in (await self.gateway.list(EVENTS, NAMESPACE)).items:
            about = event["regarding"]
            found[about["kind"], about["name"]][event["reason"]] += (event.get("series") or {}).get(
                "count", 1
            )
        return found


@pytest.fixture(scope="module")
def lives(lax: World) -> dict[str, Life]:
    """What has become of every object, by the id of its way."""

    async def scenario() -> dict[str, Life]:
        kept = Kept()
        async with await Gateway.connect(kubeconfig=lax.plane.admin_kubeconfig) as gateway:
            kinds = {name: BY_KIND[name].kind for name in GOOD}
            resources = {name: await gateway.resolve(kind.group, name) for name, kind in kinds.items()}
            cast = Cast(gateway, resources, kept)
            async with running(*(kept.reflector(gateway, r, NAMESPACE) for r in resources.values())):
                await cast.neighbours()
                good = await cast.each(cast.good)
                await cast.each(cast.broken)
                bad = await cast.each(cast.said)
                await cast.each(cast.touched)
                await cast.each(cast.mended)
                mended = await cast.each(cast.well)
                told = await cast.told()
        return {
            way.id: Life(good[way.id], bad[way.id], mended[way.id], told[way.kind, way.name]) for way in WAYS
        }

    return asyncio.run(scenario())


def _body(kind: str, name: str, spec: dict[str, Any]) -> Manifest:
    made = builders.provider(kind, name, **spec)
    made["metadata"]["namespace"] = NAMESPACE
    return made


def _answered(body: Object) -> bool:
    return _observed(body) == body["metadata"]["generation"]


def _observed(body: Object) -> object:
    return (body.get("status") or {}).get("observedGeneration")


def _ready(body: Object) -> dict[str, Any]:
    conditions = (body.get("status") or {}).get("conditions", [])
    return next((entry for entry in conditions if entry["type"] == "Ready"), {})


@pytest.mark.parametrize("kind", GOOD)
def test_there_are_a_dozen_ways_at_least_to_break_a_spec(kind: str) -> None:
    assert sum(way.kind == kind for way in WAYS) >= 12


@pytest.mark.parametrize(
    ("row", "way"), tuple(zip(BROKEN, REFUSED, strict=True)), ids=[row.id for row in BROKEN]
)
def test_what_a_schema_can_know_is_refused_at_the_door(door: Server, row: Row, way: Way) -> None:
    """By its field; what only the engine can know comes in, which is why the controller has to say it."""
    answer = door.create(_body(way.kind, way.name, way.spec))
    assert answer.accepted is not row.refused_by("server"), answer.message
    field = str(row.refused_at).rpartition(".")[2].partition("[")[0]
    assert answer.accepted or field in answer.message


@pytest.mark.parametrize("way", WAYS, ids=[way.id for way in WAYS])
def test_a_broken_spec_is_said_and_moves_nothing(lives: dict[str, Life], way: Way) -> None:
    life = lives[way.id]
    good, bad = life.good["status"], life.bad["status"]
    ready = _ready(life.bad)
    assert (ready["status"], ready["reason"]) == ("False", way.reason)
    assert re.search(way.says, ready["message"]), ready["message"]
    assert bad["observedGeneration"] == ready["observedGeneration"] == life.bad["metadata"]["generation"] == 2
    assert good["active"] is bad["active"] is True
    assert bad["lastTransitionTime"] == good["lastTransitionTime"]
    assert "nextTransitionTime" not in bad


@pytest.mark.parametrize("way", WAYS, ids=[way.id for way in WAYS])
def test_a_consumer_holds_what_it_knew(lives: dict[str, Life], way: Way) -> None:
    bad = lives[way.id].bad
    view = Present(ProviderView(generation=bad["metadata"]["generation"], status=bad["status"]))
    verdict = verdict_of(view, ScheduleReference(api_version=bad["apiVersion"], kind=way.kind, name=way.name))
    assert (verdict.active, verdict.reason) == (None, "ProviderNotReady")
    assert way.reason in verdict.message


@pytest.mark.parametrize("way", WAYS, ids=[way.id for way in WAYS])
def test_a_broken_spec_is_told_once_and_a_mended_one_answers(lives: dict[str, Life], way: Way) -> None:
    life = lives[way.id]
    assert life.told[way.reason] == 1
    assert life.told.keys() <= {way.reason, "MemberUnresolved"}, "it has never changed its mind"
    mended = life.mended["status"]
    assert mended["observedGeneration"] == life.mended["metadata"]["generation"] == 3
    assert mended["active"] is True
    assert mended["lastTransitionTime"] == life.good["status"]["lastTransitionTime"]


def test_each_status_was_written_once_for_each_spec(world: World, lives: dict[str, Life]) -> None:
    """One for the good spec, one for the broken, one for the mended; that somebody touched it is none."""
    written = Counter(
        (event["objectRef"]["resource"], event["objectRef"]["name"])
        for event in world.writes(PROVIDER)
        if event["objectRef"].get("subresource") == "status"
    )
    found = {way.id: written[BY_KIND[way.kind].kind.plural, way.name] for way in REFUSED}
    assert found == dict.fromkeys(found, 3)


@pytest.mark.parametrize("kind", GOOD)
def test_a_machine_stays_while_its_schedule_is_broken_and_follows_it_when_it_is_mended(
    lax: World, lives: dict[str, Life], kind: str
) -> None:
    of = BY_KIND[kind].kind
    name = f"desk-{of.plural.removesuffix('spotschedules')}"[:20]
    lax.apply(
        _body(MANUAL, "no", {"active": False}),
        _body(kind, name, GOOD[kind]),
        machine(NAMESPACE, name, schedule=reference(name, kind=kind)),
    )
    lax.wait_for_phases(NAMESPACE, {name: "Active"})
    uid = lax.get(NAMESPACE, "machines.cluster.x-k8s.io", name)["metadata"]["uid"]
    lax.patch(NAMESPACE, of.plural, name, {"spec": {"unheardOf": 1}})

    def held() -> bool:
        return lax.get(NAMESPACE, "sm", name)["status"]["decidedBy"] == "Held"

    wait_until(held, seconds=30, what="it is held")
    assert lax.condition(NAMESPACE, name, "SpotScheduleResolved")["reason"] == "ProviderNotReady"
    assert lax.phases(NAMESPACE)[name] == "Active"
    assert lax.get(NAMESPACE, "machines.cluster.x-k8s.io", name)["metadata"]["uid"] == uid
    closed = {
        "TimeBasedSpotSchedule": {"daysOfWeek": []},
        "CapitalMarketsSchedule": {"sessions": []},
        MANUAL: {"active": False},
        COMPOSITE: {"allOf": [reference("no", kind=MANUAL)]},
        "PrometheusSpotSchedule": {"query": "no"},
    }
    lax.patch(NAMESPACE, of.plural, name, {"spec": {"unheardOf": None, **closed[kind]}})
    lax.wait_for_phases(NAMESPACE, {name: "Inactive"})
