"""The library as its page and the blueprint show it."""

import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import attrs
import pytest

import fivespot
import fivespot.core
from fivespot.core import Fleet, Schedule
from tests import builders

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "deploy" / "examples"
START = datetime(2026, 3, 2, tzinfo=UTC)
NAIVE = datetime(2026, 3, 2)  # noqa: DTZ001 - what must be refused
FLEET = Fleet.from_documents([builders.scheduled_machine("desk-1"), builders.time_based()])


def test_the_snippet_works_as_written() -> None:
    from fivespot import load
    from fivespot.core import Fleet, compile_schedule, decide, explain, simulate

    assert all(callable(name) for name in (compile_schedule, decide, explain))
    paths = [EXAMPLES]
    fleet = load(paths)
    assert [machine.key for machine in fleet.machines] == [
        *("risk/pricer-1", "lab/bench-3", "floor-2/desk-7", "floor-2/desk-9"),
    ]
    run = simulate(
        fleet, start=datetime(2026, 3, 2, tzinfo=UTC), end=datetime(2026, 3, 9, tzinfo=UTC), script=()
    )
    for change in run.changes:
        assert attrs.has(type(change))
        assert (change.at.tzinfo, bool(change.machine), bool(change.cause)) == (UTC, True, True)
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            change.cause = "other"  # type: ignore[misc]
    assert [change.at for change in run.changes] == sorted(change.at for change in run.changes)
    first, *_, last = run.timeline("floor-2/desk-7")
    assert (first.start, last.end) == (run.start, run.end)
    documents = [builders.scheduled_machine("desk-1"), builders.time_based()]
    fleet = Fleet.from_documents(documents)
    assert (len(fleet.machines), len(fleet.providers), fleet.problems) == (1, 1, ())
    assert explain(fleet, "desk-1", START).target.up is False


