"""A site whose controller may die at any request, and begin anew with nothing but what is stored; and what must hold all the time."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

from fivespot.adapters.kube.control.machines import MachineController
from fivespot.adapters.kube.electing import Timing
from fivespot.adapters.kube.elector import Elector
from fivespot.adapters.kube.errors import LeadershipLost
from fivespot.adapters.kube.resources import Object
from fivespot.cli.leading import at_once
from fivespot.core.names import FINALIZER, MACHINE_LABEL, SYSTEM_NAMESPACE
from tests.fakeapi import FakeApi
from tests.fakeapi.deleting import delete
from tests.fakeapi.faults import Cut
from tests.fakeapi.requests import WRITES, Asked
from tests.fakeapi.store import Change, Key
from tests.fakeapi.world import Target
from tests.faults.others import CLUSTERS, MADE, Others
from tests.faults.setting import DESK, NAMESPACE, gateway_to
from tests.faults.site import CAPI, CLUSTER, MACHINES, Site, site
from tests.faults.virtual import VirtualClock

LEASE = "5spot-leader"
DOWN_FOR = 2.0
"""Seconds between the end of a controller and the beginning of the next."""
WHILE = 30
REST = 45.0
_RESTING = ("Inactive", "Disabled")
"""Phases in which there is nothing left; a machine that is killed is Terminated from the beginning."""


@dataclass(kw_only=True)
class Death:
    """When a controller dies: at the call of that number; once it was carried out and before anybody hears of it, or before it is."""

    call: int
    done: bool


class Call(NamedTuple):
    """A request to either server, how many changes there had been when it came, and when that was: seconds."""

    asked: Asked
    changes: int
    at: int


@dataclass
class Lab(Site):
    """A site on a virtual clock, with everybody else at work in it.

    Attributes:
        children: the child clusters by the names of their Clusters; `child` is the first.
        calls: every request to either server, in order.
        begins: how many there had been when a story came to its own.
        lives: how many controllers there were.
        dead: whether there is none at the moment.
        elected: whether each stands for election before it acts.
        broken: what must not have been.
        strangers: what is nobody's business, by resource and key, with the version that it has to keep.
        vanishing: Machines that a story takes away itself, which needs no reason.
    """

    children: dict[str, FakeApi] = field(init=False)
    others: Others = field(init=False)
    calls: list[Call] = field(default_factory=list)
    begins: int = 0
    lives: int = 0
    dead: bool = False
    elected: bool = False
    broken: list[str] = field(default_factory=list)
    strangers: dict[tuple[str, Key], str] = field(default_factory=dict)
    vanishing: set[str] = field(default_factory=set)
    _seen: set[str] = field(default_factory=set)
    _working: asyncio.Task[None] | None = None
    _stack: AsyncExitStack = field(init=False)

    def __post_init__(self) -> None:
        self.children = {CLUSTER: self.child}
        self.others = Others(self.management, self.children)

    def _others(self, change: Change) -> None:
        self.others.notice(change)

    def happened(self, change: Change) -> None:
        self._look(change)
        super().happened(change)

    # A controller's life

    async def live(self) -> None:
        """A controller begins, knowing nothing."""
        self.lives += 1
        if self.lives > 1:
            self.gateway = await self._stack.enter_async_context(gateway_to(self.management))
            self.controller = MachineController(self.gateway, self.clock, allow_local_child=True)
        self._working = asyncio.ensure_future(self._lead() if self.elected else self.controller.run(at_once))

    async def _lead(self) -> None:
        """As a process that is one of several does."""
        elector = Elector(
            self.gateway.urgent,
            self.clock,
            identity=f"life {self.lives}",
            namespace=SYSTEM_NAMESPACE,
            name=LEASE,
            timing=Timing(),
        )
        self.gateway.fence = elector.left
        async with asyncio.TaskGroup() as group:
            group.create_task(elector.run())
            group.create_task(self.controller.run(elector.won))

    @asynccontextmanager
    async def restarted(self) -> AsyncIterator[None]:
        """Whenever it has ended because it leads no more, another one begins, as a Deployment has it."""

        async def keep() -> None:
            while True:
                await self.live()
                assert self._working is not None
                try:
                    await self._working
                except* LeadershipLost:
                    await self.gateway.close()
                await asyncio.sleep(DOWN_FOR)

        keeping = asyncio.ensure_future(keep())
        try:
            yield
        finally:
            ended = keeping.done()
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            await self.gateway.close()
        assert not ended, f"the controller has ended by itself: {keeping.exception()}"

    async def die(self) -> None:
        """It ends as a process does that is killed: nothing of what it still sends arrives."""
        assert self._working is not None
        deaf = [server.faults.add(Cut(), times=None) for server in (self.management, self.child)]
        self._working.cancel()
        await asyncio.gather(self._working, return_exceptions=True)
        await self.gateway.close()
        for rule in deaf:
            rule.remove()

    async def end(self) -> None:
        """The last one ends, and must not have ended before."""
        assert self._working is not None
        ended = self._working.done()
        await self.die()
        assert not ended, "the controller has ended by itself"

    @asynccontextmanager
    async def counted(self, death: Death | None = None) -> AsyncIterator[None]:
        """Count the calls; have the controller die at one of them, and the next one begin a moment later."""
        doomed = asyncio.Event()

        def is_the_one(asked: Asked) -> bool:
            self.calls.append(Call(asked, len(self.changes), round(self.clock.monotonic())))
            if death is None or len(self.calls) != death.call:
                return False
            # Whoever waits for this has their turn once the call was carried out, and before its answer arrives.
            doomed.set()
            return True

        async def replace() -> None:
            await doomed.wait()
            self.dead = True
            await self.die()
            await asyncio.sleep(DOWN_FOR)
            await self.live()
            self.dead = False

        effect = Cut(after=death is not None and death.done)
        for server in (self.management, self.child):
            server.faults.add(effect, times=None, when=is_the_one)
        replacing = asyncio.ensure_future(replace())
        try:
            yield
        finally:
            replacing.cancel()
            await asyncio.gather(replacing, return_exceptions=True)

    # What stories do

    def begin(self) -> None:
        """What comes from now on is what this story is about."""
        self.begins = len(self.calls)

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self.news.clear()
            await self.news.wait()

    async def rest(self, seconds: float = REST) -> None:
        await asyncio.sleep(seconds)

    def edit(self, name: str = DESK, *, annotations: Object | None = None, **spec: Any) -> None:
        """Change a machine as its owner would."""
        found = self.machine(name)
        metadata = dict(found["metadata"])
        if annotations is not None:
            metadata["annotations"] = annotations
        if spec:
            metadata["generation"] += 1
        body = {**found, "metadata": metadata, "spec": {**found["spec"], **spec}}
        self.management.world.store.put(MACHINES, (NAMESPACE, name), body)

    def delete_machine(self, name: str = DESK) -> None:
        self._delete("5spot.finos.org", "v1beta1", "scheduledmachines", name)

    def _delete(self, group: str, version: str, plural: str, name: str) -> None:
        kind = self.management.world.kinds.find(group, version, plural)
        assert kind is not None
        target = Target(kind=kind, version=version, namespace=NAMESPACE, name=name)
        delete(self.management.world, target, {})

    def delete_kind(self, label: str) -> None:
        """A definition goes, and all its objects."""
        kind = self.management.world.kinds.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        assert kind is not None
        delete(self.management.world, Target(kind=kind, version="v1", name=label), {})

    def hold_cluster(self) -> None:
        """The Cluster is being deleted, and Cluster API waits for its Machines."""
        store, key = self.management.world.store, (NAMESPACE, CLUSTER)
        found = store.get(CLUSTERS, key)
        assert found is not None
        meta = {**found["metadata"], "finalizers": ["cluster"], "deletionTimestamp": "2026-03-02T12:00:00Z"}
        store.put(CLUSTERS, key, {**found, "metadata": meta})

    def fail(self, name: str = DESK) -> None:
        """The Machine has failed for good, which only an old field says."""
        store, key = self.management.world.store, (NAMESPACE, name)
        found = store.get(CAPI, key)
        assert found is not None
        failed = {"deprecated": {"v1beta1": {"failureReason": "CreateError"}}}
        store.put(CAPI, key, {**found, "status": {**(found.get("status") or {}), **failed}})

    def node_is_silent(self, name: str = DESK) -> None:
        """Its kubelet is heard of no more."""
        found = self.node(name)
        conditions = [{"type": "Ready", "status": "Unknown"}]
        body = {**found, "status": {**found["status"], "conditions": conditions}}
        self.child.world.store.put("nodes", ("", name), body)

    def meddle(self, **spec: Any) -> None:
        """Change the machine just before the next write of its status gets there."""

        def now(asked: Asked) -> bool:
            rules[0].remove()
            self.edit(**spec)
            return False

        wanted = {"verb": "patch", "resource": MACHINES, "subresource": "status"}
        rules = [self.management.faults.add(Cut(), times=None, when=now, **wanted)]

    def made(self, name: str = DESK) -> list[str]:
        """What there is of a machine."""
        return [label for label in MADE if self.get(label, name) is not None]

    def shutdown(self, name: str = DESK) -> Object:
        return self.status(name).get("shutdown") or {}

    def change_cluster(self, **spec: Any) -> None:
        store, key = self.management.world.store, (NAMESPACE, CLUSTER)
        found = store.get(CLUSTERS, key)
        assert found is not None
        meta = {**found["metadata"], "generation": found["metadata"]["generation"] + 1}
        store.put(CLUSTERS, key, {**found, "metadata": meta, "spec": {**found["spec"], **spec}})

    def change_node(self, name: str = DESK, *, annotations: Object | None = None, **spec: Any) -> None:
        store = self.child.world.store
        found = store.get("nodes", ("", name))
        assert found is not None
        merged = {**(found["metadata"].get("annotations") or {}), **(annotations or {})}
        meta = {**found["metadata"], "annotations": merged}
        store.put("nodes", ("", name), {**found, "metadata": meta, "spec": {**found["spec"], **spec}})

    def node(self, name: str = DESK) -> Object:
        found = (child.world.store.get("nodes", ("", name)) for child in self.children.values())
        return next(filter(None, found), {})

    def pod(self, name: str, *, owner: str = "", annotations: Object | None = None, grace: int = 30) -> None:
        """A pod that runs on the Node and is covered by whatever budget says so."""
        owners = [{"apiVersion": "apps/v1", "kind": owner, "name": "x", "uid": "u", "controller": True}]
        meta = {
            "name": name,
            "labels": {"app": name.partition("-")[0]},
            "annotations": annotations or {},
            **({"ownerReferences": owners} if owner else {}),
        }
        spec = {
            "nodeName": DESK,
            "containers": [{"name": "c", "image": "i"}],
            "terminationGracePeriodSeconds": grace,
        }
        made = self.child.create("v1", "pods", {"metadata": meta, "spec": spec}, "default")
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        self.child.world.store.put("pods", ("default", name), {**made, "status": status})

    def budget(self, app: str, allowed: int) -> None:
        """A budget of the pods of an app, or another answer of the one that there is."""
        label, key, store = "poddisruptionbudgets.policy", ("default", app), self.child.world.store
        found = store.get(label, key)
        if found is None:
            spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}}
            found = self.child.create(
                "policy/v1", "poddisruptionbudgets", {"metadata": {"name": app}, "spec": spec}, "default"
            )
        status = {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1}
        status |= {"observedGeneration": found["metadata"]["generation"]}
        store.put(label, key, {**found, "status": status})

    def leave_alone(self, label: str, item: Object) -> None:
        """This object is a stranger's: nobody may change it."""
        meta = item["metadata"]
        self.strangers[label, (meta.get("namespace", ""), meta["name"])] = meta["resourceVersion"]

    def get(self, label: str, name: str = DESK) -> Object | None:
        return self.management.world.store.get(label, (NAMESPACE, name))

    def status(self, name: str = DESK) -> Object:
        return self.machine(name).get("status") or {}

    def evicted(self) -> list[str]:
        """The pods whose evictions were carried out, one for each time."""
        done = (entry for entry in self.child.writes if entry.asked.subresource == "eviction" and entry.done)
        return sorted(entry.asked.name for entry in done)

    # What must hold at every change

    def _look(self, change: Change) -> None:
        old, new = change.old or {}, change.new or {}
        if new:
            self._seen.add(new["metadata"]["uid"])
        if (change.resource, change.key) in self.strangers:
            self._wrong(f"a stranger's object was changed: {change}")
        if change.resource in MADE and not old:
            self._look_at_creation(change.resource, new)
        if change.resource == CAPI and old and not _going(old) and (not new or _going(new)):
            self._look_at_deletion(old)
        if change.resource == MACHINES:
            self._look_at_machine(old, new)

    def _wrong(self, what: str) -> None:
        self.broken.append(f"after {len(self.calls)} calls: {what}")

    def _owner(self, item: Object) -> Object | None:
        name = (item["metadata"].get("labels") or {}).get(MACHINE_LABEL, "")
        return self.management.world.store.get(MACHINES, (item["metadata"].get("namespace", ""), name))

    def _look_at_creation(self, label: str, item: Object) -> None:
        """What is created belongs to an object that cannot go before it."""
        owner = self._owner(item)
        if owner is not None and FINALIZER not in (owner["metadata"].get("finalizers") or []):
            self._wrong(f"{label} was created before the finalizer was there")

    def _look_at_deletion(self, capi: Object) -> None:
        """No Machine goes without a reason that can be read in the status, nor with pods that have time left."""
        owner = self._owner(capi)
        if owner is None or capi["metadata"]["name"] in self.vanishing:
            return
        status = owner.get("status") or {}
        shutdown, reclaim = status.get("shutdown") or {}, status.get("reclaim") or {}
        if (status.get("provisioning") or {}).get("replacing") == capi["metadata"]["uid"]:
            return
        if not shutdown and reclaim.get("state") != "InProgress":
            self._wrong(f"the Machine was deleted without a stored intent: {status}")
        elif shutdown.get("manner") == "Graceful" and (left := self._working_pods(capi)):
            now = self.clock.now()
            over = self._passed(shutdown.get("drainDeadline"), now) and self._passed(
                shutdown.get("startedAt"), now
            )
            if not over and not self._going_cluster():
                self._wrong(f"the Machine was deleted with {left} on its Node")

    def _going_cluster(self) -> bool:
        found = self.management.world.store.get(CLUSTERS, (NAMESPACE, CLUSTER))
        return found is None or _going(found)

    def _passed(self, when: str | None, now: datetime) -> bool:
        return when is not None and datetime.fromisoformat(when) <= now

    def _working_pods(self, capi: Object) -> list[str]:
        node = ((capi.get("status") or {}).get("nodeRef") or {}).get("name")
        pods = self.children[capi["spec"]["clusterName"]].world.store.items("pods")
        return [key[1] for key, pod in pods if _counts(pod, node)]

    def _look_at_machine(self, old: Object, new: Object) -> None:
        before, after = (_finalizers(item) for item in (old, new))
        if FINALIZER in before and FINALIZER not in after and (left := self._made_for(old)):
            self._wrong(f"the finalizer went before {left}")
        was, says = old.get("status") or {}, new.get("status") or {}
        if was == says or not new:
            return
        name, phase = new["metadata"]["name"], says.get("phase")
        if phase in _RESTING and phase != was.get("phase") and (left := self._made_for(new)):
            self._wrong(f"{name} is {phase}, and there is {left}")
        for ref in ("machineRef", "bootstrapRef", "infrastructureRef", "nodeRef"):
            if (uid := (says.get(ref) or {}).get("uid")) and uid not in self._seen:
                self._wrong(f"{name} has a {ref} that never was: {says[ref]}")
        if says.get("ready") and not was.get("ready"):
            node = self.node((says.get("nodeRef") or {}).get("name", ""))
            ready = [c for c in (node.get("status") or {}).get("conditions", []) if c["type"] == "Ready"]
            if not ready or ready[0]["status"] != "True":
                self._wrong(f"{name} is ready, and its Node is {node or 'not there'}")
        drained = [(part.get("shutdown") or {}).get("drainedAt") for part in (was, says)]
        capi = self.get(CAPI, name)
        if drained[1] and not drained[0] and capi and (left := self._working_pods(capi)):
            self._wrong(f"{name} is drained, and there is {left}")

    def _made_for(self, machine: Object) -> list[str]:
        meta = machine["metadata"]
        key = meta.get("namespace", ""), meta["name"]
        found = ((label, self.management.world.store.get(label, key)) for label in MADE)
        return [
            label
            for label, item in found
            if item is not None
            and (label, key) not in self.strangers
            and (item["metadata"].get("labels") or {}).get(MACHINE_LABEL) == meta["name"]
        ]

    def look_back(self) -> None:
        """What only shows when all is over.

        Raises:
            AssertionError: something was wrong, then or before.
        """
        evicted = Counter(self.evicted())
        self.broken += [f"{name} was evicted {count} times" for name, count in evicted.items() if count > 1]
        assert not self.broken, "\n".join(self.broken)


