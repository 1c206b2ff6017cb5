"""That a machine has no such programs, and cannot make them."""

from __future__ import annotations


class ProgramsUnavailable(Exception):  # noqa: N818 - a state of the machine
    """The programs are not on this machine, and cannot be built here. The text is one line for a person."""
