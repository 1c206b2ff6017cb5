"""Where the control plane's programs are: given by the caller, or cached, or built now.

Not here: how they are built (`build`), how they are run (`commands`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tests.controlplane import build
from tests.controlplane.errors import ControlPlaneUnavailable

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")


def find_or_build(report: Callable[[str], None]) -> Path:
    """The folder that holds all of PROGRAMS. Building takes minutes, and `report` is told how it goes, line by line.

    Raises:
        ControlPlaneUnavailable: FIVESPOT_CONTROL_PLANE names a folder that lacks one, or building is impossible.
    """
    if named := os.environ.get("FIVESPOT_CONTROL_PLANE"):
        return _complete_or_raise(Path(named))
    # Envtest's own archives have no controller manager: then the folder is somebody else's, and no mistake.
    if (assets := os.environ.get("KUBEBUILDER_ASSETS")) and not missing(Path(assets)):
        return Path(assets).absolute()
    return build.cached(PROGRAMS, report)


def missing(folder: Path) -> list[str]:
    """Those of PROGRAMS that `folder` lacks as executable files."""
    return [name for name in PROGRAMS if not os.access(folder / name, os.X_OK)]


def _complete_or_raise(folder: Path) -> Path:
    if absent := missing(folder):
        raise ControlPlaneUnavailable(f"FIVESPOT_CONTROL_PLANE={folder} lacks {', '.join(absent)}")
    return folder.absolute()
