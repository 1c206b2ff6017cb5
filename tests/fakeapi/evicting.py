"""The sub-resource `eviction` of pods: a deletion that a disruption budget may refuse.

What a budget allows is what its status says; the disruption controller that would write it is a test's business.
"""

from __future__ import annotations

from tests.fakeapi.deleting import remove_pod
from tests.fakeapi.kinds import BUDGET
from tests.fakeapi.refusals import NotUnderstood, Object, Refused, bad_request, budget_refused
from tests.fakeapi.selectors import matches_label_selector
from tests.fakeapi.store import Key
from tests.fakeapi.world import Target, World

_TWO = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."


def evict(world: World, target: Target, body: Object) -> Object:
    """POST to a pod's eviction."""
    version, kind = body.get("apiVersion") or "policy/v1", body.get("kind") or "Eviction"
    if (version, kind) != ("policy/v1", "Eviction"):
        raise bad_request(f'{kind} in version "{version}" cannot be handled as a Eviction')
    if unknown := set(body) - {"apiVersion", "kind", "metadata", "deleteOptions"}:
        raise NotUnderstood(f"an eviction with {unknown}")
    metadata = body.get("metadata") or {}
    if metadata.get("namespace", target.namespace) != target.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if metadata.get("name") != target.name:
        raise bad_request("name in URL does not match name in Eviction object")
    pod = world.current(target)
    going = pod["metadata"].get("deletionTimestamp") or pod["status"].get("phase") in (
        "Pending",
        "Succeeded",
        "Failed",
    )
    if not going:
        _ask_budgets(world, target, pod)
    remove_pod(world, target, body.get("deleteOptions") or {})
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def _ask_budgets(world: World, target: Target, pod: Object) -> None:
    found = [
        (key, budget)
        for key, budget in world.store.items(BUDGET.label)
        if key[0] == target.namespace and matches_label_selector(budget["spec"].get("selector"), pod)
    ]
    if len(found) > 1:
        raise Refused(500, "", _TWO)
    for key, budget in found:
        if not _harmless(pod, budget):
            _take(world, target, key, budget)


def _harmless(pod: Object, budget: Object) -> bool:
    """Whether the pod does nothing that its budget protects."""
    conditions = pod["status"].get("conditions") or []
    if any(c["type"] == "Ready" and c["status"] == "True" for c in conditions):
        return False
    status = budget["status"]
    enough = bool(status.get("currentHealthy", 0) >= status.get("desiredHealthy", 0) > 0)
    return enough or budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow"


def _take(world: World, target: Target, key: Key, budget: Object) -> None:
    """Use up one of the disruptions that are allowed, or refuse."""
    status, name = budget["status"], key[1]
    if status.get("observedGeneration", 0) < budget["metadata"]["generation"]:
        raise budget_refused(f"The disruption budget {name} is still being processed by the server.", 10)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed <= 0:
        wanted, there = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        if there <= wanted:
            raise budget_refused(
                f"The disruption budget {name} needs {wanted} healthy pods and has {there} currently"
            )
        raise budget_refused(f"The disruption budget {name} does not allow evicting pods currently")
    disrupted = {**(status.get("disruptedPods") or {}), target.name: world.now()}
    status = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": disrupted}
    world.store.put(BUDGET.label, key, {**budget, "status": status})
