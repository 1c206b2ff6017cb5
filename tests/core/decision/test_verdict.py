"""What a provider says, and what holds while it says nothing."""

from datetime import timedelta
from typing import Any

import attrs
import pytest

from fivespot.core.api.reasons import PROVIDER_CRD_NOT_INSTALLED
from fivespot.core.api.scheduled_machine import ScheduleReference, SpotScheduleStatus
from fivespot.core.decision.actions import Create
from fivespot.core.decision.knowledge import Absent, Known, Present, Unknown
from fivespot.core.decision.observation import ProviderView
from fivespot.core.decision.verdict import verdict_of
from fivespot.core.instant import format_instant
from tests.core.decision.observations import (
    GONE,
    NOW,
    SECOND,
    UNREADABLE,
    actions,
    at_rest,
    bootstrap,
    capi,
    condition,
    deleted,
    down,
    look,
    machine,
    provider,
    standing,
    stored,
    told,
    up,
    with_status,
)

_REFERENCE = machine().intent.schedule
_READY = {"type": "Ready", "status": "True"}


def _stale(seconds: int) -> Present[ProviderView]:
    status = {"active": False, "observedGeneration": 1}
    return Present(ProviderView(generation=2, status=status, stale_since=NOW - seconds * SECOND))


@pytest.mark.parametrize(
    ("seen", "active", "reason"),
    [
        (Absent(why=PROVIDER_CRD_NOT_INSTALLED), None, "ProviderCRDNotInstalled"),
        (GONE, None, "ProviderNotFound"),
        (Present(ProviderView()), None, "StatusActiveMissing"),
        (Present(ProviderView(status={})), None, "StatusActiveMissing"),
        (provider("false"), None, "StatusActiveMissing"),
        (provider(0), None, "StatusActiveMissing"),
        (provider(None), None, "StatusActiveMissing"),
        (provider(conditions=[{"type": "Ready", "status": "False"}]), None, "ProviderNotReady"),
        (provider(conditions=[{"type": "Ready", "status": "Unknown"}]), None, "ProviderNotReady"),
        (provider(conditions=[{"type": "Ready"}]), None, "ProviderNotReady"),
        (provider(conditions=[{"type": "Ready", "status": True}]), None, "ProviderNotReady"),
        (provider(conditions=[_READY, {"type": "Ready", "status": "False"}]), None, "ProviderNotReady"),
        (provider(conditions={"Ready": "True"}), None, "ProviderNotReady"),
        (provider(generation=2, observedGeneration=1), None, "ProviderStale"),
        (provider(generation=2, observedGeneration=1.0), None, "ProviderStale"),
        (UNREADABLE, None, "ProviderUnreadable"),
        (provider(True), True, "Resolved"),
        (provider(False), False, "Resolved"),
        (provider(conditions=[]), True, "Resolved"),
        (provider(conditions=[7, {"type": "Other", "status": "False"}]), True, "Resolved"),
        (provider(generation=2, observedGeneration=2), True, "Resolved"),
        (provider(generation=2, observedGeneration="1"), True, "Resolved"),
        (provider(nextTransitionTime="soon", lastTransitionTime=7), True, "Resolved"),
    ],
)
def test_the_contract_of_providers(seen: Known[ProviderView], active: bool | None, reason: str) -> None:
    verdict = verdict_of(seen, _REFERENCE)
    assert (verdict.active, verdict.reason) == (active, reason)


def test_a_reference_that_cannot_be_read_resolves_nothing_whatever_was_observed() -> None:
    assert verdict_of(provider(True), None).active is None


_UNRESOLVED: tuple[Known[ProviderView], ...] = (
    Absent(why=PROVIDER_CRD_NOT_INSTALLED),
    GONE,
    Present(ProviderView()),
    provider("true"),
    provider(conditions="?"),
    _stale(seconds=0),
    _stale(seconds=3600),
    UNREADABLE,
)


@pytest.mark.parametrize("seen", _UNRESOLVED)
def test_an_unresolved_provider_changes_nothing_that_is_wanted(seen: Known[ProviderView]) -> None:
    assert look(up(provider=seen)).status.phase == "Active"
    assert look(attrs.evolve(at_rest(down()), provider=seen)).status.phase == "Inactive"


def test_a_held_verdict_survives_an_edit_that_names_a_provider_that_does_not_exist() -> None:
    obs = told(
        up(), schedule={"apiVersion": "spotschedules.5spot.finos.org/v1alpha1", "kind": "Typo", "name": "x"}
    )
    made = look(attrs.evolve(obs, provider=Absent(why=PROVIDER_CRD_NOT_INSTALLED)))
    assert (made.status.phase, made.status.decided_by) == ("Active", "Held")
    said = condition(made.status, "SpotScheduleResolved")
    assert "Typo" in said.message
    assert "holding active from TimeBasedSpotSchedule/nights" in said.message


@pytest.mark.parametrize("left", [{"capi_machine": capi()}, {"bootstrap": bootstrap(taken=False)}])
def test_what_a_create_left_behind_holds_the_verdict_that_could_not_be_written_any_more(
    left: dict[str, Any],
) -> None:
    """A create writes no status of its own: the object is the record of the verdict until the next write."""
    inactive = SpotScheduleStatus(active=False, resolved=True, reason="Resolved")
    made = look(with_status(down(provider=GONE, **left), phase="Inactive", spot_schedule=inactive))
    assert made.status.shutdown is None
    goes_on = any(isinstance(action, Create) for action in actions(made))
    assert goes_on or made.status.decided_by == "Held"


def test_what_runs_is_not_torn_down_when_a_restore_lost_status_and_provider() -> None:
    made = look(standing(provider=GONE))
    assert (made.status.phase, made.status.decided_by) == ("Active", "NeverResolved")


