"""Every law of a single decision, over the abstract world of `model.py`.

64,462 observations are walked once: 19,008 that settle who decides (all of them), 33,454 of what can stand (every 41st of
1.4 million), and 12,000 from the whole product of 4 * 10^11, consistent or not.
"""

import itertools
from collections import Counter
from collections.abc import Iterable

import attrs
import pytest

from fivespot.core.decision import actions as act
from fivespot.core.decision.decide import decide
from fivespot.core.decision.knowledge import Absent
from tests.core.decision import laws, model
from tests.core.decision.laws import LAWS, Seen
from tests.core.decision.model import NOW, Case

ANYTHING = 12_000
INCONSISTENT = {laws.only_allowed_phase_changes, laws.kill_switch_wins}
"""Laws about what was stored before, which say nothing where that could never have been stored."""


@attrs.define
class Verdict:
    """What the walk found: how many cases, and for each law where it is broken."""

    cases: Counter[str] = attrs.field(factory=Counter)
    broken: dict[laws.Law, list[str]] = attrs.field(factory=dict)

    def look(self, name: str, cases: Iterable[Case], checked: Iterable[laws.Law]) -> None:
        checked = tuple(checked)
        for case in cases:
            self.cases[name] += 1
            obs = case.observation()
            seen = Seen(obs=obs, now=NOW, decision=decide(obs, NOW))
            for law in checked:
                wrong = law(seen)
                if wrong is not None:
                    self.broken.setdefault(law, []).append(f"{case}: {wrong}")


@pytest.fixture(scope="module")
def walked() -> Verdict:
    verdict = Verdict()
    verdict.look("who", model.who_decides(), LAWS)
    verdict.look("what", model.what_stands(), LAWS)
    verdict.look("any", model.anything(ANYTHING), [law for law in LAWS if law not in INCONSISTENT])
    return verdict


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_every_observation_is_answered_and(walked, law):
    """Answered without an exception, and the law holds for the answer."""
    assert walked.broken.get(law, [])[:3] == []


def test_the_walk_is_as_long_as_it_says(walked):
    assert walked.cases == {"who": 19_008, "what": 33_454, "any": ANYTHING}


_DIMENSIONS = {
    "capi": model.CAPI,
    "dependents": model.DEPENDENTS,
    "node": model.NODES,
    "stray": model.LAST_NODES,
    "pods": model.PODS,
    "cluster": model.CLUSTERS,
    "stored": model.STORED,
}


@pytest.mark.parametrize("dimension", _DIMENSIONS)
def test_thinning_leaves_no_value_out_of(dimension):
    met = {getattr(case, dimension) for case in model.what_stands()}
    assert met == set(_DIMENSIONS[dimension])


@pytest.mark.parametrize("dimension", ["stored", "cluster"])
def test_thinning_leaves_no_pair_out_of_machine_and(dimension):
    met = {(case.capi, getattr(case, dimension)) for case in model.what_stands()}
    assert met == set(itertools.product(model.CAPI, _DIMENSIONS[dimension]))


def test_equal_observations_have_equal_answers():
    for case in itertools.islice(model.what_stands(), 0, None, 23):
        assert decide(case.observation(), NOW) == decide(case.observation(), NOW)


def _held(case: Case) -> Case:
    """The same, with a provider that says what is held."""
    return attrs.evolve(case, verdict="active" if case.held == "held active" else "inactive")


def _asked(decision: act.Decision) -> tuple[object, ...]:
    creates = [(a.role, a.manifest) for g in decision.groups for a in g.actions if isinstance(a, act.Create)]
    return decision.groups, creates, decision.confirm, decision.status.phase, decision.status.shutdown


def test_an_unresolved_provider_changes_nothing_of_what_is_wanted():
    """Invariant 1: whatever it cannot say, all that is done is what the held verdict says."""
    unresolved = [
        case for case in model.who_decides() if case.verdict not in model.RESOLVED and case.held != "never"
    ]
    assert len(unresolved) > 5000
    for case in unresolved:
        blind, told = decide(case.observation(), NOW), decide(_held(case).observation(), NOW)
        assert _asked(blind) == _asked(told) or _is_same_but_for_cause(blind, told), case
        assert blind.status.in_schedule == told.status.in_schedule, case


def _is_same_but_for_cause(blind: act.Decision, told: act.Decision) -> bool:
    """A removal remembers who decided it: Held instead of Provider."""
    one, other = blind.status.shutdown, told.status.shutdown
    if one is None or other is None:
        return False
    return _asked(blind)[:4] == _asked(told)[:4] and attrs.evolve(one, cause=None) == attrs.evolve(
        other, cause=None
    )


def test_an_unresolved_provider_never_moves_the_held_verdict():
    for case in model.who_decides():
        if case.verdict not in model.RESOLVED:
            spot = decide(case.observation(), NOW).status.spot_schedule
            stored = case.observation().machine.status.spot_schedule
            assert (spot.active if spot else None) is (stored.active if stored else None), case


_PARTS = {
    act.Part.CLUSTER: "cluster",
    act.Part.MACHINE: "capi_machine",
    act.Part.BOOTSTRAP: "bootstrap",
    act.Part.INFRASTRUCTURE: "infrastructure",
    act.Part.NODE: "node",
}


def test_what_was_confirmed_is_not_asked_for_again():
    """Made live, a part is believed; after each part was read once there is an answer."""
    asked = 0
    for case in itertools.islice(model.what_stands(), 0, None, 3):
        obs, confirmed = case.observation(), set()
        while (decision := decide(obs, NOW)).confirm:
            asked += 1
            assert confirmed.isdisjoint(decision.confirm), case
            confirmed.update(decision.confirm)
            for part in decision.confirm:
                name = _PARTS[part]
                assert isinstance(getattr(obs, name), Absent), f"{case} asks for {part}, which was seen"
                obs = attrs.evolve(obs, **{name: Absent(live=True)})
    assert asked > 500
