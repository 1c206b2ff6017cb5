"""Logic over other providers: Kleene's tables, who may be passed over, and references that make no sense."""

import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.core.decision.knowledge import Absent, Known, Present, Unknown
from fivespot.core.decision.observation import ProviderView
from fivespot.core.errors import InvalidSpec
from fivespot.core.provider.answer import Answer, Inputs
from fivespot.core.provider.composite import read_composite
from tests.core.provider.neighbours import COMPOSITE, Neighbours, abstains, ref, says, spec_ref

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
ANSWERS = (True, False, None)


def hour(hours: int) -> str:
    return f"{NOW + timedelta(hours=hours):%Y-%m-%dT%H:%M:%SZ}"


def ask(operator: str, *members: Known[ProviderView], now: datetime = NOW) -> Answer:
    """An operator over members m0, m1, ..."""
    known = {f"m{n}": member for n, member in enumerate(members)}
    return read_composite({operator: [spec_ref(name) for name in known]}).answer(
        now, Inputs(members=Neighbours(known))
    )


def member(answer: bool | None) -> Known[ProviderView]:
    return says(answer) if answer is not None else Unknown("ProviderUnreadable", "403")


# Kleene's tables (S. C. Kleene, Introduction to Metamathematics, 1952, section 64), strongest truth first.


def kleene_and(*answers: bool | None) -> bool | None:
    order: list[bool | None] = [False, None, True]
    return min(answers, key=order.index)


def kleene_or(*answers: bool | None) -> bool | None:
    order: list[bool | None] = [False, None, True]
    return max(answers, key=order.index)


@pytest.mark.parametrize(("operator", "table"), [("allOf", kleene_and), ("anyOf", kleene_or)])
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_the_tables(operator: str, table: Callable[..., bool | None], count: int) -> None:
    for answers in itertools.product(ANSWERS, repeat=count):
        found = ask(operator, *map(member, answers))
        assert found.active is table(*answers), answers
        assert (
            found.reason
            == {True: "MembersActive", False: "MembersInactive", None: "MemberUnresolved"}[found.active]
        )


@pytest.mark.parametrize(("said", "answer"), [(True, False), (False, True), (None, None)])
def test_not(said: bool | None, answer: bool | None) -> None:
    assert ask("not", member(said)).active is answer


@pytest.mark.parametrize(
    "unknown",
    [
        Absent(live=True, why="ProviderNotFound"),
        Absent(live=True, why="ProviderCRDNotInstalled"),
        Unknown("ProviderUnreadable", "500"),
        says(None),
        says(True, "False", "InvalidSpec"),
        # Whoever is not Ready for another reason, or by another's word, does not abstain.
        says(True, "Unknown", "Expired"),
        Present(
            ProviderView(
                generation=2,
                status={"active": True, "observedGeneration": 1},
                stale_since=NOW - timedelta(hours=1),
            )
        ),
    ],
)
def test_first_of_passes_over_nobody_but_who_abstains(unknown: Known[ProviderView]) -> None:
    found = ask("firstOf", unknown, says(active=True))
    assert found.active is None
    assert found.reason == "MemberUnresolved"
    assert "ManualSpotSchedule/m0" in found.message


@pytest.mark.parametrize("answer", [True, False])
def test_first_of_is_the_first_that_does_not_abstain(answer: bool) -> None:
    """Whether those before have ever said anything or not."""
    before = (abstains(active=not answer), abstains(active=None))
    found = ask("firstOf", *before, says(answer), says(not answer))
    assert found.active is answer
    assert "ManualSpotSchedule/m2 says" in found.message


def test_one_whose_abstention_is_about_an_older_spec_is_not_passed_over() -> None:
    old = abstains()
    assert isinstance(old, Present)
    edited = Present(attrs.evolve(old.value, generation=2, stale_since=NOW - timedelta(hours=1)))
    assert ask("firstOf", edited, says(active=True)).active is None


def test_where_all_abstain_it_abstains_itself_and_a_composite_above_passes_over_it() -> None:
    found = ask("firstOf", abstains(), abstains())
    assert (found.active, found.reason) == (None, "Expired")
    above = ask("firstOf", says(True, "False", found.reason), says(active=False))
    assert above.active is False


@pytest.mark.parametrize("operator", ["allOf", "anyOf", "not"])
def test_for_the_others_to_abstain_is_to_be_unknown(operator: str) -> None:
    assert ask(operator, abstains()).reason == "MemberUnresolved"


# Until when


def due(active: bool, hours: int | None) -> Known[ProviderView]:
    return says(active) if hours is None else says(active, nextTransitionTime=hour(hours))


@pytest.mark.parametrize(
    ("operator", "members", "hours"),
    [
        # Two that keep it up: until both have let go. What is inactive does not matter.
        ("anyOf", [(True, 3), (True, 5), (False, 1)], 5),
        ("anyOf", [(True, 3), (True, None)], None),
        # None that keeps it up: until the first does.
        ("anyOf", [(False, 4), (False, 2), (False, None)], 2),
        ("allOf", [(False, 3), (False, 5), (True, 1)], 5),
        ("allOf", [(True, 4), (True, 2)], 2),
        ("allOf", [(True, None), (True, None)], None),
        ("not", [(True, 7)], 7),
        ("firstOf", [(True, 6), (False, 1)], 6),
    ],
)
def test_the_next_transition_is_the_earliest_that_could_matter(
    operator: str, members: list[tuple[bool, int | None]], hours: int | None
) -> None:
    found = ask(operator, *(due(active, at) for active, at in members))
    assert found.next_transition == (None if hours is None else NOW + timedelta(hours=hours))
    # It is woken by its members.
    assert found.wake_at is None


