"""Who manages which fields, and server-side apply: managedFields as the real server keeps them.

A field's path is a tuple of elements as they stand in managedFields: `f:name`, `k:{"type":"Ready"}` for an item of a
list with keys, `v:"x"` for one of a set. Who manages what is a mapping of managers to sets of paths.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from tests.fakeapi.kinds import Kind, Merging
from tests.fakeapi.refusals import NotUnderstood, Object, apply_conflict

Field: TypeAlias = tuple[str, ...]

_SYSTEM = frozenset(
    {
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
    }
)
"""Metadata that nobody manages."""


@dataclass(frozen=True, slots=True)
class Manager:
    """One line of managedFields."""

    name: str
    operation: str
    api_version: str
    subresource: str

    def shown(self, time: str) -> str:
        """As a conflict names it."""
        where = f' with subresource "{self.subresource}"' if self.subresource else ""
        when = f" using {self.api_version} at {time}" if self.operation == "Update" else ""
        return f'"{self.name}"{where}{when}'


@dataclass(frozen=True, slots=True)
class _Entry:
    fields: frozenset[Field]
    time: str


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

    def fields(self, value: Any, at: Field = ()) -> dict[Field, Any]:
        """The fields that a value has, each with what a change of it is seen by."""
        merging = self.merging(at, value) if isinstance(value, dict | list) else "atomic"
        if merging == "atomic":
            return {at: value}
        found: dict[Field, Any] = {}
        if isinstance(value, dict):
            for name, child in value.items():
                field = (*at, f"f:{name}")
                found.update(self.fields(child, field))
                if isinstance(child, dict) and not child:
                    found[field] = child
            return found
        for element, child in _elements(merging, value).items():
            found[(*at, element)] = None if isinstance(child, dict) else child
            if isinstance(child, dict):
                found.update(self.fields(child, (*at, element)))
        return found

    def merge(self, live: Any, applied: Any, at: Field = ()) -> Any:
        """What is applied laid over what is there."""
        if not isinstance(applied, dict | list) or type(live) is not type(applied):
            return applied
        if (merging := self.merging(at, applied)) == "atomic":
            return applied
        if isinstance(applied, dict):
            laid = {
                name: self.merge(live.get(name), child, (*at, f"f:{name}")) for name, child in applied.items()
            }
            return {**live, **laid}
        here, there = _elements(merging, live), _elements(merging, applied)
        laid = {
            element: self.merge(here.get(element), child, (*at, element)) for element, child in there.items()
        }
        return list({**here, **laid}.values())

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


def updated(
    shape: Shape, old: Object | None, new: Object, manager: Manager, now: str, reset: tuple[str, ...]
) -> Object:
    """The new object with managedFields that say what `manager` has changed."""
    entries = _decode(old)
    before, after = shape.fields(_bare(old or {})), shape.fields(_bare(new))
    changed = {field for field, value in after.items() if field not in before or before[field] != value}
    changed = _managed(frozenset(changed), reset)
    removed = before.keys() - after.keys()
    kept = {
        who: entry if who == manager else replace(entry, fields=entry.fields - changed)
        for who, entry in entries.items()
    }
    kept = {who: replace(entry, fields=entry.fields - removed) for who, entry in kept.items()}
    mine = kept.get(manager, _Entry(frozenset(), now))
    fields = mine.fields | changed
    kept[manager] = _Entry(fields, now if fields != mine.fields or changed else mine.time)
    return _encode(new, kept)


def applied(
    shape: Shape,
    live: Object,
    config: Object,
    manager: Manager,
    now: str,
    reset: tuple[str, ...],
    *,
    force: bool,
) -> Object:
    """The object after a server-side apply.

    Raises:
        Refused: somebody else manages a field that would change, and `force` is off.
    """
    entries = _decode(live)
    current, wanted = _bare(live), _bare({key: value for key, value in config.items() if key not in reset})
    mine = _managed(frozenset(shape.fields(wanted)), reset)
    last = entries.get(manager, _Entry(frozenset(), now))
    others = {who: entry for who, entry in entries.items() if who != manager}
    owned = _with_parents(mine.union(*(entry.fields for entry in others.values())))
    result = shape.without(shape.merge(current, wanted), _with_parents(last.fields) - owned)
    before, after = shape.fields(current), shape.fields(result)
    changed = {field for field, value in after.items() if field not in before or before[field] != value}
    taken = {who: entry.fields & changed for who, entry in others.items()}
    if not force and any(taken.values()):
        found = [
            (who.shown(others[who].time), _shown(field)) for who in taken for field in sorted(taken[who])
        ]
        raise apply_conflict(found)
    removed = before.keys() - after.keys()
    kept = {who: replace(entry, fields=entry.fields - taken[who] - removed) for who, entry in others.items()}
    same = before == after and mine == last.fields
    kept[manager] = _Entry(mine, last.time if same else now)
    metadata = {**live.get("metadata", {}), **result.get("metadata", {})}
    # What apply may remove is removed; the system's own fields were never part of the comparison.
    metadata = {key: value for key, value in metadata.items() if key in result["metadata"] or key in _SYSTEM}
    return _encode({**result, "metadata": metadata}, kept)


def _bare(item: Object) -> Object:
    metadata = {key: value for key, value in (item.get("metadata") or {}).items() if key not in _SYSTEM}
    return {**{key: value for key, value in item.items() if value is not None}, "metadata": metadata}


def _managed(fields: frozenset[Field], reset: tuple[str, ...]) -> frozenset[Field]:
    tops = {f"f:{name}" for name in ("apiVersion", "kind", *reset)}
    return frozenset(field for field in fields if field[0] not in tops and field != ("f:metadata",))


def _with_parents(fields: frozenset[Field]) -> frozenset[Field]:
    return frozenset(field[:length] for field in fields for length in range(1, len(field) + 1))


def _elements(merging: Merging, items: list[Any]) -> dict[str, Any]:
    if merging == "set":
        return {f"v:{_compact(item)}": item for item in items}
    return {f"k:{_compact({key: item.get(key) for key in merging})}": item for item in items}


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


def _decode(item: Object | None) -> dict[Manager, _Entry]:
    return {
        Manager(line["manager"], line["operation"], line["apiVersion"], line.get("subresource", "")): _Entry(
            frozenset(_paths(line["fieldsV1"])), line["time"]
        )
        for line in ((item or {}).get("metadata") or {}).get("managedFields") or []
    }


def _paths(tree: Mapping[str, Any], at: Field = ()) -> list[Field]:
    found: list[Field] = [] if tree or not at else [at]
    for element, child in tree.items():
        found += [at] if element == "." else _paths(child, (*at, element))
    return found


def _encode(item: Object, entries: Mapping[Manager, _Entry]) -> Object:
    lines = [
        {
            "manager": who.name,
            "operation": who.operation,
            "apiVersion": who.api_version,
            "time": entry.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": _tree(entry.fields),
            **({"subresource": who.subresource} if who.subresource else {}),
        }
        for who, entry in entries.items()
        if entry.fields
    ]
    metadata = {key: value for key, value in item["metadata"].items() if key != "managedFields"}
    return {**item, "metadata": {**metadata, **({"managedFields": lines} if lines else {})}}


def _tree(fields: frozenset[Field]) -> Object:
    tree: Object = {}
    for field in sorted(fields):
        node = tree
        for element in field[:-1]:
            # A leaf so far: that it is a member itself stands beside its children as a dot.
            node = node.setdefault(element, {})
        node.setdefault(field[-1], {})
    for field in fields:
        node = tree
        for element in field:
            node = node[element]
        if node:
            node["."] = {}
    return tree


def _shown(field: Field) -> str:
    parts = []
    for element in field:
        kind, text = element[0], element[2:]
        if kind == "f":
            parts.append(f".{text}")
        elif kind == "v":
            parts.append(f"[={text}]")
        else:
            keys = ",".join(f"{key}={_compact(value)}" for key, value in json.loads(text).items())
            parts.append(f"[{keys}]")
    return "".join(parts)


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)
