"""The parent of the control plane's processes: when its standard input ends, they end, and their folder goes.

Run as a program, with the standard library alone. However the tests end, by their own will, Ctrl-C or SIGKILL, the
kernel closes their end of the pipe, and that is the one event this process has to see.

It makes a temporary folder and prints {"folder": path}, or {"error": why not}. Then each line of JSON on standard input gets one line of
JSON back:

    {"do": "start", "name": ..., "argv": [...]}     {"pid": n}; output is appended to NAME.log in the folder
    {"do": "poll", "name": ...}                     {"returncode": n or null}
    {"do": "signal", "name": ..., "signal": n}      {}
    {"do": "end", "name": ..., "signal": n}         {"returncode": n}, when it is dead; SIGKILL after GRACE seconds
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

GRACE = 3.0
"""Seconds that a process has to stop by itself. Nothing here is worth flushing: the folder goes too."""

_PR_SET_PDEATHSIG = 1


class Processes:
    """Named child processes with their logs in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._pid = os.getpid()
        self._libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None

    def start(self, name: str, argv: list[str]) -> int:
        """Start it, and answer its pid."""
        with (self._folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                argv,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Safe: this program has one thread.
                preexec_fn=self._die_with_parent,  # noqa: PLW1509
            )
        # A restarted process keeps its place in the order of ending.
        self._running[name] = process
        return process.pid

    def poll(self, name: str) -> int | None:
        """How it ended, or None while it runs."""
        return self._running[name].poll()

    def signal(self, name: str, number: int) -> None:
        """Send it a signal; without effect when it is dead."""
        self._running[name].send_signal(number)

    def end(self, name: str, number: int) -> int:
        """Signal it and wait until it is dead."""
        process = self._running[name]
        process.send_signal(number)
        # A process that a test has stopped with SIGSTOP would sleep through SIGTERM.
        process.send_signal(signal.SIGCONT)
        try:
            return process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def end_all(self) -> None:
        """Last started, first ended: an API server that loses its etcd while stopping hangs for a minute."""
        for name in reversed(self._running):
            self.end(name, signal.SIGTERM)

    def _die_with_parent(self) -> None:
        """For the case that the supervisor itself is killed; runs in the child, before exec."""
        if self._libc is not None:
            self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            # It was killed before the line above could arrange for that.
            if os.getppid() != self._pid:
                os._exit(1)


def serve(processes: Processes) -> None:
    """Answer requests until there are no more, or nobody reads the answers."""
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        answer: dict[str, Any]
        try:
            answer = _answer(processes, request)
        except OSError as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


def _answer(processes: Processes, request: dict[str, Any]) -> dict[str, Any]:
    name = request["name"]
    match request["do"]:
        case "start":
            return {"pid": processes.start(name, request["argv"])}
        case "poll":
            return {"returncode": processes.poll(name)}
        case "signal":
            processes.signal(name, request["signal"])
            return {}
        case "end":
            return {"returncode": processes.end(name, request["signal"])}
    return {"error": f"unknown request {request['do']!r}"}


@contextmanager
def _folder(prefix: str) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        # From here on our own errors go to a file: holding on to the caller's stderr would keep open a pipe that
        # somebody waits on.
        log = os.open(folder / "supervisor.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, 2)
        os.close(log)
        yield folder
    finally:
        # Again and again: the tests may still write a kubeconfig while it goes.
        for _ in range(10):
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break


def main(
    prefix: str = "5spot-control-plane-",
    surroundings: Callable[[Path], AbstractContextManager[object]] = nullcontext,
) -> None:
    """Serve one caller; every way out passes by the cleaning.

    The folder's name begins with `prefix`. `surroundings` is entered with the folder before the first process is started,
    and left after the last has ended.
    """
    ends = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    for number in ends:
        signal.signal(number, lambda received, _frame: sys.exit(128 + received))
    with _folder(prefix) as folder, ExitStack() as around:
        try:
            around.enter_context(surroundings(folder))
        except OSError as error:
            print(json.dumps({"error": str(error)}), flush=True)
            raise
        processes = Processes(folder)
        try:
            print(json.dumps({"folder": str(folder)}), flush=True)
            serve(processes)
        except BrokenPipeError:
            pass
        finally:
            for number in ends:
                signal.signal(number, signal.SIG_IGN)
            processes.end_all()


if __name__ == "__main__":
    main()
