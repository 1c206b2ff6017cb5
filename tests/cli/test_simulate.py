"""`5spot simulate`: what the table, the JSON and the YAML say, and that they say the same every time."""

import itertools
import json
from pathlib import Path

import pytest
import yaml

from tests import builders
from tests.cli import schema
from tests.cli.running import EXAMPLES, ROOT, WEEK, Ended, lines, one_line, process, run, written

SCHEMA = json.loads((ROOT / "docs" / "simulate.schema.json").read_text())
AT = ("--at", "2026-03-02T12:00:00Z")
DUMP = Path(__file__).with_name("dump.yaml")


def simulated(*arguments: str | Path) -> str:
    """What a run prints."""
    done = run("simulate", *arguments)
    assert done.status == 0, done.err
    return done.out


def as_json(*arguments: str | Path) -> dict[str, list[dict[str, object]]]:
    """The JSON form of a run."""
    found: dict[str, list[dict[str, object]]] = json.loads(simulated(*arguments, "-o", "json"))
    return found


def test_the_table_has_one_line_for_each_change_with_both_clocks_and_the_cause() -> None:
    told = simulated(*WEEK, "--to", "1d", "--only", "desk-7", EXAMPLES).splitlines()
    assert told == [
        "floor-2/desk-7  TimeBasedSpotSchedule/out-of-hours (Europe/London)  12.0 h up, 5 changes",
        "  UTC                   LOCAL (Europe/London)           PHASE         FOR        WHY",
        told[2],
        "  2026-03-02T00:01:15Z  Mon 2026-03-02 00:01:15 +00:00  Active        6h28m45s   Node desk-7 is Ready",
        "  2026-03-02T06:30:00Z  Mon 2026-03-02 06:30:00 +00:00  ShuttingDown  30s        its provider says inactive",
        "  2026-03-02T06:30:30Z  Mon 2026-03-02 06:30:30 +00:00  Inactive      11h59m30s  its provider says inactive",
        told[6],
        "  2026-03-02T18:31:15Z  Mon 2026-03-02 18:31:15 +00:00  Active        5h28m45s+  Node desk-7 is Ready",
        "",
        "1 machine, 3 providers, 2026-03-02T00:00:00Z to 2026-03-03T00:00:00Z: 12.0 h up in total, 5 changes",
    ]
    for line, clock in ((told[2], "00:00:00"), (told[6], "18:30:00")):
        assert line.startswith(
            f"  2026-03-02T{clock}Z  Mon 2026-03-02 {clock} +00:00  Pending       1m15s      "
        )


def test_local_times_follow_the_providers_zone_across_a_clock_change(tmp_path: Path) -> None:
    window = {"days": ["mon-sun"], "start": "09:30", "end": "16:00"}
    path = written(
        tmp_path,
        builders.scheduled_machine(),
        builders.provider("TimeBasedSpotSchedule", "nights", timezone="America/New_York", windows=[window]),
    )
    told = simulated("--from", "2026-03-07T12:00:00Z", "--to", "3d", path)
    pending = [line.split("  ")[1:3] for line in lines(told, "Pending")]
    assert pending == [
        ["2026-03-07T14:30:00Z", "Sat 2026-03-07 09:30:00 -05:00"],
        ["2026-03-08T13:30:00Z", "Sun 2026-03-08 09:30:00 -04:00"],
        ["2026-03-09T13:30:00Z", "Mon 2026-03-09 09:30:00 -04:00"],
    ]
    elsewhere = simulated(
        "--from", "2026-03-07T12:00:00Z", "--to", "1d", "--display-tz", "Asia/Kathmandu", path
    )
    assert "Sat 2026-03-07 20:15:00 +05:45" in one_line(elsewhere, "Pending")
    assert "LOCAL (Asia/Kathmandu)" in elsewhere


def test_machines_and_providers_come_by_namespace_and_name_in_every_form(tmp_path: Path) -> None:
    names = [("zoo", "a"), ("lab", "b"), ("lab", "a"), ("zoo", "b")]
    documents = []
    for namespace, name in names:
        for made in (
            builders.scheduled_machine(name, schedule=builders.reference(name)),
            builders.time_based(name),
        ):
            made["metadata"]["namespace"] = namespace
            documents.append(made)
    path = written(tmp_path, *documents)
    wanted = [f"{namespace}/{name}" for namespace, name in sorted(names)]
    run_form, at_form = as_json(*WEEK, path), as_json(*AT, path)
    for found in (run_form["machines"], run_form["providers"], at_form["machines"], at_form["providers"]):
        assert [f"{entry['namespace']}/{entry['name']}" for entry in found] == wanted
    headings = [line.split()[0] for line in lines(simulated(*WEEK, path), " up, ")]
    assert headings == wanted
    rows = simulated(*AT, path).splitlines()
    assert [line.split()[0] for line in rows if line] == ["MACHINE", *wanted, "PROVIDER", *wanted]


