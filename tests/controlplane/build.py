"""Building the control plane's programs from public Go modules, once per machine.

go.mod and go.sum beside this file say what is built; the result is cached under their digest, so a new version is
a new folder and an old checkout still finds its own.
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import IO

from tests.controlplane import golang
from tests.controlplane.errors import ControlPlaneUnavailable

MODULE = Path(__file__).parent
REPORT_EVERY = 15.0
"""Seconds between two lines of progress."""

Report = Callable[[str], None]


def kubernetes_version() -> str:
    """The version in go.mod, such as v1.37.2."""
    return _in_go_mod(r"k8s\.io/kubernetes (v\S+)")


def flags() -> list[str]:
    """The flags of `go build`. Without the linker's, the API server calls itself v0.0.0."""
    version = kubernetes_version()
    major, minor, _ = version.removeprefix("v").split(".", 2)
    package = "k8s.io/component-base/version"
    stamps = f"-X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
    return ["-trimpath", "-mod=readonly", "-ldflags", f"-s -w {stamps}"]


def cache_folder() -> Path:
    """Where the programs of this checkout's go.mod are, or would be."""
    digest = hashlib.sha256()
    for part in (
        (MODULE / "go.mod").read_bytes(),
        (MODULE / "go.sum").read_bytes(),
        *map(str.encode, flags()),
    ):
        digest.update(part + b"\0")
    # A home folder may be shared by machines of different kinds.
    digest.update(f"{sys.platform} {platform.machine()}".encode())
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "5spot" / "controlplane" / digest.hexdigest()[:16]


def cached(programs: Sequence[str], report: Report) -> Path:
    """The cache folder with all `programs`, built now if need be. Two runs at once build once.

    Raises:
        ControlPlaneUnavailable: no Go, no network, or the build failed.
    """
    folder = cache_folder()
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _only_one(folder.with_suffix(".lock"), report) as lock:
            if not folder.is_dir():
                _build(folder, programs, lock, report)
    return folder


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


def _build(folder: Path, programs: Sequence[str], lock: IO[str], report: Report) -> None:
    go = golang.find_or_install(golang.parse(_in_go_mod(r"go (\d[\d.]*)")), report)
    part = folder.with_suffix(".part")
    # Under the lock, what is there belongs to a build that was killed.
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    try:
        report(
            f"building Kubernetes {kubernetes_version()} and etcd, once per machine: about 6 minutes on 2 cores"
        )
        _run_go([go, "build", "-v", *flags(), "-o", str(part), "tool"], lock, report)
        # Go names a program after the last element of its path: go.etcd.io/etcd/server/v3 becomes "server".
        (part / "server").rename(part / "etcd")
        if absent := [name for name in programs if not (part / name).is_file()]:
            raise ControlPlaneUnavailable(f"go build made no {', '.join(absent)}")
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _run_go(command: Sequence[str], lock: IO[str], report: Report) -> None:
    begun = time.monotonic()
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    with subprocess.Popen(
        command,
        cwd=MODULE,
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
        raise ControlPlaneUnavailable(f"go build failed: {output.tail[-1]}")
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


def _in_go_mod(pattern: str) -> str:
    found = re.search(rf"^\s*{pattern}\b", (MODULE / "go.mod").read_text(), re.MULTILINE)
    if found is None:
        raise ControlPlaneUnavailable(f"{MODULE / 'go.mod'} has no line like {pattern}")
    return found[1]
