"""Kinds that come and go while the server runs, and those that we ship."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
import yaml

from fivespot.adapters.kube.errors import Conflict, Forbidden, Invalid, KindNotServed, NotFound, Throttled
from fivespot.adapters.kube.resources import CRDS, Object, Resource
from tests.contract.apis import Given, contract, until
from tests.contract.definitions import CRDS as INSTALLED
from tests.contract.definitions import definition

_EXAMPLES = Path(__file__).parents[2] / "deploy" / "examples"


async def served(given: Given, *versions: str) -> Resource:
    """A new kind of this test's own, when it is served and can be watched."""
    group = f"{given.unique}.5spot.test"
    listed: list[dict[str, Any]] = [
        {"name": version, "storage": version == "v1", "subresources": {"status": {}}}
        for version in ("v1", *versions)
    ]
    await given.gateway.create(CRDS, None, definition(group, "things", "Thing", "Namespaced", listed))
    resource = Resource(group, "v1", "things", "Thing", namespaced=True)
    query = {"watch": "true", "timeoutSeconds": "1"}

    async def watchable() -> bool:
        async with given.http.stream("GET", given.path(resource), params=query) as answer:
            return answer.status_code == 200

    await until(watchable, "the kind is served")

    async def discovered() -> bool:
        return (await given.http.get(f"/apis/{group}/v1")).status_code == 200

    await until(discovered, "the kind is listed")
    return resource


async def new(given: Given, resource: Resource, **body: Any) -> Object:
    """An object; by apply, since the real server makes every POST to a new kind wait for two seconds."""
    return await given.gateway.apply(resource, given.namespace, "a", body)


def within(wanted: Any, found: Any) -> bool:
    """Whether all that is wanted was found, and perhaps more."""
    if isinstance(wanted, dict):
        return all(key in found and within(value, found[key]) for key, value in wanted.items())
    if isinstance(wanted, list):
        return len(wanted) == len(found) and all(map(within, wanted, found))
    return bool(wanted == found)


async def no_longer(given: Given, path: str) -> None:
    async def not_there() -> bool:
        answer = await given.http.get(path)
        return (answer.status_code, answer.text) == (404, "404 page not found\n")

    await until(not_there, f"{path} is not served")


@contract
async def test_a_kind_is_served_once_its_definition_says_so(given: Given) -> None:
    things = await served(given, "v1beta1")
    assert await given.gateway.resolve(things.group, "Thing") == things
    crd = await given.gateway.get(CRDS, None, things.label)
    conditions = {c["type"]: c["status"] for c in crd["status"]["conditions"]}
    assert (conditions["Established"], conditions["NamesAccepted"]) == ("True", "True")
    assert crd["status"]["storedVersions"] == ["v1"]
    assert crd["status"]["acceptedNames"]["plural"] == "things"
    made = await new(given, things, spec={"size": 1}, status={"k": 1})
    assert (made["metadata"]["generation"], "status" in made) == (1, False)


