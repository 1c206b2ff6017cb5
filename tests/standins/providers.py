"""A stand-in for Cluster API's providers: of k0smotron, what it does to a host over SSH, as far as others can see.

A bootstrap object that a Machine has taken gets its Secret; then the host gets a provider id, is provisioned, and its
kubelet comes up; when the infrastructure object goes, the kubelet goes first.
"""

import asyncio
import contextlib
from typing import Any

from fivespot.adapters.kube.errors import AlreadyExists, NotFound
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.resources import SECRETS, Object, Resource
from tests.standins.kubelets import Hosts, Kubelets
from tests.standins.working import Worker, serve

BOOTSTRAPS = Resource(
    "bootstrap.cluster.x-k8s.io", "v1beta1", "k0sworkerconfigs", "K0sWorkerConfig", namespaced=True
)
HOSTS = Resource(
    "infrastructure.cluster.x-k8s.io", "v1beta1", "remotemachines", "RemoteMachine", namespaced=True
)
FINALIZER = "remotemachine.k0smotron.io/finalizer"
JOIN = 0.5
"""Seconds until a kubelet is there: no host boots in no time, and what it does is seen in order."""

HOST = "stand-in.example.com/host"
"""An annotation of the infrastructure object that says what is wrong with the host."""
NEVER_JOINS, NEVER_LETS_GO = "never-joins", "never-lets-go"


def provider_id(namespace: str, name: str) -> str:
    """What a host is called by its provider."""
    return f"stand-in://{namespace}/{name}"


class Providers(Worker):
    """Reconciles bootstrap and infrastructure objects of the management cluster; their kubelets are in the child."""

    def __init__(self, gateway: Gateway, hosts: Hosts) -> None:
        super().__init__((gateway, BOOTSTRAPS), (gateway, HOSTS))
        self._gateway = gateway
        self._hosts = hosts
        self._joins: dict[str, float] = {}

    async def look_at(self, resource: Resource, body: Object) -> None:
        """One step of an object that a Machine has taken: before that a provider does nothing."""
        meta = body["metadata"]
        if not any(owner["kind"] == "Machine" for owner in meta.get("ownerReferences", [])):
            return
        if resource is BOOTSTRAPS:
            await self._bootstrap(body)
        elif meta.get("deletionTimestamp"):
            await self._release(meta)
        else:
            await self._host(body)

    async def _bootstrap(self, body: Object) -> None:
        meta = body["metadata"]
        namespace, name = meta["namespace"], meta["name"]
        if meta.get("deletionTimestamp") or body.get("status", {}).get("dataSecretName"):
            return
        owner = {
            "apiVersion": BOOTSTRAPS.api_version,
            "kind": BOOTSTRAPS.kind,
            "name": name,
            "uid": meta["uid"],
        }
        secret = {
            "metadata": {"name": f"{name}-bootstrap", "ownerReferences": [owner]},
            "type": "cluster.x-k8s.io/secret",
            "stringData": {"value": "how to join"},
        }
        with contextlib.suppress(AlreadyExists):
            await self._gateway.create(SECRETS, namespace, secret)
        status = {"dataSecretName": f"{name}-bootstrap", "initialization": {"dataSecretCreated": True}}
        await self._gateway.merge_patch(BOOTSTRAPS, namespace, name, {"status": status}, subresource="status")

    async def _host(self, body: Object) -> None:
        meta = body["metadata"]
        namespace, name = meta["namespace"], meta["name"]
        if FINALIZER not in meta.get("finalizers", []):
            await self._patch(meta, {"metadata": {"finalizers": [*meta.get("finalizers", []), FINALIZER]}})
            return
        if meta.get("annotations", {}).get(HOST) == NEVER_JOINS or not await self._bootstrapped(meta):
            return
        wanted = provider_id(namespace, name)
        if body["spec"].get("providerID") != wanted:
            await self._patch(meta, {"spec": {"providerID": wanted}})
        if not body.get("status", {}).get("initialization", {}).get("provisioned"):
            status = {"status": {"initialization": {"provisioned": True}}}
            await self._gateway.merge_patch(HOSTS, namespace, name, status, subresource="status")
        if (left := self._until_joined(meta["uid"])) > 0:
            self.again(HOSTS, namespace, name, left)
        else:
            await self._hosts.switch_on(name, wanted)

    async def _bootstrapped(self, meta: dict[str, Any]) -> bool:
        """Whether there is something to join with; in these tests all that belongs together has one name."""
        namespace, name = meta["namespace"], meta["name"]
        with contextlib.suppress(NotFound):
            bootstrap = await self._gateway.get(BOOTSTRAPS, namespace, name)
            if bootstrap.get("status", {}).get("dataSecretName"):
                return True
        self.again(HOSTS, namespace, name, 0.1)
        return False

    def _until_joined(self, uid: str) -> float:
        now = asyncio.get_running_loop().time()
        return self._joins.setdefault(uid, now + JOIN) - now

    async def _release(self, meta: dict[str, Any]) -> None:
        if meta.get("annotations", {}).get(HOST) == NEVER_LETS_GO:
            return
        await self._hosts.switch_off(meta["name"])
        kept = [name for name in meta.get("finalizers", []) if name != FINALIZER]
        await self._patch(meta, {"metadata": {"finalizers": kept}})

    async def _patch(self, meta: dict[str, Any], body: dict[str, Any]) -> None:
        """What was seen may be old, and lists are replaced whole."""
        body = {**body, "metadata": {**body.get("metadata", {}), "resourceVersion": meta["resourceVersion"]}}
        await self._gateway.merge_patch(HOSTS, meta["namespace"], meta["name"], body)


def _workers(gateway: Gateway, child: Gateway) -> tuple[Worker, ...]:
    kubelets = Kubelets(child)
    return (Providers(gateway, kubelets), kubelets)


if __name__ == "__main__":
    asyncio.run(serve(_workers))
