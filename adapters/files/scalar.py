"""What a YAML scalar means to kubectl: the resolver of its YAML library, and that library's way into JSON.

The rules are those of go.yaml.in/yaml/v2 (`resolve.go`, `decode.go`) and sigs.k8s.io/yaml (`yaml.go`), as linked into
kubectl; they are neither YAML 1.1 nor 1.2 nor PyYAML's. `tests/adapters/files/kubectl_scalars.jsonl` holds that
library's own answers. Nothing here knows lines or documents.
"""

import base64
import math
import re
import struct
from datetime import date, time
from decimal import Decimal

Raw = None | bool | int | float | str
"""A scalar as the YAML library has it: an int may reach 2**64 - 1, a float may be infinite."""

_WORDS: dict[str, Raw] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_FIRST_OF_A_NUMBER = frozenset("0123456789+-.")
_INTEGER = re.compile(
    r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))|0b([+-][01]+)", re.ASCII
)
_BASES = (16, 2, 8, 10)
_DOT_FLOAT = re.compile(r"\.[0-9]+(_[0-9]+)*([eE][-+]?[0-9]+(_[0-9]+)*)?", re.ASCII)
"""Behind a leading dot Go's own rule holds: one underscore between two digits. Elsewhere they may stand anywhere."""

_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_MAX_DECIMAL_DIGITS = 20
"""2**64 - 1 has as many; longer ones are floats, and Python would refuse to convert very long ones."""

_INT64 = range(-(2**63), 2**63)
_UINT64 = range(2**64)
_PLAIN_DIGITS_BELOW = 1e21
"""Go's encoding/json writes a float of at least this size with an exponent, which then stays a float."""

_TIMESTAMP = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:[Tt](\d{1,2}):(\d{1,2}):(\d{1,2})(?:[.,]\d+)?(?:Z|[+-]\d\d:\d\d)| (\d{1,2}):(\d{1,2}):(\d{1,2})(?:[.,]\d+)?)?",
    re.ASCII,
)
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", re.ASCII)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")

_STANDARD = "tag:yaml.org,2002:"
_DIGITS_AFTER_THE_FIRST = range(9)


class Unfit(ValueError):  # noqa: N818 - it states a fact about the scalar
    """A scalar that its tag, or JSON, has no room for; the message is the remedy."""


def plain(text: str) -> Raw:
    """What an unquoted scalar without a tag means."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _FIRST_OF_A_NUMBER:
        return text
    digits = text.replace("_", "")
    number: int | float | None
    if text[0] == ".":
        number = float(digits) if _DOT_FLOAT.fullmatch(text) else None
    else:
        number = _integer(digits)
        if number is None and _FLOAT.fullmatch(digits):
            number = float(digits)
    return text if number is None or math.isinf(number) else number


def _integer(digits: str) -> int | None:
    match = _INTEGER.fullmatch(digits)
    if match is None:
        return None
    sign, *in_bases, oddly_signed = match.groups()
    if oddly_signed is not None:  # `0b-1` is -1: the library retries what follows 0b on its own
        sign, in_bases = "", [None, oddly_signed, None, None]
    base, text = next((base, text) for base, text in zip(_BASES, in_bases, strict=True) if text is not None)
    if base == 10 and len(text) > _MAX_DECIMAL_DIGITS:  # noqa: PLR2004
        return None
    number = int(f"{sign}{text}", base)
    return number if number in _INT64 or (not sign and number in _UINT64) else None


def tagged(tag: str, text: str) -> Raw:
    """What a scalar with an explicit tag means; Unfit where the two do not go together.

    A tag that the library does not know, an application's among them, is ignored and makes a string.
    """
    kind = tag.removeprefix(_STANDARD) if tag.startswith(_STANDARD) else ""
    if kind == "binary":
        return _binary(text)
    if kind not in {"null", "bool", "int", "float", "timestamp"}:
        return text
    fits, value = (_is_timestamp(text), text) if kind == "timestamp" else _fit(kind, plain(text))
    if not fits:
        raise Unfit(f"the tag !!{kind} wants another value; take the tag off, or write one that it takes")
    return value


def _fit(kind: str, value: Raw) -> tuple[bool, Raw]:
    match kind, value:
        case "null", None:
            return True, None
        case "bool", bool():
            return True, value
        case "int" | "float", bool():
            return False, value
        case "int", int():
            return True, value
        case "float", int():
            return value in _INT64, float(value)
        case "float", float():
            return True, value
        case _:
            return False, value


def _binary(text: str) -> str:
    encoded = text.replace("\r", "").replace("\n", "")
    if not _BASE64.fullmatch(encoded):
        raise Unfit("!!binary wants base64; take the tag off if the text is meant as it stands")
    return without_surrogates(base64.b64decode(encoded).decode("utf-8", "surrogateescape"))


def has_surrogates(text: str) -> bool:
    """Whether `text` holds halves of characters, which no UTF-8 can express."""
    return _LONE_SURROGATE.search(text) is not None


def without_surrogates(text: str) -> str:
    """Replace what is no character by U+FFFD one for one, as Go does."""
    return _LONE_SURROGATE.sub("\ufffd", text)


def _is_timestamp(text: str) -> bool:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return False
    year, month, day, *clock = (int(part or 0) for part in match.groups())
    try:
        date(2000 + year % 400, month, day)
        for hour, minute, second in (clock[:3], clock[3:]):
            time(hour, minute, second)
    except ValueError:
        return False
    return True


def json_value(raw: Raw) -> Raw:
    """The value that arrives at the API server; Unfit for the infinities and not-a-number.

    The way there leads through JSON text, which has one kind of number: what prints as an integer that 64 bits hold is
    one (`1.0`, `1e3`), any other number is a float (2**63 too).
    """
    if type(raw) is int:
        return raw if raw in _INT64 else float(raw)
    if type(raw) is not float:
        return raw
    if not math.isfinite(raw):
        raise Unfit("JSON has no infinity and no not-a-number; quote it, or write a number")
    if not raw.is_integer() or abs(raw) >= _PLAIN_DIGITS_BELOW:
        return raw
    # Go prints the shortest digits that read back as the float and fills up with zeros, so not int(raw).
    printed = int(Decimal(repr(raw)))
    return printed if printed in _INT64 else raw


def json_key(raw: Raw) -> str:
    """The string that a scalar becomes as a key; Unfit for null and for integers beyond 64 bits with a sign."""
    match raw:
        case str():
            return raw
        case bool():
            return "true" if raw else "false"
        case int() if raw in _INT64:
            return str(raw)
        case float():
            return _float32_text(raw)
        case _:
            raise Unfit("a key is a string, a number of 64 bits or a boolean; quote it")


def _float32_text(number: float) -> str:
    """Go's strconv.FormatFloat(number, 'g', -1, 32), with the library's names for what is no number."""
    try:
        single = _as_float32(number)
    except OverflowError:
        single = math.copysign(math.inf, number)
    if not math.isfinite(single):
        return ".nan" if math.isnan(single) else ".inf" if single > 0 else "-.inf"
    digits = next(n for n in _DIGITS_AFTER_THE_FIRST if _as_float32(float(f"{single:.{n}e}")) == single)
    scientific = f"{single:.{digits}e}"
    exponent = int(scientific.partition("e")[2])
    # Go decides as if the precision were 6 when asked for the shortest form.
    return f"{single:.{max(digits - exponent, 0)}f}" if -4 <= exponent < 6 else scientific  # noqa: PLR2004


def _as_float32(number: float) -> float:
    (single,) = struct.unpack("f", struct.pack("f", number))
    return float(single)
