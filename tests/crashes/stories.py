"""The lives of one machine that a controller may die in. Each waits for what happens, and ends where everything rests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fivespot.adapters.kube.resources import Object
from fivespot.core.names import (
    MACHINE_LABEL,
    RECLAIM_REASON,
    RECLAIM_RELEASE,
    RECLAIM_REQUESTED,
    RECLAIM_REQUESTED_AT,
)
from tests import builders
from tests.faults.lives import Lab
from tests.faults.others import CLUSTERS, MADE
from tests.faults.setting import DESK, NAMESPACE, our_crds
from tests.faults.site import CAPI, CLUSTER, MACHINES, SCHEDULES

PROVIDERS = "spotschedules.5spot.finos.org/v1alpha1"


async def up(here: Lab, *, told: bool = True, **spec: Any) -> None:
    """A machine that is in the cluster; how it came there has been `told` by another story."""
    here.add_machine(**spec)
    await here.until_phase("Active")
    if told:
        here.begin()


async def closing(here: Lab, *, told: bool = True, **spec: Any) -> None:
    """A machine that is being drained: one pod has gone, one is protected, and one takes its time."""
    await up(here, **spec)
    here.budget("web", 0)
    for name in ("batch-0", "web-0"):
        here.pod(name)
    here.pod("slow-0", grace=20)
    here.others.slow_pods.add("slow-0")
    here.pod("agent-0", owner="DaemonSet")
    here.pod("static-0", annotations={"kubernetes.io/config.mirror": "x"})
    here.schedule(active=False)
    await here.until(lambda: not has_pod(here, "batch-0") and bool(here.shutdown().get("blockedBy")))
    if told:
        here.begin()


def has_pod(here: Lab, name: str) -> bool:
    return here.child.world.store.get("pods", ("default", name)) is not None


async def it_opens(here: Lab) -> None:
    await up(here, told=False)


async def it_closes(here: Lab) -> None:
    await closing(here, told=False)
    here.budget("web", 1)
    await here.until_phase("Inactive")


async def it_opens_and_closes_twice(here: Lab) -> None:
    await up(here)
    here.schedule(active=False)
    await here.until_phase("Inactive")
    here.begin()
    here.schedule(active=True)
    await here.until_phase("Active")
    here.schedule(active=False)
    await here.until_phase("Inactive")


async def the_bound_passes(here: Lab) -> None:
    await closing(here, nodeDrainTimeout="1m")
    await here.until_phase("Inactive")


async def the_bound_passes_and_it_holds(here: Lab) -> None:
    await closing(here, nodeDrainTimeout="1m", onDrainTimeout="Hold")
    await here.until(lambda: "NodeDrainTimedOut" in str(here.status()["conditions"]))
    await here.rest(30)
    here.budget("web", 1)
    await here.until_phase("Inactive")


async def no_time_at_all(here: Lab) -> None:
    await up(here, nodeDrainTimeout="0s", gracefulShutdownTimeout="0s")
    here.pod("web-0")
    here.schedule(active=False)
    await here.until_phase("Inactive")


async def a_change_of_mind_in_the_drain(here: Lab) -> None:
    await closing(here)
    here.schedule(active=True)
    await here.until_phase("Active")
    await here.until(lambda: not here.shutdown() and not here.node()["spec"].get("unschedulable"))


async def a_change_of_mind_after_the_deletion(here: Lab) -> None:
    await up(here)
    here.schedule(active=False)
    await here.until(lambda: going(here.get(CAPI)))
    here.schedule(active=True)
    await here.until(lambda: here.created(CAPI) == 2 and here.phase() == "Active")


async def its_object_is_deleted_in_the_drain(here: Lab) -> None:
    await closing(here)
    here.delete_machine()
    await here.until(lambda: here.status().get("decidedBy") == "Deleted")
    here.budget("web", 1)
    await here.until(lambda: here.get(MACHINES) is None)


async def its_object_is_deleted_while_it_opens(here: Lab) -> None:
    here.others.joins = False
    here.add_machine()
    await here.until(lambda: here.get(CAPI) is not None)
    here.delete_machine()
    await here.until(lambda: here.get(MACHINES) is None)


async def the_kill_switch(here: Lab) -> None:
    await up(here)
    here.pod("web-0")
    here.budget("web", 0)
    here.edit(killSwitch=True)
    await here.until(lambda: here.phase() == "Terminated" and not here.made())
    here.edit(killSwitch=False)
    await here.until_phase("Active")


async def the_kill_switch_in_the_drain(here: Lab) -> None:
    await closing(here)
    here.edit(killSwitch=True)
    await here.until(lambda: here.phase() == "Terminated" and not here.made())


async def it_is_disabled(here: Lab) -> None:
    await up(here)
    here.edit(enabled=False)
    await here.until_phase("Disabled")


async def a_pause_in_the_drain(here: Lab) -> None:
    await closing(here)
    here.change_cluster(paused=True)
    await here.until(lambda: here.shutdown().get("startedAt") is None)
    here.budget("web", 1)
    await here.rest(400)
    here.change_cluster(paused=False)
    await here.until_phase("Inactive")


async def a_pause_before_it_opens(here: Lab) -> None:
    here.change_cluster(paused=True)
    here.add_machine()
    await here.until(lambda: "Paused" in str(here.status().get("conditions")))
    await here.rest()
    here.change_cluster(paused=False)
    await here.until_phase("Active")


async def its_taints_change(here: Lab) -> None:
    here_to_stay = {"key": "example.com/theirs", "value": "1", "effect": "NoExecute"}
    first = {"key": "example.com/lent", "value": "a", "effect": "NoSchedule"}
    await up(here, told=False, nodeTaints=[first])
    await here.until(lambda: "example.com/lent" in taints(here))
    found = here.node()["spec"]["taints"]
    here.change_node(taints=[*found, here_to_stay])
    here.edit(nodeTaints=[{**first, "value": "b"}, {"key": "example.com/more", "effect": "NoSchedule"}])
    await here.until(lambda: "example.com/more" in taints(here))
    here.edit(nodeTaints=[])
    await here.until(lambda: taints(here).isdisjoint({"example.com/lent", "example.com/more"}))
    assert here_to_stay["key"] in taints(here)


def taints(here: Lab) -> set[str]:
    return {taint["key"] for taint in here.node()["spec"].get("taints") or []}


async def its_machine_vanishes(here: Lab) -> None:
    await up(here)
    vanish(here)
    await here.until(lambda: here.created(CAPI) == 2 and here.phase() == "Active")


def vanish(here: Lab) -> None:
    """Somebody takes the Machine and its Node away, finalizers and all; Cluster API's garbage is left."""
    here.vanishing.add(DESK)
    here.management.world.store.remove(CAPI, (NAMESPACE, DESK))
    here.child.world.store.remove("nodes", ("", DESK))


