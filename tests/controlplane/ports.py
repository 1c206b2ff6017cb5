"""Loopback ports that nobody uses."""

from __future__ import annotations

import random
import socket

# Below the range that Linux hands to outgoing connections (32768 and up). A client that keeps dialling a dead port
# inside that range can be given that very port, connect to itself, and so keep a restarted API server from binding.
RANGE = range(20_000, 30_000)


def free_ports(count: int) -> list[int]:
    """`count` different TCP ports of 127.0.0.1 that were free a moment ago; another program may be faster.

    Raises:
        OSError: no free port in 1,000 tries.
    """
    found: list[int] = []
    for port in random.sample(RANGE, k=1_000):
        with socket.socket() as candidate:
            try:
                candidate.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise OSError(f"no {count} free ports between {RANGE.start} and {RANGE.stop}")
