"""The fixture `node_programs`: what a real node runs, found or built before the first test."""

from __future__ import annotations

import pytest

from tests.gobuild.programs import Programs
from tests.node.binaries import NodePrograms, find_or_build

_PROGRAMS = Programs(what="a real node", how="on", find=find_or_build, fixtures=("node_programs",))


@pytest.fixture(scope="session")
def node_programs(pytestconfig: pytest.Config) -> NodePrograms:
    """What a node runs."""
    return _PROGRAMS.require(pytestconfig)
