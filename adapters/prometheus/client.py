"""One question to one Prometheus over HTTP, and what came of it as a value.

Whoever writes a PrometheusSpotSchedule chooses where this process connects to, and what it sends there. So every name is
looked up first and all its addresses are judged, the connection goes to an address that was judged, redirects lead no
further than the same host, and size, time and compression of an answer are bounded. Each question has a connection of its
own: it is asked every half minute, and a name, a certificate or a token may have changed since.
"""

import asyncio
import json
import ssl
from collections.abc import Mapping
from typing import Any, Final

import attrs
import httpx

from fivespot._version import VERSION
from fivespot.adapters.network.addresses import LOCAL, is_local
from fivespot.adapters.network.lookup import LookUp, Names
from fivespot.adapters.network.sockets import Sockets
from fivespot.adapters.network.words import is_one_word
from fivespot.adapters.prometheus.trust import CannotTrust, Trust
from fivespot.core.api import reasons
from fivespot.core.ports import Clock
from fivespot.core.provider.prometheus import printable, truth_of
from fivespot.core.provider.question import Heard, Question

_SECONDS: Final = 10.0
"""One question, from the look-up of the name to the last byte."""
_CONNECT: Final = 5.0
_BYTES: Final = 1024 * 1024
_REDIRECTS: Final = 3
_QUERY_PATH: Final = "/api/v1/query"
_PORTS: Final = {"http": 80, "https": 443}
_OWN_WORDS: Final = (400, 422, 503)
"""With these Prometheus says in its own words what is wrong."""
_DENIED: Final = (401, 403)


