"""Everything about one machine, out of the caches, as the values that decisions are made of.

A cache that has not been filled yet says nothing: its part is Unknown. Live reads happen only where a decision asks for
them (`confirm`).
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, TypeVar

import attrs

from fivespot.adapters.kube.control.children import Child, Children, child_key, unreachable
from fivespot.adapters.kube.control.streams import (
    CAPI_MACHINES,
    CLUSTERS,
    NODES,
    dependent_stream,
    pods_stream,
    provider_stream,
    streams_of,
)
from fivespot.adapters.kube.control.watches import Stream, Watches
from fivespot.adapters.kube.errors import ApiError, Forbidden, KindNotServed, NotFound
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.reflector import Reflector
from fivespot.adapters.kube.resources import NODES as NODE_RESOURCE
from fivespot.core.api import reasons
from fivespot.core.api.common import ObjectReference
from fivespot.core.decision.actions import Part, Role
from fivespot.core.decision.knowledge import Absent, Known, Present, Unknown, value_of
from fivespot.core.decision.manifest import V1BETA2
from fivespot.core.decision.observation import (
    BlockedEviction,
    CapiMachineView,
    Failure,
    MachineView,
    NodeView,
    Observation,
    PodView,
    ProviderView,
)
from fivespot.core.errors import FivespotError
from fivespot.core.ports import Clock

T = TypeVar("T")


@attrs.define(kw_only=True)
class Memory:
    """What this process remembers of one machine between passes; losing it loses nothing that matters."""

    failure: Failure | None = None
    blocked: tuple[BlockedEviction, ...] = ()
    evicted: frozenset[str] = frozenset()
    tries: int = 0
    status_written_at: datetime | None = None
    stale_since: datetime | None = None
    waiting_since: float | None = None

    def waited(self, now: float) -> float:
        """Seconds since this machine began to wait for first answers; `now` on the monotonic clock."""
        if self.waiting_since is None:
            self.waiting_since = now
        return now - self.waiting_since


class Observer:
    """Reads one machine's part of the world."""

    def __init__(self, gateway: Gateway, watches: Watches, children: Children, clock: Clock) -> None:
        self._gateway = gateway
        self._watches = watches
        self._children = children
        self._clock = clock

    def pending(self, machine: MachineView) -> bool:
        """Whether something that matters is about to be known: a pass now would only write down that it is not."""
        key = child_key(machine)
        child = self._children.get(key)
        if isinstance(child, Child) and _needs_pods(machine):
            # Asked for here, before the first pass that needs them: to that one a list under way is no child out of reach.
            capi = self._cached(CAPI_MACHINES, machine.metadata.namespace, _machine_name(machine))
            self._in_child(machine, value_of(capi))
        pods = isinstance(child, Child) and child.watches.pending_for(_user(machine))
        return (
            pods or self._children.pending(key) or any(self._watches.pending(s) for s in streams_of(machine))
        )

    def observe(self, machine: MachineView, memory: Memory) -> Observation:
        """All parts, as the caches have them."""
        namespace = machine.metadata.namespace
        capi = self._cached(CAPI_MACHINES, namespace, _machine_name(machine))
        node, last_node, pods = self._in_child(machine, value_of(capi))
        pods = _with_evictions(pods, memory)
        stray = value_of(last_node)
        return Observation(
            machine=machine,
            provider=self._provider(machine, memory),
            cluster=self._cached(CLUSTERS, namespace, machine.intent.cluster_name),
            capi_machine=capi,
            bootstrap=self._dependent(machine, Role.BOOTSTRAP, machine.status.bootstrap_ref),
            infrastructure=self._dependent(machine, Role.INFRASTRUCTURE, machine.status.infrastructure_ref),
            node=node,
            last_node=last_node,
            last_node_claimed=stray is not None and self._claimed(stray),
            pods=pods,
            blocked=memory.blocked,
            failure=memory.failure,
            capi_version=self.capi_version(),
            status_written_at=memory.status_written_at,
        )

    def capi_version(self) -> str:
        """The version in which Machines are spoken of."""
        reflector = self._watches.reflector(CAPI_MACHINES)
        return reflector.resource.version if reflector is not None else V1BETA2

    async def confirm(self, obs: Observation, parts: Iterable[Part]) -> Observation:
        """Read parts live and put the answers in; what cannot be read becomes Unknown."""
        asked = tuple(parts)
        changes: dict[str, Any] = {part.value: await self._live(obs, part) for part in asked}
        return attrs.evolve(
            obs, last_node_confirmed=obs.last_node_confirmed or Part.LAST_NODE in asked, **changes
        )

    def _dependent(self, machine: MachineView, role: Role, recorded: ObjectReference | None) -> Known[Any]:
        stream = dependent_stream(machine, role)
        if stream is None:
            return Absent()
        name = _name(recorded, machine.metadata.name)
        return self._cached(stream, machine.metadata.namespace, name)

    def _cached(self, stream: Stream[Known[T]], namespace: str | None, name: str) -> Known[T]:
        reflector = self._watches.reflector(stream)
        if reflector is None or not reflector.synced.is_set() or not reflector.served:
            return _unknown(self._watches.fault(stream), f"{stream.kind} objects have not been read yet")
        if (denied := self._watches.denied(stream)) is not None:
            return _unknown(denied, "")
        return _view(reflector, namespace, name)

    def _provider(self, machine: MachineView, memory: Memory) -> Known[ProviderView]:
        stream, schedule = provider_stream(machine), machine.intent.schedule
        if stream is None or schedule is None:
            return Unknown(reasons.PROVIDER_UNREADABLE, "spec.schedule cannot be read")
        found, memory.stale_since = seen_provider(
            self._watches,
            stream,
            machine.metadata.namespace,
            schedule.name,
            memory.stale_since,
            self._clock.now(),
        )
        return found

    # The child cluster

    def _in_child(
        self, machine: MachineView, capi: CapiMachineView | None
    ) -> tuple[Known[NodeView], Known[NodeView], Known[tuple[PodView, ...]]]:
        child = self._children.get(child_key(machine))
        if isinstance(child, Unknown):
            return child, child, child
        nodes = child.nodes
        if nodes is None or not nodes.synced.is_set():
            why = unreachable(child.watches.fault(NODES), "its Nodes are being read")
            return why, why, why
        if (silence := child.silence) is not None:
            why = unreachable(silence, "")
            return why, why, why
        node = self._node(machine, capi, nodes)
        last_node: Known[NodeView] = Absent(live=True)
        last = machine.status.last_node
        if last is not None and last.cluster != machine.intent.cluster_name:
            last_node = Unknown(
                reasons.CHILD_CLUSTER_UNREACHABLE, f"Node {last.name} was in Cluster {last.cluster}"
            )
        elif capi is None and (name := _last_node_name(machine)):
            last_node = _view(nodes, None, name)
        return node, last_node, self._pods(machine, child, value_of(node) or value_of(last_node))

    def _node(
        self, machine: MachineView, capi: CapiMachineView | None, nodes: Reflector[Known[NodeView]]
    ) -> Known[NodeView]:
        """By name where the Machine names one, else by provider id."""
        wanted = capi.provider_id if capi is not None else machine.status.provider_id
        named = (
            capi.node_name
            if capi is not None
            else (machine.status.node_ref.name if machine.status.node_ref else "")
        )
        if named:
            return _view(nodes, None, named)
        if not wanted:
            return Absent(live=True)
        return next(iter(nodes.by_token(wanted)), Absent())

    def _claimed(self, node: NodeView) -> bool:
        """Whether a CAPI Machine that we know has the provider id of a Node that seems to be left over."""
        machines = self._watches.reflector(CAPI_MACHINES)
        return bool(node.provider_id and machines is not None and machines.by_token(node.provider_id))

    def _pods(self, machine: MachineView, child: Child, node: NodeView | None) -> Known[tuple[PodView, ...]]:
        """Listed and watched only while a removal, or a stray Node, needs them."""
        user = _user(machine)
        if node is None or not _needs_pods(machine):
            child.watches.want(user, ())
            return Absent()
        stream = pods_stream(node.name)
        child.watches.want(user, [stream])
        reflector = child.watches.reflector(stream)
        if reflector is None or not reflector.synced.is_set():
            return unreachable(child.watches.fault(stream), "its pods are being listed")
        if (denied := child.watches.denied(stream)) is not None:
            return unreachable(denied, "")
        pods = reflector.items()
        unknown = next((pod for pod in pods if isinstance(pod, Unknown)), None)
        return unknown or Present(tuple(pod.value for pod in pods if isinstance(pod, Present)))

    # Live

    async def _live(self, obs: Observation, part: Part) -> Known[Any]:
        machine = obs.machine
        namespace, name, status = machine.metadata.namespace, machine.metadata.name, machine.status
        if part is Part.NODE:
            return self._live_node(obs)
        if part is Part.LAST_NODE:
            return await self._live_last_node(machine)
        target: dict[Part, tuple[Stream[Any] | None, str]] = {
            Part.CLUSTER: (CLUSTERS, machine.intent.cluster_name),
            Part.MACHINE: (CAPI_MACHINES, _name(status.machine_ref, name)),
            Part.BOOTSTRAP: (dependent_stream(machine, Role.BOOTSTRAP), _name(status.bootstrap_ref, name)),
            Part.INFRASTRUCTURE: (
                dependent_stream(machine, Role.INFRASTRUCTURE),
                _name(status.infrastructure_ref, name),
            ),
        }
        stream, wanted = target[part]
        if stream is None:
            # Neither recorded nor in a readable spec: nothing of that role was ever created by this spec.
            return Absent(live=True)
        return await self._get(stream, namespace, wanted)

    async def _get(self, stream: Stream[Known[T]], namespace: str, name: str) -> Known[T]:
        try:
            resource = await self._gateway.resolve(stream.group, stream.kind, stream.version)
            body = await self._gateway.get(resource, namespace, name)
        except NotFound as error:
            return _unknown(error, "") if error.kind_not_served else Absent(live=True)
        except (ApiError, KindNotServed) as error:
            return _unknown(error, "")
        self._watches.feed(stream, body)
        return stream.read(body, None)

    async def _live_last_node(self, machine: MachineView) -> Known[NodeView]:
        child, name = self._children.get(child_key(machine)), _last_node_name(machine)
        if isinstance(child, Unknown):
            return child
        try:
            body = await child.gateway.get(NODE_RESOURCE, None, name)
        except NotFound:
            if child.nodes is not None:
                child.nodes.forget(None, name)
            return Absent(live=True)
        except ApiError as error:
            return unreachable(error, "")
        if child.nodes is not None:
            child.nodes.feed(body)
        return NODES.read(body, None)

    def _live_node(self, obs: Observation) -> Known[NodeView]:
        """A synced Node cache that has none by that provider id is the best that can be known: Nodes have no such index."""
        return Absent(live=True) if isinstance(obs.node, Absent) else obs.node


