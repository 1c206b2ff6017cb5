"""Every stream that is in use meets everything that can happen to a stream; its cache is right again afterwards."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest

from fivespot.adapters.kube.errors import ApiError
from fivespot.adapters.kube.frames import encode
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.reflector import Reflector
from tests.fakeapi import FakeApi, fake_api
from tests.fakeapi.faults import (
    Answer,
    Cut,
    CutStream,
    EndStream,
    ErrorEvent,
    MuteStream,
    Pieces,
    RawBytes,
    Split,
)
from tests.faults.setting import (
    LONGEST_PAUSE,
    WATCHED,
    Following,
    HandClock,
    Watched,
    everywhere,
    followed,
    gateway_to,
    install,
    noted,
    put,
    run,
)


def status(code: int, reason: str) -> dict[str, Any]:
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}


async def goes_on(here: Following, streams: int = 2) -> None:
    """Time passes, and everything is known that has happened meanwhile."""
    here.clock.advance(LONGEST_PAUSE)
    await here.until_watched()
    assert here.count("watch") == streams


def test_a_server_that_refuses_connections_is_found_when_it_starts() -> None:
    async def scenario() -> None:
        async with fake_api() as server, gateway_to(server) as gateway, AsyncExitStack() as stack:
            install(server)
            await server.stop()
            every = [
                await stack.enter_async_context(followed(server, gateway, watched)) for watched in WATCHED
            ]
            for here in every:
                await here.clock.asleep()
                assert isinstance(here.watches.fault(here.stream), ApiError)
                assert here.told == []
            await server.start()
            for here in every:
                here.clock.advance(LONGEST_PAUSE)
                await noted(here.watched, here.until_current())
                assert here.watches.fault(here.stream) is None

    run(scenario())


def test_a_stream_that_is_cut_in_the_middle_of_a_frame_goes_on_where_it_was() -> None:
    async def check(here: Following) -> None:
        before = len(here.told)
        here.server.faults.on_streams(CutStream(after_bytes=40), **here.match)
        here.change_everything("while it is cut")
        await here.clock.asleep()
        assert here.told[before:] == [], "half a frame is no event"
        await goes_on(here)
        assert here.count("list") == 1

    everywhere(check)


def test_a_stream_that_ends_in_good_order_goes_on_where_it_was() -> None:
    async def check(here: Following) -> None:
        here.server.faults.on_streams(EndStream(), **here.match)
        await here.clock.asleep()
        here.change_everything("while nobody watches")
        await goes_on(here)
        assert here.count("list") == 1
        assert here.reflector.restart_reasons == {"end": 1}

    everywhere(check)


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
def test_a_stream_that_is_refused_for_now_goes_on_where_it_was(code: int) -> None:
    async def check(here: Following) -> None:
        refusing = here.server.faults.add(Answer(code), times=1, verb="watch", **here.match)
        here.server.faults.on_streams(EndStream(), **here.match)
        await here.clock.asleep()
        here.change_everything("while nobody watches")
        here.clock.advance(LONGEST_PAUSE)
        await refusing.hit()
        await here.clock.asleep()
        assert len(here.cache()) == len(here.watched.names), "the cache stays"
        await goes_on(here, streams=3)
        assert here.count("list") == 1

    everywhere(check)


def test_a_connection_that_is_reset_instead_of_an_answer_is_tried_again() -> None:
    async def check(here: Following) -> None:
        resetting = here.server.faults.add(Cut(), times=1, verb="watch", **here.match)
        here.server.faults.on_streams(EndStream(), **here.match)
        await here.clock.asleep()
        here.change_everything("while nobody watches")
        here.clock.advance(LONGEST_PAUSE)
        await resetting.hit()
        await here.clock.asleep()
        await goes_on(here, streams=3)
        assert here.count("list") == 1

    everywhere(check)


def test_a_version_that_is_too_old_for_a_new_stream_is_listed_anew() -> None:
    async def check(here: Following) -> None:
        here.server.faults.on_streams(EndStream(), **here.match)
        await here.clock.asleep()
        here.change_everything("and forgotten by the server")
        here.server.compact()
        async with here.clock.passing():
            await here.until_watched()
        assert here.count("list") == 2
        assert here.reflector.restart_reasons == {"end": 1, "gone": 1}

    everywhere(check)


def test_too_old_as_an_http_answer_is_listed_anew() -> None:
    async def check(here: Following) -> None:
        here.server.faults.add(Answer(410, "Expired"), times=1, verb="watch", **here.match)
        here.server.faults.on_streams(EndStream(), **here.match)
        await here.clock.asleep()
        here.change_everything("while nobody watches")
        async with here.clock.passing():
            await here.until_watched()
        assert here.count("list") == 2

    everywhere(check)


@pytest.mark.parametrize("reason", ["Expired", "Gone"])
def test_too_old_inside_the_stream_is_listed_anew_at_once(reason: str) -> None:
    async def check(here: Following) -> None:
        here.server.faults.on_streams(ErrorEvent(status(410, reason)), **here.match)
        here.server.faults.on_streams(EndStream(), **here.match)
        here.change_everything("after it")
        await here.until_current()
        await here.until_watched()
        assert (here.count("list"), here.count("watch")) == (2, 2)

    everywhere(check)


def test_a_server_that_always_says_too_old_is_asked_ever_less_often() -> None:
    async def check(here: Following) -> None:
        here.server.faults.add(Answer(410, "Expired"), verb="watch", times=None, **here.match)
        here.server.faults.on_streams(EndStream(), **here.match)
        await rarely_asked(here)

    everywhere(check)


def test_a_server_that_says_something_and_then_always_too_old_is_asked_ever_less_often() -> None:
    async def check(here: Following) -> None:

        def says_something() -> bytes:
            found = here.server.world.store.items(here.watched.label)[0][1]
            version = found["metadata"]["resourceVersion"]
            return b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"%s"}}}\n' % version.encode()

        error = ErrorEvent(status(410, "Expired"))
        here.server.faults.add(
            RawBytes(says_something()), error, EndStream(), verb="watch", times=None, **here.match
        )
        here.server.faults.on_streams(EndStream(), **here.match)
        await rarely_asked(here)

    everywhere(check)


async def rarely_asked(here: Following) -> None:
    """In a hundred seconds there are no more than a dozen lists."""
    for _ in range(20):
        async with asyncio.timeout(3):
            await here.clock.asleep()
        here.clock.advance(5)
    assert here.count("list") <= 12


@pytest.mark.parametrize(
    "error",
    [
        status(500, "InternalError"),
        status(403, "Forbidden"),
        status(429, "TooManyRequests"),
        {"kind": "Status", "code": "five hundred"},
        {"metadata": {"name": "one", "namespace": "ns", "uid": "u", "resourceVersion": "999999"}},
        {},
    ],
    ids=lambda error: str(error.get("reason") or error.get("code") or sorted(error)),
)
def test_any_other_error_in_the_stream_never_reaches_the_cache(error: dict[str, Any]) -> None:
    async def check(here: Following) -> None:
        told = list(here.told)
        here.server.faults.on_streams(ErrorEvent(error), **here.match)
        await here.clock.asleep()
        await here.until_unwatched()
        assert here.told == told
        here.change_everything("while nobody watches")
        await goes_on(here)
        assert here.count("list") == 1

    everywhere(check)


@pytest.mark.parametrize(
    "said",
    [
        b"<html>a proxy is talking</html>\n",
        b'{"type":"MODIFIED"}\n',
        b'{"type":"MODIFIED","object":"text"}\n',
        b'{"type":"MODIFIED","object":{"metadata":{"name":"\xff"}}}\n',
        b"[" * 10_000 + b"\n",
    ],
    ids=["a proxy", "no object", "a text", "no UTF-8", "without an end"],
)
def test_what_is_no_frame_ends_the_stream_and_nothing_else(said: bytes) -> None:
    async def check(here: Following) -> None:
        here.server.faults.on_streams(RawBytes(said), **here.match)
        await here.clock.asleep()
        await here.until_unwatched()
        here.change_everything("while nobody watches")
        await goes_on(here)
        assert here.count("list") == 1

    everywhere(check)


def test_an_event_that_is_split_at_any_byte_is_one_event() -> None:
    async def check(here: Following) -> None:
        length = len(encode({"type": "MODIFIED", "object": here.put(here.one, changed="x" * 8)})) + 1
        # Every byte of one kind, and a few of each of the others.
        offsets = range(1, length, 1 if here.watched is WATCHED[0] else 29)
        for offset in offsets:
            here.server.faults.on_streams(Split(offset), **here.match)
            here.put(here.one, changed=f"{offset:08}")
        await here.until_current()
        assert len(here.told) == len(here.watched.names) + 1 + len(offsets)
        assert here.count("watch") == 1

    everywhere(check)


def test_an_event_that_comes_byte_by_byte_is_one_event() -> None:
    async def check(here: Following) -> None:
        here.server.faults.on_streams(Pieces(1), **here.match)
        here.change_everything("byte by byte")
        await here.until_current()
        assert here.count("watch") == 1

    everywhere(check)


@pytest.mark.parametrize("character", ["\x85", "\u2028", "\u2029", "\x0b", "\x1c", "\U0001f984"], ids=ascii)
def test_a_character_at_which_python_ends_a_line_ends_no_event(character: str) -> None:
    async def check(here: Following) -> None:
        here.put(here.one, said=f"before{character}after")
        here.put(here.one, said=f"{character}\n{character}")
        await here.until_current()
        assert here.count("watch") == 1

    everywhere(check)


def test_bookmarks_move_the_version_and_are_told_to_nobody() -> None:
    async def check(here: Following) -> None:
        told = list(here.told)
        # Something happens elsewhere, and the history up to it is forgotten.
        here.server.create("v1", "configmaps", {"metadata": {"name": str(here.watched).lower()}}, "ns")
        here.server.bookmark()
        here.server.faults.on_streams(EndStream(), **here.match)
        await here.clock.asleep()
        here.server.compact()
        await goes_on(here)
        assert here.told == told
        assert here.count("list") == 1

    everywhere(check)


def test_silence_counts_by_the_monotonic_clock_and_pauses_double_up_to_thirty_seconds() -> None:
    async def check(here: Following) -> None:
        here.server.faults.add(Answer(503), verb="watch", times=None, **here.match)
        here.server.faults.on_streams(EndStream(), **here.match)
        for count in range(1, 11):
            await here.clock.until_slept(count)
            await here.clock.asleep()
            here.clock.step(3600.0 if count % 2 else -3600.0)
            here.clock.advance(here.clock.pauses[-1])
        longest = [min(30.0, 0.8 * 2**tries) for tries in range(10)]
        for pause, most in zip(here.clock.pauses, longest, strict=True):
            assert most / 2 <= pause <= most

    everywhere(check)


def test_a_connection_that_is_half_open_is_given_up_and_the_stream_goes_on_where_it_was() -> None:
    """The server keeps a stream open and says nothing, not even its end, which was due after a second."""

    async def scenario() -> None:
        async with fake_api() as server, gateway_to(server) as gateway, asyncio.TaskGroup() as group:
            install(server)
            for watched in WATCHED:
                group.create_task(noted(watched, half_open(server, gateway, watched)))

    run(scenario())


async def half_open(server: FakeApi, gateway: Gateway, watched: Watched) -> None:
    """One kind: its first stream falls silent and stays so, and it is the next one that tells what happened."""
    told: asyncio.Queue[str] = asyncio.Queue()
    ended: asyncio.Queue[str] = asyncio.Queue()
    clock, stream, never = HandClock(), watched.seen(), asyncio.Event()
    stored = put(server, watched, watched.names[0])
    reflector = Reflector(
        gateway,
        await gateway.resolve(stream.group, stream.kind, stream.version),
        clock=clock,
        read=stream.read,
        namespace=stream.namespace,
        label_selector=stream.label,
        field_selector=stream.fields,
        on_change=lambda _key, _old, new: told.put_nowait(new.version if new else "gone"),
        on_end=ended.put_nowait,
        lasting=(0.1, 0.1),
    )
    silent = server.faults.add(MuteStream(never), verb="watch", resource=watched.label)
    following = asyncio.ensure_future(reflector.run())
    try:
        assert await told.get() == stored["metadata"]["resourceVersion"]
        await silent.hit()
        stored = put(server, watched, watched.names[0])
        assert await ended.get() == "error"
        assert told.empty()
        await clock.asleep()
        clock.advance(LONGEST_PAUSE)
        assert await told.get() == stored["metadata"]["resourceVersion"]
    finally:
        never.set()
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
