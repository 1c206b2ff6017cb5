"""Looking names up, some of which nobody answers for: threads, and who waits for whom."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Coroutine
from typing import Any

import pytest

from fivespot.adapters.network.lookup import Names


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 60))


def test_names_that_nobody_answers_for_keep_no_other_waiting() -> None:
    """More of them than the event loop has threads for look-ups, and none of them ever ends."""

    async def scenario() -> None:
        go_on = threading.Event()

        def slow(host: str, _port: int) -> tuple[str, ...]:
            if host.startswith("mute"):
                go_on.wait()
            return ("127.0.0.1",)

        names = Names(slow)
        mute = [asyncio.ensure_future(names.look_up(f"mute-{number}", 9090)) for number in range(12)]
        try:
            assert await names.look_up("good", 9090) == ("127.0.0.1",)
            assert await asyncio.to_thread(lambda: "others too") == "others too"
        finally:
            go_on.set()
        assert await asyncio.gather(*mute) == [("127.0.0.1",)] * 12

    run(scenario())


def test_a_name_that_is_asked_for_by_many_is_looked_up_once() -> None:
    async def scenario() -> None:
        asked: list[str] = []
        go_on = threading.Event()

        def counting(host: str, _port: int) -> tuple[str, ...]:
            asked.append(host)
            go_on.wait()
            return ("127.0.0.1",)

        names = Names(counting)
        first, second, third = (asyncio.ensure_future(names.look_up("one", 9090)) for _ in range(3))
        await asyncio.sleep(0)
        third.cancel()
        go_on.set()
        assert await asyncio.gather(first, second) == [("127.0.0.1",)] * 2
        assert asked == ["one"]

    run(scenario())


def test_a_name_that_is_none_is_an_error_for_everybody_who_asked() -> None:
    async def scenario() -> None:
        names = Names()
        asked = [names.look_up(f"{'a' * 64}.invalid", 80) for _ in range(2)]
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(error) for error in found] == [OSError, OSError]
        with pytest.raises(OSError):  # noqa: PT011 - which one is the resolver's business
            await names.look_up("no.such.host.invalid", 80)
        assert await names.look_up("127.0.0.1", 80) == ("127.0.0.1",)

    run(scenario())


def test_no_look_up_keeps_the_process_from_ending() -> None:
    """It has been given up long before, and the resolver cannot be interrupted."""
    program = """
import asyncio, threading
from fivespot.adapters.network.lookup import Names

async def main():
    try:
        await asyncio.wait_for(Names(lambda host, port: threading.Event().wait()).look_up("mute", 80), 0.1)
    except TimeoutError:
        print("given up")

asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "given up\n", "")
