"""What an API server takes out of a document before it looks at it: nulls, and on request what it does not know."""

from collections.abc import Mapping
from typing import Any

from fivespot.core.api.schema import Schema, Type


def without_nulls(schema: Schema, value: Any) -> Any:
    """A copy of `value` without the fields that are null: a null means absent.

    A null that is an element of a list stays, and is refused by whoever checks the list; so does everything in an
    object whose fields are not ours to name. A value of another type than the schema's is returned as it is.
    """
    return _pruned(schema, value, unknown=True)


def pruned(schema: Schema, value: Any) -> Any:
    """A copy of `value` without nulls and without fields that the schema does not name."""
    return _pruned(schema, value, unknown=False)


def _pruned(schema: Schema, value: Any, *, unknown: bool) -> Any:
    if schema.type is Type.OBJECT and isinstance(value, Mapping):
        known = schema.properties
        return {
            name: _pruned(known[name], item, unknown=unknown) if name in known else item
            for name, item in value.items()
            if item is not None and (unknown or name in known)
        }
    if schema.type is Type.MAP and isinstance(value, Mapping):
        return {name: item for name, item in value.items() if item is not None}
    if schema.type is Type.ARRAY and schema.item is not None and isinstance(value, list):
        return [_pruned(schema.item, item, unknown=unknown) for item in value]
    return value
