"""Where a field stands in its file, and what is said about a text that cannot be read."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fivespot.adapters.files import Document, FileProblem, read_documents

MACHINE = """\
# a comment
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduledMachine
metadata:
  name: desk-7
  annotations:
    5spot.finos.org/x: a
    5spot.finos.org: b
spec:
  windows:
  - days: [mon-fri]
    start: 9:30
  - days:
    - sat

    end: 16:00
"""


@pytest.fixture
def read(tmp_path: Path) -> Callable[[str | bytes], tuple[list[Document], list[FileProblem]]]:
    def run(text: str | bytes, name: str = "a.yaml") -> tuple[list[Document], list[FileProblem]]:
        (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
        return read_documents([tmp_path / name])

    return run


@pytest.mark.parametrize(
    ("field", "line"),
    [
        ("", 2),
        ("kind", 3),
        ("metadata.name", 5),
        ("metadata.annotations.5spot.finos.org/x", 7),
        ('metadata.annotations["5spot.finos.org/x"]', 7),
        ("metadata.annotations['5spot.finos.org']", 8),
        ("metadata.annotations.5spot.finos.org", 8),
        ("metadata.annotations.nothing.here", 6),
        ("metadata.namespace", 4),
        ("spec.windows", 10),
        ("spec.windows[0]", 11),
        ("spec.windows[0].start", 12),
        ("spec.windows[1].days[0]", 14),
        ("spec.windows[1].end", 16),
        ("spec.windows[1].start", 13),
        ("spec.windows[2].start", 10),
        ("spec.windows[7].start", 10),
        ("spec.windows.start", 10),
        ("spec.windows[0].start.deeper[3]", 12),
        ("status.active", 2),
        ("no such [field", 2),
    ],
)
def test_a_field_is_found_on_its_line_or_that_of_its_nearest_parent(read, field: str, line: int) -> None:
    ((document,), problems) = read(MACHINE)
    assert problems == []
    assert document.line == 2
    assert document.line_of(field) == line


def test_lines_count_from_the_file_and_not_from_the_document(read) -> None:
    (_, second), _ = read(f"{MACHINE}---\n{MACHINE}")
    assert (second.line, second.line_of("spec.windows[1].end")) == (19, 33)


def test_unusual_line_breaks_do_not_shift_lines(read) -> None:
    text = MACHINE.replace("# a comment", "# a\u2028# comment\x85# with breaks\r# that no editor counts")
    ((document,), _) = read(text)
    assert document.line_of("spec.windows[1].end") == 16
    ((document,), _) = read(MACHINE.replace("\n", "\r\n"))
    assert document.line_of("spec.windows[1].end") == 16


def test_what_an_alias_or_a_merge_brings_is_found_where_it_is_written(read) -> None:
    text = "apiVersion: a/v1\nkind: A\nx: &x\n  deep: {er: 1}\nv: *x\nz:\n  <<: *x\n  own: 2\n"
    ((document,), _) = read(text)
    assert [document.line_of(field) for field in ("v", "v.deep.er", "z.deep.er", "z.own")] == [5, 4, 4, 8]


ITEMS = (
    '{\n "apiVersion": "v1", "kind": "List",\n "items": [\n  {"apiVersion": "a/v1",\n   "kind": "A"},\n  {\n'
)
ITEMS += '   "apiVersion": "a/v1", "kind": "B",\n   "spec": {"x": [1,\n 2]}}\n ]\n}\n{"apiVersion": "a/v1",\n"kind": "C"}'


def test_items_of_a_json_list_keep_their_lines(read) -> None:
    documents, problems = read(ITEMS)
    assert problems == []
    assert [(it.body["kind"], it.line, it.line_of("kind")) for it in documents] == [
        ("A", 4, 5),
        ("B", 6, 7),
        ("C", 12, 13),
    ]
    assert [documents[1].line_of(field) for field in ("spec", "spec.x[0]", "spec.x[1]", "status")] == [
        8,
        8,
        9,
        6,
    ]


def test_items_of_a_yaml_list_keep_their_lines(read) -> None:
    text = "apiVersion: v1\nitems:\n- apiVersion: a/v1\n  kind: A\n- spec:\n    x: 1\n  kind: B\n  apiVersion: a/v1\n"
    documents, _ = read(f"{text}kind: List\n")
    assert [(it.body["kind"], it.line, it.line_of("spec.x")) for it in documents] == [
        ("A", 3, 3),
        ("B", 5, 6),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a:\n\tb: 1\n", "2: 'b: 1' is refused: indent with spaces; YAML takes no tabs there"),
        ("a: 1\nb: 'half\nc: 2\n", '2: "b: \'half" is refused: close the quote that opens here'),
        (
            "a: 1\nb: [1,\n  2\n",
            "3: '2' is refused: close the bracket of line 2, or put the comma or colon that is",
        ),
        ("a: 1\nb: {c: 1\n", "2: 'b: {c: 1' is refused: close the bracket of line 2"),
        ("a: 1\nb:\n  c: 1\n  c: 2\n", "4: b.c: 'c' is refused: the same key stands on line 3 already"),
        ("yes: 1\non: 2\n", "2: true: 'on' is refused: the same key stands on line 1 already"),
        ("a:\n- 1\n- .inf\n", "3: a[1]: inf is refused: JSON has no infinity"),
        ("a: 1\nb: !!int x\n", "2: b: 'x' is refused: the tag !!int wants another value"),
        ("a: 1\n~: x\n", "2: None is refused: a key is a string"),
        (
            "a:\n- b:\n    [c]: d\n",
            "3: a[0].b: '...' is refused: a key is a string; a list or a mapping cannot be one",
        ),
        (
            "a: 1\nb: *c\n",
            "2: b: '*c' is refused: no anchor &c stands before it; write one, or quote the text",
        ),
        ("a: &a\n  b: *a\n", "2: a.b: '*a' is refused: a value cannot contain itself"),
        ("a: 1\n---\nb: \x07\n", "3: '\\x07' is refused: take the invisible character out"),
        ("a: 1\nb: \ufeff\n", "2: '\\ufeff' is refused: take the invisible character out"),
        ("a: 1\n--- b: 2\n", "2: '--- b: 2' is refused: put what follows --- on a line of its own"),
        ("%YAML 1.2\n---\na: 1\n", "1: '%YAML 1.2' is refused: take the line that begins with % out"),
        ("a: 1\n...\nb: 2\n", "3: 'b: 2' is refused: kubectl ignores what follows the end of a document"),
        (
            "a: 1\nb\n",
            "2: 'b' is refused: this is not YAML: while scanning a simple key, could not find expected ':'",
        ),
        (
            "a:\n- {u: http://x/?y}\n",
            "2: a[0].u: 'http://x/?y' is refused: quote it; to kubectl a ? inside brackets",
        ),
        ('{"a":\n {"b": 1,\n "b": 2}}', "3: a.b: 'b' is refused: the same key stands on line 2 already"),
        ('{"a":\n [1, 1e999]}', "2: a[1]: inf is refused: write a number that 64 bits hold"),
        ('{"a":\n [1,\n', "2: a[1]: 'the end of the text' is refused: this is not JSON: Expecting value"),
        ('{"a": 1,\n"b" 2}', "2: '2}' is refused: : has to stand here"),
        ('{"a": 1}\n{"b": 1}\n{"c": NaN}', "3: c: 'NaN}' is refused: this is not JSON: NaN is not JSON"),
    ],
)
def test_a_refused_text_names_line_field_value_and_remedy(read, tmp_path: Path, text: str, said: str) -> None:
    documents, problems = read(text)
    assert documents == []
    assert any(str(problem).startswith(f"{tmp_path / 'a.yaml'}:{said}") for problem in problems), problems


def test_every_broken_document_of_a_file_is_told_in_the_order_of_lines(read) -> None:
    _, problems = read("kind: A\n---\na: [\n---\n- x\n---\napiVersion: v1\nkind: 5\n--- x\n")
    assert [(it.line, it.field) for it in problems] == [
        (1, "apiVersion"),
        (3, ""),
        (5, ""),
        (8, "kind"),
        (9, ""),
    ]


@pytest.mark.parametrize(
    ("text", "line", "field", "value"),
    [
        ("text\n", 1, "", "text"),
        ("\n- a\n", 2, "", ["a"]),
        ("[]", 1, "", []),
        ("kind: A\n", 1, "apiVersion", None),
        ("apiVersion: v1\n", 1, "kind", None),
        ("apiVersion: v1\nkind: ''\n", 2, "kind", ""),
        ("kind: A\napiVersion: 1\n", 2, "apiVersion", 1),
        ("kind: List\napiVersion: v1\nitems: {a: 1}\n", 3, "items", {"a": 1}),
        ("kind: List\napiVersion: v1\nitems: 5\n", 3, "items", 5),
        ("kind: List\napiVersion: v1\nitems:\n- 5\n", 4, "items[0]", 5),
        ("kind: List\napiVersion: v1\nitems:\n- {kind: A}\n", 4, "items[0].apiVersion", None),
        ("kind: List\napiVersion: v1\nitems:\n- {a: b}\n", 4, "items[0].kind", ""),
    ],
)
def test_what_is_no_object_is_refused(read, text: str, line: int, field: str, value: object) -> None:
    documents, (problem,) = read(text)
    assert documents == []
    assert (problem.line, problem.field, problem.value) == (line, field, value)
