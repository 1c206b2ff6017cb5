"""Requests to one API server: the only module that knows kr8s.

kr8s loads the kubeconfig, runs its exec plugin, makes the TLS context and sends (ADR/0008). The rest of it is left
alone for what it does under load or failure: its objects, its watch, its discovery, its answer to 401 and 403 (a new
client, and every stream torn down); and `kr8s.api()`, which sends a request without a time limit, may hand out the
client of another cluster, and leaves private keys behind in the temporary folder when the server is down.
"""

import asyncio
import contextlib
import copy
import logging
import os
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio
import httpx
import kr8s
import yaml
from kr8s.asyncio import Api

from fivespot._version import VERSION
from fivespot.adapters.kube.connecting import SERVICE_ACCOUNT, impersonation, in_cluster, stamps
from fivespot.adapters.kube.credentials import BearerAuth, FixedToken, PluginToken, TokenFile, Tokens
from fivespot.adapters.kube.errors import NoCluster
from fivespot.adapters.kube.exchange import Answered, Exchange, Fence, Params, uncounted, unfenced
from fivespot.adapters.kube.kubeconfig import KubeconfigRejected, inline_kubeconfig
from fivespot.adapters.kube.operations import Operations
from fivespot.adapters.kube.resources import Object
from fivespot.adapters.network.sockets import Sockets

_LOG = logging.getLogger(__name__)

IN_FLIGHT = 8
"""Requests at once: a real API server does no more work for 16 than for 8."""
ANSWER_BYTES = 512 * 1024 * 1024
CHILD_ANSWER_BYTES = 64 * 1024 * 1024
"""A child cluster belongs to somebody else, and its server may say anything."""

# httpx's own bound is 100 connections; the 101st watch would wait for one to end.
_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=32, keepalive_expiry=45)

_UNAUTHORIZED = 401
_LOOK_SECONDS = 10.0
"""How often the files of a kubeconfig are looked at; whoever renews a certificate does it long before the old one ends."""

_GRAIN_NS = 100_000_000
"""Times of files are those of the kernel's last tick, so a file may look older than what was done before it."""

# What kr8s lets through for a kubeconfig or a plugin that is not as it should be.
_LOADING = (ValueError, LookupError, TypeError, AttributeError, RuntimeError, OSError, yaml.YAMLError)