def test_the_verdicts_at_an_instant_are_those_of_machines_and_of_providers() -> None:
    told = simulated(*AT, EXAMPLES)
    machine = one_line(told, "floor-2/desk-7")
    assert machine.split() == [
        *("floor-2/desk-7", "down", "Provider", "Inactive", "2026-03-02T18:30:00Z"),
        *(
            "Mon",
            "2026-03-02",
            "18:30:00",
            "+00:00",
            "TimeBasedSpotSchedule/out-of-hours",
            "says",
            "inactive",
        ),
    ]
    provider = one_line(told, "risk/new-york")
    assert provider.split()[:8] == [
        *("risk/new-york", "CapitalMarketsSchedule", "1", "SessionClosed", "Inactive"),
        *("2026-03-02T14:30:00Z", "Mon", "2026-03-02"),
    ]
    assert "09:30:00 -05:00" in provider
    found = as_json(*AT, EXAMPLES)
    assert found["machines"][0] == {
        "namespace": "floor-2",
        "name": "desk-7",
        "up": False,
        "decidedBy": "Provider",
        "verdict": "Inactive",
        "until": "2026-03-02T18:30:00Z",
        "why": "TimeBasedSpotSchedule/out-of-hours says inactive",
    }
    assert found["providers"][0] == {
        "kind": "TimeBasedSpotSchedule",
        "namespace": "floor-2",
        "name": "out-of-hours",
        "active": False,
        "decidedBy": "WindowClosed",
        "verdict": "Inactive",
        "since": "2026-03-02T06:30:00Z",
        "until": "2026-03-02T18:30:00Z",
        "machines": 2,
    }


def test_a_machine_that_its_provider_does_not_decide_has_no_until(tmp_path: Path) -> None:
    path = written(tmp_path, builders.scheduled_machine(enabled=False), builders.time_based())
    (found,) = as_json(*AT, path)["machines"]
    assert (found["up"], found["decidedBy"], found["verdict"], found["until"]) == (
        False,
        "Disabled",
        "Active",
        None,
    )


@pytest.mark.parametrize("arguments", [WEEK, AT], ids=["a run", "one instant"])
def test_json_is_as_its_schema_says_and_yaml_is_the_same(arguments: tuple[str, ...]) -> None:
    for path in (EXAMPLES, DUMP):
        found = as_json(*arguments, path)
        assert schema.faults(SCHEMA, found) == []
        assert yaml.safe_load(simulated(*arguments, "-o", "yaml", path)) == found


def test_the_schema_refuses_what_is_not_a_run() -> None:
    found = as_json(*WEEK, EXAMPLES)
    del found["machines"][0]["name"]
    assert schema.faults(SCHEMA, found) != []


def test_the_json_form_tells_the_week_of_a_machine() -> None:
    found = as_json(*WEEK, "--only", "desk-7", EXAMPLES)
    (machine,) = found["machines"]
    intervals = machine["intervals"]
    assert isinstance(intervals, list)
    assert intervals[0]["from"] == str(found["from"]) == "2026-03-02T00:00:00Z"
    assert intervals[-1]["to"] == str(found["to"]) == "2026-03-09T00:00:00Z"
    assert all(before["to"] == after["from"] for before, after in itertools.pairwise(intervals))
    assert machine["transitions"] == len(intervals) - 1 == 21
    assert machine["hoursActive"] == pytest.approx(104.4, abs=0.1)


@pytest.mark.parametrize("form", ["table", "json", "yaml"])
def test_the_same_input_gives_the_same_bytes(form: str) -> None:
    arguments = ("simulate", *WEEK, "-o", form, str(EXAMPLES))
    first = process(*arguments, env={"PYTHONHASHSEED": "0", "LC_ALL": "C"})
    assert first.status == 0
    assert first.out.endswith("\n")
    for seed in ("0", "1", "4711"):
        assert process(*arguments, env={"PYTHONHASHSEED": seed, "LC_ALL": "C.UTF-8"}) == first


def test_a_missing_provider_is_told_in_the_table_and_in_json(tmp_path: Path) -> None:
    path = written(tmp_path, builders.scheduled_machine())
    told = simulated(*WEEK, path)
    assert "TimeBasedSpotSchedule/nights (not among the documents)" in told
    assert one_line(told, "Inactive").endswith(" [Unresolved(ProviderNotFound)]")
    (machine,) = as_json(*WEEK, path)["machines"]
    intervals = machine["intervals"]
    assert isinstance(intervals, list)
    assert [interval["verdict"] for interval in intervals] == ["Unresolved(ProviderNotFound)"]


