"""Discovery against a server whose definitions come, go, and change version and plural, and that sometimes fails.

The reference keeps what the server *has* said and when; of the server as it is it knows only what it may be asked: one
GET per group version, one per group.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import attrs
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fivespot.adapters.kube.discovery import Resolver
from fivespot.adapters.kube.errors import ApiError, Asked, KindNotServed, NotFound, Unavailable
from fivespot.adapters.kube.resources import Object, Resource, group_path, group_version_path

GROUPS = st.sampled_from(("a.example.com", ""))
KINDS = st.sampled_from(("Sheep", "Tide"))
VERSIONS = ("v1", "v2")
VERSION = st.sampled_from(VERSIONS)
WANTED = st.tuples(GROUPS, KINDS, st.none() | VERSION)
NEGATIVE = 30.0


@attrs.define
class Server:
    """What is served, by group, version and kind; every other kind of a plural is no kind of ours."""

    served: dict[tuple[str, str, str], Resource] = attrs.field(factory=dict)
    preferred: dict[str, str] = attrs.field(factory=dict)
    failing: str = ""
    asked: Counter[str] = attrs.field(factory=Counter)

    async def read(self, path: str) -> Object:
        self.asked[path] += 1
        await asyncio.sleep(0)
        if self.fails(path):
            raise Unavailable(Asked("get", path))
        for group in {group for group, _, _ in self.served}:
            root = group_path(group)
            versions = self.versions(group)
            if path == root:
                return self.group(group, versions)
            for version in versions:
                if path == f"{root}/{version}":
                    return {"resources": self.resources(group, version)}
        raise NotFound(Asked("get", path))

    def fails(self, path: str) -> bool:
        return self.failing == "all" or (self.failing == "versions" and path[-2:] in VERSIONS)

    def paths(self, group: str, kind: str, version: str | None) -> Iterator[str]:
        """What has to be asked, as it is now, until the kind is found: each path once."""
        if version is not None:
            yield group_version_path(group, version)
            if (group, version, kind) in self.served:
                return
        yield group_path(group)
        for at in self.versions(group):
            if at != version:
                yield group_version_path(group, at)
                if (group, at, kind) in self.served:
                    return

    def versions(self, group: str) -> list[str]:
        """The preferred one first, if it is served; in the server's order."""
        found = [v for v in VERSIONS if any((group, v) == key[:2] for key in self.served)]
        return sorted(found, key=lambda version: version != self.preferred.get(group))

    def group(self, group: str, versions: list[str]) -> Object:
        if not group:
            return {"kind": "APIVersions", "versions": versions}
        listed = [{"groupVersion": f"{group}/{v}", "version": v} for v in sorted(versions)]
        return {"kind": "APIGroup", "versions": listed, "preferredVersion": {"version": versions[0]}}

    def resources(self, group: str, version: str) -> list[Any]:
        found: list[Any] = []
        for (of, at, kind), resource in self.served.items():
            if (of, at) == (group, version):
                found.append({"name": f"{resource.plural}/status", "kind": kind, "namespaced": True})
                found.append(
                    {"name": resource.plural, "kind": kind, "namespaced": resource.namespaced, "verbs": []}
                )
        return [{"name": "strangers", "kind": "Stranger", "namespaced": True}, *found]

    def find(self, group: str, kind: str, version: str | None) -> Resource | None:
        """As it is now: the asked version if it has the kind, else the first that has."""
        order = [*([version] if version is not None else []), *self.versions(group)]
        found = (self.served.get((group, at, kind)) for at in order)
        return next((resource for resource in found if resource is not None), None)


@attrs.frozen
class Answer:
    """What was found, and until when that is to be believed."""

    resource: Resource | None
    until: float


