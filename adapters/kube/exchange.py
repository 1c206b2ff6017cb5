"""One HTTP exchange with an API server: limits on time, size and number, and errors that are ours.

It knows requests and answers, not kinds. How a request is sent is handed in (`Send`): the gateway's kr8s.
"""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from typing import Protocol, TypeAlias

import httpx

from fivespot.adapters.kube import frames
from fivespot.adapters.kube.backoff import before_retry
from fivespot.adapters.kube.errors import ApiError, Asked, Unavailable, error_of

CONNECT = 5.0
"""Seconds for TCP and TLS, and for a free connection."""
SILENCE = 30.0
"""Seconds between two bytes of an answer."""
DEADLINE = 60.0
"""Seconds for a whole exchange; the API server itself gives up after 60."""

JSON = "application/json"

_TRANSPORT = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, frames.BadAnswer)
# What fails before a byte of the request is on its way.
_NOT_SENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.UnsupportedProtocol,
    httpx.InvalidURL,
    httpx.LocalProtocolError,
)

Params = Mapping[str, str | int | bool]

Fence: TypeAlias = Callable[[], float]
"""Seconds for which something may still be changed; raises LeadershipLost when nothing may."""


Answered: TypeAlias = Callable[[str, int], None]
"""Told of a request: its verb, and the HTTP code of the answer, 0 when there was none."""


def uncounted(_verb: str, _code: int) -> None:
    """Nobody counts."""


def unfenced() -> float:
    """For ever."""
    return float("inf")


class Send(Protocol):
    """Sends a request and holds its answer open, unread."""

    def __call__(
        self,
        method: str,
        path: str,
        *,
        params: Params,
        content: bytes | None,
        headers: Mapping[str, str],
        timeout: httpx.Timeout,
        lasting: bool = False,
    ) -> AbstractAsyncContextManager[httpx.Response]:
        """Raises httpx's errors, of the transport only; `lasting` are answers that go on for minutes."""


class Exchange:
    """Requests over one `Send`.

    Args:
        send: the transport.
        slots: bounds how many requests are in flight at once; None for those that may not wait behind others.
        bound: bytes of one answer.
        server: how messages call the other side.
        answered: called with a verb and the HTTP code of its answer, 0 when there was none.
        heard: called whenever something has come from the other side.
        fence: asked before each write, as late as possible. A write that is still under way when its time is up is
            given up: it must not wait in our queues and be done when somebody else leads.
    """

    def __init__(
        self,
        send: Send,
        *,
        slots: asyncio.Semaphore | None,
        bound: int,
        server: str,
        answered: Answered = uncounted,
        heard: Callable[[], None] = lambda: None,
        fence: Fence = unfenced,
    ) -> None:
        self._send = send
        self._answered = answered
        self._heard = heard
        self._fence = fence
        self._server = server
        self._slots: AbstractAsyncContextManager[None] = nullcontext() if slots is None else slots
        self._bound = bound
        self._random = random.Random()  # noqa: S311 - for jitter

    async def read(self, asked: Asked, path: str, params: Params | None = None) -> bytes:
        """GET, repeated a few times within seconds while the server is unavailable or throttles.

        Raises:
            ApiError: the answer, or that there was none.
        """
        begun, tries = time.monotonic(), 0
        while True:
            tries += 1
            try:
                return await self.once(asked, "GET", path, params=params)
            except ApiError as error:
                delay = before_retry(error, tries, time.monotonic() - begun, self._random)
                if delay is None:
                    raise
            await asyncio.sleep(delay)

    async def once(
        self,
        asked: Asked,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: object = None,
        content_type: str = JSON,
    ) -> bytes:
        """One request, one answer.

        Raises:
            ApiError: the answer, or that there was none.
            LeadershipLost: it is a write, and the fence is closed; nothing was sent.
        """
        content = None if body is None else frames.encode(body)
        async with self._slots:
            deadline = min(DEADLINE, self._fence()) if asked.writes else DEADLINE
            try:
                async with (
                    asyncio.timeout(deadline),
                    self._send(
                        method,
                        path,
                        params=params or {},
                        content=content,
                        headers={"Accept": JSON, "Content-Type": content_type},
                        timeout=httpx.Timeout(SILENCE, connect=CONNECT, pool=CONNECT),
                    ) as response,
                ):
                    answer = await self._whole(response)
            except _TRANSPORT as error:
                self._answered(asked.verb, 0)
                raise self._unavailable(asked, error) from error
        self._told(asked, response)
        if response.is_success:
            return answer
        raise _refused(asked, response, answer)

    async def lines(
        self,
        asked: Asked,
        path: str,
        params: Params,
        silence: float,
        opened: Callable[[], None] = lambda: None,
    ) -> AsyncGenerator[list[bytes], None]:
        """The lines of a stream, as many at a time as arrive together; ends when the server ends it.

        Args:
            asked: the request.
            path: URL path.
            params: query.
            silence: seconds without a byte after which the connection is taken for dead.
            opened: called once the server has agreed, which is long before it has something to say.

        Raises:
            ApiError: the server refuses, or the connection breaks.
        """
        try:
            async with AsyncExitStack() as stack:
                # Only until the headers: a server that accepts connections and says nothing is noticed at once.
                async with asyncio.timeout(SILENCE):
                    response = await stack.enter_async_context(
                        self._send(
                            "GET",
                            path,
                            params=params,
                            content=None,
                            # A compressed stream may come as several gzip members, of which httpx reads the first.
                            headers={"Accept": JSON, "Accept-Encoding": "identity"},
                            timeout=httpx.Timeout(silence, connect=CONNECT, pool=CONNECT),
                            lasting=True,
                        )
                    )
                    self._told(asked, response)
                    if not response.is_success:
                        raise _refused(asked, response, await self._whole(response))
                opened()
                splitter = frames.Frames(min(self._bound, frames.FRAME_BYTES))
                async for chunk in response.aiter_bytes():
                    self._heard()
                    yield splitter.feed(chunk)
        except _TRANSPORT as error:
            self._answered(asked.verb, 0)
            raise self._unavailable(asked, error) from error

    def _told(self, asked: Asked, response: httpx.Response) -> None:
        self._heard()
        self._answered(asked.verb, response.status_code)

    async def _whole(self, response: httpx.Response) -> bytes:
        pieces, size = [], 0
        async for piece in response.aiter_bytes():
            size += len(piece)
            if size > self._bound:
                message = f"the answer is larger than {self._bound} bytes"
                raise frames.BadAnswer(message)
            pieces.append(piece)
        return b"".join(pieces)

    def _unavailable(self, asked: Asked, error: Exception) -> Unavailable:
        said = str(error) or ("no answer in time" if isinstance(error, TimeoutError) else "")
        kind = "" if isinstance(error, frames.BadAnswer) else f" ({type(error).__name__})"
        message = f"{self._server}: {f'{said}{kind}'.strip()}"
        return Unavailable(asked, sent=not isinstance(error, _NOT_SENT), message=message)


def _refused(asked: Asked, response: httpx.Response, answer: bytes) -> ApiError:
    retry_after = response.headers.get("Retry-After")
    return error_of(asked, response.status_code, frames.decode_error(answer), retry_after)
