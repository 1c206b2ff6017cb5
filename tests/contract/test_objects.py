"""Create, read and replace: names, versions, generations, and every refusal with its own words."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from fivespot.adapters.kube.errors import AlreadyExists, Conflict, Invalid, NotFound
from fivespot.adapters.kube.resources import CONFIG_MAPS, EVENTS, LEASES, NAMESPACES, NODES, PODS, SECRETS
from tests.contract.apis import BUDGETS, Given, contract
from tests.contract.definitions import BEACONS, GROUP, OLD_WIDGETS, WIDGETS


@contract
async def test_the_server_fills_in_what_identifies_an_object(given: Given) -> None:
    metadata = {"uid": str(uuid4()), "creationTimestamp": "2001-01-01T00:00:00Z", "generation": 7}
    made = (await given.create(WIDGETS, "a", metadata=metadata, spec={"size": 1}))["metadata"]
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", made["uid"])
    assert made["uid"] != metadata["uid"]
    age = datetime.now(UTC) - datetime.fromisoformat(made["creationTimestamp"])
    assert -2 <= age.total_seconds() <= 30
    assert (made["generation"], made["namespace"], made["name"]) == (1, given.namespace, "a")
    assert int(made["resourceVersion"]) > 0


@contract
async def test_type_is_filled_in_for_built_in_kinds_and_required_for_custom_ones(given: Given) -> None:
    body = {"metadata": {"name": "a"}}
    made = await given.asked("POST", given.path(CONFIG_MAPS), body)
    assert (made.status_code, made.json()["kind"], made.json()["apiVersion"]) == (201, "ConfigMap", "v1")
    assert (await given.refused("POST", given.path(WIDGETS), body))["reason"] == "BadRequest"


@contract
async def test_what_was_created_is_read_back(given: Given) -> None:
    made = await given.create(CONFIG_MAPS, "a", data={"k": "x\x85y\u2028z"})
    assert await given.gateway.get(CONFIG_MAPS, given.namespace, "a") == made


@contract
async def test_who_owns_which_field_is_read_only_by_those_who_ask(given: Given) -> None:
    body = {"metadata": {"name": "a", "namespace": given.namespace}, "spec": {"size": 1}}
    await given.gateway.create(WIDGETS, given.namespace, body, "somebody")
    plain = await given.gateway.get(WIDGETS, given.namespace, "a")
    assert "managedFields" not in plain["metadata"]
    whole = await given.gateway.get_whole(WIDGETS, given.namespace, "a")
    (entry,) = whole["metadata"].pop("managedFields")
    assert (entry["manager"], entry["fieldsV1"]["f:spec"]["f:size"]) == ("somebody", {})
    assert whole == plain


@contract
async def test_a_name_is_taken_once(given: Given) -> None:
    await given.create(CONFIG_MAPS, "a")
    with pytest.raises(AlreadyExists) as refused:
        await given.create(CONFIG_MAPS, "a")
    assert (refused.value.status, refused.value.message) == (409, 'configmaps "a" already exists')
    assert refused.value.details == {"name": "a", "kind": "configmaps"}
    await given.create(WIDGETS, "a")
    with pytest.raises(AlreadyExists) as refused:
        await given.create(WIDGETS, "a")
    assert refused.value.message == f'widgets.{GROUP} "a" already exists'
    assert refused.value.details == {"name": "a", "group": GROUP, "kind": "widgets"}


@contract
async def test_an_object_that_is_missing_is_named(given: Given) -> None:
    status = await given.refused("GET", given.path(WIDGETS, "a"))
    assert (status["code"], status["reason"]) == (404, "NotFound")
    assert status["message"] == f'widgets.{GROUP} "a" not found'
    assert status["details"] == {"name": "a", "group": GROUP, "kind": "widgets"}
    status = await given.refused("GET", given.path(PODS, "a"))
    assert (status["message"], status["details"]) == ('pods "a" not found', {"name": "a", "kind": "pods"})


@contract
async def test_a_name_can_be_made_up_by_the_server(given: Given) -> None:
    body = {"metadata": {"generateName": "a-"}}
    one, other = [await given.gateway.create(CONFIG_MAPS, given.namespace, body) for _ in range(2)]
    assert re.fullmatch(r"a-[a-z0-9]{5}", one["metadata"]["name"])
    assert one["metadata"]["name"] != other["metadata"]["name"]


@contract
async def test_a_bad_name_is_invalid(given: Given) -> None:
    with pytest.raises(Invalid) as refused:
        await given.create(CONFIG_MAPS, "Not A Name")
    assert refused.value.status == 422
    assert refused.value.message.startswith(
        'ConfigMap "Not A Name" is invalid: metadata.name: Invalid value: "Not A Name": a lowercase RFC 1123 '
    )
    assert refused.value.causes == ("FieldValueInvalid",)
    assert refused.value.details["causes"][0]["field"] == "metadata.name"
    assert (refused.value.details["kind"], refused.value.details["name"]) == ("ConfigMap", "Not A Name")


@contract
async def test_no_name_at_all_is_invalid(given: Given) -> None:
    body = {"apiVersion": WIDGETS.api_version, "kind": "Widget", "metadata": {}}
    status = await given.refused("POST", given.path(WIDGETS), body)
    said = f'Widget.{GROUP} "" is invalid: metadata.name: Required value: name or generateName is required'
    assert (status["code"], status["message"]) == (422, said)


@contract
async def test_a_bad_key_or_label_is_invalid(given: Given) -> None:
    with pytest.raises(
        Invalid, match=r'data\[not a key\]: Invalid value: "not a key": a valid config key must'
    ):
        await given.create(CONFIG_MAPS, "a", data={"not a key": "x"})
    with pytest.raises(Invalid, match=r'metadata.labels: Invalid value: "no label": a valid label must be'):
        await given.create(CONFIG_MAPS, "a", metadata={"labels": {"k": "no label"}})
    with pytest.raises(Invalid) as refused:
        await given.create(CONFIG_MAPS, "a", data={"k": 1})
    assert (refused.value.status, refused.value.reason) == (400, "BadRequest")


@contract
async def test_a_body_for_another_path_is_a_bad_request(given: Given) -> None:
    path = given.path(CONFIG_MAPS)
    for body, said in (
        (
            {"metadata": {"name": "a", "namespace": "default"}},
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            {"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "a"}},
            'ConfigMap in version "v2" cannot be handled as a ConfigMap',
        ),
        (
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}},
            'Secret in version "v1" cannot be handled as a ConfigMap',
        ),
        (b"{", ""),
    ):
        status = await given.refused("POST", path, body)
        assert (status["code"], status["reason"]) == (400, "BadRequest"), status
        assert said in status["message"]


@contract
async def test_a_new_object_has_no_version_yet(given: Given) -> None:
    body = {"metadata": {"name": "a", "resourceVersion": "1"}}
    status = await given.refused("POST", given.path(CONFIG_MAPS), body)
    assert status["message"] == "resourceVersion should not be set on objects to be created"


@contract
async def test_a_new_object_needs_its_namespace(given: Given) -> None:
    with pytest.raises(NotFound) as refused:
        await given.gateway.create(CONFIG_MAPS, f"{given.unique}-x", {"metadata": {"name": "a"}})
    assert refused.value.message == f'namespaces "{given.unique}-x" not found'
    assert refused.value.details == {"name": f"{given.unique}-x", "kind": "namespaces"}
    assert not refused.value.kind_not_served


@contract
async def test_versions_only_grow_whatever_is_written(given: Given) -> None:
    versions = []
    for resource in (CONFIG_MAPS, WIDGETS, SECRETS):
        made = await given.create(resource, "a")
        versions.append(int(made["metadata"]["resourceVersion"]))
    changed = await given.gateway.merge_patch(CONFIG_MAPS, given.namespace, "a", {"data": {"k": "1"}})
    versions.append(int(changed["metadata"]["resourceVersion"]))
    assert versions == sorted(set(versions))
    assert int((await given.gateway.list(CONFIG_MAPS)).resource_version) >= versions[-1]


@contract
async def test_a_write_that_changes_nothing_makes_no_version(given: Given) -> None:
    made = await given.create(WIDGETS, "a", spec={"size": 1})
    again = await given.gateway.merge_patch(WIDGETS, given.namespace, "a", {"spec": {"size": 1}})
    replaced = await given.gateway.update(WIDGETS, given.namespace, made)
    assert made == again == replaced


@contract
async def test_generation_counts_changes_of_anything_but_metadata_and_status(given: Given) -> None:
    ns = given.namespace
    await given.create(WIDGETS, "a", spec={"size": 1})
    label = {"metadata": {"labels": {"k": "v"}}}
    assert (await given.gateway.merge_patch(WIDGETS, ns, "a", label))["metadata"]["generation"] == 1
    status = {"status": {"seen": 1}}
    assert (await given.gateway.merge_patch(WIDGETS, ns, "a", status, "status"))["metadata"][
        "generation"
    ] == 1
    size = {"spec": {"size": 2}}
    assert (await given.gateway.merge_patch(WIDGETS, ns, "a", size))["metadata"]["generation"] == 2


@contract
async def test_only_some_built_in_kinds_have_a_generation(given: Given) -> None:
    assert "generation" not in (await given.create(CONFIG_MAPS, "a"))["metadata"]
    assert "generation" not in (await given.create(LEASES, "a"))["metadata"]
    assert "generation" not in (await given.create(NODES, given.unique))["metadata"]
    budget = await given.create(BUDGETS, "a", spec={"minAvailable": 1})
    assert budget["metadata"]["generation"] == 1


@contract
async def test_an_update_replaces_the_object_that_was_read(given: Given) -> None:
    made = await given.create(CONFIG_MAPS, "a", data={"k": "1", "l": "1"})
    changed = await given.gateway.update(CONFIG_MAPS, given.namespace, {**made, "data": {"k": "2"}})
    assert changed["data"] == {"k": "2"}
    assert changed["metadata"]["uid"] == made["metadata"]["uid"]
    with pytest.raises(Conflict) as refused:
        await given.gateway.update(CONFIG_MAPS, given.namespace, {**made, "data": {"k": "3"}})
    assert refused.value.message == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to '
        "the latest version and try again"
    )
    assert refused.value.details == {"name": "a", "kind": "configmaps"}


@contract
async def test_an_update_of_another_object_of_that_name_is_a_conflict(given: Given) -> None:
    made = await given.create(LEASES, "a", spec={"holderIdentity": "x"})
    await given.gateway.delete(LEASES, given.namespace, "a")
    with pytest.raises(Conflict) as gone:
        await given.gateway.update(LEASES, given.namespace, made)
    uid = made["metadata"]["uid"]
    assert gone.value.message == (
        f'Operation cannot be fulfilled on leases.coordination.k8s.io "a": StorageError: invalid object, Code: 4, Key: '
        f"/registry/leases/{given.namespace}/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in "
        f"precondition: {uid}, UID in object meta: "
    )
    again = await given.create(LEASES, "a")
    with pytest.raises(Conflict) as other:
        await given.gateway.update(LEASES, given.namespace, made)
    assert other.value.message.endswith(f"{uid}, UID in object meta: {again['metadata']['uid']}")


@contract
async def test_an_update_creates_leases_and_events_alone(given: Given) -> None:
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"}}
    assert (await given.asked("PUT", given.path(LEASES, "a"), lease)).status_code == 201
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    assert (await given.refused("PUT", given.path(CONFIG_MAPS, "a"), body))["reason"] == "NotFound"


@contract
async def test_custom_kinds_and_leases_are_replaced_only_with_a_version(given: Given) -> None:
    for resource in (WIDGETS, LEASES):
        await given.create(resource, "a")
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "a"}}
        status = await given.refused("PUT", given.path(resource, "a"), body)
        assert (status["code"], status["reason"]) == (422, "Invalid")
        assert status["message"] == (
            f'{resource.plural}.{resource.group} "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be '
            "specified for an update"
        )
    await given.create(CONFIG_MAPS, "a")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "1"}}
    assert (await given.asked("PUT", given.path(CONFIG_MAPS, "a"), body)).status_code == 200


@contract
async def test_a_body_of_another_name_is_a_bad_request(given: Given) -> None:
    await given.create(CONFIG_MAPS, "a")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}
    status = await given.refused("PUT", given.path(CONFIG_MAPS, "a"), body)
    assert (status["code"], status["message"]) == (
        400,
        "the name of the object (b) does not match the name on the URL (a)",
    )


@contract
async def test_one_object_is_read_in_every_version_of_its_kind(given: Given) -> None:
    made = await given.create(OLD_WIDGETS, "a", spec={"size": 1})
    read = await given.gateway.get(WIDGETS, given.namespace, "a")
    assert (made["apiVersion"], read["apiVersion"]) == (f"{GROUP}/v1beta1", f"{GROUP}/v1")
    assert made["metadata"]["uid"] == read["metadata"]["uid"]
    assert read["spec"] == {"size": 1}


@contract
async def test_cluster_wide_kinds_have_no_namespace(given: Given) -> None:
    made = await given.create(BEACONS, given.unique)
    assert "namespace" not in made["metadata"]
    body = {**made, "metadata": {"name": f"{given.unique}-b", "namespace": given.namespace}}
    again = await given.asked("POST", given.path(BEACONS), body)
    assert (again.status_code, "namespace" in again.json()["metadata"]) == (201, False)
    inside = f"/apis/{GROUP}/v1alpha1/namespaces/{given.namespace}/beacons"
    assert (await given.http.get(inside)).text == "404 page not found\n"


@contract
async def test_a_namespace_says_its_name_in_a_label_and_is_active(given: Given) -> None:
    found = await given.gateway.get(NAMESPACES, None, given.namespace)
    assert found["metadata"]["labels"] == {"kubernetes.io/metadata.name": given.namespace}
    assert (found["spec"], found["status"]) == ({"finalizers": ["kubernetes"]}, {"phase": "Active"})


@contract
async def test_a_new_node_is_tainted_until_somebody_knows_better(given: Given) -> None:
    node = await given.create(NODES, given.unique, spec={"taints": [{"key": "k", "effect": "NoSchedule"}]})
    assert node["spec"]["taints"] == [
        {"key": "k", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
    ]


@contract
async def test_plain_text_of_a_secret_is_encoded(given: Given) -> None:
    made = await given.create(SECRETS, "a", stringData={"k": "v"})
    assert (made["data"], made["type"], "stringData" in made) == ({"k": "dg=="}, "Opaque", False)


def _event(given: Given) -> dict[str, Any]:
    return {
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "5spot.finos.org/controller",
        "reportingInstance": "a",
        "action": "Act",
        "reason": "Reason",
        "type": "Normal",
        "note": "said",
        "regarding": {"kind": "ConfigMap", "namespace": given.namespace, "name": "a"},
    }


@contract
async def test_an_event_has_to_say_who_did_what_to_what(given: Given) -> None:
    event = _event(given)
    await given.create(EVENTS, "a", **event)
    for wrong in (
        {"eventTime": None},
        {"reportingController": ""},
        {"reportingInstance": ""},
        {"action": ""},
        {"reason": ""},
        {"type": "Strange"},
        {"note": "x" * 1025},
        {"regarding": {"kind": "Node", "name": "a"}},
        {"series": {"count": 1, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}},
        {"series": {"count": 2}},
    ):
        with pytest.raises(Invalid) as refused:
            await given.create(EVENTS, "b", **{**event, **wrong})
        assert refused.value.message.startswith('Event "b" is invalid: '), wrong


@contract
async def test_of_an_event_only_the_series_changes(given: Given) -> None:
    event = _event(given)
    await given.create(EVENTS, "a", **event)
    series = {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}}
    changed = await given.gateway.merge_patch(EVENTS, given.namespace, "a", series)
    assert changed["series"] == series["series"]
    for field in ("note", "reason", "action"):
        with pytest.raises(Invalid, match="field is immutable"):
            await given.gateway.merge_patch(EVENTS, given.namespace, "a", {field: "other"})


@contract
async def test_a_lease_has_instants_of_microseconds_and_a_duration_that_is_one(given: Given) -> None:
    spec = {"leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z", "leaseTransitions": 0}
    assert (await given.create(LEASES, "a", spec=spec))["spec"] == spec
    for wrong in (
        {"leaseDurationSeconds": 0},
        {"leaseTransitions": -1},
        {"renewTime": "2026-01-01T00:00:00Z"},
    ):
        with pytest.raises(Invalid):
            await given.create(LEASES, "b", spec={**spec, **wrong})


@contract
async def test_a_custom_object_loses_what_its_schema_does_not_know(given: Given) -> None:
    made = await given.create(
        WIDGETS, "a", spec={"parts": [{"name": "x", "strange": 1}], "free": {"x": 1}}, strange=1
    )
    assert "strange" not in made
    assert made["spec"] == {"parts": [{"name": "x"}], "free": {"x": 1}}


@contract
async def test_a_custom_object_has_to_fit_its_schema(given: Given) -> None:
    for spec, reason, field in (
        ({"size": "x"}, "FieldValueTypeInvalid", "spec.size"),
        ({"parts": [{"value": "x"}]}, "FieldValueRequired", "spec.parts[0].name"),
        ({"parts": [{"name": "x"}, {"name": "x"}]}, "FieldValueDuplicate", "spec.parts[1]"),
        ({"tags": ["x", "x"]}, "FieldValueDuplicate", "spec.tags[1]"),
    ):
        with pytest.raises(Invalid) as refused:
            await given.create(WIDGETS, "a", spec=spec)
        causes = [(cause["reason"], cause["field"]) for cause in refused.value.details["causes"]]
        assert causes == [(reason, field)]
