"""A server that knows one kind, Lease, and behaves: for what elections do over real sockets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from tests.adapters.kube.scripted import Reply, Request

NAMESPACE, NAME = "5spot-system", "5spot-leader"
COLLECTION = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"


class LeaseServer:
    """One Lease with versions and a watch.

    Attributes:
        lease: the object, None when there is none.
        before: called with each request that is no watch, before it is looked at; answers whether it has replied.
        writes: the bodies of all writes that were done.
    """

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 100
        self.writes: list[dict[str, Any]] = []
        self.before: Callable[[Request, Reply], Awaitable[bool]] | None = None
        self._watchers: set[asyncio.Queue[tuple[str, dict[str, Any]]]] = set()

    @property
    def holder(self) -> str | None:
        """Who holds the Lease."""
        return self.lease["spec"].get("holderIdentity") if self.lease is not None else None

    def write(self, body: dict[str, Any]) -> None:
        """As if somebody had written it."""
        self.version += 1
        kind = "ADDED" if self.lease is None else "MODIFIED"
        metadata = {
            **body.get("metadata", {}),
            "namespace": NAMESPACE,
            "name": NAME,
            "resourceVersion": str(self.version),
        }
        self.lease = {**body, "metadata": metadata}
        for watcher in self._watchers:
            watcher.put_nowait((kind, self.lease))

    def held_by(self, holder: str, **spec: Any) -> None:
        """As if another candidate had taken or renewed it."""
        self.write({"spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, **spec}})

    async def handler(self, request: Request, reply: Reply) -> None:
        if request.query.get("watch"):
            await self._watch(request, reply)
        elif self.before is None or not await self.before(request, reply):
            await self._plain(request, reply)

    async def _plain(self, request: Request, reply: Reply) -> None:
        there = self.lease
        if request.path == COLLECTION and request.method == "GET":
            items = [there] if there is not None else []
            await reply.json({"metadata": {"resourceVersion": str(self.version)}, "items": items})
        elif request.method == "GET":
            await (reply.json(there) if there is not None else reply.status(404, "NotFound"))
        elif request.method == "POST" and there is not None:
            await reply.status(409, "AlreadyExists")
        else:
            body = json.loads(request.body)
            wanted = body["metadata"].get("resourceVersion")
            if request.method == "PUT" and (there is None or wanted != there["metadata"]["resourceVersion"]):
                await reply.status(409, "Conflict")
                return
            self.write(body)
            self.writes.append(body)
            await reply.json(self.lease)

    async def _watch(self, request: Request, reply: Reply) -> None:
        events: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue()
        if self.lease is not None and self.version > int(request.query["resourceVersion"]):
            events.put_nowait(("MODIFIED", self.lease))
        self._watchers.add(events)
        try:
            await reply.begin()
            while True:
                await reply.event(*(await events.get()))
        finally:
            self._watchers.discard(events)
