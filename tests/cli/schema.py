"""As much of JSON Schema 2020-12 as docs/simulate.schema.json uses."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_KNOWN = {
    "$defs", "$ref", "$schema", "additionalProperties", "description", "enum", "format", "items", "minimum", "oneOf",
    "pattern", "properties", "required", "title", "type",
}  # fmt: skip


def faults(root: Mapping[str, Any], value: Any) -> list[str]:
    """What about a value is not as the schema says, each with its path."""
    return list(_faults(root, root, value, "$"))


def _faults(root: Mapping[str, Any], schema: Mapping[str, Any], value: Any, path: str) -> Iterator[str]:
    assert schema.keys() <= _KNOWN, f"this checker does not know {schema.keys() - _KNOWN}"
    if "$ref" in schema:
        yield from _faults(root, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], value, path)
    if "oneOf" in schema:
        tried = [list(_faults(root, branch, value, path)) for branch in schema["oneOf"]]
        if sum(not found for found in tried) != 1:
            yield f"{path}: not exactly one of: {tried}"
    if "type" in schema and not _is_of(schema["type"], value):
        yield f"{path}: {value!r} is no {schema['type']}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is none of {schema['enum']}"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{path}: {value!r} does not match {schema['pattern']}"
    if "minimum" in schema and value < schema["minimum"]:
        yield f"{path}: {value!r} is less than {schema['minimum']}"
    yield from _inside(root, schema, value, path)


def _inside(root: Mapping[str, Any], schema: Mapping[str, Any], value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict) and "properties" in schema:
        yield from (f"{path}: {name} is missing" for name in schema["required"] if name not in value)
        yield from (f"{path}: {name} is unknown" for name in value if name not in schema["properties"])
        for name, below in schema["properties"].items():
            if name in value:
                yield from _faults(root, below, value[name], f"{path}.{name}")
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _faults(root, schema["items"], item, f"{path}[{index}]")


def _is_of(types: str | list[str], value: Any) -> bool:
    names = [types] if isinstance(types, str) else types
    if isinstance(value, bool):
        return "boolean" in names
    return any(isinstance(value, _TYPES[name]) for name in names)
