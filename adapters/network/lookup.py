"""Looks names up, without letting slow ones keep others waiting."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from threading import Thread
from typing import Final, TypeAlias

_AT_ONCE: Final = 32
"""A name that nobody answers for keeps a thread for half a minute, whatever becomes of whoever asked."""

Addresses: TypeAlias = tuple[str, ...]
LookUp: TypeAlias = Callable[[str, int], Awaitable[Addresses]]
"""The addresses of a host, for TCP to a port, best first; raises OSError when it has none."""


def addresses_of(host: str, port: int) -> Addresses:
    """What the machine's resolver says; OSError when it knows nothing. It may take long, and cannot be interrupted."""
    try:
        found = socket.getaddrinfo(host, port, proto=socket.IPPROTO_TCP)
    except UnicodeError as error:
        message = "it is no name"
        raise OSError(message) from error
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


class Names:
    """Looks names up in threads of its own: those of the event loop are few, and others need them.

    No thread keeps the process from ending. Who asks for a name that is being looked up already waits for the same answer.

    Args:
        addresses: looks one name up.
    """

    def __init__(self, addresses: Callable[[str, int], Addresses] = addresses_of) -> None:
        self._addresses = addresses
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._under_way: dict[tuple[str, int], asyncio.Task[Addresses]] = {}

    async def look_up(self, host: str, port: int) -> Addresses:
        """See LookUp."""
        key = (host, port)
        found = self._under_way.get(key)
        if found is None:
            found = self._under_way[key] = asyncio.get_running_loop().create_task(
                self._found(host, port), name=f"look up {host}"
            )
            found.add_done_callback(lambda done: self._ended(key, done))
        # Whoever gives up does so alone.
        return await asyncio.shield(found)

    def _ended(self, key: tuple[str, int], done: "asyncio.Task[Addresses]") -> None:
        del self._under_way[key]
        if not done.cancelled():
            # Perhaps nobody waits any more; an error that nobody has seen would be told by the event loop.
            done.exception()

    async def _found(self, host: str, port: int) -> Addresses:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Addresses] = loop.create_future()

        def settle(found: Addresses | OSError) -> None:
            if answer.done():
                return
            if isinstance(found, OSError):
                answer.set_exception(found)
            else:
                answer.set_result(found)

        def ask() -> None:
            found: Addresses | OSError
            try:
                found = self._addresses(host, port)
            except OSError as error:
                found = error
            # The loop may have ended meanwhile.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, found)

        async with self._slots:
            Thread(target=ask, name=f"look up {host}", daemon=True).start()
            return await answer
