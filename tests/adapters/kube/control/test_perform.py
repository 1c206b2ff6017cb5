"""Groups of actions against a server that refuses some: what ends a pass, what does not, and what is told of it."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from fivespot.adapters.clock import SystemClock
from fivespot.adapters.kube.control.children import Children
from fivespot.adapters.kube.control.perform import Outcome, Performer
from fivespot.adapters.kube.control.watches import Watches
from fivespot.adapters.kube.resources import Resource
from fivespot.core.decision.actions import Create, Group, Role
from fivespot.core.decision.reading import read_machine
from tests import builders
from tests.adapters.kube.scripted import Reply, Request, connected, scripted

GROUP = "infrastructure.cluster.x-k8s.io"
SM = Resource("5spot.finos.org", "v1beta1", "scheduledmachines", "ScheduledMachine", namespaced=True)
OK = 201
Answer = int | tuple[int, str] | Mapping[str, Any]


def _create(kind: str) -> Create:
    return Create(
        role=Role.INFRASTRUCTURE,
        name="desk-1",
        manifest={"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": "desk-1"}},
    )


def _performed(answers: Mapping[str, Answer], *groups: Group) -> tuple[Outcome, list[str]]:
    """The outcome, and which kinds the server was asked to create; an object for an answer exists already."""
    asked: list[str] = []

    async def handler(request: Request, reply: Reply) -> None:
        plural = request.path.split("/")[-1 if request.method == "POST" else -2]
        if request.path == f"/apis/{GROUP}/v1":
            kinds = [{"name": kind.lower(), "kind": kind, "namespaced": True} for kind in answers]
            await reply.json({"resources": kinds})
            return
        kind = next(kind for kind in answers if kind.lower() == plural)
        answer = answers[kind]
        if request.method == "GET":
            await reply.json(answer)
            return
        asked.append(kind)
        if isinstance(answer, Mapping):
            await reply.status(409, "AlreadyExists")
        elif isinstance(answer, tuple):
            await reply.status(*answer)
        else:
            await reply.json(json.loads(request.body), answer)

    async def scenario() -> Outcome:
        machine = builders.scheduled_machine("desk-1")
        machine["metadata"] |= {"namespace": "ns", "uid": "u1"}
        async with scripted(handler) as server, connected(server) as gateway:
            ignore: Callable[..., None] = lambda *_: None  # noqa: E731
            clock = SystemClock()
            watches = Watches(gateway, clock, on_change=ignore, on_state=ignore)
            children = Children(gateway, clock, allow_local=True, on_change=ignore, on_state=ignore)
            performer = Performer(gateway, watches, children, SM)
            return await performer.perform(read_machine(machine), groups)

    return asyncio.run(asyncio.wait_for(scenario(), 30)), asked


def _required(kind: str) -> Group:
    return Group(actions=(_create(kind),))


def _best_effort(kind: str) -> Group:
    return Group(actions=(_create(kind),), required=False)


def _ours(**metadata: Any) -> dict[str, Any]:
    owner = {"apiVersion": SM.api_version, "kind": SM.kind, "name": "desk-1", "uid": "u1"}
    labels = {"5spot.finos.org/scheduled-machine": "desk-1"}
    found = {"name": "desk-1", "namespace": "ns", "uid": "x", "labels": labels, "ownerReferences": [owner]}
    return {"kind": "A", "metadata": {**found, **metadata}}


def test_what_is_only_tried_holds_nothing_up() -> None:
    answers = {"A": (403, "Forbidden"), "B": OK, "C": OK}
    outcome, asked = _performed(answers, _best_effort("A"), _required("B"), _required("C"))
    assert asked == ["A", "B", "C"]
    assert outcome.failed is not None
    assert outcome.failed.reason == "Forbidden"


def test_what_must_be_done_first_ends_a_pass_when_it_fails_and_is_what_is_told() -> None:
    answers = {"A": (403, "Forbidden"), "B": (422, "Invalid"), "C": OK}
    outcome, asked = _performed(answers, _best_effort("A"), _required("B"), _required("C"))
    assert asked == ["A", "B"]
    assert outcome.failed is not None
    assert outcome.failed.reason == "Invalid"


def test_a_quota_that_is_being_counted_has_created_nothing() -> None:
    outcome, asked = _performed({"A": (409, "Conflict"), "B": OK}, _required("A"), _required("B"))
    assert asked == ["A"]
    assert outcome.failed is not None
    assert outcome.failed.reason == "Conflict"


def test_an_object_of_ours_that_exists_already_is_as_good_as_created() -> None:
    outcome, asked = _performed({"A": _ours(), "B": OK}, _required("A"), _required("B"))
    assert asked == ["A", "B"]
    assert outcome == Outcome()


def test_an_object_of_ours_that_is_going_is_waited_for_and_no_failure() -> None:
    going = _ours(deletionTimestamp="2026-03-02T12:00:00Z")
    outcome, asked = _performed({"A": going, "B": OK}, _required("A"), _required("B"))
    assert asked == ["A"]
    assert outcome == Outcome(outdated=True)


def test_a_strangers_object_is_never_adopted() -> None:
    outcome, asked = _performed({"A": _ours(labels={}), "B": OK}, _required("A"), _required("B"))
    assert asked == ["A"]
    assert outcome.failed is not None
    assert outcome.failed.reason == "NameConflict"
