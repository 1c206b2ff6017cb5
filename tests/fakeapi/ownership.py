"""Who manages which fields, and server-side apply: managedFields as the real server keeps them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.fakeapi.fields import Field, Shape, compact
from tests.fakeapi.refusals import Object, apply_conflict

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

    def __str__(self) -> str:
        """As a conflict names it."""
        where = f' with subresource "{self.subresource}"' if self.subresource else ""
        how = f" using {self.api_version}" if self.operation == "Update" else ""
        return f'"{self.name}"{where}{how}'


@dataclass(frozen=True, slots=True)
class _Entry:
    fields: frozenset[Field]
    time: str


def updated(
    shape: Shape, old: Object | None, new: Object, manager: Manager, now: str, reset: tuple[str, ...]
) -> Object:
    """The new object with managedFields that say what `manager` has changed."""
    entries = _decode(old)
    if old is not None and not entries:
        # Nobody has been kept account of, and an update is no reason to begin.
        return new
    before, after = shape.seen(_bare(old or {})), shape.seen(_bare(new))
    changed = _managed(_differing(before, after), reset)
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
    entries = _decode(live) or _before_first_apply(shape, live, manager.api_version, now, reset)
    current, wanted = _bare(live), _bare({key: value for key, value in config.items() if key not in reset})
    mine = _managed(shape.owned(wanted), reset)
    last = entries.get(manager, _Entry(frozenset(), now))
    others = {who: entry for who, entry in entries.items() if who != manager}
    owned = _with_parents(mine.union(*(entry.fields for entry in others.values())))
    gone = _with_parents(last.fields) - owned - {("f:metadata",)}
    result = shape.without(shape.merge(current, wanted), gone)
    before, after = shape.seen(current), shape.seen(result)
    changed = _differing(before, after)
    taken = {who: entry.fields & changed for who, entry in others.items()}
    if not force and any(taken.values()):
        found = [(str(who), _shown(field)) for who in taken for field in sorted(taken[who])]
        raise apply_conflict(found)
    removed = before.keys() - after.keys()
    kept = {who: replace(entry, fields=entry.fields - taken[who] - removed) for who, entry in others.items()}
    same = before == after and mine == last.fields
    kept[manager] = _Entry(mine, last.time if same else now)
    metadata = {**live.get("metadata", {}), **result.get("metadata", {})}
    # What apply may remove is removed; the system's own fields were never part of the comparison.
    metadata = {key: value for key, value in metadata.items() if key in result["metadata"] or key in _SYSTEM}
    return _encode({**result, "metadata": metadata}, kept)


def _differing(before: Mapping[Field, Any], after: Mapping[Field, Any]) -> frozenset[Field]:
    return frozenset(field for field, value in after.items() if field not in before or before[field] != value)


def _before_first_apply(
    shape: Shape, live: Object, api_version: str, now: str, reset: tuple[str, ...]
) -> dict[Manager, _Entry]:
    """Whoever made what is there, where that was not kept account of."""
    fields = _managed(frozenset(shape.seen(_bare(live))), reset)
    nobody = Manager("before-first-apply", "Update", api_version, "")
    return {nobody: _Entry(fields, now)} if fields else {}


def _bare(item: Object) -> Object:
    metadata = {key: value for key, value in (item.get("metadata") or {}).items() if key not in _SYSTEM}
    return {**{key: value for key, value in item.items() if value is not None}, "metadata": metadata}


def _managed(fields: frozenset[Field], reset: tuple[str, ...]) -> frozenset[Field]:
    tops = {f"f:{name}" for name in ("apiVersion", "kind", *reset)}
    return frozenset(field for field in fields if field[0] not in tops and field != ("f:metadata",))


def _with_parents(fields: frozenset[Field]) -> frozenset[Field]:
    return frozenset(field[:length] for field in fields for length in range(1, len(field) + 1))


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
        for who, entry in sorted(
            entries.items(), key=lambda item: (item[0].operation, item[1].time, item[0].name)
        )
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
            keys = ",".join(f"{key}={compact(value)}" for key, value in json.loads(text).items())
            parts.append(f"[{keys}]")
    return "".join(parts)