async def a_restored_backup(here: Lab) -> None:
    """Everything comes back with another uid and without status, the owners with the uids that they had."""
    await up(here)
    store, collecting = here.management.world.store, here.others
    collecting.collects = False
    for label in (MACHINES, *MADE):
        found = here.get(label)
        assert found is not None
        restored = {key: value for key, value in found.items() if key != "status" or label != MACHINES}
        meta = {**found["metadata"], "uid": f"restored-{label}"}
        store.put(label, (NAMESPACE, DESK), {**restored, "metadata": meta})
    await here.until_phase("Active")
    await here.until(lambda: owner_uid(here) == "restored-" + MACHINES)
    collecting.collects = True
    collecting.collect()


def owner_uid(here: Lab) -> str:
    found = here.get(CAPI)
    return str(found["metadata"]["ownerReferences"][0]["uid"]) if found else ""


async def a_name_that_somebody_else_holds(here: Lab) -> None:
    body = {"metadata": {"name": DESK, "labels": {"their": "own"}}, "spec": {"clusterName": "grid"}}
    stranger = here.management.create("cluster.x-k8s.io/v1beta2", "machines", body, NAMESPACE)
    here.leave_alone(CAPI, stranger)
    here.others.adopts = False
    here.add_machine()
    await here.until(lambda: "NameConflict" in str(here.status().get("conditions")))
    await here.rest(400)
    here.strangers.clear()
    here.others.adopts = True
    here.management.world.store.remove(CAPI, (NAMESPACE, DESK))
    await here.until_phase("Active")


