"""How a client finds out what is served, and what it hears about what is not."""

from __future__ import annotations

import pytest

from fivespot.adapters.kube.errors import KindNotServed, NotFound
from fivespot.adapters.kube.resources import (
    CONFIG_MAPS,
    CRDS,
    EVENTS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    SECRETS,
    Resource,
)
from tests.contract.apis import BUDGETS, Given, contract
from tests.contract.definitions import BEACONS, GROUP, OLD_WIDGETS, WIDGETS


@contract
async def test_the_server_says_its_version(given: Given) -> None:
    assert (await given.gateway.version())["gitVersion"].startswith("v1.")


@contract
async def test_built_in_kinds_are_where_the_constants_say(given: Given) -> None:
    for resource in (NAMESPACES, NODES, PODS, SECRETS, CONFIG_MAPS, EVENTS, LEASES, CRDS, BUDGETS):
        assert await given.gateway.resolve(resource.group, resource.kind, resource.version) == resource
        await given.gateway.list(resource)


@contract
async def test_the_core_group_is_no_group(given: Given) -> None:
    core = (await given.http.get("/api")).json()
    assert (core["kind"], core["versions"]) == ("APIVersions", ["v1"])
    assert await given.gateway.resolve("", "Pod") == PODS


@contract
async def test_a_group_names_its_preferred_version_first(given: Given) -> None:
    group = (await given.http.get(f"/apis/{GROUP}")).json()
    listed = [version["version"] for version in group["versions"]]
    assert listed == ["v1", "v1beta1", "v1alpha1"]
    assert group["preferredVersion"] == {"groupVersion": f"{GROUP}/v1", "version": "v1"}
    assert (group["kind"], group["apiVersion"], group["name"]) == ("APIGroup", "v1", GROUP)


@contract
async def test_all_groups_are_listed(given: Given) -> None:
    listed = (await given.http.get("/apis")).json()
    names = {group["name"] for group in listed["groups"]}
    assert listed["kind"] == "APIGroupList"
    assert {GROUP, "policy", "coordination.k8s.io", "events.k8s.io", "apiextensions.k8s.io"} <= names


@contract
async def test_a_kind_is_found_in_the_version_that_is_preferred(given: Given) -> None:
    assert await given.gateway.resolve(GROUP, "Widget") == WIDGETS
    assert await given.gateway.resolve(GROUP, "Widget", "v1beta1") == OLD_WIDGETS


@contract
async def test_a_kind_that_is_not_served_in_a_version_is_found_in_another(given: Given) -> None:
    assert await given.gateway.resolve(GROUP, "Widget", "v1alpha1") == WIDGETS
    assert await given.gateway.resolve(GROUP, "Beacon", "v1") == BEACONS


@contract
async def test_a_version_lists_resources_with_scope_and_sub_resources(given: Given) -> None:
    listed = (await given.http.get(f"/apis/{GROUP}/v1")).json()
    entries = {entry["name"]: entry for entry in listed["resources"]}
    assert (listed["kind"], listed["groupVersion"]) == ("APIResourceList", f"{GROUP}/v1")
    assert set(entries) == {"widgets", "widgets/status"}
    assert (entries["widgets"]["kind"], entries["widgets"]["singularName"]) == ("Widget", "widget")
    assert entries["widgets"]["namespaced"] is True
    assert sorted(entries["widgets/status"]["verbs"]) == ["get", "patch", "update"]


@contract
async def test_pods_have_an_eviction(given: Given) -> None:
    listed = (await given.http.get("/api/v1")).json()
    entries = {entry["name"]: entry for entry in listed["resources"]}
    assert entries["pods/eviction"]["kind"] == "Eviction"
    assert entries["pods/eviction"]["verbs"] == ["create"]
    assert "nodes/status" in entries


@contract
async def test_a_kind_that_nobody_serves_is_not_found_by_discovery(given: Given) -> None:
    for group in (GROUP, "nothing.5spot.test", ""):
        with pytest.raises(KindNotServed):
            await given.gateway.resolve(group, "Nothing", "v1")


@contract
async def test_a_path_of_a_group_without_a_server_is_no_status(given: Given) -> None:
    for path in (
        f"/apis/{GROUP}/v1/namespaces/{given.namespace}/nothings",
        f"/apis/{GROUP}/v1alpha1/namespaces/{given.namespace}/widgets",
        "/apis/nothing.5spot.test",
        "/apis/nothing.5spot.test/v1",
        "/apis/nothing.5spot.test/v1/things",
        "/nothing",
    ):
        answer = await given.http.get(path)
        assert (answer.status_code, answer.text) == (404, "404 page not found\n"), path
        assert answer.headers["Content-Type"].startswith("text/plain"), path


@contract
async def test_a_path_of_a_built_in_group_that_leads_nowhere_is_a_status_about_nothing(given: Given) -> None:
    pod = f"/api/v1/namespaces/{given.namespace}/pods/a/nothing"
    for path in ("/api/v2", "/api/v1/nothings", "/apis/policy/v7", "/apis/policy/v1/nothings", pod):
        status = await given.refused("GET", path)
        assert (status["code"], status["reason"], status["details"]) == (404, "NotFound", {}), path
        assert status["message"] == "the server could not find the requested resource"


@contract
async def test_a_sub_resource_that_a_custom_kind_lacks_is_said_of_the_object(given: Given) -> None:
    status = await given.refused("GET", given.path(WIDGETS, "a", "scale"))
    assert (status["code"], status["details"]["name"]) == (404, "a")


@contract
async def test_a_method_that_a_path_does_not_have_is_not_allowed(given: Given) -> None:
    for method, path in (
        ("POST", given.path(CONFIG_MAPS, "a")),
        ("PATCH", given.path(CONFIG_MAPS)),
        ("GET", given.path(PODS, "a", "eviction")),
    ):
        status = await given.refused(method, path, {})
        assert (status["code"], status["reason"], status["details"]) == (405, "MethodNotAllowed", {})


@contract
async def test_the_gateway_tells_a_missing_kind_from_a_missing_object(given: Given) -> None:
    nothing = Resource(GROUP, "v1", "nothings", "Nothing", namespaced=True)
    with pytest.raises(NotFound) as kind:
        await given.gateway.get(nothing, given.namespace, "a")
    with pytest.raises(NotFound) as item:
        await given.gateway.get(WIDGETS, given.namespace, "a")
    assert (kind.value.kind_not_served, item.value.kind_not_served) == (True, False)
