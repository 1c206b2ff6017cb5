"""The whole machine controller, in one process, while its servers fail it: it waits, says why, and goes on."""

import asyncio
from collections import Counter

import pytest

from fivespot.adapters.kube.resources import Object
from fivespot.cli.leading import at_once
from fivespot.core.names import RECLAIM_REQUESTED
from tests.fakeapi import FakeApi
from tests.fakeapi.faults import Answer, Cut, CutStream, EndStream, ErrorEvent, Hold, RequestEffect
from tests.fakeapi.requests import Asked
from tests.faults.setting import DESK, NAMESPACE, WATCHED, run, until_open
from tests.faults.site import BOOTSTRAPS, CAPI, HOSTS, MACHINES, SCHEDULES, SECRET, Site, site

GONE: Object = {"kind": "Status", "code": 410, "reason": "Expired"}
STREAMS = (
    "scheduledmachines",
    "timebasedspotschedules",
    "clusters",
    "machines",
    "k0sworkerconfigs",
    "remotemachines",
)


async def up(here: Site, *names: str) -> None:
    """Machines that are in the cluster."""
    for name in names or (DESK,):
        here.add_machine(name)
    for name in names or (DESK,):
        await here.until_phase("Active", name=name)


async def down(here: Site, *names: str) -> None:
    """The schedule closes, and they are not."""
    here.schedule(active=False)
    for name in names or (DESK,):
        await here.until_phase("Inactive", name=name)
    assert [here.there(label) for label in (BOOTSTRAPS, HOSTS, CAPI, "nodes")] == [[]] * 4


def asked(*servers: FakeApi) -> int:
    return sum(len(server.audit) for server in servers)


def test_a_controller_at_rest_asks_for_nothing_and_writes_nothing() -> None:
    async def scenario() -> None:
        async with site() as here:
            names = [f"desk-{number}" for number in range(10)]
            await up(here, *names)
            await until_open(here.child, "nodes")
            await here.rest(30)
            before = asked(here.management, here.child)
            await here.rest(600)
            assert asked(here.management, here.child) == before

    run(scenario())


@pytest.mark.parametrize(
    "effects",
    [(CutStream(),), (EndStream(),), (ErrorEvent(GONE), EndStream())],
    ids=["cut", "ended", "too old"],
)
def test_what_happens_while_a_stream_is_away_is_acted_on(
    effects: tuple[CutStream | EndStream | ErrorEvent, ...],
) -> None:
    """One stream after the other, while machines come."""

    async def scenario() -> None:
        async with site() as here:
            await up(here, "first")
            for plural in STREAMS:
                await until_open(here.management, plural)
                for effect in effects:
                    here.management.faults.on_streams(effect, resource=plural)
                await up(here, f"with-{plural}")
            for effect in effects:
                here.management.faults.on_streams(effect)
            await down(here, "first", *(f"with-{plural}" for plural in STREAMS))

    run(scenario())


def test_a_management_server_that_is_started_anew_finds_the_controller_waiting() -> None:
    async def scenario() -> None:
        async with site() as here:
            await up(here)
            await here.management.stop()
            await here.rest(60)
            here.schedule(active=False)
            await here.rest(60)
            assert here.phase() == "Active"
            assert here.there(CAPI) == [DESK]
            await here.management.start()
            await here.until_phase("Inactive")
            assert here.created(CAPI) == 1

    run(scenario())


@pytest.mark.parametrize("effect", [Answer(503), Answer(401), Cut()], ids=["503", "401", "cut"])
def test_a_management_server_that_refuses_everything_is_asked_ever_less_often(effect: RequestEffect) -> None:
    async def scenario() -> None:
        async with site() as here:
            await up(here)
            refusing = here.management.faults.add(effect, times=None)
            here.management.faults.on_streams(CutStream())
            await here.rest(600)
            # Seven streams and a Secret; a list is asked for up to four times in a row.
            assert refusing.hits <= 8 * 30
            refusing.remove()
            await down(here)

    run(scenario())