async def an_orphan(here: Lab) -> None:
    """A Machine with our label and our name for an owner, of which status knows nothing."""
    here.schedule(active=False)
    here.add_machine()
    await here.until_phase("Inactive")
    owner = {
        "apiVersion": "5spot.finos.org/v1beta1",
        "kind": "ScheduledMachine",
        "name": DESK,
        "uid": "before",
    }
    meta = {"name": DESK, "labels": {MACHINE_LABEL: DESK}, "ownerReferences": [owner]}
    for version, plural in (
        ("bootstrap.cluster.x-k8s.io/v1beta1", "k0sworkerconfigs"),
        ("infrastructure.cluster.x-k8s.io/v1beta1", "remotemachines"),
    ):
        here.management.create(version, plural, {"metadata": meta, "spec": {}}, NAMESPACE)
    spec = {
        "clusterName": "grid",
        "bootstrap": {
            "configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "K0sWorkerConfig", "name": DESK}
        },
        "infrastructureRef": {
            "apiGroup": "infrastructure.cluster.x-k8s.io",
            "kind": "RemoteMachine",
            "name": DESK,
        },
    }
    here.management.create(
        "cluster.x-k8s.io/v1beta2", "machines", {"metadata": meta, "spec": spec}, NAMESPACE
    )
    await here.until(lambda: here.get(CAPI) is None and not here.made())


async def a_reclaim(here: Lab) -> None:
    await up(here, reclaim={})
    here.pod("web-0")
    here.budget("web", 0)
    ask_for_the_host(here)
    await here.until_phase("Disabled")
    here.edit(annotations={RECLAIM_RELEASE: here.status()["reclaim"]["observedAt"]})
    await here.until_phase("Active")


async def a_reclaim_in_the_drain(here: Lab) -> None:
    await closing(here, killIfCommands=["game"])
    ask_for_the_host(here)
    await here.until_phase("Disabled")


def ask_for_the_host(here: Lab) -> None:
    at = here.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    here.change_node(
        annotations={
            RECLAIM_REQUESTED: "true",
            RECLAIM_REASON: "process-match: game",
            RECLAIM_REQUESTED_AT: at,
        }
    )


async def the_child_is_away_for_a_while(here: Lab) -> None:
    await closing(here, gracefulShutdownTimeout="10m", nodeDrainTimeout="10m")
    await here.child.stop()
    await here.until(lambda: here.condition("ChildClusterReachable").get("status") == "Unknown")
    here.budget("web", 1)
    await here.child.start()
    await here.until_phase("Inactive")


async def the_child_is_away_for_good(here: Lab) -> None:
    await closing(here, gracefulShutdownTimeout="5m")
    await here.child.stop()
    here.others.reaches_child = False
    await here.until(lambda: here.get(CAPI) is None)
    await here.until_phase("Inactive")


async def the_kind_of_its_schedule_goes_and_comes_back(here: Lab) -> None:
    await up(here)
    schedule = here.get(SCHEDULES, "nights")
    assert schedule is not None
    here.delete_kind(SCHEDULES)
    await here.until(lambda: "ProviderCRDNotInstalled" in str(here.status()["conditions"]))
    await here.rest(400)
    assert here.phase() == "Active"
    here.management.install(crd for crd in our_crds() if crd["metadata"]["name"] == SCHEDULES)
    here.management.create(PROVIDERS, "timebasedspotschedules", builders.time_based(), NAMESPACE)
    here.schedule(active=False)
    await here.until_phase("Inactive")


async def its_schedule_is_another_one_in_the_drain(here: Lab) -> None:
    await closing(here)
    here.management.create(PROVIDERS, "timebasedspotschedules", builders.time_based("days"), NAMESPACE)
    here.edit(schedule=builders.reference("days"))
    await here.until(lambda: "StatusActiveMissing" in str(here.status()["conditions"]))
    here.schedule(active=True, name="days")
    await here.until_phase("Active")
    await here.until(lambda: not here.shutdown() and not here.node()["spec"].get("unschedulable"))


