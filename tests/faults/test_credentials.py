"""Certificates and kubeconfigs that are replaced while a gateway runs: the new ones are used, and nothing is torn down."""

import asyncio
import json
import ssl
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from fivespot.adapters.kube.errors import Unauthorized
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.resources import CONFIG_MAPS
from tests.adapters.kube.scripted import Reply, Request, Scripted, scripted
from tests.controlplane.certs import CertificateAuthority, Credential
from tests.faults.setting import NAMESPACE, run

CONFIG_MAP = {"metadata": {"name": "a", "namespace": NAMESPACE, "resourceVersion": "2"}}


class Server:
    """Knows its callers by certificate; a stream says something when it is told to.

    Attributes:
        wanted: the only one who is let in.
        callers: who has asked, in order.
        news: one entry for each event of the stream.
        closed: set when the stream's connection has ended.
    """

    def __init__(self) -> None:
        self.wanted = "old"
        self.callers: list[str] = []
        self.news: asyncio.Queue[None] = asyncio.Queue()
        self.watching = asyncio.Event()
        self.closed = asyncio.Event()

    async def __call__(self, request: Request, reply: Reply) -> None:
        caller = self._caller(request, reply)
        self.callers.append(caller)
        if caller != self.wanted:
            await reply.status(401, "Unauthorized")
        elif "watch" in request.query:
            await self._stream(reply)
        else:
            await reply.json(CONFIG_MAP)

    def _caller(self, request: Request, reply: Reply) -> str:
        certificate: Any = reply._writer.get_extra_info("peercert")
        names = dict(entry for part in (certificate or {}).get("subject", ()) for entry in part)
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        return str(names.get("commonName") or token)

    async def _stream(self, reply: Reply) -> None:
        await reply.begin()
        self.watching.set()
        try:
            while True:
                await self.news.get()
                await reply.event("MODIFIED", CONFIG_MAP)
        finally:
            self.closed.set()


class Files:
    """A kubeconfig and what it names, which a test replaces as renewers do: by renaming."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = CertificateAuthority()
        self.kubeconfig = folder / "kubeconfig"

    def put(self, name: str, content: bytes) -> None:
        new = self.folder / f"{name}.new"
        new.write_bytes(content)
        new.rename(self.folder / name)

    def certificate(self, user: str) -> None:
        """Renew certificate and key."""
        credential = self.authority.client(user)
        self.put("client.crt", credential.certificate)
        self.put("client.key", credential.key)

    def config(self, url: str, user: dict[str, Any]) -> bytes:
        """A kubeconfig's text."""
        self.put("ca.crt", self.authority.certificate)
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": url, "certificate-authority": "ca.crt"}}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        return json.dumps(content).encode()

    def tls(self) -> ssl.SSLContext:
        """What a server has that wants to see certificates."""
        credential = self.authority.server()
        (self.folder / "server.pem").write_bytes(credential.certificate + credential.key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / "server.pem")
        context.load_verify_locations(cadata=self.authority.certificate.decode())
        context.verify_mode = ssl.CERT_OPTIONAL
        return context


NAMED = {"client-certificate": "client.crt", "client-key": "client.key"}


def inline(credential: Credential) -> dict[str, str]:
    return {
        "client-certificate-data": b64encode(credential.certificate).decode(),
        "client-key-data": b64encode(credential.key).decode(),
    }


@asynccontextmanager
async def connected(
    folder: Path, user: Callable[[Files], dict[str, Any]] = lambda _: NAMED
) -> AsyncIterator[tuple[Server, Files, Gateway, Scripted]]:
    serving, files = Server(), Files(folder)
    files.certificate("old")
    async with scripted(serving, files.tls()) as server:
        files.put("kubeconfig", files.config(server.url, user(files)))
        async with await Gateway.connect(kubeconfig=files.kubeconfig) as gateway:
            yield serving, files, gateway, server


async def get(gateway: Gateway) -> None:
    await gateway.get(CONFIG_MAPS, NAMESPACE, "a")


async def refused(gateway: Gateway) -> None:
    with pytest.raises(Unauthorized):
        await get(gateway)


def ended(client: httpx.AsyncClient) -> bool:
    """Whether nothing of a connection is left."""
    return client.is_closed


@asynccontextmanager
async def an_open_stream(serving: Server, gateway: Gateway) -> AsyncIterator[Callable[[], Any]]:
    """A stream; what is given waits for its next event."""
    stream = gateway.watch(CONFIG_MAPS, NAMESPACE, resource_version="1", timeout_seconds=60)
    async with aclosing(stream):
        first = asyncio.ensure_future(anext(stream))
        await serving.watching.wait()
        serving.news.put_nowait(None)
        assert (await first).type == "MODIFIED"

        async def following() -> None:
            serving.news.put_nowait(None)
            await anext(stream)

        yield following


