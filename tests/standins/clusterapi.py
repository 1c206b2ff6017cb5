"""A stand-in for Cluster API and its providers: Machines get an owned host, a Node, and go in the right order.

It does what the real ones do as far as 5-Spot can see: ownership, provider id, node reference, finalizer, deletion of
infrastructure, then bootstrap, then Node, then the Machine. Its kubelet marks pods Running and lets terminating ones go.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from fivespot.adapters.clock import SystemClock
from fivespot.adapters.kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.reflector import Reflector
from fivespot.adapters.kube.resources import LEASES, NODES, PODS, Object, Resource
from fivespot.adapters.kube.watching import whole

LEASE_NAMESPACE = "kube-node-lease"
HEARTBEAT = 10.0
JOIN = 0.5
FINALIZER = "machine.cluster.x-k8s.io"
MACHINES = Resource("cluster.x-k8s.io", "v1beta2", "machines", "Machine", namespaced=True)
BOOTSTRAPS = Resource(
    "bootstrap.cluster.x-k8s.io", "v1beta1", "k0sworkerconfigs", "K0sWorkerConfig", namespaced=True
)
HOSTS = Resource(
    "infrastructure.cluster.x-k8s.io", "v1beta1", "remotemachines", "RemoteMachine", namespaced=True
)


class Hosts(Protocol):
    """What a provider has that really starts and stops kubelets. Both may be asked again for what is done."""

    async def join(self, name: str, provider_id: str) -> None:
        """Start the host's kubelet; return when its Node is registered."""

    async def leave(self, name: str) -> None:
        """Stop the host's kubelet and its pods; the Node object stays."""


