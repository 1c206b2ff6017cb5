"""How long it takes to read one ScheduledMachine with a full status from the bytes of a watch event."""

import json
from typing import Any

import msgspec
from pytest_benchmark.fixture import BenchmarkFixture

from fivespot.core.api.codec import decode
from fivespot.core.api.scheduled_machine import ScheduledMachine
from tests import builders

_CONDITIONS = (
    "Ready",
    "Scheduled",
    "SpotScheduleResolved",
    "MachineReady",
    "ReferencesValid",
    "NodeTainted",
    "ChildClusterReachable",
)


def machine() -> bytes:
    """An active machine as an API server sends it, without `managedFields`."""
    at = "2026-03-02T09:00:00Z"
    document: dict[str, Any] = builders.scheduled_machine(
        enabled=True,
        priority=60,
        gracefulShutdownTimeout="10m",
        nodeDrainTimeout="5m",
        onDrainTimeout="Force",
        killSwitch=False,
        killIfCommands=["java", "idea"],
        nodeTaints=[{"key": "example.com/spot", "value": "yes", "effect": "NoSchedule"}],
        machineTemplate={"labels": {"role": "spot"}, "annotations": {}},
    )
    document["metadata"] |= {
        "namespace": "trading",
        "uid": "8a3c4c0e-4b0a-4d9e-8a53-0c4f5b8f3a11",
        "resourceVersion": "123456",
        "generation": 3,
        "creationTimestamp": at,
        "labels": {"team": "fx"},
        "finalizers": ["5spot.finos.org/scheduledmachine"],
    }
    document["status"] = {
        "phase": "Active",
        "ready": True,
        "inSchedule": True,
        "message": "the machine is in the cluster",
        "observedGeneration": 3,
        "decidedBy": "Provider",
        "conditions": [
            {
                "type": name,
                "status": "True",
                "reason": "Resolved",
                "message": "as it should be",
                "lastTransitionTime": at,
                "observedGeneration": 3,
            }
            for name in _CONDITIONS
        ],
        **{
            name: {"apiVersion": "example.com/v1", "kind": "Kind", "name": "desk-042", "uid": "u"}
            for name in ("machineRef", "bootstrapRef", "infrastructureRef", "nodeRef")
        },
        "lastNode": {"cluster": "grid", "name": "desk-042", "uid": "u", "systemUUID": "s"},
        "providerID": "remote-machine://192.0.2.42",
        "appliedNodeTaints": [{"key": "example.com/spot", "value": "yes", "effect": "NoSchedule"}],
        "lastScheduledTime": at,
        "nextCleanup": "2026-03-02T18:00:00Z",
        "nextTransition": "2026-03-02T18:00:00Z",
        "spotSchedule": {"resolved": True, "active": True, "reason": "Resolved", "lastTransitionTime": at},
    }
    return json.dumps(document).encode()


def test_json_alone(benchmark: BenchmarkFixture) -> None:
    benchmark(msgspec.json.decode, machine())


def test_bytes_to_model(benchmark: BenchmarkFixture) -> None:
    raw = machine()
    benchmark(lambda: decode(msgspec.json.decode(raw), ScheduledMachine))


def test_bytes_to_model_of_a_machine_without_status(benchmark: BenchmarkFixture) -> None:
    raw = json.dumps(builders.scheduled_machine()).encode()
    benchmark(lambda: decode(msgspec.json.decode(raw), ScheduledMachine))
