"""What an override needs, step by step: from every state that a person may find."""

import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from fivespot.core.api.admission import problems_of_document
from fivespot.core.override.plan import Clear, Override, OverrideRefused
from fivespot.core.override.steps import Create, rights
from tests import builders
from tests.core.override.site import (
    COMPOSITE,
    MANUAL,
    NAME,
    NAMESPACE,
    OVERRIDE,
    UID,
    Body,
    Site,
    machine,
    on_override,
)

SIX = datetime(2026, 3, 2, 18, tzinfo=UTC)
ON, OFF, CLEAR = Override(active=True, until=SIX), Override(active=False, until=SIX), Clear()


def told(site: Site, wish: Override | Clear) -> list[str]:
    """The steps of a plan, in words."""
    return [str(step).replace(f" {NAMESPACE}/", " ") for step in site.plan(wish).steps]


def standing(wish: Override = ON) -> Site:
    """A site with an override."""
    site = Site()
    site.fulfil(wish)
    return site


def stranger(kind: str) -> Body:
    """Somebody's object of the name that an override uses."""
    spec = {"active": True} if kind == MANUAL else {"allOf": [builders.reference("nights")]}
    made = builders.provider(kind, OVERRIDE, **spec)
    made["metadata"] |= {"namespace": NAMESPACE, "uid": "uid-theirs"}
    return made


def test_a_new_override_is_made_from_below_and_answers_before_the_machine_refers_to_it() -> None:
    assert told(Site(), ON) == [
        f"create ManualSpotSchedule {OVERRIDE}",
        f"create CompositeSpotSchedule {OVERRIDE}",
        f"wait until CompositeSpotSchedule {OVERRIDE} says active",
        f"change spec.schedule of ScheduledMachine {NAME}",
    ]


def test_the_toggle_lets_go_at_its_end_and_the_schedule_from_before_is_behind_it() -> None:
    site = standing()
    assert site.objects[MANUAL]["spec"] == {
        "active": True,
        "until": "2026-03-02T18:00:00Z",
        "then": "Abstain",
    }
    assert site.objects[COMPOSITE]["spec"] == {
        "firstOf": [builders.reference(OVERRIDE, kind=MANUAL), builders.reference("nights")]
    }
    assert site.reference == builders.reference(OVERRIDE, kind=COMPOSITE)


@pytest.mark.parametrize("kind", [MANUAL, COMPOSITE])
def test_both_schedules_go_with_the_machine_and_say_whose_they_are(kind: str) -> None:
    metadata = standing().objects[kind]["metadata"]
    (owner,) = metadata["ownerReferences"]
    assert owner == {
        "apiVersion": "5spot.finos.org/v1beta1",
        "kind": "ScheduledMachine",
        "name": NAME,
        "uid": UID,
        "controller": False,
    }
    assert metadata["labels"] == {"5spot.finos.org/override-of": NAME}


def test_all_that_is_written_would_be_admitted_with_the_longest_name_too() -> None:
    longest = "m" * 63
    body = machine()
    body["metadata"]["name"] = longest
    site = Site(machine=body)
    made = site.plan(ON)
    created = [step.manifest for step in made.steps if isinstance(step, Create)]
    assert len(created) == 2
    for document in (*created, *made.for_git[:2]):
        assert problems_of_document(document) == ()


def test_without_an_end_it_is_a_toggle_and_that_is_said() -> None:
    site = Site()
    made = site.fulfil(Override(active=False))
    assert site.objects[MANUAL]["spec"] == {"active": False}
    assert made.notes == ("without --until it stands until somebody takes it away with --clear",)


def test_a_second_override_changes_the_toggle_and_nothing_else() -> None:
    site = standing(ON)
    before = copy.deepcopy(site.objects[COMPOSITE])
    assert told(site, OFF) == [
        f"change spec of ManualSpotSchedule {OVERRIDE}",
        f"wait until CompositeSpotSchedule {OVERRIDE} says inactive",
    ]
    made = site.fulfil(OFF)
    assert site.objects[COMPOSITE] == before
    assert site.objects[MANUAL]["spec"]["active"] is False
    assert [document["kind"] for document in made.documents] == [MANUAL]


def test_the_same_wish_twice_is_fulfilled_by_nothing() -> None:
    made = standing(ON).plan(ON)
    assert (made.steps, made.documents) == ((), ())


def test_a_machine_that_was_given_another_schedule_meanwhile_goes_back_to_that_one() -> None:
    site = standing(ON)
    site.machine["spec"]["schedule"] = builders.reference("weekends")
    made = site.fulfil(OFF)
    assert made.schedule is not None
    assert made.schedule.name == "weekends"
    assert site.objects[COMPOSITE]["spec"]["firstOf"][1] == builders.reference("weekends")
    site.fulfil(CLEAR)
    assert site.reference == builders.reference("weekends")


