"""The cache of a reflector against a whole server: lists that take their time, streams cut anywhere, kinds that go.

The reference is one sentence. Of each key is known the latest of two words: what the server had at the version up to
which it was followed, and what the answers to our own writes and reads have said since. The cache is that, exactly and at
all times; what is emitted is the difference between two moments of it, each key once.
"""

from __future__ import annotations

from collections import deque

import attrs
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fivespot.adapters.kube.frames import WatchEvent
from fivespot.adapters.kube.resources import Object
from fivespot.adapters.kube.watching import Change, Key, Watching

NAMES = st.sampled_from("ab")
TOKENS = st.sampled_from(("", "t1", "t2"))
OFTEN = st.sampled_from((True, True, True, False))
ODDITIES = (
    "other kinds are written",
    "old versions are compacted",
    "the stream ends",
    "the stream says too old",
    "the version is too old",
    "the list is lost",
    "the kind goes, with its objects",
    "the kind goes, and its objects stay",
)


@attrs.frozen
class Kept:
    """What is kept of an object."""

    uid: str
    version: int
    token: str


@attrs.frozen
class Word:
    """What one answer says of one key at a version; no object when it says that there is none."""

    name: str
    version: int
    uid: str
    item: Object | None


def kept(item: Object) -> Kept:
    metadata = item["metadata"]
    return Kept(metadata["uid"], int(metadata["resourceVersion"]), item["token"])


def key(name: str) -> Key:
    return ("ns", name)


class Server:
    """One kind of objects, with one version that only grows, which other kinds' writes move too."""

    def __init__(self) -> None:
        self.version = 100
        self.compacted = 0
        self.served = True
        self.objects: dict[str, Object] = {}
        self.history: list[tuple[int, WatchEvent]] = []
        self.uids = 0

    def write(self, name: str, token: str) -> Object:
        """Create, or update what is there."""
        there = self.objects.get(name)
        if there is None:
            self.uids += 1
        return self._happened(
            "ADDED" if there is None else "MODIFIED",
            name,
            f"u{self.uids}" if there is None else there["metadata"]["uid"],
            token,
        )

    def delete(self, name: str) -> Object:
        there = self.objects[name]
        return self._happened("DELETED", name, there["metadata"]["uid"], there["token"])

    def at(self, version: int) -> dict[str, Kept]:
        """What there was at a version."""
        found: dict[str, Kept] = {}
        for when, event in self.history:
            if when > version:
                break
            name = event.object["metadata"]["name"]
            found.pop(name, None)
            if event.type != "DELETED":
                found[name] = kept(event.object)
        return found

    def after(self, version: int) -> tuple[int, WatchEvent] | None:
        """The next event that a stream from a version delivers."""
        return next(((when, event) for when, event in self.history if when > version), None)

    def _happened(self, type_: str, name: str, uid: str, token: str) -> Object:
        self.version += 1
        metadata = {"namespace": "ns", "name": name, "uid": uid, "resourceVersion": str(self.version)}
        item = {"metadata": metadata, "token": token}
        self.history.append((self.version, WatchEvent(type_, item)))
        self.objects.pop(name, None)
        if type_ != "DELETED":
            self.objects[name] = item
        return item


