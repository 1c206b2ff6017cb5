"""Whether an API server answers, and if not, how far one gets: name, connection, TLS, identity."""

import asyncio
import socket
import ssl
import time
from typing import Final
from urllib.parse import urlsplit

from fivespot.adapters.kube.errors import ApiError, Forbidden, NotFound, Unauthorized, Unavailable
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.resources import Resource
from fivespot.core.doctor.finding import Finding, failed, ok

_SUBJECT: Final = "API server"
_PATIENCE: Final = 5.0
"""Seconds for a connection of our own."""
_HTTPS: Final = 443
_REVIEWS: Final = Resource(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False
)


async def reach(gateway: Gateway) -> Finding:
    """One finding: the server's version and who we are there, or the step at which it ended."""
    begun = time.monotonic()
    try:
        version = (await gateway.version()).get("gitVersion")
        took = time.monotonic() - begun
        who = await _identity(gateway)
    except Unauthorized as error:
        return failed(
            _SUBJECT, f"{gateway.server} answers, and does not know us: {error.message}", error.advice()
        )
    except Unavailable as error:
        return await _how_far(gateway.server, error)
    except ApiError as error:
        return failed(_SUBJECT, str(error), error.advice() or "is this the right address?")
    return ok(
        _SUBJECT,
        f"{gateway.server} is Kubernetes {version}, knows us as {who}, and answers in {1000 * took:.0f} ms",
    )


async def _identity(gateway: Gateway) -> str:
    """Who we are, by the server's own word; servers before Kubernetes 1.28 have none, and some let nobody ask."""
    try:
        review = await gateway.create(_REVIEWS, None, {})
    except (NotFound, Forbidden):
        return "somebody"
    return str(review.get("status", {}).get("userInfo", {}).get("username", "somebody"))


async def _how_far(server: str, error: Unavailable) -> Finding:
    """What a server that gives no answer does do."""
    parts = urlsplit(server)
    host, port = parts.hostname or "", parts.port or _HTTPS
    loop = asyncio.get_running_loop()
    try:
        await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    # A name that is none at all is a UnicodeError.
    except (OSError, UnicodeError):
        fix = "is the server's address in the kubeconfig right, and does DNS work here?"
        return failed(_SUBJECT, f"DNS: the name {host} does not resolve", fix)
    try:
        async with asyncio.timeout(_PATIENCE):
            _, writer = await asyncio.open_connection(host, port)
        writer.close()
    except TimeoutError:
        fix = "is a firewall or a network policy in between, and is the network (a VPN) up?"
        return failed(_SUBJECT, f"TCP: no answer from {host} port {port} within {_PATIENCE:.0f} s", fix)
    except OSError as refused:
        fix = "is the server up, and is the port right?"
        return failed(_SUBJECT, f"TCP: {host} port {port}: {refused.strerror or refused}", fix)
    if _is_tls(error):
        fix = "is certificate-authority-data in the kubeconfig that of this server, and is its certificate valid today?"
        return failed(_SUBJECT, f"TLS: {error.message}", fix)
    return failed(
        _SUBJECT,
        f"HTTP: {error.message}",
        "is it an API server that listens there, and is its database well?",
    )


def _is_tls(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return True
        error = error.__cause__ or error.__context__
    return False
