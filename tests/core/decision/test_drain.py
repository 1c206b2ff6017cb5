"""Which pods have to go, and which are evicted now."""

from datetime import timedelta

import pytest

from fivespot.core.decision.actions import EvictPod
from fivespot.core.decision.drain import Drain, drain_of
from fivespot.core.decision.observation import BlockedEviction, NodeView, PodView
from tests.core.decision.observations import NOW, node, pod

_NODE = node().value


def _drain(
    *pods: PodView, on: NodeView = _NODE, left: timedelta | None = timedelta(minutes=5), **more: object
) -> Drain:
    deadline = NOW + left if left is not None else None
    return drain_of(on, pods, more.pop("blocked", ()), deadline=deadline, now=NOW, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("stays", ["mirror", "daemon", "finished"])
def test_mirror_daemon_and_finished_pods_stay(stays: str) -> None:
    drain = _drain(pod(**{stays: True}))
    assert (drain.remaining, drain.evictions, drain.done) == ((), (), True)


def test_every_other_pod_is_evicted_by_uid() -> None:
    drain = _drain(pod("a"), pod("b"))
    assert [(entry.name, entry.uid, entry.grace_seconds) for entry in drain.evictions] == [
        ("a", "uid-a", None), ("b", "uid-b", None),
    ]  # fmt: skip
    assert not drain.done


def test_a_terminating_pod_is_waited_for_and_not_evicted_again() -> None:
    drain = _drain(pod(deleting=True))
    assert (len(drain.remaining), drain.evictions, drain.done) == (1, (), False)


@pytest.mark.parametrize(
    ("leaves_alone", "waits"), [({}, True), ({"mirror": True}, False), ({"daemon": True}, False)]
)
def test_a_pod_that_ended_because_it_was_told_to_is_waited_for_until_it_is_gone(
    leaves_alone: dict[str, bool], waits: bool
) -> None:
    """A kubelet says Succeeded or Failed when the containers have ended, and unmounts the pod's volumes after that."""
    drain = _drain(pod(deleting=True, finished=True, **leaves_alone))
    assert (len(drain.remaining), drain.evictions, drain.done) == (int(waits), (), not waits)


def test_nobody_waits_for_a_terminating_pod_on_a_node_that_stopped_reporting() -> None:
    drain = _drain(pod("a", deleting=True), pod("b"), on=node(ready=False, reachable=False).value)
    assert [entry.name for entry in drain.remaining] == ["b"]
    assert [entry.name for entry in drain.evictions] == ["b"]


def test_attached_volumes_are_waited_for() -> None:
    drain = _drain(on=node(volumes_attached=("kubernetes.io/csi/x",)).value)
    assert not drain.done


@pytest.mark.parametrize(
    ("left", "own", "asked"),
    [
        (timedelta(minutes=5), 30, None),
        (timedelta(seconds=30), 30, None),
        (timedelta(seconds=20), 30, 20),
        (timedelta(seconds=20, milliseconds=900), 30, 20),
        (timedelta(0), 30, 1),
        (timedelta(seconds=-60), 30, 1),
        (None, 6000, None),
        (timedelta(0), 0, None),
    ],
)
def test_a_pods_own_grace_is_capped_to_what_is_left_and_never_becomes_a_forced_deletion(
    left: timedelta | None, own: int, asked: int | None
) -> None:
    assert _drain(pod(grace_seconds=own), left=left).evictions == (
        EvictPod(namespace="apps", name="web-1", uid="uid-web-1", grace_seconds=asked),
    )


_REFUSED = (BlockedEviction(uid="uid-b", by="pdb/b"), BlockedEviction(uid="uid-a", by="pdb/a"))


def test_budgets_are_named_in_an_order_of_their_own() -> None:
    first, second = (
        _drain(pod("a"), pod("b"), blocked=_REFUSED),
        _drain(pod("b"), pod("a"), blocked=_REFUSED[::-1]),
    )
    assert first.blocked_by == second.blocked_by == ("apps/a: pdb/a", "apps/b: pdb/b")


def test_a_budget_stays_named_although_nobody_has_tried_again() -> None:
    assert _drain(pod("a"), known_blocked=("apps/a: pdb/a", "apps/b: pdb/b")).blocked_by == ("apps/a: pdb/a",)


def test_a_pod_that_goes_is_protected_no_more() -> None:
    assert (
        _drain(pod("a", deleting=True), blocked=_REFUSED, known_blocked=("apps/a: pdb/a",)).blocked_by == ()
    )


def test_a_pod_of_the_same_name_with_another_uid_is_another_pod() -> None:
    assert _drain(pod("a", uid="new")).evictions[0].uid == "new"
