"""The vocabulary of bounds: what an attrs model says about its fields, and the tree that is read off a model.

A bound is stated once, with `prop` on the model's field or `@rules` on its class. From the tree come the CRD's OpenAPI
schema (`openapi.py`), the API reference (`reference.py`) and our own validator (`validate.py`), so the three cannot
disagree. CEL rules have a second face in Python, side by side; the parity test holds the two against a real API server.
"""

import enum
import functools
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Union

import attrs

from fivespot.core.api.duration import Duration

_META = "fivespot"

# The server's own check of `format: date-time` lets odd things pass (any character before the fraction, an offset of
# 99 hours), and reads no year before 1; `core/instant.py` and this pattern read the same texts.
_INSTANT: Mapping[str, Any] = {
    "format": "date-time",
    "pattern": (
        "^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?"
        "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
    ),
    "max_length": 35,
    "remedy": "write an RFC 3339 instant with an offset, such as 2026-03-02T09:00:00Z",
}


@attrs.frozen(kw_only=True)
class Rule:
    """One fact that a pattern cannot say, in both languages.

    Attributes:
        cel: the rule as CEL over `self` (and `oldSelf`), evaluated by the API server.
        holds: the same over the plain decoded value (and the old value, for a transition rule).
        remedy: what to do when it does not hold; the server's message too.
        field: path below the value that the message should name, empty for the value itself.
        transition: whether the rule compares with the stored object; a file alone never breaks it.
    """

    cel: str
    holds: Callable[..., bool]
    remedy: str
    field: str = ""
    transition: bool = False


@attrs.frozen(kw_only=True)
class Bounds:
    """What a value must satisfy beyond its type. Patterns are written for RE2 and Python alike, anchored."""

    pattern: str | None = None
    remedy: str = ""
    format: str | None = None
    min_length: int | None = None
    max_length: int | None = None
    minimum: int | None = None
    maximum: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    max_properties: int | None = None
    enum: tuple[str, ...] = ()
    map_keys: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    item: "Bounds | None" = None


NO_BOUNDS = Bounds()


@attrs.frozen(kw_only=True)
class _Prop:
    description: str
    bounds: Bounds
    wire: str | None
    default: Any


def prop(
    description: str,
    *,
    bounds: Bounds = NO_BOUNDS,
    default: Any = attrs.NOTHING,
    wire: str | None = None,
    server_default: Any = None,
) -> Any:
    """An attrs field with its description and bounds.

    `default` is the Python default; `server_default` the JSON value that the API server fills in when the field is
    absent (the Python default must mean the same). `wire` overrides the camelCase name.
    """
    meta = _Prop(description=description, bounds=bounds, wire=wire, default=server_default)
    return attrs.field(default=default, kw_only=True, metadata={_META: meta})


def rules(*given: Rule) -> Callable[[type], type]:
    """Class decorator: rules over the whole object of an attrs model."""

    def mark(cls: type) -> type:
        cls.__fivespot_rules__ = given  # type: ignore[attr-defined]
        return cls

    return mark


class Type(enum.Enum):
    """OpenAPI's types, and the two kinds of object whose keys are not ours to name."""

    OBJECT = "object"
    MAP = "map"
    OPEN = "open"
    ARRAY = "array"
    STRING = "string"
    INTEGER = "integer"
    BOOLEAN = "boolean"


@attrs.frozen(kw_only=True)
class Schema:
    """One node of the tree read off a model. `properties` is keyed by wire name, in the model's order."""

    type: Type
    description: str = ""
    bounds: Bounds = NO_BOUNDS
    default: Any = None
    required: tuple[str, ...] = ()
    properties: Mapping[str, "Schema"] = attrs.field(factory=dict)
    item: "Schema | None" = None
    attribute: str = ""


