"""The metrics of a process, by name and type: the one place where they are spelled.

Counters are there at zero for every label value that is known beforehand, so that a rate exists before the first event.
What can be read off the state of a controller is read when somebody scrapes (`watch_state`), and costs nothing else.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

import attrs
from prometheus_client import CollectorRegistry, Counter, Histogram, Info, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from fivespot.core.decision.phase import Phase
from fivespot.core.decision.tally import DRAINED, TIMED_OUT, Tally

PREFIX = "fivespot"
OK, ERROR, OUTDATED = "ok", "error", "outdated"
"""Results of a reconciliation: done, failed, or decided anew because somebody else was faster."""
RESOLVED, UNRESOLVED = "resolved", "unresolved"
EVICTED, BLOCKED, FAILED = "evicted", "blocked", "failed"
CONNECTED = "connected"
ANSWERED = "answered"

# From a thousandth of a second, a pass in memory, to a minute, a server that hardly answers.
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


@attrs.frozen
class Sample:
    """One number of a state, with the values of its labels."""

    labels: tuple[str, ...]
    value: float


@attrs.frozen
class State:
    """A gauge that is read off something else when somebody asks.

    Attributes:
        name: without the prefix.
        help: one sentence.
        labels: their names.
        read: the samples of this moment.
    """

    name: str
    help: str
    labels: tuple[str, ...]
    read: Callable[[], Iterable[Sample]]


class _States(Collector):
    def __init__(self, states: Iterable[State]) -> None:
        self._states = tuple(states)

    def collect(self) -> Iterator[Metric]:
        for state in self._states:
            family = GaugeMetricFamily(f"{PREFIX}_{state.name}", state.help, labels=state.labels)
            for sample in state.read():
                family.add_metric(sample.labels, sample.value)
            yield family

    def describe(self) -> Iterator[Metric]:
        for state in self._states:
            yield GaugeMetricFamily(f"{PREFIX}_{state.name}", state.help, labels=state.labels)


class Metrics:
    """What one process counts and measures, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._requests = self._counter("api_requests", "Requests to API servers.", "verb", "code")
        self._restarts = self._counter("watch_restarts", "Watch streams that ended.", "kind", "reason")
        self._waited = self._histogram("queue_latency_seconds", "From ready to taken up.", "queue")
        self._passes = self._counter("reconciliations", "Passes over a machine.", "phase", "result")
        self._seconds = self._histogram("reconciliation_duration_seconds", "Length of a pass.", "phase")
        self._errors = self._counter("errors", "What went wrong in passes.", "error_type")
        self._kills = self._counter("kill_switch_activations", "Kill switches that began to decide.")
        self._drains = self._counter("node_drains", "Drains that ended.", "result")
        self._evictions = self._counter("pod_evictions", "Evictions that were asked for.", "result")
        self._cleanups = self._counter("finalizer_cleanup_timeouts", "Removals that became overdue.")
        self._reclaims = self._counter("emergency_reclaims", "Emergency reclaims.", "namespace", "name")
        self._rapid = self._counter("rapid_re_reclaims", "The third within the window.", "namespace", "name")
        self._resolutions = self._counter(
            "spot_schedule_resolutions", "Looks at a provider's answer.", "namespace", "kind", "result"
        )
        self._unresolved = self._counter(
            "spot_schedule_resolution_errors",
            "Answers that could not be read.",
            "namespace",
            "kind",
            "reason",
        )
        self._transitions = self._counter(
            "spot_schedule_transitions", "Answers that changed a machine.", "namespace", "kind"
        )
        self._children = self._counter(
            "child_kubeconfig_resolutions", "Kubeconfigs of child clusters taken up.", "result"
        )
        self._child_errors = self._counter(
            "child_kubeconfig_errors", "Kubeconfigs of child clusters that cannot be used.", "reason"
        )
        self._asked = self._counter("provider_queries", "Questions asked outside the cluster.", "result")
        self._lost_events = self._counter("events_dropped", "Events too many to be published.")
        self._queues: dict[str, Callable[[], int]] = {}
        self.watch_state(
            State("queue_depth", "Keys that wait for a worker.", ("queue",), self._depths),
        )
        for phase in Phase:
            for result in (OK, ERROR, OUTDATED):
                self._passes.labels(phase.value, result)
        for result in (DRAINED, TIMED_OUT):
            self._drains.labels(result)
        for result in (EVICTED, BLOCKED, FAILED):
            self._evictions.labels(result)
        for result in (CONNECTED, FAILED):
            self._children.labels(result)
        for result in (ANSWERED, FAILED):
            self._asked.labels(result)

    def watch_state(self, *states: State) -> None:
        """Show gauges that are read off something else."""
        self.registry.register(_States(states))

    def watch_queue(self, queue: str, depth: Callable[[], int]) -> None:
        """Show how many keys of a queue wait."""
        self._queues[queue] = depth

    def info(self, name: str, text: str, labels: Mapping[str, str]) -> None:
        """State a fact about this process: `<name>_info` with value 1."""
        Info(f"{PREFIX}_{name}", text, registry=self.registry).info(dict(labels))

    def answered(self, verb: str, code: int) -> None:
        """A request was answered; 0 when it was not."""
        self._requests.labels(verb, str(code)).inc()

    def restarted(self, kind: str, reason: str) -> None:
        """A stream ended: `end`, `gone` or `error`."""
        self._restarts.labels(kind, reason).inc()

    def waited(self, queue: str, seconds: float) -> None:
        """A key was taken up after so long."""
        self._waited.labels(queue).observe(seconds)

    def reconciled(self, phase: str | None, result: str, seconds: float) -> None:
        """A pass ended."""
        self._passes.labels(phase or "", result).inc()
        self._seconds.labels(phase or "").observe(seconds)

    def failed(self, error_type: str) -> None:
        """Something went wrong in a pass."""
        self._errors.labels(error_type).inc()

    def resolved(self, namespace: str, kind: str, reason: str | None) -> None:
        """A provider was looked at; `reason` says why its answer could not be read, None that it could."""
        self._resolutions.labels(namespace, kind, RESOLVED if reason is None else UNRESOLVED).inc()
        if reason is not None:
            self._unresolved.labels(namespace, kind, reason).inc()

    def told(self, namespace: str, name: str, provider_kind: str, tally: Tally) -> None:
        """A machine's status was written."""
        if tally.killed:
            self._kills.inc()
        if tally.transition:
            self._transitions.labels(namespace, provider_kind).inc()
        if tally.drain is not None:
            self._drains.labels(tally.drain).inc()
        if tally.reclaim:
            self._reclaims.labels(namespace, name).inc()
        if tally.rapid_reclaim:
            self._rapid.labels(namespace, name).inc()
        if tally.cleanup_timed_out:
            self._cleanups.inc()

    def evicted(self, result: str) -> None:
        """An eviction was asked for: `evicted`, `blocked` by a budget, or `failed`."""
        self._evictions.labels(result).inc()

    def child_resolved(self, reason: str | None) -> None:
        """A child's kubeconfig was taken up; `reason` says why not."""
        self._children.labels(CONNECTED if reason is None else FAILED).inc()
        if reason is not None:
            self._child_errors.labels(reason).inc()

    def asked(self, result: str) -> None:
        """A question was asked outside the cluster: `answered`, or `failed`."""
        self._asked.labels(result).inc()

    def event_dropped(self) -> None:
        """An Event was one too many."""
        self._lost_events.inc()

    def counter(self, name: str, text: str, *labels: str) -> Counter:
        """A counter of a controller that has some of its own; `_total` is appended to its name."""
        return self._counter(name, text, *labels)

    def _depths(self) -> Iterable[Sample]:
        return [Sample((queue,), depth()) for queue, depth in self._queues.items()]

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"{PREFIX}_{name}", text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, *labels: str) -> Histogram:
        return Histogram(f"{PREFIX}_{name}", text, labels, registry=self.registry, buckets=_SECONDS)