def test_a_schedule_of_somebody_elses_kind_is_kept_as_it_was() -> None:
    theirs = {
        "apiVersion": "spotschedules.5spot.finos.org/v1beta7",
        "kind": "LockFileSchedule",
        "name": "office.floor-2",
    }
    body = machine()
    body["spec"]["schedule"] = theirs
    site = Site(machine=body)
    site.fulfil(ON)
    site.fulfil(CLEAR)
    assert site.reference == theirs


def test_clearing_gives_the_reference_back_first_and_deletes_from_above() -> None:
    site = standing()
    assert told(site, CLEAR) == [
        f"change spec.schedule of ScheduledMachine {NAME}",
        f"delete CompositeSpotSchedule {OVERRIDE}",
        f"delete ManualSpotSchedule {OVERRIDE}",
    ]
    site.fulfil(CLEAR)
    assert (site.reference, site.objects) == (builders.reference("nights"), {})


def test_a_reference_that_somebody_has_changed_is_left_alone_by_clearing() -> None:
    site = standing()
    site.machine["spec"]["schedule"] = builders.reference("weekends")
    made = site.fulfil(CLEAR)
    assert site.reference == builders.reference("weekends")
    assert site.objects == {}
    assert made.notes == (
        "the machine refers to TimeBasedSpotSchedule/weekends and not to the override, and is left as it is",
    )


def test_where_there_is_nothing_to_clear_nothing_is_done() -> None:
    made = Site().plan(CLEAR)
    assert (made.steps, made.schedule, made.notes) == ((), None, ())


@pytest.mark.parametrize("kind", [MANUAL, COMPOSITE])
def test_an_object_of_that_name_that_is_no_overrides_is_refused_and_named(kind: str) -> None:
    site = Site(objects={kind: stranger(kind)})
    with pytest.raises(
        OverrideRefused, match=rf"^{kind} floor-2/{OVERRIDE} is in the way: .*; rename or delete"
    ):
        site.plan(ON)


@pytest.mark.parametrize("kind", [MANUAL, COMPOSITE])
def test_clearing_leaves_what_is_no_overrides_and_says_so(kind: str) -> None:
    site = Site(objects={kind: stranger(kind)})
    made = site.plan(CLEAR)
    assert made.steps == ()
    assert made.notes == (
        f"{kind} floor-2/{OVERRIDE} stays: it is no override's (no label 5spot.finos.org/override-of={NAME})",
    )


def test_clearing_an_interrupted_one_beside_a_stranger_takes_only_what_is_ours() -> None:
    site = Site()
    site.fulfil(ON, steps=1)
    site.objects[COMPOSITE] = stranger(COMPOSITE)
    site.fulfil(CLEAR)
    assert list(site.objects) == [COMPOSITE]


def _rebuilt(site: Site) -> None:
    site.objects[COMPOSITE]["spec"] = {"anyOf": site.objects[COMPOSITE]["spec"]["firstOf"]}


def _lost(site: Site) -> None:
    del site.objects[COMPOSITE]


@pytest.mark.parametrize("wish", [OFF, CLEAR], ids=["off", "clear"])
@pytest.mark.parametrize("harm", [_rebuilt, _lost])
def test_where_the_schedule_from_before_is_not_known_nothing_is_guessed(harm: Any, wish: Any) -> None:
    site = standing()
    harm(site)
    with pytest.raises(
        OverrideRefused, match=r"nobody knows what was before; set spec[.]schedule to the machine's own"
    ):
        site.plan(wish)


def test_a_toggle_that_was_deleted_comes_back() -> None:
    site = standing(ON)
    del site.objects[MANUAL]
    assert told(site, OFF)[0] == f"create ManualSpotSchedule {OVERRIDE}"


def test_what_a_machine_of_that_name_left_behind_is_given_to_this_one_before_it_is_collected() -> None:
    site = standing(ON)
    site.machine = machine(metadata={"uid": "uid-of-the-next"})
    assert told(site, ON)[:2] == [
        f"change metadata.ownerReferences of ManualSpotSchedule {OVERRIDE}",
        f"change metadata.ownerReferences of CompositeSpotSchedule {OVERRIDE}",
    ]
    site.fulfil(ON)
    for body in site.objects.values():
        assert [owner["uid"] for owner in body["metadata"]["ownerReferences"]] == ["uid-of-the-next"]


