"""Boundaries that are passed while something is wrong: the present is stated, nothing is replayed, each transition told once."""

import asyncio

import pytest

from tests.fakeapi.faults import Answer, Cut, Hold, MuteStream, RequestEffect
from tests.faults.publishing import DAY, HOUR, MINUTE, SECOND, Publishing, publishing
from tests.faults.setting import run

TO_NOON = 30 * MINUTE
WORKERS = 8


async def _rests(here: Publishing, answer: bool, *, since: str, then: str, told: list[str]) -> None:
    """What is published, since when and until when, and every Event so far; and that nothing more comes of it."""
    await here.until(lambda: sorted(here.told()) == sorted(told))
    await here.goes_on_saying(answer)
    status = here.status()
    assert (status["lastTransitionTime"], status["nextTransitionTime"]) == (since, then)
    assert sorted(here.told()) == sorted(told)


def test_a_clock_that_is_set_an_hour_forward_and_back_has_its_answer_follow_and_each_change_told_once() -> (
    None
):
    async def scenario() -> None:
        async with publishing() as here:
            here.clock.step(HOUR)
            await here.says(answer=True)
            await _rests(
                here,
                answer=True,
                since="2026-03-02T12:30:00Z",
                then="2026-03-02T14:00:00Z",
                told=["WindowOpened"],
            )
            here.clock.step(-HOUR)
            here.clock.advance(MINUTE)
            await here.says(answer=False)
            assert here.status()["lastTransitionTime"] == "2026-03-02T11:31:00Z", "as soon as it is noticed"
            here.clock.advance(TO_NOON - MINUTE)
            await here.says(answer=True)
            told = ["WindowOpened", "WindowClosed", "WindowOpened"]
            await here.until(lambda: sorted(here.told()) == sorted(told))
            assert here.status()["lastTransitionTime"] == "2026-03-02T12:00:00Z"
            assert len(here.written()) == 4

    run(scenario())


@pytest.mark.parametrize(
    ("asleep", "answer", "since", "told"),
    [
        # To the same time of the next day: a whole window has gone by, which is nobody's business any more.
        (DAY, False, "2026-03-02T11:30:00Z", []),
        (DAY + HOUR, True, "2026-03-03T12:30:00Z", ["WindowOpened"]),
    ],
)
def test_a_machine_that_was_suspended_for_a_day_states_the_present_in_one_write(
    asleep: float, answer: bool, since: str, told: list[str]
) -> None:
    """Its monotonic clock has stood still: for that one nothing has happened."""

    async def scenario() -> None:
        async with publishing() as here:
            before = len(here.written())
            here.clock.step(asleep)
            then = f"2026-03-03T{14 if answer else 12}:00:00Z"
            await here.until_it_expects(then)
            await _rests(here, answer, since=since, then=then, told=told)
            assert len(here.written()) == before + 1

    run(scenario())


def test_an_edit_one_second_before_the_boundary_has_it_pass_as_nothing() -> None:
    async def scenario() -> None:
        async with publishing() as here:
            here.clock.advance(TO_NOON - SECOND)
            here.edit("13")
            await here.until_it_expects("2026-03-02T13:00:00Z")
            here.clock.advance(SECOND)
            await _rests(
                here,
                answer=False,
                since="2026-03-02T11:30:00Z",
                then="2026-03-02T13:00:00Z",
                told=[],
            )

    run(scenario())


def test_an_edit_that_opens_one_second_before_the_boundary_opens_once() -> None:
    async def scenario() -> None:
        async with publishing() as here:
            here.clock.advance(TO_NOON - SECOND)
            here.edit("11-13")
            await here.says(answer=True)
            here.clock.advance(SECOND)
            await _rests(
                here,
                answer=True,
                since="2026-03-02T11:59:59Z",
                then="2026-03-02T14:00:00Z",
                told=["WindowOpened"],
            )

    run(scenario())


def test_a_boundary_of_a_spec_that_was_edited_unseen_is_refused_by_the_server() -> None:
    """The news of the edit is on its way when the old boundary comes: what the old spec says is about nothing any more."""

    async def scenario() -> None:
        async with publishing() as here:
            told = asyncio.Event()
            here.server.faults.on_streams(MuteStream(told), resource="timebasedspotschedules")
            here.clock.advance(TO_NOON - SECOND)
            here.edit("13")
            here.clock.advance(SECOND)
            await here.until(lambda: here.server.writes[-1].code == 409)
            await here.goes_on_saying(answer=False)
            told.set()
            await here.until_it_expects("2026-03-02T13:00:00Z")
            await _rests(
                here,
                answer=False,
                since="2026-03-02T11:30:00Z",
                then="2026-03-02T13:00:00Z",
                told=[],
            )

    run(scenario())


