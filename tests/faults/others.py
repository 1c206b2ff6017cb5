"""What others do in a cluster: Cluster API and its providers, kubelets, and the garbage collector of owner references.

Each looks at what is there and does its next step a moment later, so that between any two steps something else may happen.
They work on the stores, not through requests: every request that a server hears is the product's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from fivespot.adapters.kube.resources import Object
from fivespot.core.names import PAUSED
from tests.fakeapi import FakeApi
from tests.fakeapi.store import Change, Key
from tests.faults.setting import NAMESPACE
from tests.faults.site import BOOTSTRAPS, CAPI, CLUSTER, HOSTS, MACHINES

CLUSTERS = "clusters.cluster.x-k8s.io"
MADE = (CAPI, HOSTS, BOOTSTRAPS)
"""What is created for a machine, in the order in which it goes."""
STEP = 0.3
JOINS = 4.0
ENDS = 1.0
"""Seconds: between steps of Cluster API, until a new host's kubelet is there, and until a pod has ended."""
_FINALIZER = "machine.cluster.x-k8s.io"


class Others:
    """Everybody but the product.

    Attributes:
        reaches_child: whether Cluster API reaches the child cluster.
        collects: whether the garbage collector is at work.
        slow_pods: names of pods that take their whole grace period to end.
        joins: whether hosts get their Nodes.
        adopts: whether Cluster API does anything about Machines.
    """

    def __init__(self, management: FakeApi, children: Mapping[str, FakeApi]) -> None:
        self.reaches_child = True
        self.collects = True
        self.joins = True
        self.adopts = True
        self.slow_pods: set[str] = set()
        self._management, self._children = management.world.store, children
        self._timers: set[asyncio.TimerHandle] = set()
        self._booting: set[str] = set()

    def close(self) -> None:
        """Do nothing more."""
        for timer in self._timers:
            timer.cancel()

    def notice(self, change: Change) -> None:
        """Something has changed in either cluster."""
        resource, key, new = change.resource, change.key, change.new
        if resource in MADE:
            self._later(STEP, self._reconcile, key)
        if resource == CLUSTERS:
            self.look_again()
        if resource in (CAPI, MACHINES) and new is None:
            self._later(STEP, self.collect)
        if resource == "pods" and new is not None and _going(new) and not _going(change.old or {}):
            grace = float(new["metadata"].get("deletionGracePeriodSeconds") or 0)
            self._later(
                grace if key[1] in self.slow_pods else min(ENDS, grace), self._end_pod, key, _uid(new)
            )
        if resource == "nodes" and new is None:
            self._later(STEP, self._end_pods_of, key[1])

    def _later(self, seconds: float, what: Callable[..., None], *arguments: Any) -> None:
        def now() -> None:
            self._timers.discard(timer)
            what(*arguments)

        timer = asyncio.get_running_loop().call_later(seconds, now)
        self._timers.add(timer)

    def look_again(self) -> None:
        """Go on with whatever waits for nothing but this."""
        for key, _ in self._management.items(CAPI):
            self._later(STEP, self._reconcile, key)

    # Cluster API and its providers

    def _reconcile(self, key: Key) -> None:
        if not self.adopts:
            return
        machine = self._management.get(CAPI, key)
        if machine is None:
            # A provider whose Machine is gone lets go of what it holds as well.
            for label in (HOSTS, BOOTSTRAPS):
                self._release(label, key)
        elif self._paused(machine):
            return
        elif _going(machine):
            self._take_down(key, machine)
        else:
            self._bring_up(key, machine)

    def _paused(self, machine: Object) -> bool:
        cluster = self._management.get(CLUSTERS, (machine["metadata"]["namespace"], CLUSTER)) or {}
        return PAUSED in (machine["metadata"].get("annotations") or {}) or bool(
            (cluster.get("spec") or {}).get("paused")
        )

    def _bring_up(self, key: Key, machine: Object) -> None:
        owner = {
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Machine",
            "name": key[1],
            "controller": True,
        }
        self._hold(CAPI, key)
        for label in (BOOTSTRAPS, HOSTS):
            self._hold(label, key, {**owner, "uid": _uid(machine)})
        held = all(self._management.get(label, key) is not None for label in (BOOTSTRAPS, HOSTS))
        if (
            held
            and not machine["spec"].get("providerID")
            and self.joins
            and _uid(machine) not in self._booting
        ):
            self._booting.add(_uid(machine))
            self._later(JOINS, self._join, key, _uid(machine))

    def _hold(self, label: str, key: Key, owner: Object | None = None) -> None:
        item = self._management.get(label, key)
        if item is None or _going(item):
            return
        metadata = item["metadata"]
        owners = [o for o in metadata.get("ownerReferences") or [] if o["kind"] != "Machine" or owner is None]
        owners += [owner] if owner is not None else []
        wanted = {**metadata, "finalizers": [_FINALIZER], "ownerReferences": owners}
        if wanted != metadata:
            self._management.put(label, key, {**item, "metadata": wanted})

    def _join(self, key: Key, uid: str) -> None:
        """The host of a Machine becomes a Node."""
        machine = self._management.get(CAPI, key)
        if machine is None or _uid(machine) != uid or _going(machine):
            return
        name = key[1] if key[0] == NAMESPACE else f"{key[0]}-{key[1]}"
        child = self._child_of(machine)
        if child.world.store.get("nodes", ("", name)) is None:
            status = {
                "conditions": [{"type": "Ready", "status": "True"}],
                "nodeInfo": {"systemUUID": f"system-{name}"},
            }
            node = {"metadata": {"name": name}, "spec": {"providerID": f"x://{name}"}, "status": status}
            child.create("v1", "nodes", node)
        status = {**(machine.get("status") or {}), "phase": "Running", "nodeRef": {"name": name}}
        spec = {**machine["spec"], "providerID": f"x://{name}"}
        self._management.put(CAPI, key, {**machine, "spec": spec, "status": status})

    def _take_down(self, key: Key, machine: Object) -> None:
        """Infrastructure, then bootstrap, then the Node, then the Machine, one a step."""
        for label in (HOSTS, BOOTSTRAPS):
            if self._management.get(label, key) is not None:
                self._delete(label, key)
                self._later(STEP, self._release, label, key)
                return
        node = ("", ((machine.get("status") or {}).get("nodeRef") or {}).get("name", ""))
        nodes = self._child_of(machine).world.store
        if self.reaches_child and nodes.get("nodes", node) is not None:
            nodes.remove("nodes", node)
            self._later(STEP, self._reconcile, key)
            return
        self._release(CAPI, key)

    def _child_of(self, machine: Object) -> FakeApi:
        return self._children[machine["spec"]["clusterName"]]

    def _delete(self, label: str, key: Key) -> None:
        item = self._management.get(label, key)
        if item is None or _going(item):
            return
        if not item["metadata"].get("finalizers"):
            self._management.remove(label, key)
            return
        metadata = {**item["metadata"], "deletionTimestamp": "2026-03-02T12:00:00Z"}
        self._management.put(label, key, {**item, "metadata": metadata})

    def _release(self, label: str, key: Key) -> None:
        """Take Cluster API's finalizer off what is going."""
        item = self._management.get(label, key)
        if item is not None and _going(item):
            self._management.remove(label, key)

    # The garbage collector

    def collect(self) -> None:
        """Delete what has owners of which none is there, as the real one does: by uid."""
        if not self.collects:
            return
        there = {_uid(item) for label in (MACHINES, *MADE) for _, item in self._management.items(label)}
        for label in MADE:
            for key, item in self._management.items(label):
                owners = item["metadata"].get("ownerReferences") or []
                if owners and not any(owner["uid"] in there for owner in owners):
                    self._delete(label, key)

    # Kubelets

    def _end_pod(self, key: Key, uid: str) -> None:
        for child in self._children.values():
            pod = child.world.store.get("pods", key)
            if pod is not None and _uid(pod) == uid:
                child.world.store.remove("pods", key)

    def _end_pods_of(self, node: str) -> None:
        for child in self._children.values():
            for key, pod in child.world.store.items("pods"):
                if pod["spec"].get("nodeName") == node:
                    child.world.store.remove("pods", key)


def _going(item: Object) -> bool:
    return bool((item.get("metadata") or {}).get("deletionTimestamp"))


def _uid(item: Object) -> str:
    return str(item["metadata"]["uid"])