async def its_machine_fails_for_good(here: Lab) -> None:
    here.others.joins = False
    here.add_machine()
    await here.until(lambda: bool(here.status().get("machineRef")))
    here.fail()
    await here.until(lambda: here.created(CAPI) == 2)
    here.others.joins = True
    here.others.look_again()
    await here.until_phase("Active")


async def its_host_comes_back_after_it_was_removed(here: Lab) -> None:
    """Its old kubelet registers again, under another uid, and runs what it is told."""
    await up(here)
    found = here.node()
    here.schedule(active=False)
    await here.until_phase("Inactive")
    here.begin()
    again = {"metadata": {"name": DESK}, "spec": {"providerID": "x://desk-1"}, "status": found["status"]}
    here.child.create("v1", "nodes", again)
    here.pod("web-0")
    await here.until(lambda: not here.node())


async def its_node_is_left_over(here: Lab) -> None:
    """Cluster API does not get at the Node when it ends the Machine, and its host is stopped."""
    await up(here)
    here.others.reaches_child = False
    here.schedule(active=False)
    await here.until(lambda: going(here.get(CAPI)))
    here.node_is_silent()
    await here.until_phase("Inactive")
    await here.until(lambda: not here.node())


async def its_owner_edits_it_all_the_time(here: Lab) -> None:
    """Whatever is written about it meets another version than the one that was read."""
    await up(here)
    for number in range(2):
        here.meddle(priority=60 + number)
        here.schedule(active=number % 2 == 1)
        await here.until_phase("Active" if number % 2 else "Inactive")


async def its_cluster_is_deleted(here: Lab) -> None:
    await closing(here)
    here.hold_cluster()
    here.others.reaches_child = False
    await here.until(lambda: not here.made())
    await here.until_phase("Inactive")
    here.management.world.store.remove(CLUSTERS, (NAMESPACE, CLUSTER))
    await here.until(lambda: not here.status().get("lastNode"))


def going(item: Object | None) -> bool:
    return item is not None and bool(item["metadata"].get("deletionTimestamp"))


STORIES: dict[str, Callable[[Lab], Awaitable[None]]] = {
    "a machine that opens": it_opens,
    "a machine that closes, a budget in its way": it_closes,
    "two days": it_opens_and_closes_twice,
    "a bound that passes": the_bound_passes,
    "a bound that passes under Hold": the_bound_passes_and_it_holds,
    "no time at all": no_time_at_all,
    "a change of mind in the drain": a_change_of_mind_in_the_drain,
    "a change of mind after the deletion": a_change_of_mind_after_the_deletion,
    "an object that is deleted in the drain": its_object_is_deleted_in_the_drain,
    "an object that is deleted while its machine opens": its_object_is_deleted_while_it_opens,
    "the kill switch, and back": the_kill_switch,
    "the kill switch in the drain": the_kill_switch_in_the_drain,
    "a machine that is disabled": it_is_disabled,
    "a pause in the drain": a_pause_in_the_drain,
    "a pause before it opens": a_pause_before_it_opens,
    "taints that change": its_taints_change,
    "a Machine that vanishes": its_machine_vanishes,
    "a restored backup": a_restored_backup,
    "a name that somebody else holds": a_name_that_somebody_else_holds,
    "an orphan": an_orphan,
    "a reclaim, and its release": a_reclaim,
    "a reclaim in the drain": a_reclaim_in_the_drain,
    "a child cluster that is away for a while": the_child_is_away_for_a_while,
    "a child cluster that is away for good": the_child_is_away_for_good,
    "a kind of schedule that goes and comes back": the_kind_of_its_schedule_goes_and_comes_back,
    "another schedule in the drain": its_schedule_is_another_one_in_the_drain,
    "a Machine that fails for good": its_machine_fails_for_good,
    "a host that comes back after it was removed": its_host_comes_back_after_it_was_removed,
    "a Node that is left over": its_node_is_left_over,
    "an owner who edits all the time": its_owner_edits_it_all_the_time,
    "a Cluster that is deleted": its_cluster_is_deleted,
}
