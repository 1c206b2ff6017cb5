"""Sockets, TLS, and how a client finds the server."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import struct
from base64 import b64encode
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.controlplane.certs import CertificateAuthority
from tests.fakeapi.refusals import Object


def kubeconfig(url: str, authority: CertificateAuthority | None, token: str) -> str:
    """The text of a kubeconfig with everything inline."""
    cluster: Object = {"server": url}
    if authority is not None:
        cluster["certificate-authority-data"] = b64encode(authority.certificate).decode()
    else:
        # There is no certificate; every client would load all authorities of the machine for it, which takes longer
        # than a test.
        cluster["insecure-skip-tls-verify"] = True
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "fake", "cluster": cluster}],
            "users": [{"name": "fake", "user": {"token": token}}],
            "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "fake"}}],
            "current-context": "fake",
        }
    )


def reset(transport: asyncio.BaseTransport | None) -> None:
    """End a connection as the kernel does for a process that died with something unread."""
    if isinstance(transport, asyncio.Transport):
        if (connection := transport.get_extra_info("socket")) is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()


def tls_server() -> tuple[CertificateAuthority, ssl.SSLContext]:
    """An authority of its own, and what a server on loopback serves TLS with."""
    authority = CertificateAuthority()
    credential = authority.server()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with TemporaryDirectory() as folder:
        both = Path(folder) / "server.pem"
        both.touch(mode=0o600)
        both.write_bytes(credential.certificate + credential.key)
        context.load_cert_chain(both)
    return authority, context
