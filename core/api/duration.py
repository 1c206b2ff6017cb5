"""The duration grammar of the API: ASCII digits and one of `s`, `m`, `h`; at most 24 h; 0 means no time at all."""

import functools
import re
from typing import Any, ClassVar, Final

import attrs

from fivespot.core.errors import InvalidSpec

LIMIT_SECONDS: Final = 24 * 3600
PATTERN: Final = "^[0-9]{1,8}[smh]$"
REMEDY: Final = "write a whole number and one of s, m, h, at most 24h, such as 90s, 5m or 2h"

_UNITS: Final = {"s": 1, "m": 60, "h": 3600}
_GRAMMAR: Final = re.compile(r"([0-9]{1,8})([smh])")


def _within_limit(text: str) -> bool:
    match = _GRAMMAR.fullmatch(text)
    return match is None or int(match.group(1)) * _UNITS[match.group(2)] <= LIMIT_SECONDS


@attrs.frozen
class Duration:
    """A span of whole seconds, with the text that a person wrote for it.

    Attributes:
        seconds: 0 to 86,400.
        text: as written; not part of equality (`60s` is `1m`).
    """

    seconds: int
    text: str = attrs.field(eq=False)

    BOUNDS: ClassVar[dict[str, Any]] = {
        "pattern": PATTERN,
        "remedy": REMEDY,
        "max_length": 9,
        # The pattern alone would let 99999999h pass; CEL's own duration() reads the same units.
        "rule": {
            "cel": "!self.matches('^[0-9]{1,8}[smh]$') || duration(self) <= duration('24h')",
            "holds": _within_limit,
            "remedy": REMEDY,
        },
    }

    @classmethod
    def parse(cls, text: object) -> "Duration":
        """Read a duration.

        Raises:
            InvalidSpec: when it is not in the grammar or is longer than 24 h; the field is left empty.
        """
        if not isinstance(text, str):
            raise InvalidSpec("", text, REMEDY)
        return _parse(text)


@functools.lru_cache(maxsize=1024)
def _parse(text: str) -> Duration:
    match = _GRAMMAR.fullmatch(text)
    if match is None or not _within_limit(text):
        raise InvalidSpec("", text, REMEDY)
    return Duration(int(match.group(1)) * _UNITS[match.group(2)], text)
