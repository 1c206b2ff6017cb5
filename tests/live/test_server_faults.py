"""The faults that a real API server has by itself: versions compacted away, streams that end, tokens that are replaced,
permissions that are taken away, servers that are killed or stand still, kinds that go and come back as others.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import attrs
import pytest

from fivespot.adapters.kube.control.watches import Stream, Watches
from fivespot.adapters.kube.errors import (
    AlreadyExists,
    ApiError,
    Forbidden,
    Gone,
    NotFound,
    Unauthorized,
    Unavailable,
)
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.resources import CONFIG_MAPS, CRDS, NAMESPACES, SECRETS, Object, Resource
from fivespot.adapters.kube.watching import Key, version_of, whole
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.pytest_plugin import StartControlPlane
from tests.controlplane.relay import Relay, relay
from tests.controlplane.waiting import wait_until
from tests.live import product
from tests.live.following import (
    GONE,
    HurriedClock,
    Told,
    asked,
    cache_is_right,
    codes,
    events_from,
    forgotten,
    port_of,
    refused,
    running,
    through,
    tried,
    until,
)
from tests.live.product import ADMINS, CONTROLLER, Process, World, machine

SCHEDULED = Resource("5spot.finos.org", "v1beta1", "scheduledmachines", "ScheduledMachine", namespaced=True)
DISABLED = {"spec": {"enabled": False}}
CAPI_MACHINES = "machines.cluster.x-k8s.io"


@pytest.fixture(scope="module")
def forgetful(start_control_plane: StartControlPlane) -> Iterator[ControlPlane]:
    """A server that compacts every second, and has no memory of its own of ConfigMaps: what etcd has forgotten is gone."""
    with start_control_plane(
        controllers=["serviceaccount-controller"],
        extra_apiserver_args=["--etcd-compaction-interval=1s", "--watch-cache-sizes=configmaps#0"],
    ) as started:
        yield started


@pytest.fixture(scope="module")
def plane(start_control_plane: StartControlPlane) -> Iterator[ControlPlane]:
    """A server that may be killed; it compacts when it is told to."""
    with start_control_plane(extra_apiserver_args=["--etcd-compaction-interval=0"]) as started:
        product.install(started)
        yield started


@pytest.fixture(scope="module")
def world(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The product at work; its controller is one of RBAC's ordinary users, and elects nobody."""
    folder = tmp_path_factory.mktemp("product")
    with product.world(plane, folder) as running_world:
        running_world.controller.stop()
        line = [
            *(sys.executable, "-m", "fivespot", "controller", "run", "--allow-local-child"),
            *("--kubeconfig", str(plane.kubeconfig(CONTROLLER)), "--no-leader-elect"),
        ]
        controller = Process(line, folder / "limited-controller.log")
        _grant(plane, CONTROLLER, "everything-else", *EVERYTHING_ELSE)
        _grant(plane, CONTROLLER, "capi-machines", "*:machines.cluster.x-k8s.io")
        controller.start()
        try:
            yield attrs.evolve(running_world, controller=controller)
        finally:
            controller.stop()


EVERYTHING_ELSE = (
    "*:scheduledmachines.5spot.finos.org",
    "*:scheduledmachines.5spot.finos.org/status",
    "*:timebasedspotschedules.spotschedules.5spot.finos.org",
    "*:k0sworkerconfigs.bootstrap.cluster.x-k8s.io",
    "*:remotemachines.infrastructure.cluster.x-k8s.io",
    "*:clusters.cluster.x-k8s.io",
    "*:events.events.k8s.io",
    "*:secrets",
)


def run(scenario: Coroutine[Any, Any, None], seconds: float = 120) -> None:
    asyncio.run(asyncio.wait_for(scenario, seconds))


@attrs.frozen
class Place:
    """A namespace of its own, an administrator, and a user that the audit log knows apart."""

    admin: Gateway
    namespace: str
    user: str

    async def put(self, resource: Resource, name: str, **data: str) -> str:
        """Create or change an object; returns its version."""
        content = {"stringData" if resource is SECRETS else "data": data}
        try:
            answer = await self.admin.create(
                resource, self.namespace, {"metadata": {"name": name}, **content}
            )
        except AlreadyExists:
            answer = await self.admin.merge_patch(resource, self.namespace, name, content)
        return version_of(answer)

    async def drop(self, resource: Resource, name: str) -> None:
        await self.admin.delete(resource, self.namespace, name)


@asynccontextmanager
async def place(plane: ControlPlane) -> AsyncIterator[Place]:
    name = f"faults-{uuid4().hex[:8]}"
    async with await Gateway.connect(kubeconfig=plane.admin_kubeconfig) as admin:
        await admin.create(NAMESPACES, None, {"metadata": {"name": name}})
        yield Place(admin, name, f"test:{name}")