class ReflectorCache(RuleBasedStateMachine):
    """Steps as a reflector takes them; answers to what we asked of one key come in the order in which we asked."""

    def __init__(self) -> None:
        super().__init__()
        self.server = Server()
        self.watching: Watching[Kept] = Watching(
            self.read, lambda value: [value.token] if value.token else []
        )
        self.mirror: dict[Key, Kept] = {}
        self.followed = 0
        self.words: dict[str, Word] = {}
        self.answers: dict[str, deque[Word]] = {}
        self.listing: tuple[int, list[Object]] | None = None
        self.stream: int | None = None

    # What the cache makes of things

    def read(self, item: Object, before: Kept | None) -> Kept:
        metadata = item["metadata"]
        assert before == self.watching.objects.get(key(metadata["name"]))
        return kept(item)

    def took(self, before: dict[Key, Kept], changes: list[Change[Kept]]) -> None:
        after = self.watching.objects
        changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
        assert len(changes) == len(changed), "each change is emitted once"
        for change in changes:
            assert change.key in changed
            assert (change.old, change.new) == (before.get(change.key), after.get(change.key))
            self.mirror.pop(change.key, None)
            if change.new is not None:
                self.mirror[change.key] = change.new

    def heard(self, word: Word) -> None:
        before = dict(self.watching.objects)
        if word.item is not None:
            change = self.watching.fed(word.item)
        else:
            change = self.watching.forgotten(key(word.name), word.uid)
        self.took(before, [change] if change is not None else [])
        known = self.words.get(word.name)
        if self.watching.served and (known is None or known.version < word.version):
            self.words[word.name] = word

    def followed_to(self, version: int, event: WatchEvent) -> None:
        before, said = dict(self.watching.objects), self.watching.version
        change = self.watching.event(event)
        self.took(before, [change] if change is not None else [])
        assert self.watching.version == str(version)
        self.moved(said)
        self.stream = self.followed = version

    def moved(self, said: str | None) -> None:
        assert said is None or int(said) <= int(self.watching.version or 0), "only a list may go back"

    # Others and we write

    @rule(name=NAMES, tokens=st.lists(TOKENS, min_size=1, max_size=2), ours=st.booleans(), at_once=OFTEN)
    def somebody_creates_or_updates(self, name: str, tokens: list[str], ours: bool, at_once: bool) -> None:
        for token in tokens if self.server.served else ():
            item = self.server.write(name, token)
            if ours:
                self.answered(Word(name, self.server.version, item["metadata"]["uid"], item), at_once=at_once)

    @rule(name=NAMES, ours=OFTEN, at_once=st.booleans(), changed_before=st.booleans(), another=st.booleans())
    def somebody_deletes(
        self, name: str, ours: bool, at_once: bool, changed_before: bool, another: bool
    ) -> None:
        """Perhaps after a change that we have not seen; perhaps another one of that name comes before our answer."""
        if name not in self.server.objects:
            return
        uid = self.server.objects[name]["metadata"]["uid"]
        # We delete what we have seen, and say which one we mean.
        cached = self.watching.objects.get(key(name))
        ours = ours and cached is not None and cached.uid == uid
        if changed_before and self.server.served:
            self.server.write(name, "")
        self.server.delete(name)
        word = Word(name, self.server.version, uid, None)
        if another and self.server.served:
            self.server.write(name, "")
            self.the_reflector_goes_on(3)
        if ours:
            self.answered(word, at_once=at_once)

    @rule(name=NAMES, at_once=st.booleans())
    def we_read_one_live(self, name: str, at_once: bool) -> None:
        if (item := self.server.objects.get(name)) is not None:
            version = int(item["metadata"]["resourceVersion"])
            self.answered(Word(name, version, item["metadata"]["uid"], item), at_once=at_once)

    def answered(self, word: Word, *, at_once: bool) -> None:
        self.answers.setdefault(word.name, deque()).append(word)
        while at_once and self.answers[word.name]:
            self.heard(self.answers[word.name].popleft())

    @precondition(lambda self: any(self.answers.values()))
    @rule(name=NAMES)
    def a_late_answer_comes(self, name: str) -> None:
        if self.answers.get(name):
            self.heard(self.answers[name].popleft())

    # The reflector's steps

    @initialize(names=st.lists(NAMES, unique=True), at_once=OFTEN)
    def there_is_something_at_first(self, names: list[str], at_once: bool) -> None:
        for name in names:
            self.server.write(name, "")
        if at_once:
            self.a_list_is_asked_for()
            self.the_list_comes()
            self.a_stream_is_opened()

    @rule(steps=st.integers(1, 4))
    def the_reflector_goes_on(self, steps: int) -> None:
        """Whatever it would do next; the single steps are rules too, for what comes between them."""
        for _ in range(steps):
            if self.listing is not None:
                self.the_list_comes()
            elif self.watching.version is None:
                self.a_list_is_asked_for()
            elif self.stream is None:
                self.a_stream_is_opened()
            else:
                self.events_come(1)

    @precondition(lambda self: self.watching.version is None and self.listing is None)
    @rule()
    def a_list_is_asked_for(self) -> None:
        if self.server.served:
            self.listing = (self.server.version, list(self.server.objects.values()))
            return
        news = self.watching.served
        assert self.watching.unserved() == news
        self.mirror, self.words, self.followed = {}, {}, 0

    @rule(name=NAMES, deleted=st.booleans())
    def a_list_takes_its_time(self, name: str, deleted: bool) -> None:
        """Longer than a write of ours and its answer."""
        self.it_is_too_old()
        if self.watching.version is None and self.listing is None:
            self.a_list_is_asked_for()
        if deleted:
            self.somebody_deletes(name, ours=True, at_once=True, changed_before=False, another=False)
        else:
            self.somebody_creates_or_updates(name, [""], ours=True, at_once=True)
        if self.listing is not None:
            self.the_list_comes()

    @precondition(lambda self: self.listing is not None)
    @rule()
    def the_list_comes(self) -> None:
        assert self.listing is not None
        (version, items), self.listing = self.listing, None
        before = dict(self.watching.objects)
        self.took(before, self.watching.listed(iter(items), str(version)))
        assert (self.watching.version, self.watching.served) == (str(version), True)
        self.followed = version

    def a_stream_is_opened(self) -> None:
        version = int(self.watching.version or 0)
        if self.server.served and version >= self.server.compacted:
            self.stream = self.followed = version
        else:
            # 410 for a version that is too old; after 404 for the path, the list will say what it means.
            self.watching.expired()

    def events_come(self, most: int) -> None:
        for _ in range(most):
            assert self.stream is not None
            if (coming := self.server.after(self.stream)) is None:
                return
            self.followed_to(*coming)

    @precondition(lambda self: self.stream is not None)
    @rule()
    def a_bookmark_comes(self) -> None:
        assert self.stream is not None
        coming = self.server.after(self.stream)
        version = coming[0] - 1 if coming is not None else self.server.version
        self.followed_to(
            version, WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": str(version)}, "kind": "Thing"})
        )

    # What seldom happens, and often enough

    @rule(what=st.sampled_from(ODDITIES), number=st.integers(0, 5), really=st.booleans())
    def something_odd_happens(self, what: str, number: int, really: bool) -> None:
        if not really:
            return
        match what:
            case "other kinds are written":
                self.server.version += number
            case "old versions are compacted":
                self.server.compacted = max(self.server.compacted, self.server.version - number)
            case "the stream ends":
                self.stream = None
            case "the stream says too old":
                self.it_is_too_old()
            case "the version is too old":
                self.server.compacted = self.server.version
                self.it_is_too_old()
            case "the list is lost":
                self.listing = None
            case "the kind goes, with its objects":
                for name in list(self.server.objects):
                    self.server.delete(name)
                self.it_is_served_no_more()
            case "the kind goes, and its objects stay":
                # Only the server behind it is down; we may be ahead of the stream that ends.
                self.somebody_creates_or_updates("a", [""], ours=number > 1, at_once=True)
                self.it_is_served_no_more()

    def it_is_too_old(self) -> None:
        if self.stream is not None:
            self.stream = None
            self.watching.expired()

    def it_is_served_no_more(self) -> None:
        self.server.served, self.stream, self.listing = False, None, None

    @precondition(lambda self: not self.server.served)
    @rule()
    def the_kind_is_served_again(self) -> None:
        self.server.served = True

    # What holds

    def expected(self) -> dict[Key, Kept]:
        if not self.watching.served:
            return {}
        found = {key(name): value for name, value in self.server.at(self.followed).items()}
        for name, word in self.words.items():
            if word.version > self.followed:
                found.pop(key(name), None)
                if word.item is not None:
                    found[key(name)] = kept(word.item)
        return found

    @invariant()
    def the_cache_is_the_latest_that_is_known(self) -> None:
        assert self.watching.objects == self.expected()

    @invariant()
    def the_changes_add_up_to_the_cache(self) -> None:
        assert self.mirror == self.watching.objects

    @invariant()
    def tokens_find_what_is_cached(self) -> None:
        for token in ("t1", "t2"):
            found = sorted(self.watching.by_token(token), key=lambda value: value.uid)
            wanted = [value for value in self.watching.objects.values() if value.token == token]
            assert found == sorted(wanted, key=lambda value: value.uid)

    def teardown(self) -> None:
        self.server.served = True
        self.all_answers_come()
        while self.watching.version is None or self.followed < self.server.version:
            if self.stream is not None and self.server.after(self.stream) is None:
                self.a_bookmark_comes()
            self.the_reflector_goes_on(1)
        self.all_answers_come()
        assert self.watching.objects == {key(n): kept(item) for n, item in self.server.objects.items()}
        assert self.mirror == self.watching.objects
        assert not self.watching._ahead, "nothing is ahead of a stream that has caught up"
        assert not self.watching._buried, "nothing is remembered of what the stream has told of"

    def all_answers_come(self) -> None:
        for answers in self.answers.values():
            while answers:
                self.heard(answers.popleft())


