"""`5spot lint`: every finding with its place, and an exit status that a pipeline can rely on."""

import json
from pathlib import Path

import pytest

from tests import builders
from tests.cli.running import EXAMPLES, line_number, lines, one_line, process, run, written


def test_the_shipped_examples_have_no_errors_and_no_warnings() -> None:
    done = process("lint", "--strict", str(EXAMPLES))
    assert done.status == 0
    assert done.err.startswith("0 errors, 0 warnings, ")
    assert done.err.endswith("a cluster would take 4 machines and 3 providers\n")


def test_errors_come_first_then_warnings_then_notes_and_each_has_a_place(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        builders.time_based("unused", timezone="US/Eastern"),
        builders.scheduled_machine("desk-1", schedule=builders.reference("missing")),
        builders.scheduled_machine("desk-2", priority=300),
    )
    done = run("lint", path)
    assert done.status == 1
    found = done.out.splitlines()
    assert [line.split(": ")[1] for line in found] == ["error", "warning", "warning", "warning", "note"]
    text = path.read_text()
    for line, needle in zip(
        found, ["priority", "name: unused", "US/Eastern", "name: missing", "- 9-17"], strict=True
    ):
        assert line.startswith(f"{path}:{line_number(text, needle)}: "), line
    assert done.err == "1 error, 3 warnings, 1 note; a cluster would take 1 machine and 1 provider\n"


def test_a_schedule_that_is_never_active_is_a_warning(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        builders.scheduled_machine(),
        builders.provider("TimeBasedSpotSchedule", "nights", windows=[]),
    )
    done = run("lint", path)
    assert done.status == 0
    assert "spec.windows: never active" in one_line(done.out, ": warning: ")
    assert run("lint", "--strict", path).status == 1


def test_hours_that_include_their_last_are_a_note_that_fails_nothing(tmp_path: Path) -> None:
    done = run("lint", "--strict", written(tmp_path, builders.scheduled_machine(), builders.time_based()))
    assert done.status == 0
    assert "'9-17': both ends count: 9-17 runs to 17:59:59" in one_line(done.out, ": note: ")


def test_a_query_whose_zero_would_count_as_false_is_a_warning(tmp_path: Path) -> None:
    machine = builders.scheduled_machine(
        "desk-1", schedule=builders.reference("idle", kind="PrometheusSpotSchedule")
    )
    done = run("lint", written(tmp_path, machine, builders.prometheus(query="sum(busy) == 0")))
    warned = one_line(done.out, ": warning: ")
    assert "spec.query: 'sum(busy) == 0': where `==` lets a 0 through" in warned
    assert run("lint", "--strict", written(tmp_path, machine, builders.prometheus())).status == 0


def test_a_missing_provider_is_a_warning_that_tells_where_one_is(tmp_path: Path) -> None:
    machine = builders.scheduled_machine("desk-1", schedule=builders.reference("night"))
    warned = one_line(run("lint", written(tmp_path, machine)).out, ": warning: ")
    assert (
        "spec.schedule.name: 'night': no document provides TimeBasedSpotSchedule night in namespace default"
        in warned
    )
    near = run("lint", written(tmp_path, machine, builders.time_based("nights")))
    assert one_line(near.out, "no document provides").endswith("did you mean nights?")
    elsewhere = builders.time_based("night")
    elsewhere["metadata"]["namespace"] = "lab"
    far = run("lint", written(tmp_path, machine, elsewhere))
    assert "the one in namespace lab does not count" in one_line(far.out, "no document provides")


def test_a_provider_that_was_refused_is_not_said_to_be_missing(tmp_path: Path) -> None:
    refused = builders.time_based(validFrom="tomorrow")
    done = run("lint", written(tmp_path, builders.scheduled_machine(), refused))
    assert done.status == 1
    assert len(done.out.splitlines()) == 1
    assert "spec.validFrom" in one_line(done.out, ": error: ")


def test_a_kind_of_somebody_else_is_a_note_about_its_status(tmp_path: Path) -> None:
    moon = builders.provider("MoonPhase", "full")
    machine = builders.scheduled_machine(schedule=builders.reference("full", kind="MoonPhase"))
    bare = one_line(run("lint", written(tmp_path, machine, moon)).out, ": note: ")
    assert bare.endswith(
        "simulations take its status as it stands here: no status.active, so its machines hold"
    )
    moon["status"] = {"active": False}
    assert run("lint", written(tmp_path, machine, moon)).out.endswith("status.active: false\n")


@pytest.mark.parametrize(
    ("written_as", "value"),
    [(".nan", "nan"), ("7000", 7000), ("'7'", "7"), ("[1, 2]", "[1, 2]"), ("true", True)],
)
def test_the_json_form_is_json_whatever_was_refused(written_as: str, value: object, tmp_path: Path) -> None:
    path = written(tmp_path, builders.scheduled_machine("desk-1", priority="PRIORITY"))
    path.write_text(path.read_text().replace("PRIORITY", written_as))
    done = run("lint", "-o", "json", path)
    assert done.status == 1
    (error,) = json.loads(done.out, parse_constant=_refuse)
    assert error == {
        "level": "error",
        "file": str(path),
        "line": line_number(path.read_text(), "priority"),
        "object": error["object"],
        "field": "spec.priority",
        "value": value,
        "text": error["text"],
    }


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def test_skipped_kinds_are_counted(tmp_path: Path) -> None:
    other = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}}
    done = run("lint", written(tmp_path, builders.scheduled_machine(), builders.time_based(), other))
    assert lines(done.err, "skipped, not ours: 1 Deployment")