@asynccontextmanager
async def behind(line: Relay, plane: ControlPlane, user: str) -> AsyncIterator[Gateway]:
    """A gateway whose connections go through a relay."""
    text = through(line, plane, plane.kubeconfig_text(user, ADMINS))
    async with await Gateway.from_kubeconfig(text, allow_local=True) as gateway:
        yield gateway


def _grant(plane: ControlPlane, user: str, name: str, *rules: str) -> None:
    """Bind a ClusterRole of rules like `get,list:resource.group/subresource` to a user."""
    made = []
    for rule in rules:
        verbs, _, what = rule.partition(":")
        what, slash, sub = what.partition("/")
        plural, _, group = what.partition(".")
        made.append({"apiGroups": [group], "resources": [f"{plural}{slash}{sub}"], "verbs": verbs.split(",")})
    api = "rbac.authorization.k8s.io"
    items = [
        {"apiVersion": f"{api}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": made},
        {
            "apiVersion": f"{api}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "subjects": [{"kind": "User", "apiGroup": api, "name": user}],
            "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": name},
        },
    ]
    plane.kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def _take_away(plane: ControlPlane, name: str) -> None:
    plane.kubectl("delete", "clusterrolebinding", name)


# What etcd forgets


def test_a_version_that_was_compacted_costs_one_list_and_loses_nothing(forgetful: ControlPlane) -> None:
    async def scenario() -> None:
        async with (
            place(forgetful) as here,
            relay(port_of(forgetful)) as line,
            behind(line, forgetful, here.user) as gateway,
        ):
            for name in ("changes", "goes", "is-replaced", "stays"):
                await here.put(CONFIG_MAPS, name, k="1")
            told = Told()
            reflector = told.reflector(gateway, CONFIG_MAPS, HurriedClock(), namespace=here.namespace)
            async with running(reflector):
                opened = await here.put(CONFIG_MAPS, "stays", k="2")
                await until(lambda: told.versions()["stays"][-1] == opened, "the stream delivers")
                before = len(told.changes)
                seen = reflector._state.version
                assert seen is not None
                await line.cut()
                await until(lambda: reflector.failing is not None, "the stream breaks")
                for name in ("goes", "is-replaced"):
                    await here.drop(CONFIG_MAPS, name)
                for name in ("changes", "comes", "is-replaced"):
                    await here.put(CONFIG_MAPS, name, k="2")
                await forgotten(here.admin, CONFIG_MAPS, here.namespace, seen)
                await line.mend()
                await cache_is_right(reflector, here.admin, here.namespace)
                assert told.kinds(before) == [
                    ("changes", "changed"),
                    ("comes", "added"),
                    ("goes", "deleted"),
                    ("is-replaced", "changed"),
                ]
                last = await here.put(CONFIG_MAPS, "stays", k="3")
                await until(lambda: told.versions()["stays"][-1:] == [last], "the new stream delivers")
                assert reflector.restart_reasons["gone"] == 1
                assert (reflector.failing, len(told.changes)) == (None, before + 5)
            # The last watch is logged when its end has been noticed.
            await until(lambda: len(asked(forgetful, here.user, "watch", "configmaps")) >= 3, "three watches")
            assert codes(asked(forgetful, here.user, "list", "configmaps")) == [200, 200]
            assert len(asked(forgetful, here.user, "watch", "configmaps")) == 3

    run(scenario())


def test_after_an_outage_too_a_version_that_is_too_old_is_followed_by_a_list_at_once(
    forgetful: ControlPlane,
) -> None:
    async def scenario() -> None:
        async with (
            place(forgetful) as here,
            relay(port_of(forgetful)) as line,
            behind(line, forgetful, here.user) as gateway,
        ):
            reflector = Told().reflector(gateway, CONFIG_MAPS, namespace=here.namespace)
            assert await reflector.step() == 0
            seen = reflector._state.version
            assert seen is not None
            await line.cut()
            for _ in range(5):
                assert await reflector.step() > 0
            await here.put(CONFIG_MAPS, "a", k="1")
            await forgotten(here.admin, CONFIG_MAPS, here.namespace, seen)
            await line.mend()
            delay = await reflector.step()
            assert reflector.restart_reasons["gone"] == 1
            assert delay == 0, f"the cache stays wrong for {delay:.1f} s more, with a server that is there"

    run(scenario())


