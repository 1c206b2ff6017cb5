"""Bytes to frames, frames to events."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.adapters.kube.frames import BadAnswer, Frames, decode_event, decode_object, decode_page, encode
from fivespot.adapters.kube.resources import CONFIG_MAPS


@given(st.lists(st.binary(min_size=1).filter(lambda b: b"\n" not in b and b.strip())), st.data())
def test_lines_are_the_same_however_they_arrive(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    frames, found = Frames(), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += frames.feed(stream[:size])
        stream = stream[size:]
    assert found == lines


@pytest.mark.parametrize("separator", ["\x85", "\u2028", "\u2029", "\x0b", "\x0c", "\x1c"])
def test_what_python_calls_a_line_end_does_not_cut_an_event(separator: str) -> None:
    line = encode({"type": "ADDED", "object": {"data": {"k": f"a{separator}b"}}}) + b"\n"
    (frame,) = Frames().feed(line)
    assert decode_event(frame).object["data"]["k"] == f"a{separator}b"


def test_empty_lines_are_no_events() -> None:
    assert Frames().feed(b"\n\r\n \nx\n") == [b"x"]


def test_a_line_without_end_is_bounded() -> None:
    frames = Frames(10)
    frames.feed(b"123456")
    with pytest.raises(BadAnswer):
        frames.feed(b"789012")


@pytest.mark.parametrize(
    "line",
    [b"{", b"[]", b'{"type": "ADDED"}', b'{"type": 1, "object": {}}', b"\xff", b"[" * 100_000, b"<html>"],
)
def test_what_is_no_event_is_a_bad_answer(line: bytes) -> None:
    with pytest.raises(BadAnswer):
        decode_event(line)


@pytest.mark.parametrize("body", [b"", b"[]", b"1", b'{"metadata": []}', b"\xff"])
def test_what_is_no_list_is_a_bad_answer(body: bytes) -> None:
    with pytest.raises(BadAnswer):
        decode_page(body, CONFIG_MAPS)


def test_managed_fields_are_dropped() -> None:
    metadata = {"name": "a", "managedFields": [{"manager": "x"}]}
    assert decode_object(encode({"metadata": metadata})) == {"metadata": {"name": "a"}}
    event = decode_event(encode({"type": "ADDED", "object": {"metadata": metadata}}))
    assert event.object == {"metadata": {"name": "a"}}


def test_items_of_a_list_say_what_they_are() -> None:
    page = decode_page(
        encode({"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {}}]}), CONFIG_MAPS
    )
    assert list(page.each()) == [{"metadata": {}, "apiVersion": "v1", "kind": "ConfigMap"}]
    assert (page.resource_version, page.more) == ("7", "")


def test_go_writes_an_empty_list_as_null() -> None:
    assert decode_page(b'{"metadata": {}, "items": null}', CONFIG_MAPS).items == []
