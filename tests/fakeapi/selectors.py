"""Label and field selectors, of requests and of objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from tests.fakeapi.kinds import Kind
from tests.fakeapi.refusals import NotUnderstood, Object, Refused, bad_request

Selector: TypeAlias = Callable[[Object], bool]

_KEY = r"[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?"
_SET = re.compile(rf"\s*({_KEY})\s+(in|notin)\s*\(([^()]*)\)\s*")
_EQUAL = re.compile(rf"\s*({_KEY})\s*(==|=|!=)\s*([A-Za-z0-9._-]*)\s*")
_THERE = re.compile(rf"\s*(!?)\s*({_KEY})\s*")


def selector(kind: Kind, labels: str, fields: str) -> Selector:
    """Whether an object is wanted, by the query of a list or a watch.

    Raises:
        Refused: the text is wrong, or the kind has no such field.
    """
    wanted = [*_labels(labels), *_fields(kind, fields)]
    return lambda item: all(test(item) for test in wanted)


def matches_label_selector(wanted: Mapping[str, Any] | None, item: Object) -> bool:
    """A LabelSelector as objects have it: empty matches all, none matches none."""
    if wanted is None:
        return False
    if unknown := set(wanted) - {"matchLabels", "matchExpressions"}:
        raise NotUnderstood(f"a label selector with {unknown}")
    labels = _labels_of(item)
    if any(labels.get(key) != value for key, value in (wanted.get("matchLabels") or {}).items()):
        return False
    return all(
        _holds(labels, rule["key"], rule["operator"].lower(), rule.get("values") or [])
        for rule in wanted.get("matchExpressions") or []
    )


def _labels(text: str) -> list[Selector]:
    found: list[Selector] = []
    for part in _parts(text):
        if match := _SET.fullmatch(part):
            key, operator, values = match[1], match[2], [value.strip() for value in match[3].split(",")]
        elif match := _EQUAL.fullmatch(part):
            key, operator, values = match[1], "notin" if match[2] == "!=" else "in", [match[3]]
        elif match := _THERE.fullmatch(part):
            key, operator, values = match[2], "doesnotexist" if match[1] else "exists", []
        else:
            raise bad_request(f"unable to parse requirement: {part}")
        found.append(
            lambda item, key=key, operator=operator, values=values: _holds(  # type: ignore[misc]
                _labels_of(item), key, operator, values
            )
        )
    return found


def _holds(labels: Mapping[str, str], key: str, operator: str, values: list[str]) -> bool:
    match operator:
        case "in":
            return key in labels and labels[key] in values
        case "notin":
            return labels.get(key) not in values
        case "exists":
            return key in labels
        case "doesnotexist":
            return key not in labels
    raise NotUnderstood(f"the label operator {operator}")


def _fields(kind: Kind, text: str) -> list[Selector]:
    found: list[Selector] = []
    for part in filter(None, text.split(",")):
        if not (match := re.fullmatch(r"([A-Za-z.]+)(==|=|!=)(.*)", part)):
            raise bad_request(f"invalid selector: '{part}'; can't understand '{part}'")
        path, operator, value = match.groups()
        if path not in kind.selectable:
            raise _no_such_field(kind, path)
        wanted = operator != "!="
        found.append(
            lambda item, path=path, value=value, wanted=wanted: (  # type: ignore[misc]
                (_field(item, path) == value) is wanted
            )
        )
    return found


def _no_such_field(kind: Kind, path: str) -> Refused:
    if kind.custom or kind.selectable - {"metadata.name", "metadata.namespace"} or kind.plural == "events":
        return bad_request(f"field label not supported: {path}")
    known = '"metadata.name", "metadata.namespace"'
    return bad_request(f'"{path}" is not a known field selector: only {known}')


def _field(item: Object, path: str) -> str:
    value: Any = item
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return "" if value is None else str(value)


def _labels_of(item: Object) -> Mapping[str, str]:
    return item["metadata"].get("labels") or {}


def _parts(text: str) -> list[str]:
    # Not at the commas inside parentheses.
    return [part for part in re.split(r",(?![^(]*\))", text) if text]