def test_pages_that_expire_while_a_list_is_read_are_read_again_and_at_last_without_pages(
    forgetful: ControlPlane,
) -> None:
    count = 501

    async def scenario() -> None:
        async with (
            place(forgetful) as here,
            relay(port_of(forgetful)) as line,
            behind(line, forgetful, here.user) as gateway,
        ):

            async def expire() -> None:
                await asyncio.wait_for(line.held.wait(), 30)
                # Later than the page that was read; once even this is forgotten, the page is.
                later = await here.put(CONFIG_MAPS, "later", at=str(time.monotonic()))
                await here.put(CONFIG_MAPS, "later", at=str(time.monotonic()))
                await forgotten(here.admin, CONFIG_MAPS, here.namespace, later)

            await asyncio.gather(*(here.put(CONFIG_MAPS, f"c{n}") for n in range(count)))
            await gateway.get(CONFIG_MAPS, here.namespace, "c0")
            for times, statuses in ((1, [200, 410, 200, 200]), (2, [200, 410, 200, 410, 200])):
                answered = len(asked(forgetful, here.user, "list", "configmaps"))
                line.hold(after=1)
                reading = asyncio.create_task(gateway.list(CONFIG_MAPS, here.namespace))
                for left in reversed(range(times)):
                    await expire()
                    if left:
                        # The refusal, and the first page of the next try.
                        line.hold(after=2)
                    line.release()
                names = [item["metadata"]["name"] for item in (await reading).items]
                assert sorted(names) == sorted([*(f"c{n}" for n in range(count)), "later"])
                requests = asked(forgetful, here.user, "list", "configmaps")[answered:]
                assert codes(requests) == statuses
                query = parse_qs(urlsplit(requests[-1]["requestURI"]).query)
                assert ("limit" in query) is (times == 1)

    run(scenario())


# Streams that end by themselves


def test_streams_that_end_by_themselves_lose_nothing_and_list_nothing(plane: ControlPlane) -> None:
    async def scenario() -> None:
        async with (
            place(plane) as here,
            await Gateway.connect(kubeconfig=plane.kubeconfig(here.user, ADMINS)) as gateway,
        ):
            told, written = Told(), dict[str, list[str]]()
            reflector = told.reflector(gateway, SECRETS, namespace=here.namespace, lasting=(1.0, 1.0))
            async with running(reflector):
                turn = 0
                while reflector.restarts < 5:
                    name = f"s{turn % 7}"
                    versions = written.setdefault(name, [])
                    if len(versions) % 4 == 3:
                        await here.drop(SECRETS, name)
                        versions.append(GONE)
                    else:
                        versions.append(await here.put(SECRETS, name, turn=str(turn)))
                    turn += 1
                last = await here.put(SECRETS, "last")
                await until(lambda: told.versions().get("last") == [last], "the last change is told")
                assert reflector.restart_reasons == {"end": reflector.restarts}
                assert told.versions() == {**written, "last": [last]}, "every change once, in order"
                print(f"natural ends: {reflector.restarts}, {turn} changes")
            assert codes(asked(plane, here.user, "list", "secrets")) == [200]

    run(scenario())


def test_bookmarks_carry_a_quiet_stream_past_what_is_compacted(plane: ControlPlane) -> None:
    """A server that starts anew with no memory of its own resumes from the bookmark, and from nothing before."""

    async def scenario() -> None:
        async with (
            place(plane) as here,
            await Gateway.connect(kubeconfig=plane.kubeconfig(here.user, ADMINS)) as gateway,
        ):
            told = Told()
            reflector = told.reflector(
                gateway,
                SECRETS,
                HurriedClock(),
                namespace=here.namespace,
                label_selector="quiet=yes",
                lasting=(3.0, 4.0),
            )
            async with running(reflector):
                at_first = reflector._state.version
                assert at_first is not None
                for turn in range(20):
                    busy = await here.put(SECRETS, "busy", turn=str(turn))
                await until(
                    lambda: int(reflector._state.version or 0) >= int(busy), "a bookmark moves the version"
                )
                assert told.changes == []
                plane.compact(int(busy))
                await asyncio.to_thread(
                    plane.restart,
                    "kube-apiserver",
                    "--watch-cache-sizes=secrets#0",
                    "--etcd-compaction-interval=0",
                )
                with pytest.raises(Gone):
                    await events_from(here.admin, SECRETS, here.namespace, at_first)
                await here.admin.create(
                    SECRETS, here.namespace, {"metadata": {"name": "quiet", "labels": {"quiet": "yes"}}}
                )
                await until(lambda: told.kinds() == [("quiet", "added")], "the stream goes on")
                assert reflector.restart_reasons["gone"] == 0
            assert codes(asked(plane, here.user, "list", "secrets")) == [200]

    run(scenario())


# Tokens


