"""What etcd and the watch cache are to the real server: objects, one version that only grows, and its history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from tests.fakeapi.refusals import Object, expired, too_old

Key: TypeAlias = tuple[str, str]
"""Namespace, empty for objects of the whole cluster, and name."""

_BEGIN = 100
"""So that version 1 is too old from the start, as it is on a real server that has made its own objects."""


@dataclass(frozen=True, slots=True)
class Change:
    """One object before and after; None where there was, or is, none."""

    resource: str
    key: Key
    old: Object | None
    new: Object | None
    revision: int


class Store:
    """The objects of each resource, named by `plural.group`.

    Attributes:
        revision: the version of the last change.
        oldest: what a watch can go on from at the earliest.
    """

    def __init__(self) -> None:
        self.revision = _BEGIN
        self.oldest = _BEGIN
        self._objects: dict[str, dict[Key, Object]] = {}
        self._history: list[Change] = []
        self._pages: dict[tuple[str, int], list[tuple[Key, Object]]] = {}
        self._listeners: list[Callable[[Change], None]] = []

    def get(self, resource: str, key: Key) -> Object | None:
        """The object as it is now."""
        return self._objects.get(resource, {}).get(key)

    def items(self, resource: str) -> list[tuple[Key, Object]]:
        """All objects of a resource as they are now, in the order of their keys."""
        return sorted(self._objects.get(resource, {}).items(), key=lambda item: item[0])

    def put(self, resource: str, key: Key, new: Object) -> Object:
        """Store an object under the next version, and answer it as it is stored."""
        self.revision += 1
        stored = {**new, "metadata": {**new["metadata"], "resourceVersion": str(self.revision)}}
        objects = self._objects.setdefault(resource, {})
        old = objects.get(key)
        objects[key] = stored
        self._changed(Change(resource, key, old, stored, self.revision))
        return stored

    def remove(self, resource: str, key: Key) -> Object:
        """Take an object away, and answer what it was, with the version of its end."""
        self.revision += 1
        old = self._objects[resource].pop(key)
        self._changed(Change(resource, key, old, None, self.revision))
        return {**old, "metadata": {**old["metadata"], "resourceVersion": str(self.revision)}}

    def everything(self) -> list[tuple[str, Key]]:
        """The resource and key of every object."""
        return [(resource, key) for resource, objects in self._objects.items() for key in objects]

    def page(self, resource: str, revision: int) -> list[tuple[Key, Object]]:
        """All objects as they were when the first page of a list was read.

        Raises:
            KeyError: that is forgotten.
        """
        return self._pages[resource, revision]

    def keep_page(self, resource: str, items: list[tuple[Key, Object]], revision: int) -> None:
        """Remember what the following pages are read from."""
        self._pages[resource, revision] = items

    def since(self, resource: str, revision: int) -> list[Change]:
        """The changes of a resource after a version.

        Raises:
            Refused: they are forgotten.
        """
        if revision < self.oldest:
            raise too_old(revision, self.oldest)
        return [
            change for change in self._history if change.revision > revision and change.resource == resource
        ]

    def listen(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        """Call `listener` with every change from now on, until the answer is called."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def compact(self) -> None:
        """Forget the history: every version but the current one is too old, and so is every continue token."""
        self._history.clear()
        self._pages.clear()
        self.oldest = self.revision

    def _changed(self, change: Change) -> None:
        self._history.append(change)
        for listener in list(self._listeners):
            listener(change)


def list_expired(token: str) -> Exception:
    """The answer to a continue token whose list is forgotten; `token` goes on at the current version."""
    return expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list "
        "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
        "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
        "modified, or deleted between the time the first chunk was returned and now may show up in the list.",
        token,
    )
