"""What the server answers instead of an object: Status bodies in the real server's words, and two that are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Object: TypeAlias = dict[str, Any]
"""One object as decoded JSON. Whatever is stored is never changed in place."""

Cause: TypeAlias = tuple[str, str, str]
"""Reason, field and message, as in a Status' `details.causes`."""


class Refused(Exception):  # noqa: N818 - what the server does, not a defect
    """The request is answered with a Status."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Object | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        metadata: Object | None = None,
    ) -> None:
        super().__init__(code, reason, message)
        self.code = code
        self.headers = dict(headers or {})
        self.status: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata or {},
            "status": "Failure",
            "message": message,
            **({"reason": reason} if reason else {}),
            **({} if details is None else {"details": details}),
            "code": code,
        }


class NotServed(Exception):  # noqa: N818
    """No such path: the answer is a web server's, in plain text."""


class NotUnderstood(Exception):  # noqa: N818
    """The fake does not know what the real server would do: a test asks for more than it can."""


def label(group: str, plural: str) -> str:
    """`leases.coordination.k8s.io`, or `pods`."""
    return f"{plural}.{group}" if group else plural


def details(name: str, group: str, kind: str, **more: Any) -> Object:
    """A Status' details; what is empty is left out, as in Go."""
    named = {"name": name, "group": group, "kind": kind, **more}
    return {key: value for key, value in named.items() if value}


def bad_request(message: str) -> Refused:
    return Refused(400, "BadRequest", message)


def unauthorized() -> Refused:
    return Refused(401, "Unauthorized", "Unauthorized")


def not_found(group: str, plural: str, name: str) -> Refused:
    message = f'{label(group, plural)} "{name}" not found'
    return Refused(404, "NotFound", message, details(name, group, plural))


def no_such_path() -> Refused:
    """A path that no kind is served at, among those of the API itself; one of no API is NotServed."""
    return Refused(404, "NotFound", "the server could not find the requested resource", {})


def method_not_allowed() -> Refused:
    message = "the server does not allow this method on the requested resource"
    return Refused(405, "MethodNotAllowed", message, {})


def unrecognized(kind: str, why: str) -> Refused:
    return bad_request(f"the object provided is unrecognized (must be of type {kind}): {why}")


def patch_makes_no_object(why: str) -> Refused:
    """What a patch leads to is not of the kind."""
    return invalid("", "", "", ("FieldValueInvalid", "patch", f'Invalid value: "...": {why}'))


def precondition_failed(group: str, plural: str, where: str, wanted: str, found: str) -> Refused:
    """Another object of that name, or none: in the words of the storage."""
    why = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    name = where.rpartition("/")[2]
    said = (
        f"StorageError: invalid object, Code: 4, Key: {where}, ResourceVersion: 0, AdditionalErrorMsg: {why}"
    )
    return conflict(group, plural, name, said)


def already_exists(group: str, plural: str, name: str, *, going: bool) -> Refused:
    being = "object is being deleted: " if going else ""
    message = f'{being}{label(group, plural)} "{name}" already exists'
    return Refused(409, "AlreadyExists", message, details(name, group, plural))


def conflict(group: str, plural: str, name: str, why: str) -> Refused:
    message = f'Operation cannot be fulfilled on {label(group, plural)} "{name}": {why}'
    return Refused(409, "Conflict", message, details(name, group, plural))


def forbidden(
    group: str, plural: str, name: str, why: str, causes: Sequence[Cause] = (), code: int = 403
) -> Refused:
    named = f'{label(group, plural)} "{name}"' if name else label(group, plural)
    found = details(name, group, plural, causes=_causes(causes))
    return Refused(code, "Forbidden", f"{named} is forbidden: {why}", found)


def expired(message: str, continue_token: str = "") -> Refused:
    return Refused(410, "Expired", message, metadata={"continue": continue_token} if continue_token else None)


def too_old(version: int, oldest: int) -> Refused:
    return expired(f"too old resource version: {version} ({oldest})")


def invalid(group: str, kind: str, name: str, *causes: Cause) -> Refused:
    said = [f"{field}: {message}" for _, field, message in causes]
    listed = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    message = f'{label(group, kind)} "{name}" is invalid: {listed}'
    return Refused(422, "Invalid", message, details(name, group, kind, causes=_causes(causes)))


def unprocessable() -> Refused:
    """A JSON patch that does not apply; the details are there, and empty."""
    return Refused(422, "Invalid", "the server rejected our request due to an error in our request", {})


def unsupported_media_type(accepted: Sequence[str]) -> Refused:
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return Refused(415, "UnsupportedMediaType", message)


def budget_refused(message: str, retry_after: int = 0) -> Refused:
    found: Object = {"causes": _causes([("DisruptionBudget", "", message)])}
    said = "Cannot evict pod as it would violate the pod's disruption budget."
    if not retry_after:
        return Refused(429, "TooManyRequests", said, found)
    found["retryAfterSeconds"] = retry_after
    return Refused(429, "TooManyRequests", said, found, headers={"Retry-After": str(retry_after)})


def apply_conflict(conflicts: Sequence[tuple[str, str]]) -> Refused:
    """Who owns what: pairs of a manager, as it is shown, and a field's path."""
    causes = [("FieldManagerConflict", path, f"conflict with {owner}") for owner, path in conflicts]
    if len(conflicts) == 1:
        owner, path = conflicts[0]
        message = f"Apply failed with 1 conflict: conflict with {owner}: {path}"
    else:
        lines = []
        for owner in sorted({owner for owner, _ in conflicts}):
            lines += [f"conflicts with {owner}:", *(f"- {path}" for who, path in conflicts if who == owner)]
        message = f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)
    return Refused(409, "Conflict", message, {"causes": _causes(causes)})


def _causes(causes: Sequence[Cause]) -> list[Object]:
    return [
        {"reason": reason, "message": message, **({"field": field} if field else {})}
        for reason, field, message in causes
    ]
