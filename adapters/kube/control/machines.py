"""The machine controller: watch, observe, decide, write the status, act. One machine at a time per key, many keys at once.

Deciding is the core's; this is the loop around it.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import attrs

from fivespot.adapters.kube.control.children import ChildKey, Children, child_key
from fivespot.adapters.kube.control.observe import Memory, Observer
from fivespot.adapters.kube.control.perform import Outcome, Performer
from fivespot.adapters.kube.control.slots import Slots
from fivespot.adapters.kube.control.streams import (
    CAPI_MACHINES,
    CLUSTERS,
    MACHINES,
    NODES,
    machines_stream,
    provider_stream,
    streams_of,
)
from fivespot.adapters.kube.control.watches import Stream, Watches
from fivespot.adapters.kube.errors import ApiError, Conflict, LeadershipLost, NotFound
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.index import ReverseIndex
from fivespot.adapters.kube.recorder import EventRecorder
from fivespot.adapters.kube.resources import Resource
from fivespot.adapters.kube.watching import Key
from fivespot.adapters.kube.workqueue import WorkQueue
from fivespot.adapters.telemetry.health import Check
from fivespot.adapters.telemetry.metrics import ERROR, OK, OUTDATED, Metrics, Sample, State
from fivespot.core.api.allowed import DEFAULT_GROUPS, AllowedGroups
from fivespot.core.api.codec import encode
from fivespot.core.api.kinds import SCHEDULED_MACHINE
from fivespot.core.decision.actions import Decision
from fivespot.core.decision.caps import Caps, Stage, begins
from fivespot.core.decision.decide import decide
from fivespot.core.decision.knowledge import Known, Present, Unknown, value_of
from fivespot.core.decision.observation import Failure, MachineView, Observation, Slot
from fivespot.core.decision.phase import Phase
from fivespot.core.decision.policy import DEFAULT_POLICY, Policy
from fivespot.core.decision.tally import tally
from fivespot.core.names import FIELD_MANAGER
from fivespot.core.ports import Clock

_LOG: Final = logging.getLogger(__name__)
_QUEUE: Final = "machines"
_CONFIRMATIONS: Final = 4
_PATIENCE: Final = 5.0
"""Seconds that a first answer is waited for before a machine is decided without it."""
_BLOCKED_AT_LEAST: Final = 0.5
_BLOCKED_AT_MOST: Final = 10.0
"""Seconds between tries of an eviction that a budget refuses; budgets give no sign of their own."""


class MachineController:
    """Drives every ScheduledMachine of a management cluster."""

    def __init__(
        self,
        gateway: Gateway,
        clock: Clock,
        *,
        policy: Policy = DEFAULT_POLICY,
        allowed: AllowedGroups = DEFAULT_GROUPS,
        allow_local_child: bool = False,
        workers: int = 8,
        caps: Mapping[Stage, Caps] | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self._gateway = gateway
        self._metrics = metrics or Metrics()
        self._clock = clock
        self._policy = policy
        self._machines = machines_stream(allowed)
        self._workers = workers
        self._queue: WorkQueue[str] = WorkQueue(
            clock, waited=lambda seconds: self._metrics.waited(_QUEUE, seconds)
        )
        self._views: dict[str, MachineView] = {}
        self._memory: dict[str, Memory] = {}
        self._by_provider: ReverseIndex[str, tuple[Stream[Any], str, str]] = ReverseIndex()
        self._by_cluster: ReverseIndex[str, tuple[str, str]] = ReverseIndex()
        self._by_node: ReverseIndex[str, tuple[ChildKey, str]] = ReverseIndex()
        self._watches = Watches(
            gateway,
            clock,
            on_change=self._changed,
            on_state=lambda _stream, users: self._enqueue(users),
            metrics=self._metrics,
        )
        self._children = Children(
            gateway,
            clock,
            allow_local=allow_local_child,
            on_change=self._child_changed,
            on_state=lambda _key, users: self._enqueue(users),
            metrics=self._metrics,
        )
        self._slots = Slots(caps or {}, policy, clock, lambda key: self._enqueue((key,)))
        self._observer = Observer(gateway, self._watches, self._children, clock)
        self._events = EventRecorder(gateway, clock, FIELD_MANAGER, on_dropped=self._metrics.event_dropped)
        self._metrics.watch_queue(_QUEUE, self._queue.__len__)
        self._metrics.watch_state(
            State("machines_by_phase", "Machines in each phase.", ("phase",), self._by_phase),
            State("machines_active", "Machines that are ready.", (), self._active),
            State("held_verdicts", "Machines whose provider cannot be read now.", (), self._held),
        )

    async def run(self, won: Callable[[], Awaitable[object]]) -> None:
        """Watch at once, and work from when `won()` returns until `stop` is called, or until cancelled.

        Raises:
            LeadershipLost: nothing may be written any more.
            KindNotServed: the ScheduledMachine CRD is not installed.
        """
        resource = await self._gateway.resolve(MACHINES.group, MACHINES.kind, MACHINES.version)
        performer = Performer(self._gateway, self._watches, self._children, resource, self._metrics)
        self._watches.want("controller", [self._machines])
        try:
            await won()
            # Whatever was seen meanwhile was somebody else's to act on; now it is ours. What changes now goes first.
            for key in self._views:
                self._queue.add(key, low=True)
            async with asyncio.TaskGroup() as group:
                telling = group.create_task(self._events.run(), name="events")
                dealing = group.create_task(self._slots.run(), name="slots")
                workers = [
                    group.create_task(self._work(resource, performer), name=f"worker {number}")
                    for number in range(self._workers)
                ]
                await asyncio.wait(workers)
                await self._events.finish()
                telling.cancel()
                dealing.cancel()
        finally:
            await self._watches.close()
            await self._children.close()

    def stop(self) -> None:
        """Take no more work: `run` returns when what is in hand is done."""
        self._queue.close()
        self._events.stop()

    def checks(self) -> list[Check]:
        """What has to be well for this process to be ready: a tenant's child cluster does not count."""
        return self._watches.checks(required=(MACHINES, CLUSTERS, CAPI_MACHINES))

    # What is shown

    def _by_phase(self) -> Iterable[Sample]:
        counted = Counter(view.status.phase for view in self._views.values())
        return [Sample((phase.value,), counted[phase.value]) for phase in Phase]

    def _active(self) -> Iterable[Sample]:
        return [Sample((), sum(view.status.ready is True for view in self._views.values()))]

    def _held(self) -> Iterable[Sample]:
        answers = (view.status.spot_schedule for view in self._views.values())
        return [Sample((), sum(answer is not None and answer.resolved is False for answer in answers))]

    # What happens outside

    def _enqueue(self, keys: Iterable[str]) -> None:
        for key in keys:
            if key in self._views:
                self._queue.add(key)

    def _changed(self, stream: Stream[Any], of: Key, old: Known[Any] | None, new: Known[Any] | None) -> None:
        namespace, name = of
        if stream == MACHINES:
            self._machine_changed(f"{namespace}/{name}", new)
        elif stream.label is not None:
            # A label that was changed concerns two machines, and one that cannot be read its namesake.
            views = [found.value for found in (old, new) if isinstance(found, Present)]
            names = {view.metadata.labels.get(stream.label) for view in views} | {name}
            keys = {f"{namespace}/{named}" for named in names if named}
            for key in keys & self._views.keys() if stream == CAPI_MACHINES else ():
                self._index_node(key, self._views[key])
            self._enqueue(keys)
        elif stream == CLUSTERS:
            self._enqueue(self._by_cluster.of((namespace, name)))
        else:
            self._enqueue(self._by_provider.of((stream, namespace, name)))

    def _machine_changed(self, key: str, new: Known[MachineView] | None) -> None:
        if new is None:
            self._forget(key)
            return
        view, before = value_of(new), self._views.get(key)
        if view is None:
            self._views.pop(key, None)
            return
        if before is not None and before.metadata.uid != view.metadata.uid:
            # What was remembered is about another object of that name.
            self._memory.pop(key, None)
        self._views[key] = view
        self._slots.seen(view)
        self._index(key, view)
        # What was reported on before this process saw it is only looked at again: a start must not hold up a change.
        self._queue.add(key, low=before is None and view.status.phase is not None)

    def _index(self, key: str, view: MachineView) -> None:
        """The reverse indexes, and the streams that this machine needs."""
        stream, schedule = provider_stream(view), view.intent.schedule
        namespace = view.metadata.namespace
        provider = [(stream, namespace, schedule.name)] if stream is not None and schedule is not None else []
        self._by_provider.put(key, provider)
        self._by_cluster.put(key, [(namespace, view.intent.cluster_name)])
        self._index_node(key, view)
        self._watches.want(key, streams_of(view))
        self._children.want(key, child_key(view) if view.intent.cluster_name else None)

    def _index_node(self, key: str, view: MachineView) -> None:
        """The Nodes that this machine has, had, or is about to have: by name, and by provider id."""
        status = view.status
        reflector = self._watches.reflector(CAPI_MACHINES)
        found = reflector.get(view.metadata.namespace, view.metadata.name) if reflector is not None else None
        capi = value_of(found)
        tokens = {
            status.node_ref.name if status.node_ref else "",
            status.last_node.name if status.last_node else "",
            status.provider_id or "",
            status.reclaim.node.name if status.reclaim and status.reclaim.node else "",
            capi.provider_id if capi is not None else "",
            capi.node_name if capi is not None else "",
        }
        child = child_key(view)
        self._by_node.put(key, [(child, token) for token in tokens if token])

    def _forget(self, key: str) -> None:
        self._views.pop(key, None)
        self._memory.pop(key, None)
        self._slots.settled(key, None)
        for index in (self._by_provider, self._by_cluster, self._by_node):
            index.put(key, ())
        self._watches.want(key, ())
        self._children.want(key, None)
        self._queue.forget(key)

    def _child_changed(
        self, child: ChildKey, stream: Stream[Any], of: Key, old: Known[Any] | None, new: Known[Any] | None
    ) -> None:
        """A Node or a pod: whoever has, or had, a Node of that name or provider id wants to know."""
        if stream != NODES:
            # The pods of one Node, which the stream's field selector names.
            names = {(stream.fields or "").rpartition("=")[2]}
        else:
            views = [found.value for found in (old, new) if isinstance(found, Present)]
            names = {of[1], *(view.provider_id for view in views)}
        for name in names - {""}:
            self._enqueue(self._by_node.of((child, name)))

    # The loop

    async def _work(self, resource: Resource, performer: Performer) -> None:
        while (key := await self._queue.get()) is not None:
            begun, result = self._clock.monotonic(), ERROR
            try:
                result = await self._reconcile(resource, performer, key)
            except LeadershipLost:
                raise
            except ApiError as error:
                self._metrics.failed(type(error).__name__)
                _LOG.warning("%s", error, extra={"machine": key})
                self._queue.retry(key, error.retry_after)
            except Exception as error:  # noqa: BLE001 - one machine's surprise must not stop the others
                self._metrics.failed(type(error).__name__)
                _LOG.exception("a pass failed", extra={"machine": key})
                self._queue.retry(key)
            finally:
                self._queue.done(key)
                if (view := self._views.get(key)) is not None:
                    self._metrics.reconciled(view.status.phase, result, self._clock.monotonic() - begun)

    async def _reconcile(self, resource: Resource, performer: Performer, key: str) -> str:
        """One pass; how it ended, in the words of the metrics."""
        view = self._views.get(key)
        if view is None:
            self._queue.forget(key)
            return OK
        memory = self._memory.setdefault(key, Memory())
        if not self._observer.pending(view):
            memory.waiting_since = None
        elif (left := _PATIENCE - memory.waited(self._clock.monotonic())) > 0:
            # Whatever is on its way wakes this machine when it is there.
            self._queue.add_at(key, self._clock.monotonic() + left)
            return OUTDATED
        decided = await self._decide(view, memory)
        if decided is None:
            # Its slot is being decided on, which wakes it.
            return OUTDATED
        decision, now, unread = decided
        if decision.status != view.status and not await self._write(resource, view, decision, memory):
            return OUTDATED
        outcome = await performer.perform(view, decision.groups)
        outcome.outdated = outcome.outdated or unread
        self._remember(key, memory, outcome, now)
        if decision.wake_at is not None:
            self._queue.add_at(key, decision.wake_at)
        if outcome.failed is not None:
            self._metrics.failed(outcome.failed.reason)
            return ERROR
        return OUTDATED if outcome.outdated else OK

    async def _decide(self, view: MachineView, memory: Memory) -> tuple[Decision, datetime, bool] | None:
        """The decision, its instant, and whether something could not be read live: no stream tells when it can be.

        None when it would begin what a cap may forbid, and nobody knows yet.
        """
        obs, unread = self._observer.observe(view, memory), False
        for _ in range(_CONFIRMATIONS):
            now = self._clock.now()
            decision = decide(obs, now, self._policy)
            if not decision.confirm:
                capped = self._capped(view, obs, decision, now)
                return None if capped is None else (capped, now, unread)
            obs = await self._observer.confirm(obs, decision.confirm)
            unread = unread or any(isinstance(getattr(obs, part.value), Unknown) for part in decision.confirm)
        message = (
            f"decisions about {view.metadata.namespace}/{view.metadata.name} ask for live reads without end"
        )
        raise RuntimeError(message)

    def _capped(
        self, view: MachineView, obs: Observation, decision: Decision, now: datetime
    ) -> Decision | None:
        """The decision, made anew without a slot if there is none; None when that is not known yet."""
        stage = begins(view.status, decision)
        if stage is None:
            self._slots.settled(f"{view.metadata.namespace}/{view.metadata.name}", decision.status)
            return decision
        slot = self._slots.ask(stage, view)
        if slot is Slot.WAITING:
            return decide(attrs.evolve(obs, slot=slot), now, self._policy)
        return decision if slot is Slot.GRANTED else None

    async def _write(self, resource: Resource, view: MachineView, decision: Decision, memory: Memory) -> bool:
        """Write the status, intent first; False when somebody else was faster and the key is decided again."""
        meta = view.metadata
        patch: Mapping[str, Any] = {
            "metadata": {"resourceVersion": meta.resource_version},
            "status": encode(decision.status, nulls=True),
        }
        try:
            body = await self._gateway.merge_patch(
                resource, meta.namespace, meta.name, patch, subresource="status", field_manager=FIELD_MANAGER
            )
        except Conflict:
            # Whatever the other one wrote is decided on at once: the watch may take its time to tell.
            self._queue.retry(f"{meta.namespace}/{meta.name}")
            self._watches.feed(MACHINES, await self._gateway.get(resource, meta.namespace, meta.name))
            return False
        except NotFound:
            return False
        memory.status_written_at = self._clock.now()
        self._watches.feed(MACHINES, body)
        kind = view.intent.schedule.kind if view.intent.schedule is not None else ""
        counted = tally(view.status, decision.status, decision.events)
        self._metrics.told(meta.namespace, meta.name, kind, counted)
        answer = decision.status.spot_schedule
        if answer is not None:
            self._metrics.resolved(meta.namespace, kind, None if answer.resolved else answer.reason)
        for event in decision.events:
            self._events.record(meta, SCHEDULED_MACHINE.api_version, SCHEDULED_MACHINE.name, event)
        before, after = view.status.phase, decision.status.phase
        if before != after:
            _LOG.info(
                "%s -> %s: %s",
                before,
                after,
                decision.status.message,
                extra={
                    "machine": f"{meta.namespace}/{meta.name}",
                    "phase": after,
                    "decided_by": decision.status.decided_by,
                },
            )
        return True

    def _remember(self, key: str, memory: Memory, outcome: Outcome, now: datetime) -> None:
        failed, before = outcome.failed, memory.failure
        blocked = tuple(sorted(outcome.blocked, key=lambda entry: entry.uid))
        changed, memory.blocked = blocked != memory.blocked, blocked
        memory.evicted |= outcome.evicted
        memory.tries = memory.tries + 1 if blocked else 0
        if blocked:
            # Sooner than a failure is tried again: what fails for one pod must not keep the others waiting.
            wait = min(_BLOCKED_AT_MOST, _BLOCKED_AT_LEAST * 2 ** min(memory.tries - 1, 10))
            self._queue.add_at(key, self._clock.monotonic() + wait)
        if failed is not None:
            since = before.since if before is not None and before.step == failed.step else now
            memory.failure = Failure(
                step=failed.step, reason=failed.reason, message=failed.message, since=since
            )
            _LOG.warning("%s", failed, extra={"machine": key})
            self._queue.retry(key, failed.retry_after)
        elif outcome.outdated:
            # The watch tells what has changed; if it did so before, or cannot, nothing more may come.
            self._queue.retry(key)
        else:
            memory.failure = None
            self._queue.forget(key)
        if changed or (before is not None and memory.failure is None):
            self._queue.add(key)
