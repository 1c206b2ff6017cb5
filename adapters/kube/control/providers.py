"""The controller of a provider kind: state what each object says now, and sleep until that changes.

Nothing here knows which kind it is: what a spec means is `core/provider`'s.
"""

import asyncio
import contextlib
import logging
import re
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from typing import Final

import attrs

from fivespot.adapters.clock import SetBack
from fivespot.adapters.kube.control.members import MemberWatches
from fivespot.adapters.kube.control.readings import Ask, Readings, ask_nobody
from fivespot.adapters.kube.control.watches import Stream, Watches
from fivespot.adapters.kube.errors import ApiError, Conflict, LeadershipLost, NotFound, Unavailable
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.recorder import EventRecorder
from fivespot.adapters.kube.resources import Object, Resource
from fivespot.adapters.kube.watching import Key
from fivespot.adapters.kube.workqueue import WorkQueue
from fivespot.adapters.telemetry.health import Check
from fivespot.adapters.telemetry.metrics import Metrics, Sample, State
from fivespot.core.api.codec import encode
from fivespot.core.api.common import Metadata
from fivespot.core.api.kinds import Kind
from fivespot.core.api.providers import ProviderStatus
from fivespot.core.api.scheduled_machine import ScheduleReference
from fivespot.core.errors import InvalidSpec
from fivespot.core.names import PROVIDER_FIELD_MANAGER
from fivespot.core.ports import Clock
from fivespot.core.provider.answer import Logic
from fivespot.core.provider.kinds import ProviderKind
from fivespot.core.provider.publish import Publication, publish, stored_status
from fivespot.core.provider.question import Question

_LOG: Final = logging.getLogger(__name__)
_PATIENCE: Final = 5.0
"""Seconds between looks at whether the first answer about a member is still under way."""


@attrs.frozen(kw_only=True)
class _Known:
    """What is kept of an object: its spec is read once for each generation, and of its metadata a name."""

    metadata: Metadata
    logic: Logic | InvalidSpec
    status: ProviderStatus

    @property
    def references(self) -> tuple[ScheduleReference, ...]:
        """The providers that it is made of."""
        return () if isinstance(self.logic, InvalidSpec) else self.logic.references

    @property
    def question(self) -> Question | None:
        """What it has to ask outside the cluster."""
        return None if isinstance(self.logic, InvalidSpec) else self.logic.question