class Discovery(RuleBasedStateMachine):
    """What is remembered is answered without a question; what is not is asked once, and answered as the server is."""

    strangers: ClassVar[int] = 520

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.server = Server()
        self.now = 1000.0
        self.plurals = 0
        self.resolver = Resolver(self.server.read, lambda: self.now)
        self.known: dict[tuple[str, str, str | None], Answer] = {}
        self.found: list[Resource] = []
        self.many_were_asked_for = False

    async def resolved(self, wanted: tuple[str, str, str | None]) -> Resource | ApiError | None:
        try:
            return await self.resolver.resolve(*wanted)
        except KindNotServed as error:
            # Another kind than was asked for would be no answer to it.
            return None if (error.group, error.kind) == wanted[:2] else ApiError(Asked("get", str(error)))
        except ApiError as error:
            return error

    # The server

    @rule(group=GROUPS, kind=KINDS, version=VERSION, namespaced=st.booleans())
    def a_kind_is_served(self, group: str, kind: str, version: str, namespaced: bool) -> None:
        self.plurals += 1
        plural = f"{kind.lower()}{self.plurals}"
        self.server.served[group, version, kind] = Resource(group, version, plural, kind, namespaced)

    @rule(group=GROUPS, kind=KINDS, version=VERSION)
    def a_version_is_served_no_more(self, group: str, kind: str, version: str) -> None:
        self.server.served.pop((group, version, kind), None)

    @rule(group=GROUPS, kind=KINDS)
    def a_kind_is_served_no_more(self, group: str, kind: str) -> None:
        for version in VERSIONS:
            self.server.served.pop((group, version, kind), None)

    @rule(group=GROUPS, version=VERSION)
    def another_version_is_preferred(self, group: str, version: str) -> None:
        self.server.preferred[group] = version

    @rule(failing=st.sampled_from(("", "", "", "all", "versions")))
    def the_server_fails_or_does_not(self, failing: str) -> None:
        self.server.failing = failing

    @rule(seconds=st.sampled_from((0.5, 10.0, 29.5, 30.0)))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    # Who asks

    @rule(several=st.lists(WANTED, min_size=1, max_size=4), times=st.integers(1, 3))
    def somebody_asks(self, several: list[tuple[str, str, str | None]], times: int) -> None:
        """Several at once, some for the same."""
        self.server.asked.clear()
        answers = self.runner.run(self.all_of(several * times))
        may_ask: Counter[str] = Counter()
        for wanted in dict.fromkeys(several):
            self.check(wanted, [answer for of, answer in answers if of == wanted], may_ask)
        assert self.server.asked <= may_ask, "one GET per group version, and one per group"

    async def all_of(
        self, several: Sequence[tuple[str, str, str | None]]
    ) -> list[tuple[tuple[str, str, str | None], Resource | ApiError | None]]:
        answers = await asyncio.gather(*(self.resolved(wanted) for wanted in several))
        return list(zip(several, answers, strict=True))

    def check(
        self,
        wanted: tuple[str, str, str | None],
        answers: list[Resource | ApiError | None],
        may_ask: Counter[str],
    ) -> None:
        known = self.known.get(wanted)
        if known is not None and self.now < known.until:
            assert answers == [known.resource] * len(answers), "what is remembered is answered"
            return
        paths = list(self.server.paths(*wanted))
        if any(self.server.fails(path) for path in paths):
            # Each of those who waited for it asks by itself.
            may_ask.update(paths * len(answers))
            assert all(isinstance(answer, Unavailable) for answer in answers), "a failure says nothing"
            return
        may_ask.update(paths)
        resource = self.server.find(*wanted)
        assert answers == [resource] * len(answers)
        stays = resource is not None and wanted[2] in (None, resource.version)
        self.known[wanted] = Answer(resource, float("inf") if stays else self.now + NEGATIVE)
        if resource is not None:
            assert (resource.group, resource.kind) == wanted[:2]
            self.found.append(resource)

    @rule(seconds=st.sampled_from((0.5, NEGATIVE)))
    def a_version_that_was_asked_for_in_vain_comes(self, seconds: float) -> None:
        """Another one stands in for it, for 30 s."""
        for (group, kind, version), known in list(self.known.items()):
            if version is not None and known.resource is not None and known.resource.version != version:
                self.a_kind_is_served(group, kind, version, namespaced=True)
                self.now += seconds
                self.somebody_asks([(group, kind, version)], 1)
                return

    @rule(data=st.data())
    def the_path_of_a_kind_is_not_found(self, data: st.DataObject) -> None:
        if not self.found:
            return
        resource = data.draw(st.sampled_from(self.found))
        self.resolver.forget(resource)
        for wanted in [key for key in self.known if key[:2] == (resource.group, resource.kind)]:
            del self.known[wanted]

    @rule(really=st.sampled_from((True, *[False] * 20)))
    def users_ask_for_many_that_there_are_not(self, really: bool) -> None:
        """What is remembered of them ends; what was found stays found."""
        if not really or self.many_were_asked_for or self.server.failing:
            return
        self.many_were_asked_for = True
        several = [("a.example.com", f"No{number}", None) for number in range(self.strangers)]
        answers = self.runner.run(self.all_of(several))
        assert all(answer is None for _, answer in answers)
        self.now += NEGATIVE
        self.runner.run(self.all_of([("a.example.com", "Nothing", None)]))
        assert len(self.resolver._known) <= len(self.known) + 1
        assert len(self.resolver._asking) <= len(self.known) + 1

    @invariant()
    def what_is_remembered_costs_nothing(self) -> None:
        believed = {wanted: known.resource for wanted, known in self.known.items() if self.now < known.until}
        self.server.asked.clear()
        if believed:
            assert dict(self.runner.run(self.all_of(list(believed)))) == believed
        assert not self.server.asked

    def teardown(self) -> None:
        self.runner.close()


TestDiscovery = Discovery.TestCase
TestDiscovery.settings = settings(max_examples=120, stateful_step_count=40, deadline=None, derandomize=True)


def test_a_negative_answer_is_remembered_for_thirty_seconds_to_the_second() -> None:
    """To the instant: the model's time moves in steps."""
    server, now = Server(), [0.0]
    resolver = Resolver(server.read, lambda: now[0])

    async def scenario() -> None:
        for at, asked in ((0.0, 1), (29.999, 1), (30.0, 2)):
            now[0] = at
            with pytest.raises(KindNotServed):
                await resolver.resolve("a.example.com", "Tide")
            assert server.asked.total() == asked

    asyncio.run(scenario())
