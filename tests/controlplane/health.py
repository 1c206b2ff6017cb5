"""Asking a server on a loopback port whether it is well."""

from __future__ import annotations

import ssl
from http.client import HTTPConnection, HTTPException, HTTPSConnection


def answers(port: int, path: str, context: ssl.SSLContext | None = None) -> bool:
    """Whether a GET of `path` is answered with 200; over TLS when there is a context.

    Not urllib: it would obey a proxy of the environment, even for 127.0.0.1.
    """
    connection = (
        HTTPConnection("127.0.0.1", port, timeout=2)
        if context is None
        else HTTPSConnection("127.0.0.1", port, timeout=2, context=context)
    )
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
