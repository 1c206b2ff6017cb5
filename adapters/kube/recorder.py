"""Kubernetes Events about our objects: `correlating` with a queue and a server.

Telling never blocks and never fails what it tells of: the queue is bounded, and what does not fit, or is refused, is
logged and gone.
"""

import asyncio
import logging
import secrets
import socket
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final

import attrs

from fivespot.adapters.kube.correlating import Correlator, Create, Extend, Occurrence
from fivespot.adapters.kube.errors import ApiError, LeadershipLost, NotFound
from fivespot.adapters.kube.operations import Operations
from fivespot.adapters.kube.resources import EVENTS, Object
from fivespot.core.api.common import Metadata
from fivespot.core.decision.actions import Event
from fivespot.core.ports import Clock

_LOG: Final = logging.getLogger(__name__)
_WAITING: Final = 20_000
"""So many Events may wait, a few KB each at most: those of a whole fleet may come within one second."""
FINISH_SECONDS: Final = 2.0
"""For so long Events are published after the process was asked to end; less than whoever hands over has for all of it."""
# Bounds of the API server (pkg/apis/core/validation/events.go), in bytes.
_NOTE_BYTES: Final = 1024
_INSTANCE_BYTES: Final = 128
# Room for our own part of a name of at most 253 characters.
_NAME_LENGTH: Final = 220


@attrs.frozen(kw_only=True)
class _Write:
    occurrence: Occurrence
    what: Create | Extend
    about: Metadata
    api_version: str
    kind: str
    at: datetime


class EventRecorder:
    """Publishes Events from a bounded queue.

    Args:
        gateway: where to write them.
        clock: `now` for what they say, `monotonic` for how often.
        controller: who reports, as a field manager is called.
        on_dropped: called when an event is one too many.
        turn: awaited before each is published: what it tells of may go on, and comes first.

    Attributes:
        dropped: how many did not fit into the queue, were too many about one object, or waited still at the end.
    """

    def __init__(
        self,
        gateway: Operations,
        clock: Clock,
        controller: str,
        *,
        on_dropped: Callable[[], None] | None = None,
        turn: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        self._gateway = gateway
        self._clock = clock
        self._controller = controller
        self._queue: asyncio.Queue[_Write] = asyncio.Queue(_WAITING)
        self._turn = turn
        self._correlator = Correlator()
        self._on_dropped = on_dropped or (lambda: None)
        self._ends: float | None = None
        self.dropped = 0

    def record(self, about: Metadata, api_version: str, kind: str, event: Event) -> None:
        """Queue an event about an object; its uid makes `kubectl describe` show it."""
        occurrence = Occurrence(
            uid=about.uid,
            type=event.severity.value,
            reason=event.reason,
            note=_cut(event.message, _NOTE_BYTES),
        )
        name = f"{about.name[:_NAME_LENGTH]}.{secrets.token_hex(8)}"
        what = self._correlator.occurred(occurrence, name, self._clock.monotonic())
        if what is None:
            self._drop()
            return
        write = _Write(
            occurrence=occurrence,
            what=what,
            about=about,
            api_version=api_version,
            kind=kind,
            at=self._clock.now(),
        )
        try:
            self._queue.put_nowait(write)
        except asyncio.QueueFull:
            self._drop()
            self._correlator.lost(occurrence)

    def _drop(self) -> None:
        self.dropped += 1
        self._on_dropped()

    def stop(self) -> None:
        """What waits has FINISH_SECONDS from now on."""
        self._ends = asyncio.get_running_loop().time() + FINISH_SECONDS

    async def finish(self) -> None:
        """Return once nothing is waiting, while `run` is at work, or when the time after `stop` is up: the rest is dropped.

        Whoever hands over must not keep the next leader waiting for what is told of work that is done.
        """
        try:
            async with asyncio.timeout_at(self._ends):
                await self._queue.join()
        except TimeoutError:
            waiting = self._queue.qsize()
            _LOG.warning("events that are left untold: %d", waiting)
            for _ in range(waiting):
                self._queue.get_nowait()
                self._drop()

    async def run(self) -> None:
        """Publish for ever.

        Raises:
            LeadershipLost: nothing may be written any more.
        """
        while True:
            write = await self._queue.get()
            if self._turn is not None:
                await self._turn()
            try:
                await self._publish(write)
            except LeadershipLost:
                raise
            except ApiError as error:
                _LOG.warning("an event could not be published: %s", error)
                self._correlator.lost(write.occurrence)
            except Exception:  # noqa: BLE001 - an event is worth less than what it tells of
                _LOG.exception("an event could not be published")
                self._correlator.lost(write.occurrence)
            self._queue.task_done()

    async def _publish(self, write: _Write) -> None:
        body = self._body(write)
        namespace = body["metadata"]["namespace"]
        series = {"count": write.what.count, "lastObservedTime": _micro(write.at)}
        if isinstance(write.what, Extend):
            try:
                await self._gateway.merge_patch(
                    EVENTS, namespace, write.what.name, {"series": series}, field_manager=self._controller
                )
            except NotFound:
                # Events are kept for an hour, and anybody may delete them.
                pass
            else:
                return
        # A series begins with two.
        if write.what.count > 1:
            body["series"] = series
        await self._gateway.create(EVENTS, namespace, body, field_manager=self._controller)

    def _body(self, write: _Write) -> Object:
        said, about = write.occurrence, write.about
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            # The Events of a cluster-wide object are in this namespace (client-go).
            "metadata": {"name": write.what.name, "namespace": about.namespace or "default"},
            "eventTime": _micro(write.at),
            "reportingController": self._controller,
            "reportingInstance": _cut(socket.gethostname(), _INSTANCE_BYTES),
            "action": said.reason,
            "reason": said.reason,
            "type": said.type,
            "note": said.note,
            "regarding": {
                "apiVersion": write.api_version,
                "kind": write.kind,
                "namespace": about.namespace,
                "name": about.name,
                "uid": about.uid,
            },
        }


def _micro(at: datetime) -> str:
    """A MicroTime."""
    return f"{at:%Y-%m-%dT%H:%M:%S.%f}Z"


def _cut(text: str, size: int) -> str:
    """At most `size` bytes of UTF-8, whole characters."""
    return text.encode()[:size].decode(errors="ignore")
