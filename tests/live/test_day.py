"""The main job on real input: our own processes, a real API server, the shipped CRDs, machines through a day."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fivespot.core.instant import parse_instant
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.waiting import wait_until
from tests.live import product
from tests.live.product import CONTROLLER, IN_CHILD, PROVIDER, World, machine

NAMES = ("desk-1", "desk-2", "desk-3")
CREATED = ("machines.cluster.x-k8s.io", "k0sworkerconfigs", "remotemachines")


@pytest.fixture(scope="module")
def world(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The product at work."""
    with product.world(control_plane, tmp_path_factory.mktemp("product")) as running:
        yield running


@pytest.fixture(scope="module")
def story(world: World) -> tuple[list[dict[str, Any]], datetime, datetime]:
    """Machines on a window that opens and closes by itself, told in advance by `simulate` and lived meanwhile."""
    product.namespace_with_cluster(world, "story", "grid")
    opens = product.next_full_minute(5)
    closes = opens + timedelta(minutes=1)
    documents = [
        product.schedule("story", opens, closes),
        machine("story", "desk-8"),
        machine("story", "desk-9"),
    ]
    world.apply(*documents)
    return documents, opens, closes


@pytest.mark.usefixtures("story")
def test_a_fleet_lives_through_a_day(world: World) -> None:
    """Opens at the minute, holds without its provider, drains past a budget, and obeys the precedence."""
    day = "day"
    product.namespace_with_cluster(world, day, "grid")
    taint = {"key": "example.com/borrowed", "value": "true", "effect": "NoSchedule"}
    opens = product.next_full_minute(5)
    world.apply(
        product.schedule(day, opens, opens + timedelta(hours=2)),
        *(machine(day, name, nodeTaints=[taint]) for name in NAMES),
    )
    world.wait_for_phases(
        day, dict.fromkeys(NAMES, "Inactive"), seconds=(opens - datetime.now(UTC)).total_seconds()
    )
    assert world.get(day, "machines.cluster.x-k8s.io") == []

    _the_window_opens(world, day, opens)
    _it_cost_no_more_than_it_must(world, day, opens)
    _the_provider_is_deleted(world, day)
    _it_comes_back_closed(world, day)
    _people_overrule_it(world, day)


def _the_window_opens(world: World, day: str, opens: datetime) -> None:
    world.wait_for_phases(day, dict.fromkeys(NAMES, "Active"), seconds=90)
    machines = {sm["metadata"]["name"]: sm for sm in world.get(day, "sm")}
    for kind in CREATED:
        items = world.get(day, kind)
        assert sorted(item["metadata"]["name"] for item in items) == sorted(NAMES)
        for item in items:
            meta = item["metadata"]
            owner = next(o for o in meta["ownerReferences"] if o["kind"] == "ScheduledMachine")
            assert owner["uid"] == machines[meta["name"]]["metadata"]["uid"]
            assert owner["controller"] is (kind == CREATED[0])
            assert meta["labels"]["5spot.finos.org/scheduled-machine"] == meta["name"]
            assert meta["labels"]["cluster.x-k8s.io/cluster-name"] == "grid"
            created = parse_instant(meta["creationTimestamp"])
            assert opens <= created <= opens + timedelta(seconds=5)
    for name in NAMES:
        taints = world.get(day, "node", name)["spec"]["taints"]
        assert {"key": "example.com/borrowed", "value": "true", "effect": "NoSchedule"} in taints
        assert world.condition(day, name, "NodeTainted")["status"] == "True"
    shown = world.plane.kubectl("get", "sm", "-n", day)
    assert re.search(
        r"NAME +PHASE +READY +INSCHEDULE +ENABLED +SCHEDULE +REASON +NEXT +KILLSWITCH +AGE", shown
    )
    assert re.search(r"desk-1 +Active +true +true +true +TimeBasedSpotSchedule +Provider +\d{4}-", shown)
    described = world.plane.kubectl("describe", "sm", "-n", day, "desk-1")
    assert "ReconcileSucceeded" in described.partition("Events:")[2]


def _it_cost_no_more_than_it_must(world: World, day: str, opens: datetime) -> None:
    """Three creates, then a status that says it all; nothing was read for it: the streams had told."""
    targets = [
        event.get("objectRef", {}) | {"verb": event["verb"]}
        for event in world.requests(CONTROLLER, since=opens)
    ]
    asked = [target for target in targets if target.get("namespace") == day]
    for name in NAMES:
        # A list has no name.
        of_it = [target for target in asked if target.get("name") in (name, None)]
        assert [_call(target) for target in of_it[:4]] == [
            "create k0sworkerconfigs",
            "create remotemachines",
            "create machines",
            "patch scheduledmachines/status",
        ]


