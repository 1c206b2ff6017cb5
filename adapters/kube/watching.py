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

What is emitted is a `Change` per key. There is no IO, no clock and no callback here.
"""

from collections.abc import Iterable
from typing import TypeAlias

import attrs

from fivespot.adapters.kube.frames import WatchEvent
from fivespot.adapters.kube.resources import Object

Key: TypeAlias = tuple[str, str]
"""Namespace and name; the namespace of a cluster-wide object is empty."""


@attrs.frozen
class Change:
    """A key's object before and after; None where there is none."""

    key: Key
    old: Object | None
    new: Object | None


class Watching:
    """The cache of one resource, and how far it has been followed.

    Attributes:
        objects: the cache; to be read only.
        version: where to watch from; None when the next step is a list.
        served: False once the server has said that it does not know the kind, until a list succeeds.
    """

    def __init__(self) -> None:
        self.objects: dict[Key, Object] = {}
        self.version: str | None = None
        self.served = True
        self._ahead: set[Key] = set()
        # uids, which never come back: of objects that we know to be gone and the stream does not yet.
        self._buried: dict[Key, str] = {}

    def listed(self, items: Iterable[Object], version: str) -> list[Change]:
        """Replace the cache by a list, and answer the difference; what is ahead of the list stays."""
        before, after = self.objects, {}
        buried: dict[Key, str] = {}
        for item in items:
            if (key := key_of(item)) is None:
                continue
            if (uid := self._buried.get(key)) is not None and uid == _uid(item):
                buried[key] = uid
            else:
                after[key] = item
        ahead = {key for key in self._ahead if older(version, version_of(before[key]))}
        after.update({key: before[key] for key in ahead})
        self.objects, self.version, self.served = after, version, True
        self._ahead, self._buried = ahead, buried
        changes = [Change(key, old, after.get(key)) for key, old in before.items()]
        changes += [Change(key, None, new) for key, new in after.items() if key not in before]
        return [change for change in changes if not _same(change.old, change.new)]

    def event(self, event: WatchEvent) -> Change | None:
        """Follow the stream; None when the cache stays as it is."""
        if version := event.resource_version:
            self.version = version
        if event.type not in ("ADDED", "MODIFIED", "DELETED") or (key := key_of(event.object)) is None:
            return None
        if event.type == "DELETED":
            return self._deleted(key, event.object)
        return self._seen(key, event.object)

    def fed(self, item: Object) -> Change | None:
        """Take in the answer to a write of our own."""
        if (key := key_of(item)) is None:
            return None
        old = self.objects.get(key)
        if old is not None and (older(version_of(item), version_of(old)) or _same(old, item)):
            return None
        if self._buried.get(key) == _uid(item):
            return None
        # The stream has come past this version and the object is not there: it has gone since.
        if old is None and self.version and not older(self.version, version_of(item), unknown=True):
            return None
        self._ahead.add(key)
        self.objects[key] = item
        return Change(key, old, item)

    def forgotten(self, key: Key, uid: str | None) -> Change | None:
        """The server has told us that the object is gone; None when another one of that name is cached, or none."""
        old = self.objects.get(key)
        if old is None or (uid is not None and uid != _uid(old)):
            return None
        self._buried[key] = _uid(old)
        self._ahead.discard(key)
        del self.objects[key]
        return Change(key, old, None)

    def expired(self) -> None:
        """The version is too old to go on from: the next step is a list. The cache stays until then."""
        self.version = None

    def unserved(self) -> bool:
        """The kind is not served. The cache is emptied *without* a change: nothing is known to have been deleted.

        Returns:
            Whether that is news.
        """
        news = self.served
        self.objects, self.version, self.served = {}, None, False
        self._ahead, self._buried = set(), {}
        return news

    def _seen(self, key: Key, item: Object) -> Change | None:
        old = self.objects.get(key)
        if self._buried.get(key) == _uid(item):
            return None
        if old is not None:
            if key in self._ahead and older(version_of(item), version_of(old)):
                return None
            self._ahead.discard(key)
            if _same(old, item):
                return None
        self._buried.pop(key, None)
        self.objects[key] = item
        return Change(key, old, item)

    def _deleted(self, key: Key, item: Object) -> Change | None:
        if self._buried.get(key) == _uid(item):
            del self._buried[key]
            return None
        old = self.objects.get(key)
        if old is None or (key in self._ahead and older(version_of(item), version_of(old))):
            return None
        self._ahead.discard(key)
        del self.objects[key]
        return Change(key, old, None)


def key_of(item: Object) -> Key | None:
    """The key of an object; None for one without a name, which no API server sends."""
    metadata = item.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or not isinstance(name, str) or not name:
        return None
    namespace = metadata.get("namespace")
    return (namespace if isinstance(namespace, str) else "", name)


def version_of(item: Object) -> str:
    """The resourceVersion, empty if there is none."""
    return _metadata_text(item, "resourceVersion")


def _uid(item: Object) -> str:
    return _metadata_text(item, "uid")


def _metadata_text(item: Object, field: str) -> str:
    metadata = item.get("metadata")
    value = metadata.get(field) if isinstance(metadata, dict) else None
    return value if isinstance(value, str) else ""


def older(one: str, other: str, *, unknown: bool = False) -> bool:
    """Whether `one` is before `other`; `unknown` where that cannot be told."""
    if not (_decimal(one) and _decimal(other)):
        return unknown
    return int(one) < int(other)


def _decimal(version: str) -> bool:
    return version.isascii() and version.isdigit()


def _same(old: Object | None, new: Object | None) -> bool:
    """Whether two words about one key are the same; the same version of the same object is."""
    if old is None or new is None:
        return old is new
    version = version_of(old)
    return bool(version) and version == version_of(new) and _uid(old) == _uid(new)
