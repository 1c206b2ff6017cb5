"""Kubernetes Events about our objects. Never blocks and never fails what it tells of."""

import asyncio
import logging
import socket
from typing import Final

from fivespot.adapters.kube.errors import ApiError, LeadershipLost
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.resources import EVENTS
from fivespot.core.api.common import Metadata
from fivespot.core.decision.actions import Event
from fivespot.core.names import FIELD_MANAGER
from fivespot.core.ports import Clock

_LOG: Final = logging.getLogger(__name__)
_WAITING: Final = 1000
_NOTE_LENGTH: Final = 1024


class EventRecorder:
    """Publishes events from a bounded queue; when it is full, the newest are dropped and counted."""

    def __init__(self, gateway: Gateway, clock: Clock) -> None:
        self._gateway = gateway
        self._clock = clock
        self._queue: asyncio.Queue[dict[str, object]] = asyncio.Queue(_WAITING)
        self._count = 0
        self.dropped = 0

    def record(self, about: Metadata, api_version: str, kind: str, event: Event) -> None:
        """Queue an event about an object; its uid makes `kubectl describe` show it."""
        self._count += 1
        now = self._clock.now()
        body: dict[str, object] = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {
                "name": f"{about.name}.{int(now.timestamp() * 1_000_000):x}{self._count:x}",
                "namespace": about.namespace,
            },
            "eventTime": f"{now:%Y-%m-%dT%H:%M:%S.%f}Z",
            "reportingController": FIELD_MANAGER,
            "reportingInstance": socket.gethostname(),
            "action": event.reason,
            "reason": event.reason,
            "type": event.severity.value,
            "note": event.message[:_NOTE_LENGTH],
            "regarding": {
                "apiVersion": api_version,
                "kind": kind,
                "namespace": about.namespace,
                "name": about.name,
                "uid": about.uid,
            },
        }
        try:
            self._queue.put_nowait(body)
        except asyncio.QueueFull:
            self.dropped += 1

    async def published(self) -> None:
        """Return once nothing is waiting, while `run` is at work."""
        await self._queue.join()

    async def run(self) -> None:
        """Publish for ever."""
        while True:
            body = await self._queue.get()
            metadata = body["metadata"]
            namespace = metadata["namespace"] if isinstance(metadata, dict) else None
            try:
                await self._gateway.create(EVENTS, namespace, body)
            except LeadershipLost:
                raise
            except ApiError as error:
                _LOG.warning("an event could not be published: %s", error)
            except Exception:  # noqa: BLE001 - an event is worth less than what it tells of
                _LOG.exception("an event could not be published")
            self._queue.task_done()
