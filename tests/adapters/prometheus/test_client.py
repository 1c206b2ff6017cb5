"""The client over real sockets, with servers that are not what a schedule's author said: nothing gets further than it should."""

import asyncio
import json
import socket
import ssl
from collections.abc import Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import pytest

from fivespot.adapters.clock import FakeClock
from fivespot.adapters.network.lookup import LookUp
from fivespot.adapters.prometheus import Prometheus
from fivespot.core.provider.question import Heard, Question
from tests.adapters.kube.scripted import Handler, Reply, Request, scripted
from tests.controlplane.certs import CertificateAuthority

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
TRUE = {"status": "success", "data": {"resultType": "scalar", "result": [NOON.timestamp(), "1"]}}


async def says_true(_: Request, reply: Reply) -> None:
    await reply.json(TRUE)


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 60))


def asking(url: str, **more: Any) -> Question:
    return Question(url=url, query="up > 0 and é", interval=30, confirm=0, **more)


async def ask(
    url: str, *, allow_local: bool = True, ca: str | None = None, token: str | None = None
) -> Heard:
    return await Prometheus(FakeClock(NOON), allow_local=allow_local).ask(asking(url), ca=ca, token=token)


def answered(handler: Handler) -> Heard:
    """What comes of asking a server that does this."""
    found: list[Heard] = []

    async def scenario() -> None:
        async with scripted(handler) as server:
            found.append(await ask(f"{server.url}/base"))

    run(scenario())
    return found[0]


def test_the_query_goes_as_a_form_below_the_base_url() -> None:
    async def scenario() -> None:
        async with scripted(says_true) as server:
            assert await ask(f"{server.url}/base") == Heard(True)
            (request,) = server.requests
            assert (request.method, request.path) == ("POST", "/base/api/v1/query")
            assert request.body == b"query=up+%3E+0+and+%C3%A9"
            assert request.headers["host"] == server.url.removeprefix("http://")
            assert request.headers["accept-encoding"] == "identity"
            assert "authorization" not in request.headers

    run(scenario())


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_to_another_host_is_refused_and_nothing_is_sent_there(code: int) -> None:
    async def scenario() -> None:
        async with scripted(says_true) as beyond:

            async def handler(_: Request, reply: Reply) -> None:
                await reply.text("", code, Location=f"{beyond.url}/api/v1/query")

            async with scripted(handler) as server:
                found = await ask(server.url)
            assert (found.active, found.reason) == (None, "AddressRefused")
            assert beyond.url.removeprefix("http://") in found.told
            assert not beyond.requests

    run(scenario())


def test_a_redirect_on_the_same_host_is_followed_with_the_question() -> None:
    async def scenario() -> None:
        async def handler(request: Request, reply: Reply) -> None:
            if request.path == "/api/v1/query":
                await reply.text("", 308, Location="/moved/api/v1/query")
            else:
                await reply.json(TRUE)

        async with scripted(handler) as server:
            assert await ask(server.url) == Heard(True)
            assert [request.body[:6] for request in server.requests] == [b"query="] * 2

    run(scenario())


def test_redirects_in_a_circle_come_to_an_end() -> None:
    async def handler(request: Request, reply: Reply) -> None:
        await reply.text("", 307, Location=request.path)

    assert answered(handler).message == "more than 3 redirects"


@pytest.mark.parametrize("location", ["http://[", "//[::1", "ftp://127.0.0.1/", "", "https://user@other/"])
def test_a_redirect_to_nowhere_is_refused(location: str) -> None:
    async def handler(_: Request, reply: Reply) -> None:
        await reply.text("", 307, Location=location)

    found = answered(handler)
    assert found.active is None
    assert found.reason in ("AddressRefused", "QueryFailed")


def test_an_endless_answer_is_cut_off() -> None:
    async def handler(_: Request, reply: Reply) -> None:
        await reply.begin()
        while True:
            await reply.chunk(b"x" * 65536)

    found = answered(handler)
    assert (found.active, found.reason) == (None, "QueryUnusable")
    assert "larger than 1048576 bytes" in found.message


def test_a_compressed_answer_is_not_unpacked() -> None:
    async def handler(_: Request, reply: Reply) -> None:
        await reply.json(TRUE, Content_Encoding="gzip")

    assert "compressed" in answered(handler).message


@pytest.mark.parametrize(
    ("code", "body", "told"),
    [
        (200, "<html>", "no JSON"),
        (200, "", "no JSON"),
        (200, "[" * 100_000, "no JSON"),
        (200, "{}", "no answer of Prometheus"),
        (
            400,
            '{"status": "error", "errorType": "bad_data", "error": "parse error"}',
            "bad_data: parse error",
        ),
        (422, '{"status": "error", "errorType": "execution", "error": "too many"}', "execution: too many"),
        (503, '{"status": "error", "errorType": "timeout", "error": "slow"}', "timeout: slow"),
        (503, "upstream is down", "with status 503, is no JSON"),
        (401, "", "401: does it take the token?"),
        (403, "", "403: does it take the token?"),
        (400, json.dumps(TRUE), "answers 400, and says nothing that Prometheus would"),
        (503, "[]", "answers 503, and says nothing that Prometheus would"),
        (404, "", "404: is the url the base of a Prometheus?"),
        (500, "", "500: is the url"),
    ],
)
def test_what_a_server_says_instead_of_an_answer_is_told(code: int, body: str, told: str) -> None:
    async def handler(_: Request, reply: Reply) -> None:
        await reply.text(body, code)

    found = answered(handler)
    assert found.active is None
    assert told in found.told


