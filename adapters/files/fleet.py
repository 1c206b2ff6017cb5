"""A fleet from manifest files."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from fivespot.adapters.files.documents import read_documents
from fivespot.core.api.allowed import DEFAULT_GROUPS, AllowedGroups
from fivespot.core.fleet import Fleet, Problem


def load(
    paths: Sequence[str | Path] | str | Path,
    *,
    stdin: TextIO | None = None,
    allowed: AllowedGroups = DEFAULT_GROUPS,
) -> Fleet:
    """Read machines and providers from files, folders and `-` (standard input).

    YAML is read as kubectl reads it. What cannot be read, or would be refused by a cluster, is in `Fleet.problems` with
    file, line and field; it never raises for what a file contains. `allowed` are the groups that the cluster lets
    machines be made of.
    """
    wanted = [paths] if isinstance(paths, str | Path) else list(paths)
    documents, faults = read_documents(wanted, stdin or sys.stdin)
    problems = [
        Problem(
            file=fault.file,
            line=fault.line,
            object="",
            field=fault.field,
            value=fault.value,
            remedy=fault.remedy,
        )
        for fault in faults
    ]
    return Fleet.from_documents(documents, problems, allowed)