class StandIn:
    """Reconciles Machines through a gateway to the management cluster, and kubelets through one to the child.

    Attributes:
        hold_pods: names of pods that ignore their termination.
    """

    def __init__(self, gateway: Gateway, child: Gateway, hosts: Hosts | None = None) -> None:
        """With `hosts` there are real kubelets, and none is played here."""
        self._gateway = gateway
        self._child = child
        self._hosts = hosts
        self._dirty: asyncio.Queue[tuple[Resource, str, str]] = asyncio.Queue()
        self._nodes: set[str] = set()
        self._joins: dict[str, float] = {}
        self.hold_pods: set[str] = set()

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            for resource in (MACHINES, PODS) if self._hosts is None else (MACHINES,):
                reflector = Reflector(
                    self._gateway_of(resource),
                    resource,
                    clock=SystemClock(),
                    read=whole,
                    on_change=lambda key, _old, new, of=resource: self._mark(of, key, new),
                )
                group.create_task(reflector.run())
            group.create_task(self._work())
            group.create_task(self._beat())

    def _gateway_of(self, resource: Resource) -> Gateway:
        return self._child if resource in (NODES, PODS, LEASES) else self._gateway

    async def _beat(self) -> None:
        """Renew the leases of our Nodes, as kubelets do: else the node controller says that they are gone."""
        while True:
            for name in tuple(self._nodes):
                await self._renew(name)
            await asyncio.sleep(HEARTBEAT)

    async def _renew(self, name: str) -> None:
        spec = {
            "holderIdentity": name,
            "leaseDurationSeconds": 40,
            "renewTime": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}",
        }
        try:
            await self._child.merge_patch(LEASES, LEASE_NAMESPACE, name, {"spec": spec})
        except NotFound:
            with contextlib.suppress(ApiError):
                await self._child.create(LEASES, LEASE_NAMESPACE, {"metadata": {"name": name}, "spec": spec})
        except ApiError:
            return

    def _mark(self, resource: Resource, key: tuple[str, str], new: Object | None) -> None:
        if new is not None:
            self._dirty.put_nowait((resource, *key))

    async def _work(self) -> None:
        while True:
            resource, namespace, name = await self._dirty.get()
            try:
                body = await self._gateway_of(resource).get(resource, namespace, name)
                await (self._machine(body) if resource is MACHINES else self._pod(body))
            except NotFound:
                continue
            except (Conflict, AlreadyExists, ApiError):
                await asyncio.sleep(0.05)  # a busy server, or one that is going down: try again shortly
                self._dirty.put_nowait((resource, namespace, name))

    async def _machine(self, machine: Object) -> None:
        meta = machine["metadata"]
        namespace, name = meta["namespace"], meta["name"]
        if meta.get("deletionTimestamp"):
            await self._remove(machine)
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
        for resource in (BOOTSTRAPS, HOSTS):
            await self._own(resource, namespace, name, owner)
        provider_id = f"stand-in://{namespace}/{name}"
        if machine["spec"].get("providerID") != provider_id:
            await self._patch(MACHINES, namespace, name, {"spec": {"providerID": provider_id}})
        if (left := self._until_joined(meta["uid"])) > 0:
            asyncio.get_running_loop().call_later(left, self._dirty.put_nowait, (MACHINES, namespace, name))
            return
        await self._node(name, provider_id)
        if not machine.get("status", {}).get("nodeRef"):
            status = {"phase": "Running", "nodeRef": {"name": name}}
            await self._gateway.merge_patch(
                MACHINES, namespace, name, {"status": status}, subresource="status"
            )

    def _until_joined(self, uid: str) -> float:
        """Seconds until a host's kubelet is there: no host boots in no time, and what it does is seen in order."""
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

    async def _node(self, name: str, provider_id: str) -> None:
        if self._hosts is not None:
            await self._hosts.join(name, provider_id)
            return
        self._nodes.add(name)
        with contextlib.suppress(AlreadyExists):
            await self._child.create(
                NODES, None, {"metadata": {"name": name}, "spec": {"providerID": provider_id}}
            )
            status = {
                "nodeInfo": _node_info(name),
                "conditions": [
                    {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}
                ],
            }
            await self._child.merge_patch(NODES, None, name, {"status": status}, subresource="status")

    async def _remove(self, machine: Object) -> None:
        """Infrastructure, then bootstrap, then Node, then the Machine, one step a pass as the real one."""
        meta = machine["metadata"]
        namespace, name = meta["namespace"], meta["name"]
        if self._hosts is not None:
            await self._hosts.leave(name)
        for resource in (HOSTS, BOOTSTRAPS):
            with contextlib.suppress(NotFound):
                await self._gateway.delete(resource, namespace, name)
                await self._patch(resource, namespace, name, {"metadata": {"finalizers": None}})
        self._nodes.discard(name)
        with contextlib.suppress(NotFound):
            await self._child.delete(NODES, None, name)
        await self._patch(MACHINES, namespace, name, {"metadata": {"finalizers": None}})

    async def _pod(self, pod: Object) -> None:
        meta = pod["metadata"]
        if not pod["spec"].get("nodeName"):
            return
        if meta.get("deletionTimestamp"):
            if meta["name"] not in self.hold_pods:
                with contextlib.suppress(NotFound):
                    await self._child.delete(PODS, meta["namespace"], meta["name"], grace_seconds=0)
        elif pod.get("status", {}).get("phase") == "Pending":
            status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            await self._child.merge_patch(
                PODS, meta["namespace"], meta["name"], {"status": status}, subresource="status"
            )

    async def _patch(
        self, resource: Resource, namespace: str | None, name: str, body: dict[str, Any]
    ) -> None:
        await self._gateway.merge_patch(resource, namespace, name, body)


def _node_info(name: str) -> dict[str, str]:
    empty = (
        "architecture",
        "bootID",
        "containerRuntimeVersion",
        "kernelVersion",
        "kubeProxyVersion",
        "kubeletVersion",
        "operatingSystem",
        "osImage",
    )
    return dict.fromkeys(empty, "") | {"machineID": f"machine-{name}", "systemUUID": f"system-{name}"}


@contextlib.asynccontextmanager
async def running(management: Path, child: Path, hosts: Hosts | None = None) -> AsyncIterator[StandIn]:
    """A stand-in at work, with a kubeconfig for either cluster."""
    async with (
        await Gateway.connect(kubeconfig=management) as gateway,
        await Gateway.connect(kubeconfig=child) as nodes,
    ):
        stand_in = StandIn(gateway, nodes, hosts)
        task = asyncio.ensure_future(stand_in.run())
        try:
            yield stand_in
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _main(management: str, child: str) -> None:
    async with running(Path(management), Path(child)):
        await asyncio.Event().wait()


if __name__ == "__main__":
    import sys

    asyncio.run(_main(*sys.argv[1:]))
