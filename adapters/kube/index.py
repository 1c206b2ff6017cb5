"""A reverse index: who wants to know about what. Both directions agree at all times."""

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T", bound=Hashable)


class ReverseIndex(Generic[K, T]):
    """Keys and the things that each of them refers to; `of` answers the other way round."""

    def __init__(self) -> None:
        self._things: dict[K, frozenset[T]] = {}
        self._keys: dict[T, set[K]] = {}

    def put(self, key: K, things: Iterable[T]) -> None:
        """Say what a key refers to from now on; nothing takes it out."""
        wanted = frozenset(things)
        before = self._things.get(key, frozenset())
        for thing in before - wanted:
            self._keys[thing].discard(key)
            if not self._keys[thing]:
                del self._keys[thing]
        for thing in wanted - before:
            self._keys.setdefault(thing, set()).add(key)
        if wanted:
            self._things[key] = wanted
        else:
            self._things.pop(key, None)

    def of(self, thing: T) -> frozenset[K]:
        """The keys that refer to a thing."""
        return frozenset(self._keys.get(thing, ()))

    def __len__(self) -> int:
        """How many things are referred to."""
        return len(self._keys)
