"""Whose fault it is that there is no control plane: the machine's, or the control plane's."""

from __future__ import annotations


class ControlPlaneUnavailable(Exception):  # noqa: N818 - a state of the machine
    """This machine has no control plane programs and cannot build them. The text is one line for a person."""


class ControlPlaneFailed(Exception):  # noqa: N818 - as above
    """The programs are there, and one of them did not do what it should. The text ends with the tail of its log."""


class KubectlFailed(Exception):  # noqa: N818 - as above
    """kubectl said no; `stderr` is what it said."""

    def __init__(self, command: str, stderr: str) -> None:
        super().__init__(f"{command}\n{stderr.strip()}")
        self.stderr = stderr
