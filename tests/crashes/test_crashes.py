"""Whenever the controller dies, the next one comes to the same end, and nothing is done twice.

Each story is lived once undisturbed, and its calls to both API servers are counted. Then it is lived again for each of
them: the process is killed once the call was carried out and before anybody hears of it, or before it is carried out.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.crashes.stories import STORIES
from tests.faults.lives import Call, Death, Lab, deaths, ending, lab
from tests.faults.virtual import VirtualClock, run_virtually

pytestmark = pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")


class Lived(NamedTuple):
    """Where a story led, the calls on the way, and how many of them were told by another story before."""

    end: dict[str, Any]
    calls: list[Call]
    begins: int


def lived(name: str, death: Death | None = None) -> Lived:
    """Live a story to its end, and beyond until everything rests."""

    async def story(clock: VirtualClock) -> Lived:
        async with lab(clock) as here, here.counted(death):
            await here.live()
            try:
                await STORIES[name](here)
                await rest(here)
            finally:
                await here.end()
            here.look_back()
            assert here.lives == (1 if death is None or len(here.calls) < death.call else 2)
            return Lived(ending(here), here.calls, here.begins)

    return run_virtually(story)


async def rest(here: Lab) -> None:
    """At rest nothing is written, and nothing read but streams."""
    await here.rest()
    lives = 0
    # Tries are jittered: the call at which it dies may come late this time.
    while lives != here.lives or here.dead:
        lives, before = here.lives, len(here.calls)
        await here.rest()
    restless = [call.asked for call in here.calls[before:] if call.asked.verb != "watch"]
    assert not restless, restless


@pytest.fixture(autouse=True)
def _left_to_the_kernel() -> Iterator[None]:
    """A process that is killed closes nothing: connections that it was just opening are found by the garbage collector, here."""
    yield
    gc.collect()


@functools.cache
def undisturbed(name: str) -> Lived:
    return lived(name)


@pytest.mark.parametrize("name", STORIES)
def test_a_death_at_any_call_changes_nothing_about_the_end_of(name: str) -> None:
    told = undisturbed(name)
    for death in deaths(told.calls, told.begins):
        try:
            assert lived(name, death).end == told.end
        except AssertionError as error:
            error.add_note(f"{death}: {told.calls[death.call - 1].asked}")
            raise
