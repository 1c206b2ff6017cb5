"""Manifests with sane defaults, and small changes to them: what a test says is what differs."""

import copy
import re
from collections.abc import Mapping
from typing import Any

Manifest = dict[str, Any]

ABSENT = object()
"""As a changed value: the field is not there at all."""

_MACHINE_GROUP = "5spot.finos.org/v1beta1"
_PROVIDER_GROUP = "spotschedules.5spot.finos.org/v1alpha1"
_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


def scheduled_machine(name: str = "desk-042", **spec: Any) -> Manifest:
    """A ScheduledMachine with every required field; `spec` replaces or adds fields of its spec."""
    return {
        "apiVersion": _MACHINE_GROUP,
        "kind": "ScheduledMachine",
        "metadata": {"name": name},
        "spec": {
            "schedule": reference(),
            "clusterName": "grid",
            "bootstrapSpec": {
                "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
                "kind": "K0sWorkerConfig",
                "spec": {"version": "v1.31.2+k0s.0"},
            },
            "infrastructureSpec": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                "kind": "RemoteMachine",
                "spec": {"address": "192.0.2.42", "port": 22, "user": "k0s", "sshKeyRef": {"name": "ssh"}},
            },
            **spec,
        },
    }


def time_based(name: str = "nights", **spec: Any) -> Manifest:
    """A TimeBasedSpotSchedule of working hours in UTC."""
    return provider("TimeBasedSpotSchedule", name, daysOfWeek=["mon-fri"], hoursOfDay=["9-17"], **spec)


def capital_markets(name: str = "market", **spec: Any) -> Manifest:
    """A CapitalMarketsSchedule of one session."""
    session = {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-15"]}
    return provider("CapitalMarketsSchedule", name, **{"sessions": [session], **spec})


def manual(name: str = "toggle", **spec: Any) -> Manifest:
    """A ManualSpotSchedule that says yes."""
    return provider("ManualSpotSchedule", name, **{"active": True, **spec})


def composite(name: str = "both", **spec: Any) -> Manifest:
    """A CompositeSpotSchedule of two members."""
    members = [reference("nights"), reference("toggle", kind="ManualSpotSchedule")]
    return provider("CompositeSpotSchedule", name, **(spec or {"allOf": members}))


def prometheus(name: str = "idle", **spec: Any) -> Manifest:
    """A PrometheusSpotSchedule."""
    return provider(
        "PrometheusSpotSchedule",
        name,
        **{"url": "https://prometheus:9090", "query": "sum(load) < bool 1", **spec},
    )


def provider(kind: str, name: str, **spec: Any) -> Manifest:
    """A provider of any kind."""
    return {"apiVersion": _PROVIDER_GROUP, "kind": kind, "metadata": {"name": name}, "spec": spec}


def reference(name: str = "nights", kind: str = "TimeBasedSpotSchedule") -> Manifest:
    """How a machine or a composite names a provider."""
    return {"apiVersion": _PROVIDER_GROUP, "kind": kind, "name": name}


def changed(manifest: Manifest, changes: Mapping[str, Any]) -> Manifest:
    """A copy with some fields changed; a path such as `spec.windows[0].start` makes the mappings that are missing."""
    found = copy.deepcopy(manifest)
    for path, value in changes.items():
        _set(found, path, value)
    return found


def _set(manifest: Any, path: str, value: Any) -> None:
    *steps, last = [int(index) if index else name for index, name in _STEP.findall(path)]
    for step in steps:
        if isinstance(manifest, dict) and not isinstance(manifest.get(step), dict | list):
            manifest[step] = {}
        manifest = manifest[step]
    if value is ABSENT:
        del manifest[last]
    else:
        manifest[last] = value