@attrs.frozen
class Account:
    """A ServiceAccount whose tokens are bound to Secrets, so that they can be made invalid."""

    plane: ControlPlane
    namespace: str
    folder: Path

    def new_token(self, secret: str) -> str:
        self.plane.kubectl("create", "secret", "generic", secret, "-n", self.namespace)
        bound = ("--bound-object-kind=Secret", f"--bound-object-name={secret}")
        return self.plane.kubectl("create", "token", "app", "-n", self.namespace, *bound).strip()

    def invalidate(self, secret: str) -> None:
        self.plane.kubectl("delete", "secret", secret, "-n", self.namespace)

    def give(self, token: str) -> None:
        """As the kubelet does: the file is replaced at once."""
        new = self.folder / "token.new"
        new.write_text(token)
        new.replace(self.folder / "token")

    def answers_to(self, name: str) -> list[int]:
        """How requests for a ConfigMap were answered; a refused token has no name in the audit log."""
        wanted = f"/api/v1/namespaces/{self.namespace}/configmaps/{name}"
        return [
            event["responseStatus"]["code"]
            for event in self.plane.audit_events()
            if event["requestURI"] == wanted
            # What is refused for its token ends with the first stage that is logged.
            and (event["stage"] == "ResponseComplete" or event["responseStatus"]["code"] == 401)
        ]


@pytest.fixture
def account(plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Account:
    """An account as a pod has it; it may read and watch ConfigMaps."""
    namespace = f"tokens-{uuid4().hex[:8]}"
    plane.kubectl("create", "namespace", namespace)
    plane.kubectl("create", "serviceaccount", "app", "-n", namespace)
    plane.kubectl("create", "role", "read", "--verb=get,list,watch", "--resource=configmaps", "-n", namespace)
    plane.kubectl(
        "create", "rolebinding", "read", "--role=read", f"--serviceaccount={namespace}:app", "-n", namespace
    )
    for name in ("a", "b"):
        plane.kubectl("create", "configmap", name, "-n", namespace)
    address = urlsplit(plane.url)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", str(address.hostname))
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(address.port))
    (tmp_path / "namespace").write_text(namespace)
    (tmp_path / "ca.crt").write_bytes(plane.ca_file.read_bytes())
    return Account(plane, namespace, tmp_path)


def test_a_token_that_is_replaced_in_time_is_noticed_by_nobody(account: Account) -> None:
    async def scenario() -> None:
        old = account.new_token("old")
        account.give(old)
        fixed = account.folder / "old.json"
        fixed.write_text(json.dumps(_kubeconfig(account.plane, old)))
        told, stop, rounds = Told(), asyncio.Event(), [0] * 4

        async with (
            await Gateway.connect(kubeconfig=fixed) as with_old,
            await Gateway.connect(service_account=account.folder) as gateway,
        ):

            async def work(worker: int) -> None:
                while not stop.is_set():
                    await gateway.get(CONFIG_MAPS, account.namespace, "a")
                    rounds[worker] += 1
                    await asyncio.sleep(0.01)

            reflector = told.reflector(gateway, CONFIG_MAPS, namespace=account.namespace, lasting=(2.0, 3.0))
            async with running(reflector):
                workers = [asyncio.create_task(work(number)) for number in range(len(rounds))]
                await until(lambda: all(rounds), "the old token works")
                account.give(await asyncio.to_thread(account.new_token, "new"))
                await asyncio.to_thread(account.invalidate, "old")
                await refused(
                    lambda: with_old.get(CONFIG_MAPS, account.namespace, "b"),
                    Unauthorized,
                    "the server refuses the old token",
                )
                done, ends = list(rounds), reflector.restarts
                await until(
                    lambda: all(now >= then + 5 for now, then in zip(rounds, done, strict=True)),
                    "the requests go on",
                )
                await until(lambda: reflector.restarts > ends, "a stream begins with the new token")
                account.plane.kubectl("create", "configmap", "late", "-n", account.namespace)
                await until(lambda: ("late", "added") in told.kinds(), "the stream tells")
                stop.set()
                await asyncio.gather(*workers)
                assert reflector.restart_reasons == {"end": reflector.restarts}
        answers = account.answers_to("a")
        print(f"token replaced: {len(answers)} requests, {answers.count(401)} sent twice")
        assert set(answers) <= {200, 401}
        # Each request that had gone out with the old token was sent once more.
        assert answers.count(401) <= len(rounds)
        assert answers.count(200) == sum(rounds)

    run(scenario())


