"""What one check found, in words for a person, and what to do about it."""

from collections.abc import Iterable
from enum import Enum

import attrs


class Level(Enum):
    """How a check came out."""

    OK = "ok"
    WARNING = "warning"
    """It works, and something is as nobody would want it; or it could not be told."""
    FAILED = "failed"
    """It cannot work like this."""


@attrs.frozen(kw_only=True)
class Finding:
    """One line of a report.

    Attributes:
        subject: what was looked at, in a word or two: `permissions`, `Secret floor-2/grid-kubeconfig`.
        message: what was found, as one sentence without a full stop.
        fix: what to do about it, likewise, often a command; empty when there is nothing to do.
    """

    level: Level
    subject: str
    message: str
    fix: str = ""


def ok(subject: str, message: str) -> Finding:
    """All is well."""
    return Finding(level=Level.OK, subject=subject, message=message)


def warning(subject: str, message: str, fix: str) -> Finding:
    """Something that a person should know."""
    return Finding(level=Level.WARNING, subject=subject, message=message, fix=fix)


def failed(subject: str, message: str, fix: str) -> Finding:
    """Something without which it cannot work."""
    return Finding(level=Level.FAILED, subject=subject, message=message, fix=fix)


def worst(findings: Iterable[Finding]) -> Level:
    """The worst level among them; OK when there are none."""
    order = list(Level)
    return max((finding.level for finding in findings), key=order.index, default=Level.OK)
