"""The gateway and the reflector against a real API server: every operation, and every error it has."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from fivespot.adapters.clock import SystemClock
from fivespot.adapters.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    KindNotServed,
    NotFound,
    Throttled,
    Unauthorized,
    Unavailable,
)
from fivespot.adapters.kube.frames import WatchEvent
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.kubeconfig import KubeconfigRejected
from fivespot.adapters.kube.reflector import Reflector
from fivespot.adapters.kube.resources import (
    CONFIG_MAPS,
    CRDS,
    EVENTS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    SECRETS,
    Object,
    Resource,
)
from fivespot.adapters.kube.watching import whole
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.pytest_plugin import StartControlPlane

PDBS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", namespaced=True)


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 60))


async def until(check: Callable[[], bool], what: str, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, what
        await asyncio.sleep(0.02)


async def tried(attempt: Callable[[], Awaitable[Any]], *errors: type[Exception]) -> Any:
    """The answer of `attempt`, once it no longer raises one of `errors`."""
    deadline = time.monotonic() + 20
    while True:
        try:
            return await attempt()
        except errors:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)


@asynccontextmanager
async def world(plane: ControlPlane) -> AsyncIterator[tuple[Gateway, str]]:
    """A gateway of the administrator, and a namespace of its own."""
    name = f"gateway-{uuid4().hex[:8]}"
    async with await Gateway.connect(kubeconfig=plane.admin_kubeconfig) as gateway:
        await gateway.create(NAMESPACES, None, {"metadata": {"name": name}})
        yield gateway, name


def config_map(name: str, **data: str) -> Object:
    return {"metadata": {"name": name, "labels": {"set": data.get("set", "none")}}, "data": data}


async def collected(
    gateway: Gateway, namespace: str, version: str, seconds: float = 2, selector: str | None = None
) -> list[WatchEvent]:
    stream = gateway.watch(
        CONFIG_MAPS, namespace, selector, resource_version=version, timeout_seconds=seconds
    )
    async with aclosing(stream):
        return [event async for event in stream]


def test_an_object_is_created_read_patched_and_deleted(control_plane: ControlPlane) -> None:
    async def scenario() -> None:
        async with world(control_plane) as (gateway, ns):
            created = await gateway.create(CONFIG_MAPS, ns, config_map("a", k="1"))
            assert (created["kind"], created["apiVersion"]) == ("ConfigMap", "v1")
            assert "managedFields" not in created["metadata"]
            assert await gateway.get(CONFIG_MAPS, ns, "a") == created

            patched = await gateway.merge_patch(CONFIG_MAPS, ns, "a", {"data": {"k": None, "l": "2"}})
            assert patched["data"] == {"l": "2"}

            operations = [
                {"op": "test", "path": "/data/l", "value": "2"},
                {"op": "replace", "path": "/data/l", "value": "3"},
            ]
            assert (await gateway.json_patch(CONFIG_MAPS, ns, "a", operations))["data"] == {"l": "3"}

            await gateway.delete(CONFIG_MAPS, ns, "a", uid=created["metadata"]["uid"])
            with pytest.raises(NotFound) as gone:
                await gateway.get(CONFIG_MAPS, ns, "a")
            assert not gone.value.kind_not_served

    run(scenario())


def test_every_refusal_is_an_error_of_its_own(control_plane: ControlPlane) -> None:
    async def scenario() -> None:
        async with world(control_plane) as (gateway, ns):
            created = await gateway.create(CONFIG_MAPS, ns, config_map("a", k="1"))
            stale = {"metadata": {"resourceVersion": created["metadata"]["resourceVersion"]}}
            await gateway.merge_patch(CONFIG_MAPS, ns, "a", {"data": {"k": "2"}})
            test = [{"op": "test", "path": "/data/k", "value": "1"}, {"op": "remove", "path": "/data/k"}]
            nothing = Resource("nothing.example.com", "v1", "things", "Thing", namespaced=True)

            async def raises(expected: type[ApiError], attempt: Awaitable[object]) -> ApiError:
                with pytest.raises(expected) as caught:
                    await attempt
                assert type(caught.value) is expected
                return caught.value

            await raises(AlreadyExists, gateway.create(CONFIG_MAPS, ns, config_map("a")))
            await raises(Conflict, gateway.merge_patch(CONFIG_MAPS, ns, "a", {**stale, "data": {"k": "3"}}))
            await raises(Conflict, gateway.json_patch(CONFIG_MAPS, ns, "a", test))
            await raises(Conflict, gateway.delete(CONFIG_MAPS, ns, "a", uid=str(uuid4())))
            await raises(Invalid, gateway.create(CONFIG_MAPS, ns, config_map("Not A Name")))
            await raises(Invalid, gateway.merge_patch(CONFIG_MAPS, ns, "a", {"data": {"not a key": "x"}}))
            bad_key = [{"op": "add", "path": "/data/not a key", "value": "x"}]
            await raises(Invalid, gateway.json_patch(CONFIG_MAPS, ns, "a", bad_key))
            await raises(NotFound, gateway.merge_patch(CONFIG_MAPS, ns, "b", {}))
            await raises(NotFound, gateway.delete(CONFIG_MAPS, ns, "b"))
            missing = await raises(NotFound, gateway.get(nothing, ns, "a"))
            assert isinstance(missing, NotFound)
            assert missing.kind_not_served
            conflict = await raises(
                Conflict, gateway.apply(CONFIG_MAPS, ns, "a", {"data": {"k": "4"}}, "somebody-else")
            )
            assert conflict.causes == ("FieldManagerConflict",)

    run(scenario())


def test_apply_owns_its_fields_and_force_takes_others(control_plane: ControlPlane) -> None:
    async def scenario() -> None:
        async with world(control_plane) as (gateway, ns):
            await gateway.apply(CONFIG_MAPS, ns, "a", {"data": {"k": "1", "l": "1"}}, "one")
            await gateway.apply(CONFIG_MAPS, ns, "a", {"data": {"k": "2"}}, "two", force=True)
            last = await gateway.apply(CONFIG_MAPS, ns, "a", {"data": {}}, "one")
            assert last["data"] == {"k": "2"}

    run(scenario())


def test_a_status_is_a_sub_resource(control_plane: ControlPlane) -> None:
    async def scenario() -> None:
        name = f"node-{uuid4().hex[:8]}"
        async with await Gateway.connect(kubeconfig=control_plane.admin_kubeconfig) as gateway:
            await gateway.create(NODES, None, {"metadata": {"name": name}})
            condition = {"type": "Ready", "status": "True", "reason": "Test", "message": ""}
            body = {"status": {"conditions": [condition]}, "metadata": {"labels": {"ignored": "yes"}}}
            node = await gateway.merge_patch(NODES, None, name, body, "status")
            assert any(c["reason"] == "Test" for c in node["status"]["conditions"])
            await gateway.delete(NODES, None, name)

    run(scenario())


def test_deletion_says_whether_the_object_is_still_there(control_plane: ControlPlane) -> None:
    async def scenario() -> None:
        async with world(control_plane) as (gateway, ns):
            held = config_map("held")
            held["metadata"]["finalizers"] = ["example.com/hold"]
            await gateway.create(CONFIG_MAPS, ns, held)
            await gateway.create(CONFIG_MAPS, ns, config_map("free"))
            terminating = await gateway.delete(CONFIG_MAPS, ns, "held", propagation="Background")
            assert terminating is not None
            assert "deletionTimestamp" in terminating["metadata"]
            assert await gateway.delete(CONFIG_MAPS, ns, "free") is None
            await gateway.merge_patch(CONFIG_MAPS, ns, "held", {"metadata": {"finalizers": None}})
            with pytest.raises(NotFound):
                await gateway.get(CONFIG_MAPS, ns, "held")

    run(scenario())


def test_core_kinds_have_the_paths_that_the_constants_say(control_plane: ControlPlane) -> None:
    async def scenario() -> None:
        async with await Gateway.connect(kubeconfig=control_plane.admin_kubeconfig) as gateway:
            for resource in (NAMESPACES, NODES, PODS, SECRETS, CONFIG_MAPS, EVENTS, LEASES, CRDS):
                assert await gateway.resolve(resource.group, resource.kind, resource.version) == resource
                await gateway.list(resource)
            assert (await gateway.version())["gitVersion"].startswith("v1.")
            assert (await gateway.resolve("apps", "Deployment", "v1beta7")).version == "v1"
            assert (await gateway.resolve("", "Pod")) == PODS
            with pytest.raises(KindNotServed):
                await gateway.resolve("apps", "Nothing")
            with pytest.raises(KindNotServed):
                await gateway.resolve("nothing.example.com", "Nothing", "v1")

    run(scenario())


def test_a_list_takes_as_many_pages_as_it_needs(control_plane: ControlPlane) -> None:
    async def scenario() -> None:
        async with world(control_plane) as (gateway, ns):
            await asyncio.gather(
                *(
                    gateway.create(CONFIG_MAPS, ns, config_map(f"c{n}", set="odd" if n % 2 else "even"))
                    for n in range(520)
                )
            )
            result = await gateway.list(CONFIG_MAPS, ns)
            names = {item["metadata"]["name"] for item in result.items}
            assert {f"c{n}" for n in range(520)} <= names
            assert {item["kind"] for item in result.items} == {"ConfigMap"}
            odd = await gateway.list(CONFIG_MAPS, ns, label_selector="set=odd")
            assert len(odd.items) == 260
            one = await gateway.list(
                CONFIG_MAPS, None, field_selector=f"metadata.name=c7,metadata.namespace={ns}"
            )
            assert [item["metadata"]["name"] for item in one.items] == ["c7"]

    run(scenario())


def test_a_watch_tells_changes_and_bookmarks_and_ends_when_asked(control_plane: ControlPlane) -> None:
    async def scenario() -> None:
        async with world(control_plane) as (gateway, ns):
            version = (await gateway.list(CONFIG_MAPS, ns, "set=mine")).resource_version
            watch = asyncio.create_task(collected(gateway, ns, version, 4, "set=mine"))
            await gateway.create(CONFIG_MAPS, ns, config_map("a", set="mine", text="a\x85b\u2028c"))
            await gateway.merge_patch(CONFIG_MAPS, ns, "a", {"data": {"k": "1"}})
            await gateway.create(CONFIG_MAPS, ns, config_map("b", set="other"))
            await gateway.delete(CONFIG_MAPS, ns, "a")
            events = await watch
            told = [event for event in events if event.type != "BOOKMARK"]
            assert [event.type for event in told] == ["ADDED", "MODIFIED", "DELETED"]
            assert {event.object["metadata"]["name"] for event in told} == {"a"}
            assert told[0].object["data"]["text"] == "a\x85b\u2028c"
            assert "managedFields" not in told[0].object["metadata"]
            bookmarks = [event for event in events if event.type == "BOOKMARK"]
            assert bookmarks
            assert int(bookmarks[-1].resource_version) >= int(told[-1].resource_version)

    run(scenario())


def test_a_stranger_is_forbidden_once_and_told_what_is_missing(control_plane: ControlPlane) -> None:
    user = f"stranger-{uuid4().hex[:8]}"

    async def scenario() -> None:
        text = control_plane.kubeconfig_text(user)
        async with await Gateway.from_kubeconfig(text, allow_local=True) as gateway:
            with pytest.raises(Forbidden, match='grant verb "get" on resource "pods" in API group ""'):
                await gateway.get(PODS, "default", "a")
            with pytest.raises(Forbidden, match='grant verb "watch" on resource "configmaps"'):
                await collected(gateway, "default", "1")
            with pytest.raises(
                Forbidden, match=r'"leases" in API group "coordination\.k8s\.io" in namespace default'
            ):
                await gateway.create(LEASES, "default", {"metadata": {"name": "a"}})

    run(scenario())
    events = [event for event in control_plane.audit_events() if event["user"].get("username") == user]
    asked = [event["verb"] for event in events if event["stage"] == "ResponseComplete"]
    assert asked == ["get", "watch", "create"]


def test_a_child_kubeconfig_has_to_be_allowed_to_be_local(control_plane: ControlPlane) -> None:
    async def scenario() -> None:
        with pytest.raises(KubeconfigRejected, match="allow-local-child"):
            await Gateway.from_kubeconfig(control_plane.kubeconfig_text("x"), allow_local=False)

    run(scenario())


def test_a_certificate_that_does_not_fit_its_key_is_refused(control_plane: ControlPlane) -> None:
    async def scenario() -> None:
        one, other = (control_plane.kubeconfig_text("x").splitlines() for _ in range(2))
        mixed = [b if "client-key-data" in b else a for a, b in zip(one, other, strict=True)]
        with pytest.raises(KubeconfigRejected, match="fit together"):
            await Gateway.from_kubeconfig("\n".join(mixed), allow_local=True)

    run(scenario())


def test_no_key_stays_behind_in_the_temporary_folder(
    control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    text = control_plane.kubeconfig_text("admin", ["system:masters"])
    dead = text.replace(control_plane.url, "https://127.0.0.1:1")

    def left() -> list[Path]:
        return list(tmp_path.iterdir())

    async def scenario() -> None:
        async with await Gateway.connect(kubeconfig=control_plane.admin_kubeconfig) as gateway:
            assert left() == []
            await asyncio.gather(*(gateway.list(NODES) for _ in range(20)))
        async with await Gateway.from_kubeconfig(dead, allow_local=True) as gateway:
            assert left() == []
            with pytest.raises(Unavailable):
                await gateway.create(NODES, None, {"metadata": {"name": "a"}})
        assert left() == []

    run(scenario())


def test_two_gateways_of_one_kubeconfig_are_independent(control_plane: ControlPlane) -> None:
    async def scenario() -> None:
        path = control_plane.admin_kubeconfig
        async with await Gateway.connect(kubeconfig=path) as one:
            async with await Gateway.connect(kubeconfig=path) as other:
                await other.list(NODES)
            await one.list(NODES)
            with pytest.raises(Unavailable):
                await other.list(NODES)

    run(scenario())


def test_in_a_pod_the_service_account_wins_over_a_stray_kubeconfig(
    control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = urlsplit(control_plane.url)
    stray = tmp_path / "stray"
    stray.write_text("{}")
    monkeypatch.setenv("KUBECONFIG", str(stray))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", str(address.hostname))
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(address.port))

    async def scenario() -> None:
        async with world(control_plane) as (admin, ns):
            accounts = await admin.resolve("", "ServiceAccount")
            await tried(lambda: admin.get(accounts, ns, "default"), NotFound)
            token = tmp_path / "token"
            token.write_text("not.a.token\n")
            (tmp_path / "namespace").write_text(f"{ns}\n")
            (tmp_path / "ca.crt").write_bytes(control_plane.ca_file.read_bytes())
            async with await Gateway.connect(service_account=tmp_path) as gateway:
                assert gateway.namespace == ns
                with pytest.raises(Unauthorized):
                    await gateway.get(PODS, ns, "a")
                # The kubelet replaces it; the trailing newline is harmless.
                token.write_text(control_plane.kubectl("create", "token", "default", "-n", ns))
                with pytest.raises(Forbidden, match=f"system:serviceaccount:{ns}:default"):
                    await gateway.get(PODS, ns, "a")

    run(scenario())


async def running_pod(gateway: Gateway, ns: str, name: str) -> Object:
    body = {
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [{"name": "c", "image": "none"}], "terminationGracePeriodSeconds": 0},
    }
    # The namespace's default ServiceAccount is made by a controller.
    pod: Object = await tried(lambda: gateway.create(PODS, ns, body), Forbidden)
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await gateway.merge_patch(PODS, ns, name, {"status": status}, "status")
    return pod


def test_an_eviction_without_a_budget_deletes_the_pod(control_plane: ControlPlane) -> None:
    async def scenario() -> None:
        async with world(control_plane) as (gateway, ns):
            pod = await running_pod(gateway, ns, "a")
            with pytest.raises(Conflict):
                await gateway.evict(ns, "a", uid=str(uuid4()))
            await gateway.evict(ns, "a", uid=pod["metadata"]["uid"], grace_seconds=0)
            with pytest.raises(NotFound):
                await gateway.evict(ns, "a")

    run(scenario())


def test_an_eviction_waits_for_its_budget(control_plane: ControlPlane) -> None:
    async def scenario() -> None:
        async with world(control_plane) as (gateway, ns):
            await running_pod(gateway, ns, "a")
            budget = {
                "metadata": {"name": "a"},
                "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}},
            }
            await gateway.create(PDBS, ns, budget)
            with pytest.raises(Throttled) as refused:
                await gateway.evict(ns, "a")
            assert refused.value.cause == "DisruptionBudget"
            await gateway.merge_patch(PDBS, ns, "a", {"spec": {"minAvailable": 0}})
            await tried(lambda: gateway.evict(ns, "a", grace_seconds=0), Throttled)
            with pytest.raises(NotFound):
                await gateway.get(PODS, ns, "a")

    run(scenario())


class Seen:
    """What a reflector has told."""

    def __init__(self) -> None:
        self.changes: list[tuple[str, str]] = []
        self.served: list[bool] = []

    def change(self, key: tuple[str, str], old: Object | None, new: Object | None) -> None:
        kind = "added" if old is None else "deleted" if new is None else "changed"
        self.changes.append((kind, key[1]))

    def reflector(self, gateway: Gateway, resource: Resource, **options: Any) -> Reflector:
        return Reflector(
            gateway,
            resource,
            clock=SystemClock(),
            read=whole,
            on_change=self.change,
            on_served_change=self.served.append,
            **options,
        )


@asynccontextmanager
async def running(reflector: Reflector) -> AsyncIterator[None]:
    task = asyncio.create_task(reflector.run())
    try:
        await asyncio.wait_for(reflector.synced.wait(), 20)
        yield
        assert not task.done(), task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_a_reflector_follows_and_knows_our_own_writes_at_once(control_plane: ControlPlane) -> None:
    async def scenario() -> None:
        async with world(control_plane) as (gateway, ns):
            await gateway.create(CONFIG_MAPS, ns, config_map("a", set="mine"))
            seen = Seen()
            reflector = seen.reflector(gateway, CONFIG_MAPS, namespace=ns, label_selector="set=mine")
            async with running(reflector):
                assert seen.changes == [("added", "a")]
                await gateway.create(CONFIG_MAPS, ns, config_map("b", set="mine"))
                await gateway.create(CONFIG_MAPS, ns, config_map("c", set="other"))
                await until(lambda: reflector.get(ns, "b") is not None, "b")
                patched = await gateway.merge_patch(CONFIG_MAPS, ns, "b", {"data": {"k": "1"}})
                reflector.feed(patched)
                assert reflector.get(ns, "b") == patched
                await gateway.delete(CONFIG_MAPS, ns, "a")
                reflector.forget(ns, "a")
                assert reflector.get(ns, "a") is None
                # What no longer matches the selector is gone for the reflector.
                await gateway.merge_patch(CONFIG_MAPS, ns, "b", {"metadata": {"labels": {"set": "other"}}})
                await until(lambda: len(reflector) == 0, "b leaves")
                assert seen.changes == [
                    ("added", "a"),
                    ("added", "b"),
                    ("changed", "b"),
                    ("deleted", "a"),
                    ("deleted", "b"),
                ]
                assert (reflector.items(), reflector.restarts, seen.served) == ([], 0, [])

    run(scenario())


def crd(group: str) -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "oddities", "singular": "oddity", "kind": "Oddity"}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": f"oddities.{group}"}, "spec": spec}


def test_a_kind_that_comes_and_goes_is_never_a_deletion(control_plane: ControlPlane) -> None:
    group = f"g{uuid4().hex[:8]}.example.com"
    oddities = Resource(group, "v1", "oddities", "Oddity", namespaced=True)

    async def scenario() -> None:
        async with world(control_plane) as (gateway, ns):
            seen = Seen()
            reflector = seen.reflector(gateway, oddities)
            assert 24 <= await reflector.step() <= 36
            assert (reflector.served, reflector.synced.is_set(), seen.served) == (False, True, [False])

            await gateway.create(CRDS, None, crd(group))
            await tried(lambda: gateway.list(oddities), NotFound, Unavailable)
            await tried(lambda: gateway._document(f"/apis/{group}/v1"), NotFound)
            assert await gateway.resolve(group, "Oddity") == oddities
            await gateway.create(oddities, ns, {"metadata": {"name": "a"}})
            assert await reflector.step() == 0
            assert (reflector.served, seen.served, seen.changes) == (True, [False, True], [("added", "a")])

            stream = asyncio.create_task(reflector.step())
            await asyncio.sleep(0.3)
            await gateway.delete(CRDS, None, f"oddities.{group}")
            await asyncio.wait_for(stream, 30)
            # The server empties the kind before it goes, and says so; what is cached after that says nothing.
            told = list(seen.changes)
            while reflector.served:
                await asyncio.sleep(0.05)
                await asyncio.wait_for(reflector.step(), 30)
            assert seen.changes[: len(told)] == told
            assert (reflector.served, reflector.items(), seen.served) == (False, [], [False, True, False])
            with pytest.raises(KindNotServed):
                await gateway.resolve(group, "Oddity")

    run(scenario())


def test_a_reflector_survives_the_death_of_the_server(start_control_plane: StartControlPlane) -> None:
    with start_control_plane(controllers=["serviceaccount-controller"]) as plane:

        async def scenario() -> None:
            async with world(plane) as (gateway, ns):
                await gateway.create(CONFIG_MAPS, ns, config_map("a"))
                seen = Seen()
                reflector = seen.reflector(gateway, CONFIG_MAPS, namespace=ns)
                async with running(reflector):
                    await asyncio.to_thread(plane.kill, "kube-apiserver")
                    await until(lambda: reflector.failing is not None, "the stream breaks")
                    with pytest.raises(Unavailable) as write:
                        await gateway.delete(CONFIG_MAPS, ns, "a")
                    assert not write.value.outcome_unknown
                    assert reflector.get(ns, "a") is not None
                    await asyncio.to_thread(plane.restart, "kube-apiserver")
                    await gateway.create(CONFIG_MAPS, ns, config_map("b"))
                    await gateway.delete(CONFIG_MAPS, ns, "a")
                    await until(lambda: reflector.get(ns, "b") is not None, "b")
                    await until(lambda: reflector.get(ns, "a") is None, "a goes")
                    assert reflector.restarts >= 1
                    assert reflector.failing is None
                    # The server began anew, and its memory of events with it.
                    with pytest.raises(Gone):
                        await collected(gateway, ns, "1")

        run(scenario())


def test_requests_go_over_kept_connections(control_plane: ControlPlane) -> None:
    """A TLS handshake per request would cost more than the request."""

    async def scenario() -> None:
        async with await Gateway.connect(kubeconfig=control_plane.admin_kubeconfig) as gateway:
            await gateway.list(NODES)
            begun = time.monotonic()
            for _ in range(50):
                await gateway.get(NAMESPACES, None, "default")
            assert time.monotonic() - begun < 5
            session = gateway._connection._api._session
            assert session is not None
            pool = session._transport._pool  # type: ignore[attr-defined]
            assert len(pool.connections) == 1

    run(scenario())


def test_the_audit_log_knows_us_by_name(control_plane: ControlPlane) -> None:
    async def scenario() -> None:
        async with world(control_plane) as (gateway, ns):
            created = await gateway.create(CONFIG_MAPS, ns, config_map("a"), "5spot-test")
            assert created["metadata"]["name"] == "a"
            fields = json.loads(
                control_plane.kubectl(
                    "get", "configmap", "a", "-n", ns, "-o", "json", "--show-managed-fields"
                )
            )
            assert [m["manager"] for m in fields["metadata"]["managedFields"]] == ["5spot-test"]

    run(scenario())
    agents = {event.get("userAgent", "") for event in control_plane.audit_events()}
    assert any(agent.startswith("5spot/") for agent in agents)
