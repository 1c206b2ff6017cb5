"""Waiting for something that cannot be subscribed to: poll, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(check: Callable[[], T], *, seconds: float, what: str, every: float = 0.05) -> T:
    """The first truthy answer of `check`, asked every `every` seconds.

    Raises:
        TimeoutError: naming `what`, when there was none within `seconds`. An exception of `check` goes through.
    """
    deadline = time.monotonic() + seconds
    while not (answer := check()):
        if time.monotonic() >= deadline:
            raise TimeoutError(f"not within {seconds:g} s: {what}")
        time.sleep(every)
    return answer
