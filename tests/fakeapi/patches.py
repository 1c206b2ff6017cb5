"""RFC 7386 and RFC 6902: a document and a patch make another document; neither is changed."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from tests.fakeapi.refusals import bad_request, unprocessable


def merged(document: Any, patch: Any) -> Any:
    """A merge patch applied: null removes, mappings merge, everything else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    target = dict(document) if isinstance(document, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = merged(target.get(key), value)
    return target


def operated(document: Any, operations: Any) -> Any:
    """A JSON patch applied, all of it or nothing.

    Raises:
        Refused: it is no JSON patch, a `test` fails, or a path is not there.
    """
    if not isinstance(operations, list):
        raise bad_request(
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
        )
    result = deepcopy(document)
    for operation in operations:
        if not isinstance(operation, dict):
            raise bad_request(
                "error decoding patch: json: cannot unmarshal into Go value of type handlers.jsonPatchOp"
            )
        try:
            result = _operate(result, operation)
        except (LookupError, TypeError, ValueError) as error:
            raise unprocessable() from error
    return result


def _operate(document: Any, operation: Mapping[str, Any]) -> Any:
    kind, path = operation["op"], _pointer(operation["path"])
    match kind:
        case "test":
            if _there(document, path) != operation.get("value"):
                raise ValueError(path)
        case "remove":
            _remove(document, path)
        case "replace":
            if not path:
                return operation["value"]
            # The real server's library replaces what is not there, in a mapping.
            if isinstance(_get(document, path[:-1]), list):
                _remove(document, path)
            _add(document, path, operation["value"])
        case "add":
            if not path:
                return operation["value"]
            _add(document, path, operation["value"])
        case "move" | "copy":
            source = _pointer(operation["from"])
            value = deepcopy(_get(document, source))
            if kind == "move":
                _remove(document, source)
            _add(document, path, value)
        case _:
            raise ValueError(kind)
    return document


def _pointer(text: str) -> list[str]:
    if text and not text.startswith("/"):
        raise ValueError(text)
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _index(container: list[Any], key: str, *, end: int) -> int:
    number = int(key)
    if not 0 <= number < end or str(number) != key:
        raise IndexError(key)
    return number


def _get(document: Any, path: list[str]) -> Any:
    for key in path:
        document = document[_index(document, key, end=len(document)) if isinstance(document, list) else key]
    return document


def _there(document: Any, path: list[str]) -> Any:
    """The value, or None where a mapping has no such key."""
    container = _get(document, path[:-1])
    return container.get(path[-1]) if path and isinstance(container, dict) else _get(document, path)


def _remove(document: Any, path: list[str]) -> None:
    container = _get(document, path[:-1])
    if isinstance(container, list):
        del container[_index(container, path[-1], end=len(container))]
    else:
        del container[path[-1]]


def _add(document: Any, path: list[str], value: Any) -> None:
    container, key = _get(document, path[:-1]), path[-1]
    if isinstance(container, list):
        place = len(container) if key == "-" else _index(container, key, end=len(container) + 1)
        container.insert(place, value)
    else:
        container[key] = value
