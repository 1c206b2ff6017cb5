"""The fields of an object as managedFields name them, and how the lists and mappings that hold them are merged.

A field's path is a tuple of elements as they stand in managedFields: `f:name`, `k:{"type":"Ready"}` for an item of a
list with keys, `v:"x"` for one of a set.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeAlias

from tests.fakeapi.kinds import Kind, Merging
from tests.fakeapi.refusals import NotUnderstood, Object

Field: TypeAlias = tuple[str, ...]


class Shape:
    """How the lists and mappings of a kind are merged."""

    def __init__(self, kind: Kind, version: str, *, strict: bool) -> None:
        self._kind = kind
        self._schema = kind.schemas.get(version)
        self._strict = strict

    def merging(self, field: Field, value: Any) -> Merging:
        """How the list or mapping at `field` is merged."""
        path = tuple(element[2:] for element in field if element.startswith("f:"))
        if path in (known := self._kind.merging):
            return known[path]
        if path[:1] != ("metadata",) and self._schema is not None:
            return _from_schema(self._schema, path, value)
        if isinstance(value, list):
            if path == ("metadata", "finalizers"):
                return "set"
            if path == ("metadata", "ownerReferences"):
                return ("uid",)
            if self._strict:
                raise NotUnderstood(f"how apply merges the list {'.'.join(path)} of {self._kind.label}")
            return "atomic"
        return "granular"

    def seen(self, value: Any, at: Field = ()) -> dict[Field, Any]:
        """The fields by which a change shows, each with what it shows by; what holds others shows by being there."""
        found: dict[Field, Any] = {}
        for field, child in self._walk(value, at):
            granular = isinstance(child, dict | list) and self.merging(field, child) != "atomic"
            if not granular:
                found[field] = child
            elif not self._always_there(field):
                found[field] = None
        return found

    def owned(self, value: Any) -> frozenset[Field]:
        """The fields that somebody manages who applies a value: what holds others only where no schema names it."""
        found = set()
        for field, child in self._walk(value, ()):
            granular = isinstance(child, dict | list) and self.merging(field, child) != "atomic"
            empty = isinstance(child, dict) and not child
            if not granular or empty or not field[-1].startswith("f:") or not self._declared(field, child):
                found.add(field)
        return frozenset(found)

    def _walk(self, value: Any, at: Field) -> Iterator[tuple[Field, Any]]:
        if at:
            yield at, value
        if not isinstance(value, dict | list) or (merging := self.merging(at, value)) == "atomic":
            return
        if isinstance(value, dict):
            for name, child in value.items():
                yield from self._walk(child, (*at, f"f:{name}"))
        else:
            for element, child in _elements(merging, value).items():
                yield from self._walk(child, (*at, element))

    def _always_there(self, field: Field) -> bool:
        """Whether it is a part of the type, and no pointer."""
        return field == ("f:metadata",) or (not self._kind.custom and field in (("f:spec",), ("f:status",)))

    def _declared(self, field: Field, child: Any) -> bool:
        if isinstance(child, list) or field[0] == "f:metadata" or self._schema is None:
            return True
        node: Any = self._schema
        for element in field:
            node = (
                (node.get("items") or {})
                if element[0] != "f"
                else (node.get("properties") or {}).get(element[2:])
            )
            if node is None:
                return False
        return True

    def merge(self, live: Any, applied: Any, at: Field = ()) -> Any:
        """What is applied laid over what is there."""
        if isinstance(applied, dict) and isinstance(live, dict):
            if self.merging(at, applied) == "atomic":
                return applied
            laid = {
                name: self.merge(live.get(name), child, (*at, f"f:{name}")) for name, child in applied.items()
            }
            return {**live, **laid}
        if isinstance(applied, list) and isinstance(live, list):
            if (merging := self.merging(at, applied)) == "atomic":
                return applied
            here, there = _elements(merging, live), _elements(merging, applied)
            laid = {key: self.merge(here.get(key), child, (*at, key)) for key, child in there.items()}
            return list({**here, **laid}.values())
        return applied

    def without(self, value: Any, gone: frozenset[Field], at: Field = ()) -> Any:
        """A value without some of its fields."""
        if not any(field[: len(at)] == at for field in gone) or not isinstance(value, dict | list):
            return value
        if (merging := self.merging(at, value)) == "atomic":
            return value
        if isinstance(value, dict):
            return {
                name: self.without(child, gone, (*at, f"f:{name}"))
                for name, child in value.items()
                if (*at, f"f:{name}") not in gone
            }
        return [
            self.without(child, gone, (*at, element))
            for element, child in _elements(merging, value).items()
            if (*at, element) not in gone
        ]


def _elements(merging: Merging, items: list[Any]) -> dict[str, Any]:
    if merging == "set":
        return {f"v:{compact(item)}": item for item in items}
    return {f"k:{compact({key: item.get(key) for key in merging})}": item for item in items}


def _from_schema(schema: Object, path: tuple[str, ...], value: Any) -> Merging:
    node: Any = schema
    for name in path:
        while node.get("type") == "array":
            node = node.get("items") or {}
        properties, more = node.get("properties") or {}, node.get("additionalProperties")
        node = properties.get(name) or (more if isinstance(more, dict) else {})
    if isinstance(value, dict):
        return "atomic" if node.get("x-kubernetes-map-type") == "atomic" else "granular"
    match node.get("x-kubernetes-list-type", "atomic"):
        case "set":
            return "set"
        case "map":
            return tuple(node["x-kubernetes-list-map-keys"])
    return "atomic"


def compact(value: Any) -> str:
    """JSON as it stands in a path."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True)
