"""What the schema of a custom kind does to an object: unknown fields go, defaults come, wrong values are refused.

Rules in CEL (`x-kubernetes-validations`) and formats are not looked at: the real server alone can judge those.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from tests.fakeapi.kinds import Kind
from tests.fakeapi.refusals import Cause, Object, invalid

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}
_Holds: TypeAlias = Callable[[Any, Any], bool]
_BOUNDS: tuple[tuple[str, _Holds, str], ...] = (
    ("minimum", lambda value, bound: value >= bound, "greater than or equal to"),
    ("maximum", lambda value, bound: value <= bound, "less than or equal to"),
)
_SIZES: tuple[tuple[str, _Holds, str], ...] = (
    ("minLength", lambda size, bound: size >= bound, "at least {} chars long"),
    ("maxLength", lambda size, bound: size <= bound, "at most {} chars long"),
    ("minItems", lambda size, bound: size >= bound, "at least {} items"),
    ("maxItems", lambda size, bound: size <= bound, "at most {} items"),
    ("minProperties", lambda size, bound: size >= bound, "at least {} properties"),
    ("maxProperties", lambda size, bound: size <= bound, "at most {} properties"),
)
_SYSTEM = ("apiVersion", "kind", "metadata")


def shaped(kind: Kind, version: str, item: Object) -> Object:
    """The object without what the schema does not know, and with its defaults."""
    if (schema := kind.schemas.get(version)) is None:
        return item
    kept = {key: item[key] for key in _SYSTEM if key in item}
    return {**_shaped(schema, {key: value for key, value in item.items() if key not in _SYSTEM}), **kept}


def check(kind: Kind, version: str, item: Object) -> None:
    """Refuse an object that its schema does not allow.

    Raises:
        Refused: with every cause.
    """
    if (schema := kind.schemas.get(version)) is None:
        return
    body = {key: value for key, value in item.items() if key not in _SYSTEM}
    if causes := list(_wrong(schema, body, "")):
        raise invalid(kind.group, kind.kind, item["metadata"].get("name", ""), *causes)


def _shaped(schema: Object, value: Any) -> Any:
    if isinstance(value, list):
        items = schema.get("items") or {}
        return [_shaped(items, item) for item in value]
    if not isinstance(value, dict):
        return value
    known, more = schema.get("properties") or {}, schema.get("additionalProperties")
    embedded = _SYSTEM if schema.get("x-kubernetes-embedded-resource") else ()
    kept = schema.get("x-kubernetes-preserve-unknown-fields") or more is True
    result = {}
    for name, child in value.items():
        if name in known:
            # A null stands for a field that is left out, where the schema does not allow it.
            if child is not None or known[name].get("nullable"):
                result[name] = _shaped(known[name], child)
        elif isinstance(more, dict):
            result[name] = _shaped(more, child)
        elif kept or name in embedded:
            result[name] = child
    for name, child in known.items():
        if name not in result and "default" in child:
            result[name] = _shaped(child, child["default"])
    return result


def _wrong(schema: Object, value: Any, at: str) -> Iterator[Cause]:
    if value is None and schema.get("nullable"):
        return
    wanted = schema.get("type")
    if schema.get("x-kubernetes-int-or-string"):
        fits = isinstance(value, int | str) and not isinstance(value, bool)
        wanted = "integer,string"
    else:
        fits = wanted is None or (
            isinstance(value, _TYPES[wanted]) and (wanted == "boolean" or not isinstance(value, bool))
        )
    if not fits:
        found = next((name for name, types in _TYPES.items() if isinstance(value, types)), "null")
        shown = f'"{found}"'
        said = f"{at} in body must be of type {wanted}: {shown}"
        yield "FieldValueTypeInvalid", at, f"Invalid value: {shown}: {said}"
        return
    yield from _out_of_bounds(schema, value, at)
    if isinstance(value, list):
        yield from _twice(schema, value, at)
        for place, item in enumerate(value):
            yield from _wrong(schema.get("items") or {}, item, f"{at}[{place}]")
    elif isinstance(value, dict):
        properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
        for name in schema.get("required") or ():
            if name not in value:
                yield "FieldValueRequired", f"{at}.{name}".lstrip("."), "Required value"
        for name, child in value.items():
            inner = properties.get(name) or (more if isinstance(more, dict) else {})
            yield from _wrong(inner, child, f"{at}.{name}".lstrip("."))


def _out_of_bounds(schema: Object, value: Any, at: str) -> Iterator[Cause]:
    if (choices := schema.get("enum")) and value not in choices:
        listed = ", ".join(f'"{choice}"' for choice in choices)
        yield "FieldValueNotSupported", at, f'Unsupported value: "{value}": supported values: {listed}'
    if isinstance(value, str) and (pattern := schema.get("pattern")) and not re.search(pattern, value):
        yield "FieldValueInvalid", at, f"Invalid value: \"{value}\": {at} in body should match '{pattern}'"
    if isinstance(value, str | list | dict):
        for name, holds, words in _SIZES:
            if name in schema and not holds(len(value), schema[name]):
                said = f"{at} in body should have {words.format(schema[name])}"
                yield "FieldValueInvalid", at, f"Invalid value: {said}"
    elif isinstance(value, int | float):
        for name, holds, words in _BOUNDS:
            if name in schema and not holds(value, schema[name]):
                said = f"{at} in body should be {words} {schema[name]}"
                yield "FieldValueInvalid", at, f"Invalid value: {value}: {said}"


def _twice(schema: Object, value: list[Any], at: str) -> Iterator[Cause]:
    keys = schema.get("x-kubernetes-list-map-keys")
    if schema.get("x-kubernetes-list-type") not in ("map", "set"):
        return
    seen: list[Any] = []
    for place, item in enumerate(value):
        found = {key: item.get(key) for key in keys} if keys and isinstance(item, dict) else item
        if found in seen:
            shown = str(found).replace("'", '"').replace(": ", ":")
            yield "FieldValueDuplicate", f"{at}[{place}]", f"Duplicate value: {shown}"
        seen.append(found)
