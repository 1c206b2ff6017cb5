"""The sockets of a client: none is left open, and none leads where it must not.

httpcore forgets a socket whose request is cancelled during the TLS handshake, and its pool one whose handshake ends after
the pool was closed: both would stay open until the garbage collector finds them. And a name is as good as the address
that it stands for, which only the socket knows.
"""

import weakref
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import httpcore
import httpx

from fivespot.adapters.network.addresses import LOCAL, is_local

_Trace = Callable[[str, Mapping[str, Any]], Awaitable[None]]


class Sockets:
    """Every socket of one client, from the moment it is connected.

    Attributes:
        guarded: a host whose name must not stand for a local address (`is_local`); nothing is sent to it if it does.
            Others, a proxy's, were chosen by whoever runs us.
    """

    def __init__(self, guarded: str | None = None) -> None:
        self.guarded = guarded
        self._closed = False
        self._open: weakref.WeakSet[httpcore.AsyncNetworkStream] = weakref.WeakSet()

    async def attend(self, request: httpx.Request) -> None:
        """See to the socket that a request opens, if it opens one: a hook of httpx, for every request of the client."""
        request.extensions["trace"] = self._trace()

    async def close(self) -> None:
        """Close what is open, and from now on whatever opens."""
        self._closed = True
        for stream in list(self._open):
            await stream.aclose()

    def _trace(self) -> _Trace:
        """What httpcore calls with everything that begins, ends or fails in one request."""
        host: str | None = None
        opened: httpcore.AsyncNetworkStream | None = None

        async def told(event: str, info: Mapping[str, Any]) -> None:
            nonlocal host, opened
            if event.endswith("connect_tcp.started"):
                host = info["host"]
            elif event.endswith(("connect_tcp.complete", "start_tls.complete")):
                opened = stream = info["return_value"]
                self._open.add(stream)
                if self._closed:
                    await stream.aclose()
                elif host == self.guarded and event.endswith("connect_tcp.complete"):
                    await _check_peer(stream)
            elif event.endswith("start_tls.failed") and opened is not None:
                await opened.aclose()

        return told


async def _check_peer(stream: httpcore.AsyncNetworkStream) -> None:
    try:
        # None, or an error of the socket, where the other end has gone already.
        peer = stream.get_extra_info("server_addr") or ("",)
    except OSError as error:
        await stream.aclose()
        raise httpcore.ConnectError(str(error)) from error
    if is_local(str(peer[0])):
        await stream.aclose()
        message = f"its name stands for {peer[0]}, which is {LOCAL}"
        raise httpcore.ConnectError(message)
