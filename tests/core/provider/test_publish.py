"""What is written for an answer, and for none; what is told once; what is left alone."""

from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest

from fivespot.core.api import reasons
from fivespot.core.api.common import Condition, condition
from fivespot.core.api.providers import ProviderStatus
from fivespot.core.errors import InvalidSpec
from fivespot.core.provider.answer import Alone, Answer, Inputs, Unaided
from fivespot.core.provider.kinds import BY_KIND, PROVIDER_KINDS
from fivespot.core.provider.publish import Publication, publish
from tests import builders
from tests.core.provider.neighbours import Neighbours

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
LATER = NOW + timedelta(hours=3)
REFUSED = InvalidSpec("spec.active", "yes", "write true or false")


@attrs.frozen
class Says(Unaided):
    """Logic that gives one answer."""

    found: Answer

    def answer(self, now: datetime, inputs: Inputs) -> Answer:
        return self.found


def answer(active: bool | None, **more: Any) -> Says:
    return Says(Answer(active=active, **{"reason": "Reason", "message": "text", **more}))


def stated(
    logic: Any, stored: ProviderStatus | None = None, generation: int = 1, now: datetime = NOW
) -> Publication:
    return publish(logic, Alone(), generation, stored or ProviderStatus(), now)


def ready(status: ProviderStatus) -> Condition:
    found = condition(status.conditions, "Ready")
    assert found is not None
    return found


def test_an_answer_is_written_whole() -> None:
    made = stated(answer(True, next_transition=LATER, timezone="Asia/Tokyo", wake_at=LATER), generation=4)
    assert made.status == ProviderStatus(
        active=True,
        observed_generation=4,
        last_transition_time=NOW,
        next_transition_time=LATER,
        effective_timezone="Asia/Tokyo",
        conditions=(
            Condition(
                type="Ready",
                status="True",
                reason="Reason",
                message="text",
                last_transition_time=NOW,
                observed_generation=4,
            ),
        ),
    )
    assert (made.answer, made.wake_at) == (True, LATER)


def test_the_same_again_is_the_same_status() -> None:
    first = stated(answer(True)).status
    assert stated(answer(True), first, now=LATER).status == first


def test_times_change_only_with_what_they_are_about() -> None:
    first = stated(answer(True)).status
    second = stated(answer(True, reason="Other"), first, generation=2, now=LATER).status
    assert second.last_transition_time == NOW
    assert ready(second).last_transition_time == NOW
    third = stated(answer(False), second, generation=2, now=LATER).status
    assert third.last_transition_time == LATER
    assert ready(third).last_transition_time == NOW


@pytest.mark.parametrize("active", [True, False, None])
@pytest.mark.parametrize("none", [REFUSED, answer(None)])
def test_without_an_answer_what_was_published_stands(active: bool | None, none: Any) -> None:
    before = ProviderStatus() if active is None else stated(answer(active, next_transition=LATER)).status
    made = stated(none, before, generation=2, now=LATER)
    assert made.answer is None
    assert (made.status.active, made.status.last_transition_time) == (
        before.active,
        before.last_transition_time,
    )
    assert (ready(made.status).status, made.status.observed_generation) == ("False", 2)
    # Nobody knows until when.
    assert made.status.next_transition_time is None


def test_what_is_not_settled_changes_nothing() -> None:
    before = stated(answer(True)).status
    made = stated(answer(None, settled=False, wake_at=LATER), before, generation=2)
    assert (made.status, made.wake_at, made.events) == (before, LATER, ())


def test_conditions_of_others_stay() -> None:
    other = Condition(type="Audited", status="True", reason="R", message="m", last_transition_time=NOW)
    made = stated(answer(True), ProviderStatus(conditions=(other,)))
    assert made.status.conditions[0] == other


def test_a_clock_from_before_the_build_gives_no_answer() -> None:
    made = publish(answer(True), Alone(), 1, ProviderStatus(active=False), NOW, clock_trusted_from=LATER)
    assert (made.status.active, ready(made.status).reason, made.wake_at) == (False, "ClockUntrusted", LATER)


# What is told


def told(made: Publication) -> list[tuple[str, str]]:
    return [(event.severity.value, event.reason) for event in made.events]


def test_a_change_of_the_answer_is_told_and_the_first_answer_is_not() -> None:
    first = stated(answer(True))
    assert told(first) == []
    closed = stated(answer(False), first.status)
    assert told(closed) == [("Normal", "WindowClosed")]
    assert told(stated(answer(True), closed.status)) == [("Normal", "WindowOpened")]
    assert told(stated(answer(False), closed.status, generation=2)) == []


def test_a_refused_spec_is_told_once_for_each_edit() -> None:
    first = stated(REFUSED)
    assert told(first) == [("Warning", "InvalidSpec")]
    assert told(stated(REFUSED, first.status)) == []
    assert told(stated(REFUSED, first.status, generation=2)) == [("Warning", "InvalidSpec")]
    assert told(stated(answer(True), first.status)) == []


def test_to_abstain_is_nothing_to_warn_of() -> None:
    before = stated(answer(True)).status
    made = stated(answer(None, reason="Expired"), before)
    assert told(made) == [("Normal", "Expired")]
    assert told(stated(answer(None, reason="Expired"), made.status, generation=2)) == []


# The table of kinds

SPECS = {
    "TimeBasedSpotSchedule": builders.time_based(),
    "CapitalMarketsSchedule": builders.capital_markets(),
    "ManualSpotSchedule": builders.manual(),
    "CompositeSpotSchedule": builders.composite(),
    "PrometheusSpotSchedule": builders.prometheus(),
}


@pytest.mark.parametrize("kind", PROVIDER_KINDS, ids=lambda kind: kind.name)
def test_every_kind_reads_its_specs_and_refuses_what_is_none(kind: Any) -> None:
    """And says nothing that docs/api.md does not."""
    found = kind.read(SPECS[kind.kind.name]["spec"]).answer(NOW, Inputs(members=Neighbours()))
    assert found.reason in reasons.PROVIDER_REASONS
    with pytest.raises(InvalidSpec):
        kind.read({"unheardOf": True})


def test_names_are_each_their_own() -> None:
    assert len({kind.name for kind in PROVIDER_KINDS}) == len(BY_KIND) == len(PROVIDER_KINDS)


def test_no_message_is_longer_than_a_server_takes() -> None:
    made = stated(answer(None, message="x" * 100_000))
    assert len(ready(made.status).message) == 4096
