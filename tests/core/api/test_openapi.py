"""The CustomResourceDefinitions, and the files that are made from the models."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fivespot.cli.commands import crds, docs
from fivespot.core import names
from fivespot.core.api.kinds import KINDS, Kind, crd
from fivespot.core.api.reference import api_reference
from fivespot.core.api.schema import Type, walk

ROOT = Path(__file__).parents[3]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def openapi_of(kind: Kind) -> dict[str, Any]:
    found: dict[str, Any] = crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every schema in a schema."""
    yield schema
    for below in (
        *schema.get("properties", {}).values(),
        schema.get("items"),
        schema.get("additionalProperties"),
    ):
        if isinstance(below, dict):
            yield from nodes(below)


@each_kind
def test_the_committed_crd_is_what_the_models_say(kind: Kind) -> None:
    file = ROOT / "deploy" / "crds" / crds.file_name(kind)
    assert file.read_text() == crds.text_of(kind), "run `make generate`"


def test_no_other_crd_is_committed() -> None:
    found = {path.name for path in (ROOT / "deploy" / "crds").iterdir()}
    assert found == {crds.file_name(kind) for kind in KINDS}


def test_the_committed_reference_is_what_the_models_say() -> None:
    assert (ROOT / "docs" / "api.md").read_text() == docs.HEADER + api_reference(), "run `make generate`"


@each_kind
def test_status_is_a_subresource_and_the_kind_is_namespaced(kind: Kind) -> None:
    definition = crd(kind)["spec"]
    assert definition["scope"] == "Namespaced"
    assert definition["versions"][0]["subresources"] == {"status": {}}


@each_kind
def test_every_node_has_a_type_and_every_named_field_a_description(kind: Kind) -> None:
    for node in nodes(openapi_of(kind)):
        assert "type" in node
        for name, child in node.get("properties", {}).items():
            assert "description" in child or name in {"apiVersion", "kind", "metadata", "name"}, name


@each_kind
def test_every_list_mapping_and_text_that_a_rule_reads_is_bounded(kind: Kind) -> None:
    """Else the API server refuses the CRD for what the rule might cost."""
    for node in nodes(openapi_of(kind)["properties"]["spec"]):
        if "x-kubernetes-validations" in node:
            limit = {"string": "maxLength", "array": "maxItems"}.get(node["type"])
            assert limit is None or limit in node


@each_kind
def test_every_pattern_is_read_alike_by_python_and_re2(kind: Kind) -> None:
    """No class that means Unicode in one of them, no lookaround; `$` at the very end alone."""
    for node in nodes(openapi_of(kind)):
        pattern = node.get("pattern", "")
        assert re.compile(pattern)
        assert not re.search(r"\\[dDwWsSbBAzZ]|\(\?", pattern)
        assert pattern.count("$") == pattern.endswith("$")


@each_kind
def test_every_rule_has_a_message_of_one_line(kind: Kind) -> None:
    for node in nodes(openapi_of(kind)):
        for rule in node.get("x-kubernetes-validations", []):
            assert rule["rule"]
            assert 0 < len(rule["message"]) <= 2048
            assert "\n" not in rule["message"]


@each_kind
def test_what_the_server_fills_in_is_what_the_model_takes_for_absent(kind: Kind) -> None:
    for path, node in walk(kind.schema):
        default = openapi_at(kind, path).get("default")
        assert default == node.default


def openapi_at(kind: Kind, path: str) -> dict[str, Any]:
    found = openapi_of(kind)
    for step in re.findall(r"[^.\[\]]+|\[\]", path):
        below = (
            found["properties"][step] if step != "[]" else found.get("items") or found["additionalProperties"]
        )
        found = below
    return found


@each_kind
def test_every_field_is_in_the_reference(kind: Kind) -> None:
    page = api_reference()
    section = page.split(f"\n## {kind.name}\n")[1].split("\n## ")[0]
    for path, node in walk(kind.schema.properties["spec"], "spec"):
        scalar_item = path.endswith("[]") and node.type not in {Type.OBJECT, Type.MAP, Type.ARRAY}
        assert path == "spec" or scalar_item or f"| `{path}` |" in section, path


def test_the_reference_says_default_rule_and_need() -> None:
    page = api_reference()
    assert "| `spec.priority` | integer | `50` | write a whole number from 0 to 255 |" in page
    assert "| `spec.clusterName` | string | *required* |" in page
    assert "| `spec.gracefulShutdownTimeout` | duration | `5m` |" in page
    assert "this field cannot change while one does" in page
    assert f"`{names.RECLAIM_REQUESTED}`" in page


def test_every_row_of_the_reference_has_the_cells_of_its_table() -> None:
    width = 0
    for line in api_reference().splitlines():
        cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        assert not width or not cells or cells == width, line
        width = cells