def _with_evictions(pods: Known[tuple[PodView, ...]], memory: Memory) -> Known[tuple[PodView, ...]]:
    """The pods, those that we have evicted as what they are since then: the answer to an eviction is no pod to feed a cache with.

    Their watch tells of it later, one pod after the other, and much later when it has to be opened anew.
    """
    if not memory.evicted or not isinstance(pods, Present):
        return pods
    memory.evicted &= {pod.uid for pod in pods.value}
    return Present(
        tuple([attrs.evolve(pod, deleting=True) if pod.uid in memory.evicted else pod for pod in pods.value])
    )


def _unknown(fault: FivespotError | None, otherwise: str) -> Unknown:
    """A part of the management cluster that could not be read, in the words of conditions."""
    reason = reasons.PERMISSION_DENIED if isinstance(fault, Forbidden) else reasons.REFERENCES_INVALID
    return Unknown(reason, str(fault or otherwise))


def _last_node_name(machine: MachineView) -> str:
    """The Node that may have been left behind, or that carries the request of a reclaim."""
    last, reclaim = machine.status.last_node, machine.status.reclaim
    if last is not None:
        return last.name
    return reclaim.node.name if reclaim is not None and reclaim.node is not None else ""


def _user(machine: MachineView) -> str:
    return f"{machine.metadata.namespace}/{machine.metadata.name}"


