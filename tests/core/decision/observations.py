"""Observations with sane defaults: a machine that is up, down or on its way; a test says what differs.

`up()` is a machine at rest with a Ready Node; `down()` one of which nothing exists. Every other state is one of the two
with parts replaced. `stored` puts what was decided into the next observation, as a controller would.
"""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import attrs

from fivespot.core.api.common import Condition, Metadata, ObjectReference, OwnerReference
from fivespot.core.api.scheduled_machine import Manner, ScheduledMachineStatus, Shutdown
from fivespot.core.decision import actions as act
from fivespot.core.decision.decide import decide
from fivespot.core.decision.knowledge import Absent, Present, Unknown
from fivespot.core.decision.manifest import made_of
from fivespot.core.decision.observation import (
    CapiMachineView,
    ClusterView,
    DependentView,
    FoundTaint,
    MachineView,
    NodeView,
    Observation,
    PodView,
    ProviderView,
)
from fivespot.core.decision.policy import DEFAULT_POLICY, Policy
from fivespot.core.decision.reading import read_machine
from fivespot.core.names import (
    CORDONED_BY,
    CREATED_FROM,
    FINALIZER,
    MACHINE_API_VERSION,
    MACHINE_KIND,
    MACHINE_LABEL,
    RECLAIM_REASON,
    RECLAIM_REQUESTED,
    RECLAIM_REQUESTED_AT,
)
from tests.builders import scheduled_machine

NOW: Final = datetime(2026, 3, 2, 12, tzinfo=UTC)
BORN: Final = NOW - timedelta(hours=1)
"""When the CAPI Machine was created."""
NAME: Final = "desk-042"
NAMESPACE: Final = "floor-2"
UID: Final = "uid-machine"
MARK: Final = f"{NAMESPACE}/{NAME}"
GONE: Final = Absent(live=True)
CACHED: Final = Absent()
UNREADABLE: Final = Unknown("PermissionDenied", "403")
UNREACHABLE: Final = Unknown("ChildClusterUnreachable", "connection refused")
HOUR: Final = timedelta(hours=1)
SECOND: Final = timedelta(seconds=1)


def machine(
    status: ScheduledMachineStatus | None = None,
    *,
    annotations: dict[str, str] | None = None,
    deleting: bool = False,
    finalizer: bool = True,
    **spec: Any,
) -> MachineView:
    """A ScheduledMachine; `spec` replaces or adds fields of its spec, as in a manifest."""
    document = scheduled_machine(NAME, **spec)
    meta = Metadata(
        name=NAME,
        namespace=NAMESPACE,
        uid=UID,
        resource_version="7",
        generation=3,
        annotations=annotations or {},
        finalizers=(FINALIZER,) if finalizer else (),
        created_at=BORN,
        deleting_since=NOW if deleting else None,
    )
    view = read_machine({**document, "metadata": {"name": NAME, "namespace": NAMESPACE}})
    return attrs.evolve(view, metadata=meta, status=status or ScheduledMachineStatus())


def provider(active: Any = True, *, generation: int = 1, **status: Any) -> Present[ProviderView]:
    """What a provider publishes."""
    return Present(ProviderView(generation=generation, status={"active": active, **status}))


def cluster(**fields: Any) -> Present[ClusterView]:
    """The CAPI Cluster."""
    return Present(ClusterView(**{"generation": 4, **fields}))


def _meta(
    uid: str, *, ours: bool = True, owner: str = UID, owners: tuple[OwnerReference, ...] = (), **more: Any
) -> Metadata:
    mine = OwnerReference(api_version=MACHINE_API_VERSION, kind=MACHINE_KIND, name=NAME, uid=owner)
    deleting = more.pop("deleting", False)
    return Metadata(
        **{
            "name": NAME,
            "namespace": NAMESPACE,
            "uid": uid,
            "resource_version": "11",
            "labels": {MACHINE_LABEL: NAME} if ours else {},
            "owners": (mine, *owners) if ours else owners,
            "created_at": BORN,
            "deleting_since": NOW if deleting else None,
            **more,
        }
    )


_OF_META: Final = ("ours", "owner", "owners", "deleting", "annotations", "labels", "created_at")


