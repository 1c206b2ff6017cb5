"""The abstract world of one machine: named values of everything that can be observed, and their consistent combinations.

Three walks, each deterministic, together cover what `decide` can look at:

* `who_decides`: every combination of what settles the target (verdict, held verdict, enabled, kill switch, reclaim,
  deletion, finalizer, Cluster, pause), over a few typical states of the machine.
* `what_stands`: every consistent combination of Machine, dependents, Node, pods, stored status and Cluster or pause, for
  each kind of target. A Cluster and a pause are varied one at a time, and dependents and Node details one at a time while
  a Machine stands: the rows for a standing Machine look at its dependents only to record references. Of these, every
  `STRIDE`th is walked; the stride shares no factor with the size of any dimension, so every pair of values meets.
* `anything`: a stride through the whole product, consistent or not, for totality alone.
"""

import itertools
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import attrs

from fivespot.core.api.common import Metadata, ObjectReference, OwnerReference
from fivespot.core.api.reasons import PROVIDER_CRD_NOT_INSTALLED
from fivespot.core.api.scheduled_machine import (
    DrainTimeout,
    LastNode,
    Manner,
    NodeReference,
    Provisioning,
    Reclaim,
    ReclaimedNode,
    ReclaimRecord,
    ReclaimState,
    ScheduledMachineStatus,
    Shutdown,
    SpotScheduleStatus,
)
from fivespot.core.decision.knowledge import Absent, Known, Present, Unknown
from fivespot.core.decision.observation import (
    BlockedEviction,
    CapiMachineView,
    ClusterView,
    DependentView,
    MachineView,
    NodeView,
    Observation,
    PodView,
    ProviderView,
)
from fivespot.core.decision.phase import Phase
from fivespot.core.decision.reading import read_machine
from fivespot.core.instant import format_instant
from fivespot.core.names import (
    CORDONED_BY,
    FINALIZER,
    MACHINE_API_VERSION,
    MACHINE_KIND,
    MACHINE_LABEL,
    PAUSED,
    RECLAIM_RELEASE,
    RECLAIM_REQUESTED,
)
from tests.builders import scheduled_machine

NOW: Final = datetime(2026, 3, 2, 12, tzinfo=UTC)
NAME: Final = "desk-042"
NAMESPACE: Final = "desks"
MARK: Final = f"{NAMESPACE}/{NAME}"
STRIDE: Final = 41

LIVE: Final = Absent(live=True)
CACHED: Final = Absent()
UNREAD: Final = Unknown("ProviderUnreadable", "time-out")
OUT_OF_REACH: Final = Unknown("ChildClusterUnreachable", "connection refused")

_AGO: Final = NOW - timedelta(minutes=10)
_OWNER: Final = OwnerReference(
    api_version=MACHINE_API_VERSION, kind=MACHINE_KIND, name=NAME, uid="uid-machine", controller=True
)
_LABELS: Final = {MACHINE_LABEL: NAME}
_PROVIDER_ID: Final = "metal://desk-042"


