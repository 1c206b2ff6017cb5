"""Which version, plural and scope a kind has on this cluster: asked of the server, never guessed.

One request per group version, one more for the group when the version is not given or not served. A kind that was
found stays found until the server answers 404 for it (`forget`); what was not found is looked for again after 30 s.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import attrs

from fivespot.adapters.kube.errors import KindNotServed, NotFound
from fivespot.adapters.kube.resources import Object, Resource, group_path, group_version_path

NEGATIVE_SECONDS = 30.0
_MANY = 512
"""Kinds are named by users' objects, so what is remembered about missing ones has to end somewhere."""

_Wanted = tuple[str, str, str | None]


@attrs.frozen
class _Found:
    resource: Resource | None
    until: float


class Resolver:
    """Kind to Resource, with a memory.

    Args:
        read: GET of a path as JSON; raises NotFound.
        monotonic: seconds that only grow.
    """

    def __init__(self, read: Callable[[str], Awaitable[Object]], monotonic: Callable[[], float]) -> None:
        self._read = read
        self._monotonic = monotonic
        self._known: dict[_Wanted, _Found] = {}
        # Many machines ask for the same kind at once when the controller starts: one of them asks the server.
        self._asking: dict[_Wanted, asyncio.Lock] = {}

    async def resolve(self, group: str, kind: str, version: str | None = None) -> Resource:
        """The resource of `kind`, in `version` where that is served, else in the group's preferred version.

        Raises:
            KindNotServed: in no version of the group.
            ApiError: the server could not be asked; that says nothing about the kind.
        """
        wanted = (group, kind, version)
        async with self._asking.setdefault(wanted, asyncio.Lock()):
            found = self._known.get(wanted)
            if found is None or self._monotonic() >= found.until:
                found = self._remember(wanted, await self._look(group, kind, version))
        if found.resource is None:
            raise KindNotServed(group, kind)
        return found.resource

    def forget(self, resource: Resource) -> None:
        """The server answered 404 for the kind's own path: whatever is known of its group's kind is stale."""
        for wanted in [key for key in self._known if key[:2] == (resource.group, resource.kind)]:
            del self._known[wanted]

    def _remember(self, wanted: _Wanted, resource: Resource | None) -> _Found:
        version = wanted[2]
        # Another version than the asked one is a stopgap, and no reason to miss the asked one when it comes.
        stays = resource is not None and version in (None, resource.version)
        found = _Found(resource, float("inf") if stays else self._monotonic() + NEGATIVE_SECONDS)
        self._known[wanted] = found
        if len(self._known) > _MANY:
            self._prune()
        return found

    def _prune(self) -> None:
        now = self._monotonic()
        self._known = {wanted: found for wanted, found in self._known.items() if now < found.until}
        self._asking = {wanted: lock for wanted, lock in self._asking.items() if lock.locked()}

    async def _look(self, group: str, kind: str, version: str | None) -> Resource | None:
        if version is not None and (found := await self._in_version(group, version, kind)):
            return found
        for served in await self._versions(group):
            if served != version and (found := await self._in_version(group, served, kind)):
                return found
        return None

    async def _versions(self, group: str) -> list[str]:
        """Served versions, the preferred one first."""
        try:
            return versions_of(await self._read(group_path(group)))
        except NotFound:
            return []

    async def _in_version(self, group: str, version: str, kind: str) -> Resource | None:
        try:
            return resource_of(await self._read(group_version_path(group, version)), group, version, kind)
        except NotFound:
            return None


def versions_of(document: Object) -> list[str]:
    """The versions in an APIGroup, or in the core group's APIVersions, the preferred one first."""
    preferred = _mapping(document.get("preferredVersion")).get("version")
    listed = [
        v if isinstance(v, str) else _mapping(v).get("version") for v in _list(document.get("versions"))
    ]
    names = [name for name in (preferred, *listed) if isinstance(name, str) and name]
    return list(dict.fromkeys(names))


def resource_of(document: Object, group: str, version: str, kind: str) -> Resource | None:
    """The resource of `kind` in an APIResourceList; sub-resources (`pods/eviction`) are no kinds of their own."""
    for entry in map(_mapping, _list(document.get("resources"))):
        name = entry.get("name")
        if entry.get("kind") == kind and isinstance(name, str) and name and "/" not in name:
            return Resource(group, version, name, kind, namespaced=bool(entry.get("namespaced")))
    return None


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