def test_what_the_page_shows_works_as_written() -> None:
    page = (ROOT / "docs" / "library.md").read_text()
    (snippet,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    program = f"paths = {str(EXAMPLES)!r}\ndocuments = []\n" + snippet.replace(
        "fleet = Fleet.from_documents(documents)", "Fleet.from_documents(documents)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 50


def test_a_timeline_of_nobody_says_who_there_is() -> None:
    run = fivespot.core.simulate(FLEET, start=START, end=START + timedelta(days=1))
    with pytest.raises(KeyError, match="no machine 'desk-1'; there are default/desk-1"):
        run.timeline("desk-1")


def _schedule() -> Schedule:
    return fivespot.core.compile_schedule("TimeBasedSpotSchedule", builders.time_based()["spec"])


LATER = START + timedelta(days=1)
DOORS: dict[str, Callable[[], object]] = {
    "simulate(start)": lambda: fivespot.core.simulate(FLEET, start=NAIVE, end=LATER),
    "simulate(end)": lambda: fivespot.core.simulate(FLEET, start=START, end=NAIVE),
    "explain": lambda: fivespot.core.explain(FLEET, "desk-1", NAIVE),
    "verdicts": lambda: fivespot.core.verdicts(FLEET, NAIVE),
    "answers": lambda: fivespot.core.answers(FLEET, NAIVE),
    "lint": lambda: fivespot.core.lint(Fleet(), at=NAIVE),
    "decide": lambda: fivespot.core.decide(fivespot.core.Observation(machine=FLEET.machines[0].view), NAIVE),
    "Schedule.active": lambda: _schedule().active(NAIVE),
    "Schedule.next_transition": lambda: _schedule().next_transition(NAIVE),
    "Schedule.prev_transition": lambda: _schedule().prev_transition(NAIVE),
    "Schedule.next_open": lambda: _schedule().next_open(NAIVE),
    "Schedule.next_close": lambda: _schedule().next_close(NAIVE),
    "Schedule.intervals(start)": lambda: list(_schedule().intervals(NAIVE, LATER)),
    "Schedule.intervals(end)": lambda: list(_schedule().intervals(START, NAIVE)),
}


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_a_naive_datetime_is_a_type_error_with_the_remedy(door: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match=r"has no time zone; .*datetime\(2026, 3, 2, 0, 0, tzinfo=UTC\)"):
        door()


@pytest.mark.parametrize("name", fivespot.core.__all__)
def test_every_public_name_is_documented_in_its_docstring_and_on_the_page(name: str) -> None:
    found = getattr(fivespot.core, name)
    assert not isinstance(found, ModuleType)
    assert (found.__doc__ or "").strip()
    # What attrs or enum would write by themselves is no documentation.
    assert not found.__doc__.startswith(("Method generated", "An enumeration"))
    page = (ROOT / "docs" / "library.md").read_text()
    assert re.search(rf"`{name}[(`]", page), f"docs/library.md does not list {name}"


def test_the_page_lists_nothing_that_is_not_there() -> None:
    page = (ROOT / "docs" / "library.md").read_text()
    listed = {
        name
        for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
        for name in re.findall(r"`([\w.]+)", row)
    }
    assert listed - set(fivespot.core.__all__) == {"fivespot.load", "TypeError"}


def test_a_library_user_gets_errors_with_field_value_and_remedy() -> None:
    with pytest.raises(
        fivespot.core.InvalidSpec, match="end: '2026-03-02T00:00:00Z' is refused: it must be after"
    ):
        fivespot.core.simulate(FLEET, start=START, end=START)
    with pytest.raises(
        fivespot.core.InvalidSpec, match=r"machine: 'desk-2' is refused: .*did you mean desk-1\?"
    ):
        fivespot.core.explain(FLEET, "desk-2", START)
    with pytest.raises(fivespot.core.FivespotError, match="no machine is called so"):
        FLEET.only(["nobody"])


def test_documents_without_files_have_problems_without_places() -> None:
    fleet = Fleet.from_documents([builders.scheduled_machine("desk-1", priority=300), {"kind": "Pod"}])
    assert [str(problem) for problem in fleet.problems] == [
        "ScheduledMachine desk-1: spec.priority: 300 is refused: write a whole number from 0 to 255",
        "Pod: apiVersion: every document needs apiVersion and kind",
    ]


def test_what_is_stored_can_be_explained_as_it_stands() -> None:
    nights = builders.time_based()
    nights["status"] = {"active": True, "lastTransitionTime": "2026-03-01T00:00:00Z"}
    fleet = Fleet.from_documents([builders.scheduled_machine("desk-1"), nights])
    stored = fivespot.core.explain(fleet, "desk-1", START, stored=True)
    assert (stored.target.up, stored.computed, stored.since) == (True, False, START - timedelta(days=1))
    computed = fivespot.core.explain(fleet, "desk-1", START)
    assert (computed.target.up, computed.computed) == (False, True)
    assert computed.since == datetime(2026, 2, 27, 18, tzinfo=UTC)
    assert computed.until == datetime(2026, 3, 2, 9, tzinfo=UTC)


def test_answers_tell_of_every_provider_who_refers_to_it_and_how_it_was_found() -> None:
    moon = {**builders.provider("MoonPhase", "full"), "status": {"active": True}}
    fleet = Fleet.from_documents([builders.scheduled_machine("desk-1"), builders.time_based(), moon])
    full, nights = fivespot.core.answers(fleet, START)
    assert (full.name, full.machines, full.decided_by, full.verdict.active, full.until) == (
        "full",
        0,
        "Status",
        True,
        None,
    )
    assert (nights.name, nights.machines, nights.decided_by, nights.verdict.active) == (
        "nights",
        1,
        "WindowClosed",
        False,
    )
    assert nights.until == datetime(2026, 3, 2, 9, tzinfo=UTC)


def test_a_definition_of_a_kind_of_ours_is_passed_over_and_one_of_strangers_is_counted() -> None:
    def definition(group: object) -> dict[str, object]:
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "spec": {"group": group},
        }

    documents = [
        definition(group) for group in ("spotschedules.5spot.finos.org", "5spot.finos.org", "example.com", 7)
    ]
    found = fivespot.core.Fleet.from_documents([*documents, {**documents[0], "spec": None}])
    assert found.skipped == {"CustomResourceDefinition": 3}
