"""Manual and composite providers on a real API server: a toggle that lets go by itself, and logic over others."""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests import builders
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.waiting import wait_until
from tests.live import product
from tests.live.product import Process, World

NAMESPACE, USER = "overrides", "test:overrides"
Status = dict[str, Any]


@pytest.fixture(scope="module")
def world(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The provider process with every kind, and nothing else of ours."""
    folder = tmp_path_factory.mktemp("provider")
    product.install(control_plane)
    kubeconfig = control_plane.kubeconfig(USER, product.ADMINS)
    line = [sys.executable, "-m", "fivespot", "provider", "run", "--kubeconfig", str(kubeconfig)]
    # The other modules of this control plane have a provider process of their own, with the Lease.
    process = Process([*line, "--lease-name", NAMESPACE], folder / "provider.log")
    process.start()
    running = World(control_plane, folder, process, process, process)
    running.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    yield running
    assert process.stop() == 0


def _in_namespace(body: dict[str, Any]) -> dict[str, Any]:
    body["metadata"]["namespace"] = NAMESPACE
    return body


def manual(name: str, **spec: Any) -> dict[str, Any]:
    return _in_namespace(builders.provider("ManualSpotSchedule", name, **spec))


def composite(name: str, operator: str, *members: tuple[str, str]) -> dict[str, Any]:
    references = [builders.reference(called, kind=kind) for kind, called in members]
    return _in_namespace(builders.provider("CompositeSpotSchedule", name, **{operator: references}))


def always(name: str, *, active: bool) -> dict[str, Any]:
    days = ["mon-sun"] if active else []
    return _in_namespace(
        builders.provider("TimeBasedSpotSchedule", name, daysOfWeek=days, hoursOfDay=["0-23"])
    )


def status(world: World, kind: str, name: str) -> Status:
    found: Status = (world.get(NAMESPACE, kind, name) or {}).get("status") or {}
    return found


def ready(found: Status) -> dict[str, Any]:
    return next((entry for entry in found.get("conditions", []) if entry["type"] == "Ready"), {})


def says(world: World, kind: str, name: str, answer: bool | None, reason: str) -> Status:
    """Wait until it does; None: not Ready."""

    def check() -> bool:
        found = status(world, kind, name)
        expected = "True" if answer is not None else "False"
        same = answer is None or found.get("active") is answer
        return same and (ready(found).get("status"), ready(found).get("reason")) == (expected, reason)

    try:
        wait_until(check, seconds=20, what=f"{kind}/{name}")
    except TimeoutError as error:
        raise AssertionError(f"{kind}/{name} says {status(world, kind, name)}") from error
    return status(world, kind, name)


def test_an_override_in_front_of_a_schedule_lets_go_by_itself(world: World) -> None:
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=6)
    world.apply(
        manual("tonight", active=True, until=f"{until:%Y-%m-%dT%H:%M:%SZ}", then="Abstain"),
        always("never", active=False),
        composite("front", "firstOf", ("ManualSpotSchedule", "tonight"), ("TimeBasedSpotSchedule", "never")),
    )
    found = says(world, "css", "front", answer=True, reason="MembersActive")
    assert found["nextTransitionTime"] == f"{until:%Y-%m-%dT%H:%M:%SZ}"
    assert "effectiveTimezone" not in found
    found = says(world, "css", "front", answer=False, reason="MembersInactive")
    changed = datetime.fromisoformat(found["lastTransitionTime"])
    assert until <= changed <= until + timedelta(seconds=2)
    over = says(world, "mss", "tonight", answer=None, reason="Expired")
    # What it said stands, so that whoever refers to it alone holds.
    assert over["active"] is True


def test_a_member_that_changes_wakes_what_is_made_of_it(world: World) -> None:
    world.apply(
        manual("one", active=True),
        manual("two", active=True),
        composite("both", "allOf", ("ManualSpotSchedule", "one"), ("ManualSpotSchedule", "two")),
        composite("above", "not", ("CompositeSpotSchedule", "both")),
    )
    says(world, "css", "above", answer=False, reason="MembersInactive")
    world.patch(NAMESPACE, "mss", "two", {"spec": {"active": False}})
    says(world, "css", "both", answer=False, reason="MembersInactive")
    found = says(world, "css", "above", answer=True, reason="MembersActive")
    assert "CompositeSpotSchedule/both says inactive" in ready(found)["message"]


def test_a_member_that_goes_is_no_answer_and_one_that_comes_is(world: World) -> None:
    world.apply(manual("there", active=True), composite("on-it", "allOf", ("ManualSpotSchedule", "there")))
    says(world, "css", "on-it", answer=True, reason="MembersActive")
    world.plane.kubectl("delete", "mss", "there", "-n", NAMESPACE)
    found = says(world, "css", "on-it", answer=None, reason="MemberUnresolved")
    assert found["active"] is True
    assert "ManualSpotSchedule/there does not exist" in ready(found)["message"]
    world.apply(manual("there", active=False))
    says(world, "css", "on-it", answer=False, reason="MembersInactive")


def test_a_circle_is_named_in_all_of_it_and_heals(world: World) -> None:
    world.apply(
        composite("ring-a", "allOf", ("CompositeSpotSchedule", "ring-b")),
        composite("ring-b", "allOf", ("CompositeSpotSchedule", "ring-a")),
    )
    for name in ("ring-a", "ring-b"):
        found = says(world, "css", name, answer=None, reason="ReferenceCycle")
        assert "CompositeSpotSchedule/ring-a -> " in ready(found)["message"]
    world.apply(
        manual("way-out", active=True), composite("ring-b", "allOf", ("ManualSpotSchedule", "way-out"))
    )
    for name in ("ring-b", "ring-a"):
        says(world, "css", name, answer=True, reason="MembersActive")


def test_changes_are_told_as_events_and_nothing_is_written_in_between(world: World) -> None:
    world.apply(manual("told", active=False))
    says(world, "mss", "told", answer=False, reason="SwitchedOff")
    world.apply(composite("told", "anyOf", ("ManualSpotSchedule", "told")))
    says(world, "css", "told", answer=False, reason="MembersInactive")
    world.patch(NAMESPACE, "mss", "told", {"spec": {"active": True}})
    says(world, "css", "told", answer=True, reason="MembersActive")

    def events() -> set[tuple[str, str]]:
        found = world.get(NAMESPACE, "events.events.k8s.io")
        return {
            (event["regarding"]["kind"], event["reason"])
            for event in found
            if event["regarding"]["name"] == "told"
        }

    expected = {("ManualSpotSchedule", "WindowOpened"), ("CompositeSpotSchedule", "WindowOpened")}
    wait_until(lambda: events() == expected, seconds=20, what="both are told")
    written = [
        event["objectRef"]["resource"]
        for event in world.writes(USER)
        if event["objectRef"].get("name") == "told"
    ]
    # Each has said so once when it came, and once when it changed.
    assert sorted(written) == ["compositespotschedules"] * 2 + ["manualspotschedules"] * 2
