"""Where the control plane's programs are: given by the caller, or cached, or built now.

Not here: how Go modules are built (`tests.gobuild`), how the programs are run (`commands`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tests.gobuild.build import GoModule, required_version
from tests.gobuild.errors import ProgramsUnavailable

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")


def kubernetes_version() -> str:
    """The version in go.mod, such as v1.37.2."""
    return required_version(Path(__file__).parent, "k8s.io/kubernetes")


def module() -> GoModule:
    """What is built, and from what."""
    version = kubernetes_version()
    major, minor, _ = version.removeprefix("v").split(".", 2)
    package = "k8s.io/component-base/version"
    # Without these the API server calls itself v0.0.0.
    stamps = f"-X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
    return GoModule(
        folder=Path(__file__).parent,
        group="controlplane",
        programs=PROGRAMS,
        flags=("-ldflags", f"-s -w {stamps}"),
        # Go names a program after the last element of its path: go.etcd.io/etcd/server/v3 becomes "server".
        named={"server": "etcd"},
        told=f"Kubernetes {version} and etcd, once per machine: about 6 minutes on 2 cores",
    )


def find_or_build(report: Callable[[str], None]) -> Path:
    """The folder that holds all of PROGRAMS. Building takes minutes, and `report` is told how it goes, line by line.

    Raises:
        ProgramsUnavailable: FIVESPOT_CONTROL_PLANE names a folder that lacks one, or building is impossible.
    """
    if named := os.environ.get("FIVESPOT_CONTROL_PLANE"):
        return _complete_or_raise(Path(named))
    # Envtest's own archives have no controller manager: then the folder is somebody else's, and no mistake.
    if (assets := os.environ.get("KUBEBUILDER_ASSETS")) and not missing(Path(assets)):
        return Path(assets).absolute()
    return module().cached(report)


def missing(folder: Path) -> list[str]:
    """Those of PROGRAMS that `folder` lacks as executable files."""
    return [name for name in PROGRAMS if not os.access(folder / name, os.X_OK)]


def _complete_or_raise(folder: Path) -> Path:
    if absent := missing(folder):
        raise ProgramsUnavailable(f"FIVESPOT_CONTROL_PLANE={folder} lacks {', '.join(absent)}")
    return folder.absolute()
