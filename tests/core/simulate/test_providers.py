"""Manual and composite providers in virtual time: the same logic as in production, members before those made of them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fivespot.core import Fleet, simulate
from fivespot.core.explain import answers, explain
from tests import builders

API = "spotschedules.5spot.finos.org/v1alpha1"
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def provider(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def composite(name: str, operator: str, *members: str) -> dict[str, Any]:
    """Members are `name`, or `Kind/name`; manual unless they say otherwise."""
    places = [
        (member.rpartition("/")[0] or "ManualSpotSchedule", member.rpartition("/")[2]) for member in members
    ]
    references = [{"apiVersion": API, "kind": kind, "name": called} for kind, called in places]
    return provider("CompositeSpotSchedule", name, {operator: references})


def manual(name: str, **spec: Any) -> dict[str, Any]:
    return provider("ManualSpotSchedule", name, spec)


def nights(name: str = "nights") -> dict[str, Any]:
    window = {"days": ["mon-sun"], "start": "20:00", "end": "22:00"}
    return provider("TimeBasedSpotSchedule", name, {"windows": [window]})


def machine_on(kind: str, name: str) -> dict[str, Any]:
    return builders.scheduled_machine("desk-1", schedule={"apiVersion": API, "kind": kind, "name": name})


def story(name: str, *documents: dict[str, Any], hours: int = 24) -> list[tuple[int, bool | None]]:
    """The answers of a provider from noon on, as hours after noon."""
    run = simulate(Fleet.from_documents(documents), start=NOON, end=NOON + timedelta(hours=hours))
    (found,) = [provider for provider in run.providers if provider.name == name]
    return [((interval.start - NOON) // timedelta(hours=1), interval.active) for interval in found.intervals]


OVERRIDE = {"active": True, "until": "2026-03-02T18:00:00Z", "then": "Abstain"}


def test_an_override_in_front_of_a_schedule_ends_by_itself() -> None:
    documents = (
        composite("front", "firstOf", "tonight", "TimeBasedSpotSchedule/nights"),
        manual("tonight", **OVERRIDE),
        nights(),
        machine_on("CompositeSpotSchedule", "front"),
    )
    assert story("front", *documents) == [(0, True), (6, False), (8, True), (10, False)]
    run = simulate(Fleet.from_documents(documents), start=NOON, end=NOON + timedelta(hours=24))
    active = [
        (interval.start.hour, interval.end.hour)
        for interval in run.machines[0].intervals
        if interval.phase.value == "Active"
    ]
    assert active == [(12, 18), (20, 22)]


def test_one_that_abstains_has_no_answer_and_its_machine_holds() -> None:
    documents = (manual("tonight", **OVERRIDE), machine_on("ManualSpotSchedule", "tonight"))
    assert story("tonight", *documents) == [(0, True), (6, None)]
    run = simulate(Fleet.from_documents(documents), start=NOON, end=NOON + timedelta(hours=24))
    assert [change.after.value for change in run.changes if change.after is not None][-1] == "Active"


def test_the_order_of_documents_does_not_matter_and_the_first_answer_is_the_first() -> None:
    """No composite is seen to be unresolved at the start because its members were not looked at yet."""
    documents = [
        composite("top", "allOf", "CompositeSpotSchedule/middle", "yes"),
        composite("middle", "not", "no"),
        manual("no", active=False),
        manual("yes", active=True),
    ]
    for order in (documents, documents[::-1]):
        assert story("top", *order) == [(0, True)]


def test_a_change_goes_up_through_every_level_at_once() -> None:
    documents = [
        composite("top", "anyOf", "CompositeSpotSchedule/middle"),
        composite("middle", "allOf", "TimeBasedSpotSchedule/nights", "yes"),
        nights(),
        manual("yes", active=True),
    ]
    assert story("top", *documents) == [(0, False), (8, True), (10, False)]


@pytest.mark.parametrize(
    "members", [("CompositeSpotSchedule/other",), ("CompositeSpotSchedule/ring",), ("missing",)]
)
def test_what_cannot_be_decided_stays_without_an_answer(members: tuple[str, ...]) -> None:
    documents = [
        composite("ring", "allOf", *members),
        composite("other", "allOf", "CompositeSpotSchedule/ring"),
    ]
    assert story("ring", *documents) == [(0, None)]


def test_explain_computes_them_for_the_instant_that_is_asked_for() -> None:
    documents = (
        composite("front", "firstOf", "tonight", "TimeBasedSpotSchedule/nights"),
        manual("tonight", **OVERRIDE),
        nights(),
        machine_on("CompositeSpotSchedule", "front"),
    )
    fleet = Fleet.from_documents(documents)
    found = explain(fleet, "desk-1", NOON)
    assert (found.verdict.active, found.computed, found.next_transition) == (
        True,
        True,
        NOON + timedelta(hours=6),
    )
    later = {answer.name: answer for answer in answers(fleet, NOON + timedelta(hours=7))}
    assert (later["front"].verdict.active, later["front"].decided_by) == (False, "MembersInactive")
    assert later["tonight"].decided_by == "Expired"


def test_explain_leaves_what_is_stored_as_it_is() -> None:
    """Without an instant nothing is computed that has a status, whatever has become of its members."""
    front = composite("front", "allOf", "yes")
    front["status"] = {"active": False, "observedGeneration": 1}
    documents = [front, manual("yes", active=True), machine_on("CompositeSpotSchedule", "front")]
    found = explain(Fleet.from_documents(documents), "desk-1", NOON, stored=True)
    assert (found.verdict.active, found.computed) == (False, False)
