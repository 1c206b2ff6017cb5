"""`5spot calendar --ics`: the events of a file as overrides or as a schedule, and whether a committed one has drifted."""

import hashlib
import re
from pathlib import Path

import pytest
import yaml

from fivespot.core.api.admission import problems_of_document
from tests.cli import running
from tests.cli.running import Ended

FREEZE = """\
BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//test//EN
BEGIN:VEVENT
UID:1
SUMMARY:Year end freeze
DTSTART;VALUE=DATE:20261221
DTEND;VALUE=DATE:20270104
END:VEVENT
BEGIN:VEVENT
UID:2
SUMMARY:Wartung
DTSTART;TZID=Europe/Berlin:20260316T180000
DTEND;TZID=Europe/Berlin:20260317T000000
RRULE:FREQ=WEEKLY;COUNT=3
END:VEVENT
BEGIN:VEVENT
UID:3
SUMMARY:not at all
STATUS:CANCELLED
DTSTART;VALUE=DATE:20260701
END:VEVENT
END:VCALENDAR
"""
LUNCH = """\
BEGIN:VEVENT
UID:4
SUMMARY:lunch
DTSTART;TZID=Europe/Berlin:20260601T120000
DTEND;TZID=Europe/Berlin:20260601T130000
END:VEVENT
END:VCALENDAR
"""
ZONE = ("--timezone", "Europe/Berlin")


@pytest.fixture
def freeze(tmp_path: Path) -> Path:
    path = tmp_path / "freeze.ics"
    path.write_text(FREEZE)
    return path


def run(*arguments: str | Path) -> Ended:
    return running.run("calendar", *arguments)


def printed(*arguments: str | Path) -> str:
    done = run(*arguments)
    assert done.status == 0, done.err
    return done.out


def schedule(freeze: Path, *arguments: str) -> Path:
    """A schedule of the events, in a file."""
    path = freeze.with_suffix(".yaml")
    path.write_text(printed("--ics", freeze, "--years", "2026", *ZONE, "--name", "freeze", *arguments))
    return path


def with_lunch(freeze: Path) -> None:
    freeze.write_text(FREEZE.replace("END:VCALENDAR\n", LUNCH))


def test_overrides_for_a_schedule_of_ones_own(freeze: Path) -> None:
    text = printed("--ics", freeze, "--years", "2026", *ZONE)
    head, overrides = text[: text.index("overrides")], text[text.index("overrides") :]
    digest = hashlib.sha256(freeze.read_bytes()).hexdigest()
    assert head.startswith("# freeze.ics, 2026-01-01 to 2026-12-31, by the clock of Europe/Berlin; ")
    assert f"sha256:{digest}, read by icalendar " in head
    assert "# Cancelled, and left out: not at all." in head
    assert overrides.splitlines() == [
        "overrides:",
        "- dates:",
        '  - "2026-03-16"',
        '  - "2026-03-23"',
        '  - "2026-03-30"',
        "  name: Wartung",
        '  close: "18:00"',
        "- dates:",
        '  - "2026-12-21/2026-12-31"',
        "  name: Year end freeze",
        "  windows: []",
    ]


@pytest.mark.parametrize("during", ["closed", "open"])
def test_a_schedule_of_the_events_alone_is_one_that_a_cluster_takes(freeze: Path, during: str) -> None:
    with_lunch(freeze)
    document = yaml.safe_load(schedule(freeze, "--during", during, "-n", "floor-2").read_text())
    assert problems_of_document(document) == ()
    metadata = document["metadata"]
    assert (metadata["name"], metadata["namespace"]) == ("freeze", "floor-2")
    assert metadata["annotations"]["5spot.finos.org/calendar"] == "freeze.ics"
    assert metadata["annotations"]["5spot.finos.org/calendar-days"] == "2026-01-01/2026-12-31"
    assert metadata["annotations"]["5spot.finos.org/calendar-during"] == during
    assert re.match(
        "sha256:[0-9a-f]{64}, read by", metadata["annotations"]["5spot.finos.org/calendar-source"]
    )


