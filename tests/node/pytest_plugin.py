"""The fixture `node_programs`: what a real node runs, found or built before the first test."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack

import pytest

from tests.gobuild.errors import ProgramsUnavailable
from tests.node.binaries import NodePrograms, find_or_build

_FOUND = pytest.StashKey[NodePrograms | ProgramsUnavailable]()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Make the programs ready when any test that is about to run needs them."""
    wanted = any("node_programs" in getattr(item, "fixturenames", ()) for item in session.items)
    if wanted and not session.config.option.collectonly:
        _find(session.config)


@pytest.hookimpl(tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """One loud line when a whole tier did not run."""
    if isinstance(reason := config.stash.get(_FOUND, None), ProgramsUnavailable):
        terminalreporter.write_line(f"NOT RUN: every test on a real node: {reason}", red=True, bold=True)


@pytest.fixture(scope="session")
def node_programs(pytestconfig: pytest.Config) -> NodePrograms:
    """What a node runs.

    Without it the test is skipped, or fails if FIVESPOT_REQUIRE_LIVE=1.
    """
    found = _find(pytestconfig)
    if isinstance(found, NodePrograms):
        return found
    reason = f"no real node: {found}"
    if os.environ.get("FIVESPOT_REQUIRE_LIVE") == "1":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def _find(config: pytest.Config) -> NodePrograms | ProgramsUnavailable:
    if _FOUND not in config.stash:
        capture = config.pluginmanager.getplugin("capturemanager")
        with ExitStack() as uncaptured:
            if capture is not None:
                # Silent minutes would look like a hang.
                uncaptured.enter_context(capture.global_and_fixture_disabled())
            try:
                config.stash[_FOUND] = find_or_build(_report)
            except ProgramsUnavailable as unavailable:
                config.stash[_FOUND] = unavailable
    return config.stash[_FOUND]


def _report(line: str) -> None:
    print(f"node: {line}", file=sys.stderr, flush=True)