@asynccontextmanager
async def lab(clock: VirtualClock, *, active: bool = True) -> AsyncIterator[Lab]:
    """A site with everybody but a controller at work."""
    async with site(clock=clock, start=False, active=active, kind=Lab) as here, AsyncExitStack() as stack:
        here._stack = stack
        stack.callback(here.others.close)
        yield here


def deaths(calls: list[Call], begins: int) -> Iterator[Death]:
    """A death at each call that changes something, before and after it, but for those that meet the same world within a while.

    What only reads leaves nothing behind, and neither does what is refused: it is as if the controller had died before.
    """
    met: set[tuple[int, int]] = set()
    for number, (call, after) in enumerate(pairwise([*calls, calls[-1]]), 1):
        if number <= begins or call.asked.verb not in WRITES or call.asked.resource == "events":
            continue
        for done, world in (
            (False, (call.changes, call.at // WHILE)),
            (True, (after.changes, call.at // WHILE)),
        ):
            if world not in met:
                met.add(world)
                yield Death(call=number, done=done)


def ending(here: Lab) -> dict[str, Any]:
    """Where a story has led: everything that is there but times, versions and uids."""
    servers: tuple[FakeApi, ...] = (here.management, here.child)
    labels = (MACHINES, *MADE, CLUSTERS, "nodes", "pods")
    found: dict[str, Any] = {
        f"{label} {'/'.join(key)}": _told(item)
        for server in servers
        for label in labels
        for key, item in server.world.store.items(label)
    }
    return {**found, "Machines created": here.created(CAPI)}


_FLEETING = frozenset(
    {"uid", "resourceVersion", "managedFields", "creationTimestamp", "generation", "deletionTimestamp"}
)
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+Z")
_TIMES = ("At", "Time", "Deadline", "startedAt", "notBefore", "holdUntil", "deadline")


def _told(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _told(item)
            for key, item in value.items()
            if key not in _FLEETING and not key.endswith(_TIMES) and item is not None
        }
    if isinstance(value, list):
        return sorted((_told(item) for item in value), key=repr)
    return _INSTANT.sub("then", value) if isinstance(value, str) else value


def _going(item: Object) -> bool:
    return bool(item["metadata"].get("deletionTimestamp"))


def _counts(pod: Object, node: str | None) -> bool:
    meta = pod["metadata"]
    daemon = any(owner["kind"] == "DaemonSet" for owner in meta.get("ownerReferences") or [])
    static = "kubernetes.io/config.mirror" in (meta.get("annotations") or {})
    ended = pod["status"].get("phase") in ("Succeeded", "Failed")
    return pod["spec"].get("nodeName") == node and not (daemon or static or ended)


def _finalizers(item: Object) -> list[str]:
    return list((item.get("metadata") or {}).get("finalizers") or [])
