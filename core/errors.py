"""Errors that a person can act on: which field, which value, what to do.

Nothing here knows files, lines or clusters; whoever read the document adds where it came from.
"""

import math
from typing import Any

_EXACT = 2**53
"""Readers of JSON keep whole numbers exact up to here."""
_SHOWN = 120
"""How many characters of a refused value a message shows; a 2 MB list must not become a 2 MB message."""


def shown(value: object) -> str:
    """Return `value` as a message shows it: its repr, cut to a length that a person reads."""
    try:
        text = repr(value[: _SHOWN + 1]) if isinstance(value, str | bytes | list) else repr(value)
    except (RecursionError, ValueError):  # nested too deep, or an integer of thousands of digits
        return f"a {type(value).__name__} too large to show"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def plain(value: object) -> str | int | float | bool | None:
    """A refused value as JSON can say it and a person read it: never megabytes, never NaN."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) <= _EXACT else shown(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else shown(value)
    return value if isinstance(value, str) and len(value) <= _SHOWN else shown(value)


class FivespotError(Exception):
    """Whatever this project refuses or fails at; the message is meant for a person."""


class InvalidSpec(FivespotError):  # noqa: N818 - the design's public name; it states a fact about the spec
    """A document, or a part of one, is refused whole.

    Attributes:
        field: path of the field inside the refused mapping, such as `windows[0].start`; empty for the whole.
        value: what stood there.
        remedy: what to write instead, as one sentence without a full stop.
    """

    def __init__(self, field: str, value: Any, remedy: str) -> None:
        super().__init__(field, value, remedy)
        self.field = field
        self.value = value
        self.remedy = remedy

    def __str__(self) -> str:
        where = f"{self.field}: " if self.field else ""
        return f"{where}{shown(self.value)} is refused: {self.remedy}"

    def below(self, parent: str) -> "InvalidSpec":
        """Return the same error with `parent` put in front of its field (`spec` and `enabled` give `spec.enabled`)."""
        glue = "" if not self.field or self.field.startswith("[") or not parent else "."
        return InvalidSpec(f"{parent}{glue}{self.field}", self.value, self.remedy)
