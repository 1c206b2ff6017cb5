"""Server-side apply, and who manages what after writes of every sort."""

from __future__ import annotations

from typing import Any

import pytest

from fivespot.adapters.kube.errors import Conflict, NotFound
from fivespot.adapters.kube.resources import CONFIG_MAPS, NODES, Object, Resource
from tests.contract.apis import Given, contract
from tests.contract.definitions import GROUP, WIDGETS

APPLY = "application/apply-patch+yaml"


async def applied(given: Given, who: str, *, force: bool = False, **spec: Any) -> Object:
    """Apply a widget's spec."""
    return await given.gateway.apply(WIDGETS, given.namespace, "a", {"spec": spec}, who, force=force)


async def managers(given: Given, resource: Resource = WIDGETS) -> dict[tuple[str, str, str], Any]:
    """Fields by manager, operation and sub-resource."""
    found = await given.read(resource, "a" if resource.namespaced else given.unique)
    return {
        (line["manager"], line["operation"], line.get("subresource", "")): line["fieldsV1"]
        for line in found["metadata"].get("managedFields", [])
    }


@contract
async def test_apply_creates_what_is_missing_and_only_that(given: Given) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "1"}}
    path = given.path(CONFIG_MAPS, "a")
    first = await given.asked("PATCH", path, body, type=APPLY, fieldManager="one")
    second = await given.asked("PATCH", path, body, type=APPLY, fieldManager="one")
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json() == second.json()


@contract
async def test_apply_of_a_status_needs_the_object(given: Given) -> None:
    with pytest.raises(NotFound):
        await given.gateway.apply(WIDGETS, given.namespace, "a", {"status": {"k": 1}}, subresource="status")


@contract
async def test_apply_takes_yaml(given: Given) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  k: '1'\n"
    answer = await given.asked("PATCH", given.path(CONFIG_MAPS, "a"), body, type=APPLY, fieldManager="one")
    assert (answer.status_code, answer.json()["data"]) == (201, {"k": "1"})


@contract
async def test_apply_insists_on_a_manager(given: Given) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    status = await given.refused("PATCH", given.path(CONFIG_MAPS, "a"), body, type=APPLY)
    assert status["code"] == 422
    assert status["message"] == (
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
    )


@contract
async def test_apply_insists_on_a_type_that_fits_the_path(given: Given) -> None:
    whole = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    for change, said in (
        ({"kind": None}, "invalid object type: /v1, Kind="),
        ({"apiVersion": None}, "invalid object type: /, Kind=ConfigMap"),
        ({"apiVersion": None, "kind": None}, "invalid object type: /, Kind="),
        ({"apiVersion": "v2"}, "invalid object type: /v2, Kind=ConfigMap"),
        ({"kind": "Secret"}, "invalid object type: /v1, Kind=Secret"),
    ):
        body = {key: value for key, value in {**whole, **change}.items() if value is not None}
        status = await given.refused(
            "PATCH", given.path(CONFIG_MAPS, "a"), body, type=APPLY, fieldManager="one"
        )
        assert (status["code"], status["reason"], status["message"]) == (400, "BadRequest", said)


@contract
async def test_apply_insists_on_the_name_and_takes_no_managed_fields(given: Given) -> None:
    path = given.path(CONFIG_MAPS, "a")
    for metadata, said in (
        ({}, "the name of the object (a based on URL) was undeterminable: name must be provided"),
        ({"name": "b"}, "the name of the object (b) does not match the name on the URL (a)"),
        ({"name": "a", "managedFields": []}, "metadata.managedFields must be nil"),
    ):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        status = await given.refused("PATCH", path, body, type=APPLY, fieldManager="one")
        assert (status["code"], status["message"]) == (400, said)


@contract
async def test_apply_with_an_identity_creates_nothing(given: Given) -> None:
    with pytest.raises(
        Conflict, match="uid mismatch: the provided object specified uid x, and no existing object"
    ):
        await given.gateway.apply(CONFIG_MAPS, given.namespace, "a", {"metadata": {"uid": "x"}})


@contract
async def test_another_managers_value_is_a_conflict_that_names_them(given: Given) -> None:
    await applied(given, "one", size=1)
    with pytest.raises(Conflict) as refused:
        await applied(given, "two", size=2)
    assert refused.value.causes == ("FieldManagerConflict",)
    assert refused.value.message == 'Apply failed with 1 conflict: conflict with "one": .spec.size'
    assert refused.value.details == {
        "causes": [
            {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".spec.size"}
        ]
    }


@contract
async def test_conflicts_with_several_managers_are_listed(given: Given) -> None:
    await applied(given, "one", size=1, order=["a"])
    await given.gateway.merge_patch(
        WIDGETS, given.namespace, "a", {"spec": {"size": 2}}, field_manager="hand"
    )
    with pytest.raises(Conflict) as refused:
        await applied(given, "two", size=3, order=["b"])
    assert refused.value.message == (
        'Apply failed with 2 conflicts: conflicts with "hand" using contract.5spot.test/v1:\n- .spec.size\n'
        'conflicts with "one":\n- .spec.order'
    )


@contract
async def test_the_same_value_is_shared_without_a_conflict(given: Given) -> None:
    await applied(given, "one", size=1)
    await applied(given, "two", size=1)
    assert {who for who, _, _ in await managers(given)} == {"one", "two"}
    left = await applied(given, "one", order=["a"])
    assert left["spec"] == {"size": 1, "order": ["a"]}


@contract
async def test_force_takes_a_field_over(given: Given) -> None:
    await applied(given, "one", size=1, order=["a"])
    taken = await applied(given, "two", force=True, size=2)
    assert taken["spec"]["size"] == 2
    assert await managers(given) == {
        ("one", "Apply", ""): {"f:spec": {"f:order": {}}},
        ("two", "Apply", ""): {"f:spec": {"f:size": {}}},
    }
    assert (await applied(given, "one", order=["a"]))["spec"] == {"size": 2, "order": ["a"]}


