"""Our own admission: the same verdict on a document that the API server gives, with a message for people.

It walks the schema tree that the CRD is made from. What only one of the two can know is listed in the parity test.
"""

import difflib
import functools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fivespot.core.api.openapi import forbidden_rule
from fivespot.core.api.schema import Bounds, Rule, Schema, Type, json_path
from fivespot.core.errors import InvalidSpec
from fivespot.core.instant import parse_instant

_INT64 = 2**63
_FORMATS: Mapping[str, Callable[[str], object]] = {"date-time": parse_instant}


def problems_of(schema: Schema, value: Any, path: str = "") -> tuple[InvalidSpec, ...]:
    """Everything in `value` that the schema refuses, in document order; empty when it is accepted."""
    return tuple(_check(schema, value, path))


def broken_transitions(schema: Schema, new: Any, old: Any) -> tuple[InvalidSpec, ...]:
    """What the root's transition rules refuse about replacing `old` by `new`, both already valid by themselves."""
    return tuple(
        InvalidSpec(rule.field, _at(new, rule.field), rule.remedy)
        for rule in schema.bounds.rules
        if rule.transition and not rule.holds(new, old)
    )


def _check(schema: Schema, value: Any, path: str) -> Iterator[InvalidSpec]:
    problem = _TYPE_CHECKS[schema.type](value)
    if problem:
        yield InvalidSpec(path, value, problem)
        return
    # What is too long is not looked into: a hundred thousand bad entries are one problem.
    found = [*_bounds(schema.bounds, value, path)]
    found = found or [*_repeated(schema.bounds, value, path), *_below(schema, value, path)]
    yield from found
    if not found:
        # Rules may assume what types and bounds say, as CEL does.
        yield from _rules(schema.bounds, value, path)


def _below(schema: Schema, value: Any, path: str) -> Iterator[InvalidSpec]:
    if schema.type is Type.OBJECT:
        yield from _properties(schema, value, path)
    elif schema.type is Type.MAP and schema.item is not None:
        for key, item in value.items():
            if item is not None:
                yield from _check(schema.item, item, json_path(path, key))
    elif schema.type is Type.ARRAY and schema.item is not None:
        for index, item in enumerate(value):
            yield from _check(schema.item, item, json_path(path, index))


def _properties(schema: Schema, value: Mapping[str, Any], path: str) -> Iterator[InvalidSpec]:
    for name in schema.required:
        # The server fills defaults in before it looks for what is missing.
        if value.get(name) is None and schema.properties[name].default is None:
            text = schema.properties[name].description
            yield InvalidSpec(
                json_path(path, name),
                None,
                f"this field is missing: {text[:1].lower()}{text[1:].rstrip('.')}",
            )
    for name, item in value.items():
        child = schema.properties.get(name)
        if child is None and name not in schema.bounds.forbidden:
            yield InvalidSpec(json_path(path, name), item, _unknown(name, schema))
        elif child is not None and item is not None:
            yield from _check(child, item, json_path(path, name))


def _unknown(name: str, schema: Schema) -> str:
    near = difflib.get_close_matches(name, schema.properties, n=1)
    guess = f"did you mean `{near[0]}`?" if near else f"known here: {', '.join(schema.properties)}"
    return f"unknown field; {guess}"


def _rules(bounds: Bounds, value: Any, path: str) -> Iterator[InvalidSpec]:
    for rule in (*bounds.rules, *(forbidden_rule(name) for name in bounds.forbidden)):
        if not rule.transition and not rule.holds(value):
            yield _refused_by(rule, value, path)


def _refused_by(rule: Rule, value: Any, path: str) -> InvalidSpec:
    field = ".".join(part for part in (path, rule.field) if part)
    return InvalidSpec(field, _at(value, rule.field), rule.remedy)


def _at(value: Any, field: str) -> Any:
    for step in field.split(".") if field else ():
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    # Python's `$` also matches before a final newline, RE2's does not.
    return re.compile(re.sub(r"\$$", r"\\Z", pattern))


