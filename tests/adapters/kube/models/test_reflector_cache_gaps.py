"""Orders in which the cache shows for a while what it could know to be gone."""

from typing import Any

from fivespot.adapters.kube.frames import WatchEvent
from fivespot.adapters.kube.resources import Object
from fivespot.adapters.kube.watching import Key, Watching, whole

A: Key = ("ns", "a")


def obj(version: int, uid: str = "u1") -> dict[str, Any]:
    return {"metadata": {"namespace": "ns", "name": "a", "uid": uid, "resourceVersion": str(version)}}


def listed(*items: Object, version: int = 10) -> Watching[Object]:
    watching = Watching(whole)
    watching.listed(items, str(version))
    return watching


def test_a_late_answer_raises_nothing_while_there_is_no_version_to_go_on_from() -> None:
    watching = listed(obj(1))
    watching.event(WatchEvent("DELETED", obj(12)))
    watching.expired()
    assert watching.fed(obj(11)) is None
    assert watching.objects == {}


def test_a_late_answer_puts_nothing_into_the_cache_of_a_kind_that_is_not_served() -> None:
    watching = listed(obj(1))
    watching.unserved()
    assert watching.fed(obj(11)) is None
    assert watching.objects == {}


def test_a_list_from_before_its_creation_does_not_raise_what_we_know_to_be_gone() -> None:
    """A list takes its time; meanwhile we create an object, delete it, and are told that it is gone."""
    watching = listed()
    watching.expired()
    watching.fed(obj(11))
    watching.forgotten(A, "u1")
    watching.listed([], "10")
    assert watching.event(WatchEvent("ADDED", obj(11))) is None
    assert watching.objects == {}
    assert watching.event(WatchEvent("DELETED", obj(12))) is None


def test_a_list_does_not_raise_the_predecessor_of_what_we_know_to_be_gone() -> None:
    watching = listed(obj(1, "u1"))
    watching.expired()
    watching.fed(obj(12, "u2"))
    watching.forgotten(A, "u2")
    assert watching.listed([obj(1, "u1")], "10") == []
    assert watching.objects == {}


def test_older_words_about_its_predecessor_do_not_raise_what_we_know_to_be_gone() -> None:
    """Others changed and deleted one, we created the next one and deleted it; the stream has still to tell of it all."""
    watching = listed(obj(1, "u1"))
    watching.fed(obj(13, "u2"))
    watching.forgotten(A, "u2")
    for type_, item in (("MODIFIED", obj(11, "u1")), ("DELETED", obj(12, "u1")), ("ADDED", obj(13, "u2"))):
        assert watching.event(WatchEvent(type_, item)) is None
        assert watching.objects == {}
    assert watching.event(WatchEvent("DELETED", obj(14, "u2"))) is None
