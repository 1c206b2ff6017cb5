"""The tests' end of the supervisor: start, watch, signal and end named processes in one temporary folder."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Self

from tests.controlplane.errors import ControlPlaneFailed

_TAIL = 4_000
"""Bytes of a log that go into an error."""


# -I: the folder of this file is no import path, else our own modules could hide the standard library's.
_SUPERVISOR = ("-I", str(Path(__file__).with_name("supervisor.py")))


class StoppedAtTheEnd(ABC):
    """What a `with` statement stops, however its block ends."""

    @abstractmethod
    def stop(self) -> None:
        """End it; a second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


class SupervisedProcesses:
    """Processes that live no longer than this Python process, however it ends.

    Args:
        supervisor: what Python is told to run as their parent: `supervisor`, or what begins as it does.

    Raises:
        ControlPlaneFailed: the supervisor did not start.
    """

    def __init__(self, supervisor: Sequence[str] = _SUPERVISOR) -> None:
        self._supervisor = subprocess.Popen(
            [sys.executable, *supervisor],
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # Ctrl-C goes to everything in the terminal's foreground; the supervisor ends when the tests have ended.
            start_new_session=True,
        )
        self._lock = Lock()
        self._pids: dict[str, int] = {}
        begun = self._read()
        if "error" in begun:
            self._supervisor.communicate()
            raise ControlPlaneFailed(f"the parent of the processes cannot start: {begun['error']}")
        self.folder = Path(begun["folder"])

    @property
    def supervisor_pid(self) -> int:
        """The process that ends all others."""
        return self._supervisor.pid

    @property
    def pids(self) -> dict[str, int]:
        """The process of each name, as last started."""
        return dict(self._pids)

    def start(self, name: str, argv: Sequence[str]) -> None:
        """Start a process; its output is appended to NAME.log in the folder.

        Raises:
            ControlPlaneFailed: it cannot be executed.
        """
        self._pids[name] = self._ask(do="start", name=name, argv=list(argv))["pid"]

    def returncode(self, name: str) -> int | None:
        """How it ended, or None while it runs."""
        code: int | None = self._ask(do="poll", name=name)["returncode"]
        return code

    def send_signal(self, name: str, number: int) -> None:
        """Send a signal, and do not wait."""
        self._ask(do="signal", name=name, signal=int(number))

    def end(self, name: str, number: int = signal.SIGTERM) -> None:
        """Send a signal and wait until the process is dead; it is killed when that takes seconds."""
        self._ask(do="end", name=name, signal=int(number))

    def log(self, name: str) -> str:
        """The tail of what it printed."""
        path = self.folder / f"{name}.log"
        return path.read_bytes()[-_TAIL:].decode(errors="replace") if path.exists() else ""

    def close(self) -> None:
        """End everything and remove the folder; a second call does nothing."""
        with self._lock:
            assert self._supervisor.stdin is not None
            assert self._supervisor.stdout is not None
            # What could not be sent to a dead supervisor would be tried again, and fail again.
            with contextlib.suppress(BrokenPipeError):
                self._supervisor.stdin.close()
            self._supervisor.stdout.close()
            self._supervisor.wait()
        # The supervisor did this, unless somebody killed it.
        shutil.rmtree(self.folder, ignore_errors=True)

    def _ask(self, **request: object) -> dict[str, Any]:
        with self._lock:
            assert self._supervisor.stdin is not None
            try:
                self._supervisor.stdin.write(json.dumps(request) + "\n")
                self._supervisor.stdin.flush()
            except (ValueError, OSError) as error:
                raise ControlPlaneFailed(
                    f"the control plane is stopped; {request} was asked of it"
                ) from error
            answer = self._read()
        if "error" in answer:
            raise ControlPlaneFailed(f"{request}: {answer['error']}")
        return answer

    def _read(self) -> dict[str, Any]:
        assert self._supervisor.stdout is not None
        line = self._supervisor.stdout.readline()
        if not line:
            raise ControlPlaneFailed("the supervisor of the control plane has died")
        answer: dict[str, Any] = json.loads(line)
        return answer
