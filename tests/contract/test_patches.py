"""Merge patches and JSON patches: what they do, what makes them conditional, and how they are refused."""

from __future__ import annotations

from typing import Any

import pytest

from fivespot.adapters.kube.errors import Conflict, Invalid, NotFound
from fivespot.adapters.kube.resources import CONFIG_MAPS, Object
from tests.contract.apis import Given, contract
from tests.contract.definitions import WIDGETS

MERGE = "application/merge-patch+json"
JSON = "application/json-patch+json"


async def config_map(given: Given, **data: str) -> Object:
    return await given.create(CONFIG_MAPS, "a", data=data)


@contract
async def test_a_merge_patch_sets_replaces_and_removes(given: Given) -> None:
    spec = {"order": ["a", "b"], "free": {"x": 1, "y": {"z": 1}}}
    await given.create(WIDGETS, "a", spec=spec)
    patch = {"spec": {"order": ["c"], "free": {"x": None, "y": {"w": 2}}}}
    changed = await given.gateway.merge_patch(WIDGETS, given.namespace, "a", patch)
    assert changed["spec"] == {"order": ["c"], "free": {"y": {"z": 1, "w": 2}}}


@contract
async def test_a_merge_patch_at_an_old_version_is_a_conflict(given: Given) -> None:
    made = await config_map(given, k="1")
    await given.gateway.merge_patch(CONFIG_MAPS, given.namespace, "a", {"data": {"k": "2"}})
    stale = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "data": {"k": "3"}}
    with pytest.raises(Conflict) as refused:
        await given.gateway.merge_patch(CONFIG_MAPS, given.namespace, "a", stale)
    assert refused.value.message.endswith("please apply your changes to the latest version and try again")


@contract
async def test_a_merge_patch_at_the_current_version_goes_through(given: Given) -> None:
    made = await config_map(given, k="1")
    current = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "data": {"k": "2"}}
    changed = await given.gateway.merge_patch(CONFIG_MAPS, given.namespace, "a", current)
    assert changed["data"] == {"k": "2"}


@contract
async def test_a_version_that_is_no_number_is_an_error_of_the_server(given: Given) -> None:
    await config_map(given)
    body = {"metadata": {"resourceVersion": "junk"}}
    status = await given.refused("PATCH", given.path(CONFIG_MAPS, "a"), body, type=MERGE)
    assert (status["code"], status["message"]) == (500, 'strconv.ParseUint: parsing "junk": invalid syntax')


@contract
async def test_a_patch_cannot_change_what_identifies_an_object(given: Given) -> None:
    await config_map(given)
    path = given.path(CONFIG_MAPS, "a")
    for metadata, code in (
        ({"uid": "x"}, 422),
        ({"name": "x"}, 400),
        ({"namespace": "default"}, 400),
        ({"deletionTimestamp": "2001-01-01T00:00:00Z"}, 422),
    ):
        status = await given.refused("PATCH", path, {"metadata": metadata}, type=MERGE)
        assert status["code"] == code, metadata


@contract
async def test_what_the_server_keeps_is_not_patched(given: Given) -> None:
    made = await given.create(WIDGETS, "a")
    body = {"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z", "generation": 7}}
    assert await given.gateway.merge_patch(WIDGETS, given.namespace, "a", body) == made


@contract
async def test_a_patch_that_leads_to_another_type_is_invalid(given: Given) -> None:
    await config_map(given)
    for body in ({"kind": "Secret"}, {"apiVersion": "v2"}, {"data": {"k": 1}}):
        status = await given.refused("PATCH", given.path(CONFIG_MAPS, "a"), body, type=MERGE)
        assert (status["code"], status["reason"]) == (422, "Invalid")
        assert status["message"].startswith(' "" is invalid: patch: Invalid value: ')
        assert status["details"]["causes"][0]["field"] == "patch"


@contract
async def test_a_patch_that_makes_an_object_wrong_is_invalid_and_says_where(given: Given) -> None:
    await config_map(given)
    with pytest.raises(Invalid) as refused:
        await given.gateway.merge_patch(CONFIG_MAPS, given.namespace, "a", {"data": {"not a key": "x"}})
    assert [cause["field"] for cause in refused.value.details["causes"]] == ["data[not a key]"]
    operations = [{"op": "add", "path": "/data", "value": {"not a key": "x"}}]
    with pytest.raises(Invalid) as refused:
        await given.gateway.json_patch(CONFIG_MAPS, given.namespace, "a", operations)
    assert [cause["field"] for cause in refused.value.details["causes"]] == ["data[not a key]"]


@contract
async def test_a_patch_of_what_is_missing_creates_nothing(given: Given) -> None:
    with pytest.raises(NotFound):
        await given.gateway.merge_patch(CONFIG_MAPS, given.namespace, "a", {"data": {"k": "1"}})
    with pytest.raises(NotFound):
        await given.gateway.json_patch(CONFIG_MAPS, given.namespace, "a", [])