def _call(target: dict[str, Any]) -> str:
    return f"{target['verb']} {'/'.join(filter(None, (target['resource'], target.get('subresource'))))}"


def _the_provider_is_deleted(world: World, day: str) -> None:
    before = datetime.now(UTC)
    uids = {item["metadata"]["uid"] for item in world.get(day, CREATED[0])}
    world.plane.kubectl("delete", "tbss", "nights", "-n", day)
    for name in NAMES:
        wait_until(
            lambda of=name: (
                world.condition(day, of, "SpotScheduleResolved").get("reason") == "ProviderNotFound"
            ),
            seconds=30,
            what=f"{name} says that its provider is gone",
        )
        condition = world.condition(day, name, "SpotScheduleResolved")
        assert condition["status"] == "False"
        assert "holding active from TimeBasedSpotSchedule/nights" in condition["message"]
        assert world.get(day, "sm", name)["status"]["decidedBy"] == "Held"
    assert world.phases(day) == dict.fromkeys(NAMES, "Active")
    assert {item["metadata"]["uid"] for item in world.get(day, CREATED[0])} == uids
    resources = {
        (event["objectRef"]["resource"], event["verb"]) for event in world.writes(CONTROLLER, since=before)
    }
    assert resources <= {("scheduledmachines", "patch")}


def _it_comes_back_closed(world: World, day: str) -> None:
    world.apply(
        _budget(day, "db", "db", at_least=2),
        *(_pod(day, f"db-{name}", name, app="db") for name in NAMES),
        _pod(day, "free", "desk-1", app="web"),
    )
    wait_until(
        lambda: world.get(day, "pdb", "db").get("status", {}).get("disruptionsAllowed") == 1,
        seconds=30,
        what="the budget has seen its pods",
    )
    world.apply(product.closed_now(day))

    # One of three may go; the other two are protected, and their machines say so.
    def protected() -> list[str]:
        shutdowns = [sm["status"].get("shutdown") or {} for sm in world.get(day, "sm")]
        return [text for shutdown in shutdowns for text in shutdown.get("blockedBy", [])]

    wait_until(lambda: len(protected()) == 2, seconds=30, what="two pods are protected by the budget")
    assert all(text.startswith(f"{day}/db-desk-") for text in protected())
    wait_until(
        lambda: "Inactive" in world.phases(day).values(), seconds=30, what="the unprotected machine is out"
    )
    assert sorted(world.phases(day).values()) == ["Inactive", "ShuttingDown", "ShuttingDown"]
    events = world.plane.kubectl("get", "events", "-n", day)
    assert "DrainBlocked" in events

    world.patch(day, "pdb", "db", {"spec": {"minAvailable": 0}})
    world.wait_for_phases(day, dict.fromkeys(NAMES, "Inactive"))
    for kind in (*CREATED, "nodes", "pods"):
        assert world.get(day, kind) == [] or kind == "nodes"
    assert not [node for node in world.get(day, "nodes") if node["metadata"]["name"] in NAMES]
    _removed_in_order(world, day)


def _removed_in_order(world: World, day: str) -> None:
    """Every eviction of a machine's pods precedes the deletion of its Machine, and nothing else is deleted by us."""
    for name in NAMES:
        mine = [
            event
            for event in world.writes(CONTROLLER, IN_CHILD)
            if event["objectRef"].get("namespace") == day and name in event["objectRef"].get("name", "")
        ]
        evicted = [i for i, e in enumerate(mine) if e["objectRef"].get("subresource") == "eviction"]
        deleted = [i for i, e in enumerate(mine) if e["verb"] == "delete"]
        assert evicted
        assert [mine[i]["objectRef"]["resource"] for i in deleted] == ["machines"]
        assert max(evicted) < min(deleted)