def capi(uid: str = "uid-capi", **fields: Any) -> Present[CapiMachineView]:
    """A running CAPI Machine of ours."""
    of_meta = {name: fields.pop(name) for name in _OF_META if name in fields}
    return Present(
        CapiMachineView(
            **{
                "metadata": _meta(uid, **of_meta),
                "api_version": "cluster.x-k8s.io/v1beta2",
                "phase": "Running",
                "bootstrap": ObjectReference(kind="K0sWorkerConfig", name=NAME),
                "infrastructure": ObjectReference(kind="RemoteMachine", name=NAME),
                "provider_id": "metal://desk-042",
                "node_name": "node-1",
                **fields,
            }
        )
    )


def young_capi(**fields: Any) -> Present[CapiMachineView]:
    """One without a Node yet."""
    return capi(**{"phase": "Provisioning", "provider_id": "", "node_name": "", **fields})


TAKER: Final = OwnerReference(
    api_version="cluster.x-k8s.io/v1beta2", kind="Machine", name=NAME, uid="uid-capi", controller=True
)


def bootstrap(*, taken: bool = True, kind: str = "K0sWorkerConfig", **meta: Any) -> Present[DependentView]:
    """The bootstrap object; `taken` by a CAPI Machine."""
    owners = (TAKER,) if taken else ()
    view = DependentView(
        metadata=_meta("uid-bootstrap", owners=owners, **meta),
        api_version="bootstrap.cluster.x-k8s.io/v1beta1",
        kind=kind,
    )
    return Present(view)


def infrastructure(*, taken: bool = True, kind: str = "RemoteMachine", **meta: Any) -> Present[DependentView]:
    """The infrastructure object; `taken` by a CAPI Machine."""
    owners = (TAKER,) if taken else ()
    view = DependentView(
        metadata=_meta("uid-infrastructure", owners=owners, **meta),
        api_version="infrastructure.cluster.x-k8s.io/v1beta1",
        kind=kind,
    )
    return Present(view)


def node(**fields: Any) -> Present[NodeView]:
    """The Ready Node of the machine."""
    return Present(
        NodeView(
            **{
                "name": "node-1",
                "uid": "uid-node",
                "resource_version": "21",
                "provider_id": "metal://desk-042",
                "system_uuid": "system-1",
                "ready": True,
                **fields,
            }
        )
    )


def cordoned(**fields: Any) -> Present[NodeView]:
    """The Node with our cordon."""
    annotations = {CORDONED_BY: MARK, **fields.pop("annotations", {})}
    return node(unschedulable=True, annotations=annotations, **fields)


def requested(at: str | None = None, reason: str = "process-match: java") -> dict[str, str]:
    """The annotations of a reclaim request."""
    time = {RECLAIM_REQUESTED_AT: at} if at is not None else {}
    return {RECLAIM_REQUESTED: "true", RECLAIM_REASON: reason, **time}


def pod(name: str = "web-1", **fields: Any) -> PodView:
    """A pod that has to go."""
    return PodView(**{"namespace": "apps", "name": name, "uid": f"uid-{name}", **fields})


def taint(
    key: str = "example.com/lent", value: str | None = None, effect: str = "NoSchedule", **fields: Any
) -> FoundTaint:
    """A taint on a Node."""
    return FoundTaint(key=key, value=value, effect=effect, **fields)


def down(view: MachineView | None = None, **parts: Any) -> Observation:
    """Nothing exists, and nothing is wanted."""
    found: dict[str, Any] = {
        "machine": view or machine(),
        "provider": provider(active=False),
        "cluster": cluster(),
        "capi_machine": GONE,
        "bootstrap": GONE,
        "infrastructure": GONE,
        "node": GONE,
        "last_node": GONE,
        "last_node_confirmed": True,
        "pods": CACHED,
        **parts,
    }
    return Observation(**found)


def standing(view: MachineView | None = None, **parts: Any) -> Observation:
    """All of a machine exists, as observed for the first time; its Machine was created from this spec."""
    view = view or machine()
    origin = {CREATED_FROM: made_of(view.spec)} if view.spec is not None else {}
    found: dict[str, Any] = {
        "provider": provider(),
        "capi_machine": capi(annotations=origin),
        "bootstrap": bootstrap(),
        "infrastructure": infrastructure(),
        "node": node(),
        **parts,
    }
    return down(view, **found)


