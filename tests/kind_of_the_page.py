"""The kind that docs/providers.md writes for its reader, run out of the page."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import attrs

from fivespot.core.api import kinds, reasons
from fivespot.core.api.common import Metadata
from fivespot.core.api.providers import ProviderStatus
from fivespot.core.api.schema import Bounds, prop
from fivespot.core.provider.answer import Answer, Inputs, Unaided
from fivespot.core.provider.kinds import ProviderKind
from fivespot.core.provider.reading import read

PAGE = Path(__file__).parents[1] / "docs" / "providers.md"
# What the modules import in which the page puts its pieces.
_IMPORTED: Final = {
    "Answer": Answer,
    "Any": Any,
    "Bounds": Bounds,
    "Final": Final,
    "Inputs": Inputs,
    "Mapping": Mapping,
    "Metadata": Metadata,
    "ProviderKind": ProviderKind,
    "ProviderStatus": ProviderStatus,
    "UTC": UTC,
    "Unaided": Unaided,
    "_provider": kinds._provider,
    "attrs": attrs,
    "datetime": datetime,
    "prop": prop,
    "read": read,
    "reasons": reasons,
    "timedelta": timedelta,
}


def kind_of_the_page() -> ProviderKind:
    """What its last line makes."""
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL))
    body, _, last = code.rstrip().rpartition("\n")
    scope = dict(_IMPORTED)
    exec(compile(body, str(PAGE), "exec"), scope)
    made = eval(last, scope)
    assert isinstance(made, ProviderKind)
    return made