@given(
    st.sampled_from(["allOf", "anyOf"]),
    st.lists(st.tuples(st.booleans(), st.integers(1, 9) | st.none()), min_size=1, max_size=5),
)
def test_nothing_changes_before_the_next_transition(
    operator: str, members: list[tuple[bool, int | None]]
) -> None:
    """However the members behave from their own transitions on, and they do as they said until then."""
    found = ask(operator, *(due(active, at) for active, at in members))
    until = 10 if found.next_transition is None else (found.next_transition - NOW) // timedelta(hours=1)
    for hours in range(until):
        for flipped in itertools.product((False, True), repeat=len(members)):
            answers = [
                active if at is None or hours < at else active is not changed
                for (active, at), changed in zip(members, flipped, strict=True)
            ]
            assert (all(answers) if operator == "allOf" else any(answers)) is found.active


# A moment's staleness


def stale(since: datetime) -> Known[ProviderView]:
    status = {"active": True, "observedGeneration": 1}
    return Present(ProviderView(generation=2, status=status, stale_since=since))


def test_an_edit_of_a_member_is_waited_for_before_anything_is_written() -> None:
    edited = NOW - timedelta(seconds=10)
    found = ask("allOf", says(active=True), stale(edited))
    assert (found.active, found.settled, found.wake_at) == (None, False, edited + timedelta(seconds=30))
    old = ask("allOf", stale(edited), now=edited + timedelta(seconds=30))
    assert (old.active, old.settled, old.reason) == (None, True, "MemberUnresolved")


def test_what_is_wrong_for_good_does_not_wait_for_what_is_stale() -> None:
    assert ask("allOf", member(None), stale(NOW)).settled is True


# References


def over(*names: str) -> Any:
    return read_composite({"allOf": [spec_ref(name, COMPOSITE) for name in names]})


def below(**edges: tuple[str, ...]) -> Neighbours:
    return Neighbours(
        {name: says(active=True) for at, names in edges.items() for name in (at, *names)},
        {name: tuple(ref(to, COMPOSITE) for to in names) for name, names in edges.items()},
    )


def test_a_circle_is_named_by_its_way() -> None:
    found = over("b").answer(NOW, Inputs(members=below(b=("c",), c=("a",), a=("b",))))
    assert (found.active, found.reason) == (None, "ReferenceCycle")
    way = " -> ".join(f"CompositeSpotSchedule/{name}" for name in "bcab")
    assert found.message == f"the references run in a circle: {way}"


def test_one_that_refers_to_itself_is_a_circle() -> None:
    assert over("a").answer(NOW, Inputs(members=below(a=("a",)))).reason == "ReferenceCycle"


def test_a_diamond_is_no_circle() -> None:
    found = over("b", "c").answer(NOW, Inputs(members=below(b=("d",), c=("d",), d=("leaf",))))
    assert found.active is True


@pytest.mark.parametrize(("depth", "reason"), [(8, "MembersActive"), (9, "ReferencesTooDeep")])
def test_eight_composites_may_stand_above_one_another(depth: int, reason: str) -> None:
    edges = {f"c{n}": (f"c{n + 1}",) for n in range(1, depth)}
    edges[f"c{depth - 1}"] = ("leaf",)
    assert over("c1").answer(NOW, Inputs(members=below(**edges))).reason == reason


def test_a_chain_without_end_and_many_ways_to_the_same_are_answered_at_once() -> None:
    chain = {f"c{n}": (f"c{n + 1}",) for n in range(5000)}
    assert over("c0").answer(NOW, Inputs(members=below(**chain))).reason == "ReferencesTooDeep"
    wide = {f"l{n}": tuple(f"l{n + 1}" for _ in range(32)) for n in range(6)}
    assert over(*["l0"] * 32).answer(NOW, Inputs(members=below(**wide))).active is True


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"allOf": []},
        {"allOf": [spec_ref("a")], "anyOf": [spec_ref("b")]},
        {"not": [spec_ref("a"), spec_ref("b")]},
        {"firstOf": [{"kind": "ManualSpotSchedule", "name": "a"}]},
        {"firstOf": [spec_ref("../b")]},
        {"anyOf": [spec_ref("a")] * 33},
    ],
)
def test_what_is_no_operator_over_references_is_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(InvalidSpec):
        read_composite(spec)


def test_of_many_members_without_an_answer_some_are_named() -> None:
    found = ask("allOf", *[member(None)] * 32)
    assert found.message.count("ManualSpotSchedule/") == 10  # a name, and its sentence, for each
    assert found.message.endswith("; and 27 more")


def test_an_expired_override_that_was_just_edited_is_waited_for() -> None:
    """To renew one is what most edits of overrides are."""
    old = abstains()
    assert isinstance(old, Present)
    edited = Present(attrs.evolve(old.value, generation=2, stale_since=NOW - timedelta(seconds=1)))
    found = ask("firstOf", edited, says(active=True))
    assert (found.active, found.settled, found.wake_at) == (None, False, NOW + timedelta(seconds=29))
