"""What goes wrong on a day, all of it drawn from a seed beforehand; and the doing of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from random import Random

from tests.fakeapi import FakeApi
from tests.fakeapi.faults import Answer, Cut, CutStream, EndStream, ErrorEvent, Hold, RequestEffect

_GONE = {"kind": "Status", "code": 410, "reason": "Expired"}
_CODES = {429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}
_OFTEN = ("requests fail",) * 6 + ("streams end",) * 4 + ("requests hang",) * 2
KINDS = (*_OFTEN, "history is forgotten", "a child is away", "the leader is killed", "the leader hands over")


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One thing that goes wrong.

    Attributes:
        at: seconds into the day.
        kind: one of KINDS.
        cluster: of which server, by its place; 0 is the management cluster.
        verb: of which requests.
        code: what they are answered; 0 cuts the connection.
        done: whether they are carried out all the same.
        times: how many of them.
        seconds: how long it lasts.
    """

    at: float
    kind: str
    cluster: int
    verb: str
    code: int
    done: bool
    times: int
    seconds: float


def forecast(seed: int, *, faults: int, begin: float, end: float, clusters: int) -> tuple[Fault, ...]:
    """The faults of a day, in order; the same for the same seed."""
    chance = Random(seed)
    found = [
        Fault(
            at=chance.uniform(begin, end),
            kind=chance.choice(KINDS),
            cluster=chance.randrange(clusters),
            verb=chance.choice(("create", "patch", "delete", "get", "list", "watch")),
            code=chance.choice((0, *_CODES)),
            done=chance.random() < 0.5,
            times=chance.randint(1, 30),
            seconds=chance.uniform(1, 40),
        )
        for _ in range(faults)
    ]
    return tuple(sorted(found, key=lambda fault: fault.at))


class Weather:
    """Has faults happen at their times."""

    def __init__(
        self,
        servers: Sequence[FakeApi],
        *,
        kill: Callable[[], Awaitable[None]],
        hand_over: Callable[[], Awaitable[None]],
    ) -> None:
        self._servers = servers
        self._lasting: set[asyncio.Task[None]] = set()
        self._away: set[FakeApi] = set()
        self._people = {"the leader is killed": kill, "the leader hands over": hand_over}

    async def run(self, faults: Sequence[Fault]) -> None:
        """All of them, and until the last one is over: what is left of it is taken away."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        for fault in faults:
            await asyncio.sleep(begun + fault.at - loop.time())
            await self._happen(fault)
        await asyncio.gather(*self._lasting)
        for server in self._servers:
            server.faults.clear()

    async def _happen(self, fault: Fault) -> None:
        server = self._servers[fault.cluster]
        match fault.kind:
            case "requests fail":
                server.faults.add(_failure(fault), times=fault.times, verb=fault.verb)
            case "streams end":
                _end_streams(server, fault)
            case "requests hang":
                go_on = asyncio.Event()
                server.faults.add(Hold(go_on, after=fault.done), times=fault.times, verb=fault.verb)
                self._last(_after(fault.seconds, go_on.set))
            case "history is forgotten":
                server.compact()
            case "a child is away":
                if fault.cluster and server not in self._away:
                    self._last(self._be_away(server, fault.seconds))
            case kind:
                await self._people[kind]()

    async def _be_away(self, server: FakeApi, seconds: float) -> None:
        self._away.add(server)
        await server.stop()
        await asyncio.sleep(seconds)
        await server.start()
        self._away.discard(server)

    def _last(self, lasting: Awaitable[None]) -> None:
        task = asyncio.ensure_future(lasting)
        self._lasting.add(task)


def _failure(fault: Fault) -> RequestEffect:
    # A stream that is opened has no answer that could get lost.
    done = fault.done and fault.verb != "watch"
    if not fault.code:
        return Cut(after=done)
    headers = {"Retry-After": str(1 + fault.times % 5)} if fault.code == 429 else {}
    done = done and fault.code != 429
    return Answer(fault.code, _CODES[fault.code], headers=headers, after=done)


def _end_streams(server: FakeApi, fault: Fault) -> None:
    if not server.streams:
        return
    if fault.code == 0:
        server.faults.on_streams(CutStream(after_bytes=fault.times))
    elif fault.done:
        server.faults.on_streams(ErrorEvent(_GONE))
        server.faults.on_streams(EndStream())
    else:
        server.faults.on_streams(EndStream())


async def _after(seconds: float, what: Callable[[], None]) -> None:
    await asyncio.sleep(seconds)
    what()
