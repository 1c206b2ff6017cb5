"""Overrides that are interrupted, repeated, mixed, and answered late: the end is the same, and nothing flaps."""

import copy
from datetime import UTC, datetime

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.core.decision.knowledge import Absent, Present
from fivespot.core.decision.observation import ProviderView
from fivespot.core.override.plan import Clear, Override, Wish
from tests import builders
from tests.core.decision.observations import at_rest, down, look, provider, told, up
from tests.core.override.site import COMPOSITE, MANUAL, OVERRIDE, Site, Watched

UNTIL = st.none() | st.integers(1, 3).map(lambda hour: datetime(2026, 3, 3, hour, tzinfo=UTC))
OVERRIDES = st.builds(Override, active=st.booleans(), until=UNTIL)
WISHES: st.SearchStrategy[Wish] = OVERRIDES | st.just(Clear())
EDITS = st.sampled_from(["nights", "weekends", "holidays"])


@given(before=st.lists(WISHES, max_size=2), wish=WISHES, cuts=st.lists(st.integers(0, 3), max_size=4))
def test_interrupted_after_any_steps_and_begun_again_it_comes_to_the_same_end(
    before: list[Wish], wish: Wish, cuts: list[int]
) -> None:
    site = Site()
    for earlier in before:
        site.fulfil(earlier)
    straight = copy.deepcopy(site)
    straight.fulfil(wish)
    for cut in cuts:
        site.fulfil(wish, steps=cut)
    site.fulfil(wish)
    assert site.end() == straight.end()
    assert site.plan(wish).steps == ()


@given(
    script=st.lists(WISHES | EDITS | st.tuples(WISHES, st.integers(0, 3)), max_size=8),
    last=OVERRIDES,
)
def test_it_never_nests_and_clearing_gives_back_exactly_the_schedule_that_was_there(
    script: list[Wish | str | tuple[Wish, int]], last: Override
) -> None:
    site, own = Site(), "nights"
    for act in script:
        if isinstance(act, str):
            own = act
            site.machine["spec"]["schedule"] = builders.reference(own)
        elif isinstance(act, tuple):
            site.fulfil(act[0], steps=act[1])
        else:
            site.fulfil(act)
        if site.reference == builders.reference(OVERRIDE, kind=COMPOSITE):
            assert site.objects[COMPOSITE]["spec"]["firstOf"] == [
                builders.reference(OVERRIDE, kind=MANUAL),
                builders.reference(own),
            ]
        else:
            assert site.reference == builders.reference(own)
    site.fulfil(last)
    site.fulfil(Clear())
    assert (site.reference, site.objects) == (builders.reference(own), {})


EVENTS = st.sampled_from(
    ["step", "look", *(f"{act} {kind}" for act in ("show", "answer") for kind in (MANUAL, COMPOSITE))]
)


def _happens(watched: Watched, event: str) -> None:
    act, _, kind = event.partition(" ")
    if act == "look":
        watched.look()
    elif act == "show":
        watched.show(kind)
    elif act == "answer":
        watched.answer(kind)


@given(
    schedule=st.booleans(),
    before=st.none() | st.tuples(OVERRIDES, st.integers(1, 4)),
    wish=OVERRIDES,
    events=st.lists(EVENTS, max_size=30),
)
def test_however_late_the_schedules_are_answered_for_the_machine_changes_at_most_once(
    schedule: bool, before: tuple[Override, int] | None, wish: Override, events: list[str]
) -> None:
    """An earlier override may have been interrupted anywhere, and have left schedules that say something else."""
    watched = Watched(Site(), schedule)
    watched.settle()
    if before is not None:
        watched.site.fulfil(before[0], steps=before[1])
        watched.settle()
    watched.held = watched.held[-1:]
    found = watched.held[0]
    left = list(watched.site.plan(wish).steps)
    for event in events:
        if event == "step" and left and watched.ready(left[0]):
            watched.site.perform(left.pop(0))
            watched.look()
        _happens(watched, event)
    while left:
        watched.settle()
        assert watched.ready(left[0])
        watched.site.perform(left.pop(0))
        watched.look()
    watched.settle()
    assert watched.held == ([found] if found is wish.active else [found, wish.active])


@given(wish=OVERRIDES, schedule=st.booleans(), events=st.lists(EVENTS, max_size=30))
def test_clearing_changes_the_machine_at_most_once(wish: Override, schedule: bool, events: list[str]) -> None:
    watched = Watched(Site(), schedule)
    watched.site.fulfil(wish)
    watched.settle()
    assert watched.held[-1] is wish.active
    watched.held = watched.held[-1:]
    left = list(watched.site.plan(Clear()).steps)
    for event in [*events, *["step"] * 3]:
        if event == "step" and left:
            watched.site.perform(left.pop(0))
            watched.look()
        _happens(watched, event)
    assert watched.held == ([schedule] if wish.active is schedule else [wish.active, schedule])


@pytest.mark.parametrize("was", [True, False], ids=["in", "out"])
def test_a_machine_that_refers_to_a_composite_without_an_answer_stays_where_it_is(was: bool) -> None:
    """As when all three manifests come out of Git at once: the whole decision, not the verdict alone."""
    rest = at_rest(up() if was else down(provider=provider(False)))
    moved = told(rest, schedule=builders.reference(OVERRIDE, kind=COMPOSITE))
    for unanswered in (Absent(live=True), Present(ProviderView(generation=1))):
        made = look(attrs.evolve(moved, provider=unanswered))
        assert made.groups == ()
        assert (made.status.phase, made.status.decided_by) == ("Active" if was else "Inactive", "Held")
