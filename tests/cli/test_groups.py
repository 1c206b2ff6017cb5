"""`--bootstrap-group` and `--infrastructure-group`, the same for every command that reads machines or says what they are."""

from pathlib import Path

import pytest

from tests import builders
from tests.builders import changed
from tests.cli.running import process, run, written

INFRASTRUCTURE = ("--infrastructure-group", "infra.example.com")


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    machine = changed(
        builders.scheduled_machine(), {"spec.infrastructureSpec.apiVersion": "infra.example.com/v1"}
    )
    return written(tmp_path, machine, builders.time_based())


def test_a_manifest_is_judged_by_the_groups_that_are_named(fleet: Path) -> None:
    assert run("lint", fleet).status == 1
    assert run("lint", fleet, *INFRASTRUCTURE).status == 0
    assert run("simulate", fleet, *INFRASTRUCTURE, "--to", "1h").status == 0
    assert run("explain", "sm/desk-042", "-f", fleet, *INFRASTRUCTURE).status == 0


def test_the_environment_names_them_too(fleet: Path) -> None:
    named = {"FIVESPOT_INFRASTRUCTURE_GROUPS": "other.example.com infra.example.com"}
    assert process("lint", str(fleet), env=named).status == 0


def test_the_printed_crds_let_them_in() -> None:
    assert "infra[.]example[.]com" in run("crds", *INFRASTRUCTURE).out
    assert "infrastructure[.]cluster" not in run("crds", *INFRASTRUCTURE).out


@pytest.mark.parametrize(
    "command", [("crds",), ("controller", "run"), ("doctor",), ("lint", "x"), ("simulate", "x")]
)
def test_what_is_no_group_is_refused_with_the_option(command: tuple[str, ...]) -> None:
    ended = run(*command, "--bootstrap-group", "apps")
    assert ended.status == 2
    assert (
        "Invalid value for '--bootstrap-group': 'apps' is refused: write an API group with a dot" in ended.err
    )
