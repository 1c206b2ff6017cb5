"""Running `5spot`: in this process for speed, or as one of its own where that is the point."""

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs
import yaml

from fivespot.cli.main import run as run_command

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "deploy" / "examples"
FIVESPOT = (sys.executable, "-m", "fivespot")
WEEK = ("--from", "2026-03-02T00:00:00Z")


@attrs.frozen
class Ended:
    """A command that has ended."""

    status: int
    out: str
    err: str


def run(*arguments: str | Path) -> Ended:
    """Run a command in this process, as `5spot` would."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run_command([str(argument) for argument in arguments])
    return Ended(status, out.getvalue(), err.getvalue())


def process(*arguments: str | Path, stdin: str = "", env: Mapping[str, str] | None = None) -> Ended:
    """Run a command as a process."""
    done = subprocess.run(
        [*FIVESPOT, *arguments],
        input=stdin.encode(),
        capture_output=True,
        env={**os.environ, **(env or {})},
        timeout=60,
        check=False,
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


def manifests(*documents: Mapping[str, Any]) -> str:
    """Documents as YAML text."""
    return yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True)


def written(folder: Path, *documents: Mapping[str, Any], name: str = "fleet.yaml") -> Path:
    """Documents as a YAML file."""
    path = folder / name
    path.write_text(manifests(*documents), encoding="utf-8")
    return path


def lines(text: str, *containing: str) -> list[str]:
    """The lines of a text that contain all of these."""
    return [line for line in text.splitlines() if all(part in line for part in containing)]


def one_line(text: str, *containing: str) -> str:
    """The only line that contains all of these."""
    found = lines(text, *containing)
    assert len(found) == 1, f"{len(found)} lines with {containing}:\n{text}"
    return found[0]


def line_number(text: str, needle: str) -> int:
    """The number of the last line that contains a text."""
    return max(number for number, line in enumerate(text.splitlines(), 1) if needle in line)


def ids(cases: Iterable[Any]) -> list[str]:
    """The ids of cases."""
    return [case.id for case in cases]
