"""Whatever a file holds, reading it ends with documents or with problems that name file and line."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fivespot.adapters.files import read_documents

IN_A_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)

# fmt: off
WORDS = st.sampled_from([
    "apiVersion: v1\n", "kind: A\n", "kind: List\nitems:\n- ", "{", "}", "[", "]", '"', "'", ": ", ",", "- ", "\n", "\n  ",
    "---\n", "...\n", "%YAML", "&a ", "*a ", "<<: ", "!!int ", "!", "|\n", ">\n", "\t", "\r", "#", "?", "\x00", "\\", "9",
    '{"apiVersion": "v1", "kind": "A"}', '{"a":', "\ufeff", "\u2028", "\x85", "\ud7ff", "1e999", "0x", ".inf", "~",
])
# fmt: on
TEXTS = st.one_of(st.text(), st.lists(WORDS, max_size=40).map("".join))


def check(path: Path) -> None:
    documents, problems = read_documents([path])
    rows = path.read_bytes().count(b"\n") + 1
    assert not (documents and problems)
    for problem in problems:
        assert problem.file == str(path)
        assert 1 <= problem.line <= rows
        assert problem.remedy
        assert str(problem).startswith(f"{path}:{problem.line}: ")
        str(problem).encode()
    for document in documents:
        assert 1 <= document.line <= rows
        assert 1 <= document.line_of("spec.windows[0].start") <= rows
        json.dumps(document.body, allow_nan=False).encode()


@IN_A_FOLDER
@given(TEXTS)
@example("%YAML 1.3\n--- a")
@example("{\x85}")
@example("a: \u2028---\n@")
@example("{}\n...")
@example("0\r---")
@example('{"a":1}' * 3 + "\ud7ff")
@example("a: &a [*a]\n")
@example("- " * 5000)
@example("[" * 50_000)
@example('{"a":' * 50_000)
@example("? " * 3000)
@example("!" * 5000 + " a")
@example('a: "' + "\\" * 5001)
@example("a: " + "9" * 50_000)
@example('{"a": ' + "9" * 50_000 + "}")
@example("a: 0" + "7" * 50_000)
@example("a: ." + "1_" * 50_000)
@example("&" + "a" * 50_000 + " ! " * 3)
@pytest.mark.timeout(60)
def test_any_text_is_read_or_refused_with_file_and_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8", newline="")
    check(tmp_path / "a.yaml")


@IN_A_FOLDER
@given(st.one_of(st.binary(), TEXTS.map(lambda text: text.encode("utf-16", "surrogatepass"))))
def test_any_bytes_are_read_or_refused_with_file_and_line(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.yaml").write_bytes(data)
    documents, problems = read_documents([tmp_path / "a.yaml"])
    assert not (documents and problems)
    assert all(problem.line >= 1 for problem in problems)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda parts: st.lists(parts, max_size=4) | st.dictionaries(st.text(), parts, max_size=4),
    max_leaves=12,
)


def arrived(value: Any) -> Any:
    """The value as a JSON reader with one kind of number has it."""
    if isinstance(value, dict):
        return {key: arrived(part) for key, part in value.items()}
    if isinstance(value, list):
        return [arrived(part) for part in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


@IN_A_FOLDER
@given(
    st.lists(JSON, min_size=1, max_size=3), st.sampled_from([None, 2]), st.sampled_from(["", "\n", "\r\n \t"])
)
def test_json_comes_back_as_it_was_written(
    tmp_path: Path, specs: list[Any], indent: int | None, between: str
) -> None:
    bodies = [{"apiVersion": "a/v1", "kind": "A", "spec": spec} for spec in specs]
    text = between.join(json.dumps(body, indent=indent) for body in bodies)
    (tmp_path / "a.json").write_text(text, newline="")
    documents, problems = read_documents([tmp_path / "a.json"])
    assert problems == []
    assert [arrived(document.body) for document in documents] == [arrived(body) for body in bodies]


@IN_A_FOLDER
@given(JSON)
def test_half_a_document_is_never_read(tmp_path: Path, spec: Any) -> None:
    text = json.dumps({"apiVersion": "a/v1", "kind": "A", "spec": [spec]})
    for end in range(1, len(text), max(1, len(text) // 10)):
        (tmp_path / "a.json").write_text(text[:end], newline="")
        documents, problems = read_documents([tmp_path / "a.json"])
        assert documents == []
        assert problems