def wire_name(field: "attrs.Attribute[Any]") -> str:
    """The JSON name of a model's field: camelCase, or what `prop(wire=...)` says."""
    meta: _Prop | None = field.metadata.get(_META)
    if meta is not None and meta.wire:
        return meta.wire
    return re.sub("_([a-z])", lambda match: match.group(1).upper(), field.name)


@functools.cache
def schema_of(model: type) -> Schema:
    """The schema tree of an attrs model."""
    hints = typing.get_type_hints(model)
    properties = {}
    required = []
    for field in attrs.fields(model):
        meta: _Prop | None = field.metadata.get(_META)
        if meta is None:
            continue  # `metadata` is the API server's own
        name = wire_name(field)
        node = _of_type(hints[field.name], meta.bounds)
        properties[name] = attrs.evolve(
            node, description=meta.description or node.description, default=meta.default, attribute=field.name
        )
        if field.default is attrs.NOTHING:
            required.append(name)
    return Schema(
        type=Type.OBJECT,
        description=(model.__doc__ or "").strip(),
        bounds=Bounds(rules=getattr(model, "__fivespot_rules__", ())),
        required=tuple(required),
        properties=properties,
    )


def _of_type(hint: Any, bounds: Bounds) -> Schema:
    """The node for one annotation."""
    origin = typing.get_origin(hint)
    if origin in (Union, types.UnionType):
        inner = [arg for arg in typing.get_args(hint) if arg is not type(None)]
        return _of_type(inner[0], bounds)
    if origin is tuple:
        item = _of_type(typing.get_args(hint)[0], bounds.item or NO_BOUNDS)
        return Schema(type=Type.ARRAY, bounds=bounds, item=item)
    if origin is not None and issubclass(origin, Mapping):
        value = typing.get_args(hint)[1]
        if value is Any:
            return Schema(type=Type.OPEN, bounds=bounds)
        return Schema(type=Type.MAP, bounds=bounds, item=_of_type(value, bounds.item or NO_BOUNDS))
    if attrs.has(hint) and hint is not Duration:
        node = schema_of(hint)
        merged = attrs.evolve(bounds, rules=node.bounds.rules + bounds.rules)
        return attrs.evolve(node, bounds=merged)
    return _of_scalar(hint, bounds)


def _of_scalar(hint: Any, bounds: Bounds) -> Schema:
    if hint is Duration:
        return Schema(type=Type.STRING, bounds=_and(bounds, Duration.BOUNDS))
    if hint is datetime:
        return Schema(type=Type.STRING, bounds=_and(bounds, _INSTANT))
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return Schema(
            type=Type.STRING, bounds=attrs.evolve(bounds, enum=tuple(member.value for member in hint))
        )
    kinds = {str: Type.STRING, int: Type.INTEGER, bool: Type.BOOLEAN}
    if hint not in kinds:
        message = f"no schema for {hint!r}"
        raise TypeError(message)
    return Schema(type=kinds[hint], bounds=bounds)


def _and(bounds: Bounds, more: Mapping[str, Any]) -> Bounds:
    """`bounds` with what a scalar type brings itself."""
    extra = {name: value for name, value in more.items() if name != "rule"}
    more_rules = (Rule(**more["rule"]),) if "rule" in more else ()
    return attrs.evolve(bounds, **extra, rules=(*bounds.rules, *more_rules))


def json_path(parent: str, name: str | int) -> str:
    """`parent` and one step below it, as messages write paths: `spec.windows[0].start`."""
    if isinstance(name, int):
        return f"{parent}[{name}]"
    return f"{parent}.{name}" if parent else name


def walk(schema: Schema, path: str = "") -> Sequence[tuple[str, Schema]]:
    """Every node of the tree with its path, parents first; `[]` stands for the items of a list or map."""
    found = [(path, schema)]
    for name, child in schema.properties.items():
        found.extend(walk(child, json_path(path, name)))
    if schema.item is not None:
        found.extend(walk(schema.item, f"{path}[]"))
    return found
