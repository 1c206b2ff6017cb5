"""Objects of the wrong shape among good ones: that one is Unknown and logged, and the rest of its kind goes on."""

import logging
from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import pytest

from fivespot.core.decision.knowledge import Present, Unknown
from tests.faults.setting import WATCHED, Following, Watched, everywhere, following, run

ANYTHING: tuple[Any, ...] = (
    7,
    -1,
    2**70,
    1e308,
    True,
    "",
    "text",
    "9999-12-31T23:59:59-23:59",
    "0001-01-01T00:00:00+23:59",
    [],
    [7],
    [[]],
    [{}],
    [None],
    {},
    {"a": 7},
    {"a": {"b": [{}]}},
    None,
)
KEPT = ("name", "namespace", "resourceVersion")
"""Without these an object could not be told from another one; no server leaves them out."""


def fields(item: Any, path: tuple[Any, ...] = ()) -> Iterable[tuple[Any, ...]]:
    """The paths of everything in an object."""
    entries = item.items() if isinstance(item, dict) else enumerate(item) if isinstance(item, list) else ()
    for name, value in entries:
        here = (*path, name)
        if not (len(here) == 2 and here[0] == "metadata" and name in KEPT):
            yield here
            yield from fields(value, here)


def with_value(item: Any, path: tuple[Any, ...], value: Any) -> Any:
    made = deepcopy(item)
    inner = made
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return made


FULL: dict[str, Any] = {
    "metadata": {
        "labels": {"a": "b"},
        "annotations": {"a": "b"},
        "finalizers": ["a/b"],
        "generation": 1,
        "creationTimestamp": "2026-03-02T12:00:00Z",
        "deletionTimestamp": "2026-03-02T12:00:00Z",
        "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u", "controller": True}],
        "uid": "u",
    },
    "apiVersion": "v1",
    "kind": "K",
    "spec": {
        "providerID": "x://one",
        "unschedulable": True,
        "taints": [{"key": "k", "value": "v", "effect": "NoSchedule", "timeAdded": "2026-03-02T12:00:00Z"}],
        "paused": True,
        "bootstrap": {"configRef": {"apiGroup": "g", "kind": "K", "name": "n"}},
        "infrastructureRef": {"apiGroup": "g", "kind": "K", "name": "n"},
        "terminationGracePeriodSeconds": 30,
        "killIfCommands": ["game"],
        "reclaim": {"rejoinAfter": "5m"},
        "kubeconfigSecretRef": {"name": "n", "key": "value"},
        "gracefulShutdownTimeout": "5m",
    },
    "status": {
        "active": True,
        "observedGeneration": 1,
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
        "nodeInfo": {"systemUUID": "u"},
        "nodeRef": {"name": "n"},
        "volumesAttached": [{"name": "n", "devicePath": ""}],
        "deprecated": {"v1beta1": {"failureReason": "f"}},
        "nextTransition": "2026-03-02T12:00:00Z",
    },
    "data": {"value": "eA=="},
}


def merged(one: Any, other: Any) -> Any:
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return one
    return {key: merged(one[key], other.get(key)) if key in one else other[key] for key in {**other, **one}}


@pytest.mark.parametrize("watched", WATCHED, ids=str)
def test_nothing_that_an_object_may_be_breaks_the_reading_of_it(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    """What raises here would end the list of the whole kind, again and again."""
    caplog.set_level(logging.CRITICAL)
    body = watched.body("one")
    version = {"apiVersion": watched.api_version, "kind": watched.stream.kind}
    meta = {"name": "one", "namespace": "ns", "resourceVersion": "1", "uid": "u", "generation": 1}
    good = merged({**body, **version, "metadata": {**body["metadata"], **meta}}, FULL)
    problems = []
    for path in fields(good):
        for value in ANYTHING:
            item = with_value(good, path, value)
            if not isinstance(item["metadata"], dict):
                continue  # has no name, and is passed over before it is read
            item["metadata"].setdefault("name", "one")
            try:
                kept = watched.stream.read(item, None)
                watched.stream.read(good, kept)
                if not isinstance(kept, Unknown):
                    list(watched.stream.tokens(kept))
            except Exception as error:  # noqa: BLE001 - whatever it is
                problems.append(f"{'.'.join(map(str, path))} = {value!r}: {error!r}")
    assert not problems, "\n".join(problems[:20])


def test_an_object_whose_metadata_is_wrong_leaves_the_rest_of_its_kind_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def check(here: Following) -> None:
        *_, last = here.watched.names
        spoil(here, last, {"metadata": {"labels": {"5spot.finos.org/scheduled-machine": last, "a": 7}}})
        await here.until_current()
        for changed in ("once", "again"):
            here.put(here.one, changed=changed)
        await here.until_current()
        assert here.count("list") == 1
        assert here.reflector.restarts == 0

    everywhere(check)
    unread = [record for record in caplog.records if "cannot be read and is left alone" in record.message]
    assert all(record.levelno == logging.ERROR for record in unread)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        ("ScheduledMachine", {"status": {"phase": 7}}),
        (
            "ScheduledMachine",
            {"status": {"lastTransition": "9999-12-31T23:59:59-23:59"}, "metadata": {"labels": 7}},
        ),
        ("Cluster", {"metadata": {"finalizers": [{}]}}),
        ("Machine", {"metadata": {"ownerReferences": ["x"]}}),
        ("Machine", {"metadata": {"deletionTimestamp": "9999-12-31T23:59:59-23:59"}}),
        ("K0sWorkerConfig", {"metadata": {"annotations": [7]}}),
        ("RemoteMachine", {"metadata": {"generation": "one"}}),
        ("Node", {"metadata": {"annotations": {"a": 7}}}),
        ("Pod", {"metadata": {"deletionTimestamp": 7}}),
    ],
)
def test_one_that_cannot_be_read_is_unknown_and_logged_once_for_each_change_and_comes_back(
    kind: str, wrong: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        watched = next(found for found in WATCHED if found.stream.kind == kind)
        async with following(watched) as here:
            first, last = watched.names
            spoil(here, last, wrong)
            await here.until_current()
            assert isinstance(view(here, last), Unknown)
            assert isinstance(view(here, first), Present)
            here.put(first, changed="while the other one is wrong")
            await here.until_current()
            said = [record for record in caplog.records if "is left alone" in record.message]
            assert [record.levelname for record in said] == ["ERROR"]
            assert last in said[0].message
            here.server.world.store.remove(watched.label, watched.key(last))
            here.put(last)
            await here.until_current()
            assert isinstance(view(here, last), Present)
            assert here.count("list") == 1

    run(scenario())


def test_a_list_with_one_that_cannot_be_read_is_read_all_the_same() -> None:
    async def check(here: Following) -> None:
        *_, last = here.watched.names
        spoil(here, last, {"metadata": {"annotations": {"a": 7}}})
        await here.until_current()
        here.watches.want("me", ())
        here.told.clear()
        here.watches.want("me", [here.stream])
        await here.until_watched()
        assert here.count("list") == 2

    everywhere(check)


def spoil(here: Following, name: str, wrong: dict[str, Any]) -> None:
    """Change an object into one that no admission would have let through."""
    kind, key = here.watched.label, here.watched.key(name)
    found = here.server.world.store.get(kind, key)
    assert found is not None
    here.server.world.store.put(kind, key, merged(wrong, found))


def view(here: Following, name: str) -> Any:
    found = here.reflector.get(*here.watched.key(name))
    assert found is not None
    return found.view