def _bounds(bounds: Bounds, value: Any, path: str) -> Iterator[InvalidSpec]:
    for holds, remedy in _BOUND_CHECKS:
        if not holds(bounds, value):
            yield InvalidSpec(path, value, bounds.remedy or remedy(bounds))
            return


def _repeated(bounds: Bounds, value: Any, path: str) -> Iterator[InvalidSpec]:
    seen = set()
    for index, item in enumerate(value if bounds.map_keys else ()):
        key = tuple(item.get(name) for name in bounds.map_keys) if isinstance(item, Mapping) else ()
        if not all(isinstance(part, str) for part in key):
            continue  # it is refused for that
        if key and key in seen:
            names = " and ".join(bounds.map_keys)
            yield InvalidSpec(json_path(path, index), item, f"each {names} may occur once")
        seen.add(key)


def _is_format(bounds: Bounds, value: Any) -> bool:
    if bounds.format is None:
        return True
    try:
        _FORMATS[bounds.format](value)
    except ValueError:
        return False
    return True


def _size_within(low: str, high: str) -> Callable[[Bounds, Any], bool]:
    def holds(bounds: Bounds, value: Any) -> bool:
        least, most = getattr(bounds, low), getattr(bounds, high)
        return (least is None or len(value) >= least) and (most is None or len(value) <= most)

    return holds


_BOUND_CHECKS: tuple[tuple[Callable[[Bounds, Any], bool], Callable[[Bounds], str]], ...] = (
    (
        lambda b, v: not b.enum or v in b.enum,
        lambda b: f"write one of {', '.join(b.enum)}",
    ),
    (
        lambda b, v: not isinstance(v, str) or _size_within("min_length", "max_length")(b, v),
        lambda b: f"write {b.min_length or 0} to {b.max_length} characters",
    ),
    (
        lambda b, v: not isinstance(v, list) or _size_within("min_items", "max_items")(b, v),
        lambda b: f"write {b.min_items or 0} to {b.max_items} entries",
    ),
    (
        lambda b, v: not isinstance(v, Mapping) or b.max_properties is None or len(v) <= b.max_properties,
        lambda b: f"write at most {b.max_properties} keys",
    ),
    (
        lambda b, v: (b.minimum is None or v >= b.minimum) and (b.maximum is None or v <= b.maximum),
        lambda b: f"write a whole number from {b.minimum} to {b.maximum}",
    ),
    (
        lambda b, v: b.pattern is None or _compiled(b.pattern).search(v) is not None,
        lambda b: f"it must match {b.pattern}",
    ),
    (
        _is_format,
        lambda b: f"write a {b.format}",
    ),
)


def _mapping_type(value: Any) -> str | None:
    if not isinstance(value, Mapping):
        return "write a mapping (key: value)"
    if any(not isinstance(key, str) for key in value):
        return "every key must be a string: quote it"
    return None


def _integer_type(value: Any) -> str | None:
    # JSON has one kind of number: 50.0 is a whole one.
    whole = isinstance(value, float) and value.is_integer()
    if isinstance(value, bool) or not (whole or isinstance(value, int)):
        return "write a whole number, without quotes"
    return None if -_INT64 <= value < _INT64 else "the number does not fit in 64 bits"


_TYPE_CHECKS: Mapping[Type, Callable[[Any], str | None]] = {
    Type.OBJECT: _mapping_type,
    Type.MAP: _mapping_type,
    Type.OPEN: _mapping_type,
    Type.ARRAY: lambda value: None if isinstance(value, list) else "write a list (- item)",
    Type.STRING: lambda value: None if isinstance(value, str) else "write a text: quote it",
    Type.INTEGER: _integer_type,
    Type.BOOLEAN: lambda value: None if isinstance(value, bool) else "write true or false, without quotes",
}
