"""Reads the spec of a provider kind by its model: bounds and rules first, then values."""

from collections.abc import Mapping
from typing import Any, TypeVar

from fivespot.core.api.codec import decode
from fivespot.core.api.schema import schema_of
from fivespot.core.api.validate import problems_of

T = TypeVar("T")


def read(spec: Mapping[str, Any], model: type[T]) -> T:
    """The spec as its model.

    Raises:
        InvalidSpec: the first thing that is wrong with it; the field is relative to the spec.
    """
    of: type = model
    problems = problems_of(schema_of(of), spec)
    if problems:
        raise problems[0]
    return decode(spec, model)