@contract
async def test_a_kind_that_goes_takes_its_objects_with_it_and_ends_its_streams(given: Given) -> None:
    things = await served(given)
    await new(given, things)
    version = (await given.gateway.list(things, given.namespace)).resource_version
    opened = asyncio.Event()

    async def follow() -> list[tuple[str, str]]:
        stream = given.gateway.watch(
            things, given.namespace, resource_version=version, timeout_seconds=60, opened=opened.set
        )
        async with aclosing(stream):
            return [(e.type, e.object["metadata"]["name"]) async for e in stream if e.type != "BOOKMARK"]

    stream = asyncio.create_task(follow())
    await opened.wait()
    marked = await given.gateway.delete(CRDS, None, things.label)
    assert marked is not None
    assert marked["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert ("Terminating", "True") in [(c["type"], c["status"]) for c in marked["status"]["conditions"]]
    assert await asyncio.wait_for(stream, 45) == [("DELETED", "a")]
    await no_longer(given, given.path(things))
    await no_longer(given, f"/apis/{things.group}")
    with pytest.raises(NotFound) as refused:
        await given.gateway.list(things, given.namespace)
    assert refused.value.kind_not_served
    with pytest.raises(KindNotServed):
        await given.gateway.resolve(things.group, "Thing")
    with pytest.raises(NotFound):
        await given.gateway.get(CRDS, None, things.label)


@contract
async def test_a_kind_that_goes_waits_for_finalizers_and_lets_nothing_new_in(given: Given) -> None:
    things = await served(given)
    await new(given, things, metadata={"finalizers": ["5spot.test/hold"]})
    await given.gateway.delete(CRDS, None, things.label)

    async def marked() -> bool:
        return "deletionTimestamp" in (await given.gateway.get(things, given.namespace, "a"))["metadata"]

    await until(marked, "the object is marked")
    with pytest.raises(Forbidden) as refused:
        await given.create(things, "b")
    assert refused.value.message == (
        f'{things.label} "b" is forbidden: create not allowed while custom resource definition is terminating'
    )
    # The end of it takes the real server some seconds more, and is another test's.
    await given.gateway.merge_patch(things, given.namespace, "a", {"metadata": {"finalizers": None}})


@contract
async def test_a_version_that_is_no_longer_served_is_gone_and_its_objects_are_not(given: Given) -> None:
    things = await served(given, "v1beta1")
    old = Resource(things.group, "v1beta1", "things", "Thing", namespaced=True)
    made = await new(given, old)
    operations = [{"op": "replace", "path": "/spec/versions/1/served", "value": False}]
    changed = await given.gateway.json_patch(CRDS, None, things.label, operations)
    assert changed["metadata"]["generation"] == 2
    await no_longer(given, given.path(old))

    async def read() -> bool:
        try:
            found = await given.gateway.get(things, given.namespace, "a")
        except Throttled:
            # The real server builds the kind anew.
            return False
        return bool(found["metadata"]["uid"] == made["metadata"]["uid"])

    await until(read, "the object is read in the other version")


@contract
async def test_a_definition_has_to_be_called_after_what_it_defines(given: Given) -> None:
    crd = definition(f"{given.unique}.5spot.test", "things", "Thing", "Namespaced", [{"name": "v1"}])
    crd["metadata"]["name"] = f"other.{given.unique}.5spot.test"
    with pytest.raises(Invalid, match="must be spec"):
        await given.gateway.create(CRDS, None, crd)


@contract
async def test_the_end_of_a_kind_can_insist_on_the_definitions_identity(given: Given) -> None:
    things = await served(given)
    with pytest.raises(
        Conflict, match="precondition failed: UID in precondition: other, UID in object meta: "
    ):
        await given.gateway.delete(CRDS, None, things.label, uid="other")
    await given.gateway.list(things, given.namespace)


@contract
async def test_all_kinds_that_we_ship_or_stand_in_for_are_served(given: Given) -> None:
    for crd in INSTALLED:
        spec = crd["spec"]
        for version in (version["name"] for version in spec["versions"] if version["served"]):
            resource = await given.gateway.resolve(spec["group"], spec["names"]["kind"], version)
            assert (resource.version, resource.plural) == (version, spec["names"]["plural"])


@contract
async def test_our_examples_are_stored_as_they_are_and_with_defaults(given: Given) -> None:
    for path in sorted(_EXAMPLES.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            group, _, version = document["apiVersion"].rpartition("/")
            resource = await given.gateway.resolve(group, document["kind"], version)
            metadata = {**document["metadata"], "namespace": given.namespace}
            made = await given.gateway.create(resource, given.namespace, {**document, "metadata": metadata})
            assert within(document["spec"], made["spec"])


@contract
async def test_a_machines_defaults_are_those_of_its_definition(given: Given) -> None:
    document = list(yaml.safe_load_all((_EXAMPLES / "lab.yaml").read_text()))[1]
    machines = await given.gateway.resolve("5spot.finos.org", "ScheduledMachine")
    metadata = {**document["metadata"], "namespace": given.namespace}
    made = await given.gateway.create(machines, given.namespace, {**document, "metadata": metadata})
    added = {key: value for key, value in made["spec"].items() if key not in document["spec"]}
    assert added == {
        "enabled": True,
        "gracefulShutdownTimeout": "5m",
        "killSwitch": False,
        "nodeDrainTimeout": "5m",
        "onDrainTimeout": "Force",
    }
    for wrong in ({"priority": 256}, {"clusterName": 1}, {"onDrainTimeout": "x"}):
        with pytest.raises(Invalid):
            await given.gateway.merge_patch(machines, given.namespace, metadata["name"], {"spec": wrong})
