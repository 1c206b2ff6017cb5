"""What a reflector knows: a pure state machine over lists, watch events and our own writes.

Theory of operation. The state is a cache and an opaque version. Without a version the next step is a LIST, which
replaces the cache at once and answers the difference; with one it is a WATCH from there. Every event and bookmark
moves the version. Only the server's "too old" takes it away (`expired`), or a kind that is not served (`unserved`):

    no version --listed--> version --event, bookmark--> later version
        ^                     |
        +-- expired, unserved +

Our own writes are fed in before the watch tells of them, so that whoever looks next sees them. Such a key is *ahead*
of the stream until an event has caught up with it, and older words about it are not listened to. Versions of one
resource may be compared as integers (KEP-5504, for Kubernetes 1.35 and later; true of etcd before that); where they
are not decimal, the last word wins.

What is kept of an object is what `read` makes of it: ten thousand objects as decoded JSON would be 150 MB, and whoever
wants to know them would read each of them anew, again and again. Identity and version are kept beside that.

What is emitted is a `Change` per key. There is no IO, no clock and no callback here.
"""

import sys
from collections.abc import Callable, Iterable
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import attrs

from fivespot.adapters.kube.frames import WatchEvent
from fivespot.adapters.kube.index import ReverseIndex
from fivespot.adapters.kube.resources import Object

Key: TypeAlias = tuple[str, str]
"""Namespace and name; the namespace of a cluster-wide object is empty."""

V = TypeVar("V")
Read: TypeAlias = Callable[[Object, V | None], V]
"""What is kept of an object, given what was kept of that key before. It must not raise."""


Tokens: TypeAlias = Callable[[V], Iterable[str]]
"""By what else than its key an object is looked for, such as a Node by its provider id."""


def whole(item: Object, _before: Object | None) -> Object:
    """Keeps the object as it is."""
    return item


def no_tokens(_value: object) -> tuple[str, ...]:
    """Looked for by its key alone."""
    return ()


@attrs.frozen
class Change(Generic[V]):
    """What was kept of a key's object before, and what is kept now; None where there is no object."""

    key: Key
    old: V | None
    new: V | None


class _Stamp(NamedTuple):
    uid: str
    version: str


