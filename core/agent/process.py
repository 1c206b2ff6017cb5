"""What is known of one process, as Linux tells it, and which processes are never the owner's."""

import enum
import re

import attrs

from fivespot.core.agent.programs import INTERPRETERS, basename, interpreter

UNIT = b"5spot-agent.service"
"""The systemd unit that the agent runs as on a host."""

_POD = re.compile(
    rb"(?:[^/\n]*-)?pod(?:[0-9a-f]{8}([-_])[0-9a-f]{4}(?:\1[0-9a-f]{4}){2}\1[0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?"
)
_DEAD = frozenset("ZXx")
_MAY_BE_IN_EXEC = frozenset("RD")
"""While it becomes another program, a process runs, or waits for that program's file."""
_RUNC_INIT_COMM = b"runc:["


@attrs.frozen(kw_only=True)
class ProcessFacts:
    """One process at one instant.

    Attributes:
        pid, ppid: its number and its parent's.
        comm: the kernel's name for it, at most 15 bytes; any program may change its own.
        exe: the path of its executable, with ` (deleted)` where the file has gone; None when it cannot be read.
        argv: its arguments; empty for a kernel thread, a zombie, and in the middle of an exec.
        cgroup: the text of /proc/PID/cgroup; empty where there are no cgroups; None when it was not read.
        state: one letter, as in /proc/PID/stat.
        is_kernel_thread: whether it is the kernel's own.
        started: its start in clock ticks since the boot; with the pid, it is that process and no later one.
        lineage: the pids of its parent, grandparent and so on; None when they were not read.
    """

    pid: int
    ppid: int
    comm: bytes
    exe: bytes | None
    argv: tuple[bytes, ...]
    cgroup: bytes | None
    state: str = "S"
    is_kernel_thread: bool = False
    started: int = 0
    lineage: tuple[int, ...] | None = ()

    @property
    def is_dead(self) -> bool:
        """Whether it has ended and only waits for its parent to notice."""
        return self.state in _DEAD

    @property
    def in_exec(self) -> bool:
        """Whether it seems to be about to become another program: its arguments are not there yet."""
        return not self.argv and self.state in _MAY_BE_IN_EXEC and not self.is_kernel_thread

    @property
    def in_pod(self) -> bool:
        """Whether its cgroup has a pod's component, seen from whichever cgroup namespace."""
        return self.cgroup is not None and is_pod_cgroup(self.cgroup)


def is_pod_cgroup(text: bytes) -> bool:
    """Whether the text of /proc/PID/cgroup names a pod.

    The component of the pod itself decides (`pod<uid>`, `kubepods-besteffort-pod<uid>.slice`), not `kubepods` above it:
    a pod's private cgroup namespace shows its siblings as `/../../pod<uid>/...`.
    """
    return b"pod" in text and any(
        _POD.fullmatch(component) for line in text.split(b"\n") for component in line.split(b"/")[1:]
    )


@attrs.frozen(kw_only=True)
class Itself:
    """The agent, as it must recognise it.

    Attributes:
        pid: its number in the process namespace it reads; 0 when it has none there.
        family: itself, its threads and its ancestors, each as pid and start.
        cgroup: the text of its own cgroup, if nobody else is in there.
        exe: its own executable, if nothing else is started by it.
    """

    pid: int = 0
    family: frozenset[tuple[int, int]] = frozenset()
    cgroup: bytes | None = None
    exe: bytes | None = None


def exclusive_cgroup(own: bytes, first: bytes) -> bytes | None:
    """The text of the agent's own cgroup, if it is the agent's alone; None for a login session or the root.

    Args:
        own: what /proc/self/cgroup says.
        first: what /proc/1/cgroup says: beginning with `/..` it lies outside our cgroup namespace, so we have our own.
    """
    components = {component for line in own.split(b"\n") for component in line.split(b"/")[1:]}
    apart = any(line.partition(b"/")[2].startswith(b"..") for line in first.split(b"\n"))
    return own if UNIT in components or is_pod_cgroup(own) or apart else None


def exclusive_exe(exe: bytes | None) -> bytes | None:
    """The agent's executable, unless it is an interpreter that everybody uses."""
    return None if exe is None or interpreter(basename(exe)) in INTERPRETERS else exe


class Exclusion(enum.StrEnum):
    """Why a process never counts, whatever it is called."""

    KERNEL_THREAD = "kernel thread"
    DEAD = "zombie"
    STARTING_CONTAINER = "container being started"
    AGENT = "the agent itself"
    POD = "inside a pod"


def excluded_by_nature(facts: ProcessFacts, *, announced: bool) -> Exclusion | None:
    """Exclusions that need nothing but the process.

    Args:
        facts: the process.
        announced: the kernel has just said that it became this program; then even a zombie counts, by its comm.
    """
    if facts.is_kernel_thread:
        return Exclusion.KERNEL_THREAD
    if facts.is_dead and not announced:
        return Exclusion.DEAD
    is_runc = facts.comm.startswith(_RUNC_INIT_COMM) or (
        facts.argv[1:2] == (b"init",) and basename(facts.argv[0]) == b"runc"
    )
    return Exclusion.STARTING_CONTAINER if is_runc else None


def is_agent(facts: ProcessFacts, itself: Itself) -> bool:
    """Whether a process belongs to the agent: itself, a thread, an ancestor, a descendant, its cgroup, its executable."""
    return (
        (facts.pid, facts.started) in itself.family
        or (itself.pid != 0 and itself.pid in (facts.lineage or (facts.ppid,)))
        or (itself.cgroup is not None and facts.cgroup == itself.cgroup)
        or (itself.exe is not None and facts.exe == itself.exe)
    )