@contract
async def test_force_is_for_apply_alone(given: Given) -> None:
    await config_map(given)
    for force in ("true", "false"):
        status = await given.refused("PATCH", given.path(CONFIG_MAPS, "a"), {}, type=MERGE, force=force)
        assert (status["code"], status["reason"]) == (422, "Invalid")
        assert status["message"] == (
            'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch'
        )
        cause = {
            "reason": "FieldValueForbidden",
            "message": "Forbidden: may not be specified for non-apply patch",
        }
        assert status["details"] == {
            "group": "meta.k8s.io",
            "kind": "PatchOptions",
            "causes": [{**cause, "field": "force"}],
        }


@contract
async def test_a_patch_has_to_say_what_sort_it_is(given: Given) -> None:
    await config_map(given)
    for resource in (CONFIG_MAPS, WIDGETS):
        status = await given.refused("PATCH", given.path(resource, "a"), {}, type="application/json")
        assert (status["code"], status["reason"]) == (415, "UnsupportedMediaType")
    strategic = "application/strategic-merge-patch+json"
    status = await given.refused("PATCH", given.path(WIDGETS, "a"), {}, type=strategic)
    assert status["message"] == (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )


@contract
async def test_a_merge_patch_is_a_mapping_and_a_json_patch_a_list(given: Given) -> None:
    await config_map(given)
    path = given.path(CONFIG_MAPS, "a")
    for body, sort in (([], MERGE), (b"{", MERGE), ({}, JSON), (b"[", JSON), (["x"], JSON)):
        status = await given.refused("PATCH", path, body, type=sort)
        assert (status["code"], status["reason"]) == (400, "BadRequest"), (body, status)


@contract
async def test_a_json_patch_does_all_of_its_operations_in_order(given: Given) -> None:
    await given.create(WIDGETS, "a", spec={"order": ["a", "b"], "free": {"x": 1}})
    operations: list[dict[str, Any]] = [
        {"op": "test", "path": "/spec/free/x", "value": 1},
        {"op": "replace", "path": "/spec/free/x", "value": 2},
        {"op": "add", "path": "/spec/order/1", "value": "c"},
        {"op": "add", "path": "/spec/order/-", "value": "d"},
        {"op": "remove", "path": "/spec/order/0"},
        {"op": "copy", "from": "/spec/free/x", "path": "/spec/free/y~1z~0"},
        {"op": "move", "from": "/spec/free/x", "path": "/spec/size"},
    ]
    changed = await given.gateway.json_patch(WIDGETS, given.namespace, "a", operations)
    assert changed["spec"] == {"order": ["c", "b", "d"], "free": {"y/z~": 2}, "size": 2}


@contract
async def test_a_json_patch_whose_test_fails_changes_nothing(given: Given) -> None:
    made = await config_map(given, k="1")
    operations = [
        {"op": "replace", "path": "/data/k", "value": "2"},
        {"op": "test", "path": "/data/k", "value": "1"},
    ]
    status = await given.refused("PATCH", given.path(CONFIG_MAPS, "a"), operations, type=JSON)
    assert (status["code"], status["reason"], status["details"]) == (422, "Invalid", {})
    assert status["message"] == "the server rejected our request due to an error in our request"
    with pytest.raises(Conflict):
        await given.gateway.json_patch(CONFIG_MAPS, given.namespace, "a", operations)
    assert await given.gateway.get(CONFIG_MAPS, given.namespace, "a") == made


@contract
async def test_a_json_patch_that_does_not_fit_the_object_is_a_conflict(given: Given) -> None:
    await given.create(WIDGETS, "a", spec={"order": ["a"]})
    for operation in (
        {"op": "remove", "path": "/spec/free"},
        {"op": "add", "path": "/spec/free/x", "value": 1},
        {"op": "replace", "path": "/spec/order/1", "value": "x"},
        {"op": "test", "path": "/spec/free/x", "value": None},
        {"op": "move", "from": "/spec/free", "path": "/spec/size"},
        {"op": "strange", "path": "/spec"},
    ):
        with pytest.raises(Conflict):
            await given.gateway.json_patch(WIDGETS, given.namespace, "a", [operation])


@contract
async def test_a_json_patch_may_replace_and_test_a_key_that_is_missing(given: Given) -> None:
    """RFC 6902 says otherwise."""
    await config_map(given, k="1")
    operations: list[dict[str, Any]] = [
        {"op": "test", "path": "/data/l", "value": None},
        {"op": "replace", "path": "/data/l", "value": "2"},
    ]
    changed = await given.gateway.json_patch(CONFIG_MAPS, given.namespace, "a", operations)
    assert changed["data"] == {"k": "1", "l": "2"}


@contract
async def test_a_json_patch_can_insist_on_a_version_and_an_identity(given: Given) -> None:
    made = (await config_map(given, k="1"))["metadata"]
    path = "/metadata/resourceVersion"
    operations = [
        {"op": "test", "path": path, "value": made["resourceVersion"]},
        {"op": "test", "path": "/metadata/uid", "value": made["uid"]},
        {"op": "add", "path": "/data/l", "value": "1"},
    ]
    await given.gateway.json_patch(CONFIG_MAPS, given.namespace, "a", operations)
    with pytest.raises(Conflict):
        await given.gateway.json_patch(CONFIG_MAPS, given.namespace, "a", operations)
