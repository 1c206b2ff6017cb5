"""Files that a command writes."""

import contextlib
import os
import tempfile
from pathlib import Path

import click


def write(path: Path, text: str) -> None:
    """Write `text` so that a reader finds the old file or the new one, never half of it, and say what was done.

    Folders that are missing are made. A file that has this content already is left alone.

    Raises:
        click.FileError: it cannot be written.
    """
    try:
        if path.is_file() and path.read_bytes() == text.encode():
            click.echo(f"{path} is up to date", err=True)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, text)
    except OSError as error:
        raise click.FileError(str(path), error.strerror or str(error)) from error
    click.echo(f"wrote {path}", err=True)


def _replace(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    beside = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            os.fchmod(file.fileno(), 0o644)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            beside.unlink()
        raise