class Redelivered(ReflectorCache):
    """A stream that begins again from before what was known, which no API server does: the end is the same.

    While it repeats itself the cache is what the last word says; the changes add up to it all the same.
    """

    def __init__(self) -> None:
        super().__init__()
        self.reached = 0

    @precondition(lambda self: self.stream is not None)
    @rule(back=st.integers(1, 12))
    def the_stream_begins_again_from_before(self, back: int) -> None:
        assert self.stream is not None
        self.reached = max(self.reached, self.followed)
        self.stream = self.followed = min(self.stream, max(self.server.compacted, self.stream - back))

    def moved(self, said: str | None) -> None:
        """It may go back; how far it is does not depend on what was there before."""

    def expected(self) -> dict[Key, Kept]:
        repeating = self.watching.served and self.followed < self.reached
        return dict(self.watching.objects) if repeating else super().expected()

    @invariant()
    def each_object_is_one_that_the_server_had(self) -> None:
        had = {
            (key(event.object["metadata"]["name"]), kept(event.object))
            for _, event in self.server.history
            if event.type != "DELETED"
        }
        assert set(self.watching.objects.items()) <= had


TestReflectorCache = ReflectorCache.TestCase
TestReflectorCache.settings = settings(
    max_examples=200,
    stateful_step_count=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
TestRedelivered = Redelivered.TestCase
TestRedelivered.settings = settings(TestReflectorCache.settings, max_examples=60)