class ProviderController:
    """Publishes `status` of every object of one provider kind. It reads what they are made of, and never writes spec.

    Args:
        clock_trusted_from: a clock before this instant is wrong.
        ask: for kinds that ask somebody outside the cluster.
        workers: so many statuses are written at once.
    """

    def __init__(
        self,
        gateway: Gateway,
        clock: Clock,
        of: ProviderKind,
        *,
        clock_trusted_from: datetime,
        ask: Ask = ask_nobody,
        workers: int = 8,
        metrics: Metrics | None = None,
    ) -> None:
        kind = of.kind
        self._gateway = gateway
        self._metrics = metrics or Metrics()
        self._clock = clock
        self._asked = SetBack(clock)
        self._kind = kind
        self._logic_of = of.read
        self._trusted_from = clock_trusted_from
        self._workers = workers
        self._queue: WorkQueue[str] = WorkQueue(
            clock, waited=lambda seconds: self._metrics.waited(kind.name, seconds)
        )
        self._known: dict[str, _Known] = {}
        # Writes whose answer was lost, and what stood there before.
        self._unheard: dict[str, tuple[ProviderStatus, Publication]] = {}
        self._stream = Stream(group=kind.group, kind=kind.name, version=kind.version, read=self._read)
        self._watches = Watches(
            gateway,
            clock,
            on_change=self._changed,
            on_state=lambda _stream, _users: None,
            metrics=self._metrics,
        )
        self._members = MemberWatches(
            gateway, clock, on_news=self._enqueue, referenced=self._referenced, metrics=self._metrics
        )
        self._readings = Readings(gateway, clock, ask, on_news=self._enqueue, metrics=self._metrics)
        self._events = EventRecorder(
            gateway,
            clock,
            PROVIDER_FIELD_MANAGER,
            on_dropped=self._metrics.event_dropped,
            turn=self._queue.quiet,
        )
        self._metrics.watch_queue(kind.name, self._queue.__len__)
        name = _metric_name(kind)
        self._transitions = self._metrics.counter(
            f"{name}_transitions", "Answers that changed.", "namespace", "name"
        )
        self._metrics.watch_state(
            State(f"{name}_active", "What it says: 1 is active.", ("namespace", "name"), self._active),
        )

    async def run(self, won: Callable[[], Awaitable[object]]) -> None:
        """Watch at once, and publish from when `won()` returns until `stop` is called, or until cancelled.

        Raises:
            LeadershipLost: nothing may be written any more.
            KindNotServed: the CRD is not installed.
        """
        resource = await self._gateway.resolve(self._stream.group, self._stream.kind, self._stream.version)
        self._watches.want("controller", [self._stream])
        try:
            await won()
            # Whatever was seen meanwhile was somebody else's to publish; now it is ours.
            self._ask_all()
            async with asyncio.TaskGroup() as group:
                telling = group.create_task(self._events.run(), name="events")
                asking = group.create_task(self._readings.run(), name="questions")
                looking = group.create_task(self._look_back(), name="clock")
                workers = [
                    group.create_task(self._work(resource), name=f"{self._kind.name} worker {number}")
                    for number in range(self._workers)
                ]
                await asyncio.wait(workers)
                asking.cancel()
                await self._events.finish()
                telling.cancel()
                looking.cancel()
        finally:
            await self._watches.close()
            await self._members.close()
            await self._readings.close()

    def checks(self) -> list[Check]:
        """What has to be well for this process to be ready."""
        return self._watches.checks(required=[self._stream])

    def _active(self) -> Iterable[Sample]:
        return [
            Sample((known.metadata.namespace, known.metadata.name), known.status.active is True)
            for known in self._known.values()
        ]

    def stop(self) -> None:
        """Take no more work: `run` returns when what is in hand is done."""
        self._queue.close()
        self._events.stop()

    async def _look_back(self) -> None:
        """Ask all of them again when the wall clock has been set back."""
        while True:
            await self._asked.happened()
            _LOG.warning("the clock was set back", extra={"kind": self._kind.name})
            self._ask_all()

    def _ask_all(self) -> None:
        for key in self._known:
            self._queue.add(key, low=True)

    def _enqueue(self, keys: Iterable[str]) -> None:
        for key in keys:
            if key in self._known:
                self._queue.add(key)

    def _referenced(self, namespace: str, reference: ScheduleReference) -> tuple[ScheduleReference, ...]:
        """What another object of this kind is made of; of any other kind nobody is made of anything."""
        found = (
            self._known.get(f"{namespace}/{reference.name}") if reference.kind == self._kind.name else None
        )
        return found.references if found is not None else ()

    def _changed(self, _stream: Stream[_Known], of: Key, old: _Known | None, new: _Known | None) -> None:
        key, references = "/".join(of), new.references if new is not None else ()
        self._members.want(key, of[0], references)
        self._readings.want(key, of[0], new.question if new is not None else None)
        if new is None:
            self._known.pop(key, None)
            self._unheard.pop(key, None)
            self._queue.forget(key)
            # prometheus-client knows no object that has none.
            with contextlib.suppress(KeyError):
                self._transitions.remove(*of)
        else:
            self._known[key] = new
            self._queue.add(key)
        if references != (old.references if old is not None else ()):
            # What stands far above is told by nobody that it has become deeper, or part of a circle.
            self._enqueue(self._members.above(self._stream, *of))

    def _read(self, body: Object, before: _Known | None) -> _Known:
        found = body["metadata"]
        metadata = Metadata(
            name=str(found["name"]),
            namespace=str(found.get("namespace")),
            uid=str(found.get("uid") or ""),
            resource_version=str(found.get("resourceVersion") or ""),
            generation=int(found.get("generation") or 0),
        )
        # The same name may come back as another object with the same generation.
        same = before is not None and (before.metadata.uid, before.metadata.generation) == (
            metadata.uid,
            metadata.generation,
        )
        return _Known(
            metadata=metadata,
            logic=before.logic if before is not None and same else self._logic(body),
            status=stored_status(body.get("status")),
        )

    def _logic(self, body: Object) -> Logic | InvalidSpec:
        spec = body.get("spec")
        try:
            return self._logic_of(spec if isinstance(spec, dict) else {})
        except InvalidSpec as error:
            return error.below("spec")
        except Exception as error:  # noqa: BLE001 - one object's surprise must not keep the others from being read
            _LOG.exception("a spec could not be read", extra={"kind": self._kind.name})
            return InvalidSpec("spec", type(error).__name__, f"it cannot be read: {error}")

    async def _work(self, resource: Resource) -> None:
        while (key := await self._queue.get()) is not None:
            try:
                await self._publish(resource, key)
                self._queue.forget(key)
            except (NotFound, Conflict):
                # Gone, or changed: the watch says so, and the key comes again.
                pass
            except LeadershipLost:
                raise
            except ApiError as error:
                _LOG.warning("%s", error, extra={"kind": self._kind.name, "schedule": key})
                self._queue.retry(key, error.retry_after)
            except Exception:  # noqa: BLE001 - one schedule's surprise must not stop the others
                _LOG.exception("a pass failed", extra={"kind": self._kind.name, "schedule": key})
                self._queue.retry(key)
            finally:
                self._queue.done(key)

    async def _publish(self, resource: Resource, key: str) -> None:
        known = self._known.get(key)
        if known is None:
            return
        if self._members.pending(key):
            # What is on its way wakes it when it is there; what fails on its way does not.
            self._queue.add_at(key, self._clock.monotonic() + _PATIENCE)
            return
        stored, meta = known.status, known.metadata
        if (unheard := self._unheard.get(key)) is not None and unheard[1].status == stored:
            # It was done all the same.
            self._tell(key, meta, *self._unheard.pop(key))
        made = publish(
            known.logic,
            self._members.of(meta.namespace),
            meta.generation,
            stored,
            self._asked.now(),
            reading=self._readings.of(key),
            clock_trusted_from=self._trusted_from,
        )
        if made.status != stored:
            patch = {
                "metadata": {"resourceVersion": meta.resource_version},
                "status": encode(made.status, nulls=True),
            }
            try:
                body = await self._gateway.merge_patch(
                    resource,
                    meta.namespace,
                    meta.name,
                    patch,
                    subresource="status",
                    field_manager=PROVIDER_FIELD_MANAGER,
                )
            except Unavailable as error:
                if error.outcome_unknown:
                    self._unheard[key] = (stored, made)
                raise
            self._unheard.pop(key, None)
            self._watches.feed(self._stream, body)
            self._tell(key, meta, stored, made)
        if made.wake_at is not None:
            self._queue.add_at(key, made.wake_at)

    def _tell(self, key: str, meta: Metadata, stored: ProviderStatus, made: Publication) -> None:
        """What people hear of a status that is written, and of the one before."""
        for event in made.events:
            self._events.record(meta, self._kind.api_version, self._kind.name, event)
        if made.status.active is not stored.active:
            if stored.active is not None and made.status.active is not None:
                self._transitions.labels(meta.namespace, meta.name).inc()
            answer = "active" if made.status.active else "inactive"
            _LOG.info("%s", answer, extra={"kind": self._kind.name, "schedule": key})


def _metric_name(kind: Kind) -> str:
    """`time_based` of TimeBasedSpotSchedule, `capital_markets` of CapitalMarketsSchedule: as finos calls them."""
    words = re.findall("[A-Z][a-z0-9]*", kind.name)
    return "_".join(word.lower() for word in words if word not in ("Spot", "Schedule"))
