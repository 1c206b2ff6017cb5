"""The schema tree as the structural OpenAPI schema of a CustomResourceDefinition."""

from typing import Any

from fivespot.core.api.schema import Bounds, Rule, Schema, Type

_KEYWORDS = (
    ("pattern", "pattern"),
    ("format", "format"),
    ("min_length", "minLength"),
    ("max_length", "maxLength"),
    ("minimum", "minimum"),
    ("maximum", "maximum"),
    ("min_items", "minItems"),
    ("max_items", "maxItems"),
    ("max_properties", "maxProperties"),
)


def openapi(schema: Schema) -> dict[str, Any]:
    """The schema as the API server reads it; keys in a stable order."""
    found: dict[str, Any] = {}
    if schema.description:
        found["description"] = schema.description
    found.update(_of_type(schema))
    found.update(_of_bounds(schema.bounds))
    if schema.default is not None:
        found["default"] = schema.default
    return found


def _of_type(schema: Schema) -> dict[str, Any]:
    if schema.type is Type.OPEN:
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    if schema.type is Type.MAP and schema.item is not None:
        return {"type": "object", "additionalProperties": openapi(schema.item)}
    if schema.type is Type.ARRAY and schema.item is not None:
        return {"type": "array", "items": openapi(schema.item)}
    if schema.type is Type.OBJECT:
        return _of_object(schema)
    return {"type": schema.type.value}


def _of_object(schema: Schema) -> dict[str, Any]:
    properties = {name: openapi(child) for name, child in schema.properties.items()}
    # A structural schema would prune what it does not name; to refuse a field it has to be named first.
    for name in schema.bounds.forbidden:
        properties[name] = {"description": "Refused.", "type": "string", "maxLength": 253}
    found: dict[str, Any] = {"type": "object", "properties": properties}
    if schema.required:
        found["required"] = list(schema.required)
    return found


def forbidden_rule(name: str) -> Rule:
    """The rule behind `Bounds.forbidden`."""
    return Rule(
        cel=f"!has(self.{name})",
        holds=lambda value: name not in value or value[name] is None,
        remedy=f"leave `{name}` out: it is the machine's",
        field=name,
    )


def _of_bounds(bounds: Bounds) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for attribute, keyword in _KEYWORDS:
        value = getattr(bounds, attribute)
        if value is not None:
            found[keyword] = value
    if bounds.enum:
        found["enum"] = list(bounds.enum)
    if bounds.map_keys:
        found["x-kubernetes-list-type"] = "map"
        found["x-kubernetes-list-map-keys"] = list(bounds.map_keys)
    rules = (*bounds.rules, *(forbidden_rule(name) for name in bounds.forbidden))
    if rules:
        found["x-kubernetes-validations"] = [_of_rule(rule) for rule in rules]
    return found


def _of_rule(rule: Rule) -> dict[str, Any]:
    found: dict[str, Any] = {"rule": rule.cel, "message": rule.remedy}
    if rule.field:
        found["fieldPath"] = f".{rule.field}"
    return found