def _people_overrule_it(world: World, day: str) -> None:
    world.apply(product.open_now(day))
    world.wait_for_phases(day, dict.fromkeys(NAMES, "Active"))

    world.patch(day, "sm", "desk-1", {"spec": {"enabled": False}})
    world.patch(day, "sm", "desk-2", {"spec": {"killSwitch": True}})
    world.wait_for_phases(day, {"desk-1": "Disabled", "desk-2": "Terminated", "desk-3": "Active"})
    world.patch(day, "sm", "desk-1", {"spec": {"killSwitch": True}})
    world.wait_for_phases(day, {"desk-1": "Terminated"})
    assert world.get(day, "sm", "desk-1")["status"]["decidedBy"] == "KillSwitch"
    world.patch(day, "sm", "desk-1", {"spec": {"killSwitch": False}})
    world.wait_for_phases(day, {"desk-1": "Disabled"})
    world.patch(day, "sm", "desk-1", {"spec": {"enabled": True}})
    world.patch(day, "sm", "desk-2", {"spec": {"killSwitch": False}})
    world.wait_for_phases(day, dict.fromkeys(NAMES, "Active"))

    world.plane.kubectl("delete", "sm", "desk-3", "-n", day, "--timeout=60s")
    assert world.get(day, CREATED[0], "desk-3") is None
    assert world.get(day, "remotemachines", "desk-3") is None


def test_a_strangers_machine_of_that_name_is_never_touched(world: World) -> None:
    product.namespace_with_cluster(world, "strangers", "grid")
    theirs = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": {"name": "desk-1", "namespace": "strangers"},
        "spec": {"clusterName": "grid", "note": "not ours"},
    }
    world.stand_in.stop()
    try:
        world.apply(theirs)
        before = world.get("strangers", CREATED[0], "desk-1")
        world.apply(product.open_now("strangers"), machine("strangers", "desk-1"))
        wait_until(
            lambda: world.condition("strangers", "desk-1", "Ready").get("reason") == "NameConflict",
            seconds=60,
            what="the conflict is reported",
        )
        assert world.get("strangers", CREATED[0], "desk-1") == before
        world.plane.kubectl("delete", "sm", "desk-1", "-n", "strangers", "--timeout=60s")
        assert world.get("strangers", CREATED[0], "desk-1") == before
    finally:
        world.plane.kubectl("delete", CREATED[0], "desk-1", "-n", "strangers", "--ignore-not-found")
        world.stand_in.start()


def test_a_pod_that_cannot_be_evicted_at_all_keeps_no_other_waiting(world: World) -> None:
    """The API server refuses to evict a pod with two budgets for good; the other one waits for its own budget only."""
    namespace = "budgets"
    product.namespace_with_cluster(world, namespace, "grid")
    world.apply(product.open_now(namespace), machine(namespace, "box-b"))
    world.wait_for_phases(namespace, {"box-b": "Active"})
    world.apply(
        *(_budget(namespace, name, app) for name, app in (("a1", "a"), ("a2", "a"), ("b", "b"))),
        *(_pod(namespace, f"pod-{app}", "box-b", app=app) for app in ("a", "b")),
    )
    wait_until(
        lambda: world.get(namespace, "pdb", "b").get("status", {}).get("currentHealthy"),
        seconds=30,
        what="the budget has seen its pod",
    )
    world.apply(product.closed_now(namespace))

    def blocked() -> list[str]:
        return (world.get(namespace, "sm", "box-b")["status"].get("shutdown") or {}).get("blockedBy") or []

    named = ["budgets/pod-b: PodDisruptionBudget b"]
    wait_until(lambda: blocked() == named, seconds=20, what="the protected pod is named")
    assert any("evict budgets/pod-a" in entry["message"] for entry in world.controller.logged())
    world.plane.kubectl("delete", "pdb", "b", "-n", namespace)
    wait_until(
        lambda: world.get(namespace, "pod", "pod-b") is None, seconds=20, what="the protected pod is gone"
    )
    assert world.get(namespace, "pod", "pod-a") is not None
    world.plane.kubectl("delete", "pdb", "--all", "-n", namespace)
    world.wait_for_phases(namespace, {"box-b": "Inactive"})


