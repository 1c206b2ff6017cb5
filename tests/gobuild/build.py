"""Building programs from public Go modules, once per machine.

A folder's go.mod and go.sum say what is built; there is no Go source in it. The result is cached under their digest, so a
new version is a new folder and an old checkout still finds its own.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import IO

import attrs

from tests.gobuild import golang
from tests.gobuild.errors import ProgramsUnavailable

REPORT_EVERY = 15.0
"""Seconds between two lines of progress."""

Report = Callable[[str], None]

_FLAGS = ("-trimpath", "-mod=readonly")


def required_version(folder: Path, module: str) -> str:
    """The version of `module` that the go.mod of `folder` requires, such as v1.37.2."""
    return _in_go_mod(folder, rf"{re.escape(module)} (v\S+)")


@attrs.frozen(kw_only=True)
class GoModule:
    """A folder with go.mod and go.sum, and what `go build` is to make of the commands that it names as tools.

    Attributes:
        folder: where go.mod is.
        group: the name of the cache's folder.
        programs: what has to be there afterwards.
        flags: of `go build`, beside those of every build.
        named: what Go calls a program, and what it is to be called here.
        told: what is built and how long it takes, for a person who waits.
    """

    folder: Path
    group: str
    programs: tuple[str, ...]
    flags: tuple[str, ...]
    named: Mapping[str, str] = attrs.field(factory=dict)
    told: str

    def cache_folder(self) -> Path:
        """Where the programs of this checkout's go.mod are, or would be."""
        digest = hashlib.sha256()
        for part in (
            (self.folder / "go.mod").read_bytes(),
            (self.folder / "go.sum").read_bytes(),
            *map(str.encode, (*_FLAGS, *self.flags)),
        ):
            digest.update(part + b"\0")
        # A home folder may be shared by machines of different kinds.
        digest.update(f"{sys.platform} {platform.machine()}".encode())
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return root / "5spot" / self.group / digest.hexdigest()[:16]

    def cached(self, report: Report) -> Path:
        """The cache folder with all programs, built now if need be. Two runs at once build once.

        Raises:
            ProgramsUnavailable: no Go, no network, or the build failed.
        """
        folder = self.cache_folder()
        if not folder.is_dir():
            folder.parent.mkdir(parents=True, exist_ok=True)
            with _only_one(folder.with_suffix(".lock"), report) as lock:
                if not folder.is_dir():
                    self._build(folder, lock, report)
        return folder

    def go(self, report: Report) -> str:
        """The path of a Go toolchain that is new enough for go.mod.

        Raises:
            ProgramsUnavailable: there is none, and none can be installed.
        """
        return golang.find_or_install(golang.parse(_in_go_mod(self.folder, r"go (\d[\d.]*)")), report)

    def _build(self, folder: Path, lock: IO[str], report: Report) -> None:
        go = self.go(report)
        part = folder.with_suffix(".part")
        # Under the lock, what is there belongs to a build that was killed.
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        try:
            report(f"building {self.told}")
            command = [go, "build", "-v", *_FLAGS, *self.flags, "-o", str(part), "tool"]
            _run_go(command, self.folder, lock, report)
            for go_name, name in self.named.items():
                (part / go_name).rename(part / name)
            if absent := [name for name in self.programs if not (part / name).is_file()]:
                raise ProgramsUnavailable(f"go build made no {', '.join(absent)}")
            part.rename(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)


@contextmanager
def _only_one(path: Path, report: Report) -> Iterator[IO[str]]:
    with path.open("w") as lock:
        told = float("-inf")
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() - told >= REPORT_EVERY:
                    told = time.monotonic()
                    report("another run is building the programs; waiting for it")
                time.sleep(0.5)
        yield lock


def _run_go(command: list[str], folder: Path, lock: IO[str], report: Report) -> None:
    begun = time.monotonic()
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # Go outlives us when we are killed; holding the lock too, it keeps the next run out until it is done.
        pass_fds=(lock.fileno(),),
    ) as process:
        assert process.stderr is not None
        output = _Output(process.stderr)
        try:
            while process.poll() is None:
                try:
                    process.wait(REPORT_EVERY)
                except subprocess.TimeoutExpired:
                    report(f"{time.monotonic() - begun:.0f} s, {output.summary()}")
        except BaseException:
            process.terminate()
            raise
        output.join()
    if process.returncode != 0:
        for line in output.tail:
            report(line)
        raise ProgramsUnavailable(f"go build failed: {output.tail[-1]}")
    report(f"built in {time.monotonic() - begun:.0f} s")


class _Output(Thread):
    """Reads what `go build -v` says: a line for each package it compiles, then errors."""

    def __init__(self, stream: IO[str]) -> None:
        super().__init__(daemon=True)
        self._stream = stream
        self._lines = 0
        self.tail: deque[str] = deque(["nothing yet"], maxlen=5)
        self.start()

    def run(self) -> None:
        for line in self._stream:
            self._lines += 1
            self.tail.append(line.strip())

    def summary(self) -> str:
        return f"{self._lines} lines from go, the last: {self.tail[-1]}"


def _in_go_mod(folder: Path, pattern: str) -> str:
    found = re.search(rf"^\s*{pattern}\b", (folder / "go.mod").read_text(), re.MULTILINE)
    if found is None:
        raise ProgramsUnavailable(f"{folder / 'go.mod'} has no line like {pattern}")
    return found[1]
