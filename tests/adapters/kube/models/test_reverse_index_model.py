"""Machines that change what they refer to, go and come back: who is told of what, and which streams there are.

The index and the real streams are kept as the controller keeps them, over real sockets; the reference is a dictionary of
what each machine wants.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fivespot.adapters.clock import FakeClock
from fivespot.adapters.kube.control.watches import Stream, Watches
from fivespot.adapters.kube.index import ReverseIndex
from fivespot.adapters.kube.resources import Object, Resource
from fivespot.adapters.kube.watching import Key, whole
from tests.adapters.kube.kinds import GROUP, KindServer, serving
from tests.adapters.kube.scripted import connected

MACHINES = st.sampled_from(("ns/a", "ns/b", "ns/c", "ns/d"))
KINDS = ("Tide", "Moon", "Sun")
KIND = st.sampled_from(KINDS)
STREAMS = {kind: Stream(group=GROUP, kind=kind, version="v1", read=whole) for kind in KINDS}
VERSIONS = st.sampled_from(("v1", "v2"))


class MachinesAndStreams(RuleBasedStateMachine):
    """Each kind that somebody refers to has one stream, from the first to the last who does."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.loop = self.runner.get_loop()
        self.stack = AsyncExitStack()
        self.clock = FakeClock(datetime(2026, 3, 2, tzinfo=UTC))
        self.wanted: dict[str, frozenset[str]] = {}
        self.index: ReverseIndex[str, Stream[Object]] = ReverseIndex()
        self.plurals = 0
        self.server = KindServer()
        # Streams that there was a reason to open: a first user, an end, a kind that came.
        self.reasons: Counter[str] = Counter()
        self.seen: list[tuple[str, str]] = []
        self.wrong: list[object] = []
        for kind in ("Tide", "Moon"):
            self.server.kinds[kind] = ("v1", kind.lower() + "s")
        self.loop.run_until_complete(self.begin())

    async def begin(self) -> None:
        await self.stack.enter_async_context(serving(self.server))
        self.gateway = await self.stack.enter_async_context(connected(self.server))
        self.watches = Watches(self.gateway, self.clock, on_change=self.on_change, on_state=self.on_state)
        self.stack.push_async_callback(self.watches.close)

    def on_change(self, stream: Stream[Object], key: Key, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self.seen.append((stream.kind, new["metadata"]["resourceVersion"]))

    def on_state(self, stream: Stream[Object], users: frozenset[str]) -> None:
        if users != self.users(stream.kind) or users != self.index.of(stream):
            self.wrong.append((stream.kind, users, self.users(stream.kind)))

    def users(self, kind: str) -> set[str]:
        return {machine for machine, kinds in self.wanted.items() if kind in kinds}

    def plural(self, kind: str) -> str | None:
        return self.server.kinds[kind][1] if kind in self.server.kinds else None

    # Machines

    @rule(machine=MACHINES, kinds=st.frozensets(KIND, max_size=2), version=VERSIONS)
    def a_machine_refers_to(self, machine: str, kinds: frozenset[str], version: str = "v1") -> None:
        """Two versions of one kind are one stream."""

        async def say() -> None:
            before = {kind for kind in KINDS if self.users(kind)}
            self.wanted[machine] = kinds
            self.reasons.update({kind for kind in KINDS if self.users(kind)} - before)
            streams = [Stream(group=GROUP, kind=kind, version=version, read=whole) for kind in kinds]
            self.index.put(machine, streams)
            self.watches.want(machine, streams)

        self.loop.run_until_complete(say())

    @rule(machine=MACHINES)
    def a_machine_goes(self, machine: str) -> None:
        self.a_machine_refers_to(machine, frozenset())

    @rule(machine=MACHINES)
    def a_machine_goes_and_comes_back_at_once(self, machine: str) -> None:
        kinds = self.wanted.get(machine, frozenset())
        self.a_machine_goes(machine)
        self.a_machine_refers_to(machine, kinds)

    # The server

    @rule(kind=KIND)
    def a_stream_ends(self, kind: str) -> None:
        if (plural := self.plural(kind)) is not None and self.server.streams[plural]:
            self.reasons[kind] += len(self.server.streams[plural])
            self.server.end(plural)

    @rule(kind=KIND)
    def a_kind_goes(self, kind: str) -> None:
        if (plural := self.plural(kind)) is not None:
            del self.server.kinds[kind]
            self.server.end(plural)

    @rule(kind=KIND, version=VERSIONS)
    def a_kind_comes_under_another_name(self, kind: str, version: str) -> None:
        if kind not in self.server.kinds:
            self.plurals += 1
            self.server.kinds[kind] = (version, f"{kind.lower()}s{self.plurals}")
            self.reasons[kind] += 1

    @rule(kind=KIND, version=VERSIONS, noticed=st.booleans())
    def a_kind_in_use_goes_and_comes_back(self, kind: str, version: str, noticed: bool) -> None:
        self.settle()
        self.a_kind_goes(kind)
        if noticed:
            self.settle()
        self.a_kind_comes_under_another_name(kind, version)

    @rule(seconds=st.sampled_from((0.5, 5.0, 40.0)))
    def time_passes(self, seconds: float) -> None:
        async def turns() -> None:
            self.clock.advance(seconds)
            for _ in range(5):
                await asyncio.sleep(0)

        self.loop.run_until_complete(turns())

    @precondition(lambda self: any(self.wanted.values()))
    @rule(kind=KIND)
    def everything_settles_and_a_change_arrives(self, kind: str) -> None:
        self.settle()
        if self.users(kind) and kind in self.server.kinds:
            self.server.change(kind)
            self.until(lambda: (kind, str(self.server.version)) in self.seen)

    # What holds

    def settle(self) -> None:
        """Time passes until all is as it should be; that it stays so is looked at next."""
        self.until(self.as_it_should_be)
        self.until(lambda: not self.watches._stopping)
        assert self.as_it_should_be()

    def let_discovery_look_again(self) -> None:
        """It measures its 30 s by the machine's own clock, which a test does not move."""
        for kind in KINDS:
            if kind in self.server.kinds and self.watches.fault(STREAMS[kind]) is not None:
                self.gateway._resolver.forget(Resource(GROUP, "", "", kind, namespaced=True))

    def until(self, holds: Callable[[], object]) -> None:
        async def wait() -> None:
            async with asyncio.timeout(3):
                while not holds():
                    self.clock.advance(3.0)
                    self.let_discovery_look_again()
                    await asyncio.sleep(0.001)

        self.loop.run_until_complete(wait())

    def as_it_should_be(self) -> bool:
        wanted = {kind for kind in KINDS if self.users(kind)}
        streams = {plural: 1 for kind in wanted if (plural := self.plural(kind)) is not None}
        if self.server.open_streams() != streams:
            return False
        for kind in KINDS:
            reflector = self.watches.reflector(STREAMS[kind])
            there = kind in wanted and kind in self.server.kinds
            if self.watches.served(STREAMS[kind]) != there or self.watches.pending(STREAMS[kind]):
                return False
            if (reflector is not None and len(reflector) == 1) != there:
                return False
        return True

    @invariant()
    def both_directions_agree(self) -> None:
        for kind, stream in STREAMS.items():
            assert self.index.of(stream) == self.users(kind)
        assert len(self.index) == len({kind for kinds in self.wanted.values() for kind in kinds})

    @invariant()
    def nobody_else_was_told(self) -> None:
        assert self.wrong == []

    @invariant()
    def what_nobody_refers_to_is_not_followed(self) -> None:
        for kind, stream in STREAMS.items():
            assert self.users(kind) or self.watches.reflector(stream) is None
        tasks = asyncio.all_tasks(self.loop) - self.watches._stopping
        names = Counter(name for task in tasks if (name := task.get_name()).startswith("watch "))
        assert names == {f"watch {kind}": 1 for kind in KINDS if self.users(kind)}

    @invariant()
    def a_second_user_opens_no_second_stream(self) -> None:
        for kind in KINDS:
            opened = [n for plural, n in self.server.opened.items() if plural.startswith(kind.lower())]
            assert sum(opened) <= self.reasons[kind]

    def teardown(self) -> None:
        try:
            self.settle()
            for machine in list(self.wanted):
                self.a_machine_goes(machine)
            self.settle()
            assert self.server.open_streams() == {}
            assert self.clock.sleepers == 0
        finally:
            self.loop.run_until_complete(self.stack.aclose())
            self.runner.close()


TestMachinesAndStreams = MachinesAndStreams.TestCase
TestMachinesAndStreams.settings = settings(
    max_examples=40,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