@pytest.mark.parametrize("writes", [1, 2, 3, 4, 5, 7, 9])
def test_a_controller_killed_after_any_write_ends_in_the_same_place(
    world: World, story: tuple[list[dict[str, Any]], datetime, datetime], writes: int
) -> None:
    _, _, closes = story
    namespace = f"crash-{writes}"
    product.namespace_with_cluster(world, namespace, "grid")
    world.apply(product.closed_now(namespace), machine(namespace, f"box-{writes}"))
    name = f"box-{writes}"
    world.wait_for_phases(namespace, {name: "Inactive"})
    for document, phase, count in (
        (product.open_now(namespace), "Active", 1),
        (product.closed_now(namespace), "Inactive", 0),
    ):
        # Not while the story on the side has its turn: who is dead then tells it late, or not at all.
        wait_until(
            lambda: not timedelta(seconds=-2) < closes - datetime.now(UTC) < timedelta(seconds=5),
            seconds=20,
            what="the story's turn is over",
        )
        begun = datetime.now(UTC)
        world.apply(document)
        _wait_for_writes(world, namespace, begun, writes, until=phase)
        world.crash_controller()
        world.wait_for_phases(namespace, {name: phase})
        assert len(world.get(namespace, CREATED[0])) == count
        created = [
            e
            for e in _about(world, namespace, begun)
            if e["verb"] == "create" and e["responseStatus"]["code"] < 300
        ]
        assert len(created) in (0, 3), "each object is created once"


def _wait_for_writes(world: World, namespace: str, since: datetime, count: int, *, until: str) -> None:
    """Until the controller has written so often, or is done already."""
    wait_until(
        lambda: len(_about(world, namespace, since)) >= count or until in world.phases(namespace).values(),
        seconds=30,
        what=f"{count} writes",
        every=0.005,
    )


def _about(world: World, namespace: str, since: datetime) -> list[dict[str, Any]]:
    return [e for e in world.writes(CONTROLLER, since=since) if e["objectRef"].get("namespace") == namespace]


def test_the_live_story_is_the_one_that_was_simulated(
    world: World, story: tuple[list[dict[str, Any]], datetime, datetime], tmp_path: Path
) -> None:
    documents, opens, closes = story
    world.wait_for_phases("story", {"desk-8": "Inactive", "desk-9": "Inactive"}, seconds=150)
    wait_until(lambda: datetime.now(UTC) > closes, seconds=150, what="the window has closed")
    world.wait_for_phases("story", {"desk-8": "Inactive", "desk-9": "Inactive"})
    manifests = tmp_path / "story.json"
    manifests.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
    told = json.loads(
        subprocess.run(
            [
                *(sys.executable, "-m", "fivespot", "simulate", str(manifests), "--output", "json"),
                *("--from", f"{opens - timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}", "--to", "4m"),
                *("--provision-delay", "1s", "--join-delay", "1s", "--remove-delay", "1s"),
            ],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    )
    lived = [
        (entry["timestamp"], entry["machine"].partition("/")[2], entry["phase"])
        for entry in world.controller.logged()
        if "phase" in entry and entry["machine"].startswith("story/")
    ]
    assert [entry["name"] for entry in told["machines"]] == ["desk-8", "desk-9"]
    for entry in told["machines"]:
        name = entry["name"]
        simulated = [interval["phase"] for interval in entry["intervals"]]
        observed = [after for _, of, after in lived if of == name]
        assert observed == simulated
        # What the schedule decides happens within a second of the simulated instant.
        for phase, boundary in (("Pending", opens), ("ShuttingDown", closes)):
            (seen,) = [at for at, of, after in lived if of == name and after == phase]
            late = datetime.fromisoformat(seen) - boundary
            assert timedelta(0) <= late <= timedelta(seconds=2)
            (start,) = [i["from"] for i in entry["intervals"] if i["phase"] == phase]
            assert parse_instant(start) == boundary


def test_at_rest_nothing_is_written(world: World) -> None:
    """Twenty seconds with nothing going on: no write by any of our processes, but the renewal of their Leases."""
    wait_until(
        lambda: (
            not world.writes(CONTROLLER, IN_CHILD, PROVIDER, since=datetime.now(UTC) - timedelta(seconds=3))
        ),
        seconds=60,
        what="the last write is three seconds old",
    )
    begun = datetime.now(UTC)
    quiet = begun + timedelta(seconds=20)
    wait_until(lambda: datetime.now(UTC) >= quiet, seconds=30, what="twenty seconds", every=0.5)
    assert world.writes(CONTROLLER, IN_CHILD, PROVIDER, since=begun) == []


def test_both_processes_end_in_order_on_sigterm(world: World) -> None:
    for process in (world.controller, world.provider):
        assert process.stop() == 0
        assert "Traceback" not in process.log.read_text()
        process.start()


def _budget(namespace: str, name: str, app: str, at_least: int = 1) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"minAvailable": at_least, "selector": {"matchLabels": {"app": app}}},
    }


def _pod(namespace: str, name: str, node: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "image": "none"}],
            "terminationGracePeriodSeconds": 5,
            "tolerations": [{"operator": "Exists"}],
        },
    }
