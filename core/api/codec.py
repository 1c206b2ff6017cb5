"""JSON values to models and back.

Adapters parse bytes; from the parsed value on, this module knows the shapes. Structuring is strict about types (a string
`"false"` is no boolean) and silent about unknown fields, which an API server may add at any time. It checks shapes, not
bounds: an object in a cluster was admitted by rules that may have been older or newer than ours.
"""

import functools
import types
import typing
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from typing import Any, Final, TypeVar, Union

import attrs
import cattrs

from fivespot.core.api.common import Metadata, OwnerReference
from fivespot.core.api.duration import Duration
from fivespot.core.api.pruning import pruned
from fivespot.core.api.schema import Schema, Type, schema_of, wire_name
from fivespot.core.api.validate import problems_of
from fivespot.core.errors import InvalidSpec, shown
from fivespot.core.instant import format_instant, parse_instant

T = TypeVar("T")

_Hook = Callable[[Any, Any], Any]


@functools.lru_cache(maxsize=4096)
def shared(text: str) -> str:
    """The same text as one object: ten thousand machines say the same few hundred words, again and again."""
    return text


def decode(value: Any, model: type[T]) -> T:
    """Structure a parsed JSON value into a model. A null means absent; unknown fields are passed over.

    Raises:
        InvalidSpec: naming the field that cannot be read.
    """
    try:
        return _CONVERTER.structure(value, model)
    except Exception as error:  # the value is anybody's, and so is what goes wrong in it
        raise _refusal(value, model, error) from error


def decode_metadata(value: Any) -> Metadata:
    """Read `metadata`; what a server always sends may be missing in a file.

    Raises:
        InvalidSpec: naming the field that cannot be read.
    """
    if not isinstance(value, Mapping):
        raise InvalidSpec("metadata", value, "write a mapping with at least a name")
    get = value.get
    try:
        return Metadata(
            name=_text(get("name")),
            namespace=_text(get("namespace")),
            uid=_text(get("uid")),
            resource_version=_text(get("resourceVersion")),
            generation=_whole(get("generation") or 0, None),
            labels=_texts(get("labels") or {}, None),
            annotations=_texts(get("annotations") or {}, None),
            finalizers=tuple([_text(entry) for entry in _list(get("finalizers"))]),
            owners=tuple([_owner(entry) for entry in _list(get("ownerReferences"))]),
            created_at=_maybe_instant(get("creationTimestamp")),
            deleting_since=_maybe_instant(get("deletionTimestamp")),
        )
    except (TypeError, ValueError) as error:
        raise InvalidSpec("metadata", value, f"it cannot be read: {error}") from error


def encode(model: Any, *, nulls: bool = False) -> dict[str, Any]:
    """A model as a JSON value.

    With `nulls`, every field of an object is there, null where it has no value, so that a merge patch clears what is
    gone; inside lists, which a merge patch replaces whole, absent fields stay absent.
    """
    return _encode_object(model, schema_of(model.__class__), nulls=nulls)


def _refusal(value: Any, model: Any, error: Exception) -> InvalidSpec:
    if isinstance(error, InvalidSpec) and error.field:
        return error
    if not attrs.has(model):
        return InvalidSpec("", value, f"it cannot be read as {model.__name__}: {error}")
    # The error itself knows no path; the validator does.
    schema = schema_of(model)
    problems = problems_of(schema, pruned(schema, value))
    if problems:
        return problems[0]
    return InvalidSpec("", value, f"it cannot be read as {model.__name__}: {error}")


def _strict(expected: type) -> _Hook:
    def structure(value: Any, _: Any) -> Any:
        if value.__class__ is not expected:
            message = f"{shown(value)} is not a {expected.__name__}"
            raise TypeError(message)
        return value

    return structure


def _whole(value: Any, _: Any) -> int:
    if value.__class__ is int:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)  # JSON has one kind of number
    message = f"{shown(value)} is not a whole number"
    raise TypeError(message)


def _maybe_instant(value: Any) -> datetime | None:
    return None if value is None else parse_instant(value)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if value.__class__ is not str:
        message = f"{shown(value)} is not a text"
        raise TypeError(message)
    return str(value)


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        message = f"{shown(value)} is not a list"
        raise TypeError(message)
    return value


def _texts(value: Any, _: Any) -> Mapping[str, str]:
    """A mapping of strings, such as labels; a null in it is a label without a value, as Kubernetes reads it."""
    found = _open(value, None)
    for text in found.values():
        if text.__class__ is not str:
            if text is None:
                return {key: _text(item) for key, item in found.items()}
            message = f"{shown(text)} is not a text"
            raise TypeError(message)
    return found