class _Failed(Exception):  # noqa: N818 - it never leaves this module
    """Why there is no answer."""

    def __init__(self, message: str, reason: str = reasons.QUERY_FAILED, detail: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.detail = detail


@attrs.frozen
class _Place:
    """Where to connect: what the URL says, and the addresses that its host stands for."""

    url: httpx.URL
    host: str
    port: int
    addresses: tuple[str, ...]

    def at(self, address: str) -> httpx.URL:
        """The URL with an address in the place of the host: nobody looks the host up again."""
        return self.url.copy_with(host=address)


class Prometheus:
    """Asks questions.

    Args:
        clock: samples of another time than its `now` are not believed.
        allow_local: whether a URL may lead to a local address (`is_local`).
        look_up: the addresses of names.
    """

    def __init__(self, clock: Clock, *, allow_local: bool, look_up: LookUp | None = None) -> None:
        self._clock = clock
        self._allow_local = allow_local
        self._look_up = look_up or Names().look_up
        self._trust = Trust()

    async def ask(self, question: Question, *, ca: str | None, token: str | None) -> Heard:
        """Ask once.

        Args:
            question: what, and where.
            ca: PEM of the authority that the server's certificate has to be from; None for those that are publicly known.
            token: a bearer token.
        """
        try:
            async with asyncio.timeout(_SECONDS):
                answer = await self._answer(question, self._trust.context(ca), token)
        except CannotTrust as error:
            return Heard(None, reasons.QUERY_FAILED, str(error))
        except TimeoutError:
            return Heard(None, reasons.QUERY_FAILED, f"no answer within {_SECONDS:g} s")
        except _Failed as error:
            return Heard(None, error.reason, str(error), error.detail)
        return truth_of(answer, self._clock.now())

    async def _answer(self, question: Question, context: ssl.SSLContext, token: str | None) -> object:
        url = _read(f"{question.url}{_QUERY_PATH}")
        for _ in range(_REDIRECTS + 1):
            found = await self._asked(await self._place(url), question, context, token)
            if not isinstance(found, _Redirect):
                return found
            url = _followed(url, found.location)
        message = f"more than {_REDIRECTS} redirects"
        raise _Failed(message)

    async def _place(self, url: httpx.URL) -> _Place:
        """Look up the host, and judge every address that it stands for."""
        host, port = url.raw_host.decode(), url.port or _PORTS[url.scheme]
        self._judge(host, host)
        try:
            addresses = await self._look_up(host, port)
        except OSError as error:
            message = f"the host {printable(url.host)} cannot be looked up"
            raise _Failed(message) from error
        # One bad address among good ones is no accident.
        self._judge(host, *addresses)
        return _Place(url, host, port, addresses)

    def _judge(self, host: str, *addresses: str) -> None:
        """Refuse a host that leads where no schedule may lead."""
        if not self._allow_local and any(is_local(address) for address in addresses):
            message = f"the host {printable(host)} is {LOCAL}; --allow-local-prometheus permits that"
            raise _Failed(message, reasons.ADDRESS_REFUSED)

    async def _asked(
        self, place: _Place, question: Question, context: ssl.SSLContext, token: str | None
    ) -> object:
        sockets = Sockets()
        headers = {
            "Host": place.url.netloc.decode(),
            "User-Agent": f"5spot/{VERSION}",
            "Accept": "application/json",
            # A compressed answer may be much larger than what comes over the wire.
            "Accept-Encoding": "identity",
        }
        if token is not None:
            headers["Authorization"] = f"Bearer {_bearable(token)}"
        async with httpx.AsyncClient(
            verify=context,
            # A proxy would look the name up itself, and connect to whatever it finds.
            trust_env=False,
            follow_redirects=False,
            timeout=httpx.Timeout(_SECONDS, connect=_CONNECT / len(place.addresses)),
            event_hooks={"request": [sockets.attend]},
        ) as client:
            try:
                return await self._first(client, place, question, headers)
            except (httpx.HTTPError, httpx.InvalidURL, ValueError, TypeError) as error:
                # The last two are what a name says that is none, below TLS.
                message = f"{place.host}:{place.port}: {_words(error)}"
                raise _Failed(message) from error
            finally:
                await sockets.close()

    async def _first(
        self, client: httpx.AsyncClient, place: _Place, question: Question, headers: Mapping[str, str]
    ) -> object:
        """The answer from the first of the addresses that can be connected to."""
        # No certificate has the dot at the end that keeps a resolver from searching.
        name = question.server_name or place.host.rstrip(".")
        for address in place.addresses[:-1]:
            try:
                return await _exchanged(client, place.at(address), question.query, headers, name)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue
        return await _exchanged(client, place.at(place.addresses[-1]), question.query, headers, name)


def _read(url: str) -> httpx.URL:
    try:
        found = httpx.URL(url)
    except (httpx.InvalidURL, ValueError, TypeError) as error:
        message = f"the url cannot be read: {error}"
        raise _Failed(message) from error
    if found.scheme not in _PORTS or not found.host:
        message = "the url has no host, or is neither http nor https"
        raise _Failed(message)
    return found


def _bearable(token: str) -> str:
    token = token.strip()
    if not token or not is_one_word(token):
        # A newline at the end is what `echo TOKEN | base64` leaves; anything else inside is no token.
        message = "spec.bearerTokenSecretRef: the value is no token; put the token there, and nothing else"
        raise _Failed(message)
    return token


@attrs.frozen
class _Redirect:
    location: str


async def _exchanged(
    client: httpx.AsyncClient, url: httpx.URL, query: str, headers: Mapping[str, str], name: str
) -> object:
    # As a form: a query may be longer than what servers and proxies take in a URL.
    async with client.stream(
        "POST", url, data={"query": query}, headers=headers, extensions={"sni_hostname": name}
    ) as response:
        code = response.status_code
        if response.has_redirect_location:
            return _Redirect(response.headers["Location"])
        if code in _DENIED:
            message = f"the server answers {code}: does it take the token?"
            raise _Failed(message)
        if not response.is_success and code not in _OWN_WORDS:
            message = f"the server answers {code}: is the url the base of a Prometheus?"
            raise _Failed(message)
        if response.headers.get("Content-Encoding", "identity") != "identity":
            message = "the answer is compressed, though we did not ask for that"
            raise _Failed(message)
        body = bytearray()
        async for piece in response.aiter_raw():
            body += piece
            if len(body) > _BYTES:
                message = f"the answer is larger than {_BYTES} bytes: aggregate the query"
                raise _Failed(message, reasons.QUERY_UNUSABLE)
    answer = _decoded(bytes(body), code)
    if not response.is_success and (not isinstance(answer, Mapping) or answer.get("status") != "error"):
        message = f"the server answers {code}, and says nothing that Prometheus would"
        raise _Failed(message)
    return answer


def _decoded(body: bytes, code: int) -> object:
    try:
        found: Any = json.loads(body)
    except (ValueError, RecursionError) as error:
        message = f"the answer, with status {code}, is no JSON: is the url the base of a Prometheus?"
        raise _Failed(message) from error
    return found


def _followed(url: httpx.URL, location: str) -> httpx.URL:
    """Where a redirect leads, if it may lead there: the same host and port, or https at the same host.

    Raises:
        _Failed: it leads elsewhere.
    """
    try:
        target = url.join(location)
        before, after = (_origin(found) for found in (url, target))
    except (httpx.InvalidURL, ValueError, KeyError):
        target, before, after = url, ("", "", 0), None
    if after == before or (after is not None and (before[0], after[:2]) == ("http", ("https", before[1]))):
        # Who is named before the host is nobody's business here.
        return target.copy_with(userinfo=b"")
    message = "the server redirects to another place; write the url that it means, if it is the right one"
    raise _Failed(message, reasons.ADDRESS_REFUSED, detail=printable(location))


def _origin(url: httpx.URL) -> tuple[str, str, int]:
    return url.scheme, url.raw_host.decode(), url.port or _PORTS[url.scheme]


def _words(error: Exception) -> str:
    """What is wrong, without what differs from one attempt to the next."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {cause.verify_message}"
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, (ValueError, TypeError, httpx.InvalidURL)):
        return "its name, or spec.tls.serverName, is no name that a certificate can have"
    if isinstance(error, httpx.TimeoutException):
        return "no answer in time"
    if isinstance(error, httpx.ConnectError):
        return f"no connection: {printable(str(error))}"
    return f"the connection broke ({type(error).__name__})"
