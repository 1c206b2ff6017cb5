"""The two API servers that every test of this folder runs against, and what a test is given of them."""

from __future__ import annotations

import asyncio
import json
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import httpx

from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.resources import NAMESPACES, Object, Resource
from tests.contract.definitions import BEACONS, CRDS, OLD_WIDGETS, WIDGETS
from tests.controlplane.controlplane import ControlPlane
from tests.fakeapi import FakeApi, fake_api

BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", namespaced=True)


class Server(Protocol):
    """What the two servers have in common, and what a test has to do differently with each."""

    url: str

    def verify(self) -> ssl.SSLContext | bool:
        """How its certificate is checked; with the administrator's own, if it wants one."""

    def headers(self) -> dict[str, str]:
        """What makes the administrator of a raw request."""

    def kubeconfig(self, user: str) -> str:
        """An account that nobody has given any rights, or `admin`."""

    def with_token(self, token: str) -> str:
        """A kubeconfig with a token that nobody has issued."""

    async def forget(self) -> None:
        """Make every version but the current one too old to read a list at."""

    async def allow_disruptions(self, given: Given, budget: str, count: int) -> None:
        """Have a budget's status allow so many disruptions."""

    async def may_have_pods(self, given: Given) -> None:
        """Have what pods need in a namespace."""