def _open(value: Any, _: Any) -> Mapping[str, Any]:
    # The class first: asking an abstract class costs more than the rest of a small object.
    if value.__class__ is not dict and not isinstance(value, Mapping):
        message = f"{shown(value)} is not a mapping"
        raise TypeError(message)
    found: Mapping[str, Any] = value
    return found


def _owner(value: Any) -> OwnerReference:
    get = _open(value, None).get
    return OwnerReference(
        api_version=_text(get("apiVersion")),
        kind=_text(get("kind")),
        name=_text(get("name")),
        uid=_text(get("uid")),
        controller=get("controller") is True,
    )


def _make_converter() -> cattrs.Converter:
    converter = cattrs.Converter(detailed_validation=False)
    converter.register_structure_hook(str, _strict(str))
    converter.register_structure_hook(bool, _strict(bool))
    converter.register_structure_hook(int, _whole)
    converter.register_structure_hook(datetime, lambda value, _: parse_instant(value))
    converter.register_structure_hook(Duration, lambda value, _: Duration.parse(value))
    converter.register_structure_hook(Metadata, lambda value, _: decode_metadata(value))
    converter.register_structure_hook_factory(
        lambda hint: isinstance(hint, type) and issubclass(hint, Enum), _enum_hook
    )
    converter.register_structure_hook_factory(
        lambda hint: _origin(hint) is Mapping,
        lambda hint: _open if typing.get_args(hint)[1] is Any else _texts,
    )
    # cattrs' own hooks for these look their element's hook up for every value, and know no null that means absent.
    converter.register_structure_hook_factory(
        lambda hint: _origin(hint) is tuple, lambda hint: _tuple_hook(converter, hint)
    )
    converter.register_structure_hook_factory(
        lambda hint: attrs.has(hint) and hint not in (Duration, Metadata),
        lambda model: _model_hook(converter, model),
    )
    return converter


def _origin(hint: Any) -> Any:
    return typing.get_origin(hint)


def _enum_hook(hint: type[Enum]) -> _Hook:
    members = {member.value: member for member in hint}
    return lambda value, _: members[value]


def _tuple_hook(converter: cattrs.Converter, hint: Any) -> _Hook:
    inner = typing.get_args(hint)[0]
    structure = converter.get_structure_hook(inner)

    def of_list(value: Any, _: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            message = f"{shown(value)} is not a list"
            raise TypeError(message)
        return tuple([structure(item, inner) for item in value])

    return of_list


def _model_hook(converter: cattrs.Converter, model: type) -> _Hook:
    hints = typing.get_type_hints(model)
    plan = {}
    for field in attrs.fields(model):
        hint = _without_none(hints[field.name])
        # What is already what the model wants needs no call; None is never that, since null means absent.
        exact = hint if hint in (str, bool, int) else None
        plan[wire_name(field)] = (field.name, exact, converter.get_structure_hook(hint), hint)
    known = plan.get

    def of_object(value: Any, _: Any) -> Any:
        found = {}
        # By what is there: most objects say only a part of what their model knows.
        for wire, item in _open(value, None).items():
            entry = known(wire)
            if entry is None or item is None:
                continue
            name, exact, structure, hint = entry
            if item.__class__ is not exact:
                item = structure(item, hint)  # noqa: PLW2901 - of the model from here on
            found[name] = shared(item) if exact is str else item
        return model(**found)

    return of_object


def _without_none(hint: Any) -> Any:
    if _origin(hint) not in (Union, types.UnionType):
        return hint
    (inner,) = (arg for arg in typing.get_args(hint) if arg is not types.NoneType)
    return inner


def _encode_object(model: Any, schema: Schema, *, nulls: bool) -> dict[str, Any]:
    found = {}
    for name, child in schema.properties.items():
        value = getattr(model, child.attribute)
        if value is not None:
            found[name] = _encode(value, child, nulls=nulls)
        elif nulls:
            found[name] = None
    return found


def _encode(value: Any, schema: Schema, *, nulls: bool) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return format_instant(value)
    if isinstance(value, Duration):
        return value.text
    if schema.type is Type.OBJECT:
        return _encode_object(value, schema, nulls=nulls)
    if schema.type is Type.ARRAY and schema.item is not None:
        return [_encode(item, schema.item, nulls=False) for item in value]
    return value


_CONVERTER: Final = _make_converter()