class Watching(Generic[V]):
    """The cache of one resource, and how far it has been followed.

    Attributes:
        objects: the cache; to be read only.
        version: where to watch from; None when the next step is a list.
        served: False once the server has said that it does not know the kind, until a list succeeds.
    """

    def __init__(self, read: Read[V], tokens: Tokens[V] = no_tokens) -> None:
        self.objects: dict[Key, V] = {}
        self.version: str | None = None
        self.served = True
        self._read = read
        self._tokens = tokens
        self._by_token: ReverseIndex[Key, str] = ReverseIndex()
        self._stamps: dict[Key, _Stamp] = {}
        self._ahead: set[Key] = set()
        # uids, which never come back: of objects that we know to be gone and the stream does not yet.
        self._buried: dict[Key, _Stamp] = {}
        # How far the stream has come, also while there is no version to go on from.
        self._reached = ""

    def listed(self, items: Iterable[Object], version: str) -> list[Change[V]]:
        """Replace the cache by a list, and answer the difference; what is ahead of the list stays.

        `items` may raise, and nothing has changed then.
        """
        before, stamps = self.objects, self._stamps
        after: dict[Key, V] = {}
        stamped: dict[Key, _Stamp] = {}
        buried = {key: stamp for key, stamp in self._buried.items() if older(version, stamp.version)}
        for item in items:
            if (key := key_of(item)) is None:
                continue
            stamp = _stamp(item)
            if self._is_buried(key, stamp):
                buried[key] = self._buried[key]
                continue
            stamped[key] = stamp
            kept = key in before and _same(stamps[key], stamp)
            after[key] = before[key] if kept else self._read(item, before.get(key))
        ahead = {key for key in self._ahead if older(version, stamps[key].version)}
        after.update({key: before[key] for key in ahead})
        stamped.update({key: stamps[key] for key in ahead})
        self.objects, self._stamps, self.version, self.served = after, stamped, version, True
        self._ahead, self._buried, self._reached = ahead, buried, version
        changes = [
            Change(key, old, after.get(key))
            for key, old in before.items()
            if key not in after or not _same(stamps[key], stamped[key])
        ]
        changes += [Change(key, None, new) for key, new in after.items() if key not in before]
        for change in changes:
            self._by_token.put(change.key, self._tokens(change.new) if change.new is not None else ())
        return changes

    def by_token(self, token: str) -> list[V]:
        """What is kept of the objects that have a token."""
        return [self.objects[key] for key in self._by_token.of(token)]

    def event(self, event: WatchEvent) -> Change[V] | None:
        """Follow the stream; None when the cache stays as it is."""
        if version := event.resource_version:
            self.version = self._reached = version
        if event.type not in ("ADDED", "MODIFIED", "DELETED") or (key := key_of(event.object)) is None:
            return None
        if event.type == "DELETED":
            return self._deleted(key, event.object)
        return self._seen(key, event.object)

    def fed(self, item: Object) -> Change[V] | None:
        """Take in the answer to a write of our own."""
        if not self.served or (key := key_of(item)) is None:
            return None
        stamp, old = _stamp(item), self._stamps.get(key)
        if old is not None and (older(stamp.version, old.version) or _same(old, stamp)):
            return None
        if self._is_buried(key, stamp):
            return None
        # The stream has come past this version and the object is not there: it has gone since.
        if old is None and self._reached and not older(self._reached, stamp.version, unknown=True):
            return None
        self._ahead.add(key)
        return self._put(key, stamp, item)

    def forgotten(self, key: Key, uid: str | None) -> Change[V] | None:
        """The server has told us that the object is gone; None when another one of that name is cached, or none."""
        stamp = self._stamps.get(key)
        if stamp is None or (uid is not None and uid != stamp.uid):
            return None
        self._buried[key] = stamp
        return self._drop(key)

    def expired(self) -> None:
        """The version is too old to go on from: the next step is a list. The cache stays until then."""
        self.version = None

    def unserved(self) -> bool:
        """The kind is not served. The cache is emptied *without* a change: nothing is known to have been deleted.

        Returns:
            Whether that is news.
        """
        news = self.served
        self.objects, self._stamps, self.version, self.served = {}, {}, None, False
        self._by_token = ReverseIndex()
        self._ahead, self._buried, self._reached = set(), {}, ""
        return news

    def _seen(self, key: Key, item: Object) -> Change[V] | None:
        stamp, old = _stamp(item), self._stamps.get(key)
        if self._is_buried(key, stamp):
            return None
        if old is not None:
            if key in self._ahead and older(stamp.version, old.version):
                return None
            self._ahead.discard(key)
            if _same(old, stamp):
                return None
        self._buried.pop(key, None)
        return self._put(key, stamp, item)

    def _deleted(self, key: Key, item: Object) -> Change[V] | None:
        stamp, old = _stamp(item), self._stamps.get(key)
        if self._is_buried(key, stamp):
            if self._buried[key].uid == stamp.uid:
                del self._buried[key]
            return None
        if old is None or (key in self._ahead and older(stamp.version, old.version)):
            return None
        return self._drop(key)

    def _is_buried(self, key: Key, stamp: _Stamp) -> bool:
        """Whether a word is of an object that is gone, or of one before it."""
        buried = self._buried.get(key)
        return buried is not None and (buried.uid == stamp.uid or older(stamp.version, buried.version))

    def _put(self, key: Key, stamp: _Stamp, item: Object) -> Change[V]:
        old = self.objects.get(key)
        new = self._read(item, old)
        self.objects[key], self._stamps[key] = new, stamp
        self._by_token.put(key, self._tokens(new))
        return Change(key, old, new)

    def _drop(self, key: Key) -> Change[V]:
        self._ahead.discard(key)
        del self._stamps[key]
        self._by_token.put(key, ())
        return Change(key, self.objects.pop(key), None)


def key_of(item: Object) -> Key | None:
    """The key of an object; None for one without a name, which no API server sends."""
    metadata = item.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or not isinstance(name, str) or not name:
        return None
    namespace = metadata.get("namespace")
    return (sys.intern(namespace) if isinstance(namespace, str) else "", name)


def version_of(item: Object) -> str:
    """The resourceVersion, empty if there is none."""
    return _stamp(item).version


def _stamp(item: Object) -> _Stamp:
    metadata = item.get("metadata")
    found: dict[str, Any] = metadata if isinstance(metadata, dict) else {}
    uid, version = found.get("uid"), found.get("resourceVersion")
    return _Stamp(uid if isinstance(uid, str) else "", version if isinstance(version, str) else "")


def older(one: str, other: str, *, unknown: bool = False) -> bool:
    """Whether `one` is before `other`; `unknown` where that cannot be told."""
    if not (_decimal(one) and _decimal(other)):
        return unknown
    return int(one) < int(other)


def _decimal(version: str) -> bool:
    return version.isascii() and version.isdigit()


def _same(old: _Stamp, new: _Stamp) -> bool:
    """Whether two words about one key are the same; the same version of the same object is."""
    return bool(old.version) and old == new
