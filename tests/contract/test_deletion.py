"""How objects go: at once, after their finalizers, after their grace, with their namespace."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import uuid4

import pytest

from fivespot.adapters.kube.errors import AlreadyExists, Conflict, Forbidden, Invalid, NotFound
from fivespot.adapters.kube.resources import CONFIG_MAPS, NAMESPACES, PODS, Object
from tests.contract.apis import Given, contract, until
from tests.contract.definitions import WIDGETS

HOLD = {"finalizers": ["5spot.test/hold"]}
LET_GO = {"metadata": {"finalizers": None}}


async def pod(given: Given, name: str, metadata: dict[str, Any] | None = None, **spec: Any) -> Object:
    """A pod that nobody will ever run."""
    await given.server.may_have_pods(given)
    spec = {"containers": [{"name": "c", "image": "none"}], **spec}
    return await given.create(PODS, name, metadata=metadata or {}, spec=spec)


async def gone(given: Given, name: str) -> bool:
    """Whether a pod is not there."""
    return (await given.http.get(given.path(PODS, name))).status_code == 404


@contract
async def test_a_deletion_that_is_done_says_so_and_of_what(given: Given) -> None:
    made = await given.create(WIDGETS, "a")
    answer = await given.asked("DELETE", given.path(WIDGETS, "a"))
    assert answer.status_code == 200
    assert answer.json() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {
            "name": "a",
            "group": WIDGETS.group,
            "kind": "widgets",
            "uid": made["metadata"]["uid"],
        },
    }
    with pytest.raises(NotFound):
        await given.gateway.delete(WIDGETS, given.namespace, "a")


@contract
async def test_a_deletion_can_insist_on_an_identity_and_a_version(given: Given) -> None:
    made = (await given.create(CONFIG_MAPS, "a"))["metadata"]
    other = str(uuid4())
    with pytest.raises(Conflict) as refused:
        await given.gateway.delete(CONFIG_MAPS, given.namespace, "a", uid=other)
    assert refused.value.message == (
        f'Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition ({other}) does not match the UID '
        f"in record ({made['uid']}). The object might have been deleted and then recreated"
    )
    assert refused.value.details == {"name": "a", "kind": "ConfigMap"}
    status = await given.refused(
        "DELETE", given.path(CONFIG_MAPS, "a"), {"preconditions": {"resourceVersion": "1"}}
    )
    assert status["reason"] == "Conflict"
    assert await given.gateway.delete(CONFIG_MAPS, given.namespace, "a", uid=made["uid"]) is None


@contract
async def test_finalizers_keep_an_object_that_is_marked(given: Given) -> None:
    ns = given.namespace
    await given.create(WIDGETS, "a", metadata=HOLD)
    marked = await given.gateway.delete(WIDGETS, ns, "a")
    assert marked is not None
    assert datetime.fromisoformat(marked["metadata"]["deletionTimestamp"]).tzinfo is not None
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
    assert marked["metadata"]["generation"] == 2
    assert await given.gateway.delete(WIDGETS, ns, "a") == marked
    assert await given.gateway.get(WIDGETS, ns, "a") == marked


@contract
async def test_a_marked_object_can_be_written_but_not_unmarked(given: Given) -> None:
    ns = given.namespace
    await given.create(WIDGETS, "a", metadata=HOLD)
    marked = await given.gateway.delete(WIDGETS, ns, "a")
    assert marked is not None
    body = {"metadata": {"deletionTimestamp": None, "labels": {"l": "1"}}, "spec": {"size": 1}}
    changed = await given.gateway.merge_patch(WIDGETS, ns, "a", body)
    assert changed["spec"] == {"size": 1}
    assert changed["metadata"]["deletionTimestamp"] == marked["metadata"]["deletionTimestamp"]


@contract
async def test_a_marked_object_takes_no_new_finalizers(given: Given) -> None:
    await given.create(WIDGETS, "a", metadata=HOLD)
    await given.gateway.delete(WIDGETS, given.namespace, "a")
    body = {"metadata": {"finalizers": [*HOLD["finalizers"], "5spot.test/more"]}}
    with pytest.raises(Invalid) as refused:
        await given.gateway.merge_patch(WIDGETS, given.namespace, "a", body)
    assert set(refused.value.causes) == {"FieldValueForbidden"}
    assert (
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new "
        'finalizers []string{"5spot.test/more"}'
    ) in refused.value.message


@contract
async def test_a_name_is_taken_until_the_object_is_gone(given: Given) -> None:
    await given.create(WIDGETS, "a", metadata=HOLD)
    await given.gateway.delete(WIDGETS, given.namespace, "a")
    with pytest.raises(AlreadyExists, match="object is being deleted: widgets"):
        await given.create(WIDGETS, "a")


@contract
async def test_an_object_goes_with_its_last_finalizer(given: Given) -> None:
    ns = given.namespace
    made = await given.create(WIDGETS, "a", metadata={"finalizers": ["5spot.test/one", "5spot.test/two"]})
    await given.gateway.delete(WIDGETS, ns, "a")
    one = {"metadata": {"finalizers": ["5spot.test/two"]}}
    assert "deletionTimestamp" in (await given.gateway.merge_patch(WIDGETS, ns, "a", one))["metadata"]
    last = await given.gateway.merge_patch(WIDGETS, ns, "a", LET_GO)
    assert last["metadata"]["uid"] == made["metadata"]["uid"]
    with pytest.raises(NotFound):
        await given.gateway.get(WIDGETS, ns, "a")


@contract
async def test_without_a_mark_finalizers_come_and_go(given: Given) -> None:
    await given.create(WIDGETS, "a", metadata=HOLD)
    left = await given.gateway.merge_patch(WIDGETS, given.namespace, "a", LET_GO)
    assert "finalizers" not in left["metadata"]
    assert await given.gateway.get(WIDGETS, given.namespace, "a") == left


@contract
async def test_every_propagation_policy_is_taken(given: Given) -> None:
    for name, policy, finalizer in (
        ("a", "Foreground", "foregroundDeletion"),
        ("b", "Orphan", "orphan"),
        ("c", "Background", None),
    ):
        await given.create(CONFIG_MAPS, name)
        path = given.path(CONFIG_MAPS, name)
        answer = await given.asked("DELETE", path, {"propagationPolicy": policy})
        assert answer.status_code == 200
        if finalizer:
            assert answer.json()["metadata"]["finalizers"] == [finalizer]
        else:
            assert answer.json()["status"] == "Success"

        async def no_more(path: str = path) -> bool:
            return (await given.http.get(path)).status_code == 404

        await until(no_more, name)


@contract
async def test_a_deletion_of_another_sort_is_refused(given: Given) -> None:
    await given.create(CONFIG_MAPS, "a")
    path = given.path(CONFIG_MAPS, "a")
    status = await given.refused("DELETE", path, {"propagationPolicy": "Sideways"})
    assert status["message"] == (
        'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Sideways": supported values: '
        '"Foreground", "Background", "Orphan", "nil"'
    )
    status = await given.refused("DELETE", path, {"apiVersion": "v1", "kind": "ConfigMap"})
    assert (status["code"], status["reason"]) == (400, "BadRequest")


@contract
async def test_a_pod_without_a_node_goes_at_once(given: Given) -> None:
    await pod(given, "a")
    last = await given.gateway.delete(PODS, given.namespace, "a")
    assert last is not None
    assert last["metadata"]["deletionGracePeriodSeconds"] == 0
    assert await gone(given, "a")


@contract
async def test_a_pod_on_a_node_has_its_grace(given: Given) -> None:
    made = await pod(given, "a", nodeName=given.unique, terminationGracePeriodSeconds=20)
    marked = await given.gateway.delete(PODS, given.namespace, "a")
    assert marked is not None
    metadata = marked["metadata"]
    age = datetime.fromisoformat(metadata["deletionTimestamp"]) - datetime.fromisoformat(
        made["metadata"]["creationTimestamp"]
    )
    assert 19 <= age.total_seconds() <= 25
    assert (metadata["deletionGracePeriodSeconds"], metadata["generation"]) == (20, 2)


@contract
async def test_a_grace_is_only_ever_shortened(given: Given) -> None:
    await pod(given, "a", nodeName=given.unique, terminationGracePeriodSeconds=20)
    for asked, left in ((None, 20), (100, 20), (None, 20), (5, 5), (10, 5)):
        marked = await given.gateway.delete(PODS, given.namespace, "a", grace_seconds=asked)
        assert marked is not None
        assert marked["metadata"]["deletionGracePeriodSeconds"] == left
        assert marked["metadata"]["generation"] == 2
    await given.gateway.delete(PODS, given.namespace, "a", grace_seconds=0)
    assert await gone(given, "a")


@contract
async def test_a_finished_pod_goes_at_once(given: Given) -> None:
    await pod(given, "a", nodeName=given.unique)
    await given.gateway.merge_patch(PODS, given.namespace, "a", {"status": {"phase": "Succeeded"}}, "status")
    await given.gateway.delete(PODS, given.namespace, "a")
    assert await gone(given, "a")


@contract
async def test_a_pod_waits_for_its_finalizers_when_its_time_is_up(given: Given) -> None:
    await pod(given, "a", metadata=HOLD, nodeName=given.unique)
    await given.gateway.delete(PODS, given.namespace, "a", grace_seconds=0)
    assert not await gone(given, "a")
    await given.gateway.merge_patch(PODS, given.namespace, "a", LET_GO)
    assert await gone(given, "a")


@contract
async def test_a_pods_spec_stays_as_it_was_created(given: Given) -> None:
    await pod(given, "a")
    with pytest.raises(Invalid, match="pod updates may not change fields other than"):
        await given.gateway.merge_patch(PODS, given.namespace, "a", {"spec": {"nodeName": "other"}})


@contract
async def test_a_namespace_takes_its_objects_away(given: Given) -> None:
    await given.create(WIDGETS, "a")
    await given.gateway.delete(NAMESPACES, None, given.namespace)

    async def ended() -> bool:
        return (await given.http.get(NAMESPACES.path(None, given.namespace))).status_code == 404

    await until(ended, "the namespace is gone")
    with pytest.raises(NotFound):
        await given.gateway.get(WIDGETS, given.namespace, "a")


@contract
async def test_a_namespace_waits_for_finalizers_and_lets_nothing_new_in(given: Given) -> None:
    home = given.namespace
    await given.create(WIDGETS, "a", metadata=HOLD)
    marked = await given.gateway.delete(NAMESPACES, None, home)
    assert marked is not None
    assert (marked["status"], marked["spec"]) == ({"phase": "Terminating"}, {"finalizers": ["kubernetes"]})
    with pytest.raises(Forbidden) as refused:
        await given.create(CONFIG_MAPS, "c")
    assert refused.value.message == (
        f'configmaps "c" is forbidden: unable to create new content in namespace {home} because it is being terminated'
    )
    assert refused.value.causes == ("NamespaceTerminating",)

    assert (await given.gateway.get(NAMESPACES, None, home))["status"]["phase"] == "Terminating"
    assert (await given.gateway.get(WIDGETS, home, "a"))["metadata"]["finalizers"] == HOLD["finalizers"]
    await given.gateway.merge_patch(WIDGETS, home, "a", LET_GO)


@contract
async def test_the_end_of_a_namespace_can_insist_on_its_identity(given: Given) -> None:
    uid = (await given.gateway.get(NAMESPACES, None, given.namespace))["metadata"]["uid"]
    with pytest.raises(Conflict) as refused:
        await given.gateway.delete(NAMESPACES, None, given.namespace, uid="other")
    assert refused.value.message.endswith(
        f"Precondition failed: UID in precondition: other, UID in object meta: {uid}"
    )
