"""The fixtures: `control_plane`, one for the whole run, and `start_control_plane` for more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.controlplane.binaries import find_or_build
from tests.controlplane.controlplane import ControlPlane
from tests.gobuild.programs import Programs

StartControlPlane = Callable[..., ControlPlane]
"""Takes the keyword arguments of ControlPlane."""

_PROGRAMS = Programs(
    what="a real control plane",
    find=find_or_build,
    fixtures=("control_plane_programs", "control_plane", "start_control_plane"),
)


@pytest.fixture(scope="session")
def control_plane_programs(pytestconfig: pytest.Config) -> Path:
    """The folder of the control plane's programs."""
    return _PROGRAMS.require(pytestconfig)


@pytest.fixture(scope="session")
def start_control_plane(control_plane_programs: Path) -> Iterator[StartControlPlane]:
    """Starts another one, a child cluster perhaps. A test that is done with it stops it; the run's end does anyway."""
    with ExitStack() as started:
        yield lambda **options: started.enter_context(ControlPlane(control_plane_programs, **options))


@pytest.fixture(scope="session")
def control_plane(start_control_plane: StartControlPlane) -> ControlPlane:
    """The control plane that tests share; keep apart by namespace."""
    return start_control_plane()