def test_a_kind_of_somebody_else_is_taken_as_its_status_stands(tmp_path: Path) -> None:
    moon = builders.provider("MoonPhase", "full")
    moon["status"] = {"active": True, "nextTransitionTime": "2026-03-04T00:00:00Z"}
    machine = builders.scheduled_machine(schedule=builders.reference("full", kind="MoonPhase"))
    path = written(tmp_path, machine, moon)
    (found,) = as_json(*AT, path)["machines"]
    assert (found["up"], found["until"]) == (True, "2026-03-04T00:00:00Z")
    (provider,) = as_json(*AT, path)["providers"]
    assert (provider["kind"], provider["decidedBy"], provider["active"]) == ("MoonPhase", "Status", True)
    assert one_line(simulated(*WEEK, path), "Active")


def test_a_schedule_that_is_never_active_is_simulated(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        builders.scheduled_machine(),
        builders.provider("TimeBasedSpotSchedule", "nights", windows=[]),
    )
    assert simulated(*WEEK, path).splitlines()[-1].endswith(": 0.0 h up in total, 0 changes")


def test_kinds_that_are_not_ours_are_counted_and_skipped(tmp_path: Path) -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    path = written(tmp_path, builders.scheduled_machine(), builders.time_based(), other, other)
    done = run("simulate", *WEEK, path)
    assert (done.status, done.err) == (0, "skipped, not ours: 2 ConfigMap\n")


def test_a_schedule_without_machines_tells_its_own_week(tmp_path: Path) -> None:
    told = simulated(*WEEK, "--to", "1d", written(tmp_path, builders.time_based())).splitlines()
    assert [line.split()[-2:] for line in told[2:5]] == [
        ["Inactive", "9h"],
        ["Active", "9h"],
        ["Inactive", "6h"],
    ]
    assert simulated(*AT, written(tmp_path, builders.time_based())).startswith("PROVIDER")


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_what_kubectl_prints_can_be_piped_in(form: str) -> None:
    text = DUMP.read_text() if form == "yaml" else json.dumps(yaml.safe_load(DUMP.read_text()))
    done = process("simulate", "--from", "2026-11-30T11:05:00Z", "--to", "5h", "-", stdin=text)
    assert (done.status, done.err) == (0, "")
    assert [line.split()[0] for line in lines(done.out, " up, ")] == [
        *("floor-1/desk-11", "floor-2/desk-21", "floor-3/desk-31"),
        *("floor-4/desk-41", "floor-4/desk-42", "floor-4/desk-43"),
    ]


def test_a_dump_goes_on_from_what_is_stored() -> None:
    found = as_json("--from", "2026-11-30T11:05:00Z", "--to", "5h", DUMP)
    phases = {
        entry["name"]: [interval["phase"] for interval in entry["intervals"]]  # type: ignore[attr-defined]
        for entry in found["machines"]
    }
    assert phases["desk-11"] == ["Active", "ShuttingDown", "Inactive"]
    assert phases["desk-21"] == ["ShuttingDown", "Inactive", "Pending", "Active", "ShuttingDown", "Inactive"]
    assert phases["desk-31"] == ["Active"], "what was held is held"
    assert phases["desk-41"] == ["Disabled"], "a reclaim is held"
    assert (phases["desk-42"], phases["desk-43"]) == (["Disabled"], ["Terminated"])


def test_delays_are_those_that_were_asked_for() -> None:
    slow = ("--provision-delay", "20m", "--join-delay", "90s", "--remove-delay", "1h")
    told = simulated(*WEEK, "--to", "1d", "--only", "floor-2/desk-7", *slow, EXAMPLES)
    assert one_line(told, "2026-03-02T00:21:30Z", "Active")
    assert one_line(told, "2026-03-02T07:30:00Z", "Inactive")


@pytest.mark.parametrize(
    ("start", "end"),
    [("0001-01-01T00:00:00Z", "0001-01-03T00:00:00Z"), ("9999-12-30T00:00:00Z", "9999-12-31T23:59:59Z")],
    ids=["the first days", "the last days"],
)
def test_the_ends_of_the_calendar_are_no_traceback(start: str, end: str, tmp_path: Path) -> None:
    path = written(tmp_path, builders.scheduled_machine(), builders.time_based(timezone="America/New_York"))
    for more in ((), ("--display-tz", "Asia/Tokyo")):
        assert run("simulate", "--from", start, "--to", end, *more, path).status == 0
        assert run("simulate", "--at", end, *more, path).status == 0


def test_without_from_a_run_begins_now() -> None:
    done: Ended = process("simulate", "--to", "1d", str(EXAMPLES))
    assert done.status == 0
    assert done.out.splitlines()[-1].startswith("4 machines, 3 providers, 2")