FAILING = {
    "unavailable": Answer(503, "ServiceUnavailable"),
    "throttled": Answer(429, "TooManyRequests"),
    "forbidden": Answer(403, "Forbidden"),
    "cut": Cut(),
}


@pytest.mark.parametrize("effect", FAILING.values(), ids=FAILING)
def test_a_boundary_that_passes_while_the_status_cannot_be_written_is_published_once_it_can(
    effect: RequestEffect,
) -> None:
    async def scenario() -> None:
        async with publishing() as here:
            refusing = here.server.faults.add(effect, verb="patch", subresource="status", times=None)
            here.clock.advance(TO_NOON)
            async with here.clock.passing():
                await refusing.hit(4)
            refusing.remove()
            async with here.clock.passing():
                await here.says(answer=True)
            since = here.status()["lastTransitionTime"]
            assert "2026-03-02T12:00:00Z" < since < "2026-03-02T13:00:00Z", "the second in which it was said"
            await _rests(here, answer=True, since=since, then="2026-03-02T14:00:00Z", told=["WindowOpened"])

    run(scenario())


@pytest.mark.parametrize("effect", FAILING.values(), ids=FAILING)
def test_a_whole_window_that_passes_while_the_status_cannot_be_written_is_not_replayed(
    effect: RequestEffect,
) -> None:
    async def scenario() -> None:
        async with publishing() as here:
            refusing = here.server.faults.add(effect, verb="patch", subresource="status", times=None)
            here.clock.advance(TO_NOON)
            async with here.clock.passing(MINUTE):
                await here.clock.sleep_until(here.clock.monotonic() + 3 * HOUR)
                await refusing.hit(4)
                refusing.remove()
                await here.until_it_expects("2026-03-03T12:00:00Z")
            await _rests(
                here,
                answer=False,
                since="2026-03-02T11:30:00Z",
                then="2026-03-03T12:00:00Z",
                told=[],
            )
            assert len(here.written()) == 2

    run(scenario())


def test_a_flip_whose_answer_was_lost_is_written_once_and_told_once() -> None:
    async def scenario() -> None:
        async with publishing() as here:
            before = len(here.written())
            here.server.faults.add(Cut(after=True), verb="patch", subresource="status")
            here.clock.advance(TO_NOON)
            await here.says(answer=True)
            async with here.clock.passing():
                await here.until(lambda: here.told() == ["WindowOpened"])
            await here.goes_on_saying(answer=True)
            assert here.status()["lastTransitionTime"] == "2026-03-02T12:00:00Z"
            assert len(here.written()) == before + 1

    run(scenario())


def test_the_next_boundary_comes_though_the_answer_to_the_one_before_is_still_under_way() -> None:
    async def scenario() -> None:
        async with publishing() as here:
            answered = asyncio.Event()
            held = here.server.faults.add(Hold(answered, after=True), verb="patch", subresource="status")
            here.clock.advance(TO_NOON)
            await held.hit()
            await here.says(answer=True)
            here.clock.advance(2 * HOUR)
            await here.goes_on_saying(answer=True)
            answered.set()
            await here.says(answer=False)
            await here.until(lambda: sorted(here.told()) == ["WindowClosed", "WindowOpened"])
            await here.goes_on_saying(answer=False)
            assert here.status()["lastTransitionTime"] == "2026-03-02T14:00:00Z"

    run(scenario())


def test_a_clock_from_before_the_build_is_no_answer_moves_nothing_and_recovers_when_it_is_set_right() -> None:
    async def scenario() -> None:
        async with publishing() as here:
            here.clock.advance(TO_NOON)
            await here.says(answer=True)
            here.clock.step(-2 * DAY)
            here.clock.advance(MINUTE)
            await here.until(lambda: here.ready() == ("False", "ClockUntrusted"))
            status = here.status()
            assert (status["active"], status["lastTransitionTime"]) == (True, "2026-03-02T12:00:00Z")
            here.clock.step(2 * DAY)
            await here.until(lambda: here.ready() == ("True", "WindowOpen"))
            await _rests(
                here,
                answer=True,
                since="2026-03-02T12:00:00Z",
                then="2026-03-02T14:00:00Z",
                told=["WindowOpened", "ClockUntrusted"],
            )

    run(scenario())


def test_of_many_boundaries_in_one_second_every_status_is_written_before_people_are_told() -> None:
    """But for those that are being written when the first Event is: a consumer waits for the one, nobody for the other."""

    async def scenario() -> None:
        async with publishing() as here:
            for number in range(40):
                here.copy(f"copy-{number}")
            await here.until(lambda: len(here.written()) == 41)
            begun = len(here.server.writes)
            here.clock.advance(TO_NOON)
            await here.until(lambda: len(here.told()) == 41)
            order = [entry.asked.subresource == "status" for entry in here.server.writes[begun:]]
            assert sum(order) == 41
            assert sum(order[: order.index(False)]) >= 41 - WORKERS

    run(scenario())