def test_a_child_that_is_down_is_said_and_holds_nothing_else_up() -> None:
    async def scenario() -> None:
        async with site() as here:
            await up(here)
            await until_open(here.child, "nodes")
            await here.child.stop()
            await here.until(lambda: here.condition("ChildClusterReachable").get("status") == "Unknown")
            assert here.condition("ChildClusterReachable")["reason"] == "ChildClusterUnreachable"
            assert here.phase() == "Active"
            await here.child.start()
            await here.until(lambda: here.condition("ChildClusterReachable").get("status") == "True")
            await down(here)

    run(scenario())


def test_the_pods_of_a_reclaimed_node_are_deleted_before_its_machine() -> None:
    """Nobody has listed them when the request comes: a list that is under way is no child out of reach."""

    async def scenario() -> None:
        async with site() as here:
            here.add_machine(killIfCommands=["java"])
            await here.until_phase("Active")
            here.add_pod("busy")
            store, key = here.child.world.store, ("", DESK)
            node = store.get("nodes", key)
            assert node is not None
            asking = {**node["metadata"].get("annotations", {}), RECLAIM_REQUESTED: "true"}
            store.put("nodes", key, {**node, "metadata": {**node["metadata"], "annotations": asking}})
            await here.until_phase("Disabled")
            removed = [change.resource for change in here.changes if change.new is None]
            assert [resource for resource in removed if resource in ("pods", CAPI)] == ["pods", CAPI]

    run(scenario())


def test_a_kubeconfig_that_is_renewed_while_pods_are_drained_interrupts_nothing() -> None:
    """Evictions that are under way come to their end, and are answered."""

    async def scenario() -> None:
        async with site() as here:
            here.child.tokens = {"a-token": "us", "new": "us"}
            await up(here)
            for number in range(20):
                here.add_pod(f"pod-{number}")
            go_on = asyncio.Event()
            held = here.child.faults.add(Hold(go_on), resource="pods", subresource="eviction", times=3)
            here.schedule(active=False)
            async with here.clock.passing():
                await held.hit(3)
            here.give_kubeconfig(here.child.kubeconfig("new"))
            while not renewed(here.child):  # noqa: ASYNC110 - told by nothing else
                await asyncio.sleep(0.001)
            go_on.set()
            await here.until_phase("Inactive")
            evictions = [entry for entry in here.child.writes if entry.asked.subresource == "eviction"]
            assert Counter(entry.asked.name for entry in evictions) == Counter(f"pod-{n}" for n in range(20))
            assert {entry.code for entry in evictions} == {201}

    run(scenario())


def renewed(child: FakeApi) -> bool:
    """Whether the Nodes are followed by the second stream, and the first has ended."""
    asked_for = sum((e.asked.verb, e.asked.resource) == ("watch", "nodes") for e in child.audit)
    return asked_for == 2 and sum(what.resource == "nodes" for what in child.streams) == 1


def test_a_kubeconfig_that_is_taken_away_while_a_machine_is_in_the_cluster_moves_nothing() -> None:
    async def scenario() -> None:
        async with site() as here:
            await up(here)
            here.management.world.store.remove("secrets", (NAMESPACE, SECRET))
            await here.until(
                lambda: here.condition("ChildClusterReachable").get("reason") == "KubeconfigMissing"
            )
            await here.rest(120)
            assert here.phase() == "Active"
            here.give_kubeconfig()
            await here.until(lambda: here.condition("ChildClusterReachable").get("status") == "True")
            await down(here)

    run(scenario())


# One of many


@pytest.mark.parametrize(
    ("label", "name", "wrong"),
    [
        (MACHINES, "bad", {"status": {"phase": 7}}),
        (MACHINES, "bad", {"spec": {"schedule": "nights"}}),
        (CAPI, "bad", {"metadata": {"annotations": {"a": 7}}}),
        (HOSTS, "bad", {"metadata": {"ownerReferences": ["x"]}}),
        (BOOTSTRAPS, "bad", {"metadata": {"annotations": {"a": 7}}}),
        ("nodes", "bad", {"metadata": {"annotations": {"a": 7}}}),
        ("nodes", "stranger", {"metadata": {"annotations": {"a": 7}}, "spec": {"taints": "none"}}),
        (SCHEDULES, "other", {"metadata": {"annotations": {"a": 7}}, "status": {"active": "yes"}}),
    ],
)
def test_an_object_that_cannot_be_read_moves_nothing_and_holds_no_other_up(
    label: str, name: str, wrong: Object
) -> None:
    async def scenario() -> None:
        async with site() as here:
            await up(here, "bad", "good")
            server = here.child if label == "nodes" else here.management
            spoil(server, label, name, wrong)
            await here.rest(30)
            before = asked(here.management, here.child)
            await here.rest(60)
            assert asked(here.management, here.child) - before <= 10, "there is nothing to do"
            assert here.there(CAPI) == ["bad", "good"]
            here.add_machine("late")
            await here.until_phase("Active", name="late")

    run(scenario())