def test_a_token_that_is_replaced_too_late_is_taken_up_by_the_next_request(account: Account) -> None:
    """Until then requests fail, and say why; a watch that is open goes on."""

    async def scenario() -> None:
        account.give(account.new_token("old"))
        told = Told()
        async with await Gateway.connect(service_account=account.folder) as gateway:

            def get(name: str = "a") -> Coroutine[Any, Any, Object]:
                return gateway.get(CONFIG_MAPS, account.namespace, name)

            reflector = told.reflector(gateway, CONFIG_MAPS, namespace=account.namespace)
            async with running(reflector):
                await get()
                account.invalidate("old")
                await refused(get, Unauthorized, "the server refuses the old token")
                account.plane.kubectl("create", "configmap", "late", "-n", account.namespace)
                await until(lambda: ("late", "added") in told.kinds(), "the open watch goes on")
                account.give(account.new_token("new"))
                await asyncio.gather(*(get("b") for _ in range(8)))
                answers = account.answers_to("b")
                assert answers.count(200) == 8
                assert 1 <= answers.count(401) <= 8, "sent once more, and no oftener"
                assert (reflector.restarts, reflector.failing) == (0, None)

    run(scenario())


def _kubeconfig(plane: ControlPlane, token: str) -> dict[str, Any]:
    cluster = {"server": plane.url, "certificate-authority": str(plane.ca_file)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }


# Permissions


def test_a_permission_that_is_taken_away_stops_one_kind_and_empties_no_cache(plane: ControlPlane) -> None:
    async def scenario() -> None:
        async with place(plane) as here:
            for name in ("secrets", "configmaps"):
                _grant(plane, here.user, f"{here.namespace}-{name}", f"list,watch:{name}")
            for name in ("changes", "goes", "stays"):
                await here.put(SECRETS, name, k="1")
            async with await Gateway.connect(kubeconfig=plane.kubeconfig(here.user)) as gateway:
                told, other = Told(), Told()
                options: dict[str, Any] = {"namespace": here.namespace, "lasting": (1.0, 1.5)}
                reflector = told.reflector(gateway, SECRETS, **options)
                neighbour = other.reflector(gateway, CONFIG_MAPS, **options)
                await tried(lambda: gateway.list(SECRETS, here.namespace), Forbidden)
                await tried(lambda: gateway.list(CONFIG_MAPS, here.namespace), Forbidden)
                async with running(reflector, neighbour):
                    before = len(told.changes)
                    _take_away(plane, f"{here.namespace}-secrets")
                    await until(
                        lambda: isinstance(reflector.failing, Forbidden), "the next stream is refused"
                    )
                    assert (
                        'grant verb "watch" on resource "secrets" in API group "" in namespace '
                        f"{here.namespace}" in str(reflector.failing)
                    )
                    await here.drop(SECRETS, "goes")
                    await here.put(SECRETS, "changes", k="2")
                    await here.put(CONFIG_MAPS, "comes")
                    await until(lambda: ("comes", "added") in other.kinds(), "other kinds go on")
                    assert sorted(item["metadata"]["name"] for item in reflector.items()) == [
                        "changes",
                        "goes",
                        "stays",
                    ]
                    assert told.changes[before:] == []
                    _grant(plane, here.user, f"{here.namespace}-secrets", "list,watch:secrets")
                    took = await until(lambda: reflector.failing is None, "the stream is granted again")
                    print(f"permission given back: taken up after {took:.1f} s")
                    await cache_is_right(reflector, here.admin, here.namespace)
                    assert told.kinds(before) == [("changes", "changed"), ("goes", "deleted")]
                    assert neighbour.failing is None
            lists = [code for code in codes(asked(plane, here.user, "list", "secrets")) if code == 200]
            assert len(lists) == 2, "the test's own, and the first"

    run(scenario())


# Servers that die, or stand still


