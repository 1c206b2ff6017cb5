"""What we read from YAML and JSON against what kubectl reads.

`kubectl_scalars.jsonl` and `kubectl_documents.jsonl` are answers of the library that kubectl 1.37.2 is built with:
`YAMLOrJSONDecoder` of k8s.io/apimachinery v0.37.2 over sigs.k8s.io/yaml v1.6.0 and go.yaml.in/yaml/v2 v2.4.4. The
scalars were tried as fields of an object with the programs kubectl 1.37.2 and 1.32.4, too, which answer the same.
`refused` holds their error; `stricter` marks what kubectl reads and we refuse on purpose, with our remedy.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fivespot.adapters.files import stream, yaml
from fivespot.adapters.files.node import MAX_DEPTH, Node, Unreadable
from fivespot.adapters.files.yaml_events import PureEvents

ENGINES = [pytest.param(yaml.FastEvents, id="libyaml"), pytest.param(PureEvents, id="pure")]


def table(name: str) -> list[dict[str, Any]]:
    with (Path(__file__).parent / name).open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


SCALARS = table("kubectl_scalars.jsonl")
DOCUMENTS = table("kubectl_documents.jsonl")


def as_sent(value: Any) -> str:
    """JSON text that tells 1 from 1.0 and true from 1; what Go prints of a float beyond 64 bits is a float."""
    match value:
        case dict():
            return json.dumps({key: as_sent(part) for key, part in value.items()}, sort_keys=True)
        case list():
            return json.dumps([as_sent(part) for part in value])
        case bool() | None | str():
            return json.dumps(value)
        case int() if not -(2**63) <= value < 2**63:
            return json.dumps(float(value))
        case _:
            return json.dumps(value)


def read(text: str, engine: Callable[[str], Any]) -> list[Any] | str:
    """The values of all documents, or the first remedy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "read_yaml", lambda text, line: yaml.read_yaml(text, line, engine))
        found = list(stream.read_stream(text))
    refusals = [it.remedy for it in found if isinstance(it, Unreadable)]
    return refusals[0] if refusals else [it[0].value for it in found if not isinstance(it, Unreadable)]


def test_the_tables_are_large_enough_to_mean_something() -> None:
    assert len(SCALARS) >= 300
    assert len(DOCUMENTS) >= 200
    assert sum("refused" in row for row in DOCUMENTS) >= 50
    assert sum("stricter" in row for row in DOCUMENTS) <= 12


@pytest.mark.skipif(
    yaml.FastEvents is PureEvents, reason="this PyYAML has no libyaml; the next test reads it all"
)
def test_the_fast_parser_is_in_use_where_there_is_one() -> None:
    assert yaml.FastEvents.__module__ == "yaml._yaml"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("row", [row for row in SCALARS if "value" in row], ids=lambda row: repr(row["yaml"]))
def test_a_scalar_is_the_value_that_kubectl_sends(row: dict[str, Any], engine: Callable[[str], Any]) -> None:
    assert [as_sent(value) for value in read(f"a: {row['yaml']}\n", engine)] == [as_sent({"a": row["value"]})]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("row", [row for row in SCALARS if "key" in row], ids=lambda row: repr(row["yaml"]))
def test_a_scalar_is_the_key_that_kubectl_sends(row: dict[str, Any], engine: Callable[[str], Any]) -> None:
    assert read(f"{row['yaml']}: 1\n", engine) == [{row["key"]: 1}]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("part", ["value", "key"])
def test_a_scalar_that_kubectl_refuses_is_refused(part: str, engine: Callable[[str], Any]) -> None:
    shape = {"value": "a: {}\n", "key": "{}: 1\n"}[part]
    texts = [shape.format(row["yaml"]) for row in SCALARS if f"{part}Refused" in row]
    assert len(texts) >= 20
    assert [text for text in texts if not isinstance(read(text, engine), str)] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("row", DOCUMENTS, ids=lambda row: repr(row["text"])[:60])