def test_a_connection_that_breaks_is_told_in_the_same_words_each_time() -> None:
    async def handler(_: Request, reply: Reply) -> None:
        reply.cut()

    first, second = answered(handler), answered(handler)
    assert first.active is None
    assert "the connection broke" in first.message
    port = "127.0.0.1:"
    assert first.message.partition(port)[2][5:] == second.message.partition(port)[2][5:]


def test_a_port_without_a_server_is_told() -> None:
    async def scenario() -> None:
        with socket.socket() as reserved:
            reserved.bind(("127.0.0.1", 0))
            found = await ask(f"http://127.0.0.1:{reserved.getsockname()[1]}")
        assert (found.active, found.reason) == (None, "QueryFailed")
        assert "no connection" in found.message

    run(scenario())


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "127.1",
        "0x7f000001",
        "2130706433",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "169.254.169.254",
        "[fe80::1]",
        "[64:ff9b::a9fe:a9fe]",
        # Where in these an IPv4 address stands is for its network to say.
        "[64:ff9b:1::a9fe:a9fe]",
        "[64:ff9b:1:a9fe:a9:fe00:0:1]",
        "[fd00:ec2::254]",
        "100.100.100.200",
        "[2002:7f00:1::]",
        "a.localhost",
    ],
)
def test_without_permission_nothing_here_is_reached(host: str) -> None:
    async def scenario() -> None:
        async with scripted(says_true) as server:
            port = server.url.rpartition(":")[2]
            found = await ask(f"http://{host}:{port}", allow_local=False)
            assert (found.active, found.reason) == (None, "AddressRefused")
            assert not server.requests

    run(scenario())


def resolving(*addresses: str) -> LookUp:
    """A resolver that knows one answer to everything."""

    async def look_up(_host: str, _port: int) -> tuple[str, ...]:
        return addresses

    return look_up


@pytest.mark.parametrize("addresses", [("127.0.0.1",), ("192.0.2.1", "127.0.0.1"), ("169.254.169.254",)])
def test_a_harmless_name_is_judged_by_every_address_that_it_stands_for(addresses: tuple[str, ...]) -> None:
    async def scenario() -> None:
        async with scripted(says_true) as server:
            url = f"http://prometheus.example.com:{server.url.rpartition(':')[2]}"
            client = Prometheus(FakeClock(NOON), allow_local=False, look_up=resolving(*addresses))
            found = await client.ask(asking(url), ca=None, token=None)
            assert (found.active, found.reason) == (None, "AddressRefused")
            assert not server.requests

    run(scenario())


def test_the_connection_goes_to_the_address_that_was_judged_and_the_name_into_the_request(
    secure: "Secure",
) -> None:
    """Nobody but the injected resolver knows the name: whoever looked it up again would find nothing."""

    async def scenario() -> None:
        async with scripted(says_true, secure.context) as server:
            port = server.url.rpartition(":")[2]
            client = Prometheus(FakeClock(NOON), allow_local=True, look_up=resolving("127.0.0.1"))
            question = asking(f"https://prometheus.invalid.:{port}", server_name="localhost")
            assert await client.ask(question, ca=secure.ca, token=None) == Heard(True)
            assert server.requests[0].headers["host"] == f"prometheus.invalid.:{port}"
            found = await client.ask(attrs.evolve(question, server_name=None), ca=secure.ca, token=None)
            assert "prometheus.invalid'" in found.message, "verified by its name, without the last dot"

    run(scenario())


def test_an_address_where_nobody_is_is_passed_over() -> None:
    async def scenario() -> None:
        async with scripted(says_true) as server:
            url = f"http://prometheus.invalid:{server.url.rpartition(':')[2]}"
            look_up = resolving("127.0.0.2", "127.0.0.1", "127.0.0.3")
            client = Prometheus(FakeClock(NOON), allow_local=True, look_up=look_up)
            assert await client.ask(asking(url), ca=None, token=None) == Heard(True)

    run(scenario())


