"""Under exactly the shipped roles everything works; and with any single verb taken away it is said which, and nothing else breaks.

The rights are read off deploy/, so that a new rule is a new test. Each is taken away before a story that needs it, while
another machine is in the cluster already; and given back once it has been said what is missing.
"""

from __future__ import annotations

import asyncio
import logging
import re

import pytest

from fivespot.core.names import SYSTEM_NAMESPACE
from tests import builders
from tests.crashes.stories import PROVIDERS, STORIES
from tests.faults.lives import LEASE, Lab, lab
from tests.faults.roles import Right, authorizer, rights
from tests.faults.setting import NAMESPACE
from tests.faults.site import CAPI, MACHINES
from tests.faults.virtual import VirtualClock, run_virtually

CALM = "calm"
PATIENCE = 200
"""Looks, 5 s each."""
OPENS, ENDS = "a machine that opens", "an object that is deleted while its machine opens"
NEEDS = {
    ("scheduledmachines", "get"): "an owner who edits all the time",
    ("clusters", "get"): "a Cluster that is deleted",
    ("machines", "get"): ENDS,
    ("machines", "patch"): ENDS,
    ("machines", "delete"): ENDS,
    ("bootstrap.cluster.x-k8s.io", "get"): ENDS,
    ("bootstrap.cluster.x-k8s.io", "patch"): "an orphan",
    ("bootstrap.cluster.x-k8s.io", "delete"): "a Machine that vanishes",
    ("events", "patch"): "an orphan",
    ("nodes", "get"): "a Cluster that is deleted",
    ("nodes", "patch"): "taints that change",
    ("nodes", "delete"): "a host that comes back after it was removed",
    ("pods", "list"): "no time at all",
    ("pods", "watch"): "a machine that closes, a budget in its way",
    ("pods", "delete"): "a reclaim in the drain",
    ("pods/eviction", "create"): "a machine that closes, a budget in its way",
}
"""Stories that cannot be told without a right; all others are needed by a machine that just comes."""
FOR_OTHERS = {
    ("scheduledmachines/finalizers", "update"): "OwnerReferencesPermissionEnforcement, where that is on",
}
"""Rights that nobody asks these servers for, and who does."""
UNSAID = {
    *(("scheduledmachines", verb) for verb in ("get", "list", "watch")),
    ("scheduledmachines/status", "patch"),
    *(
        (resource, verb)
        for resource in ("events", "leases")
        for verb in ("create", "get", "list", "watch", "update", "patch")
    ),
    ("secrets", "watch"),
}
"""Without these no status can say it, or there is nothing to say of any machine: a kubeconfig stays as it was read. It is logged."""


def _word(right: Right) -> tuple[str, str]:
    resource = right.resources[0]
    return (right.groups[0] if resource == "*" else resource), right.verb


def test_under_the_shipped_roles_nothing_is_forbidden_and_every_right_is_used() -> None:
    used: set[Right] = set()
    for name in {OPENS, *NEEDS.values()}:
        used |= run_virtually(lambda clock, name=name: _told_with_all_rights(clock, name))
    assert {right for right in rights() if right not in used and _word(right) not in FOR_OTHERS} == set()


async def _told_with_all_rights(clock: VirtualClock, name: str) -> set[Right]:
    async with lab(clock) as here:
        await _begin(here)
        async with here.restarted():
            await STORIES[name](here)
        refused = [
            entry.asked
            for server in (here.management, here.child)
            for entry in server.audit
            if entry.code == 403
        ]
        assert not refused
        here.look_back()
        return {
            right
            for cluster, server in (("management", here.management), ("child", here.child))
            for right in rights()
            if right.cluster == cluster and any(right.allows(entry.asked) for entry in server.audit)
        }


async def _begin(here: Lab) -> None:
    here.elected = True
    here.management.create("v1", "namespaces", {"metadata": {"name": SYSTEM_NAMESPACE}})
    here.management.create(PROVIDERS, "timebasedspotschedules", builders.time_based(CALM), NAMESPACE)
    here.schedule(active=True, name=CALM)
    here.management.create(
        "cluster.x-k8s.io/v1beta2", "clusters", {"metadata": {"name": CALM}, "spec": {}}, NAMESPACE
    )
    here.give_kubeconfig(name=f"{CALM}-kubeconfig")
    here.children[CALM] = here.child
    for cluster, server in (("management", here.management), ("child", here.child)):
        server.authorizer = authorizer(cluster)


@pytest.mark.parametrize("right", [r for r in rights() if _word(r) not in FOR_OTHERS], ids=str)
def test_without_one_right_it_is_said_which_and_all_goes_on_once_it_is_back(
    right: Right, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)

    async def story(clock: VirtualClock) -> None:
        async with lab(clock) as here:
            await _begin(here)
            async with here.restarted():
                here.add_machine(CALM, schedule=builders.reference(CALM), clusterName=CALM)
                await here.until_phase("Active", name=CALM)
            here.management.world.store.remove("leases.coordination.k8s.io", (SYSTEM_NAMESPACE, LEASE))
            server = here.management if right.cluster == "management" else here.child
            server.authorizer = authorizer(right.cluster, right)
            async with here.restarted():
                telling = asyncio.ensure_future(STORIES[NEEDS.get(_word(right), OPENS)](here))
                try:
                    for _ in range(PATIENCE):
                        if _said(here, right, caplog.text):
                            break
                        await here.rest(5)
                    else:
                        raise AssertionError("nobody misses it")
                    await here.rest(120)
                    server.authorizer = authorizer(right.cluster)
                    await telling
                    await here.rest()
                finally:
                    telling.cancel()
            _is_calm(here)
            here.look_back()

    run_virtually(story)


def _said(here: Lab, right: Right, log: str) -> bool:
    """Whether people could read which right is missing: on a machine, or in the log where no status can say it."""
    said = rf'grant verb "{right.verb}" on resource "({_named(right)})"'
    if _word(right) in UNSAID:
        return re.search(said, log) is not None
    statuses = [(c.new.get("status") or {}) for c in here.changes if c.resource == MACHINES and c.new]
    parts = [part for status in statuses for part in (status, *(status.get("conditions") or []))]
    return any(re.search(said, part.get("message") or "") for part in parts)


def _named(right: Right) -> str:
    return "[a-z0-9]+" if "*" in right.resources else "|".join(right.resources)


def _is_calm(here: Lab) -> None:
    """The other machine was neither touched nor spoken ill of for good."""
    assert here.status(CALM)["phase"] == "Active"
    assert here.status(CALM)["ready"] is True
    assert [c for c in here.changes if c.resource == CAPI and c.key[1] == CALM and c.new is None] == []
    assert set(here.phases(CALM)) <= {"Pending", "Active"}
