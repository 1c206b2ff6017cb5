"""A stand-in for kubelets: Nodes that stay Ready while their host is on, and pods that run and end."""

import asyncio
import contextlib
from datetime import UTC, datetime
from typing import Protocol

from fivespot.adapters.kube.errors import AlreadyExists, ApiError, NotFound
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.resources import LEASES, NODES, PODS, Object, Resource
from tests.standins.working import Worker

LEASE_NAMESPACE = "kube-node-lease"
HEARTBEAT = 10.0


class Hosts(Protocol):
    """What a provider has power over. Both may be asked again for what is done."""

    async def switch_on(self, name: str, provider_id: str) -> None:
        """A host's kubelet starts; return when its Node is registered."""

    async def switch_off(self, name: str) -> None:
        """It ends, and the host's pods with it; the Node object stays."""


class Kubelets(Worker):
    """The kubelets of one child cluster. They mark pods Running, and let terminating ones go."""

    def __init__(self, child: Gateway) -> None:
        super().__init__((child, PODS))
        self._child = child
        self._nodes: set[str] = set()

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(super().run())
            group.create_task(self._beat())

    async def switch_on(self, name: str, provider_id: str) -> None:
        """A host's kubelet starts: its Node is there and Ready."""
        self._nodes.add(name)
        with contextlib.suppress(AlreadyExists):
            await self._child.create(
                NODES, None, {"metadata": {"name": name}, "spec": {"providerID": provider_id}}
            )
            await self._say_ready(name, "True")

    async def switch_off(self, name: str) -> None:
        """It is no more. Its Node stays, as it does until somebody deletes it; that it is gone is said at once."""
        if name in self._nodes:
            self._nodes.discard(name)
            with contextlib.suppress(NotFound):
                await self._say_ready(name, "Unknown")

    async def _say_ready(self, name: str, ready: str) -> None:
        condition = {"type": "Ready", "status": ready, "reason": "StandIn", "message": ""}
        status = {"nodeInfo": _node_info(name), "conditions": [condition]}
        await self._child.merge_patch(NODES, None, name, {"status": status}, subresource="status")

    async def look_at(self, resource: Resource, body: Object) -> None:
        """A pod of a Node: run it, or let it end."""
        del resource
        meta = body["metadata"]
        if not body["spec"].get("nodeName"):
            return
        if meta.get("deletionTimestamp"):
            with contextlib.suppress(NotFound):
                await self._child.delete(PODS, meta["namespace"], meta["name"], grace_seconds=0)
        elif body.get("status", {}).get("phase") == "Pending":
            status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            await self._child.merge_patch(
                PODS, meta["namespace"], meta["name"], {"status": status}, subresource="status"
            )

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