def machine(
    status: ScheduledMachineStatus | None = None,
    *,
    deleting: bool = False,
    finalizer: bool = True,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> MachineView:
    """A ScheduledMachine that can be reclaimed."""
    document = scheduled_machine(NAME, **{"killIfCommands": ["java"], **spec})
    view = read_machine({**document, "metadata": {"name": NAME, "namespace": NAMESPACE}})
    metadata = Metadata(
        name=NAME,
        namespace=NAMESPACE,
        uid="uid-machine",
        resource_version="7",
        generation=1,
        annotations=annotations or {},
        finalizers=(FINALIZER,) if finalizer else (),
        created_at=_AGO,
        deleting_since=_AGO if deleting else None,
    )
    return attrs.evolve(view, metadata=metadata, status=status or ScheduledMachineStatus())


def said(active: Any, **status: Any) -> Present[ProviderView]:
    """A provider that publishes `active`."""
    return Present(ProviderView(generation=2, status={"active": active, **status}))


def _stale(since: datetime) -> Present[ProviderView]:
    status = {"active": True, "observedGeneration": 1}
    return Present(ProviderView(generation=2, status=status, stale_since=since))


VERDICTS: Final[dict[str, Known[ProviderView]]] = {
    "active": said(active=True),
    "inactive": said(active=False),
    "kind not served": Absent(why=PROVIDER_CRD_NOT_INSTALLED),
    "not found": LIVE,
    "no status": Present(ProviderView(generation=2)),
    "not a boolean": said("false"),
    "not ready": said(active=True, conditions=[{"type": "Ready", "status": "False"}]),
    "malformed conditions": said(active=False, conditions="?"),
    "just stale": _stale(NOW),
    "long stale": _stale(_AGO),
    "unreadable": UNREAD,
}
RESOLVED: Final = {"active": True, "inactive": False}
HELD: Final = {
    "never": None,
    "held active": SpotScheduleStatus(resolved=True, active=True, reason="Resolved", held_from="A/a"),
    "held inactive": SpotScheduleStatus(resolved=True, active=False, reason="Resolved", held_from="A/a"),
}

_OBSERVED_AT: Final = NOW - timedelta(seconds=2)
_RECLAIM: Final = Reclaim(
    state=ReclaimState.IN_PROGRESS,
    reason="process-match: java",
    observed_at=_OBSERVED_AT,
    node=ReclaimedNode(name="node-1", uid="uid-node"),
)
_HELD: Final = attrs.evolve(
    _RECLAIM,
    state=ReclaimState.HELD,
    history=(ReclaimRecord(observed_at=_OBSERVED_AT, held_at=NOW, reason="process-match: java"),),
)
RECLAIMS: Final = {
    "none": None,
    "requested": None,
    "in progress": _RECLAIM,
    "in progress, pods gone": attrs.evolve(_RECLAIM, pods_deleted_at=_AGO),
    "held": _HELD,
    "released": _HELD,
}

CLUSTERS: Final[dict[str, Known[ClusterView]]] = {
    "present": Present(ClusterView(generation=3)),
    "paused": Present(ClusterView(generation=3, paused=True)),
    "deleting": Present(ClusterView(generation=3, deleting=True)),
    "absent": LIVE,
    "absent in cache": CACHED,
    "unknown": UNREAD,
}


def _meta(
    uid: str, *owners: OwnerReference, deleting: bool = False, ours: bool = True, **more: Any
) -> Metadata:
    return Metadata(
        name=NAME,
        namespace=NAMESPACE,
        uid=uid,
        resource_version="11",
        labels=_LABELS if ours else {},
        owners=(*((_OWNER,) if ours else ()), *owners),
        created_at=_AGO,
        deleting_since=_AGO if deleting else None,
        **more,
    )


def _capi(*, uid: str = "uid-capi", **fields: Any) -> Present[CapiMachineView]:
    meta = {name: fields.pop(name) for name in ("deleting", "ours", "annotations") if name in fields}
    return Present(
        CapiMachineView(
            metadata=_meta(uid, **meta),
            api_version="cluster.x-k8s.io/v1beta2",
            bootstrap=_reference("K0sWorkerConfig"),
            infrastructure=_reference("RemoteMachine"),
            **fields,
        )
    )


def _reference(kind: str, uid: str | None = None) -> ObjectReference:
    return ObjectReference(api_version="v1", kind=kind, name=NAME, uid=uid)


_UP: Final = {"provider_id": _PROVIDER_ID, "node_name": "node-1"}
CAPI: Final[dict[str, Known[CapiMachineView]]] = {
    "absent": LIVE,
    "absent in cache": CACHED,
    "unknown": UNREAD,
    "foreign": _capi(uid="uid-foreign-capi", ours=False),
    "new": _capi(phase="Pending"),
    "provisioned": _capi(phase="Provisioned", provider_id=_PROVIDER_ID),
    "running": _capi(phase="Running", **_UP),
    "running, paused": _capi(phase="Running", annotations={PAUSED: ""}, **_UP),
    "failed before any node": _capi(phase="Failed", failure="InsufficientResources"),
    "failed with a node": _capi(phase="Failed", failure="UpdateError", **_UP),
    "being deleted": _capi(phase="Deleting", deleting=True, **_UP),
}
STANDING: Final = tuple(
    name
    for name, value in CAPI.items()
    if isinstance(value, Present) and name not in ("foreign", "being deleted")
)

_CONTROLLER: Final = OwnerReference(
    api_version="cluster.x-k8s.io/v1beta2", kind="Machine", name=NAME, uid="uid-capi", controller=True
)


def _dependent(
    role: str, *, taken: bool = False, deleting: bool = False, ours: bool = True
) -> Present[DependentView]:
    kind = "K0sWorkerConfig" if role == "bootstrap" else "RemoteMachine"
    uid = f"uid-{role}" if ours else f"uid-foreign-{role}"
    owners = (_CONTROLLER,) if taken else ()
    return Present(
        DependentView(
            metadata=_meta(uid, *owners, deleting=deleting, ours=ours),
            api_version="v1",
            kind=kind if ours else f"Other{kind}",
        )
    )


_DEPENDENT: Final[dict[str, dict[str, Known[DependentView]]]] = {
    role: {
        "absent": LIVE,
        "cached": CACHED,
        "unknown": UNREAD,
        "untaken": _dependent(role),
        "taken": _dependent(role, taken=True),
        "going": _dependent(role, taken=True, deleting=True),
        "foreign": _dependent(role, ours=False),
    }
    for role in ("infrastructure", "bootstrap")
}
DEPENDENTS: Final = {
    f"infrastructure {one}, bootstrap {other}": (
        _DEPENDENT["infrastructure"][one],
        _DEPENDENT["bootstrap"][other],
    )
    for one, other in itertools.product(_DEPENDENT["infrastructure"], _DEPENDENT["bootstrap"])
}
TAKEN: Final = "infrastructure taken, bootstrap taken"


def node_view(name: str = "node-1", uid: str = "uid-node", **fields: Any) -> NodeView:
    """A Node; its annotations are those given."""
    return NodeView(
        **{
            "name": name,
            "uid": uid,
            "resource_version": "21",
            "provider_id": _PROVIDER_ID,
            "system_uuid": "system-1",
            "ready": True,
            **fields,
        }
    )


_CORDONED: Final = {"unschedulable": True, "annotations": {CORDONED_BY: MARK}}
NODES: Final[dict[str, Known[NodeView]]] = {
    "absent": LIVE,
    "absent in cache": CACHED,
    "unknown": OUT_OF_REACH,
    "ready": Present(node_view()),
    "cordoned by us": Present(node_view(**_CORDONED)),
    "cordoned by somebody": Present(node_view(unschedulable=True)),
    "not ready": Present(node_view(ready=False)),
    "unreachable": Present(node_view(ready=False, reachable=False, **_CORDONED)),
    "foreign": Present(node_view("node-f", "uid-foreign-node", provider_id="metal://other")),
    "without provider id": Present(node_view(provider_id="")),
}
NODE_IS_OURS: Final = ("ready", "cordoned by us", "cordoned by somebody", "not ready", "unreachable")

_LAST: Final = LastNode(cluster="grid", name="node-1", uid="uid-node", system_uuid="system-1")
LAST_NODES: Final[dict[str, Known[NodeView]]] = {
    "no stray": LIVE,
    "left over": Present(node_view(ready=False)),
    "returned": Present(node_view(uid="uid-node-2")),
    "returned and cordoned": Present(node_view(uid="uid-node-2", **_CORDONED)),
    "somebody else's": Present(node_view(uid="uid-foreign-node", system_uuid="system-2")),
    "stray unknown": OUT_OF_REACH,
}

_POD: Final = PodView(namespace="default", name="web-1", uid="uid-pod")
_DAEMON: Final = PodView(namespace="kube-system", name="cni-1", uid="uid-daemon", daemon=True)
PODS: Final[dict[str, Known[tuple[PodView, ...]]]] = {
    "no pods": Present((_DAEMON,)),
    "a pod": Present((_POD, _DAEMON)),
    "a protected pod": Present((_POD,)),
    "a terminating pod": Present((attrs.evolve(_POD, deleting=True),)),
    "pods unknown": OUT_OF_REACH,
}


def _shutdown(manner: Manner = Manner.GRACEFUL, *, since: int | None = 60, **more: Any) -> Shutdown:
    """A removal whose bounds began `since` seconds ago; the drain has 2 minutes, the whole 5."""
    if since is None:
        return Shutdown(manner=manner, cause="Provider", **more)
    start = NOW - timedelta(seconds=since)
    return Shutdown(
        manner=manner,
        cause="Provider",
        started_at=start,
        drain_deadline=start + timedelta(minutes=2),
        deadline=start + timedelta(minutes=5),
        **more,
    )


_REMOVALS: Final = {
    "no removal": None,
    "waiting": _shutdown(since=None),
    "begun": _shutdown(),
    "drained": _shutdown(drained_at=NOW - timedelta(seconds=40), cordoned=True),
    "drain bound passed": _shutdown(since=200),
    "bound passed": _shutdown(since=400),
    "now": _shutdown(Manner.NOW),
}
_RESTING: Final = (None, Phase.PENDING, Phase.INACTIVE, Phase.DISABLED, Phase.TERMINATED, Phase.ERROR)
_STOOD: Final = (Phase.PENDING, Phase.ACTIVE, Phase.ERROR)
_LEAVING: Final = (Phase.SHUTTING_DOWN, Phase.PENDING, Phase.ERROR)
_LEAVING_NOW: Final = (Phase.TERMINATED, Phase.EMERGENCY_REMOVE, Phase.PENDING, Phase.ERROR)
_REFERENCES: Final = {
    "machine_ref": ObjectReference(
        api_version="cluster.x-k8s.io/v1beta2", kind="Machine", name=NAME, uid="uid-capi"
    ),
    "bootstrap_ref": _reference("K0sWorkerConfig", "uid-bootstrap"),
    "infrastructure_ref": _reference("RemoteMachine", "uid-infrastructure"),
    "provider_id": _PROVIDER_ID,
}
_NODE_REF: Final = NodeReference(name="node-1", uid="uid-node", cluster="grid")
_REPLACING: Final = Provisioning(attempt=1, replacing="uid-capi", not_before=NOW - timedelta(seconds=1))


def _stored() -> Iterator[tuple[str, ScheduledMachineStatus]]:
    """Statuses that some pass could have written: a phase only together with what it comes with."""
    for phase in _RESTING:
        name = f"at rest as {phase.value if phase else 'never seen'}"
        yield name, ScheduledMachineStatus(phase=phase.value if phase else None, last_node=_LAST)
    seen = {**_REFERENCES, "node_ref": _NODE_REF, "last_node": _LAST}
    for phase in _STOOD:
        yield f"stood as {phase.value}", ScheduledMachineStatus(phase=phase.value, **seen)
    young = {**_REFERENCES, "provider_id": None}
    yield "coming up", ScheduledMachineStatus(phase="Pending", provisioning=Provisioning(), **young)
    yield "being replaced", ScheduledMachineStatus(phase="Error", provisioning=_REPLACING, **young)
    for name, shutdown in _REMOVALS.items():
        if shutdown is None:
            continue
        for phase in _LEAVING_NOW if shutdown.manner is Manner.NOW else _LEAVING:
            yield (
                f"{name} as {phase.value}",
                ScheduledMachineStatus(phase=phase.value, shutdown=shutdown, **seen),
            )


STORED: Final = dict(_stored())


@attrs.frozen(kw_only=True)
class Case:
    """An observation, by the names of what it is made of."""

    verdict: str = "active"
    held: str = "held active"
    enabled: bool = True
    kill: bool = False
    reclaim: str = "none"
    deleting: bool = False
    finalizer: bool = True
    paused: bool = False
    hold: bool = False
    cluster: str = "present"
    capi: str = "running"
    dependents: str = TAKEN
    node: str = "ready"
    stray: str = "no stray"
    pods: str = "no pods"
    stored: str = "stood as Active"

    def observation(self) -> Observation:
        """What the names stand for."""
        infrastructure, bootstrap = DEPENDENTS[self.dependents]
        return Observation(
            machine=self._machine(),
            provider=VERDICTS[self.verdict],
            cluster=CLUSTERS[self.cluster],
            capi_machine=CAPI[self.capi],
            infrastructure=infrastructure,
            bootstrap=bootstrap,
            node=self._node(),
            last_node=LAST_NODES[self.stray],
            pods=PODS[self.pods],
            blocked=(BlockedEviction(uid="uid-pod", by="web"),) if self.pods == "a protected pod" else (),
        )

    def _machine(self) -> MachineView:
        base = _BASES[self.enabled, self.kill, self.hold]
        annotations = {RECLAIM_RELEASE: format_instant(_OBSERVED_AT)} if self.reclaim == "released" else {}
        if self.paused:
            annotations[PAUSED] = "true"
        meta = attrs.evolve(
            base.metadata,
            annotations=annotations,
            finalizers=(FINALIZER,) if self.finalizer else (),
            deleting_since=_AGO if self.deleting else None,
        )
        status = attrs.evolve(
            STORED[self.stored], spot_schedule=HELD[self.held], reclaim=RECLAIMS[self.reclaim]
        )
        return attrs.evolve(base, metadata=meta, status=status)

    def _node(self) -> Known[NodeView]:
        node = NODES[self.node]
        if self.reclaim != "requested" or not isinstance(node, Present):
            return node
        wanted = {**node.value.annotations, RECLAIM_REQUESTED: "true"}
        return Present(attrs.evolve(node.value, annotations=wanted))


_BASES: Final = {
    (enabled, kill, hold): machine(
        enabled=enabled,
        killSwitch=kill,
        onDrainTimeout=(DrainTimeout.HOLD if hold else DrainTimeout.FORCE).value,
        nodeDrainTimeout="2m",
    )
    for enabled, kill, hold in itertools.product((True, False), repeat=3)
}

_TYPICAL: Final[Sequence[dict[str, Any]]] = (
    {
        "capi": "absent",
        "dependents": "infrastructure absent, bootstrap absent",
        "stored": "at rest as Inactive",
    },
    {"capi": "running", "stored": "stood as Active"},
    {"capi": "running", "node": "cordoned by us", "pods": "a pod", "stored": "begun as ShuttingDown"},
    {"capi": "being deleted", "stored": "now as EmergencyRemove"},
    {
        "capi": "absent",
        "dependents": "infrastructure absent, bootstrap absent",
        "stored": "now as EmergencyRemove",
    },
)


def who_decides() -> Iterator[Case]:
    """Everything that settles the target, over a few typical states."""
    flags = (True, False)
    for typical, verdict, held, enabled, kill, reclaim in itertools.product(
        _TYPICAL, VERDICTS, HELD, flags, flags, RECLAIMS
    ):
        for deleting, finalizer, place in itertools.product(flags, flags, ("present", "pause", "deleting")):
            if _contradicts(reclaim, str(typical["stored"])):
                continue
            yield Case(
                verdict=verdict,
                held=held,
                enabled=enabled,
                kill=kill,
                reclaim=reclaim,
                deleting=deleting,
                finalizer=finalizer,
                paused=place == "pause",
                cluster="deleting" if place == "deleting" else "present",
                **typical,
            )


def _contradicts(reclaim: str, stored: str) -> bool:
    """A reclaim in progress is stored with the removal that it starts, and is held once nothing is left of it."""
    if reclaim.startswith("in progress"):
        return not stored.startswith("now") or stored.endswith("Pending")
    if reclaim in ("held", "released") and not stored.startswith("at rest"):
        return True
    return stored.endswith("EmergencyRemove")


_TARGETS: Final[Sequence[dict[str, Any]]] = (
    {"verdict": "active"},
    {"verdict": "inactive"},
    {"verdict": "inactive", "hold": True},
    {"kill": True},
    {"deleting": True},
    {"reclaim": "in progress"},
    {"reclaim": "in progress, pods gone"},
    {"reclaim": "requested"},
    {"enabled": False},
    {"verdict": "not found", "held": "never"},
    {"reclaim": "held"},
)
_PLACES: Final[Sequence[dict[str, Any]]] = (
    *({"cluster": name} for name in CLUSTERS),
    {"paused": True},
)


def _shapes() -> Iterator[dict[str, str]]:
    """Machine, dependents, Node and pods that can be seen together."""
    for capi in CAPI:
        if capi in STANDING or capi == "unknown":
            for node in NODES:
                for pods in PODS if node in NODE_IS_OURS else ("no pods",):
                    yield {"capi": capi, "node": node, "pods": pods}
        if capi in STANDING:
            yield from ({"capi": capi, "dependents": found} for found in DEPENDENTS if found != TAKEN)
            continue
        for found in DEPENDENTS:
            yield {"capi": capi, "dependents": found, "node": "absent"}
        if capi in ("absent", "absent in cache"):
            for stray, pods in itertools.product(LAST_NODES, PODS):
                nothing = "infrastructure absent, bootstrap absent"
                yield {"capi": capi, "dependents": nothing, "node": "absent", "stray": stray, "pods": pods}


def what_stands(stride: int = STRIDE) -> Iterator[Case]:
    """Every `stride`th of everything that can stand, for each kind of target."""
    shapes, stored = list(_shapes()), list(STORED)
    for index in range(0, len(shapes) * len(stored) * len(_PLACES) * len(_TARGETS), stride):
        rest, shape = divmod(index, len(shapes))
        rest, status = divmod(rest, len(stored))
        target, place = divmod(rest, len(_PLACES))
        wanted = _TARGETS[target]
        if not _contradicts(wanted.get("reclaim", "none"), stored[status]):
            yield Case(**shapes[shape], stored=stored[status], **_PLACES[place], **wanted)


def anything(count: int) -> Iterator[Case]:
    """A stride through the whole product, consistent or not."""
    flags = (True, False)
    sizes: list[tuple[str, Sequence[Any]]] = [
        ("verdict", tuple(VERDICTS)),
        ("held", tuple(HELD)),
        ("enabled", flags),
        ("kill", flags),
        ("reclaim", tuple(RECLAIMS)),
        ("deleting", flags),
        ("finalizer", flags),
        ("paused", flags),
        ("hold", flags),
        ("cluster", tuple(CLUSTERS)),
        ("capi", tuple(CAPI)),
        ("dependents", tuple(DEPENDENTS)),
        ("node", tuple(NODES)),
        ("stray", tuple(LAST_NODES)),
        ("pods", tuple(PODS)),
        ("stored", tuple(STORED)),
    ]
    total = 1
    for _, values in sizes:
        total *= len(values)
    step = total // count | 1
    for index in range(count):
        rest, chosen = index * step, {}
        for name, values in sizes:
            rest, at = divmod(rest, len(values))
            chosen[name] = values[at]
        yield Case(**chosen)
