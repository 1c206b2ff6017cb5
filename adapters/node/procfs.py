"""Processes from /proc, without any helper library: `ProcessFacts` of one or of all.

Every file of a process is opened below one descriptor of its folder, so that all of them are about the same process even
when its pid is used again in between. What vanishes while it is read, or may not be read, is no error; lack of descriptors or memory is. See proc(5).
"""

import contextlib
import errno
import os
from collections.abc import Iterator

import attrs

from fivespot.core.agent.match import NOBODY, Answer, Hit, Matcher, Undecided
from fivespot.core.agent.process import Itself, ProcessFacts, exclusive_cgroup, exclusive_exe

MAX_CMDLINE = 256 * 1024
"""How much of a command line is read. One argument has at most 128 KiB (MAX_ARG_STRLEN), a class path for example."""

_CHUNK = 16 * 1024
_STAT_BYTES = 4096
_MAX_GENERATIONS = 64
"""How far up ancestors are followed; a loop, seen while processes change parents, must end."""

_PF_KTHREAD = 0x00200000
# Positions after `pid (comm)` in /proc/PID/stat.
_STATE, _PPID, _FLAGS, _STARTED = 0, 1, 6, 19

_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Our own trouble, not a process that has gone: an agent that took it for one would be blind."""


@attrs.frozen
class _Stat:
    comm: bytes
    state: str
    ppid: int
    is_kernel_thread: bool
    started: int


class Procfs:
    """The processes below one mounted proc file system.

    Args:
        root: where it is mounted; another than /proc shows another pid namespace.
    """

    def __init__(self, root: str = "/proc") -> None:
        self.root = root

    def pids(self) -> list[int]:
        """The processes there are now, in order.

        Raises:
            OSError: the folder cannot be listed.
        """
        with os.scandir(self.root) as entries:
            return sorted(int(entry.name) for entry in entries if _is_pid(entry.name))

    def read(self, pid: int) -> ProcessFacts | None:
        """All that is known of a process; None when there is none of this number."""
        with self._folder(pid) as folder:
            facts = _names(pid, folder) if folder is not None else None
            return None if facts is None or folder is None else self._complete(facts, folder)

    def read_all(self) -> Iterator[ProcessFacts]:
        """All that is known of every process; those that vanish meanwhile are left out."""
        for pid in self.pids():
            facts = self.read(pid)
            if facts is not None:
                yield facts

    def examine(
        self, pid: int, matcher: Matcher, itself: Itself = NOBODY, *, announced: bool = False
    ) -> tuple[ProcessFacts, Answer] | None:
        """Read a process and match it, with no more work than its answer needs; None when it has gone.

        Most processes miss by name, after three files. A hit is looked at again: names that an exec changed between two
        reads are undecided.
        """
        with self._folder(pid) as folder:
            facts = _names(pid, folder) if folder is not None else None
            if facts is None or folder is None:
                return None
            answer = matcher.match(facts, itself, announced=announced)
            if not isinstance(answer, Undecided):
                return facts, answer
            facts = self._complete(facts, folder)
            answer = matcher.match(facts, itself, announced=announced)
            if isinstance(answer, Hit) and _exe(folder) not in {None, facts.exe}:
                return facts, Undecided()
            return facts, answer

    def itself(self) -> Itself:
        """This very process, its threads and ancestors, as they appear here; nobody where it does not appear."""
        try:
            pid = int(os.readlink(f"{self.root}/self"))  # noqa: PTH115 - text, not a path
        except (OSError, ValueError):
            return NOBODY
        own = self.read(pid)
        if own is None:
            return NOBODY
        family = {pid, *self._threads(pid), *(own.lineage or ())}
        first = self._file("1/cgroup")
        return Itself(
            pid=pid,
            family=frozenset(
                (member, stat.started) for member in family if (stat := self._stat(member)) is not None
            ),
            cgroup=exclusive_cgroup(own.cgroup or b"", first or b""),
            exe=exclusive_exe(own.exe),
        )

    def _complete(self, facts: ProcessFacts, folder: int) -> ProcessFacts:
        return attrs.evolve(facts, cgroup=_cgroup(folder), lineage=self._lineage(facts.ppid))

    def _lineage(self, parent: int) -> tuple[int, ...]:
        found: list[int] = []
        while parent > 0 and parent not in found and len(found) < _MAX_GENERATIONS:
            found.append(parent)
            stat = self._stat(parent)
            parent = stat.ppid if stat is not None else 0
        return tuple(found)

    def _threads(self, pid: int) -> list[int]:
        try:
            return [int(name) for name in os.listdir(f"{self.root}/{pid}/task") if _is_pid(name)]  # noqa: PTH208
        except OSError:
            return []

    def _stat(self, pid: int) -> _Stat | None:
        return _parsed(self._file(f"{pid}/stat") or b"")

    def _file(self, name: str) -> bytes | None:
        return _content(f"{self.root}/{name}", None, _CHUNK)

    @contextlib.contextmanager
    def _folder(self, pid: int) -> Iterator[int | None]:
        try:
            descriptor = os.open(f"{self.root}/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            _refuse_exhaustion(error)
            yield None
            return
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def _names(pid: int, folder: int) -> ProcessFacts | None:
    """What names a program; its cgroup and its ancestors are left for later."""
    stat = _parsed(_content("stat", folder, _STAT_BYTES) or b"")
    if stat is None:
        return None
    nameless = stat.is_kernel_thread
    return ProcessFacts(
        pid=pid,
        ppid=stat.ppid,
        comm=stat.comm,
        exe=None if nameless else _exe(folder),
        argv=() if nameless else _arguments(_content("cmdline", folder, MAX_CMDLINE) or b""),
        cgroup=None,
        state=stat.state,
        is_kernel_thread=stat.is_kernel_thread,
        started=stat.started,
        lineage=None,
    )


def _parsed(text: bytes) -> _Stat | None:
    """The parts of /proc/PID/stat; `comm` stands in parentheses and may hold some itself."""
    opening, closing = text.find(b"("), text.rfind(b")")
    rest = text[closing + 1 :].split()
    if opening < 0 or closing < opening or len(rest) <= _STARTED:
        return None
    try:
        return _Stat(
            comm=text[opening + 1 : closing],
            state=rest[_STATE].decode("ascii"),
            ppid=int(rest[_PPID]),
            is_kernel_thread=bool(int(rest[_FLAGS]) & _PF_KTHREAD),
            started=int(rest[_STARTED]),
        )
    except ValueError:
        return None


def _arguments(cmdline: bytes) -> tuple[bytes, ...]:
    """The arguments; a program that wrote a title over them leaves NULs behind."""
    return tuple(cmdline.rstrip(b"\0").split(b"\0")) if cmdline else ()


def _exe(folder: int) -> bytes | None:
    """None for a kernel thread or a zombie, and without the right to look (CAP_SYS_PTRACE)."""
    try:
        return os.readlink(b"exe", dir_fd=folder)
    except OSError as error:
        _refuse_exhaustion(error)
        return None


def _cgroup(folder: int) -> bytes | None:
    """Empty on a kernel without cgroups; None when the process has gone."""
    text = _content("cgroup", folder, MAX_CMDLINE)
    return b"" if text is None and _content("stat", folder, 1) else text


def _content(name: str, folder: int | None, limit: int) -> bytes | None:
    try:
        return _read(os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder), limit)
    except OSError as error:
        _refuse_exhaustion(error)
        return None


def _read(descriptor: int, limit: int) -> bytes:
    """At most `limit` bytes; proc gives large files in pieces, and a short piece need not be the last."""
    try:
        data = os.read(descriptor, min(_CHUNK, limit))
        if not data:
            return data
        pieces, size = [data], len(data)
        while size < limit and (data := os.read(descriptor, min(_CHUNK, limit - size))):
            pieces.append(data)
            size += len(data)
        return b"".join(pieces)
    finally:
        os.close(descriptor)


def _refuse_exhaustion(error: OSError) -> None:
    if error.errno in _EXHAUSTED:
        raise error


def _is_pid(name: str) -> bool:
    return name.isascii() and name.isdigit()
