"""`5spot explain`: why a machine is up or down, at a glance."""

import json
from pathlib import Path

import pytest

from tests import builders
from tests.cli.running import EXAMPLES, one_line, process, run, written

DUMP = Path(__file__).with_name("dump.yaml")


def explained(machine: str, path: Path, *arguments: str) -> str:
    """What is said about a machine."""
    done = run("explain", machine, "-f", path, *arguments)
    assert done.status == 0, done.err
    return done.out


def test_a_manifest_is_explained_with_answer_age_and_next_change() -> None:
    done = process("explain", "sm/desk-7", "-f", str(EXAMPLES), "--at", "2026-03-02T22:00:00Z")
    assert (done.status, done.err) == (0, "")
    told = done.out
    assert (
        told.splitlines()[0] == "floor-2/desk-7 should be up: TimeBasedSpotSchedule/out-of-hours says active"
    )
    assert one_line(told, "  provider  ").endswith(
        "TimeBasedSpotSchedule/out-of-hours: Active, computed for this instant"
    )
    assert one_line(told, "since 2026-03-02T18:30:00Z (Mon 2026-03-02 18:30:00 +00:00), 3h30m ago")
    assert one_line(told, "  next  ").endswith(
        "down 2026-03-03T06:30:00Z (Tue 2026-03-03 06:30:00 +00:00), in 8h30m"
    )
    assert one_line(told, "  controller  ").endswith(
        "to be created: K0sWorkerConfig desk-7, RemoteMachine desk-7, Machine desk-7"
    )
    assert one_line(told, "  phase  ").endswith("none is stored")


def test_the_whole_precedence_is_shown_and_the_step_that_decides_is_marked() -> None:
    told = explained("sm/floor-2/desk-7", EXAMPLES, "--at", "2026-03-02T12:00:00Z")
    steps = told[told.index("The first of these") :].splitlines()[1:]
    assert [line[4:22].strip().split()[0] for line in steps] == [
        *("Deleted", "KillSwitch", "Reclaim", "Disabled", "ClusterDeleting", "Provider"),
    ]
    assert [line.startswith("  =>") for line in steps] == [False] * 5 + [True]


@pytest.mark.parametrize(
    ("name", "first", "then"),
    [
        ("desk-11", "should be up: TimeBasedSpotSchedule/nights says active", "down 2026-11-30T13:02:00Z"),
        ("desk-21", "should be down: TimeBasedSpotSchedule/nights says inactive", "up 2026-11-30T13:02:00Z"),
        ("desk-31", "should be up: TimeBasedSpotSchedule/nights does not exist", "when TimeBasedSpotSchedule/nights can be read again"),
        ("desk-41", "should be down: held after a reclaim: process-match: java", "when somebody releases it"),
        ("desk-42", "should be down: spec.enabled is false", "when somebody sets spec.enabled to true"),
        ("desk-43", "should be down: spec.killSwitch is true", "when somebody sets spec.killSwitch to false"),
    ],
)  # fmt: skip
def test_a_dump_of_a_cluster_is_explained_as_it_is_stored(name: str, first: str, then: str) -> None:
    told = explained(f"sm/{name}", DUMP)
    assert first in told.splitlines()[0]
    assert then in one_line(told, "  next  ")


def test_a_removal_in_progress_tells_its_bounds_and_what_protects_the_pods() -> None:
    told = explained("sm/desk-21", DUMP)
    assert one_line(told, "  phase  ").endswith("ShuttingDown, as it is stored")
    assert one_line(told, "  removal  ", "Graceful, since 2026-11-30T11:02:55Z")
    assert one_line(told, "drains until 2026-11-30T11:07:55Z")
    assert one_line(told, "  1 pod left")
    assert one_line(told, "  protected: floor-2/db-0: The disruption budget db")
    assert one_line(told, "  controller  ", "draining Node desk-21")


def test_a_held_machine_tells_what_is_held_and_from_whom() -> None:
    told = explained("sm/desk-31", DUMP)
    assert "Unresolved(ProviderNotFound)" in one_line(told, "  provider  ")
    assert one_line(told, "  held  ").endswith("active, from TimeBasedSpotSchedule/nights; it counts now")


def test_a_reclaim_tells_its_reason_and_how_it_is_released() -> None:
    told = explained("sm/desk-41", DUMP)
    assert one_line(told, "  reclaim  ").endswith("held out: process-match: java")
    assert "5spot.finos.org/reclaim-release=" in one_line(told, "  controller  ")


def test_with_an_instant_the_schedule_is_computed_and_without_one_its_status_counts() -> None:
    stored = json.loads(explained("sm/desk-21", DUMP, "-o", "json"))
    assert (stored["up"], stored["verdict"], stored["verdictComputed"]) == (False, "Inactive", False)
    assert (stored["verdictSince"], stored["nextTransition"]) == (
        "2026-11-30T11:02:55Z",
        "2026-11-30T13:02:00Z",
    )
    later = json.loads(explained("sm/desk-21", DUMP, "-o", "json", "--at", "2026-11-30T13:30:00Z"))
    assert (later["up"], later["verdict"], later["verdictComputed"]) == (True, "Active", True)
    assert (later["verdictSince"], later["until"]) == ("2026-11-30T13:02:00Z", "2026-11-30T14:02:00Z")


def test_a_provider_that_is_not_ready_in_a_dump_is_believed(tmp_path: Path) -> None:
    nights = builders.time_based()
    nights["status"] = {
        "active": True,
        "conditions": [{"type": "Ready", "status": "False", "reason": "InvalidSpec", "message": "bad hours"}],
    }
    told = explained("sm/desk-1", written(tmp_path, builders.scheduled_machine("desk-1"), nights))
    assert (
        "Unresolved(ProviderNotReady): TimeBasedSpotSchedule/nights is not Ready: InvalidSpec bad hours"
        in told
    )


def test_the_json_form_carries_the_chain_and_the_removal() -> None:
    found = json.loads(explained("sm/floor-2/desk-21", DUMP, "-o", "json"))
    assert found["machine"] == "floor-2/desk-21"
    assert [step["step"] for step in found["chain"] if step["decides"]] == ["Provider"]
    assert found["shutdown"]["remainingPods"] == 1
    assert (found["held"], found["heldFrom"], found["phase"]) == (
        False,
        "TimeBasedSpotSchedule/nights",
        "ShuttingDown",
    )
    assert found["reclaim"] is None


def test_a_name_in_two_namespaces_has_to_be_told_apart(tmp_path: Path) -> None:
    one, other = builders.scheduled_machine("desk-1"), builders.scheduled_machine("desk-1")
    other["metadata"]["namespace"] = "lab"
    path = written(tmp_path, one, other)
    done = run("explain", "sm/desk-1", "-f", path)
    assert done.status == 2
    assert done.err.splitlines()[-1].endswith("'desk-1': say which: default/desk-1, lab/desk-1")
    assert explained("sm/lab/desk-1", path).startswith("lab/desk-1 should be ")


def test_files_may_be_several_and_times_in_any_zone() -> None:
    done = run(
        "explain", "desk-7", "-f", EXAMPLES / "lab.yaml", "-f", EXAMPLES / "trading-floor.yaml",
        "--at", "2026-03-02T22:00:00Z", "--display-tz", "Asia/Tokyo",
    )  # fmt: skip
    assert done.status == 0
    assert "Tue 2026-03-03 07:00:00 +09:00, Asia/Tokyo" in done.out