def spoil(server: FakeApi, label: str, name: str, wrong: Object) -> None:
    """Change an object into one that no admission would have let through, or have one like that."""
    key = ("" if label == "nodes" else NAMESPACE, name)
    items = dict(server.world.store.items(label))
    like = items.get(key) or next(iter(items.values()))
    meta = {**like["metadata"], "name": name, "uid": f"uid-of-{name}"} | wrong.get("metadata", {})
    server.world.store.put(label, key, {**like, **wrong, "metadata": meta})


# What may not be done


def test_what_may_not_be_created_is_said_and_tried_again_ever_less_often_until_it_may() -> None:
    async def scenario() -> None:
        def allowed(_: str, what: Asked) -> bool:
            return (what.verb, what.resource) != ("create", "machines")

        async with site() as here:
            here.management.authorizer = allowed
            here.add_machine()
            await here.rest(600)
            refused = [e for e in here.management.audit if e.code == 403]
            assert 5 <= len(refused) <= 20
            said = str(here.machine()["status"])
            assert 'grant verb "create"' in said
            here.management.authorizer = None
            await here.until_phase("Active")

    run(scenario())


@pytest.mark.parametrize(
    "plural",
    ["scheduledmachines", "clusters", "machines", "remotemachines", "timebasedspotschedules", "secrets"],
)
def test_what_may_not_be_watched_is_said_and_the_controller_goes_on_once_it_may(plural: str) -> None:
    async def scenario() -> None:
        async with site() as here:
            await until_open(here.management, "scheduledmachines")
            here.management.authorizer = lambda _, what: (
                what.resource != plural or what.verb not in ("list", "watch", "get")
            )
            here.management.faults.on_streams(CutStream())
            here.add_machine()
            await here.rest(60)
            here.management.authorizer = None
            await here.until_phase("Active")
            assert here.created(CAPI) == 1

    run(scenario())


def test_a_status_that_is_throttled_is_written_when_the_server_has_said_and_not_before() -> None:
    async def scenario() -> None:
        async with site() as here:
            await up(here)
            await here.rest(30)
            refused = Answer(429, "TooManyRequests", headers={"Retry-After": "20"})
            throttling = here.management.faults.add(
                refused, verb="patch", resource=MACHINES, subresource="status"
            )
            here.schedule(active=False)
            await throttling.hit()
            begun = here.clock.monotonic()
            await here.until_phase("ShuttingDown")
            assert 20 <= here.clock.monotonic() - begun <= 40

    run(scenario())


# Ends


def test_a_controller_that_is_stopped_ends_what_is_in_hand_and_leaves_no_stream() -> None:
    async def scenario() -> None:
        async with site(start=False) as here:
            working = asyncio.ensure_future(here.controller.run(at_once))
            await up(here)
            here.controller.stop()
            async with asyncio.timeout(5):
                await working
            while here.management.streams or here.child.streams:  # noqa: ASYNC110 - told by nothing else
                await asyncio.sleep(0.001)

    run(scenario())


def test_every_stream_of_the_controller_is_one_of_those_that_meet_every_fault() -> None:
    """What is watched in one place and not tested in the other would be seen here."""

    async def scenario() -> None:
        async with site() as here:
            await up(here)
            here.add_pod("pod")
            here.child.faults.add(Answer(429, "TooManyRequests"), resource="pods", verb="create", times=None)
            here.schedule(active=False)
            await here.until_phase("ShuttingDown")
            await until_open(here.child, "pods")
            open_now = {what.resource for what in (*here.management.streams, *here.child.streams)}
            assert open_now == {watched.plural for watched in WATCHED} - {"leases"}

    run(scenario())
