"""What a person names on the command line -> the texts behind it: files, folders and standard input.

Which files of a folder count is as in `kubectl apply --recursive`: by their ending, links to folders not followed.
What the texts say is the business of `stream.py`.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

import attrs

MAX_BYTES = 64 * 2**20
"""A larger file is refused; 10,000 machines as `kubectl get -o yaml` prints them are a third of that."""

STDIN = "<stdin>"

_ENDINGS = (".yaml", ".yml", ".json")
_NOT_MANIFESTS = frozenset({"kustomization.yaml", "kustomization.yml"})
_OPEN_PIPES = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
"""Where a shell's process substitution and its pipes appear. Opening a pipe anywhere else may wait for ever."""


@attrs.frozen
class Text:
    """What a file holds, and its name as messages show it."""

    file: str
    content: str


@attrs.frozen
class UnreadableFile:
    """A file, or a folder, that gives no text.

    Attributes:
        file: its name as messages show it.
        line: the line at fault, from 1; 0 when it was not read at all.
        value: what is refused: its name, or what stands on the line.
        remedy: what to do about it.
    """

    file: str
    line: int
    value: str
    remedy: str


def read_texts(paths: Sequence[str | Path], stdin: TextIO | None) -> Iterator[Text | UnreadableFile]:
    """Read the texts behind `paths` in order, each file once however often it is named."""
    seen: set[str] = set()
    for path in paths:
        named = os.fspath(path)
        for found in [named] if named == "-" else _files(named):
            if isinstance(found, UnreadableFile):
                yield found
                continue
            identity = _identity(found)
            if identity not in seen:
                seen.add(identity)
                yield _stdin(stdin) if found == "-" else _file(found)


def _identity(path: str) -> str:
    """What two names of one file have in common."""
    try:
        return path if path == "-" else os.path.realpath(path)
    except ValueError:  # a NUL in the name; opening it will say so
        return path


def _files(named: str) -> Iterator[str | UnreadableFile]:
    """The files that one path stands for."""
    if not os.path.isdir(named):  # noqa: PTH112 - this one never raises
        yield named
        return
    found = list(_walk(named))
    if not found:
        yield _whole(named, f"the folder holds no manifests; those end in {', '.join(_ENDINGS)}")
    yield from found


def _walk(folder: str) -> Iterator[str | UnreadableFile]:
    """The manifests below a folder in the order of their names; a stack, since folders nest deeper than calls."""
    waiting: list[os.DirEntry[str] | UnreadableFile] = [*_entries(folder)]
    while waiting:
        entry = waiting.pop()
        if isinstance(entry, UnreadableFile):
            yield entry
        elif entry.is_dir(follow_symlinks=False):
            if not entry.name.startswith("."):
                waiting += _entries(entry.path)
        elif entry.is_symlink() and os.path.isdir(entry.path):  # noqa: PTH112 - this one never raises
            if _leads_above(entry.path):
                yield _whole(entry.path, "the link leads back to a folder that holds it; remove it")
        elif entry.name.endswith(_ENDINGS) and entry.name not in _NOT_MANIFESTS:
            yield entry.path


def _entries(folder: str) -> list[os.DirEntry[str] | UnreadableFile]:
    """What a folder holds, the last name first."""
    try:
        with os.scandir(folder) as entries:
            return [*sorted(entries, key=lambda entry: os.fsencode(entry.name), reverse=True)]
    except OSError as error:
        return [_whole(folder, _why(error))]


def _leads_above(link: str) -> bool:
    """Whether a link to a folder makes a loop. It is not followed either way, but nobody means it."""
    return Path(link).resolve() in Path(link).absolute().parent.resolve().joinpath("_").parents


def _stdin(stdin: TextIO | None) -> Text | UnreadableFile:
    if stdin is None:
        return UnreadableFile(STDIN, 0, "-", "there is no standard input here; name a file")
    try:
        buffer = getattr(stdin, "buffer", None)
        data = buffer.read(MAX_BYTES + 1) if buffer is not None else stdin.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        return UnreadableFile(STDIN, 0, "-", _why(error))
    return _decoded(STDIN, data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass"))


def _file(path: str) -> Text | UnreadableFile:
    pipe = path.startswith(_OPEN_PIPES)
    try:
        # Asked before opening, since opening a device can have effects; and again after, since names can change hands.
        if not pipe and not stat.S_ISREG(Path(path).stat().st_mode):
            return _whole(path, _NOT_REGULAR)
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | (0 if pipe else os.O_NONBLOCK))
        with os.fdopen(descriptor, "rb") as file:
            if not pipe and not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return _whole(path, _NOT_REGULAR)
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        return _whole(path, _why(error))
    return _decoded(_name(path), data)


_NOT_REGULAR = "it is a device, a socket or a pipe; pipe it in and name - instead"


def _decoded(name: str, data: bytes) -> Text | UnreadableFile:
    if len(data) > MAX_BYTES:
        return UnreadableFile(name, 0, name, f"it holds more than {MAX_BYTES // 2**20} MiB; split it")
    # kubectl reads UTF-16 where a byte order mark says so, as PowerShell writes it.
    wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    if not wide and b"\0" in data:
        return UnreadableFile(name, data.count(b"\n", 0, data.index(b"\0")) + 1, name, "it is no text")
    try:
        return Text(name, data.decode("utf-16" if wide else "utf-8"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        wrong = data[error.start : error.end]
        return UnreadableFile(
            name, line, f"byte {wrong.hex(' ')}", f"it is not {error.encoding}; save it as UTF-8"
        )


def _whole(path: str, remedy: str) -> UnreadableFile:
    return UnreadableFile(_name(path), 0, path, remedy)


def _name(path: str) -> str:
    """The path as it can be printed, whatever bytes it holds."""
    try:
        return os.fsencode(path).decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # no name that a file could have
        return path.encode("utf-8", "backslashreplace").decode()


def _why(error: OSError | ValueError) -> str:
    match error:
        case FileNotFoundError():
            return "there is no such file or folder; check the path"
        case PermissionError():
            return "it may not be read; check its permissions"
        case OSError(strerror=str() as reason):
            return f"it cannot be read: {reason[:1].lower()}{reason[1:]}"
        case _:
            return f"it cannot be read: {error}"