class Gateway(Operations):
    """One cluster, as one account. Made by `connect` or `from_kubeconfig`; close it.

    Attributes:
        server: the URL of the API server.
        namespace: the account's own: of the pod, or of the kubeconfig's context.
        urgent: the same operations without waiting for a slot among the requests in flight, and without the fence;
            for lease renewal.
        fence: asked before every write; whoever leads a group of processes puts the end of its leadership here.
        answered: told of every request; whoever counts them puts it here.
    """

    def __init__(
        self,
        connection: "_Connection",
        *,
        namespace: str,
        in_flight: int,
        bound: int,
        renew: "Callable[[], Awaitable[_Connection]] | None" = None,
        fence: Fence = unfenced,
        answered: Answered = uncounted,
    ) -> None:
        self.fence = fence
        self.answered = answered
        self._heard_at = float("-inf")
        self._connection = connection
        self._renew = renew
        self._renewing = asyncio.Lock()
        self._look_at = time.monotonic() + _LOOK_SECONDS
        self._closed = False
        self.server = connection.server
        self.namespace = namespace
        slots = asyncio.Semaphore(in_flight)
        shared: dict[str, Any] = {
            "bound": bound,
            "server": self.server,
            "answered": self._tell,
            "heard": self._heard,
        }
        super().__init__(Exchange(self._send, slots=slots, fence=self._left, **shared))
        unbounded = Exchange(self._send, slots=None, **shared)
        self.urgent = Operations(unbounded, self._resolver)

    @classmethod
    async def connect(
        cls,
        *,
        kubeconfig: str | Path | None = None,
        context: str | None = None,
        acting_as: str | None = None,
        in_flight: int = IN_FLIGHT,
        service_account: Path = SERVICE_ACCOUNT,
    ) -> Self:
        """The cluster of a kubeconfig or, in a pod where none is named, the pod's own.

        Nothing is sent yet: a server that is down is an error of the first request. In a pod neither $KUBECONFIG nor
        ~/.kube/config counts; elsewhere they do, as for kubectl. `acting_as` is a user to impersonate (`kubectl --as`).

        Raises:
            NoCluster: no kubeconfig, or one that cannot be used.
        """
        here = in_cluster(service_account) if kubeconfig is None and context is None else None
        tokens = TokenFile(here.token_file) if here is not None else None
        shown = str(kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config")

        async def connection() -> _Connection:
            if here is not None:
                return await _Connection.open(
                    _api(here.kubeconfig), "the pod's ServiceAccount", tokens, acting_as
                )
            api = _api(None if kubeconfig is None else str(kubeconfig), context)
            return await _Connection.open(api, shown, acting_as=acting_as)

        first = await connection()
        return cls(
            first,
            namespace=here.namespace if here is not None else first.namespace,
            in_flight=in_flight,
            bound=ANSWER_BYTES,
            renew=connection,
        )

    @classmethod
    async def from_kubeconfig(
        cls,
        text: str,
        *,
        allow_local: bool,
        in_flight: int = IN_FLIGHT,
        fence: Fence = unfenced,
        answered: Answered = uncounted,
    ) -> Self:
        """The child cluster of a kubeconfig that came out of a Secret; nothing is sent yet.

        Raises:
            KubeconfigRejected: it asks for anything but inline credentials and https.
        """
        # In a thread: parsing the largest text that is allowed takes a second.
        config = await asyncio.to_thread(inline_kubeconfig, text, allow_local=allow_local)
        try:
            connection = await _Connection.open(_api(config), "the Secret", allow_local=allow_local)
        except NoCluster as error:
            remedy = "certificate, key and authority have to be readable, and to fit together"
            raise KubeconfigRejected("", remedy) from error
        return cls(
            connection,
            namespace="default",
            in_flight=in_flight,
            bound=CHILD_ANSWER_BYTES,
            fence=fence,
            answered=answered,
        )

    @property
    def silence(self) -> float:
        """Seconds since something came from the server; infinite before anything did."""
        return time.monotonic() - self._heard_at

    async def close(self) -> None:
        """End all requests and watches; those in flight fail with Unavailable. A second call does nothing."""
        self._closed = True
        await self._connection.close()

    async def retire(self) -> None:
        """Ask nothing any more, and close it once what is under way has come to its end."""
        self._closed = True
        await self._connection.retire()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def _left(self) -> float:
        return self.fence()

    def _tell(self, verb: str, code: int) -> None:
        if code == _UNAUTHORIZED:
            # Whoever renewed what we are known by has done so by now, or will soon.
            self._look_at = 0.0
        self.answered(verb, code)

    def _heard(self) -> None:
        self._heard_at = time.monotonic()

    @contextlib.asynccontextmanager
    async def _send(
        self,
        method: str,
        path: str,
        *,
        params: Params,
        content: bytes | None,
        headers: Mapping[str, str],
        timeout: httpx.Timeout,  # noqa: ASYNC109 - httpx's limits on connecting and silence
        lasting: bool = False,
    ) -> AsyncIterator[httpx.Response]:
        connection = await self._current()
        if self._closed:
            # kr8s would open a new client.
            message = "the gateway is closed"
            raise httpx.ConnectError(message)
        base, _, last = path.rpartition("/")
        try:
            async with (
                connection.use(lasting=lasting) as api,
                api.call_api(
                    method,
                    version="",
                    # kr8s joins base and url with a slash and insists on a base; /version/ is served like /version.
                    base=base or path,
                    url=last if base else "",
                    raise_for_status=False,
                    stream=True,
                    params=params,
                    content=content,
                    headers=headers,
                    timeout=timeout,
                    auth=connection.auth,
                ) as response,
            ):
                yield response
        except anyio.ClosedResourceError as error:
            # What a request meets whose socket is closed while it opens; httpcore has no word of its own for it.
            message = "the gateway was closed"
            raise httpx.ConnectError(message) from error
        except kr8s.APITimeoutError as error:
            # It hides which limit it was, and whether the request had been sent.
            raise error.__cause__ or TimeoutError from error

    async def _current(self) -> "_Connection":
        """The connection to use: a new one where the files that the last was made from have changed.

        Whatever is under way on the old one goes on there.
        """
        if self._renew is None or time.monotonic() < self._look_at:
            return self._connection
        async with self._renewing:
            if time.monotonic() < self._look_at:
                return self._connection
            self._look_at = time.monotonic() + _LOOK_SECONDS
            if self._connection.outdated():
                try:
                    new = await self._renew()
                except NoCluster as error:
                    # Half a file, most likely; the next look comes soon.
                    _LOG.warning("the credentials have changed, and cannot be used: %s", error)
                else:
                    if self._closed:
                        await new.close()
                        return self._connection
                    _LOG.info("the credentials have changed, and the new ones are used")
                    before, self._connection = self._connection, new
                    await before.retire()
        return self._connection


class _Connection:
    """One set of credentials, the files that it was read from, and its two clients.

    One is for requests and one for streams: httpcore looks at every connection of a client for every request, and dozens
    of open watches among them cost more than the request.
    """

    def __init__(
        self,
        api: Api,
        *,
        verify: ssl.SSLContext | bool,
        tokens: Tokens | None,
        acting_as: str | None,
        sockets: Sockets,
    ) -> None:
        self._api = api
        self._sockets = sockets
        self._streams = copy.copy(api)
        self._streams._session = _client(api, acting_as, sockets, verify=verify)  # noqa: SLF001 - see _open
        self._uses = 0
        self._retired = False
        # None: to be read again, whatever the files look like.
        self._stamps = self._look()
        self.auth = BearerAuth(tokens or _tokens(api, self._doubt))
        self.server = api.auth.server
        self.namespace = str(_entries(api)[0].get("namespace") or "default")

    @classmethod
    async def open(
        cls,
        api: Api,
        shown: str,
        tokens: Tokens | None = None,
        acting_as: str | None = None,
        *,
        allow_local: bool = True,
    ) -> "_Connection":
        """Load the configuration and make the client.

        Args:
            api: kr8s' own, with nothing loaded.
            shown: what the configuration came from, for messages.
            tokens: instead of the configuration's.
            acting_as: a user to impersonate.
            allow_local: whether the server's name may stand for this machine or a link-local neighbour.

        Raises:
            NoCluster: there is none, or it cannot be used.
        """
        begun = time.time_ns() - _GRAIN_NS
        sockets = Sockets()
        verify = await _open(api, acting_as, sockets, shown=shown)
        if not allow_local:
            sockets.guarded = httpx.URL(api.auth.server).raw_host.decode()
        made = cls(api, verify=verify, tokens=tokens, acting_as=acting_as, sockets=sockets)
        if any(found is not None and found[1] >= begun for found in made._stamps or ()):
            # Written while it was read: perhaps half of it was.
            made._doubt()
        return made

    @contextlib.asynccontextmanager
    async def use(self, *, lasting: bool) -> AsyncIterator[Api]:
        """The client for requests, or for what lasts; not closed before the end of the block."""
        self._uses += 1
        try:
            yield self._streams if lasting else self._api
        finally:
            self._uses -= 1
            if self._retired and not self._uses:
                await self.close()

    async def retire(self) -> None:
        """Close it when the last use has ended."""
        self._retired = True
        if not self._uses:
            await self.close()

    async def close(self) -> None:
        """Close it now."""
        for api in (self._api, self._streams):
            if api._session is not None:  # noqa: SLF001 - see _open
                await api._session.aclose()  # noqa: SLF001
        await self._sockets.close()

    def outdated(self) -> bool:
        """Whether a file has changed since, or the exec plugin has made another certificate."""
        return self._look() != self._stamps

    def _doubt(self) -> None:
        self._stamps = None

    def _look(self) -> tuple[tuple[int, int, int] | None, ...] | None:
        """What tells one state of the files from another; names that are replaced by renaming have a new inode."""
        return stamps(_files(self._api))


def _files(api: Api) -> list[Path]:
    """The kubeconfig and every certificate and key that it names; none for one that came from memory."""
    config = api.auth.kubeconfig
    paths = [str(getattr(part, "path", "") or "") for part in getattr(config, "_configs", ())]
    _, cluster, user = _entries(api)
    base = Path(paths[0]).expanduser().parent if paths and paths[0] else Path()
    named = [cluster.get("certificate-authority"), user.get("client-certificate"), user.get("client-key")]
    return [Path(path).expanduser() for path in paths if path] + [base / str(path) for path in named if path]


def _api(kubeconfig: Object | str | None, context: str | None = None) -> Api:
    # Without a ServiceAccount folder it cannot fall back on one, which would be another account than was asked for.
    return Api(kubeconfig=kubeconfig, context=context, serviceaccount="", bypass_factory=True)


async def _open(api: Api, acting_as: str | None, sockets: Sockets, *, shown: str) -> ssl.SSLContext | bool:
    """Load the configuration and make the client, without a request; how servers are verified.

    kr8s makes its client in the first request: two first requests make two of them and lose one, with its sockets.
    Its client follows redirects, which a child's server could point at our own network, and holds 100 connections.
    """
    try:
        verify = await _load(api)
        api._session = _client(api, acting_as, sockets, verify=verify)  # noqa: SLF001 - kr8s is pinned; there is no other way to set its limits
    except _LOADING as error:
        message = f"no cluster to talk to by {shown}: {error}; name another kubeconfig or context"
        raise NoCluster(message) from error
    return verify


def _client(
    api: Api, acting_as: str | None, sockets: Sockets, *, verify: ssl.SSLContext | bool
) -> httpx.AsyncClient:
    user = {"as": acting_as} if acting_as is not None else _entries(api)[2]
    return httpx.AsyncClient(
        base_url=api.auth.server,
        headers=[(b"User-Agent", f"5spot/{VERSION}".encode()), *impersonation(user)],
        verify=verify,
        timeout=httpx.Timeout(30.0),
        follow_redirects=False,
        proxy=api.auth.proxy,
        limits=_LIMITS,
        # Not with each request: for one with a name of its own for TLS, kr8s sets all extensions anew.
        event_hooks={"request": [sockets.attend]},
    )


async def _load(api: Api) -> ssl.SSLContext | bool:
    try:
        await api.auth
        verify: ssl.SSLContext | bool = await api.auth.ssl_context()  # type: ignore[no-untyped-call]
    finally:
        _shred(api)
    return verify


def _shred(api: Api) -> None:
    """Delete the files that kr8s has written for inline certificates and keys; the TLS context has read them."""
    _, cluster, user = _entries(api)
    written = (
        (user, "client-key-data", api.auth.client_key_file),
        (user, "client-certificate-data", api.auth.client_cert_file),
        (cluster, "certificate-authority-data", api.auth.server_ca_file),
    )
    for entry, field, path in written:
        if path is not None and field in entry:
            Path(path).unlink(missing_ok=True)


def _entries(api: Api) -> tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]:
    """Context, cluster and user in use, in kr8s' own words, exec plugin's certificates included; empty when unknown."""
    try:
        config = api.auth.kubeconfig
        context = config.get_context(api.auth.active_context)
        return context, config.get_cluster(context["cluster"]), config.get_user(context["user"])
    except (AttributeError, LookupError, TypeError, ValueError):
        return {}, {}, {}


def _tokens(api: Api, refreshed: Callable[[], None]) -> Tokens:
    user = _entries(api)[2]
    token = api.auth.token.strip() if api.auth.token else None
    if "exec" in user:
        return PluginToken(token, _plugin(api, refreshed))
    if path := user.get("tokenFile"):
        # Relative to the kubeconfig that says so, as kubectl reads it.
        return TokenFile(Path(str(api.auth.kubeconfig.get_path(api.auth.active_context))).parent / str(path))
    return FixedToken(token)


def _plugin(api: Api, refreshed: Callable[[], None]) -> "Callable[[], Any]":
    async def run() -> str | None:
        before = _entries(api)[2].get("client-certificate-data")
        try:
            await api.auth.reauthenticate()
        except _LOADING as error:
            _LOG.warning("the kubeconfig's exec plugin failed, the token before is used: %s", error)
        finally:
            _shred(api)
        if _entries(api)[2].get("client-certificate-data") != before:
            # The certificate is the client's, not the request's.
            refreshed()
        return api.auth.token.strip() if api.auth.token else None

    return run