def test_a_text_is_the_objects_that_kubectl_sends(row: dict[str, Any], engine: Callable[[str], Any]) -> None:
    got = read(row["text"], engine)
    if "refused" in row:
        assert isinstance(got, str)
    elif "stricter" in row:
        assert got == row["stricter"]
    elif isinstance(got, str):
        # The only way in which the two differ: PyYAML's own parser knows no tabs within words.
        assert engine is PureEvents
        assert re.search(r"\w\t\w", row["text"])
    else:
        assert [as_sent(value) for value in got] == [as_sent(value) for value in row["values"]]


def test_both_parsers_tell_the_same_lines() -> None:
    for row in DOCUMENTS:
        fast, pure = (lines_of(row["text"], engine) for engine in (yaml.FastEvents, PureEvents))
        if isinstance(fast, dict) and isinstance(pure, dict):
            assert fast == pure, row["text"]


def lines_of(text: str, engine: Callable[[str], Any]) -> dict[str, int] | Unreadable:
    try:
        root = yaml.read_yaml(text, 1, engine)
    except Unreadable as refused:
        return refused
    found: dict[str, int] = {}

    def walk(node: Node, path: str) -> None:
        found[path] = node.line
        if isinstance(node.children, list):
            for index, child in enumerate(node.children):
                walk(child, f"{path}[{index}]")
        elif node.children:
            for key, (line, child) in node.children.items():
                found[f"{path}.{key} key"] = line
                walk(child, f"{path}.{key}")

    if root is not None:
        walk(root, "")
    return found


PIECES = [
    "a",
    "b: ",
    "9:30",
    "no",
    "010",
    "1.5",
    "- ",
    ": ",
    "?",
    ",",
    "[",
    "]",
    "{",
    "}",
    "#",
    "&a ",
    "*a",
    "!",
    "|",
]
PIECES += [
    ">",
    "'",
    '"',
    "%",
    "\n",
    "\n  ",
    "\n- ",
    " ",
    "\t",
    "---\n",
    "\n---\n",
    "...\n",
    "<<: ",
    "\r\n",
    "\x85",
]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
@example("[a:]")
@example("a: |\n    \tb")
@example("a\t: b\t# c")
@example("&a # b\n!")
def test_where_both_parsers_read_a_text_they_read_the_same(text: str) -> None:
    fast, pure = read(text, yaml.FastEvents), read(text, PureEvents)
    assert isinstance(fast, str) or isinstance(pure, str) or as_sent(fast) == as_sent(pure)


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ("{a: ", "}"), ("- ", ""), ('{"a": ', "}")])
def test_nesting_is_bounded_where_python_is_still_safe(opening: str, closing: str) -> None:
    def nested(levels: int) -> list[Any] | str:
        return read(opening * levels + "1" + closing * levels, yaml.FastEvents)

    assert isinstance(nested(MAX_DEPTH), list)
    assert nested(MAX_DEPTH + 1) == f"nest at most {MAX_DEPTH} levels deep"
    assert isinstance(nested(100_000), str)


def test_aliases_cannot_nest_deeper_than_brackets() -> None:
    chain = "a0: &a0 [1]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 2 * MAX_DEPTH))
    assert read(chain, yaml.FastEvents) == f"nest at most {MAX_DEPTH} levels deep"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_billion_laughs_are_refused_on_the_line_where_they_go_too_far(engine: Callable[[str], Any]) -> None:
    laughs = "a0: &a0 lol\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
    )
    with pytest.raises(Unreadable, match="aliases make the document too large") as refused:
        yaml.read_yaml(laughs, 1, engine)
    assert (refused.value.line, refused.value.field) == (5, "a4[1]")  # where kubectl stops, too


def test_as_many_aliases_as_kubectl_takes_are_taken() -> None:
    shared = f"a: &a [{'1, ' * 300}]\n"
    assert isinstance(read(shared + f"b: [{'*a, ' * 50}]\n", yaml.FastEvents), list)
    assert isinstance(read(shared + f"b: [{'*a, ' * 2000}]\n", yaml.FastEvents), str)
