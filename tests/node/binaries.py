"""Where a node's programs are: built from Go modules, or installed with the distribution."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import attrs

from tests.gobuild.build import GoModule, required_version
from tests.gobuild.errors import ProgramsUnavailable

_FOLDER = Path(__file__).parent
_CNI_FOLDERS = ("/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni")


@attrs.frozen(kw_only=True)
class NodePrograms:
    """Folders of programs, and programs.

    Attributes:
        kubernetes: the folder of kubelet and kube-scheduler.
        containerd: the folder of containerd, its shim and ctr.
        runc: the program.
        busybox: the program, statically linked: all that the images hold.
        cni: the folder of the CNI plugins.
    """

    kubernetes: Path
    containerd: Path
    runc: Path
    busybox: Path
    cni: Path


def kubernetes_version() -> str:
    """The version in go.mod, such as v1.37.2; it is that of the control plane."""
    return required_version(_FOLDER / "kubernetes", "k8s.io/kubernetes")


def modules() -> tuple[GoModule, GoModule]:
    """What is built, and from what: the parts of Kubernetes, and containerd.

    Two modules, since Kubernetes and containerd ask for different versions of what they share; and not the control plane's,
    so that a change here builds no API server anew.
    """
    version = kubernetes_version()
    stamp = f"-X k8s.io/component-base/version.gitVersion={version}"
    containerd = required_version(_FOLDER / "containerd", "github.com/containerd/containerd/v2")
    return (
        GoModule(
            folder=_FOLDER / "kubernetes",
            group="node-kubernetes",
            programs=("kubelet", "kube-scheduler"),
            flags=("-ldflags", f"-s -w {stamp}"),
            told=f"kubelet and kube-scheduler {version}, once per machine: about 2 minutes on 2 cores",
        ),
        GoModule(
            folder=_FOLDER / "containerd",
            group="node-containerd",
            programs=("containerd", "containerd-shim-runc-v2", "ctr"),
            # Snapshotters that want C libraries are left out, and so is the C resolver.
            flags=("-tags", "no_btrfs no_devmapper no_zfs netgo osusergo", "-ldflags", "-s -w"),
            told=f"containerd {containerd}, once per machine: about a minute on 2 cores",
        ),
    )


def find_or_build(report: Callable[[str], None]) -> NodePrograms:
    """Everything that a node runs. Building takes minutes, and `report` is told how it goes, line by line.

    Raises:
        ProgramsUnavailable: no Linux, not root, a package is missing, or building is impossible.
    """
    # The cheap questions first: nobody shall wait minutes for a no.
    if sys.platform != "linux":
        raise ProgramsUnavailable(f"a node needs Linux, and this is {sys.platform}")
    if os.geteuid() != 0:
        raise ProgramsUnavailable("a node needs root: kubelet and runc mount, and make cgroups")
    runc, busybox = _installed("runc", "runc"), _installed("busybox", "busybox-static")
    # A program that names its loader does so on its first page.
    if b"/ld-" in busybox.read_bytes()[:4096]:
        raise ProgramsUnavailable(
            f"{busybox} wants libraries: install the distribution's package busybox-static"
        )
    cni = _cni_folder()
    kubernetes, containerd = (module.cached(report) for module in modules())
    return NodePrograms(kubernetes=kubernetes, containerd=containerd, runc=runc, busybox=busybox, cni=cni)


def _installed(program: str, package: str) -> Path:
    if found := shutil.which(program):
        return Path(found).resolve()
    raise ProgramsUnavailable(f"no {program} on this machine: install the distribution's package {package}")


def _cni_folder() -> Path:
    for folder in map(Path, _CNI_FOLDERS):
        if all((folder / plugin).is_file() for plugin in ("ptp", "host-local")):
            return folder
    raise ProgramsUnavailable(
        f"no CNI plugins in {', '.join(_CNI_FOLDERS)}: install the package containernetworking-plugins"
    )
