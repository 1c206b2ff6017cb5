"""Looks names up, without letting slow ones keep others waiting."""

import asyncio
import functools
import socket
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeAlias

_THREADS: Final = 32
"""A name that nobody answers for keeps a thread for half a minute, whatever becomes of whoever asked."""

LookUp: TypeAlias = Callable[[str, int], Awaitable[tuple[str, ...]]]
"""The addresses of a host, for TCP to a port, best first; raises OSError when it has none."""


class Names:
    """Looks names up in threads of its own: those of the event loop are few, and others need them.

    Who asks for a name that is being looked up already waits for the same answer.

    Args:
        addresses: looks one up, and may take long; the machine's resolver when None.
    """

    def __init__(self, addresses: Callable[[str, int], tuple[str, ...]] | None = None) -> None:
        self._addresses = addresses or addresses_of
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="names")
        self._under_way: dict[tuple[str, int], asyncio.Future[tuple[str, ...]]] = {}

    async def look_up(self, host: str, port: int) -> tuple[str, ...]:
        """See LookUp."""
        key = (host, port)
        found = self._under_way.get(key)
        if found is None:
            asking = asyncio.get_running_loop().run_in_executor(self._threads, self._addresses, host, port)
            found = self._under_way[key] = asyncio.ensure_future(asking)
            found.add_done_callback(functools.partial(self._ended, key))
        # Whoever gives up does so alone.
        return await asyncio.shield(found)

    def _ended(self, key: tuple[str, int], found: "asyncio.Future[tuple[str, ...]]") -> None:
        del self._under_way[key]
        if not found.cancelled():
            # Perhaps nobody waits any more; an error that nobody has seen would be told by the event loop.
            found.exception()


def addresses_of(host: str, port: int) -> tuple[str, ...]:
    """What the machine's resolver says; OSError when it knows nothing."""
    try:
        found = socket.getaddrinfo(host, port, proto=socket.IPPROTO_TCP)
    except UnicodeError as error:
        message = "it is no name"
        raise OSError(message) from error
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))
