"""`5spot calendar`: a manifest for Git, and whether a committed one has drifted."""

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from fivespot.cli.main import cli
from fivespot.core.api.admission import problems_of_document


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["calendar", *arguments])


def made(tmp_path: Path, *arguments: str) -> Path:
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    path = tmp_path / "calendar.yaml"
    path.write_text(done.stdout)
    return path


def test_it_prints_a_manifest_that_a_cluster_takes_with_source_and_version(tmp_path: Path) -> None:
    text = made(tmp_path, "XNYS", "--years", "2026-2027", "--name", "nyse", "-n", "floor-2").read_text()
    document = yaml.safe_load(text)
    assert problems_of_document(document) == ()
    assert (document["metadata"]["name"], document["metadata"]["namespace"]) == ("nyse", "floor-2")
    annotations = document["metadata"]["annotations"]
    assert annotations["5spot.finos.org/calendar"] == "XNYS"
    assert annotations["5spot.finos.org/calendar-source"].startswith("exchange_calendars 4.")
    assert annotations["5spot.finos.org/calendar-days"] == "2026-01-01/2027-12-31"
    assert text.startswith("# XNYS, 2026-01-01 to 2027-12-31: 502 sessions, by exchange_calendars 4.")
    # Not every reader of YAML takes these for text.
    assert 'start: "09:30"' in text
    assert '- "2026-12-25"' in text


def test_the_same_input_gives_the_same_bytes() -> None:
    assert run("CMES", "--years", "2026").stdout == run("CMES", "--years", "2026").stdout


@pytest.mark.parametrize(("exchange", "name"), [("24/7", "24-7"), ("us_futures", "us-futures")])
def test_a_name_is_one_that_kubernetes_takes(exchange: str, name: str) -> None:
    assert yaml.safe_load(run(exchange, "--years", "2026").stdout)["metadata"]["name"] == name


def test_what_has_not_drifted_is_said_to_be_the_same(tmp_path: Path) -> None:
    path = made(tmp_path, "XLON", "--years", "2026")
    done = run("--check", str(path))
    assert done.exit_code == 0
    assert done.stdout.startswith("CapitalMarketsSchedule default/xlon: as XLON by exchange_calendars 4.")


def test_every_stretch_that_has_drifted_is_named(tmp_path: Path) -> None:
    path = made(tmp_path, "XLON", "--years", "2026")
    path.write_text(path.read_text().replace('"2026-12-28"', '"2026-12-29"'))
    done = run("--check", str(path))
    assert done.exit_code == 1
    assert done.stdout.splitlines()[1:] == [
        "  2026-12-28T08:00Z/2026-12-28T16:30Z is open, and should not be",
        "  2026-12-29T08:00Z/2026-12-29T16:30Z is closed, and should not be",
    ]


def test_a_long_list_of_differences_is_cut(tmp_path: Path) -> None:
    path = made(tmp_path, "XLON", "--years", "2026")
    path.write_text(path.read_text().replace('"08:00"', '"08:30"'))
    done = run("--check", str(path))
    assert len(done.stdout.splitlines()) == 22
    assert done.stdout.splitlines()[-1].startswith("  and 23")


def test_what_was_not_made_so_cannot_be_compared(tmp_path: Path) -> None:
    path = made(tmp_path, "XLON", "--years", "2026")
    path.write_text(path.read_text().replace("5spot.finos.org/calendar: XLON", "example.com/x: z"))
    done = run("--check", str(path))
    assert done.exit_code == 1
    assert "has the annotation 5spot.finos.org/calendar" in done.output


def test_a_range_that_was_edited_by_hand_is_named(tmp_path: Path) -> None:
    path = made(tmp_path, "XLON", "--years", "2026")
    path.write_text(path.read_text().replace("2026-01-01/2026-12-31", "all"))
    done = CliRunner().invoke(cli, ["calendar", "--check", str(path)])
    assert "calendar-days" in str(done.exception)


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ((), 2, "EXCHANGE is missing"),
        (("XNYS",), 2, "--years is missing"),
        (("XNYS", "--years", "26"), 2, "is no range of years"),
        (("XNYS", "--years", "2027-2026"), 2, "ends before it begins"),
    ],
)
def test_usage(arguments: tuple[str, ...], status: int, words: str) -> None:
    done = run(*arguments)
    assert done.exit_code == status
    assert words in done.output


@pytest.mark.parametrize(
    "arguments",
    [
        ("XNYS", "--years", "2026", "--check", "here"),
        ("XNYS", "--years", "9999"),
    ],
)
def test_options_that_do_not_go_together_are_refused(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    path = made(tmp_path, "XLON", "--years", "2026")
    done = run(*(str(path) if argument == "here" else argument for argument in arguments))
    assert done.exit_code == 2, done.output


def test_only_schedules_are_compared(tmp_path: Path) -> None:
    path = made(tmp_path, "XLON", "--years", "2026")
    text = path.read_text()
    head, _, _ = text.partition("spec:")
    path.write_text(head.replace("CapitalMarketsSchedule", "ManualSpotSchedule") + "spec:\n  active: true\n")
    assert "has the annotation" in run("--check", str(path)).output
