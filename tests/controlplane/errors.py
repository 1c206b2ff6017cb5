"""A control plane that did not do what it should, and a kubectl that said no."""

from __future__ import annotations


class ControlPlaneFailed(Exception):  # noqa: N818 - a state of the machine
    """The programs are there, and one of them did not do what it should. The text ends with the tail of its log."""


class KubectlFailed(Exception):  # noqa: N818 - as above
    """kubectl said no; `stderr` is what it said."""

    def __init__(self, command: str, stderr: str) -> None:
        super().__init__(f"{command}\n{stderr.strip()}")
        self.stderr = stderr
