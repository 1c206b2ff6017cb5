"""From raw objects to views: strict where an object is ours to change, and never surprised by anybody else's."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.core.api.codec import encode
from fivespot.core.api.scheduled_machine import DrainTimeout, ScheduledMachineStatus
from fivespot.core.decision import reading
from fivespot.core.decision.observation import FoundTaint, MachineView
from fivespot.core.errors import InvalidSpec
from tests.builders import ABSENT, changed, scheduled_machine
from tests.core.decision.observations import up

_META = {"name": "desk-042", "namespace": "floor-2", "uid": "u"}


def _read(**changes: Any) -> MachineView:
    return reading.read_machine(
        changed(scheduled_machine(), {f"spec.{name}": value for name, value in changes.items()})
    )


# The ScheduledMachine


def test_a_valid_machine_steers_by_its_spec() -> None:
    view = _read(
        enabled=False,
        killSwitch=True,
        nodeDrainTimeout="0s",
        onDrainTimeout="Hold",
        reclaim={"rejoinAfter": "2h"},
    )
    assert view.spec is not None
    assert view.problems == ()
    intent = view.intent
    assert (intent.enabled, intent.kill_switch, intent.node_drain_timeout.seconds) == (False, True, 0)
    assert (intent.on_drain_timeout, intent.reclaim_enabled) == (DrainTimeout.HOLD, True)
    assert intent.rejoin_after is not None


@pytest.mark.parametrize(("commands", "enabled"), [(ABSENT, False), ([], False), (["java"], True)])
def test_commands_that_are_absent_or_empty_mean_no_emergency_path(commands: Any, enabled: bool) -> None:
    document = scheduled_machine() if commands is ABSENT else scheduled_machine(killIfCommands=commands)
    assert reading.read_machine(document).intent.reclaim_enabled is enabled


@pytest.mark.parametrize(
    "broken", [{"priority": 1000}, {"bootstrapSpec": None}, {"nodeTaints": "x"}, {"clusterName": 7}]
)
def test_an_invalid_machine_can_still_be_killed_disabled_and_reclaimed(broken: dict[str, Any]) -> None:
    view = _read(
        **broken,
        enabled=False,
        killSwitch=True,
        killIfCommands=["java"],
        onDrainTimeout="Hold",
        gracefulShutdownTimeout="90s",
    )
    assert view.spec is None
    assert view.problems
    intent = view.intent
    assert (intent.enabled, intent.kill_switch, intent.reclaim_enabled) == (False, True, True)
    assert (intent.on_drain_timeout, intent.graceful_shutdown_timeout.seconds) == (DrainTimeout.HOLD, 90)
    assert intent.schedule is not None
    assert view.made_of == ""


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("enabled", "false"),
        ("killSwitch", "true"),
        ("gracefulShutdownTimeout", "1d"),
        ("nodeDrainTimeout", -1),
        ("onDrainTimeout", "Never"),
    ],
)
def test_a_field_that_cannot_be_read_has_its_default(field: str, value: Any) -> None:
    intent = _read(**{field: value}).intent
    assert (intent.enabled, intent.kill_switch, intent.on_drain_timeout) == (True, False, DrainTimeout.FORCE)
    assert (intent.graceful_shutdown_timeout.seconds, intent.node_drain_timeout.seconds) == (300, 300)


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        (ABSENT, None),
        ({"name": "lab", "key": "kubeconfig"}, ("lab", "kubeconfig")),
        ({"name": "lab"}, ("lab", "value")),
        ({"name": 7}, ("", "value")),
        ("lab", ("", "value")),
    ],
)
def test_an_invalid_machine_looks_into_no_other_cluster_than_it_named(
    reference: Any, found: tuple[str, str] | None
) -> None:
    """Without a reference another Secret counts; one that cannot be read is not without."""
    more = {} if reference is ABSENT else {"kubeconfigSecretRef": reference}
    view = _read(priority=1000, **more)
    assert view.spec is None
    named = view.intent.kubeconfig_secret_ref
    assert (named and (named.name, named.key)) == found


@pytest.mark.parametrize("group", ["evil.example.com/v1", "spotschedules.5spot.finos.org.evil/v1", "v1", ""])
def test_a_provider_of_another_group_is_none(group: str) -> None:
    view = _read(schedule={"apiVersion": group, "kind": "X", "name": "x"})
    assert view.intent.schedule is None


@pytest.mark.parametrize("spec", [None, "x", [], 7])
def test_a_spec_that_is_no_object_is_invalid_and_changes_nothing(spec: Any) -> None:
    view = reading.read_machine({"metadata": _META, "spec": spec})
    assert (view.spec, view.intent.enabled, view.intent.kill_switch) == (None, True, False)


def test_a_status_comes_back_as_it_was_written() -> None:
    status = up().machine.status
    wire = encode(status, nulls=True)
    assert reading.read_machine({**scheduled_machine(), "status": wire}).status == status


def test_a_machine_without_status_has_an_empty_one() -> None:
    assert reading.read_machine(scheduled_machine()).status == ScheduledMachineStatus()


@pytest.mark.parametrize("status", [{"reclaim": "x"}, {"shutdown": {"manner": "Slow"}}, "x", {"phase": 7}])
def test_a_status_that_cannot_be_read_is_not_the_same_as_none(status: Any) -> None:
    with pytest.raises(InvalidSpec, match="status"):
        reading.read_machine({**scheduled_machine(), "status": status})


def test_a_machine_tells_what_it_is_made_of() -> None:
    assert _read().made_of == _read(priority=7, nodeDrainTimeout="1s").made_of
    assert _read().made_of != _read(version="v1.32.0").made_of


@pytest.mark.parametrize("changes", [{"status.phase": "Active"}, {"metadata.resourceVersion": "8"}])
def test_what_is_read_again_is_what_would_be_read_anew(changes: dict[str, Any]) -> None:
    meta = {"metadata.uid": "u1", "metadata.generation": 3}
    before = reading.read_machine(changed(scheduled_machine(), meta))
    document = changed(scheduled_machine(), meta | changes)
    assert reading.read_machine(document, before) == reading.read_machine(document)
    assert reading.read_machine(document, before).spec is before.spec


@pytest.mark.parametrize(
    "changes", [{"metadata.generation": 4}, {"metadata.uid": "u2"}, {"metadata.generation": 0}]
)
def test_another_generation_or_another_object_is_read_anew(changes: dict[str, Any]) -> None:
    meta = {"metadata.uid": "u1", "metadata.generation": changes.get("metadata.generation", 3) and 3}
    before = reading.read_machine(changed(scheduled_machine(), meta))
    document = changed(scheduled_machine(), meta | changes | {"spec.killSwitch": True})
    assert reading.read_machine(document, before).intent.kill_switch


# Cluster API's objects


def _capi(**changes: Any) -> dict[str, Any]:
    document = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": _META,
        "spec": {
            "providerID": "metal://1",
            "bootstrap": {
                "configRef": {
                    "apiGroup": "bootstrap.cluster.x-k8s.io",
                    "kind": "K0sWorkerConfig",
                    "name": "desk-042",
                }
            },
            "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io",
                "kind": "RemoteMachine",
                "name": "desk-042",
            },
        },
        "status": {"phase": "Running", "nodeRef": {"name": "node-1"}},
    }
    return changed(document, changes)


def test_a_machine_of_either_version_is_read() -> None:
    new = reading.read_capi_machine(_capi())
    assert (new.provider_id, new.node_name, new.phase, new.failure) == ("metal://1", "node-1", "Running", "")
    assert new.bootstrap is not None
    assert (new.bootstrap.kind, new.bootstrap.name) == ("K0sWorkerConfig", "desk-042")
    old = {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "RemoteMachine",
        "name": "x",
        "namespace": "floor-2",
    }
    assert reading.read_capi_machine(_capi(**{"spec.infrastructureRef": old})).infrastructure == attrs.evolve(
        reading.read_capi_machine(_capi()).infrastructure,
        api_version=old["apiVersion"],
        name="x",  # type: ignore[type-var]
    )


@pytest.mark.parametrize("path", ["status.failureReason", "status.deprecated.v1beta1.failureReason"])
def test_terminal_failures_are_found_where_each_version_has_them(path: str) -> None:
    assert (
        reading.read_capi_machine(_capi(**{path: "InsufficientResources"})).failure == "InsufficientResources"
    )


@pytest.mark.parametrize(
    "place", ["status.conditions", "status.v1beta2.conditions"], ids=["v1beta2", "v1beta1"]
)
@pytest.mark.parametrize(("status", "paused"), [("True", True), ("False", False), ("Unknown", False)])
def test_whether_cluster_api_believes_in_a_pause(place: str, status: str, paused: bool) -> None:
    conditions = [{"type": "Ready", "status": "True"}, {"type": "Paused", "status": status}]
    assert reading.read_capi_machine(_capi(**{place: conditions})).paused_condition is paused


def test_a_cluster_is_paused_deleting_and_of_a_generation() -> None:
    view = reading.read_cluster(
        {
            "metadata": {**_META, "generation": 4, "deletionTimestamp": "2026-03-02T12:00:00Z"},
            "spec": {"paused": True},
        }
    )
    assert (view.paused, view.deleting, view.generation) == (True, True, 4)
    assert not reading.read_cluster({"metadata": _META, "spec": {"paused": "true"}}).paused


def test_owners_of_a_dependent_are_read() -> None:
    owner = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "name": "desk-042",
        "uid": "m",
        "controller": True,
    }
    view = reading.read_dependent(
        {"kind": "RemoteMachine", "metadata": {**_META, "ownerReferences": [owner]}}
    )
    assert view.metadata.owners[0].controller


# The child cluster


def _node(**changes: Any) -> dict[str, Any]:
    document = {
        "metadata": {"name": "node-1", "uid": "n", "resourceVersion": "21"},
        "spec": {
            "providerID": "metal://1",
            "unschedulable": True,
            "taints": [{"key": "a", "effect": "NoExecute", "timeAdded": "2026-03-02T12:00:00Z"}],
        },
        "status": {
            "nodeInfo": {"systemUUID": "s"},
            "conditions": [{"type": "Ready", "status": "True"}],
            "volumesAttached": [{"name": "v", "devicePath": ""}],
        },
    }
    return changed(document, changes)


def test_a_node_is_read_with_all_that_kubernetes_noted_on_its_taints() -> None:
    view = reading.read_node(_node())
    assert (view.ready, view.reachable, view.unschedulable, view.system_uuid) == (True, True, True, "s")
    assert view.taints == (FoundTaint(key="a", effect="NoExecute", time_added="2026-03-02T12:00:00Z"),)
    assert view.volumes_attached == ("v",)


@pytest.mark.parametrize(
    ("status", "ready", "reachable"),
    [("True", True, True), ("False", False, True), ("Unknown", False, False), (None, False, True)],
)
def test_a_kubelet_that_stopped_reporting_is_told_from_one_that_is_not_ready(
    status: str | None, ready: bool, reachable: bool
) -> None:
    view = reading.read_node(_node(**{"status.conditions": [{"type": "Ready", "status": status}]}))
    assert (view.ready, view.reachable) == (ready, reachable)


@pytest.mark.parametrize(
    ("changes", "fact"),
    [
        ({"metadata.annotations": {"kubernetes.io/config.mirror": "x"}}, "mirror"),
        ({"metadata.ownerReferences": [{"kind": "DaemonSet", "name": "d", "controller": True}]}, "daemon"),
        ({"status.phase": "Succeeded"}, "finished"),
        ({"status.phase": "Failed"}, "finished"),
        ({"metadata.deletionTimestamp": "2026-03-02T12:00:00Z"}, "deleting"),
    ],
)
def test_what_matters_about_a_pod(changes: dict[str, Any], fact: str) -> None:
    document = {
        "metadata": _META,
        "spec": {"terminationGracePeriodSeconds": 7},
        "status": {"phase": "Running"},
    }
    plain, special = reading.read_pod(document), reading.read_pod(changed(document, changes))
    facts = ("mirror", "daemon", "finished", "deleting")
    assert [getattr(plain, name) for name in facts] == [False] * 4
    assert [name for name in facts if getattr(special, name)] == [fact]
    assert (plain.grace_seconds, reading.read_pod({"metadata": _META}).grace_seconds) == (7, 30)


def test_a_pod_that_a_daemon_set_does_not_control_is_no_daemon() -> None:
    owners = [{"kind": "DaemonSet", "name": "d"}, {"kind": "ReplicaSet", "name": "r", "controller": True}]
    assert not reading.read_pod({"metadata": {**_META, "ownerReferences": owners}}).daemon


# Garbage

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_FIELDS = st.sampled_from(
    ["metadata", "metadata.labels", "metadata.annotations", "metadata.ownerReferences", "spec", "spec.bootstrap",
     "spec.bootstrap.configRef", "spec.infrastructureRef", "spec.providerID", "spec.taints", "spec.paused",
     "spec.terminationGracePeriodSeconds", "status", "status.conditions", "status.nodeRef", "status.nodeInfo",
     "status.deprecated", "status.v1beta2", "status.volumesAttached", "status.failureReason", "apiVersion", "kind"]
)  # fmt: skip


@pytest.mark.parametrize(
    "read",
    [
        reading.read_capi_machine,
        reading.read_cluster,
        reading.read_dependent,
        reading.read_node,
        reading.read_pod,
        reading.read_provider,
    ],
)
@given(st.dictionaries(_FIELDS, _JSON, max_size=4))
def test_any_object_is_read_or_refused(read: Callable[[Any], Any], changes: dict[str, Any]) -> None:
    paths = [path for path in changes if not any(path.startswith(f"{other}.") for other in changes)]
    for base in (_capi(), _node()):
        document = changed(base, {path: changes[path] for path in paths})
        assert _is_read_or_refused(read, document)


def _is_read_or_refused(read: Callable[[Any], Any], document: Any) -> bool:
    try:
        return attrs.has(type(read(document)))
    except InvalidSpec as error:
        return error.field.startswith("metadata")


@given(st.dictionaries(st.sampled_from(sorted(scheduled_machine()["spec"])), _JSON, max_size=3))
def test_any_spec_leaves_a_machine_that_can_be_looked_at(changes: dict[str, Any]) -> None:
    document = {**scheduled_machine(), "spec": {**scheduled_machine()["spec"], **changes}}
    view = reading.read_machine(document)
    assert (view.spec is None) == bool(view.problems)


def test_instants_of_metadata_are_utc() -> None:
    view = reading.read_dependent({"metadata": {**_META, "creationTimestamp": "2026-03-02T07:00:00-05:00"}})
    assert view.metadata.created_at == datetime(2026, 3, 2, 12, tzinfo=UTC)
