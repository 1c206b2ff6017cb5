"""The bearer token of each request: where it comes from, and when it is read again.

An API server's answer 401 means that the token has expired or was replaced: it is read once more and the request is
sent once more, without touching any other request or watch. 403 is an answer like any other, and never repeated.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Protocol

import attrs
import httpx

_LOG = logging.getLogger(__name__)
_REREAD = 10.0
"""Seconds after which a token file is read again; the kubelet replaces it long before the old token expires."""
_UNAUTHORIZED = 401


class Tokens(Protocol):
    """Where tokens come from."""

    def current(self) -> str | None:
        """The token to send, or None for requests without one (client certificates)."""

    async def renewed(self, refused: str | None) -> str | None:
        """Another token than `refused`, if there is one by now."""


@attrs.frozen
class FixedToken:
    """A token that was given once, or none."""

    token: str | None = attrs.field(default=None, repr=False)

    def current(self) -> str | None:
        """Always the same."""
        return self.token

    async def renewed(self, refused: str | None) -> str | None:  # noqa: ARG002 - the protocol's
        """There is no other."""
        return self.token


class TokenFile:
    """A token in a file that somebody else replaces: a ServiceAccount's, or a kubeconfig's `tokenFile`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._token: str | None = None
        self._read_at = float("-inf")

    def current(self) -> str | None:
        """The token, at most _REREAD seconds old."""
        if time.monotonic() - self._read_at >= _REREAD:
            self._read()
        return self._token

    async def renewed(self, refused: str | None) -> str | None:  # noqa: ARG002 - the protocol's
        """What the file says now."""
        self._read()
        return self._token

    def _read(self) -> None:
        # A file of a few hundred bytes in memory: quicker than a thread would be.
        try:
            token = self._path.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            _LOG.warning("token file %s cannot be read, the token before is used: %s", self._path, error)
        else:
            self._token = token or self._token
        self._read_at = time.monotonic()


class PluginToken:
    """A token from a kubeconfig's exec plugin, which is run again when its token is refused."""

    def __init__(self, token: str | None, run: Callable[[], Awaitable[str | None]]) -> None:
        self._token = token
        self._run = run
        self._lock = asyncio.Lock()

    def current(self) -> str | None:
        """What the plugin said last."""
        return self._token

    async def renewed(self, refused: str | None) -> str | None:
        """Run the plugin, once for all the requests that were refused with the same token."""
        async with self._lock:
            if self._token == refused:
                self._token = await self._run()
            return self._token


class BearerAuth(httpx.Auth):
    """Puts the token on a request, and repeats the request once after a 401 that another token may cure."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """See httpx.Auth."""
        token = self._tokens.current()
        _bear(request, token)
        response = yield request
        if response.status_code == _UNAUTHORIZED and (renewed := await self._tokens.renewed(token)) != token:
            _bear(request, renewed)
            yield request


def _bear(request: httpx.Request, token: str | None) -> None:
    if token:
        request.headers["Authorization"] = f"Bearer {token}"
