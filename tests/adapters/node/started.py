"""Real processes under chosen names, and a proc file system made of files."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from fivespot.adapters.node.procfs import Procfs
from fivespot.core.agent.match import Answer, Matcher, Undecided

SLEEP = os.path.realpath(shutil.which("sleep") or "/bin/sleep")


def unique() -> str:
    """A name that no other process of this machine has, short enough for `comm`."""
    return f"fs{uuid4().hex[:8]}"


def program(folder: Path, name: str | bytes) -> bytes:
    """A program of this name that sleeps."""
    path = folder / os.fsdecode(name)
    shutil.copy(SLEEP, path)
    return bytes(path)


def script(folder: Path, name: str) -> Path:
    """A shell script of this name that waits for its input to end, without a child."""
    path = folder / name
    path.write_text("#!/bin/sh\nread line\n")
    path.chmod(0o755)
    return path


@contextmanager
def running(arguments: Sequence[str | bytes | Path], **options: Any) -> Iterator[int]:
    """A process, and what it starts itself, for as long as the block lasts; its pid."""
    with subprocess.Popen(
        arguments,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        **options,
    ) as process:
        try:
            yield process.pid
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def started(exe: bytes) -> None:
    """Wait until some process runs this executable."""
    for _ in range(200):
        if any(facts.exe == exe and facts.argv for facts in Procfs().read_all()):
            return
        time.sleep(0.01)
    raise AssertionError("not started within two seconds")


def settled(procfs: Procfs, pid: int, matcher: Matcher, **options: Any) -> Answer:
    """The answer once the process is through its exec."""
    for _ in range(200):
        found = procfs.examine(pid, matcher, **options)
        assert found is not None
        if not isinstance(found[1], Undecided):
            return found[1]
        time.sleep(0.01)
    raise AssertionError("still undecided after two seconds")


def fake_process(
    root: Path,
    pid: int,
    *,
    comm: bytes,
    argv: Sequence[bytes] = (),
    exe: str | None = None,
    cgroup: bytes | None = b"0::/\n",
    ppid: int = 1,
    state: bytes = b"S",
) -> None:
    """The files of one process, as the kernel writes them."""
    folder = root / str(pid)
    folder.mkdir(parents=True)
    numbers = [b"0"] * 48
    numbers[0], numbers[1], numbers[6], numbers[19] = state, b"%d" % ppid, b"4194304", b"%d" % (pid * 10)
    (folder / "stat").write_bytes(b"%d (%s) %s\n" % (pid, comm, b" ".join(numbers)))
    (folder / "cmdline").write_bytes(b"".join(argument + b"\0" for argument in argv))
    if cgroup is not None:
        (folder / "cgroup").write_bytes(cgroup)
    if exe is not None:
        (folder / "exe").symlink_to(exe)
