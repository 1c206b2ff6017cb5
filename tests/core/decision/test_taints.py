"""Whose taint is whose."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fivespot.core.api.scheduled_machine import NodeTaint, Taint, TaintEffect
from fivespot.core.decision.observation import FoundTaint
from fivespot.core.decision.taints import TaintPlan, applied_taints, plan_taints, taints_annotation
from fivespot.core.names import APPLIED_TAINTS, PAUSED
from tests.core.decision.observations import (
    actions,
    condition,
    cordoned,
    events,
    kinds,
    look,
    machine,
    node,
    stored,
    taint,
    told,
    up,
)


def _want(key: str = "example.com/lent", value: str | None = None, effect: str = "NoSchedule") -> NodeTaint:
    return NodeTaint(key=key, value=value, effect=TaintEffect(effect))


def _ours(key: str = "example.com/lent", value: str | None = None, effect: str = "NoSchedule") -> Taint:
    return Taint(key=key, value=value, effect=effect)


def _values(plan: TaintPlan) -> dict[tuple[str, str], str | None]:
    return {(entry.key, entry.effect): entry.value for entry in plan.taints}


_LENT = ("example.com/lent", "NoSchedule")


def test_an_absent_taint_is_added() -> None:
    plan = plan_taints([_want()], [], [])
    assert (_values(plan), plan.applied, plan.changed) == ({_LENT: None}, (_ours(),), True)


def test_a_taint_of_ours_gets_its_new_value() -> None:
    plan = plan_taints([_want(value="b")], [taint(value="a")], [_ours(value="a")])
    assert (_values(plan), plan.applied, plan.changed) == ({_LENT: "b"}, (_ours(value="b"),), True)


def test_a_taint_of_ours_that_is_as_wanted_is_left() -> None:
    plan = plan_taints([_want(value="a")], [taint(value="a")], [_ours(value="a")])
    assert not plan.changed


def test_a_taint_of_ours_that_is_wanted_no_more_is_removed() -> None:
    plan = plan_taints([], [taint()], [_ours()])
    assert (plan.taints, plan.applied, plan.changed) == ((), (), True)


def test_a_taint_of_ours_that_somebody_changed_is_theirs_and_reported() -> None:
    plan = plan_taints([_want(value="a")], [taint(value="x")], [_ours(value="a")])
    assert (_values(plan), plan.applied) == ({_LENT: "x"}, ())
    assert plan.conflicts == (taint(value="x"),)


def test_a_taint_of_ours_that_somebody_changed_is_not_removed_either() -> None:
    plan = plan_taints([], [taint(value="x")], [_ours(value="a")])
    assert (_values(plan), plan.applied, plan.conflicts) == ({_LENT: "x"}, (), ())


def test_a_conflict_keeps_no_other_taint_from_being_applied() -> None:
    plan = plan_taints([_want(), _want("example.com/other")], [taint(value="theirs")], [])
    assert _values(plan) == {_LENT: "theirs", ("example.com/other", "NoSchedule"): None}
    assert plan.applied == (_ours("example.com/other"),)


def test_a_strangers_taint_is_not_ours_although_it_is_what_we_want() -> None:
    plan = plan_taints([_want()], [taint()], [])
    assert (plan.applied, plan.conflicts, plan.changed) == ((), (taint(),), False)


def test_the_same_key_with_another_effect_is_another_taint() -> None:
    plan = plan_taints([_want()], [taint(effect="NoExecute")], [])
    assert (len(plan.taints), plan.conflicts) == (2, ())


def test_what_kubernetes_noted_on_a_taint_goes_back_as_it_came() -> None:
    theirs = taint("node.kubernetes.io/unreachable", effect="NoExecute", time_added="2026-03-02T11:00:00Z")
    assert theirs in plan_taints([_want()], [theirs], []).taints


_KEYS = st.sampled_from(["a", "b", "c"])
_VALUES = st.sampled_from([None, "1", "2"])
_EFFECTS = st.sampled_from(["NoSchedule", "NoExecute"])


def _unique(entries: list[Any]) -> list[Any]:
    return list(
        {(entry.key, getattr(entry.effect, "value", entry.effect)): entry for entry in entries}.values()
    )


@given(
    wanted=st.lists(st.builds(_want, _KEYS, _VALUES, _EFFECTS)).map(_unique),
    found=st.lists(st.builds(taint, _KEYS, _VALUES, _EFFECTS)).map(_unique),
    applied=st.lists(st.builds(_ours, _KEYS, _VALUES, _EFFECTS)).map(_unique),
)
def test_nobody_elses_taint_is_ever_lost_and_a_second_merge_changes_nothing(
    wanted: list[NodeTaint], found: list[FoundTaint], applied: list[Taint]
) -> None:
    plan = plan_taints(wanted, found, applied)
    recorded = {(entry.key, entry.effect): entry.value for entry in applied}
    for entry in found:
        identity = (entry.key, entry.effect)
        if identity not in recorded or recorded[identity] != entry.value:
            assert entry in plan.taints
    mine = {(entry.key, entry.effect) for entry in plan.applied}
    theirs = {(entry.key, entry.effect) for entry in plan.conflicts}
    assert mine | theirs == {(entry.key, entry.effect.value) for entry in wanted}
    assert not mine & theirs
    again = plan_taints(wanted, plan.taints, plan.applied)
    assert not again.changed
    assert (again.taints, again.applied) == (plan.taints, plan.applied)


# The record on the Node


@given(st.lists(st.builds(_ours, _KEYS, _VALUES, _EFFECTS)).map(_unique))
def test_the_record_reads_as_it_was_written(applied: list[Taint]) -> None:
    assert applied_taints({APPLIED_TAINTS: taints_annotation(applied)}) == tuple(applied)


@given(
    st.text()
    | st.recursive(
        st.none() | st.text() | st.integers(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    ).map(json.dumps)
)
def test_a_malformed_record_is_none(text: str) -> None:
    assert all(entry.key and entry.effect for entry in applied_taints({APPLIED_TAINTS: text}))


def test_a_record_nested_too_deep_is_none() -> None:
    assert applied_taints({APPLIED_TAINTS: "[" * 100_000}) == ()


# While the Node is ours

_TAINTED = machine(nodeTaints=[{"key": "example.com/lent", "effect": "NoSchedule"}])
_RECORDED = {APPLIED_TAINTS: taints_annotation([_ours()])}
_HAS_IT = node(taints=(taint(),), annotations=_RECORDED)


def test_taints_and_the_record_of_them_are_one_action() -> None:
    made = look(up(_TAINTED, node=node()))
    (action,) = actions(made)
    assert type(action).__name__ == "SetTaints"
    assert action.taints == (taint(),)
    assert action.applied == (_ours(),)
    assert action.resource_version == "21"


def test_status_says_what_the_node_records_and_not_what_is_about_to_be_written() -> None:
    before = look(up(_TAINTED, node=node()))
    assert (before.status.applied_node_taints, condition(before.status, "NodeTainted").status) == (
        (),
        "False",
    )
    after = look(up(_TAINTED, node=_HAS_IT))
    assert (after.status.applied_node_taints, condition(after.status, "NodeTainted").status) == (
        (_ours(),),
        "True",
    )
    assert after.groups == ()


def test_a_node_is_left_alone_when_no_taint_is_wanted_nor_recorded() -> None:
    made = look(up(node=node(taints=(taint(),))))
    assert made.groups == ()
    assert "NodeTainted" not in {entry.type for entry in made.status.conditions}


def test_taints_that_are_edited_away_go_and_their_condition_with_them() -> None:
    obs = up(_TAINTED, node=_HAS_IT)
    obs = told(stored(obs, look(obs)))
    assert kinds(look(obs)) == ["SetTaints"]
    made = look(up(_TAINTED, machine=obs.machine, node=node()))
    assert "NodeTainted" not in {entry.type for entry in made.status.conditions}
    assert made.status.applied_node_taints == ()


def test_a_conflict_is_reported_and_names_the_taint() -> None:
    said = condition(look(up(_TAINTED, node=node(taints=(taint(value="theirs"),)))).status, "NodeTainted")
    assert (said.status, said.reason) == ("False", "TaintOwnershipConflict")
    assert "example.com/lent:NoSchedule" in said.message


def test_a_node_that_is_not_ready_is_tainted_later() -> None:
    made = look(up(_TAINTED, node=node(ready=False)))
    assert made.groups == ()
    assert condition(made.status, "NodeTainted").reason == "NodeNotReady"


def test_a_pause_leaves_the_node_alone() -> None:
    made = look(up(_TAINTED, node=node(), capi_machine=up().capi_machine, machine=_paused()))
    assert made.groups == ()
    assert condition(made.status, "NodeTainted").reason == "Paused"


def _paused() -> Any:
    return machine(
        up(_TAINTED).machine.status,
        annotations={PAUSED: ""},
        nodeTaints=[{"key": "example.com/lent", "effect": "NoSchedule"}],
    )


def test_an_edit_that_cannot_be_read_takes_no_taint_off() -> None:
    obs = up(_TAINTED, node=_HAS_IT)
    made = look(told(stored(obs, look(obs)), nodeTaints="?"))
    assert made.groups == ()
    assert made.status.applied_node_taints == (_ours(),)
    assert condition(made.status, "NodeTainted").status == "True"


def test_the_cordon_of_ours_comes_off_before_taints_go_on() -> None:
    assert kinds(look(up(_TAINTED, node=cordoned()))) == ["Uncordon"]
    assert events(look(up(_TAINTED, node=cordoned()))) == []
