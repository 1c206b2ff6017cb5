"""The parent of everything that a node runs: when its standard input ends, all of it ends, and nothing is left.

It is `tests.controlplane.supervisor` with surroundings, and begins and is spoken to in the same way. Run with the standard
library alone, as root.

* It adopts orphans. Stopping kubelet and containerd stops no container; but shims and containers descend from this process,
  so what has to be killed is known without a look at anybody else's.
* It has mounts of its own, so that no mount of a node is seen outside, and all of them go with the last process. What
  kubelet, containerd and CNI write at paths that no setting changes, they write to a tmpfs of theirs, and kernel settings
  to plain files.
* It makes the cgroup that the kubelet's cgroups are in, and removes them.

Processes and network interfaces are the machine's own: a pod with `hostPID` or `hostNetwork` sees what it would see on a
workstation. The price: when this process itself is killed, kubelet and containerd end with it, and containers do not.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.controlplane import supervisor

PREFIX = "5spot-node-"
"""How the name of a node's folder begins, and of its cgroup."""

OWN_FOLDERS = (
    "/run/containerd",
    "/run/nri",
    "/var/lib/cni",
    "/var/lib/kubelet",
    "/var/log/containers",
)
"""Paths that are compiled into kubelet, containerd and its libraries."""

OWN_SETTINGS = (
    "kernel/keys/root_maxbytes",
    "kernel/keys/root_maxkeys",
    "kernel/panic",
    "kernel/panic_on_oops",
    "net/ipv4/ip_forward",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
)
"""What the kubelet and the `ptp` plugin set below /proc/sys."""

_CONTROLLERS = ("cpu", "cpuset", "memory", "pids")
"""What the kubelet wants in its cgroup, under cgroup v2."""

_DEATH_SECONDS = 30.0
"""For processes to die that were killed. They take milliseconds; one that the kernel keeps shall not hang the tests."""

_CGROUP_SECONDS = 3.0
"""For a cgroup to be seen empty whose processes are dead."""

# From <linux/prctl.h>, <linux/sched.h> and <linux/mount.h>.
_PR_SET_CHILD_SUBREAPER = 36
_CLONE_NEWNS = 0x00020000
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000

_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def surroundings(folder: Path) -> Iterator[None]:
    """What a node's processes live in; on the way out they are killed, those too that were started by others of them."""
    _call("prctl", _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with _cgroup(folder.name), _own_mounts(folder):
        try:
            yield
        finally:
            _kill_descendants()


def _kill_descendants() -> None:
    deadline = time.monotonic() + _DEATH_SECONDS
    while time.monotonic() < deadline:
        # A shim's containers become our children when it dies.
        for pid in _children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        except ChildProcessError:
            return
        time.sleep(0.01)


def _children() -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                # The name of the program, in parentheses, may hold anything; then state and parent.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) == os.getpid():
                    yield int(entry.name)


@contextmanager
def _own_mounts(folder: Path) -> Iterator[None]:
    outside = os.open("/proc/self/ns/mnt", os.O_RDONLY)
    _call("unshare", _CLONE_NEWNS)
    try:
        _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
        for path in map(Path, OWN_FOLDERS):
            if not path.is_dir():
                _make_room(path.parent, folder)
                path.mkdir()
            _mount("tmpfs", path, "tmpfs", 0)
        for name in OWN_SETTINGS:
            setting, copy = Path("/proc/sys") / name, folder / name.replace("/", ".")
            if setting.exists():
                copy.write_text(setting.read_text())
                _mount(copy, setting, None, _MS_BIND)
        yield
    finally:
        # Back outside, where nothing is mounted in the folder, so that it can be removed.
        _call("setns", outside, _CLONE_NEWNS)
        os.close(outside)


def _make_room(parent: Path, folder: Path) -> None:
    """Make a folder writable for us alone: a tmpfs over it, and what is in it bound there again."""
    below = folder / f"below{str(parent).replace('/', '-')}"
    if below.exists():
        return
    below.mkdir()
    _mount(parent, below, None, _MS_BIND | _MS_REC)
    _mount("tmpfs", parent, "tmpfs", 0)
    for entry in below.iterdir():
        again = parent / entry.name
        # Others come and go in /run meanwhile.
        with contextlib.suppress(FileNotFoundError):
            if entry.is_symlink():
                again.symlink_to(entry.readlink())
                continue
            if entry.is_dir():
                again.mkdir()
            else:
                again.touch()
            _mount(entry, again, None, _MS_BIND | _MS_REC)


def _mount(source: object, target: object, kind: str | None, flags: int) -> None:
    encoded = (None if text is None else os.fsencode(str(text)) for text in (source, target, kind))
    _call("mount", *encoded, ctypes.c_ulong(flags), None)


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}{arguments}: {os.strerror(number)}")


@contextmanager
def _cgroup(name: str) -> Iterator[None]:
    """A cgroup at the top of every hierarchy."""
    folders = []
    for hierarchy, kind in _hierarchies():
        if kind == "cgroup2":
            _delegate(hierarchy)
        (hierarchy / name).mkdir()
        folders.append(hierarchy / name)
    try:
        yield
    finally:
        for folder in folders:
            _remove(folder)


def _hierarchies() -> Iterator[tuple[Path, str]]:
    """Where cgroups are, and of which kind: `cgroup` (version 1, one for some controllers each) or `cgroup2`."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        mount, _, file_system = line.partition(" - ")
        kind = file_system.split()[0]
        if kind in ("cgroup", "cgroup2"):
            yield Path(mount.split()[4]), kind


def _delegate(hierarchy: Path) -> None:
    """Have the kernel offer the controllers to cgroups below the top, as systemd does for nearly all of them."""
    offered = (hierarchy / "cgroup.controllers").read_text().split()
    enabled = (hierarchy / "cgroup.subtree_control").read_text().split()
    for controller in _CONTROLLERS:
        if controller in offered and controller not in enabled:
            (hierarchy / "cgroup.subtree_control").write_text(f"+{controller}")


def _remove(folder: Path) -> None:
    # The kernel needs a moment to see that the last process of a cgroup has gone.
    deadline = time.monotonic() + _CGROUP_SECONDS
    for path, _, _ in os.walk(folder, topdown=False):
        while not _removed(Path(path)) and time.monotonic() < deadline:
            time.sleep(0.02)


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def main() -> None:
    """Serve one caller."""
    supervisor.main(PREFIX, surroundings)


if __name__ == "__main__":
    main()
