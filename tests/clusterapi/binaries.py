"""Where Cluster API's program and its CRDs are: the program cached or built now, the CRDs in Go's module cache.

Not here: how Go modules are built (`tests.gobuild`), how the program is run (`manager`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import attrs

from tests.gobuild.build import GoModule, required_version
from tests.gobuild.errors import ProgramsUnavailable

PROGRAM = "cluster-api-manager"
LOOPBACK = (sys.executable, "-I", str(Path(__file__).with_name("loopback.py")))
"""What the command lines of programs that listen on every interface begin with."""

_MODULE = "sigs.k8s.io/cluster-api"
_CONFIG = Path("core", "config")


@attrs.frozen
class Found:
    """Cluster API on this machine.

    Attributes:
        program: the core manager's executable.
        crds: the folder of the CRDs of the same version.
        webhooks: the file of its webhook configurations.
    """

    program: Path
    crds: Path
    webhooks: Path


def cluster_api_version() -> str:
    """The version in go.mod, such as v1.14.2."""
    return required_version(Path(__file__).parent, _MODULE)


def module() -> GoModule:
    """What is built, and from what."""
    version = cluster_api_version()
    major, minor, _ = version.removeprefix("v").split(".", 2)
    package = f"{_MODULE}/version"
    stamps = f"-X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
    return GoModule(
        folder=Path(__file__).parent,
        group="clusterapi",
        programs=(PROGRAM,),
        flags=("-ldflags", f"-s -w {stamps}"),
        # Go names a program after the last element of its path: sigs.k8s.io/cluster-api/core becomes "core".
        named={"core": PROGRAM},
        told=f"Cluster API {version}, once per machine: about 2 minutes on 2 cores",
    )


def find_or_build(report: Callable[[str], None]) -> Found:
    """The program and the CRDs of Cluster API. Building takes minutes, and `report` is told how it goes, line by line.

    Raises:
        ProgramsUnavailable: it cannot be built, its CRDs are not found, or it could not be kept on loopback.
    """
    made = module()
    _require_network_namespaces()
    program = made.cached(report) / PROGRAM
    config = _module_folder(made.go(report)) / _CONFIG
    return Found(program, config / "crd" / "bases", config / "webhook" / "manifests.yaml")


def _require_network_namespaces() -> None:
    """The manager listens on every interface: it only runs where it can have interfaces of its own."""
    nothing = [sys.executable, "-I", "-c", ""]
    done = subprocess.run(
        [*LOOPBACK, "--", *nothing], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ProgramsUnavailable(f"a manager on loopback alone takes Linux and a network namespace: {last}")


def _module_folder(go: str) -> Path:
    """Where Go keeps the module's files; they are downloaded when only the program of an earlier build is left."""
    done = subprocess.run(
        [go, "mod", "download", "-json", _MODULE],
        cwd=Path(__file__).parent,
        env={**os.environ, "GOWORK": "off"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ProgramsUnavailable(f"go finds no module {_MODULE}: {(done.stdout + done.stderr).strip()}")
    return Path(json.loads(done.stdout)["Dir"])