def test_a_certificate_that_was_replaced_is_used_after_the_first_refusal_and_streams_go_on(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with (
            connected(tmp_path) as (serving, files, gateway, _),
            an_open_stream(serving, gateway) as next_event,
        ):
            await get(gateway)
            files.certificate("new")
            serving.wanted = "new"
            await refused(gateway)
            await get(gateway)
            await next_event()
            await get(gateway)
            assert serving.callers[-3:] == ["old", "new", "new"]
            assert not serving.closed.is_set()

    run(scenario())


def test_the_connection_of_the_old_certificate_ends_with_its_last_stream(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with connected(tmp_path) as (serving, files, gateway, _):
            old = gateway._connection._api._session
            assert old is not None
            async with an_open_stream(serving, gateway) as next_event:
                files.certificate("new")
                serving.wanted = "new"
                await refused(gateway)
                await get(gateway)
                await next_event()
                assert not ended(old)
            assert ended(old)
            await get(gateway)
            assert serving.callers[-1] == "new"

    run(scenario())


def test_a_certificate_that_was_replaced_is_found_though_nothing_was_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with connected(tmp_path) as (serving, files, gateway, _):
            await get(gateway)
            files.certificate("new")
            begun = time.monotonic()
            while serving.callers[-1] == "old":
                # It would be a mistake to have both at once; whoever comes is let in.
                await asyncio.sleep(0.1)
                serving.wanted = "new" if time.monotonic() - begun > 9.5 else "old"
                try:
                    await get(gateway)
                except Unauthorized:
                    break
                assert time.monotonic() - begun < 15
            await get(gateway)
            assert serving.callers[-1] == "new"

    run(scenario())


@pytest.mark.parametrize("name", ["client.crt", "client.key", "kubeconfig", "ca.crt"])
@pytest.mark.parametrize("share", [0.0, 0.5], ids=["empty", "half"])
def test_half_a_file_is_survived_with_what_was_there_before(tmp_path: Path, name: str, share: float) -> None:
    async def scenario() -> None:
        async with (
            connected(tmp_path) as (serving, files, gateway, _),
            an_open_stream(serving, gateway) as next_event,
        ):
            files.certificate("new")
            whole = (tmp_path / name).read_bytes()
            files.put(name, whole[: int(len(whole) * share)])
            serving.wanted = "new"
            await refused(gateway)
            await refused(gateway)
            serving.wanted = "old"
            await get(gateway)
            assert set(serving.callers) == {"old"}
            await next_event()
            files.put(name, whole)
            serving.wanted = "new"
            await refused(gateway)
            await get(gateway)
            await next_event()

    run(scenario())


def test_a_certificate_whose_key_is_not_there_yet_is_survived_with_the_one_before(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with connected(tmp_path) as (serving, files, gateway, _):
            credential = files.authority.client("new")
            files.put("client.crt", credential.certificate)
            serving.wanted = "new"
            await refused(gateway)
            await refused(gateway)
            files.put("client.key", credential.key)
            await get(gateway)

    run(scenario())


def test_a_file_that_is_missing_for_a_moment_is_survived(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with connected(tmp_path) as (serving, files, gateway, _):
            whole = files.kubeconfig.read_bytes()
            files.kubeconfig.unlink()
            serving.wanted = "nobody"
            await refused(gateway)
            serving.wanted = "old"
            await get(gateway)
            files.certificate("new")
            files.put("kubeconfig", whole)
            serving.wanted = "new"
            await refused(gateway)
            await get(gateway)

    run(scenario())


def test_a_kubeconfig_with_everything_inline_is_replaced_as_a_whole(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            connected(tmp_path, lambda files: inline(files.authority.client("old"))) as found,
            an_open_stream(found[0], found[2]) as next_event,
        ):
            serving, files, gateway, server = found
            files.put("kubeconfig", files.config(server.url, inline(files.authority.client("new"))))
            serving.wanted = "new"
            await refused(gateway)
            await get(gateway)
            files.put("kubeconfig", files.config(server.url, {"token": "newest"}))
            serving.wanted = "newest"
            await refused(gateway)
            await get(gateway)
            await next_event()

    run(scenario())


def plugin(command: str, *arguments: str) -> dict[str, Any]:
    api = "client.authentication.k8s.io/v1"
    return {
        "exec": {"apiVersion": api, "command": command, "args": list(arguments), "interactiveMode": "Never"}
    }


def given(**status: str) -> bytes:
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    return json.dumps(credential).encode()


def issued(files: Files, user: str) -> bytes:
    credential = files.authority.client(user)
    return given(clientCertificateData=credential.certificate.decode(), clientKeyData=credential.key.decode())


def test_an_exec_plugin_that_gives_a_new_certificate_is_listened_to_and_streams_go_on(tmp_path: Path) -> None:
    def user(files: Files) -> dict[str, Any]:
        files.put("credential", issued(files, "old"))
        return plugin("cat", str(tmp_path / "credential"))

    async def scenario() -> None:
        async with (
            connected(tmp_path, user) as (serving, files, gateway, _),
            an_open_stream(serving, gateway) as next_event,
        ):
            await get(gateway)
            files.put("credential", issued(files, "new"))
            serving.wanted = "new"
            await refused(gateway)
            await get(gateway)
            await next_event()

    run(scenario())


@pytest.mark.parametrize("nonsense", [None, b"", b"{", b"[]", b'{"status": {}}'])
def test_an_exec_plugin_that_fails_for_a_while_leaves_what_it_gave_before(
    tmp_path: Path, nonsense: bytes | None
) -> None:
    def user(files: Files) -> dict[str, Any]:
        files.put("credential", given(token="old"))
        return plugin("cat", str(tmp_path / "credential"))

    async def scenario() -> None:
        async with connected(tmp_path, user) as (serving, files, gateway, _):
            await get(gateway)
            if nonsense is None:
                (tmp_path / "credential").unlink()
            else:
                files.put("credential", nonsense)
            serving.wanted = "new"
            await refused(gateway)
            serving.wanted = "old"
            await get(gateway)
            files.put("credential", given(token="new"))
            serving.wanted = "new"
            await get(gateway)

    run(scenario())


def test_a_kubeconfig_that_is_replaced_while_it_is_being_read_is_read_again(tmp_path: Path) -> None:
    """A plugin takes its time, and whoever renews files does not wait for it."""

    def user(files: Files) -> dict[str, Any]:
        files.put("credential", given(token="old"))
        script = f'cat "{tmp_path}/credential"; [ ! -e "{tmp_path}/next" ] || mv "{tmp_path}/next" "{files.kubeconfig}"'
        return plugin("sh", "-c", script)

    async def scenario() -> None:
        serving, elsewhere, files = Server(), Server(), Files(tmp_path)
        elsewhere.wanted = "new"
        async with scripted(serving, files.tls()) as server, scripted(elsewhere, files.tls()) as moved:
            files.put("kubeconfig", files.config(server.url, user(files)))
            files.put("next", files.config(moved.url, {"token": "new"}))
            async with await Gateway.connect(kubeconfig=files.kubeconfig) as gateway:
                await get(gateway)
                serving.wanted = "nobody"
                await refused(gateway)
                await get(gateway)
                assert elsewhere.callers == ["new"]

    run(scenario())


ACTING = {
    "as": "system:serviceaccount:ns:somebody",
    "as-uid": "u-1",
    "as-groups": ["one", "two"],
    "as-user-extra": {"example.com/reason": ["for a test"]},
}


def test_whom_to_act_as_is_sent_with_every_request_also_after_a_renewal(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with connected(tmp_path, lambda _: NAMED | ACTING) as (serving, files, gateway, server):
            await get(gateway)
            files.certificate("new")
            serving.wanted = "new"
            await refused(gateway)
            await get(gateway)
            async with an_open_stream(serving, gateway):
                pass
            assert len(server.requests) == 4
            for request in server.requests:
                assert request.headers["impersonate-user"] == "system:serviceaccount:ns:somebody"
                assert request.headers["impersonate-uid"] == "u-1"
                assert request.headers["impersonate-group"] in ("one", "two")
                assert request.headers["impersonate-extra-example.com%2freason"] == "for a test"

    run(scenario())


def test_whom_to_act_as_may_have_any_name(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with connected(
            tmp_path, lambda _: NAMED | {"as": "J\u00f6rg", "as-groups": ["\u20ac"]}
        ) as found:
            await get(found[2])
            headers = found[3].requests[0].headers
            assert (headers["impersonate-user"], headers["impersonate-group"]) == ("J\u00f6rg", "\u20ac")

    run(scenario())


def test_a_gateway_that_is_closed_while_its_credentials_are_renewed_leaves_nothing_open(
    tmp_path: Path,
) -> None:
    def user(files: Files) -> dict[str, Any]:
        files.put("credential", given(token="old"))
        files.put("quick", b"")
        script = f'[ -e "{tmp_path}/quick" ] || {{ touch "{tmp_path}/begun"; sleep 0.3; }}; cat "{tmp_path}/credential"'
        return plugin("sh", "-c", script)

    async def scenario() -> None:
        async with connected(tmp_path, user) as (_, files, gateway, _):
            await get(gateway)
            (tmp_path / "quick").unlink()
            files.put("kubeconfig", files.kubeconfig.read_bytes())
            gateway._look_at = 0.0
            asking = asyncio.ensure_future(get(gateway))
            while not (tmp_path / "begun").exists():  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.001)
            await gateway.close()
            await asyncio.gather(asking, return_exceptions=True)
            session = gateway._connection._api._session
            assert session is not None
            assert ended(session)
            assert isinstance(asking.exception(), Exception)

    run(scenario())
