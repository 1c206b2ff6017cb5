"""The fixture `prometheus_program`: the distribution's Prometheus."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.gobuild.build import Report
from tests.gobuild.errors import ProgramsUnavailable
from tests.gobuild.programs import Programs


def _find(_report: Report) -> Path:
    found = shutil.which("prometheus")
    if found is None:
        message = "no prometheus on this machine: install the distribution's package prometheus"
        raise ProgramsUnavailable(message)
    return Path(found)


_PROGRAMS = Programs(what="a real Prometheus", find=_find, fixtures=("prometheus_program",))


@pytest.fixture(scope="session")
def prometheus_program(pytestconfig: pytest.Config) -> Path:
    """The program."""
    return _PROGRAMS.require(pytestconfig)
