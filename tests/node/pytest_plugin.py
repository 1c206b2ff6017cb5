"""The fixture `node_programs`: what a real node runs, found or built before the first test."""

from __future__ import annotations

import pytest

from tests.gobuild.programs import Programs
from tests.node.binaries import NodePrograms, find_or_build

_PROGRAMS = Programs(what="a real node", how="on", find=find_or_build, fixtures=("node_programs",))


def pytest_collection_finish(session: pytest.Session) -> None:
    """See Programs.make_ready."""
    _PROGRAMS.make_ready(session)


@pytest.hookimpl(tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """See Programs.summarize."""
    _PROGRAMS.summarize(terminalreporter, config)


@pytest.fixture(scope="session")
def node_programs(pytestconfig: pytest.Config) -> NodePrograms:
    """What a node runs."""
    return _PROGRAMS.require(pytestconfig)
