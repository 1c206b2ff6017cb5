"""Writes whose outcome nobody knows: each was done, the answer was lost, and nothing is done twice."""

import asyncio

import pytest

from fivespot.adapters.kube.electing import Timing
from fivespot.adapters.kube.elector import Elector
from fivespot.core.names import RECLAIM_REQUESTED, RECLAIM_REQUESTED_AT
from tests.fakeapi import fake_api
from tests.fakeapi.faults import Answer, Cut, MuteStream, RequestEffect
from tests.faults.lives import lab
from tests.faults.setting import DESK, NAMESPACE, HandClock, gateway_to, install, run, until_open
from tests.faults.site import BOOTSTRAPS, CAPI, HOSTS, MACHINES, Site, site
from tests.faults.virtual import VirtualClock, run_virtually

LOST = {
    "500": Answer(500, "InternalError", after=True),
    "503": Answer(503, "ServiceUnavailable", after=True),
    "504": Answer(504, "Timeout", after=True),
    "a proxy's 502": Answer(502, body=b"<html>Bad Gateway</html>", after=True),
    "a cut": Cut(after=True),
}
REFUSED = {
    "500": Answer(500, "InternalError"),
    "503": Answer(503, "ServiceUnavailable"),
    "429": Answer(429, "TooManyRequests"),
    "401": Answer(401, "Unauthorized"),
    "409": Answer(409, "Conflict"),
    "a cut": Cut(),
}


MANAGED: dict[str, dict[str, str]] = {
    "a finalizer": {"verb": "patch", "resource": MACHINES, "subresource": ""},
    "a status": {"verb": "patch", "resource": MACHINES, "subresource": "status"},
    "a bootstrap object": {"verb": "create", "resource": BOOTSTRAPS},
    "a host": {"verb": "create", "resource": HOSTS},
    "a Machine": {"verb": "create", "resource": CAPI},
    "a Machine's end": {"verb": "delete", "resource": CAPI},
    "an Event": {"verb": "create", "resource": "events.events.k8s.io"},
}
IN_CHILD: dict[str, dict[str, str]] = {
    "a cordon": {"verb": "patch", "resource": "nodes"},
    "an eviction": {"verb": "create", "resource": "pods", "subresource": "eviction"},
}


async def a_day(effect: RequestEffect, *writes: str) -> None:
    """A machine comes and goes, and the answer to the first of each of these writes is lost."""
    async with site() as here:
        rules = [
            server.faults.add(effect, times=1, **table[write])
            for server, table in ((here.management, MANAGED), (here.child, IN_CHILD))
            for write in writes
            if write in table
        ]
        here.add_machine()
        await here.until_phase("Active")
        for number in range(3):
            here.add_pod(f"pod-{number}")
        here.schedule(active=False)
        await here.until_phase("Inactive")
        await here.rest(20)
        assert [rule.hits for rule in rules] == [1] * len(writes)
        once_each(here)


def once_each(here: Site) -> None:
    """Everything has happened once, as on a day without faults."""
    assert [here.created(label) for label in (BOOTSTRAPS, HOSTS, CAPI)] == [1, 1, 1]
    assert [here.there(label) for label in (BOOTSTRAPS, HOSTS, CAPI, "nodes", "pods")] == [[]] * 5
    # A Machine that is quick is there before the first status says that it is awaited.
    assert [phase for phase in here.phases() if phase != "Pending"] == ["Active", "ShuttingDown", "Inactive"]
    evicted = [entry.asked.name for entry in here.child.writes if entry.asked.subresource and entry.done]
    assert sorted(evicted) == ["pod-0", "pod-1", "pod-2"]
    assert sum(entry.asked.verb == "delete" and entry.done for entry in here.management.writes) == 1
    machines = [
        change for change in here.changes if change.resource == MACHINES and change.old and change.new
    ]
    finalizers = [
        (change.old or {})["metadata"].get("finalizers") != (change.new or {})["metadata"].get("finalizers")
        for change in machines
    ]
    assert finalizers.count(True) == 1
    idle = [
        change
        for change, finalizer in zip(machines, finalizers, strict=True)
        if not finalizer and (change.old or {}).get("status") == (change.new or {}).get("status")
    ]
    assert not idle, "a status is not written twice"


def test_a_day_without_faults_is_what_the_others_are_held_against() -> None:
    run(a_day(Cut()))


@pytest.mark.parametrize("write", [*MANAGED, *IN_CHILD])
def test_a_write_whose_answer_was_lost_is_not_done_twice(write: str) -> None:
    run(a_day(Cut(after=True), write))


