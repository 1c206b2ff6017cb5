"""The fixture `make_cluster_api`: a real Cluster API for a control plane."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.clusterapi.binaries import Found, find_or_build
from tests.clusterapi.manager import ClusterApi
from tests.controlplane.controlplane import ControlPlane
from tests.gobuild.programs import Programs

MakeClusterApi = Callable[[ControlPlane], ClusterApi]
"""Makes one for a control plane; it is neither installed nor started yet."""

_PROGRAMS = Programs(
    what="a real Cluster API",
    find=find_or_build,
    fixtures=("cluster_api_programs", "make_cluster_api"),
)


@pytest.fixture(scope="session")
def cluster_api_programs(pytestconfig: pytest.Config) -> Found:
    """The manager and its CRDs."""
    return _PROGRAMS.require(pytestconfig)


@pytest.fixture(scope="session")
def make_cluster_api(cluster_api_programs: Found) -> Iterator[MakeClusterApi]:
    """Makes one. A test that is done with it stops it; the run's end does anyway."""
    with ExitStack() as started:
        yield lambda plane: started.enter_context(ClusterApi(cluster_api_programs, plane))
