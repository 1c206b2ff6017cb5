"""A real API server under the CRDs that are committed says what the parity table says, row by row."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.controlplane.controlplane import ControlPlane
from tests.parity.row import Row
from tests.parity.server import Answer, Server
from tests.parity.table import ROWS

CRDS = sorted((Path(__file__).parents[2] / "deploy" / "crds").glob("*.yaml"))


@pytest.fixture(scope="module")
def server(control_plane: ControlPlane) -> Iterator[Server]:
    with Server(control_plane.url, control_plane.ca_file, control_plane.folder / "admin.pem") as server:
        server.install_all(CRDS)
        yield server


@pytest.mark.parametrize("path", CRDS, ids=[path.stem for path in CRDS])
def test_a_crd_is_structural_and_its_names_are_accepted(server: Server, path: Path) -> None:
    assert server.conditions(yaml.safe_load(path.read_text())) == {
        "NamesAccepted": "True",
        "Established": "True",
    }


@pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
def test_the_server_agrees_with_the_table(server: Server, row: Row) -> None:
    answer = server.create(row.document) if row.before is None else _update(server, row)
    assert answer.accepted == (not row.refused_by("server")), answer.message
    if row.refused_at and row.refused_by("server") and answer.fields:
        assert any(_meet(field, row.refused_at) for field in answer.fields), answer.message


def _meet(one: str, other: str) -> bool:
    """Whether one is the other or lies inside it: of metadata the server names less than we do."""
    return one.startswith(other) or other.startswith(one)


def _update(server: Server, row: Row) -> Answer:
    stored = server.create(row.stored, dry_run=False)
    assert stored.accepted, stored.message
    try:
        if row.machine_exists:
            stored = server.merge_status(row.stored, {"machineRef": {"name": "desk-042"}})
        new = {**row.document, "metadata": {**stored.document["metadata"], **row.document["metadata"]}}
        return server.replace(new)
    finally:
        server.delete(row.stored)