def test_a_cache_is_right_after_the_server_was_killed_while_a_thousand_machines_change(
    plane: ControlPlane,
) -> None:
    count, workers = 1_000, 8

    async def scenario() -> None:
        async with (
            place(plane) as here,
            await Gateway.connect(kubeconfig=plane.kubeconfig(here.user, ADMINS)) as gateway,
        ):
            told = Told()
            reflector = told.reflector(gateway, SCHEDULED, namespace=here.namespace)

            async def persist(attempt: Any, done: type[ApiError]) -> None:
                """Until it is done, or was done by a try of which nothing was heard."""
                while True:
                    try:
                        await attempt()
                    except done:
                        return
                    except Unavailable:
                        await asyncio.sleep(0.2)
                    else:
                        return

            async def change(worker: int) -> None:
                for number in range(worker, count, workers):
                    name = f"m{number}"
                    body = machine(here.namespace, name)
                    await persist(
                        lambda of=body: here.admin.create(SCHEDULED, here.namespace, of), AlreadyExists
                    )
                    if number % 10 == 0:
                        await persist(
                            lambda of=name: here.admin.delete(SCHEDULED, here.namespace, of), NotFound
                        )
                    elif number % 3 == 0:
                        await persist(
                            lambda of=name: here.admin.merge_patch(SCHEDULED, here.namespace, of, DISABLED),
                            NotFound,
                        )

            async with running(reflector):
                begun = time.monotonic()
                changing = [asyncio.create_task(change(worker)) for worker in range(workers)]
                await until(lambda: len(reflector) >= count // 4, "a quarter is there")
                await asyncio.to_thread(plane.kill, "kube-apiserver")
                await until(lambda: reflector.failing is not None, "the stream breaks")
                await asyncio.to_thread(plane.restart, "kube-apiserver")
                back = time.monotonic()
                await asyncio.gather(*changing)
                written = time.monotonic()
                await cache_is_right(reflector, here.admin, here.namespace)
                right = time.monotonic()
                print(
                    f"server killed: {count} machines in {written - begun:.1f} s; cache right "
                    f"{right - back:.1f} s after the server was back, {right - written:.1f} s after the last write"
                )
                assert len(reflector) == count - count // 10
                last = {name: versions[-1] for name, versions in told.versions().items()}
                cached = {item["metadata"]["name"]: version_of(item) for item in reflector.items()}
                assert {name: version for name, version in last.items() if version != GONE} == cached
                assert {name for name, version in last.items() if version == GONE} <= {
                    f"m{number}" for number in range(0, count, 10)
                }
                for name, versions in told.versions().items():
                    assert len(versions) == len(set(versions)), f"{name}: nothing twice"
                assert reflector.restart_reasons["gone"] <= 1
            assert codes(asked(plane, here.user, "list", "scheduledmachines")).count(200) <= 4
            # The controllers of later tests would make something of them.
            path = (
                f"/apis/{SCHEDULED.group}/{SCHEDULED.version}/namespaces/{here.namespace}/{SCHEDULED.plural}"
            )
            await asyncio.to_thread(plane.kubectl, "delete", "--raw", path)
            assert (await here.admin.list(SCHEDULED, here.namespace)).items == ()

    run(scenario())


def test_a_database_that_stands_still_is_unavailable_and_nothing_is_done_twice(plane: ControlPlane) -> None:
    async def scenario() -> None:
        async with (
            place(plane) as here,
            await Gateway.connect(kubeconfig=plane.kubeconfig(here.user, ADMINS)) as gateway,
        ):
            told, names = Told(), [f"s{number}" for number in range(4)]
            await here.put(SECRETS, "before", k="1")
            reflector = told.reflector(gateway, SECRETS, namespace=here.namespace)
            async with running(reflector):
                plane.send_signal("etcd", signal.SIGSTOP)
                begun = time.monotonic()
                try:
                    writes = [
                        gateway.create(SECRETS, here.namespace, {"metadata": {"name": name}})
                        for name in names
                    ]
                    reads = [gateway.get(SECRETS, here.namespace, "before") for _ in range(2)]
                    answers = await asyncio.gather(*writes, *reads, return_exceptions=True)
                finally:
                    plane.send_signal("etcd", signal.SIGCONT)
                paused = time.monotonic() - begun
                assert {type(answer) for answer in answers} == {Unavailable}
                for answer in answers[: len(names)]:
                    assert isinstance(answer, Unavailable)
                    assert answer.outcome_unknown
                assert reflector.get(here.namespace, "before") is not None

                await tried(lambda: gateway.get(SECRETS, here.namespace, "before"), Unavailable)
                woken = time.monotonic() - begun - paused
                for name in names:
                    # Done or not: whoever looks, and does what is missing, has one of each.
                    try:
                        await gateway.get(SECRETS, here.namespace, name)
                    except NotFound:
                        await here.put(SECRETS, name)
                last = await here.put(SECRETS, "before", k="2")
                await until(lambda: told.versions()["before"][-1] == last, "the last change is told")
                right = time.monotonic() - begun - paused
                await cache_is_right(reflector, here.admin, here.namespace)
                print(
                    f"etcd stood still for {paused:.1f} s: first answer {woken:.1f} s later, cache right {right:.1f} s later"
                )
                kinds = told.kinds()
                assert [kinds.count((name, "added")) for name in names] == [1] * len(names)
                assert not [name for name, what in kinds if what == "deleted"]
            sent = [event["objectRef"]["name"] for event in asked(plane, here.user, "create", "secrets")]
            assert sorted(sent) == sorted(set(sent)), "each create was sent once"

    run(scenario())


# Kinds that go, and come back as others


def _crd(group: str, version: str, plural: str, *, served: tuple[str, ...]) -> Object:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [
        {"name": name, "served": name in served, "storage": name == version, "schema": schema}
        for name in dict.fromkeys(("v1", "v2", version))
    ]
    names = {"plural": plural, "singular": plural.rstrip("s"), "kind": "Oddity"}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": versions}
    return {"metadata": {"name": f"{plural}.{group}"}, "spec": spec}


@attrs.define
class Heard:
    """What a Watches has told of one stream: changes, and whether the kind was served each time its state changed."""

    changes: list[tuple[str, str]] = attrs.field(factory=list)
    served: list[bool] = attrs.field(factory=list)

    def watches(self, gateway: Gateway, stream: Stream[Object]) -> Watches:
        def on_change(_stream: Stream[Any], key: Key, old: Object | None, new: Object | None) -> None:
            what = "added" if old is None else "deleted" if new is None else "changed"
            self.changes.append((what, key[1]))

        def on_state(_stream: Stream[Any], _users: frozenset[str]) -> None:
            self.served.append(made.served(stream))

        made = Watches(gateway, HurriedClock(), on_change=on_change, on_state=on_state)
        made.want("user", [stream])
        return made


def test_a_version_that_is_served_no_longer_is_no_deletion_and_the_next_one_is_found(
    plane: ControlPlane,
) -> None:
    group = f"g{uuid4().hex[:8]}.example.com"
    stream = Stream[Object](group=group, kind="Oddity", read=whole)
    v1 = Resource(group, "v1", "oddities", "Oddity", namespaced=True)

    async def scenario() -> None:
        async with place(plane) as here:
            await here.admin.create(CRDS, None, _crd(group, "v1", "oddities", served=("v1",)))
            body = {"metadata": {"name": "a"}}
            await tried(lambda: here.admin.create(v1, here.namespace, body), NotFound, Unavailable)
            heard = Heard()
            watches = heard.watches(here.admin, stream)
            try:
                await until(lambda: heard.served == [True], "the kind is found")
                await here.admin.merge_patch(
                    CRDS,
                    None,
                    f"oddities.{group}",
                    {"spec": _crd(group, "v1", "oddities", served=("v2",))["spec"]},
                )
                await until(lambda: heard.served[-2:] == [False, True], "it goes, and is found again")
                reflector = watches.reflector(stream)
                assert reflector is not None
                assert reflector.resource.version == "v2"
                assert heard.changes == [("added", "a"), ("added", "a")]
            finally:
                await watches.close()
                await here.admin.delete(CRDS, None, f"oddities.{group}")

    run(scenario())


def test_a_kind_that_is_deleted_and_comes_back_under_another_name_is_found_again(plane: ControlPlane) -> None:
    group = f"g{uuid4().hex[:8]}.example.com"
    stream = Stream[Object](group=group, kind="Oddity", read=whole)
    old = Resource(group, "v1", "oddities", "Oddity", namespaced=True)
    new = Resource(group, "v2", "strangenesses", "Oddity", namespaced=True)

    async def scenario() -> None:
        async with place(plane) as here:
            await here.admin.create(CRDS, None, _crd(group, "v1", "oddities", served=("v1",)))
            await tried(lambda: here.admin.list(old), NotFound, Unavailable)
            heard = Heard()
            watches = heard.watches(here.admin, stream)
            try:
                await until(lambda: heard.served[-1:] == [True], "the kind is found")
                await here.admin.delete(CRDS, None, f"oddities.{group}")
                await until(lambda: heard.served[-1] is False, "the kind is gone")
                assert watches.reflector(stream) is None
                await here.admin.create(CRDS, None, _crd(group, "v2", "strangenesses", served=("v2",)))
                body = {"metadata": {"name": "b"}}
                await tried(lambda: here.admin.create(new, here.namespace, body), NotFound, Unavailable)
                # A 404 for the old path makes discovery forget that there is no such kind: else it is half a minute.
                with pytest.raises(NotFound):
                    await here.admin.list(old)
                await until(lambda: heard.served[-1] is True, "the kind is found again")
                await until(lambda: heard.changes == [("added", "b")], "its objects appear")
                reflector = watches.reflector(stream)
                assert reflector is not None
                assert reflector.resource == new
            finally:
                await watches.close()
                for name in ("oddities", "strangenesses"):
                    plane.kubectl("delete", "crd", f"{name}.{group}", "--ignore-not-found")

    run(scenario())


# The product's own processes


def _made(world: World, namespace: str, name: str) -> dict[str, str]:
    kinds = (CAPI_MACHINES, "k0sworkerconfigs", "remotemachines", "nodes")
    return {kind: world.get(namespace, kind, name)["metadata"]["uid"] for kind in kinds}


def _changes(world: World, since: datetime) -> set[tuple[str, str]]:
    return {
        (event["objectRef"]["resource"], event["verb"]) for event in world.writes(CONTROLLER, since=since)
    }


def test_the_controller_works_on_when_its_server_comes_back(world: World) -> None:
    namespace = "killed"
    product.namespace_with_cluster(world, namespace, "grid")
    world.apply(product.open_now(namespace), machine(namespace, "stays"))
    world.wait_for_phases(namespace, {"stays": "Active"})
    before = _made(world, namespace, "stays")
    assert world.controller.popen is not None
    killed = datetime.now(UTC)
    world.plane.kill("kube-apiserver")
    world.plane.restart("kube-apiserver")
    back = datetime.now(UTC)
    world.apply(machine(namespace, "comes"))
    world.wait_for_phases(namespace, {"comes": "Active", "stays": "Active"}, seconds=90)
    print(
        f"server restarted: a new machine is Active {(datetime.now(UTC) - back).total_seconds():.1f} s later"
    )
    assert _made(world, namespace, "stays") == before
    assert "delete" not in {verb for _, verb in _changes(world, killed)}
    created = [
        event["objectRef"]["resource"]
        for event in world.writes(CONTROLLER, since=killed)
        if event["verb"] == "create"
    ]
    assert sorted(created) == ["k0sworkerconfigs", "machines", "remotemachines"]
    assert world.controller.popen.poll() is None
    assert "Traceback" not in world.controller.log.read_text()


def test_a_permission_taken_from_the_running_controller_deletes_nothing_and_can_be_given_back(
    world: World,
) -> None:
    namespace = "taken"
    product.namespace_with_cluster(world, namespace, "grid")
    world.apply(product.open_now(namespace), machine(namespace, "remains"))
    world.wait_for_phases(namespace, {"remains": "Active"})
    before = _made(world, namespace, "remains")
    assert world.controller.popen is not None
    read = len(world.controller.logged())
    taken = datetime.now(UTC)
    _take_away(world.plane, "capi-machines")
    # Streams are asked about permissions when they begin: let them begin.
    world.plane.kill("kube-apiserver")
    world.plane.restart("kube-apiserver")

    permission = f'on resource "machines" in API group "{CAPI_MACHINES.partition(".")[2]}"'
    wait_until(
        lambda: any(permission in entry["message"] for entry in world.controller.logged()[read:]),
        seconds=60,
        what="the permission to grant is named",
    )
    world.apply(machine(namespace, "starts", enabled=False))
    world.wait_for_phases(namespace, {"starts": "Disabled", "remains": "Active"})
    assert _made(world, namespace, "remains") == before
    assert _changes(world, taken) <= {("scheduledmachines", "patch")}

    _grant(world.plane, CONTROLLER, "capi-machines", "*:machines.cluster.x-k8s.io")
    given = datetime.now(UTC)
    world.patch(namespace, "sm", "starts", {"spec": {"enabled": True}})
    world.wait_for_phases(namespace, {"starts": "Active", "remains": "Active"}, seconds=90)
    print(f"permission given back: Active {(datetime.now(UTC) - given).total_seconds():.1f} s later")
    world.patch(namespace, "sm", "remains", {"spec": {"enabled": False}})
    world.wait_for_phases(namespace, {"remains": "Disabled"})
    assert world.controller.popen.poll() is None
    assert "Traceback" not in world.controller.log.read_text()


def test_a_provider_kind_that_is_deleted_while_the_controller_runs_is_no_answer(world: World) -> None:
    """The server empties the kind before it goes: neither that nor its absence says that a machine shall go."""
    namespace, crd = "unanswered", "timebasedspotschedules.spotschedules.5spot.finos.org"
    product.namespace_with_cluster(world, namespace, "grid")
    world.apply(product.open_now(namespace), machine(namespace, "held"))
    world.wait_for_phases(namespace, {"held": "Active"})
    before = _made(world, namespace, "held")
    deleted = datetime.now(UTC)
    world.plane.kubectl("delete", "crd", crd)
    try:
        wait_until(
            lambda: (
                world.condition(namespace, "held", "SpotScheduleResolved")["reason"]
                == "ProviderCRDNotInstalled"
            ),
            seconds=60,
            what="the kind is said to be missing",
        )
        assert world.phases(namespace) == {"held": "Active"}
        assert world.get(namespace, "sm", "held")["status"]["decidedBy"] == "Held"
        assert _made(world, namespace, "held") == before
        assert _changes(world, deleted) == {("scheduledmachines", "patch")}
    finally:
        product.install(world.plane)
