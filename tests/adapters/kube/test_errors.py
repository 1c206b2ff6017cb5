"""Answers to errors: by the Status' reason first."""

from typing import Any

import pytest

from fivespot.adapters.kube.errors import (
    AlreadyExists,
    ApiError,
    Asked,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    Throttled,
    Unauthorized,
    Unavailable,
    error_of,
)

GET = Asked("get", "machines.cluster.x-k8s.io", "ns", "m1")
PATCH = Asked("patch", "nodes/status", None, "n1")


def status(reason: str, **more: Any) -> dict[str, Any]:
    return {"kind": "Status", "reason": reason, "message": "words of the server", **more}


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (409, "AlreadyExists", AlreadyExists),
        (409, "Conflict", Conflict),
        (404, "NotFound", NotFound),
        (403, "Forbidden", Forbidden),
        (401, "Unauthorized", Unauthorized),
        (410, "Gone", Gone),
        (410, "Expired", Gone),
        (422, "Invalid", Invalid),
        (400, "BadRequest", Invalid),
        (429, "TooManyRequests", Throttled),
        (500, "InternalError", Unavailable),
        (500, "ServerTimeout", Unavailable),
        (503, "ServiceUnavailable", Unavailable),
        (504, "Timeout", Unavailable),
        # The reason wins over the code.
        (500, "Expired", Gone),
        (409, "NewReason", Conflict),
        (599, "NewReason", Unavailable),
        (418, "NewReason", ApiError),
        (0, "Expired", Gone),
    ],
)
def test_a_status_is_judged_by_its_reason(code: int, reason: str, expected: type[ApiError]) -> None:
    error = error_of(GET, code, status(reason))
    assert type(error) is expected
    assert (error.status, error.reason, error.message) == (code, reason, "words of the server")


@pytest.mark.parametrize(
    ("code", "expected"),
    [(401, Unauthorized), (404, NotFound), (410, Gone), (429, Throttled), (502, Unavailable)],
)
@pytest.mark.parametrize("body", ["<html>proxy</html>", {"error": "other JSON"}, ""])
def test_an_answer_that_is_no_status_is_judged_by_its_code(
    code: int, expected: type[ApiError], body: dict[str, Any] | str
) -> None:
    assert type(error_of(GET, code, body)) is expected


@pytest.mark.parametrize(
    ("header", "details", "seconds"), [("3", {}, 3.0), (None, {"retryAfterSeconds": 5}, 5.0)]
)
def test_the_server_says_how_long_to_wait(
    header: str | None, details: dict[str, Any], seconds: float
) -> None:
    assert error_of(GET, 429, status("TooManyRequests", details=details), header).retry_after == seconds


@pytest.mark.parametrize("header", ["", "soon", "-1", "0", "nan", "inf", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_a_strange_retry_after_is_no_wait(header: str) -> None:
    assert error_of(GET, 429, "", header).retry_after is None


def test_a_budget_is_told_from_a_busy_server() -> None:
    details = {"causes": [{"reason": "DisruptionBudget", "message": "needs 1 healthy pods"}]}
    refused = error_of(PATCH, 429, status("TooManyRequests", details=details))
    assert isinstance(refused, Throttled)
    assert refused.cause == "DisruptionBudget"
    busy = error_of(PATCH, 429, "Too many requests")
    assert isinstance(busy, Throttled)
    assert busy.cause == ""


def test_a_missing_kind_is_told_from_a_missing_object() -> None:
    missing = error_of(GET, 404, "404 page not found\n")
    assert isinstance(missing, NotFound)
    assert missing.kind_not_served
    assert "CustomResourceDefinition" in str(missing)
    # What groups that the server itself has say of a version or a plural that they have not.
    unknown = error_of(GET, 404, status("NotFound", details={}))
    assert isinstance(unknown, NotFound)
    assert unknown.kind_not_served
    absent = error_of(GET, 404, status("NotFound", details={"name": "m1", "kind": "machines"}))
    assert isinstance(absent, NotFound)
    assert not absent.kind_not_served


def test_a_forbidden_request_says_which_permission_to_grant() -> None:
    message = 'nodes "n1" is forbidden: User "joe" cannot patch resource "nodes/status" in API group "" at the cluster scope'
    error = error_of(PATCH, 403, {"kind": "Status", "reason": "Forbidden", "message": message})
    assert 'grant verb "patch" on resource "nodes/status" in API group "" in a ClusterRole' in str(error)
    denied = error_of(GET, 403, status("Forbidden"))
    assert "admission" in str(denied)


def test_the_group_of_a_permission_is_told_from_its_sub_resource() -> None:
    asked = Asked("patch", "machines.cluster.x-k8s.io/status", "ns", "m1")
    message = 'User "joe" cannot patch resource "machines/status" in API group "cluster.x-k8s.io" in the namespace "ns"'
    error = error_of(asked, 403, {"kind": "Status", "reason": "Forbidden", "message": message})
    assert 'on resource "machines/status" in API group "cluster.x-k8s.io" in namespace ns' in str(error)


def test_a_message_has_verb_object_and_the_servers_words_and_an_end() -> None:
    text = str(error_of(GET, 409, status("Conflict")))
    assert text.startswith("get machines.cluster.x-k8s.io ns/m1: words of the server (409 Conflict)")
    assert len(str(error_of(GET, 400, "x" * 100_000))) < 1000


@pytest.mark.parametrize(
    ("asked", "sent", "unknown"), [(PATCH, True, True), (PATCH, False, False), (GET, True, False)]
)
def test_only_a_write_that_was_sent_may_have_happened(asked: Asked, sent: bool, unknown: bool) -> None:
    error = Unavailable(asked, sent=sent, message="connection reset")
    assert error.outcome_unknown is unknown
    assert ("may have been done" in str(error)) is unknown


@pytest.mark.parametrize("details", [None, [], "x", {"causes": "x"}, {"causes": [1, {}]}])
def test_malformed_details_are_survived(details: object) -> None:
    error = error_of(GET, 429, status("TooManyRequests", details=details))
    assert isinstance(error, Throttled)
    assert error.cause == ""
