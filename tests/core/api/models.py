"""Hypothesis strategies for any model, read off its annotations."""

import types
import typing
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Union

import attrs
from hypothesis import strategies as st

from fivespot.core.api.duration import Duration

TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
"""Whatever a reader of JSON may hand over."""

_INSTANTS = st.datetimes(datetime(1000, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001
_DURATIONS = st.builds(
    lambda number, unit: Duration.parse(f"{number}{unit}"), st.integers(0, 24), st.sampled_from("smh")
)


def instances(model: Any) -> st.SearchStrategy[Any]:
    """Any value of a model: its shape, not its bounds. Its `metadata`, if it has one, is left out."""
    hints = typing.get_type_hints(model)
    fields = {field.name: _of(hints[field.name]) for field in attrs.fields(model) if field.name != "metadata"}
    return st.builds(model, **fields)


def _of(hint: Any) -> st.SearchStrategy[Any]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return st.none() | _of(arguments[0])
    if origin is tuple:
        return st.lists(_of(arguments[0]), max_size=3).map(tuple)
    if origin is Mapping:
        return st.dictionaries(TEXTS, JSON if arguments[1] is Any else TEXTS, max_size=3)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(hint)
    scalars = {
        str: TEXTS,
        bool: st.booleans(),
        int: st.integers(-(2**63), 2**63 - 1),
        datetime: _INSTANTS,
        Duration: _DURATIONS,
    }
    return scalars[hint] if hint in scalars else instances(hint)