@pytest.mark.parametrize("label", [BOOTSTRAPS, HOSTS, CAPI])
def test_what_was_created_unheard_and_unseen_is_found_to_be_ours(label: str) -> None:
    """No stream tells of it either: the second try meets what the first has made."""

    async def scenario() -> None:
        async with site() as here:
            here.add_machine("first")
            await here.until_phase("Active", name="first")
            plural = label.partition(".")[0]
            await until_open(here.management, plural)
            told = asyncio.Event()
            here.management.faults.on_streams(MuteStream(told), resource=label)
            here.management.faults.add(Cut(after=True), verb="create", resource=label)
            here.add_machine()

            await here.until(lambda: bool((here.machine().get("status") or {}).get("machineRef")))
            assert [e.code for e in here.management.audit if e.asked.verb == "create"].count(409) == 1
            told.set()
            await here.until_phase("Active")
            assert here.created(label) == 2
            assert sorted(here.there(label)) == [DESK, "first"]

    run(scenario())


@pytest.mark.parametrize("effect", LOST.values(), ids=LOST)
def test_a_day_on_which_the_first_answer_to_every_write_is_lost_comes_to_its_end(
    effect: RequestEffect,
) -> None:
    run(a_day(effect, *MANAGED, *IN_CHILD))


@pytest.mark.parametrize("effect", REFUSED.values(), ids=REFUSED)
def test_a_day_on_which_every_write_is_refused_at_first_comes_to_its_end(effect: RequestEffect) -> None:
    run(a_day(effect, *MANAGED, *IN_CHILD))


# A request to reclaim is cleared by a JSON patch that tests what it removes


@pytest.mark.parametrize("effect", LOST.values(), ids=LOST)
def test_an_old_request_whose_clearing_was_done_unheard_is_cleared_once_and_not_acted_on(
    effect: RequestEffect,
) -> None:
    async def scenario() -> None:
        async with site() as here:
            asked = {RECLAIM_REQUESTED: "true", RECLAIM_REQUESTED_AT: "2026-03-02T11:00:00Z"}
            node = {"metadata": {"name": DESK, "annotations": asked}, "spec": {"providerID": f"x://{DESK}"}}
            conditions = [{"type": "Ready", "status": "True"}]
            here.child.create("v1", "nodes", {**node, "status": {"conditions": conditions}})
            rule = here.child.faults.add(effect, verb="patch", resource="nodes")
            here.add_machine(killIfCommands=["game"])
            await here.until_phase("Active")
            await here.rest(60)
            found = here.child.world.store.get("nodes", ("", DESK))
            assert found is not None
            assert not found["metadata"].get("annotations")
            assert rule.hits == 1
            assert [entry.asked.verb for entry in here.child.writes if entry.done] == ["patch"]
            assert {*here.phases()} <= {"Pending", "Active"}

    run(scenario())


# Leadership is a PUT


@pytest.mark.parametrize("effect", LOST.values(), ids=LOST)
def test_a_renewal_that_was_done_unheard_loses_no_leadership_and_takes_none(effect: RequestEffect) -> None:
    async def scenario() -> None:
        clock = HandClock()
        async with fake_api(now=clock.now) as server, gateway_to(server) as gateway:
            install(server)
            elector = Elector(
                gateway.urgent, clock, namespace=NAMESPACE, name="leader", identity="us", timing=Timing()
            )
            running = asyncio.ensure_future(elector.run())
            async with clock.passing(0.05):
                await elector.won()
                renewed = [server.faults.add(effect, verb="update", resource="leases") for _ in range(3)]
                for rule in renewed:
                    await rule.hit()
                written = sum(entry.asked.verb == "update" for entry in server.writes)
                while sum(entry.asked.verb == "update" for entry in server.writes) < written + 3:
                    await clock.sleep_until(clock.monotonic() + 0.5)
                    assert elector.leads()
            assert not running.done()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            lease = server.world.store.get("leases.coordination.k8s.io", (NAMESPACE, "leader"))
            assert lease is not None
            assert lease["spec"]["leaseTransitions"] == 0

    run(scenario())


# An eviction is answered with no pod


def test_pods_whose_eviction_no_stream_tells_of_are_not_evicted_again() -> None:
    """Their stream is half open: what the answers have said is all that is known of them, whatever else wakes the machine."""

    async def story(clock: VirtualClock) -> None:
        async with lab(clock) as here:
            await here.live()
            here.add_machine()
            await here.until_phase("Active")
            for number in range(3):
                here.pod(f"web-{number}", grace=600)
                here.others.slow_pods.add(f"web-{number}")
            go_on = asyncio.Event()
            here.child.faults.add(MuteStream(go_on), verb="watch", resource="pods")
            here.schedule(active=False)
            await here.until(lambda: len(here.evicted()) == 3)
            for number in range(5):
                here.change_node(annotations={"looked-at": str(number)})
                await here.rest(5)
            go_on.set()
            await here.until_phase("Inactive")
            assert here.evicted() == ["web-0", "web-1", "web-2"]
            await here.end()

    run_virtually(story)