@contract
async def test_a_field_that_is_given_up_goes_unless_somebody_else_has_it(given: Given) -> None:
    await given.gateway.apply(
        WIDGETS,
        given.namespace,
        "a",
        {"metadata": {"labels": {"x": "1", "y": "1"}}, "spec": {"size": 1}},
        "one",
    )
    await given.gateway.apply(WIDGETS, given.namespace, "a", {"metadata": {"labels": {"y": "1"}}}, "two")
    left = await given.gateway.apply(WIDGETS, given.namespace, "a", {}, "one")
    assert left["metadata"]["labels"] == {"y": "1"}
    assert "spec" not in left


@contract
async def test_a_list_with_keys_is_merged_by_its_items(given: Given) -> None:
    await applied(given, "one", parts=[{"name": "a", "value": "1"}, {"name": "b"}])
    both = await applied(given, "two", parts=[{"name": "c"}, {"name": "a", "more": "2"}])
    assert {part["name"]: part for part in both["spec"]["parts"]} == {
        "a": {"name": "a", "value": "1", "more": "2"},
        "b": {"name": "b"},
        "c": {"name": "c"},
    }
    left = await applied(given, "one", parts=[{"name": "a"}])
    assert {part["name"]: part for part in left["spec"]["parts"]} == {
        "a": {"name": "a", "more": "2"},
        "c": {"name": "c"},
    }


@contract
async def test_a_set_is_merged_and_any_other_list_is_one_value(given: Given) -> None:
    await applied(given, "one", tags=["a", "b"])
    assert sorted((await applied(given, "two", tags=["b", "c"]))["spec"]["tags"]) == ["a", "b", "c"]
    assert sorted((await applied(given, "one", tags=[]))["spec"]["tags"]) == ["b", "c"]
    await applied(given, "one", order=["a"])
    with pytest.raises(Conflict, match=r"\.spec\.order"):
        await applied(given, "two", order=["b"])


@contract
async def test_the_same_apply_again_makes_no_version(given: Given) -> None:
    first = await applied(given, "one", size=1, free={"x": {"y": 1}}, parts=[{"name": "a"}])
    assert await applied(given, "one", size=1, free={"x": {"y": 1}}, parts=[{"name": "a"}]) == first


@contract
async def test_other_writes_manage_what_they_change(given: Given) -> None:
    await given.gateway.create(
        CONFIG_MAPS,
        given.namespace,
        {"metadata": {"name": "a", "labels": {"l": "1"}}, "data": {"k": "1"}},
        "one",
    )
    patch = {"data": {"k": "2", "l": "3"}}
    await given.gateway.merge_patch(CONFIG_MAPS, given.namespace, "a", patch, field_manager="two")
    assert await managers(given, CONFIG_MAPS) == {
        ("one", "Update", ""): {"f:data": {}, "f:metadata": {"f:labels": {".": {}, "f:l": {}}}},
        ("two", "Update", ""): {"f:data": {"f:k": {}, "f:l": {}}},
    }


@contract
async def test_without_a_name_a_writer_is_called_after_its_program(given: Given) -> None:
    await given.asked("POST", given.path(CONFIG_MAPS), {"metadata": {"name": "a"}, "data": {"k": "1"}})
    assert list(await managers(given, CONFIG_MAPS)) == [("python-httpx", "Update", "")]


@contract
async def test_a_status_is_managed_apart_and_the_rest_of_the_body_by_nobody(given: Given) -> None:
    await applied(given, "one", size=1)
    body = {"metadata": {"labels": {"l": "1"}}, "spec": {"size": 2}, "status": {"k": 1}}
    changed = await given.gateway.apply(WIDGETS, given.namespace, "a", body, "one", subresource="status")
    assert (changed["spec"], changed["status"]) == ({"size": 1}, {"k": 1})
    main = {"spec": {"size": 1}, "status": {"k": 2}}
    await given.gateway.apply(WIDGETS, given.namespace, "a", main, "one")
    assert await managers(given) == {
        ("one", "Apply", ""): {"f:spec": {"f:size": {}}},
        ("one", "Apply", "status"): {"f:status": {"f:k": {}}},
    }


@contract
async def test_one_name_applies_and_updates_as_two(given: Given) -> None:
    await applied(given, "one", size=1)
    await given.gateway.merge_patch(WIDGETS, given.namespace, "a", {"spec": {"size": 2}}, field_manager="one")
    with pytest.raises(Conflict, match='conflict with "one" using contract'):
        await applied(given, "one", size=1)


@contract
async def test_what_nobody_was_seen_to_write_belongs_to_before_the_first_apply(given: Given) -> None:
    await given.create(NODES, given.unique)
    body = {"metadata": {"labels": {"l": "1"}}}
    await given.gateway.merge_patch(NODES, None, given.unique, body)
    assert await managers(given, NODES) == {}
    with pytest.raises(Conflict, match='conflict with "before-first-apply" using v1: '):
        await given.gateway.apply(NODES, None, given.unique, {"metadata": {"labels": {"l": "2"}}})


@contract
async def test_finalizers_are_a_set_of_which_each_has_its_manager(given: Given) -> None:
    for who in ("one", "two"):
        body = {"metadata": {"finalizers": [f"{GROUP}/{who}"]}}
        await given.gateway.apply(WIDGETS, given.namespace, "a", body, who)
    left = await given.gateway.apply(WIDGETS, given.namespace, "a", {}, "one")
    assert left["metadata"]["finalizers"] == [f"{GROUP}/two"]
