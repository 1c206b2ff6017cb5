"""The provider process of the schedule kinds against a real API server: the status contract."""

import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fivespot.core.instant import parse_instant
from tests import builders
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.waiting import wait_until
from tests.live import product
from tests.live.product import PROVIDER, Process, World

NAMESPACE = "schedules"


@pytest.fixture(scope="module")
def world(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The provider process for every schedule kind, and nothing else of ours."""
    folder = tmp_path_factory.mktemp("provider")
    product.install(control_plane)
    kubeconfig = control_plane.kubeconfig(PROVIDER, product.ADMINS)
    process = Process(
        [sys.executable, "-m", "fivespot", "provider", "run", "--kubeconfig", str(kubeconfig)],
        folder / "provider.log",
    )
    process.start()
    running = World(control_plane, folder, process, process, process)
    running.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    yield running
    assert process.stop() == 0


def _status(world: World, kind: str, name: str, until: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """The status, once it says what `until` wants."""
    found: dict[str, Any] = {}

    def check() -> bool:
        found.clear()
        found.update((world.get(NAMESPACE, kind, name) or {}).get("status") or {})
        return bool(found) and bool(until(found))

    try:
        wait_until(check, seconds=20, what=f"{kind}/{name}")
    except TimeoutError as error:
        raise AssertionError(f"{kind}/{name} says {found}") from error
    return found


def _ready(status: dict[str, Any]) -> dict[str, Any]:
    return next((entry for entry in status.get("conditions", []) if entry["type"] == "Ready"), {})


def _schedule(name: str, **spec: Any) -> dict[str, Any]:
    made = builders.time_based(name)
    made["metadata"]["namespace"] = NAMESPACE
    made["spec"] = {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"], **spec}
    return made


def test_it_says_what_is_open_and_until_when(world: World) -> None:
    now = datetime.now(UTC)
    made = product.open_now(NAMESPACE)
    made["metadata"]["name"] = "open"
    world.apply(made)
    status = _status(world, "tbss", "open", lambda s: "active" in s)
    assert status["active"] is True
    assert status["observedGeneration"] == 1
    assert status["effectiveTimezone"] == "UTC"
    assert _ready(status)["reason"] == "WindowOpen"
    due = parse_instant(status["nextTransitionTime"])
    assert due.second == 0
    assert now < due <= now + timedelta(hours=2)


def test_a_schedule_without_end_has_no_next_transition(world: World) -> None:
    world.apply(_schedule("always"))
    status = _status(world, "tbss", "always", lambda s: "active" in s)
    assert status["active"] is True
    assert "nextTransitionTime" not in status


def test_an_edit_takes_effect_at_once(world: World) -> None:
    world.apply(_schedule("edited"))
    before = _status(world, "tbss", "edited", lambda s: s.get("active") is True)
    world.patch(NAMESPACE, "tbss", "edited", {"spec": {"enabled": False}})
    after = _status(world, "tbss", "edited", lambda s: s.get("observedGeneration") == 2)
    assert after["active"] is False
    assert _ready(after)["reason"] == "WindowClosed"
    assert parse_instant(after["lastTransitionTime"]) >= parse_instant(before["lastTransitionTime"])


def test_what_only_the_engine_refuses_is_not_ready_and_leaves_the_answer_as_it_was(world: World) -> None:
    world.apply(_schedule("zone"))
    before = _status(world, "tbss", "zone", lambda s: s.get("active") is True)
    world.patch(NAMESPACE, "tbss", "zone", {"spec": {"timezone": "Europe/Atlantis"}})
    after = _status(world, "tbss", "zone", lambda s: s.get("observedGeneration") == 2)
    assert after["active"] is True
    assert after["lastTransitionTime"] == before["lastTransitionTime"]
    ready = _ready(after)
    assert (ready["status"], ready["reason"]) == ("False", "InvalidSpec")
    assert "spec.timezone" in ready["message"]
    assert "Europe/Atlantis" in ready["message"]
    world.patch(NAMESPACE, "tbss", "zone", {"spec": {"timezone": "Europe/Athens"}})
    _status(
        world, "tbss", "zone", lambda s: s.get("observedGeneration") == 3 and _ready(s)["status"] == "True"
    )


def test_sessions_have_their_own_words(world: World) -> None:
    made = builders.capital_markets("market")
    made["metadata"]["namespace"] = NAMESPACE
    made["spec"] = {"sessions": [{"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]}]}
    world.apply(made)
    status = _status(world, "cms", "market", lambda s: "active" in s)
    assert _ready(status)["reason"] == "SessionOpen"


def test_a_schedule_that_comes_back_under_its_name_is_read_anew(world: World) -> None:
    world.apply(_schedule("again"))
    _status(world, "tbss", "again", lambda s: s.get("active") is True)
    world.plane.kubectl("delete", "tbss", "again", "-n", NAMESPACE)
    world.apply(_schedule("again", enabled=False))
    _status(world, "tbss", "again", lambda s: s.get("active") is False)


def test_what_does_not_change_the_answer_is_not_written(world: World) -> None:
    world.apply(_schedule("labelled"))
    _status(world, "tbss", "labelled", lambda s: s.get("active") is True)
    begun = datetime.now(UTC)
    world.plane.kubectl("label", "tbss", "labelled", "-n", NAMESPACE, "floor=2")
    # The next schedule's answer comes after the label was seen: both are on one stream, in order.
    world.apply(_schedule("after"))
    _status(world, "tbss", "after", lambda s: s.get("active") is True)
    written = [event["objectRef"] for event in world.writes(PROVIDER, since=begun)]
    assert [ref["name"] for ref in written if ref["namespace"] == NAMESPACE] == ["after"]