def _machine_name(machine: MachineView) -> str:
    """The name of its CAPI Machine: as recorded, else its own."""
    return _name(machine.status.machine_ref, machine.metadata.name)


def _needs_pods(machine: MachineView) -> bool:
    """Whether a removal, or a stray Node, has to know the pods of its node."""
    status = machine.status
    return status.shutdown is not None or (status.last_node is not None and not status.machine_ref)


def _name(reference: ObjectReference | None, default: str) -> str:
    return reference.name if reference is not None and reference.name else default


def _view(reflector: Reflector[Known[T]], namespace: str | None, name: str) -> Known[T]:
    found = reflector.get(namespace, name)
    return Absent() if found is None else found


def seen_provider(
    watches: Watches,
    stream: Stream[Known[ProviderView]],
    namespace: str,
    name: str,
    stale_since: datetime | None,
    now: datetime,
) -> tuple[Known[ProviderView], datetime | None]:
    """What a provider publishes, and since when its answer has been stale, which only those know who watch it."""
    if not watches.served(stream):
        return Absent(why=reasons.PROVIDER_CRD_NOT_INSTALLED), None
    reflector = watches.reflector(stream)
    if reflector is None or not reflector.synced.is_set():
        why = str(watches.fault(stream) or "it has not been read yet")
        return Unknown(reasons.PROVIDER_UNREADABLE, why), stale_since
    if (denied := watches.denied(stream)) is not None:
        return Unknown(reasons.PROVIDER_UNREADABLE, str(denied)), stale_since
    found = _view(reflector, namespace, name)
    if isinstance(found, Absent):
        return Absent(why=reasons.PROVIDER_NOT_FOUND), None
    if not isinstance(found, Present):
        return found, stale_since
    since = (stale_since or now) if found.value.stale else None
    return Present(attrs.evolve(found.value, stale_since=since)), since
