"""A person's toggle: for ever, until an instant, and what it says then."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fivespot.core.errors import InvalidSpec
from fivespot.core.provider.answer import Answer, Inputs
from fivespot.core.provider.manual import read_manual

SIX = datetime(2026, 3, 2, 18, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def at(now: datetime, **spec: Any) -> Answer:
    return read_manual(spec).answer(now, Inputs())


@pytest.mark.parametrize("active", [True, False])
def test_without_an_end_it_holds_for_ever(active: bool) -> None:
    found = at(SIX, active=active)
    assert (found.active, found.next_transition, found.wake_at) == (active, None, None)
    assert found.reason == ("SwitchedOn" if active else "SwitchedOff")


@pytest.mark.parametrize(("then", "after"), [("Active", True), ("Inactive", False)])
@pytest.mark.parametrize("active", [True, False])
def test_until_is_the_first_second_of_what_comes_then(active: bool, then: str, after: bool) -> None:
    spec = {"active": active, "until": "2026-03-02T18:00:00Z", "then": then}
    before = at(SIX - SECOND, **spec)
    assert before.active is active
    assert before.wake_at == SIX
    # What does not change is no transition.
    assert before.next_transition == (SIX if active is not after else None)
    for now in (SIX, SIX + SECOND, SIX + timedelta(days=900)):
        found = at(now, **spec)
        assert (found.active, found.next_transition, found.wake_at) == (after, None, None)


def test_to_abstain_is_a_transition_and_no_answer() -> None:
    spec = {"active": True, "until": "2026-03-02T19:00:00+01:00", "then": "Abstain"}
    before = at(SIX - SECOND, **spec)
    assert (before.active, before.next_transition, before.wake_at) == (True, SIX, SIX)
    found = at(SIX, **spec)
    assert (found.active, found.reason, found.next_transition, found.wake_at) == (None, "Expired", None, None)
    assert found.message == "it held until 2026-03-02T18:00:00Z, and abstains since"


def test_a_fraction_of_a_second_is_over_at_the_next_whole_one() -> None:
    spec = {"active": True, "until": "2026-03-02T18:00:00.000001Z", "then": "Inactive"}
    assert at(SIX, **spec).active is True
    assert at(SIX, **spec).next_transition == SIX + SECOND
    assert at(SIX + SECOND, **spec).active is False


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({}, "active"),
        ({"active": "true"}, "active"),
        ({"active": True, "until": "2026-03-02T18:00:00Z"}, "then"),
        ({"active": True, "then": "Abstain"}, "then"),
        ({"active": True, "until": "six", "then": "Active"}, "until"),
        ({"active": True, "until": "2026-03-02T18:00:00", "then": "Active"}, "until"),
        ({"active": True, "until": "2026-03-02T18:00:00Z", "then": "Maybe"}, "then"),
        ({"active": True, "since": "2026-03-02T18:00:00Z"}, "since"),
    ],
)
def test_what_is_not_said_clearly_is_refused_by_field(spec: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidSpec) as refused:
        read_manual(spec)
    assert refused.value.field == field


def test_the_end_of_time_is_as_good_an_end_as_any() -> None:
    """The schema lets it in, and the next whole second is in a year that no calendar has."""
    found = at(SIX, active=True, until="9999-12-31T23:59:59.5Z", then="Abstain")
    assert found.active is True
