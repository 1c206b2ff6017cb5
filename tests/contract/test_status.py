"""The status sub-resource keeps two writers apart, in both directions."""

from __future__ import annotations

import pytest

from fivespot.adapters.kube.errors import Conflict, NotFound
from fivespot.adapters.kube.resources import NAMESPACES, NODES, PODS
from tests.contract.apis import BUDGETS, Given, contract
from tests.contract.definitions import BEACONS, OLD_WIDGETS, WIDGETS

CONDITION = {"type": "Test", "status": "True", "reason": "Test", "message": ""}


@contract
async def test_a_new_custom_object_has_no_status_whatever_it_says(given: Given) -> None:
    assert "status" not in await given.create(WIDGETS, "a", spec={"size": 1}, status={"k": 1})


@contract
async def test_a_write_to_the_object_leaves_its_status(given: Given) -> None:
    ns = given.namespace
    await given.create(WIDGETS, "a", spec={"size": 1})
    await given.gateway.merge_patch(WIDGETS, ns, "a", {"status": {"k": 1}}, "status")
    changed = await given.gateway.merge_patch(WIDGETS, ns, "a", {"spec": {"size": 2}, "status": {"k": 2}})
    assert (changed["spec"], changed["status"]) == ({"size": 2}, {"k": 1})
    replaced = await given.gateway.update(WIDGETS, ns, {**changed, "spec": {"size": 3}, "status": {}})
    assert (replaced["spec"], replaced["status"]) == ({"size": 3}, {"k": 1})


@contract
async def test_a_write_to_a_custom_status_leaves_all_else(given: Given) -> None:
    await given.create(WIDGETS, "a", spec={"size": 1})
    body = {
        "metadata": {"labels": {"l": "1"}, "finalizers": ["a.b/c"]},
        "spec": {"size": 2},
        "status": {"k": 1},
    }
    changed = await given.gateway.merge_patch(WIDGETS, given.namespace, "a", body, "status")
    assert (changed["spec"], changed["status"]) == ({"size": 1}, {"k": 1})
    assert not {"labels", "finalizers"} & set(changed["metadata"])


@contract
async def test_a_status_is_replaced_by_put_with_its_version(given: Given) -> None:
    made = await given.create(WIDGETS, "a", spec={"size": 1})
    path = given.path(WIDGETS, "a", "status")
    answer = await given.asked("PUT", path, {**made, "spec": {}, "status": {"k": 1}})
    assert (answer.status_code, answer.json()["spec"], answer.json()["status"]) == (
        200,
        {"size": 1},
        {"k": 1},
    )
    status = await given.refused("PUT", path, {**made, "status": {"k": 2}})
    assert status["reason"] == "Conflict"


@contract
async def test_a_status_patch_can_be_conditional(given: Given) -> None:
    made = await given.create(WIDGETS, "a")
    body = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "status": {"k": 1}}
    await given.gateway.merge_patch(WIDGETS, given.namespace, "a", body, "status")
    with pytest.raises(Conflict):
        await given.gateway.merge_patch(WIDGETS, given.namespace, "a", {**body, "status": {"k": 2}}, "status")


@contract
async def test_a_status_is_read_and_patched_in_every_version(given: Given) -> None:
    await given.create(WIDGETS, "a")
    changed = await given.gateway.merge_patch(
        OLD_WIDGETS, given.namespace, "a", {"status": {"k": 1}}, "status"
    )
    assert changed["apiVersion"] == OLD_WIDGETS.api_version
    read = await given.asked("GET", given.path(WIDGETS, "a", "status"))
    assert (read.json()["apiVersion"], read.json()["status"]) == (WIDGETS.api_version, {"k": 1})


@contract
async def test_without_the_sub_resource_a_status_is_a_field_that_counts(given: Given) -> None:
    made = await given.create(BEACONS, given.unique, status={"k": 1})
    assert made["status"] == {"k": 1}
    changed = await given.gateway.merge_patch(BEACONS, None, given.unique, {"status": {"k": 2}})
    assert (changed["status"], changed["metadata"]["generation"]) == ({"k": 2}, 2)
    with pytest.raises(NotFound):
        await given.gateway.merge_patch(BEACONS, None, given.unique, {"status": {"k": 3}}, "status")


@contract
async def test_a_node_is_created_with_its_status_and_then_split(given: Given) -> None:
    node = await given.create(NODES, given.unique, status={"conditions": [CONDITION]})
    assert [c["type"] for c in node["status"]["conditions"]] == ["Test"]
    body = {"spec": {"unschedulable": True}, "status": {"conditions": []}}
    cordoned = await given.gateway.merge_patch(NODES, None, given.unique, body)
    assert cordoned["spec"]["unschedulable"] is True
    assert [c["type"] for c in cordoned["status"]["conditions"]] == ["Test"]
    body = {"spec": {"unschedulable": None}, "status": {"conditions": [{**CONDITION, "type": "Other"}]}}
    changed = await given.gateway.merge_patch(NODES, None, given.unique, body, "status")
    assert changed["spec"]["unschedulable"] is True
    assert [c["type"] for c in changed["status"]["conditions"]] == ["Other"]


@contract
async def test_a_built_in_status_takes_labels_along(given: Given) -> None:
    await given.create(NODES, given.unique)
    body = {"metadata": {"labels": {"l": "1"}}}
    changed = await given.gateway.merge_patch(NODES, None, given.unique, body, "status")
    assert changed["metadata"]["labels"] == {"l": "1"}


@contract
async def test_a_budget_begins_without_a_status_and_counts_its_spec(given: Given) -> None:
    made = await given.create(BUDGETS, "a", spec={"minAvailable": 1}, status={"disruptionsAllowed": 5})
    assert (made["status"]["disruptionsAllowed"], made["metadata"]["generation"]) == (0, 1)
    body = {"spec": {"minAvailable": 0}, "status": {"disruptionsAllowed": 5}}
    changed = await given.gateway.merge_patch(BUDGETS, given.namespace, "a", body)
    assert changed["metadata"]["generation"] == 2
    assert changed["status"]["disruptionsAllowed"] != 5


@contract
async def test_a_namespace_and_a_pod_have_a_status_too(given: Given) -> None:
    for path in (given.path(NAMESPACES, given.namespace, "status"), given.path(PODS, "a", "status")):
        answer = await given.http.get(path)
        assert answer.headers["Content-Type"] == "application/json"
