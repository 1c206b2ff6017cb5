"""What a reflector knows: lists, events and our own writes, in every order that networks produce."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fivespot.adapters.kube.frames import WatchEvent
from fivespot.adapters.kube.watching import Change, Key, Watching, whole

A: Key = ("ns", "a")


def obj(version: int | str, name: str = "a", uid: str = "u1", **more: Any) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "ns", "name": name, "uid": uid, "resourceVersion": str(version)},
        **more,
    }


def listed(*items: dict[str, Any], version: int | str = 10) -> Watching[dict[str, Any]]:
    watching = Watching(whole)
    watching.listed(items, str(version))
    return watching


def test_a_list_replaces_the_cache_and_answers_the_difference() -> None:
    watching = listed(obj(1, "a"), obj(2, "b"), obj(3, "c"))
    changes = watching.listed([obj(2, "b"), obj(12, "c"), obj(13, "d")], "20")
    assert {(c.key[1], c.old is None, c.new is None) for c in changes} == {
        ("a", False, True),
        ("c", False, False),
        ("d", True, False),
    }
    assert sorted(name for _, name in watching.objects) == ["b", "c", "d"]
    assert watching.version == "20"


def test_events_and_bookmarks_move_the_version() -> None:
    watching = listed()
    assert watching.event(WatchEvent("ADDED", obj(11))) == Change(A, None, obj(11))
    assert watching.event(WatchEvent("MODIFIED", obj(12))) == Change(A, obj(11), obj(12))
    assert watching.event(WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": "17"}})) is None
    assert watching.version == "17"
    assert watching.event(WatchEvent("DELETED", obj(18))) == Change(A, obj(12), None)
    assert (watching.version, watching.objects) == ("18", {})


@pytest.mark.parametrize("type_", ["ERROR", "SOMETHING", "BOOKMARK"])
def test_nothing_but_the_three_kinds_of_change_reaches_the_cache(type_: str) -> None:
    watching = listed()
    assert watching.event(WatchEvent(type_, obj(11))) is None
    assert watching.objects == {}


@pytest.mark.parametrize("body", [{}, {"metadata": None}, {"metadata": {}}, {"metadata": {"name": 7}}])
def test_an_object_without_a_name_is_left_out(body: dict[str, Any]) -> None:
    watching = Watching(whole)
    assert watching.listed([body], "1") == []
    assert watching.event(WatchEvent("ADDED", body)) is None
    assert watching.fed(body) is None
    assert (watching.objects, watching.version) == ({}, "1")


def test_a_version_that_is_too_old_leads_to_a_list_and_keeps_the_cache_until_then() -> None:
    watching = listed(obj(1))
    watching.expired()
    assert watching.version is None
    assert watching.objects == {A: obj(1)}


def test_a_kind_that_is_not_served_empties_the_cache_without_a_deletion() -> None:
    watching = listed(obj(1))
    assert watching.unserved()
    assert not watching.unserved()
    assert (watching.objects, watching.version, watching.served) == ({}, None, False)
    assert watching.listed([obj(30)], "30") == [Change(A, None, obj(30))]
    assert watching.served


def test_our_own_write_is_seen_at_once_and_its_echo_is_no_news() -> None:
    watching = listed(obj(1))
    assert watching.fed(obj(11)) == Change(A, obj(1), obj(11))
    assert watching.event(WatchEvent("MODIFIED", obj(11))) is None
    assert watching.event(WatchEvent("MODIFIED", obj(12))) == Change(A, obj(11), obj(12))


def test_older_words_about_a_fed_object_are_not_listened_to() -> None:
    watching = listed(obj(1))
    watching.fed(obj(15))
    assert watching.event(WatchEvent("MODIFIED", obj(11))) is None
    assert watching.version == "11"
    assert watching.listed([obj(12)], "13") == []
    assert watching.objects == {A: obj(15)}


def test_a_fed_object_outlives_a_list_from_before_it_was_created() -> None:
    watching = listed()
    watching.fed(obj(15))
    assert watching.listed([], "14") == []
    assert watching.objects == {A: obj(15)}
    assert watching.listed([], "16") == [Change(A, obj(15), None)]


def test_an_answer_that_comes_after_the_stream_has_passed_it_is_dropped() -> None:
    watching = listed(obj(1))
    watching.event(WatchEvent("MODIFIED", obj(20)))
    assert watching.fed(obj(15)) is None
    watching.event(WatchEvent("DELETED", obj(21)))
    assert watching.fed(obj(15)) is None
    assert watching.objects == {}


def test_the_deletion_of_a_former_object_does_not_hit_its_successor() -> None:
    watching = listed(obj(1))
    watching.fed(obj(15, uid="u2"))
    assert watching.event(WatchEvent("DELETED", obj(14, uid="u1"))) is None
    assert watching.objects == {A: obj(15, uid="u2")}


def test_what_we_know_to_be_gone_is_not_raised_by_older_words() -> None:
    watching = listed(obj(1))
    assert watching.forgotten(A, "u1") == Change(A, obj(1), None)
    assert watching.event(WatchEvent("MODIFIED", obj(11))) is None
    assert watching.fed(obj(11)) is None
    assert watching.listed([obj(11)], "12") == []
    assert watching.event(WatchEvent("DELETED", obj(13))) is None
    assert watching.objects == {}


def test_a_successor_of_what_is_gone_is_seen() -> None:
    watching = listed(obj(1))
    watching.forgotten(A, None)
    assert watching.event(WatchEvent("ADDED", obj(12, uid="u2"))) == Change(A, None, obj(12, uid="u2"))


def test_forgetting_another_uid_changes_nothing() -> None:
    watching = listed(obj(1))
    assert watching.forgotten(A, "u2") is None
    assert watching.forgotten(("ns", "b"), None) is None
    assert watching.objects == {A: obj(1)}


def test_where_versions_are_not_numbers_the_last_word_wins() -> None:
    watching = listed(obj("x"), version="x")
    assert watching.fed(obj("b")) == Change(A, obj("x"), obj("b"))
    assert watching.event(WatchEvent("MODIFIED", obj("a"))) == Change(A, obj("b"), obj("a"))


NAMES = st.sampled_from("ab")


class ServerAndCache(RuleBasedStateMachine):
    """A server with one history; our writes are answered at once or late; the stream lags and is cut anywhere.

    Whatever the order, the changes add up to the cache, and the cache ends as the server is.
    """

    def __init__(self) -> None:
        super().__init__()
        self.server: dict[str, dict[str, Any]] = {}
        self.history: list[WatchEvent] = []
        self.read = 0
        self.late: list[dict[str, Any]] = []
        self.watching = Watching(whole)
        self.mirror: dict[Key, dict[str, Any]] = {}
        self.revision = 100

    def write(self, type_: str, name: str, uid: str) -> dict[str, Any]:
        self.revision += 1
        item = obj(self.revision, name, uid)
        self.history.append(WatchEvent(type_, item))
        if type_ == "DELETED":
            del self.server[name]
        else:
            self.server[name] = item
        return item

    def told(self, *changes: Change | None) -> None:
        for change in filter(None, changes):
            assert self.mirror.get(change.key) == change.old
            self.mirror.pop(change.key, None)
            if change.new is not None:
                self.mirror[change.key] = change.new

    def uid(self, name: str) -> str:
        uid: str = self.server[name]["metadata"]["uid"]
        return uid

    @initialize()
    def list_first(self) -> None:
        self.list_again()

    @rule()
    def list_again(self) -> None:
        self.read = len(self.history)
        self.told(*self.watching.listed(list(self.server.values()), str(self.revision)))

    @rule(name=NAMES, ours=st.booleans())
    def create(self, name: str, ours: bool) -> None:
        if name not in self.server:
            item = self.write("ADDED", name, f"u{self.revision}")
            if ours:
                self.told(self.watching.fed(item))

    @rule(name=NAMES, ours=st.booleans())
    def update(self, name: str, ours: bool) -> None:
        if name in self.server:
            item = self.write("MODIFIED", name, self.uid(name))
            if ours:
                self.late.append(item)

    @rule(name=NAMES, ours=st.booleans())
    def delete(self, name: str, ours: bool) -> None:
        if name in self.server:
            uid = self.uid(name)
            self.write("DELETED", name, uid)
            if ours:
                self.told(self.watching.forgotten(("ns", name), uid))

    @precondition(lambda self: self.late)
    @rule()
    def a_late_answer_arrives(self) -> None:
        self.told(self.watching.fed(self.late.pop(0)))

    @precondition(lambda self: self.read < len(self.history))
    @rule()
    def an_event_arrives(self) -> None:
        self.told(self.watching.event(self.history[self.read]))
        self.read += 1

    @invariant()
    def changes_add_up(self) -> None:
        assert self.mirror == self.watching.objects

    def teardown(self) -> None:
        while self.read < len(self.history):
            self.an_event_arrives()
        assert self.watching.objects == {("ns", name): item for name, item in self.server.items()}


TestServerAndCache = ServerAndCache.TestCase
TestServerAndCache.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
