"""Which streams there are, and what is kept of the objects in them: views that decisions are made of, not bodies.

An object that cannot be read is kept as Unknown: it says nothing about the world, and the rest of its kind goes on.
"""

import functools
import logging
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from fivespot.adapters.kube.control.watches import Stream
from fivespot.adapters.kube.resources import Object
from fivespot.adapters.kube.watching import Read, whole
from fivespot.core.api import reasons
from fivespot.core.api.allowed import DEFAULT_GROUPS, AllowedGroups
from fivespot.core.api.kinds import scheduled_machine
from fivespot.core.decision import reading
from fivespot.core.decision.actions import Role
from fivespot.core.decision.knowledge import Known, Present, Unknown, value_of
from fivespot.core.decision.manifest import V1BETA2
from fivespot.core.decision.observation import (
    CapiMachineView,
    ClusterView,
    DependentView,
    MachineView,
    NodeView,
    PodView,
    ProviderView,
)
from fivespot.core.decision.scene import CAPI_MACHINE_KIND
from fivespot.core.errors import InvalidSpec
from fivespot.core.names import CAPI_GROUP, MACHINE_LABEL

_LOG: Final = logging.getLogger(__name__)
T = TypeVar("T")


def known(read: Callable[[Object], T]) -> Read[Known[T]]:
    """Keep what `read` makes of an object, or why it cannot."""

    def kept(item: Object, _before: Known[T] | None) -> Known[T]:
        try:
            return Present(read(item))
        except (InvalidSpec, TypeError, ValueError, AttributeError) as error:
            return _undecodable(item, error)

    return kept


def machines_stream(allowed: AllowedGroups) -> Stream[Known[MachineView]]:
    """Every ScheduledMachine, its spec valid where it embeds objects of these groups only; the stream is MACHINES."""
    kind = scheduled_machine(allowed)

    def read(item: Object, before: Known[MachineView] | None) -> Known[MachineView]:
        try:
            return Present(reading.read_machine(item, value_of(before), kind))
        except InvalidSpec as error:
            return _undecodable(item, error)

    return Stream(group=kind.group, kind=kind.name, version=kind.version, read=read)


def _undecodable(item: Object, error: Exception) -> Unknown:
    meta = item["metadata"]
    shown = "/".join(filter(None, (meta.get("namespace"), meta["name"])))
    _LOG.error(
        "%s %s cannot be read and is left alone: %s", item.get("kind"), shown, error, extra={"object": shown}
    )
    return Unknown(reasons.REFERENCES_INVALID, f"{meta['name']} cannot be decoded: {error}")


def _provider_ids(found: Known[NodeView] | Known[CapiMachineView]) -> Iterable[str]:
    return (found.value.provider_id,) if isinstance(found, Present) and found.value.provider_id else ()


MACHINES: Final = machines_stream(DEFAULT_GROUPS)
CLUSTERS: Final = Stream[Known[ClusterView]](
    group=CAPI_GROUP, kind="Cluster", version=V1BETA2, read=known(reading.read_cluster)
)
CAPI_MACHINES: Final = Stream[Known[CapiMachineView]](
    group=CAPI_GROUP,
    kind=CAPI_MACHINE_KIND,
    version=V1BETA2,
    label=MACHINE_LABEL,
    read=known(reading.read_capi_machine),
    tokens=_provider_ids,
)
NODES: Final = Stream[Known[NodeView]](
    group="", kind="Node", version="v1", read=known(reading.read_node), tokens=_provider_ids
)


def provider_stream(machine: MachineView) -> Stream[Known[ProviderView]] | None:
    """The stream of the kind of provider that a machine refers to."""
    schedule = machine.intent.schedule
    if schedule is None:
        return None
    return providers_stream(schedule.api_version, schedule.kind)


# Ten thousand machines name a few kinds: the streams are made once, and so are the sets of them.
@functools.lru_cache(maxsize=256)
def providers_stream(api_version: str, kind: str) -> Stream[Known[ProviderView]]:
    """Every object of a kind of provider."""
    group, _, version = api_version.partition("/")
    return Stream(group=group, kind=kind, version=version, read=_PROVIDER)


def dependent_stream(machine: MachineView, role: Role) -> Stream[Known[DependentView]] | None:
    """The stream of the machine's bootstrap or infrastructure kind: what status recorded, else what the spec says."""
    status, spec = machine.status, machine.spec
    recorded = status.bootstrap_ref if role is Role.BOOTSTRAP else status.infrastructure_ref
    if recorded is not None and recorded.kind:
        return _labelled(recorded.api_version, recorded.kind)
    if spec is None:
        return None
    template = spec.bootstrap_spec if role is Role.BOOTSTRAP else spec.infrastructure_spec
    return _labelled(template.api_version, template.kind)


@functools.lru_cache(maxsize=256)
def _labelled(api_version: str, kind: str) -> Stream[Known[DependentView]]:
    group, _, version = api_version.rpartition("/")
    return Stream(group=group, kind=kind, version=version, label=MACHINE_LABEL, read=_DEPENDENT)


def streams_of(machine: MachineView) -> frozenset[Stream[Any]]:
    """Every stream of the management cluster that a machine needs."""
    return _needed(
        provider_stream(machine),
        dependent_stream(machine, Role.BOOTSTRAP),
        dependent_stream(machine, Role.INFRASTRUCTURE),
    )


@functools.lru_cache(maxsize=256)
def _needed(*others: Stream[Any] | None) -> frozenset[Stream[Any]]:
    return frozenset(stream for stream in (CLUSTERS, CAPI_MACHINES, *others) if stream is not None)


def pods_stream(node: str) -> Stream[Known[PodView]]:
    """The pods of one node: never cached cluster-wide."""
    return Stream(group="", kind="Pod", version="v1", fields=f"spec.nodeName={node}", read=_POD)


def secret_stream(namespace: str, name: str) -> Stream[Object]:
    """One Secret, and no other: to read all of them nobody needs to let us."""
    return Stream(
        group="", kind="Secret", version="v1", namespace=namespace, fields=f"metadata.name={name}", read=whole
    )


_PROVIDER: Final = known(reading.read_provider)
_DEPENDENT: Final = known(reading.read_dependent)
_POD: Final = known(reading.read_pod)
