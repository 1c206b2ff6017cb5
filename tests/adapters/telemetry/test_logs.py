"""What a log line looks like, and what never gets into one."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from fivespot.adapters.telemetry.logs import LONGEST, STRUCK, Format, careful, configure

JWT = "eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----"
LOG = logging.getLogger("fivespot.tests")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Logging belongs to the whole process."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)


def logged(form: Format = "auto", stream: io.StringIO | None = None) -> io.StringIO:
    stream = stream or io.StringIO()
    configure("info", form, stream)
    return stream


def one(stream: io.StringIO) -> dict[str, Any]:
    (line,) = stream.getvalue().splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def test_elsewhere_than_on_a_terminal_a_line_is_a_json_object_with_the_fields_of_its_record() -> None:
    stream = logged()
    LOG.info("%s -> %s", "Pending", "Active", extra={"machine": "floor-2/desk-7"})
    entry = one(stream)
    assert entry.pop("timestamp").endswith("Z")
    assert entry == {"message": "Pending -> Active", "level": "info", "machine": "floor-2/desk-7"}


def test_on_a_terminal_it_is_text_unless_json_is_asked_for() -> None:
    text = logged(stream=Terminal())
    LOG.warning("watch nodes: refused", extra={"failures": 3})
    assert "watch nodes: refused" in text.getvalue()
    assert not text.getvalue().startswith("{")
    asked_for = logged("json", Terminal())
    LOG.warning("x")
    assert one(asked_for)["message"] == "x"


def test_text_can_be_asked_for_elsewhere_and_has_no_colours_then() -> None:
    stream = logged("text")
    LOG.error("x", extra={"machine": "ns/a"})
    assert "machine=ns/a" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


def test_what_is_below_the_level_is_not_logged() -> None:
    stream = logged()
    LOG.debug("x")
    logging.getLogger("httpx").info("HTTP Request: GET https://server/api")
    assert stream.getvalue() == ""


def test_an_error_is_logged_with_where_it_happened_and_without_what_was_in_its_variables() -> None:
    stream = logged()

    def fails() -> None:
        password = "correct horse battery staple"  # noqa: F841
        raise ValueError

    try:
        fails()
    except ValueError:
        LOG.exception("a pass failed", extra={"machine": "ns/a"})
    entry = one(stream)
    assert "ValueError" in entry["exception"]
    assert "correct horse" not in stream.getvalue().replace('password = "correct', "")


@pytest.mark.parametrize(
    "secret",
    [
        JWT,
        PEM,
        PEM.replace("\n", "\\n"),
        "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQpNSUlFcEFJQkFBS0NBUUVBCg" * 5,
        "Authorization: Bearer abcdef0123456789",
        "authorization: basic dXNlcjpwYXNzd29yZA==",
    ],
)
@pytest.mark.parametrize("place", ["message", "field", "exception"])
def test_nothing_that_looks_like_a_secret_gets_into_a_line(secret: str, place: str) -> None:
    stream = logged()
    if place == "message":
        LOG.warning("the server said: %s", secret)
    elif place == "field":
        LOG.warning("x", extra={"said": secret})
    else:
        LOG.error("x", exc_info=ValueError(secret))
    assert STRUCK in stream.getvalue()
    for part in secret.replace("\\n", " ").split():
        if len(part) > 20:
            assert part not in stream.getvalue()


def test_what_a_person_wants_to_read_is_left_alone() -> None:
    text = (
        'patch scheduledmachines.5spot.finos.org/status floor-2/desk-7: User "system:serviceaccount:5spot-system:'
        '5spot-controller" cannot patch resource "scheduledmachines/status" (403 Forbidden); Basic rules of the house'
    )
    assert careful(text) == text


def test_an_object_that_somebody_logs_is_cut_short() -> None:
    stream = logged()
    LOG.error("%s", {"spec": ["a long object"] * 10_000})
    assert len(one(stream)["message"]) < LONGEST + 100