@dataclass(frozen=True, kw_only=True)
class Given:
    """One test's part of a server.

    Attributes:
        gateway: the administrator's.
        http: raw requests as the administrator.
        namespace: of this test alone.
        unique: a name for what has no namespace.
    """

    server: Server
    gateway: Gateway
    http: httpx.AsyncClient
    namespace: str
    unique: str

    def path(self, resource: Resource, name: str | None = None, subresource: str | None = None) -> str:
        """The URL path in this test's namespace."""
        return resource.path(self.namespace if resource.namespaced else None, name, subresource)

    async def create(self, resource: Resource, name: str, **body: Any) -> Object:
        """A new object."""
        metadata = {"name": name, **body.pop("metadata", {})}
        home = self.namespace if resource.namespaced else None
        return await self.gateway.create(resource, home, {**body, "metadata": metadata})

    async def read(self, resource: Resource, name: str) -> Object:
        """An object with everything, managedFields too."""
        answer = await self.http.get(self.path(resource, name))
        assert answer.status_code == 200, answer.text
        found: Object = answer.json()
        return found

    async def asked(self, method: str, path: str, body: Any = None, **options: Any) -> httpx.Response:
        """A raw request; the content type is JSON unless `type` says otherwise."""
        headers = {"Content-Type": options.pop("type", "application/json")}
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        return await self.http.request(method, path, content=content, headers=headers, params=options)

    async def refused(self, method: str, path: str, body: Any = None, **options: Any) -> Object:
        """The Status of a raw request that is refused, checked for agreeing with the HTTP code."""
        answer = await self.asked(method, path, body, **options)
        status: Object = answer.json()
        assert answer.headers["Content-Type"] == "application/json"
        assert (status["kind"], status["apiVersion"], status["status"]) == ("Status", "v1", "Failure")
        assert status["code"] == answer.status_code
        assert answer.status_code >= 400
        return status

    @asynccontextmanager
    async def account(self, kubeconfig: str) -> AsyncIterator[Gateway]:
        """A gateway by another kubeconfig."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "kubeconfig"
            path.write_text(kubeconfig)
            async with await Gateway.connect(kubeconfig=path) as gateway:
                yield gateway


Scenario = Callable[[Given], Coroutine[Any, Any, None]]


class Api(Protocol):
    """A server that tests can be run against."""

    def opened(self) -> AbstractAsyncContextManager[Server]:
        """The server, for one test."""


def run(api: Api, scenario: Scenario) -> None:
    """Run one test."""

    async def whole() -> None:
        async with api.opened() as server:
            name = f"c-{uuid4().hex[:10]}"
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "kubeconfig"
                path.write_text(server.kubeconfig("admin"))
                async with (
                    await Gateway.connect(kubeconfig=path) as gateway,
                    httpx.AsyncClient(
                        base_url=server.url,
                        verify=server.verify(),
                        headers=server.headers(),
                        trust_env=False,
                    ) as http,
                ):
                    await gateway.create(NAMESPACES, None, {"metadata": {"name": name}})
                    await scenario(
                        Given(server=server, gateway=gateway, http=http, namespace=name, unique=name)
                    )

    asyncio.run(asyncio.wait_for(whole(), 60))


def contract(scenario: Scenario) -> Callable[[Api], None]:
    """A test of both servers: `async def test_something(given)`."""

    def test(api: Api) -> None:
        run(api, scenario)

    for name in ("__name__", "__qualname__", "__doc__", "__module__"):
        setattr(test, name, getattr(scenario, name))
    return test


async def until(check: Callable[[], Awaitable[bool]], what: str) -> None:
    """Poll what a controller of the real server does in its own time."""
    async with asyncio.timeout(30):
        while not await check():  # noqa: ASYNC110 - the real server tells nobody
            await asyncio.sleep(0.05)


class FakeServer:
    """Ours."""

    def __init__(self, fake: FakeApi) -> None:
        self.url = fake.url
        self._fake = fake
        fake.tokens = {"admin": "admin"}
        # Everybody may read what the server is about.
        fake.authorizer = lambda user, asked: user == "admin" or asked.is_document

    def verify(self) -> ssl.SSLContext | bool:
        # There is no certificate; to load authorities all the same would take longer than a test.
        return False

    def headers(self) -> dict[str, str]:
        return {"Authorization": "Bearer admin"}

    def kubeconfig(self, user: str) -> str:
        assert self._fake.tokens is not None
        self._fake.tokens[user] = user
        return self._fake.kubeconfig(user)

    def with_token(self, token: str) -> str:
        return self._fake.kubeconfig(token)

    async def forget(self) -> None:
        self._fake.compact()

    async def allow_disruptions(self, given: Given, budget: str, count: int) -> None:
        """Write what the disruption controller would."""
        found = await given.gateway.get(BUDGETS, given.namespace, budget)
        status = {"disruptionsAllowed": count, "observedGeneration": found["metadata"]["generation"]}
        status |= {"currentHealthy": 1, "desiredHealthy": 1 - count, "expectedPods": 1}
        await given.gateway.merge_patch(BUDGETS, given.namespace, budget, {"status": status}, "status")

    async def may_have_pods(self, given: Given) -> None:
        """Nothing is missing."""


class FakeApis:
    """A new fake for every test."""

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[FakeServer]:
        async with fake_api() as fake:
            fake.install(CRDS)
            yield FakeServer(fake)


class RealServer:
    """A real control plane, shared by all tests."""

    def __init__(self, plane: ControlPlane) -> None:
        self.url = plane.url
        self._plane = plane
        self._admin = plane.admin_kubeconfig.read_text()
        self._context = ssl.create_default_context(cafile=plane.ca_file)
        self._context.load_cert_chain(plane.folder / "admin.pem")

    def verify(self) -> ssl.SSLContext | bool:
        return self._context

    def headers(self) -> dict[str, str]:
        return {}

    def kubeconfig(self, user: str) -> str:
        return self._admin if user == "admin" else self._plane.kubeconfig_text(user)

    def with_token(self, token: str) -> str:
        cluster = {"server": self.url, "certificate-authority": str(self._plane.ca_file)}
        config = {
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": token}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        return json.dumps(config)

    async def forget(self) -> None:
        """Have etcd forget; its client port speaks JSON too."""
        url = f"http://127.0.0.1:{self._plane._ports.etcd_client}/v3/kv"
        async with httpx.AsyncClient(trust_env=False) as etcd:
            found = (await etcd.post(f"{url}/range", json={"key": "AA=="})).json()
            revision = found["header"]["revision"]
            answer = await etcd.post(f"{url}/compaction", json={"revision": revision, "physical": True})
            assert answer.status_code == 200, answer.text

    async def allow_disruptions(self, given: Given, budget: str, count: int) -> None:
        """Wait until the disruption controller has come to it."""

        async def allowed() -> bool:
            found = await given.gateway.get(BUDGETS, given.namespace, budget)
            status = found["status"]
            seen = status.get("observedGeneration") == found["metadata"]["generation"]
            return bool(seen and status["disruptionsAllowed"] == count)

        await until(allowed, f"{budget} allows {count}")

    async def may_have_pods(self, given: Given) -> None:
        """Wait for the ServiceAccount that a controller makes."""
        path = f"/api/v1/namespaces/{given.namespace}/serviceaccounts/default"

        async def there() -> bool:
            return (await given.http.get(path)).status_code == 200

        await until(there, "the default ServiceAccount")


class RealApis:
    """One control plane for all tests, with the kinds that they need."""

    def __init__(self, plane: ControlPlane) -> None:
        self._server = RealServer(plane)
        listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": CRDS})
        plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=listed)
        names = [f"crd/{crd['metadata']['name']}" for crd in CRDS]
        plane.kubectl("wait", "--for=condition=Established", "--timeout=60s", *names)
        self._warm = False

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[RealServer]:
        if not self._warm:
            await _watchable(self._server)
            self._warm = True
        yield self._server


async def _watchable(server: RealServer) -> None:
    """A kind that is served can be watched a little later, when the server has read what there is of it."""
    async with httpx.AsyncClient(base_url=server.url, verify=server.verify(), trust_env=False) as http:
        for resource in (WIDGETS, OLD_WIDGETS, BEACONS):
            query = {"watch": "true", "timeoutSeconds": "1"}

            async def begins(path: str = resource.path(), query: dict[str, str] = query) -> bool:
                async with http.stream("GET", path, params=query) as answer:
                    return answer.status_code == 200

            await until(begins, f"{resource.label} can be watched")
