"""5-Spot: lend machines that people own to a Kubernetes cluster while their owners do not need them.

The library is `fivespot.core`; this package itself only opens files for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fivespot.core.fleet import Fleet

__all__ = ["load"]


def load(paths: Sequence[str | Path] | str | Path) -> Fleet:
    """Read a fleet from files, folders and `-` (standard input), as kubectl would read them.

    What cannot be read, or would be refused by a cluster, is in `Fleet.problems`.
    """
    # Imported here, so that importing fivespot.core alone loads no YAML reader.
    from fivespot.adapters.files.fleet import load as load_files  # noqa: PLC0415

    return load_files(paths)
