"""The fixtures: `control_plane`, one for the whole run, and `start_control_plane` for more.

The programs are found, or built, before the first test runs: a build takes minutes, which is no test's time.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.controlplane.binaries import find_or_build
from tests.controlplane.controlplane import ControlPlane
from tests.gobuild.errors import ProgramsUnavailable

StartControlPlane = Callable[..., ControlPlane]
"""Takes the keyword arguments of ControlPlane."""

_FIXTURES = {"control_plane_programs", "control_plane", "start_control_plane"}

_PROGRAMS = pytest.StashKey[Path | ProgramsUnavailable]()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Make the programs ready when any test that is about to run needs them."""
    wanted = any(_FIXTURES.intersection(getattr(item, "fixturenames", ())) for item in session.items)
    if wanted and not session.config.option.collectonly:
        _programs(session.config)


@pytest.hookimpl(tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """One loud line when a whole tier did not run."""
    if isinstance(reason := config.stash.get(_PROGRAMS, None), ProgramsUnavailable):
        terminalreporter.write_line(
            f"NOT RUN: every test against a real control plane: {reason}", red=True, bold=True
        )


@pytest.fixture(scope="session")
def control_plane_programs(pytestconfig: pytest.Config) -> Path:
    """The folder of the control plane's programs.

    Without them the test is skipped, or fails if FIVESPOT_REQUIRE_LIVE=1.
    """
    programs = _programs(pytestconfig)
    if isinstance(programs, Path):
        return programs
    reason = f"no real control plane: {programs}"
    if os.environ.get("FIVESPOT_REQUIRE_LIVE") == "1":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def start_control_plane(control_plane_programs: Path) -> Iterator[StartControlPlane]:
    """Starts another one, a child cluster perhaps. A test that is done with it stops it; the run's end does anyway."""
    with ExitStack() as started:
        yield lambda **options: started.enter_context(ControlPlane(control_plane_programs, **options))


@pytest.fixture(scope="session")
def control_plane(start_control_plane: StartControlPlane) -> ControlPlane:
    """The control plane that tests share; keep apart by namespace."""
    return start_control_plane()


def _programs(config: pytest.Config) -> Path | ProgramsUnavailable:
    if _PROGRAMS not in config.stash:
        capture = config.pluginmanager.getplugin("capturemanager")
        with ExitStack() as uncaptured:
            if capture is not None:
                # Six silent minutes would look like a hang.
                uncaptured.enter_context(capture.global_and_fixture_disabled())
            try:
                config.stash[_PROGRAMS] = find_or_build(_report)
            except ProgramsUnavailable as unavailable:
                config.stash[_PROGRAMS] = unavailable
    return config.stash[_PROGRAMS]


def _report(line: str) -> None:
    print(f"control plane: {line}", file=sys.stderr, flush=True)
