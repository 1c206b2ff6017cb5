"""A stand-in for Cluster API and its providers: Machines get an owned host, a Node, and go in the right order.

It does what the real ones do as far as 5-Spot can see: ownership, provider id, node reference, finalizer, deletion of
infrastructure, then bootstrap, then Node, then the Machine. `tests.clusterapi` has the real one, for which
`tests.standins.providers` stands in for the providers alone.
"""

import asyncio
import contextlib
from typing import Any

from fivespot.adapters.kube.errors import NotFound
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.resources import NODES, Object, Resource
from tests.standins.kubelets import Hosts, Kubelets
from tests.standins.providers import BOOTSTRAPS, HOSTS, JOIN, provider_id
from tests.standins.working import Worker, serve

FINALIZER = "machine.cluster.x-k8s.io"
MACHINES = Resource("cluster.x-k8s.io", "v1beta2", "machines", "Machine", namespaced=True)


class StandIn(Worker):
    """Reconciles Machines through a gateway to the management cluster; their hosts' kubelets are in the child."""

    def __init__(self, gateway: Gateway, child: Gateway, hosts: Hosts) -> None:
        super().__init__((gateway, MACHINES))
        self._gateway = gateway
        self._child = child
        self._hosts = hosts
        self._joins: dict[str, float] = {}

    async def look_at(self, resource: Resource, body: Object) -> None:
        """One step of a Machine."""
        del resource
        meta = body["metadata"]
        namespace, name = meta["namespace"], meta["name"]
        if meta.get("deletionTimestamp"):
            await self._remove(body)
            return
        if FINALIZER not in meta.get("finalizers", []):
            await self._patch(MACHINES, namespace, name, {"metadata": {"finalizers": [FINALIZER]}})
        owner = {
            "apiVersion": MACHINES.api_version,
            "kind": "Machine",
            "name": name,
            "uid": meta["uid"],
            "controller": True,
        }
        for dependent in (BOOTSTRAPS, HOSTS):
            await self._own(dependent, namespace, name, owner)
        wanted = provider_id(namespace, name)
        if body["spec"].get("providerID") != wanted:
            await self._patch(MACHINES, namespace, name, {"spec": {"providerID": wanted}})
        if (left := self._until_joined(meta["uid"])) > 0:
            self.again(MACHINES, namespace, name, left)
            return
        await self._hosts.switch_on(name, wanted)
        if not body.get("status", {}).get("nodeRef"):
            status = {"phase": "Running", "nodeRef": {"name": name}}
            await self._gateway.merge_patch(
                MACHINES, namespace, name, {"status": status}, subresource="status"
            )

    def _until_joined(self, uid: str) -> float:
        """Seconds until a host's kubelet is there."""
        now = asyncio.get_running_loop().time()
        return self._joins.setdefault(uid, now + JOIN) - now

    async def _own(self, resource: Resource, namespace: str, name: str, owner: dict[str, Any]) -> None:
        body = await self._gateway.get(resource, namespace, name)
        owners = body["metadata"].get("ownerReferences", [])
        if not any(entry["kind"] == "Machine" for entry in owners):
            patch = {
                "ownerReferences": [*owners, owner],
                "resourceVersion": body["metadata"]["resourceVersion"],
                "finalizers": [FINALIZER],
            }
            await self._patch(resource, namespace, name, {"metadata": patch})

    async def _remove(self, machine: Object) -> None:
        """Infrastructure, then bootstrap, then Node, then the Machine, one step a pass as the real one."""
        meta = machine["metadata"]
        namespace, name = meta["namespace"], meta["name"]
        await self._hosts.switch_off(name)
        for resource in (HOSTS, BOOTSTRAPS):
            with contextlib.suppress(NotFound):
                await self._gateway.delete(resource, namespace, name)
                await self._patch(resource, namespace, name, {"metadata": {"finalizers": None}})
        with contextlib.suppress(NotFound):
            await self._child.delete(NODES, None, name)
        await self._patch(MACHINES, namespace, name, {"metadata": {"finalizers": None}})

    async def _patch(self, resource: Resource, namespace: str, name: str, body: dict[str, Any]) -> None:
        await self._gateway.merge_patch(resource, namespace, name, body)


def _workers(gateway: Gateway, child: Gateway) -> tuple[Worker, ...]:
    kubelets = Kubelets(child)
    return (StandIn(gateway, child, kubelets), kubelets)


if __name__ == "__main__":
    asyncio.run(serve(_workers))
