"""What can be read from an API server: get, list, watch, discovery.

The errors of `errors` say what an answer means; NotFound says whether the object or its kind is missing. An error other
than NotFound says nothing about the object.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager

import attrs

from fivespot.adapters.kube import bodies, frames
from fivespot.adapters.kube.discovery import Resolver
from fivespot.adapters.kube.errors import Asked, Gone, NotFound, Unavailable, error_of
from fivespot.adapters.kube.exchange import Exchange
from fivespot.adapters.kube.frames import Page, WatchEvent
from fivespot.adapters.kube.resources import Object, Resource

PAGE = 500
_GRACE_SECONDS = 10.0
"""How much later than a watch's own end the connection is taken for dead."""


@attrs.frozen
class ListResult:
    """A whole list at one version, the one to watch from.

    It holds the bytes of its pages: objects as Python has them are four times as large, and seldom all needed at once.
    """

    asked: Asked
    pages: tuple[Page, ...]
    resource_version: str

    def each(self) -> Iterator[Object]:
        """The objects, one after the other.

        Raises:
            Unavailable: one of them is no object.
        """
        try:
            for page in self.pages:
                yield from page.each()
        except frames.BadAnswer as error:
            raise Unavailable(self.asked, message=str(error)) from error

    @property
    def items(self) -> tuple[Object, ...]:
        """All of them."""
        return tuple(self.each())


class Reads:
    """Get, list, watch, discover."""

    def __init__(self, exchange: Exchange, resolver: Resolver | None = None) -> None:
        self._exchange = exchange
        self._resolver = resolver or Resolver(self._document, _monotonic)

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Object:
        """One object as it is now.

        Raises:
            NotFound: it is not there, or (`kind_not_served`) its kind is not.
            ApiError: it could not be read, which says nothing about it.
        """
        asked = Asked("get", resource.label, namespace, name)
        return decoded(asked, await self._one(asked, resource, namespace, name))

    async def get_whole(self, resource: Resource, namespace: str | None, name: str) -> Object:
        """As `get`, with managedFields: who owns which field is in nothing else that we read."""
        asked = Asked("get", resource.label, namespace, name)
        return decoded(asked, await self._one(asked, resource, namespace, name), frames.decode_whole)

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> ListResult:
        """All objects, read page by page at one version; every namespace when none is named.

        A list that takes so long that its pages expire is begun again, at last without pages.
        """
        asked = Asked("list", resource.label, namespace)
        path = resource.path(namespace)
        selectors = bodies.selectors(label_selector, field_selector)
        for limit in (PAGE, PAGE, 0):
            try:
                with self._learning(resource):
                    return await self._pages(asked, resource, path, selectors, limit)
            except Gone:
                if not limit:
                    raise
        raise AssertionError  # the last round returns or raises

    async def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        *,
        resource_version: str,
        timeout_seconds: float,
        opened: Callable[[], None] = lambda: None,
    ) -> AsyncGenerator[WatchEvent, None]:
        """Changes after `resource_version`, and bookmarks, until the server ends the stream.

        `opened` is called once the server has agreed to it: the first event may be a minute away.

        Close the iterator (`contextlib.aclosing`) when leaving it early. A watch takes no slot of the requests.

        Raises:
            Gone: the version is too old; list again.
            ApiError: the stream was refused or broke; resume from the last version seen.
        """
        asked = Asked("watch", resource.label, namespace)
        params: dict[str, str | int | bool] = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": max(1, int(timeout_seconds)),
            **bodies.selectors(label_selector, field_selector),
        }
        path = resource.path(namespace)
        async with aclosing(
            self._exchange.lines(asked, path, params, timeout_seconds + _GRACE_SECONDS, opened)
        ) as batches:
            async for lines in batches:
                for line in lines:
                    yield _event(asked, line)

    async def resolve(self, group: str, kind: str, version: str | None = None) -> Resource:
        """The resource of a kind, in `version` where that is served, else in the group's preferred version.

        Raises:
            KindNotServed: in no version.
            ApiError: the server could not be asked.
        """
        return await self._resolver.resolve(group, kind, version)

    async def version(self) -> Object:
        """What the server says about itself: `gitVersion` and more."""
        return await self._document("/version")

    async def _one(self, asked: Asked, resource: Resource, namespace: str | None, name: str) -> bytes:
        with self._learning(resource):
            return await self._exchange.read(asked, resource.path(namespace, name))

    async def _document(self, path: str) -> Object:
        asked = Asked("get", path)
        return decoded(asked, await self._exchange.read(asked, path))

    async def _pages(
        self, asked: Asked, resource: Resource, path: str, selectors: Mapping[str, str], limit: int
    ) -> ListResult:
        pages: list[Page] = []
        params: dict[str, str | int | bool] = {**selectors, **({"limit": limit} if limit else {})}
        while True:
            answer = await self._exchange.read(asked, path, params)
            try:
                page = frames.decode_page(answer, resource)
            except frames.BadAnswer as error:
                raise Unavailable(asked, message=str(error)) from error
            pages.append(page)
            if not page.more:
                return ListResult(asked, tuple(pages), page.resource_version)
            params["continue"] = page.more

    @contextmanager
    def _learning(self, resource: Resource) -> Iterator[None]:
        """A path that is not served any more ends what discovery remembers of its kind."""
        try:
            yield
        except NotFound as error:
            if error.kind_not_served:
                self._resolver.forget(resource)
            raise


def _monotonic() -> float:
    """The event loop's own time, which everything that sleeps between two tries goes by."""
    return asyncio.get_running_loop().time()


def decoded(asked: Asked, answer: bytes, decode: Callable[[bytes], Object] = frames.decode_object) -> Object:
    """The object in an answer; one that cannot be read is no answer."""
    try:
        return decode(answer)
    except frames.BadAnswer as error:
        raise Unavailable(asked, message=str(error)) from error


def _event(asked: Asked, line: bytes) -> WatchEvent:
    try:
        event = frames.decode_event(line)
    except frames.BadAnswer as error:
        raise Unavailable(asked, message=str(error)) from error
    if event.type == "ERROR":
        code = event.object.get("code")
        raise error_of(asked, code if isinstance(code, int) else 0, event.object)
    return event
