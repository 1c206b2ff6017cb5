"""What a request asks for: its verb and what it is about, read off method, path and query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from tests.fakeapi.refusals import NotUnderstood

_SELECTORS = {"labelSelector", "fieldSelector"}
_QUERY = {
    "get": set[str](),
    "list": {*_SELECTORS, "limit", "continue", "resourceVersion"},
    "watch": {*_SELECTORS, "watch", "allowWatchBookmarks", "resourceVersion", "timeoutSeconds"},
    "create": {"fieldManager"},
    "update": {"fieldManager"},
    "patch": {"fieldManager", "force"},
    "delete": set[str](),
}
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
WRITES = frozenset(_VERBS.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The words of a permission rule, and a version.

    Attributes:
        verb: get, list, watch, create, update, patch, delete.
        resource: the plural; the path, where it names no resource.
        namespace: empty for the whole cluster.
        name: empty for collections; of a creation, what the body says.
        collection: whether the path names no object.
    """

    verb: str
    group: str = ""
    version: str = ""
    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    collection: bool = False

    @property
    def is_document(self) -> bool:
        """Whether it asks about the server, and for no resource."""
        return self.resource.startswith("/")


def asked(method: str, raw_path: str, query: Mapping[str, str]) -> Asked:
    """Read a request line.

    Raises:
        NotUnderstood: the real server might know what to do.
    """
    if method not in ("GET", *_VERBS):
        raise NotUnderstood(method)
    parts = [unquote(part) for part in raw_path.strip("/").split("/")]
    match parts:
        case ["api", version, *rest] if rest:
            group = ""
        case ["apis", group, version, *rest] if rest:
            pass
        case _:
            return Asked(verb=_VERBS.get(method, "get"), resource=raw_path.rstrip("/") or "/")
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource, *more = *rest, *([""] * (3 - len(rest)))
    if more:
        raise NotUnderstood(raw_path)
    verb = _verb(method, name, query)
    if unknown := set(query) - _QUERY[verb]:
        raise NotUnderstood(f"{verb} with {', '.join(sorted(unknown))} in the query")
    return Asked(
        verb=verb,
        group=group,
        version=version,
        resource=plural,
        namespace=namespace,
        name=name,
        subresource=subresource,
        collection=not name,
    )


def _verb(method: str, name: str, query: Mapping[str, str]) -> str:
    if method != "GET":
        if method == "DELETE" and not name:
            raise NotUnderstood("deletion of a collection")
        return _VERBS[method]
    if query.get("watch", "false") in ("true", "1"):
        if name:
            raise NotUnderstood("a watch on a path with a name")
        return "watch"
    return "get" if name else "list"
