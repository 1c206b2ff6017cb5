"""The objects of one cluster, the kinds that it serves, and what every operation on them needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from tests.fakeapi.kinds import CRD, NAMESPACE, Kind, Kinds
from tests.fakeapi.refusals import Object, not_found
from tests.fakeapi.store import Key, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What an operation is about.

    Attributes:
        namespace: empty for objects of the whole cluster, and for lists of all namespaces.
        name: empty for collections.
        subresource: `status`, `eviction`, or empty.
    """

    kind: Kind
    version: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> Key:
        return self.namespace, self.name

    @property
    def api_version(self) -> str:
        return self.kind.api_version(self.version)


class World:
    """Objects and kinds. Operations on them are functions of other modules; none of them waits.

    Attributes:
        ending: namespaces and definitions that are being deleted, by the resource and key of each.
        unserved: called with `plural.group` when the streams of a custom kind have to end.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self.store = Store()
        self.kinds = Kinds()
        self.ending: list[tuple[str, Key]] = []
        self.unserved: Callable[[str], None] = lambda _: None
        self._now = now

    def now(self) -> str:
        """The instant, as objects have it."""
        return stamp(self._now())

    def later(self, seconds: int) -> str:
        """That many seconds from now, as objects have it."""
        return stamp(datetime.fromtimestamp(self._now().timestamp() + seconds, UTC))

    def current(self, target: Target) -> Object:
        """The target as it is now.

        Raises:
            Refused: it is not there.
        """
        if (item := self.store.get(target.kind.label, target.key)) is None:
            raise not_found(target.kind.group, target.kind.plural, target.name)
        return item

    def targets(self) -> Iterator[Target]:
        """Every object there is, each in some version."""
        kinds = {kind.label: kind for kind in self.kinds}
        for label, (namespace, name) in self.store.everything():
            kind = kinds[label]
            yield Target(kind=kind, version=next(iter(kind.versions), ""), namespace=namespace, name=name)

    def namespace(self, name: str) -> Object | None:
        """A namespace."""
        return self.store.get(NAMESPACE.label, ("", name))

    def definition(self, kind: Kind) -> Object | None:
        """The CRD of a custom kind."""
        return self.store.get(CRD.label, ("", kind.label))


def shown(target: Target, item: Object) -> Object:
    """An object as it is read in the target's version."""
    rest = {key: value for key, value in item.items() if key not in ("apiVersion", "kind")}
    return {"apiVersion": target.api_version, "kind": target.kind.kind, **rest}


def stamp(instant: datetime) -> str:
    """RFC 3339 in whole seconds."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
