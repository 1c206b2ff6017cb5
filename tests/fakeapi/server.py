"""The server as tests hold it: it starts and stops, takes kinds and objects, and hands out gateways to it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from aiohttp import web

from fivespot.adapters.kube.gateway import Gateway
from tests.controlplane.certs import CertificateAuthority
from tests.controlplane.ports import free_ports
from tests.fakeapi.answering import Answering
from tests.fakeapi.connections import kubeconfig, reset, tls_server
from tests.fakeapi.kinds import CRD
from tests.fakeapi.refusals import Object
from tests.fakeapi.world import Target
from tests.fakeapi.writing import create

TOKEN = "a-token"


class FakeApi(Answering):
    """A running API server.

    Attributes:
        url: where it is, also while it is stopped.
    """

    def __init__(self, *, tls: bool, now: Callable[[], datetime]) -> None:
        super().__init__(now)
        self.url = ""
        self._authority: CertificateAuthority | None = None
        self._tls: ssl.SSLContext | None = None
        if tls:
            self._authority, self._tls = tls_server()
        self._listener: asyncio.Server | None = None
        self._port = 0
        for name in ("default", "kube-system", "kube-public", "kube-node-lease"):
            self.create("v1", "namespaces", {"metadata": {"name": name}})

    def create(self, api_version: str, plural: str, body: Object, namespace: str = "") -> Object:
        """Create an object without a request."""
        group, _, version = api_version.rpartition("/")
        kind = self.world.kinds.find(group, version, plural)
        if kind is None:
            raise LookupError(f"no {plural} in {api_version}")
        target = Target(kind=kind, version=version, namespace=namespace)
        return create(self.world, target, {"apiVersion": api_version, "kind": kind.kind, **body}, "test")

    def install(self, crds: Iterable[Object]) -> None:
        """Serve the kinds of CustomResourceDefinitions."""
        for crd in crds:
            self.create("apiextensions.k8s.io/v1", CRD.plural, crd)

    async def start(self) -> None:
        """Listen, on the same port as before if there was one."""
        self._web = web.Server(self._handle, access_log=None, handler_cancellation=True)
        loop = asyncio.get_running_loop()
        for port in [self._port] if self._port else free_ports(5):
            try:
                self._listener = await loop.create_server(self._web, "127.0.0.1", port, ssl=self._tls)
            except OSError:
                if self._port:
                    raise
                continue
            self._port = port
            self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{port}"
            return
        raise OSError("no free port")

    async def stop(self) -> None:
        """Refuse connections and reset those that are open, as if the process had died; the data stays."""
        if self._listener is None:
            return
        self._listener.close()
        self._listener = None
        for connection in list(self._web.connections):
            reset(connection.transport)
        await self._web.shutdown(0.1)

    def kubeconfig(self, token: str = TOKEN) -> str:
        """A kubeconfig with everything inline."""
        return kubeconfig(self.url, self._authority, token)

    @asynccontextmanager
    async def gateway(self, token: str = TOKEN, **options: Any) -> AsyncIterator[Gateway]:
        """The product's gateway to this server."""
        with TemporaryDirectory() as folder:
            path = Path(folder) / "kubeconfig"
            path.write_text(self.kubeconfig(token))
            async with await Gateway.connect(kubeconfig=path, **options) as gateway:
                yield gateway


@asynccontextmanager
async def fake_api(
    *, tls: bool = False, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> AsyncIterator[FakeApi]:
    """A server for as long as the block; with `tls`, as a child cluster's kubeconfig has to have it.

    Raises:
        ExceptionGroup: something was asked that the server did not understand.
    """
    server = FakeApi(tls=tls, now=now)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
    if server.problems:
        raise ExceptionGroup("the fake API server did not know what to do", server.problems)