def test_nothing_is_created_for_a_provider_that_never_resolved() -> None:
    made = look(down(provider=GONE))
    assert (made.status.phase, made.groups) == ("Inactive", ())
    assert condition(made.status, "Ready").reason == "AwaitingSchedule"


def test_a_machine_that_cannot_be_seen_is_not_taken_for_none_when_nothing_ever_resolved() -> None:
    made = look(standing(provider=GONE, capi_machine=UNREADABLE))
    assert made.status.shutdown is None
    assert made.status.phase is None


# Staleness


def test_every_edit_of_a_provider_passes_without_a_write() -> None:
    obs = up(provider=_stale(seconds=29))
    made = look(obs)
    assert made.status == obs.machine.status
    assert made.wake_at == NOW + SECOND


def test_staleness_is_written_after_thirty_seconds() -> None:
    made = look(up(provider=_stale(seconds=30)))
    assert condition(made.status, "SpotScheduleResolved").reason == "ProviderStale"
    assert (made.status.decided_by, made.status.in_schedule, made.status.phase) == ("Held", True, "Active")


def test_an_edit_while_the_announced_transition_is_overdue_leaves_that_report_alone() -> None:
    late = provider(nextTransitionTime=format_instant(NOW - timedelta(hours=1)))
    obs = up(provider=late)
    obs = stored(obs, look(obs))
    assert condition(obs.machine.status, "SpotScheduleResolved").reason == "ProviderStale"
    assert look(attrs.evolve(obs, provider=_stale(seconds=1))).status == obs.machine.status


# A provider whose controller may be dead


@pytest.mark.parametrize(
    ("due", "last", "reported"),
    [
        (timedelta(minutes=-6), None, True),
        (timedelta(minutes=-6), timedelta(hours=-8), True),
        (timedelta(minutes=-6), timedelta(minutes=-6), False),
        (timedelta(minutes=-4), None, False),
        (timedelta(minutes=6), None, False),
    ],
)
def test_an_overdue_transition_is_reported_and_the_verdict_stands(
    due: timedelta, last: timedelta | None, reported: bool
) -> None:
    times = {"nextTransitionTime": format_instant(NOW + due)}
    if last is not None:
        times["lastTransitionTime"] = format_instant(NOW + last)
    made = look(up(provider=provider(**times)))
    said = condition(made.status, "SpotScheduleResolved")
    assert (said.status, said.reason == "ProviderStale") == ("True", reported)
    assert (made.status.phase, made.status.decided_by) == ("Active", "Provider")


def test_it_is_looked_at_again_when_a_transition_becomes_overdue() -> None:
    due = NOW + timedelta(minutes=1)
    assert look(up(provider=provider(nextTransitionTime=format_instant(due)))).wake_at == due + timedelta(
        minutes=5
    )


def test_a_transition_at_the_end_of_time_is_no_trouble() -> None:
    made = look(up(provider=provider(nextTransitionTime="9999-12-31T23:59:59Z")))
    assert made.status.phase == "Active"


# What is held


def test_the_held_verdict_is_the_last_that_resolved() -> None:
    assert up().machine.status.spot_schedule == SpotScheduleStatus(
        resolved=True,
        active=True,
        reason="Resolved",
        message="TimeBasedSpotSchedule/nights says active",
        held_from="TimeBasedSpotSchedule/nights",
        last_transition_time=NOW,
    )
    later = look(up(provider=provider(False)), NOW + SECOND).status.spot_schedule
    assert later is not None
    assert (later.active, later.last_transition_time) == (False, NOW + SECOND)


def test_a_mere_change_of_the_next_transition_is_written_at_most_once_a_minute() -> None:
    obs = up(
        provider=provider(nextTransitionTime=format_instant(NOW + timedelta(hours=2))),
        status_written_at=NOW - timedelta(seconds=20),
    )
    made = look(obs)
    assert made.status == obs.machine.status
    assert made.wake_at == NOW + timedelta(seconds=40)
    assert look(obs, NOW + timedelta(seconds=40)).status.next_cleanup == NOW + timedelta(hours=2)


def test_a_change_of_the_next_transition_rides_on_any_other_write() -> None:
    obs = up(
        provider=provider(active=False, nextTransitionTime=format_instant(NOW + timedelta(hours=2))),
        status_written_at=NOW,
    )
    made = look(obs)
    assert made.status.next_activation == NOW + timedelta(hours=2)
    assert made.status.next_cleanup is None


def test_what_the_provider_announced_stays_while_it_cannot_be_read() -> None:
    obs = up(provider=provider(nextTransitionTime=format_instant(NOW + timedelta(hours=2))))
    obs = stored(obs, look(obs))
    assert look(attrs.evolve(obs, provider=UNREADABLE)).status.next_transition == NOW + timedelta(hours=2)


def test_an_unknown_provider_does_not_hold_a_deletion_up() -> None:
    made = look(deleted(with_status(down(provider=Unknown("ProviderUnreadable", "?")))))
    assert made.status.phase is None
    assert [type(action).__name__ for group in made.groups for action in group.actions] == ["RemoveFinalizer"]


def test_what_a_provider_says_of_itself_is_repeated_in_brief() -> None:
    """A traceback in its condition must not make a status that no server takes: nothing would be killed or deleted then."""
    condition = {"type": "Ready", "status": "False", "reason": "Broken", "message": "x" * 40_000}
    view = ProviderView(generation=1, status={"active": True, "conditions": [condition]})
    found = verdict_of(Present(view), ScheduleReference(api_version="g/v1", kind="K", name="n"))
    assert found.active is None
    assert len(found.message) < 1200