def at_rest(obs: Observation, now: datetime = NOW) -> Observation:
    """The same, with the status that is stored once nothing more is written."""
    for _ in range(8):
        decision = decide(obs, now)
        if decision.status == obs.machine.status:
            return obs
        obs = stored(obs, decision)
    message = f"never comes to rest: {obs.machine.status}"
    raise AssertionError(message)


def up(view: MachineView | None = None, **parts: Any) -> Observation:
    """A machine at rest with a Ready Node, on which `parts` have then changed."""
    return attrs.evolve(at_rest(standing(view)), **parts)


def stored(obs: Observation, decision: act.Decision) -> Observation:
    """What is observed once the status was written."""
    return attrs.evolve(obs, machine=attrs.evolve(obs.machine, status=decision.status))


def told(obs: Observation, **spec: Any) -> Observation:
    """The same after an edit of the spec."""
    edited = machine(obs.machine.status, **spec)
    return attrs.evolve(obs, machine=attrs.evolve(edited, metadata=obs.machine.metadata))


def with_meta(obs: Observation, **metadata: Any) -> Observation:
    """The same after a change of the machine's metadata."""
    meta = attrs.evolve(obs.machine.metadata, **metadata)
    return attrs.evolve(obs, machine=attrs.evolve(obs.machine, metadata=meta))


def with_status(obs: Observation, **fields: Any) -> Observation:
    """The same with other values in the stored status."""
    status = attrs.evolve(obs.machine.status, **fields)
    return attrs.evolve(obs, machine=attrs.evolve(obs.machine, status=status))


def deleted(obs: Observation) -> Observation:
    """The same once somebody deleted the object."""
    return with_meta(obs, deleting_since=NOW)


def shutdown(since: datetime = NOW, **fields: Any) -> Shutdown:
    """A removal that began at `since` under the default bounds of five minutes."""
    five = timedelta(minutes=5)
    return Shutdown(
        **{
            "started_at": since,
            "cause": "Provider",
            "drain_deadline": since + five,
            "deadline": since + five,
            **fields,
        }
    )


def leaving(
    *pods: PodView, view: MachineView | None = None, removal: Shutdown | None = None, **parts: Any
) -> Observation:
    """A graceful removal whose intent is stored: the Node is cordoned, its pods are listed."""
    found = {"provider": provider(active=False), "node": cordoned(), "pods": Present(pods), **parts}
    return with_status(up(view, **found), shutdown=removal or shutdown())


def leaving_now(*pods: PodView, **parts: Any) -> Observation:
    """A removal without grace whose intent is stored: a kill."""
    obs = told(leaving(*pods, **{"node": node(), **parts}), killSwitch=True)
    return with_status(obs, shutdown=shutdown(manner=Manner.NOW, cause="KillSwitch"))


def actions(decision: act.Decision) -> tuple[act.Action, ...]:
    """All actions, in order."""
    return tuple(action for group in decision.groups for action in group.actions)


def kinds(decision: act.Decision) -> list[str]:
    """The names of all actions, in order; of those on the three objects with the role."""
    return [_kind(action) for action in actions(decision)]


def _kind(action: act.Action) -> str:
    name = type(action).__name__
    return (
        f"{name} {action.role.value}"
        if isinstance(action, act.Create | act.Delete | act.AdoptOwner)
        else name
    )


def events(decision: act.Decision) -> list[str]:
    """The reasons of all events."""
    return [event.reason for event in decision.events]


def condition(status: ScheduledMachineStatus, of_type: str) -> Condition:
    """A condition that must be there."""
    return next(entry for entry in status.conditions if entry.type == of_type)


def reason(decision: act.Decision) -> str:
    """The reason of Ready."""
    return condition(decision.status, "Ready").reason


def look(
    obs: Observation, now: datetime = NOW, policy: Policy = DEFAULT_POLICY, **policies: Any
) -> act.Decision:
    """Decide at noon, under the default policy but for `policies`."""
    return decide(obs, now, attrs.evolve(policy, **policies))


def follow(obs: Observation, now: datetime = NOW, **policies: Any) -> tuple[Observation, act.Decision]:
    """The next pass, and what is observed after its status was written; nothing was performed."""
    decision = look(obs, now, **policies)
    return stored(obs, decision), decision
