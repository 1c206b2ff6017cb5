"""The `5spot` command itself, and the commands that print what the models make."""

import re
import stat
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

from fivespot._version import VERSION
from fivespot.cli.commands import crds, docs
from fivespot.cli.main import COMMANDS, cli
from fivespot.core.api.kinds import KINDS, crd
from fivespot.core.zones import tzdata_version


def run(*arguments: str) -> str:
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_version_names_the_zone_data() -> None:
    assert run("--version") == f"5spot {VERSION} (tzdata {tzdata_version()})\n"


def test_help_lists_every_command_and_imports_none() -> None:
    program = (
        "import sys\n"
        "from fivespot.cli.main import cli\n"
        "try:\n"
        "    cli(['--help'])\n"
        "finally:\n"
        "    print([name for name in sys.modules if name.startswith(('fivespot.core', 'kr8s', 'yaml', 'attr'))])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert all(f"  {name} " in done.stdout for name in COMMANDS)
    assert done.stdout.endswith("[]\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_is_there_under_its_name(name: str) -> None:
    assert COMMANDS[name].load().name == name


def test_an_unknown_command_is_a_usage_error() -> None:
    done = CliRunner().invoke(cli, ["simulat"])
    assert done.exit_code == 2
    assert "No such command 'simulat'" in done.output


@pytest.mark.parametrize("arguments", [["crds"], ["docs", "api"]], ids=" ".join)
def test_no_client_is_imported_for_what_needs_none(arguments: list[str]) -> None:
    program = (
        "import sys\n"
        "from fivespot.cli.main import cli\n"
        "try:\n"
        "    cli(sys.argv[1:])\n"
        "finally:\n"
        "    sys.exit(any(name in sys.modules for name in ('kr8s', 'httpx', 'asyncio')))\n"
    )
    subprocess.run([sys.executable, "-c", program, *arguments], stdout=subprocess.DEVNULL, check=True)


def test_crds_prints_a_stream_of_every_definition() -> None:
    assert list(yaml.safe_load_all(run("crds"))) == [crd(kind) for kind in KINDS]


def test_crds_writes_one_file_for_each_kind_and_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "deploy" / "crds"
    done = CliRunner().invoke(cli, ["crds", "--output", str(folder)], catch_exceptions=False)
    files = {f"{kind.plural}.{kind.group}.yaml": crds.text_of(kind) for kind in KINDS}
    assert {path.name: path.read_text() for path in folder.iterdir()} == files
    assert [f"wrote {folder / name}" for name in files] == done.stderr.splitlines()
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o644}


def test_a_file_that_is_right_already_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "api.md"
    run("docs", "api", "--output", str(file))
    before = file.stat()
    done = CliRunner().invoke(cli, ["docs", "api", "--output", str(file)], catch_exceptions=False)
    assert done.stderr == f"{file} is up to date\n"
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_docs_api_prints_what_it_would_write(tmp_path: Path) -> None:
    run("docs", "api", "--output", str(tmp_path / "api.md"))
    assert run("docs", "api") == (tmp_path / "api.md").read_text()
    assert run("docs", "api").startswith(docs.HEADER)


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    done = CliRunner().invoke(cli, ["docs", "api", "--output", str(tmp_path / "taken" / "api.md")])
    assert done.exit_code == 1
    assert f"{tmp_path / 'taken' / 'api.md'}" in done.output
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def _commands() -> list[tuple[str, ...]]:
    """Every command that can be run, by the words that run it."""
    found: list[tuple[str, ...]] = []
    for name in COMMANDS:
        loaded = COMMANDS[name].load()
        below = loaded.commands if isinstance(loaded, click.Group) else {}
        found += [(name, sub) for sub in below] or [(name,)]
    return found


@pytest.mark.parametrize("words", _commands(), ids=" ".join)
def test_every_help_says_what_it_is_for_and_every_default_and_fits_80_columns(words: tuple[str, ...]) -> None:
    told = CliRunner().invoke(cli, [*words, "--help"], terminal_width=80).output
    assert all(len(line) <= 80 for line in told.splitlines())
    assert told.startswith(f"Usage: cli {' '.join(words)} ")
    about, _, options = told.partition("\nOptions:\n")
    assert len(about.split("\n\n")) > 1
    # An option begins a line with its dashes; all else belongs to the one before.
    for option in re.split(r"\n  (?=-)", f"\n{options}")[1:]:
        text = " ".join(option.split())
        # Where to write is standard output unless it is said, as everywhere.
        plain = text.startswith(("-h, --help", "--output DIR", "--output FILE"))
        assert plain or "default: " in text or "[required]" in text, text


@pytest.mark.parametrize(
    "words", [(), ("controller",), ("provider",), ("docs",)], ids=lambda w: " ".join(w) or "5spot"
)
def test_no_list_of_commands_is_cut_short(words: tuple[str, ...]) -> None:
    told = CliRunner().invoke(cli, [*words, "--help"], terminal_width=80).output
    assert "..." not in told.partition("\nCommands:\n")[2]
