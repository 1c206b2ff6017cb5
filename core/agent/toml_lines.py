"""On which line of a TOML file a key or an entry of a list stands; tomllib does not say.

Only for text that tomllib has accepted: the tokens are cut, not checked.
"""

import re
from collections.abc import Mapping

_TOKEN = re.compile(
    r'(?P<string>"""(?:[^\\]|\\.)*?""""{0,2}|\'\'\'.*?\'\'\'\'{0,2}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\')'
    r"|(?P<comment>#[^\n]*)|(?P<blank>[ \t\r]+)|(?P<newline>\n)|(?P<mark>[\[\]{},=])|(?P<bare>[^\s\[\]{},=#\"']+)",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([btnfre\"\\]))")
_NAMED = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", "e": "\x1b", '"': '"', "\\": "\\"}

Place = tuple[str, int | None]
"""A top-level key, and which entry of its list; None for the key itself."""


def lines(text: str) -> Mapping[Place, int]:
    """Where the keys of the top level, and the entries of their lists, stand; lines are counted from 1.

    A table (`[name]`) or a dotted key counts as its first name.
    """
    found: dict[Place, int] = {}
    line, depth, entry = 1, 0, 0
    key: str | None = None
    in_value = in_table = False
    for token in _TOKEN.finditer(text):
        kind, content = token.lastgroup, token.group()
        if kind == "newline" and depth == 0:
            key, in_value = None, False
        elif kind in {"string", "bare"}:
            if key is None and not in_table:
                key = _plain(content) if kind == "string" else content.partition(".")[0]
                found.setdefault((key, None), line)
            if key is not None and in_value and depth == 1:
                found.setdefault((key, entry), line)
        elif kind == "mark" and in_value:
            depth += (content in "[{") - (content in "]}")
            if key is not None and content in "[{" and depth == 2:  # noqa: PLR2004 - a list in the list is an entry
                found.setdefault((key, entry), line)
            entry = 0 if depth == 0 else entry + (content == "," and depth == 1)
        elif kind == "mark" and content == "=":
            in_value, entry = True, 0
        elif kind == "mark" and content == "]":
            in_table = True  # what follows a table's header is below it
        line += content.count("\n")
    return found


def quoted(text: str) -> str:
    """A basic string of TOML, on one line, whatever the text holds."""
    return '"' + re.sub(r'[\x00-\x1f\x7f-\x9f"\\\u2028\u2029]', _escaped, text) + '"'


def _escaped(found: re.Match[str]) -> str:
    character = found.group()
    return f"\\{character}" if character in '"\\' else f"\\u{ord(character):04X}"


def _plain(string: str) -> str:
    """What a quoted key says."""
    inner = string[1:-1]
    return inner if string[0] == "'" else _ESCAPE.sub(_unescaped, inner)


def _unescaped(found: re.Match[str]) -> str:
    four, eight, named = found.groups()
    return _NAMED[named] if named else chr(int(four or eight, 16))
