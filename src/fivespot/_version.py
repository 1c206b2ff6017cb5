"""The version of this distribution, read by the build and by `5spot --version`."""

from datetime import UTC, datetime

VERSION = "0.1.0"

BUILT = datetime(2026, 11, 1, tzinfo=UTC)
"""Not after this version was made: a clock that says less is wrong, and no schedule is answered by it."""
