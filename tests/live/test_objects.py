"""What a real API server stores of our objects, and how kubectl shows them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml

from fivespot.core.api.codec import decode, encode
from fivespot.core.api.kinds import KINDS, Kind
from fivespot.core.api.providers import ProviderStatus
from fivespot.core.api.scheduled_machine import ScheduledMachine, ScheduledMachineStatus
from tests import builders
from tests.builders import Manifest, changed
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.waiting import wait_until
from tests.parity.server import NAMESPACE, Server

CRDS = sorted((Path(__file__).parents[2] / "deploy" / "crds").glob("*.yaml"))
INSTANT = "2026-03-02T09:00:00Z"

FULL_STATUS: Manifest = {
    "phase": "ShuttingDown",
    "ready": False,
    "inSchedule": False,
    "message": "two pods are left",
    "observedGeneration": 3,
    "decidedBy": "Provider",
    "conditions": [
        {
            "type": "Ready",
            "status": "False",
            "reason": "NodeDraining",
            "message": "two pods are left",
            "lastTransitionTime": INSTANT,
            "observedGeneration": 3,
        }
    ],
    "machineRef": {
        "apiVersion": "cluster.x-k8s.io/v1beta1",
        "kind": "Machine",
        "name": "desk-042",
        "uid": "u1",
    },
    "bootstrapRef": {
        "apiVersion": "k0smotron.io/v1beta1",
        "kind": "K0sWorkerConfig",
        "name": "desk-042",
        "uid": "u2",
    },
    "infrastructureRef": {"apiVersion": "k0smotron.io/v1beta1", "kind": "RemoteMachine", "name": "desk-042"},
    "nodeRef": {"apiVersion": "v1", "kind": "Node", "name": "desk-042", "uid": "u4", "cluster": "grid"},
    "lastNode": {"cluster": "grid", "name": "desk-042", "uid": "u4", "systemUUID": "s"},
    "providerID": "remote-machine://192.0.2.42",
    "appliedNodeTaints": [{"key": "example.com/spot", "effect": "NoSchedule"}],
    "lastScheduledTime": INSTANT,
    "nextActivation": INSTANT,
    "nextCleanup": INSTANT,
    "nextTransition": INSTANT,
    "spotSchedule": {
        "resolved": False,
        "active": False,
        "reason": "ProviderNotFound",
        "message": "no such object",
        "heldFrom": "TimeBasedSpotSchedule/nights",
        "lastTransitionTime": INSTANT,
    },
    "shutdown": {
        "startedAt": INSTANT,
        "cause": "Provider",
        "manner": "Graceful",
        "drainDeadline": INSTANT,
        "deadline": INSTANT,
        "drainedAt": INSTANT,
        "cordoned": True,
        "remainingPods": 2,
        "blockedBy": ["default/web (web-budget)"],
    },
    "reclaim": {
        "state": "Held",
        "reason": "process-match: java",
        "requestedAt": "whenever",
        "observedAt": INSTANT,
        "podsDeletedAt": INSTANT,
        "node": {"name": "desk-042", "uid": "u4"},
        "history": [{"observedAt": INSTANT, "heldAt": INSTANT, "reason": "process-match: java"}],
        "holdUntil": INSTANT,
        "staleClearedFor": "u0",
    },
    "provisioning": {"startedAt": INSTANT, "attempt": 2, "replacing": "u0", "notBefore": INSTANT},
}
"""A value for every field that a status may have."""

PROVIDERS = {
    "TimeBasedSpotSchedule": builders.time_based,
    "CapitalMarketsSchedule": builders.capital_markets,
    "ManualSpotSchedule": builders.manual,
    "CompositeSpotSchedule": builders.composite,
    "PrometheusSpotSchedule": builders.prometheus,
}


@pytest.fixture(scope="module")
def server(control_plane: ControlPlane) -> Iterator[Server]:
    with Server(control_plane.url, control_plane.ca_file, control_plane.folder / "admin.pem") as server:
        server.install_all(CRDS)
        yield server


@pytest.fixture
def machine(server: Server) -> Iterator[Manifest]:
    manifest = builders.scheduled_machine(f"desk-{uuid4().hex[:8]}")
    assert server.create(manifest, dry_run=False).accepted
    yield manifest
    server.delete(manifest)


def stored(server: Server, manifest: Manifest) -> dict[str, Any]:
    return dict(server.read(manifest).document)


@pytest.mark.parametrize("written", [None, [], ["java"]], ids=["absent", "empty", "set"])
def test_kill_if_commands_absent_empty_and_set_stay_apart(server: Server, written: list[str] | None) -> None:
    manifest = builders.scheduled_machine(f"desk-{uuid4().hex[:8]}", killIfCommands=written)
    try:
        assert server.create(manifest, dry_run=False).accepted
        spec = decode(stored(server, manifest), ScheduledMachine).spec
    finally:
        server.delete(manifest)
    assert spec.kill_if_commands == (None if written is None else tuple(written))


def test_every_field_of_a_status_is_stored_as_it_was_encoded(server: Server, machine: Manifest) -> None:
    status = decode(FULL_STATUS, ScheduledMachineStatus)
    assert encode(status) == changed(FULL_STATUS, {}), "the example is not in the form that we write"
    answer = server.merge_status(machine, encode(status, nulls=True))
    assert answer.accepted, answer.message
    assert not answer.warning
    assert stored(server, machine)["status"] == FULL_STATUS
    assert decode(stored(server, machine), ScheduledMachine).status == status


def test_the_nulls_of_an_empty_status_clear_what_was_there(server: Server, machine: Manifest) -> None:
    assert server.merge_status(
        machine, encode(decode(FULL_STATUS, ScheduledMachineStatus), nulls=True)
    ).accepted
    answer = server.merge_status(machine, encode(ScheduledMachineStatus(), nulls=True))
    assert answer.accepted, answer.message
    assert stored(server, machine)["status"] == {"conditions": [], "appliedNodeTaints": []}


def test_a_status_that_says_the_same_again_writes_nothing(server: Server, machine: Manifest) -> None:
    written = encode(decode(FULL_STATUS, ScheduledMachineStatus), nulls=True)
    first = server.merge_status(machine, written).document
    again = server.merge_status(machine, written).document
    assert first["metadata"]["resourceVersion"] == again["metadata"]["resourceVersion"]


def test_defaults_of_the_server_are_those_of_the_model(server: Server, machine: Manifest) -> None:
    assert (
        decode(stored(server, machine)["spec"], type(decode(machine, ScheduledMachine).spec))
        == decode(machine, ScheduledMachine).spec
    )


def table(control_plane: ControlPlane, kind: Kind, name: str) -> dict[str, str]:
    """The one row that `kubectl get` prints, by column."""
    lines = control_plane.kubectl("get", kind.short, name, "-n", NAMESPACE).splitlines()
    header, row = lines
    starts = [word.start() for word in re.finditer(r"\S+", header)]
    ends = [*starts[1:], None]
    return {
        header[start:end].strip(): row[start:end].strip() for start, end in zip(starts, ends, strict=True)
    }


def test_kubectl_shows_a_machine(control_plane: ControlPlane, server: Server, machine: Manifest) -> None:
    assert server.merge_status(machine, FULL_STATUS).accepted
    row = table(control_plane, KINDS[0], machine["metadata"]["name"])
    age = row.pop("AGE")
    assert age.endswith("s")
    assert row == {
        "NAME": machine["metadata"]["name"],
        "PHASE": "ShuttingDown",
        "READY": "false",
        "INSCHEDULE": "false",
        "ENABLED": "true",
        "SCHEDULE": "TimeBasedSpotSchedule",
        "REASON": "Provider",
        "NEXT": INSTANT,
        "KILLSWITCH": "false",
    }


@pytest.mark.parametrize("kind", KINDS[1:], ids=lambda kind: kind.name)
def test_kubectl_shows_a_provider(control_plane: ControlPlane, server: Server, kind: Kind) -> None:
    manifest = PROVIDERS[kind.name](f"shown-{uuid4().hex[:8]}")
    status = {
        "active": True,
        "nextTransitionTime": INSTANT,
        "observedGeneration": 1,
        "effectiveTimezone": "UTC",
    }
    assert server.create(manifest, dry_run=False).accepted
    try:
        answer = server.merge_status(manifest, encode(decode(status, ProviderStatus), nulls=True))
        assert answer.accepted, answer.message
        row = table(control_plane, kind, manifest["metadata"]["name"])
    finally:
        server.delete(manifest)
    assert row.pop("AGE")
    expected = {"NAME": manifest["metadata"]["name"], "ACTIVE": "true", "NEXTTRANSITION": INSTANT}
    if kind.name == "TimeBasedSpotSchedule":
        expected["ENABLED"] = "true"
    if kind.name in {"TimeBasedSpotSchedule", "CapitalMarketsSchedule"}:
        expected["TIMEZONE"] = "UTC"
    assert row == expected


def test_kubectl_gets_all_of_ours_by_category(
    control_plane: ControlPlane, server: Server, machine: Manifest
) -> None:
    found = control_plane.kubectl("get", "fivespot", "-n", NAMESPACE, "-o", "name")
    assert f"scheduledmachine.5spot.finos.org/{machine['metadata']['name']}" in found


def test_kubectl_explains_a_field(control_plane: ControlPlane, server: Server) -> None:
    wait_until(
        lambda: (
            "Order in which machines" in control_plane.kubectl("explain", "sm.spec.priority", check=False)
        ),
        seconds=30,
        what="the server publishes the schema",
    )


@pytest.mark.parametrize("path", CRDS, ids=[path.stem for path in CRDS])
def test_kubectl_applies_the_committed_file(control_plane: ControlPlane, server: Server, path: Path) -> None:
    name = yaml.safe_load(path.read_text())["metadata"]["name"]
    control_plane.kubectl(
        "apply",
        "--server-side",
        "--force-conflicts",
        "--validate=strict",
        "--dry-run=server",
        "-f",
        str(path),
    )
    assert control_plane.kubectl("get", "crd", name, "-o", "name").strip().endswith(name)
