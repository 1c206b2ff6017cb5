"""Which objects a list has: selectors, scope and pages."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from fivespot.adapters.kube.errors import Invalid
from fivespot.adapters.kube.resources import CONFIG_MAPS, NODES, PODS
from tests.contract.apis import Given, contract
from tests.contract.definitions import BEACONS, WIDGETS


async def widgets(given: Given) -> None:
    """Three of them, with and without labels."""
    for name, labels in (("a", {"k": "1", "l": ""}), ("b", {"k": "2"}), ("c", {})):
        await given.create(WIDGETS, name, metadata={"labels": labels})


async def listed(given: Given, **query: Any) -> Any:
    answer = await given.asked("GET", given.path(WIDGETS), **query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def names(found: Any) -> list[str]:
    return [item["metadata"]["name"] for item in found["items"]]


@contract
async def test_labels_select(given: Given) -> None:
    await widgets(given)
    for selector, expected in (
        ("k=1", ["a"]),
        ("k==1", ["a"]),
        ("k!=1", ["b", "c"]),
        ("k", ["a", "b"]),
        ("!k", ["c"]),
        ("k in (1, 2)", ["a", "b"]),
        ("k notin (1)", ["b", "c"]),
        ("l=", ["a"]),
        ("k in (1,2),!l", ["b"]),
        ("k=3", []),
    ):
        found = await given.gateway.list(WIDGETS, given.namespace, selector)
        assert [item["metadata"]["name"] for item in found.items] == expected, selector


@contract
async def test_names_select(given: Given) -> None:
    await widgets(given)
    for selector, expected in (
        ("metadata.name=b", ["b"]),
        ("metadata.name==b", ["b"]),
        ("metadata.name!=b", ["a", "c"]),
        (f"metadata.namespace={given.namespace},metadata.name=a", ["a"]),
        ("metadata.namespace=default", []),
    ):
        assert names(await listed(given, fieldSelector=selector)) == expected
    one = f"metadata.namespace={given.namespace},metadata.name=a"
    assert len((await given.gateway.list(WIDGETS, None, field_selector=one)).items) == 1


@contract
async def test_pods_are_selected_by_their_node(given: Given) -> None:
    await given.server.may_have_pods(given)
    for name, node in (("a", given.unique), ("b", "")):
        spec = {"containers": [{"name": "c", "image": "none"}], **({"nodeName": node} if node else {})}
        await given.create(PODS, name, spec=spec)
    for selector, expected in (
        (f"spec.nodeName={given.unique}", ["a"]),
        ("spec.nodeName=", ["b"]),
        (f"spec.nodeName!={given.unique}", ["b"]),
    ):
        found = await given.gateway.list(PODS, given.namespace, field_selector=selector)
        assert [item["metadata"]["name"] for item in found.items] == expected


@contract
async def test_a_field_that_cannot_be_selected_by_is_a_bad_request(given: Given) -> None:
    unknown = "field label not supported: spec.x"
    for resource, selector, said in (
        (WIDGETS, "spec.x=1", unknown),
        (PODS, "spec.x=1", unknown),
        (NODES, "spec.x=1", unknown),
        (BEACONS, "metadata.namespace=x", "field label not supported: metadata.namespace"),
        (
            CONFIG_MAPS,
            "spec.x=1",
            '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
    ):
        status = await given.refused("GET", given.path(resource), fieldSelector=selector)
        assert (status["code"], status["reason"], status["message"]) == (400, "BadRequest", said)


@contract
async def test_a_selector_that_cannot_be_read_is_a_bad_request(given: Given) -> None:
    for label in ("k=(", ",", "k in 1", "-k"):
        with pytest.raises(Invalid) as refused:
            await given.gateway.list(WIDGETS, given.namespace, label)
        assert refused.value.status == 400
    with pytest.raises(Invalid):
        await given.gateway.list(WIDGETS, given.namespace, field_selector="bogus")


@contract
async def test_a_list_of_all_namespaces_has_those_of_each(given: Given) -> None:
    await widgets(given)
    everywhere = await given.gateway.list(WIDGETS)
    mine = [item for item in everywhere.items if item["metadata"]["namespace"] == given.namespace]
    assert [item["metadata"]["name"] for item in mine] == ["a", "b", "c"]


@contract
async def test_items_of_a_custom_list_say_their_type_and_built_in_ones_do_not(given: Given) -> None:
    await given.create(WIDGETS, "a")
    await given.create(CONFIG_MAPS, "a")
    custom = await listed(given)
    assert (custom["kind"], custom["apiVersion"]) == ("WidgetList", WIDGETS.api_version)
    assert {(item["kind"], item["apiVersion"]) for item in custom["items"]} == {
        ("Widget", WIDGETS.api_version)
    }
    core = (await given.http.get(given.path(CONFIG_MAPS))).json()
    assert (core["kind"], core["apiVersion"]) == ("ConfigMapList", "v1")
    assert not any("kind" in item for item in core["items"])


@contract
async def test_pages_show_one_version_whatever_happens_between_them(given: Given) -> None:
    await widgets(given)
    first = await listed(given, limit=1)
    assert (names(first), first["metadata"]["remainingItemCount"]) == (["a"], 2)
    await given.gateway.delete(WIDGETS, given.namespace, "b")
    await given.create(WIDGETS, "d")
    second = await listed(given, limit=1, **{"continue": first["metadata"]["continue"]})
    assert (names(second), second["metadata"]["remainingItemCount"]) == (["b"], 1)
    last = await listed(given, limit=1, **{"continue": second["metadata"]["continue"]})
    assert names(last) == ["c"]
    assert not last["metadata"].get("continue")
    assert {page["metadata"]["resourceVersion"] for page in (first, second, last)} == {
        first["metadata"]["resourceVersion"]
    }


@contract
async def test_pages_of_a_selection_do_not_say_how_many_are_left(given: Given) -> None:
    await widgets(given)
    first = await listed(given, limit=1, labelSelector="k")
    assert names(first) == ["a"]
    assert "remainingItemCount" not in first["metadata"]
    rest = await listed(given, limit=5, labelSelector="k", **{"continue": first["metadata"]["continue"]})
    assert names(rest) == ["b"]


@contract
async def test_a_limit_that_is_not_reached_makes_no_pages(given: Given) -> None:
    await widgets(given)
    for limit in (0, 3, 10):
        assert not (await listed(given, limit=limit))["metadata"].get("continue")


@contract
async def test_a_page_of_a_list_that_is_forgotten_is_expired(given: Given) -> None:
    await widgets(given)
    first = await listed(given, limit=1)
    token = first["metadata"]["continue"]
    read = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    # The real server remembers what it has just listed, so that the token has to be older than the server.
    old = base64.urlsafe_b64encode(json.dumps({**read, "rv": 1}).encode()).decode().rstrip("=")
    await given.server.forget()
    await given.gateway.delete(WIDGETS, given.namespace, "b")
    status = await given.refused("GET", given.path(WIDGETS), limit=1, **{"continue": old})
    assert (status["code"], status["reason"]) == (410, "Expired")
    assert status["message"].startswith(
        "The provided continue parameter is too old to display a consistent list"
    )
    goes_on = await listed(given, **{"continue": status["metadata"]["continue"]})
    assert names(goes_on) == ["c"]


@contract
async def test_a_continue_token_or_limit_that_cannot_be_read_is_a_bad_request(given: Given) -> None:
    status = await given.refused("GET", given.path(WIDGETS), limit=1, **{"continue": "junk"})
    assert (status["code"], status["reason"]) == (400, "BadRequest")
    status = await given.refused("GET", given.path(WIDGETS), limit="x")
    assert (status["code"], status["reason"]) == (400, "BadRequest")