@pytest.mark.parametrize(
    ("body", "wish", "said"),
    [
        (machine(metadata={"deletionTimestamp": "2026-03-02T11:00:00Z"}), ON, "is being deleted"),
        (machine(killSwitch=True), ON, "spec.killSwitch is true, which no override outweighs; set it to false first"),
        (machine(killSwitch=True), OFF, "spec.killSwitch is true"),
        (machine(enabled=False), ON, "spec.enabled is false, which no override outweighs; set it to true first"),
        (machine(schedule="Not A Name"), ON, "spec.schedule names no provider that can be used"),
    ],
)  # fmt: skip
def test_an_override_that_could_not_act_is_refused(body: Body, wish: Override, said: str) -> None:
    with pytest.raises(OverrideRefused, match=said):
        Site(machine=body).plan(wish)


def test_a_machine_that_is_disabled_may_be_kept_out_and_the_note_says_that_it_is_out_anyway() -> None:
    assert Site(machine=machine(enabled=False)).plan(OFF).notes == (
        "spec.enabled is false: the machine stays out whatever its schedule says",
    )


def test_an_owner_who_has_taken_the_machine_back_outweighs_it() -> None:
    body = {**machine(), "status": {"reclaim": {"state": "Held", "reason": "process-match: java"}}}
    (note,) = Site(machine=body).plan(ON).notes
    assert note.startswith("its owner has taken it back")


def test_a_machine_on_the_toggle_itself_is_refused() -> None:
    body = machine()
    body["spec"]["schedule"] = builders.reference(OVERRIDE, kind=MANUAL)
    with pytest.raises(OverrideRefused, match="the toggle itself"):
        Site(machine=body).plan(ON)


def test_a_schedule_that_is_on_its_way_out_is_waited_for() -> None:
    site = standing()
    site.objects[MANUAL]["metadata"]["deletionTimestamp"] = "2026-03-02T11:00:00Z"
    with pytest.raises(OverrideRefused, match="is being deleted; try again when it is gone"):
        site.plan(OFF)


def test_of_a_machine_that_is_being_deleted_nothing_has_to_be_cleared() -> None:
    site = standing()
    site.machine["metadata"]["deletionTimestamp"] = "2026-03-02T11:00:00Z"
    made = site.plan(CLEAR)
    assert made.steps == ()
    assert made.notes == ("the machine is being deleted, and what overrides it goes with it",)


def test_the_manifests_for_git_name_no_uid_and_change_of_the_machine_only_its_schedule() -> None:
    manual, composite, part = Site().plan(ON).for_git
    assert "ownerReferences" not in manual["metadata"] | composite["metadata"]
    assert part == {
        "apiVersion": "5spot.finos.org/v1beta1",
        "kind": "ScheduledMachine",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {"schedule": builders.reference(OVERRIDE, kind=COMPOSITE)},
    }


def test_the_rights_are_those_that_the_steps_need() -> None:
    made = rights(Site().plan(ON).steps)
    assert {(right.resource, right.verb, right.name) for right in made} == {
        ("manualspotschedules", "create", ""),
        ("compositespotschedules", "create", ""),
        ("compositespotschedules", "get", OVERRIDE),
        ("compositespotschedules", "watch", OVERRIDE),
        ("scheduledmachines", "patch", NAME),
    }
    assert {right.namespace for right in made} == {NAMESPACE}


def _by(manager: str, *, path: Body, **entry: Any) -> Body:
    return {"managedFields": [{"manager": manager, "operation": "Update", "fieldsV1": path, **entry}]}


_ARGO: Body = {
    "annotations": {"argocd.argoproj.io/tracking-id": "fleet:5spot.finos.org/ScheduledMachine:a/b"}
}
_SCHEDULE: Body = {"f:spec": {"f:schedule": {"f:name": {}}}}


def test_a_machine_that_git_owns_is_told_with_its_traces() -> None:
    traces = Site(machine=machine(metadata=_ARGO)).plan(ON).reverted
    assert [trace.tool for trace in traces] == ["Argo CD"]


def test_a_second_override_changes_nothing_that_git_owns() -> None:
    site = standing()
    site.machine["metadata"] |= _ARGO
    assert site.plan(OFF).reverted == ()


def test_a_toggle_that_was_committed_is_gits_too() -> None:
    site = standing()
    site.objects[MANUAL]["metadata"] |= {"labels": site.objects[MANUAL]["metadata"]["labels"], **_ARGO}
    assert len(site.plan(OFF).reverted) == 1


def test_what_an_override_has_written_against_git_is_taken_back_without_a_word() -> None:
    mine = _by("5spot-override", path=_SCHEDULE)
    site = standing()
    site.machine["metadata"] |= {**_ARGO, **mine}
    assert site.plan(CLEAR).reverted == ()


def test_an_override_that_was_committed_is_not_taken_away_behind_gits_back() -> None:
    site = Site(machine=on_override(metadata=_ARGO), objects=standing().objects)
    assert len(site.plan(CLEAR).reverted) == 1