def test_no_proxy_of_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would look the name up itself, and connect to whatever it finds."""

    async def scenario() -> None:
        async with scripted(says_true) as proxy, scripted(says_true) as server:
            for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
                monkeypatch.setenv(name, proxy.url)
            for name in ("NO_PROXY", "no_proxy"):
                monkeypatch.delenv(name, raising=False)
            assert await ask(server.url) == Heard(True)
            assert not proxy.requests

    run(scenario())


@pytest.mark.parametrize(
    "url", ["http://no.such.host.invalid", f"http://{'a' * 64}.invalid", "http://p:99999"]
)
def test_a_url_that_leads_nowhere_is_told(url: str) -> None:
    async def scenario() -> None:
        found = await ask(url, allow_local=False)
        assert (found.active, found.reason) == (None, "QueryFailed")
        assert found.message

    run(scenario())


@attrs.frozen
class Secure:
    """A server's end of TLS, and whom it is from."""

    context: ssl.SSLContext
    ca: str


@pytest.fixture
def secure(tmp_path: Path) -> Secure:
    authority = CertificateAuthority()
    credential = authority.server()
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    certificate.write_bytes(credential.certificate)
    key.write_bytes(credential.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return Secure(context, authority.certificate.decode())


def test_the_token_goes_to_whoever_the_authority_vouches_for_and_to_nobody_else(secure: Secure) -> None:
    async def scenario() -> None:
        async with scripted(says_true, secure.context) as server:
            assert await ask(server.url, ca=secure.ca, token="t") == Heard(True)
            assert server.requests.pop().headers["authorization"] == "Bearer t"
            stranger = CertificateAuthority().certificate.decode()
            for ca in (None, stranger):
                found = await ask(server.url, ca=ca, token="t")
                assert "its certificate is not trusted" in found.message
            assert not server.requests

    run(scenario())


def test_the_certificate_has_to_be_for_the_name_and_not_for_the_address(secure: Secure) -> None:
    async def scenario() -> None:
        async with scripted(says_true, secure.context) as server:
            prometheus = Prometheus(FakeClock(NOON), allow_local=True)
            named = asking(server.url, server_name="localhost")
            assert await prometheus.ask(named, ca=secure.ca, token=None) == Heard(True)
            other = attrs.evolve(named, server_name="elsewhere.example.com")
            found = await prometheus.ask(other, ca=secure.ca, token=None)
            assert "elsewhere.example.com" in found.message
            assert len(server.requests) == 1

    run(scenario())


def test_a_redirect_never_leads_from_https_to_http(secure: Secure) -> None:
    async def scenario() -> None:
        async with scripted(says_true) as beyond:

            async def handler(_: Request, reply: Reply) -> None:
                await reply.text("", 307, Location=f"{beyond.url}/api/v1/query")

            async with scripted(handler, secure.context) as server:
                found = await ask(server.url, ca=secure.ca, token="t")
            assert found.reason == "AddressRefused"
            assert not beyond.requests

    run(scenario())


@pytest.mark.parametrize(
    "ca", ["", "\n", "hello", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "ü"]
)
def test_an_authority_that_is_none_trusts_nobody(secure: Secure, ca: str) -> None:
    """An empty one least of all: to OpenSSL it stands for everybody who is publicly known."""

    async def scenario() -> None:
        async with scripted(says_true, secure.context) as server:
            found = await ask(server.url, ca=ca, token="t")
            assert "spec.tls.caSecretRef" in found.message
            assert not server.requests

    run(scenario())


def test_what_stands_around_a_certificate_is_for_people(secure: Secure) -> None:
    async def scenario() -> None:
        async with scripted(says_true, secure.context) as server:
            assert await ask(server.url, ca=f"# Ämter\n{secure.ca}\n# Ende") == Heard(True)

    run(scenario())


@pytest.mark.parametrize("name", [".example.com", "a\0b", "x" * 300])
def test_a_name_that_no_certificate_can_have_is_told(secure: Secure, name: str) -> None:
    async def scenario() -> None:
        async with scripted(says_true, secure.context) as server:
            client = Prometheus(FakeClock(NOON), allow_local=True)
            found = await client.ask(asking(server.url, server_name=name), ca=secure.ca, token=None)
            assert (found.active, found.reason) == (None, "QueryFailed")

    run(scenario())


def test_a_host_in_any_script_is_asked_by_its_name_in_ascii() -> None:
    async def scenario() -> None:
        async with scripted(says_true) as server:
            port = server.url.rpartition(":")[2]
            client = Prometheus(FakeClock(NOON), allow_local=True, look_up=resolving("127.0.0.1"))
            assert await client.ask(asking(f"http://bücher.invalid:{port}"), ca=None, token=None) == Heard(
                True
            )
            assert server.requests[0].headers["host"] == f"xn--bcher-kva.invalid:{port}"

    run(scenario())


@pytest.mark.parametrize("token", ["geh\neim", "geh eim", "geh\x00eim", "gehé", "", "\n"])
def test_a_token_that_is_none_is_told_and_not_shown(token: str) -> None:
    async def scenario() -> None:
        async with scripted(says_true) as server:
            found = await ask(server.url, token=token)
            assert "spec.bearerTokenSecretRef" in found.message
            assert not server.requests
            assert "geh" not in json.dumps([found.reason, found.message])

    run(scenario())
