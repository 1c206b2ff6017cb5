"""Evictions: deletions that a disruption budget may refuse."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from fivespot.adapters.kube.errors import ApiError, Conflict, NotFound, Throttled
from fivespot.adapters.kube.resources import PODS, Object
from tests.contract.apis import BUDGETS, Given, contract


async def pod(
    given: Given, name: str = "a", *, ready: bool = True, phase: str = "Running", **spec: Any
) -> Object:
    """A pod that runs, as far as anybody knows."""
    await given.server.may_have_pods(given)
    spec = {"containers": [{"name": "c", "image": "none"}], "terminationGracePeriodSeconds": 0, **spec}
    made = await given.create(PODS, name, metadata={"labels": {"app": "x"}}, spec=spec)
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    status = {"phase": phase, "conditions": [condition]}
    await given.gateway.merge_patch(PODS, given.namespace, name, {"status": status}, "status")
    return made


async def budget(given: Given, name: str = "b", allowed: int = 0) -> None:
    """A budget for it."""
    await given.create(
        BUDGETS, name, spec={"minAvailable": 1 - allowed, "selector": {"matchLabels": {"app": "x"}}}
    )
    await given.server.allow_disruptions(given, name, allowed)


async def there(given: Given) -> Object | None:
    answer = await given.http.get(given.path(PODS, "a"))
    found: Object = answer.json()
    return found if answer.status_code == 200 else None


@contract
async def test_without_a_budget_an_eviction_deletes_the_pod(given: Given) -> None:
    await pod(given)
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}
    answer = await given.asked("POST", given.path(PODS, "a", "eviction"), body)
    assert answer.status_code == 201
    assert answer.json() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "code": 201,
    }
    assert await there(given) is None


@contract
async def test_a_pod_on_a_node_is_told_why_it_has_to_go(given: Given) -> None:
    await pod(given, nodeName=given.unique, terminationGracePeriodSeconds=30)
    await given.gateway.evict(given.namespace, "a")
    found = await there(given)
    assert found is not None
    assert found["metadata"]["deletionGracePeriodSeconds"] == 30
    told = [c for c in found["status"]["conditions"] if c["type"] == "DisruptionTarget"]
    assert [(c["status"], c["reason"]) for c in told] == [("True", "EvictionByEvictionAPI")]


@contract
async def test_an_eviction_can_shorten_the_grace(given: Given) -> None:
    await pod(given, nodeName=given.unique, terminationGracePeriodSeconds=30)
    await given.gateway.evict(given.namespace, "a", grace_seconds=5)
    found = await there(given)
    assert found is not None
    assert found["metadata"]["deletionGracePeriodSeconds"] == 5
    await given.gateway.evict(given.namespace, "a", grace_seconds=0)
    assert await there(given) is None


@contract
async def test_a_budget_that_allows_nothing_refuses(given: Given) -> None:
    await pod(given)
    await budget(given)
    with pytest.raises(Throttled) as refused:
        await given.gateway.evict(given.namespace, "a")
    assert (refused.value.status, refused.value.cause) == (429, "DisruptionBudget")
    assert refused.value.message == "Cannot evict pod as it would violate the pod's disruption budget."
    assert refused.value.details["causes"] == [
        {
            "reason": "DisruptionBudget",
            "message": "The disruption budget b needs 1 healthy pods and has 1 currently",
        }
    ]
    assert refused.value.retry_after is None
    found = await there(given)
    assert found is not None
    assert "deletionTimestamp" not in found["metadata"]


@contract
async def test_a_budget_that_allows_one_lets_one_go(given: Given) -> None:
    await pod(given)
    await budget(given, allowed=1)
    await given.gateway.evict(given.namespace, "a")
    assert await there(given) is None


@contract
async def test_two_budgets_for_one_pod_are_an_error_of_the_server(given: Given) -> None:
    await pod(given)
    await budget(given, "b")
    await budget(given, "c")
    with pytest.raises(ApiError) as refused:
        await given.gateway.evict(given.namespace, "a")
    assert refused.value.status == 500
    assert refused.value.message == (
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    )


@contract
async def test_a_budget_does_not_keep_what_has_ended_or_not_begun(given: Given) -> None:
    await pod(given)
    await budget(given)
    for phase in ("Pending", "Failed", "Succeeded"):
        name = f"p-{phase.lower()}"
        await pod(given, name, phase=phase)
        await given.gateway.evict(given.namespace, name)


@contract
async def test_a_budget_of_other_pods_says_nothing(given: Given) -> None:
    await pod(given)
    await given.create(
        BUDGETS,
        "b",
        spec={
            "minAvailable": 1,
            "selector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["x"]}]},
        },
    )
    await given.gateway.evict(given.namespace, "a")
    assert await there(given) is None


@contract
async def test_an_eviction_can_insist_on_the_pods_identity(given: Given) -> None:
    made = await pod(given)
    with pytest.raises(Conflict):
        await given.gateway.evict(given.namespace, "a", uid=str(uuid4()))
    await given.gateway.evict(given.namespace, "a", uid=made["metadata"]["uid"])
    assert await there(given) is None


@contract
async def test_an_eviction_has_to_name_its_pod(given: Given) -> None:
    await pod(given)
    path = given.path(PODS, "a", "eviction")
    for body, said in (
        ({"metadata": {"name": "b"}}, "name in URL does not match name in Eviction object"),
        ({"apiVersion": "v1", "kind": "Pod"}, 'Pod in version "v1" cannot be handled as a Eviction'),
    ):
        status = await given.refused("POST", path, {"apiVersion": "policy/v1", "kind": "Eviction", **body})
        assert (status["code"], status["reason"]) == (400, "BadRequest")
        assert status["message"].startswith(said)
    with pytest.raises(NotFound, match='pods "b" not found'):
        await given.gateway.evict(given.namespace, "b")