@pytest.mark.parametrize("during", ["closed", "open"])
def test_what_has_not_drifted_is_said_to_be_the_same(freeze: Path, during: str) -> None:
    path = schedule(freeze, "--during", during)
    told = printed("--check", path, "--ics", freeze)
    assert told.startswith("TimeBasedSpotSchedule default/freeze: as freeze.ics (sha256:")


def test_where_the_file_and_a_committed_schedule_have_drifted_apart_is_told(freeze: Path) -> None:
    path = schedule(freeze)
    with_lunch(freeze)
    done = run("--check", path, "--ics", freeze)
    assert done.status == 1
    assert done.out.splitlines()[1:] == ["  2026-06-01T10:00Z/2026-06-01T11:00Z is open, and should not be"]


def test_a_schedule_of_events_is_not_compared_without_its_file(freeze: Path) -> None:
    path = schedule(freeze)
    done = run("--check", path)
    assert done.status == 2
    assert "made from freeze.ics: say with --ics where such a file is now" in done.err
    other = freeze.with_name("other.ics")
    other.write_text(FREEZE)
    done = run("--check", path, "--ics", other)
    assert done.status == 1
    assert "was made from a file other.ics, but from freeze.ics" in done.err


def test_beside_the_calendar_of_an_exchange_each_is_compared_with_its_own_source(freeze: Path) -> None:
    path = schedule(freeze)
    path.write_text(f"{path.read_text()}---\n{printed('XNYS', '--years', '2026')}")
    done = run("--check", path)
    assert (done.status, done.out.count("\n")) == (0, 1)
    assert "CapitalMarketsSchedule default/xnys: as XNYS" in done.out
    assert "Not compared: what was made from freeze.ics; say with --ics" in done.err
    done = run("--check", path, "--ics", freeze)
    assert (done.status, done.out.count("\n")) == (0, 1)
    assert "Not compared: what was made from XNYS;" in done.err


def test_an_annotation_that_was_edited_by_hand_is_named(freeze: Path) -> None:
    path = schedule(freeze)
    text = path.read_text()
    path.write_text(text.replace("calendar-during: closed", "calendar-during: maybe"))
    done = run("--check", path, "--ics", freeze)
    assert (done.status, "calendar-during" in done.err) == (1, True)


@pytest.mark.parametrize("days", ["2026-12-31/2026-01-01", "0001-01-01/9999-12-31", "2026", "all/of them"])
def test_days_that_were_edited_by_hand_are_named(freeze: Path, days: str) -> None:
    path = schedule(freeze)
    path.write_text(path.read_text().replace("2026-01-01/2026-12-31", days))
    done = run("--check", path, "--ics", freeze)
    assert (done.status, "calendar-days" in done.err, "in order" in done.err) == (1, True, True)


def test_a_manifest_may_come_from_standard_input(freeze: Path) -> None:
    done = running.process("calendar", "--check", "-", "--ics", freeze, stdin=schedule(freeze).read_text())
    assert (done.status, done.out.startswith("TimeBasedSpotSchedule default/freeze: as")) == (0, True)


def test_no_event_in_these_years_is_said(freeze: Path) -> None:
    done = run("--ics", freeze, "--years", "2030")
    assert done.status == 1
    assert "no event of" in done.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("XNYS", "--ics", "FILE", "--years", "2026"), "--ics takes the place of an exchange"),
        (("--ics", "FILE"), "--years is missing"),
        (("--ics", "FILE", "--years", "2026", "-n", "floor-2"), "asks for --name"),
        (("--ics", "FILE", "--years", "2026", "--name", "Year_End"), "'Year_End' is no name of an object"),
        (("XNYS", "--years", "2026", "-n", "Floor_2"), "'Floor_2' is no name of a namespace"),
        (("--check", "FILE", "--during", "open"), "leave the rest out"),
        (("XNYS", "--years", "2026", "--during", "open"), "are for --ics"),
        (("XNYS", "--years", "2026", "--timezone", "UTC"), "are for --ics"),
    ],
)
def test_usage(freeze: Path, arguments: tuple[str, ...], words: str) -> None:
    done = run(*(freeze if argument == "FILE" else argument for argument in arguments))
    assert done.status == 2, done.err
    assert words in done.err
