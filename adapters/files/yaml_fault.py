"""What to tell a person whose YAML the parser cannot make sense of.

libyaml and PyYAML's own parser word some faults differently; both are understood here.
"""

import re
from collections.abc import Sequence

from yaml.error import Mark, MarkedYAMLError, YAMLError

from fivespot.adapters.files.node import Unreadable

_TAB_IN_INDENT = re.compile(r"[ ]*\t")
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_UNUSUAL_BREAK = re.compile("[\r\x85\u2028\u2029]")
_INVISIBLE = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
"""What YAML allows nowhere, and the byte order mark, which kubectl takes for text where nobody can see it."""


def refuse_invisible(text: str, first_line: int) -> None:
    """Raise Unreadable for a character that nobody can see."""
    found = _INVISIBLE.search(text)
    if found is not None:
        line = first_line + text.count("\n", 0, found.start())
        raise Unreadable(
            line, found[0], "take the invisible character out, or write it as an escape in double quotes"
        )


def file_lines(text: str, first_line: int) -> Sequence[int]:
    """For each line that a YAML parser counts in `text` the line of the file, where only a line feed ends one."""
    if not _UNUSUAL_BREAK.search(text):
        return range(first_line, first_line + text.count("\n") + 2)
    lines = [first_line]
    for ending in _BREAK.finditer(text):
        lines.append(lines[-1] + ending[0].endswith("\n"))
    return [*lines, lines[-1]]


def refusal_of(error: YAMLError, text: str, lines: Sequence[int]) -> Unreadable:
    """The refusal that `error` amounts to; it occurred in `text`, whose `file_lines` are `lines`."""
    if not isinstance(error, MarkedYAMLError):
        return Unreadable(lines[0], str(error), "this is not YAML")
    rows = text.split("\n")
    at = _row(error.problem_mark or error.context_mark, rows, lines)
    opened = _row(error.context_mark, rows, lines)
    context, problem = error.context or "", error.problem or ""
    if _TAB_IN_INDENT.match(rows[at]):
        remedy = "indent with spaces; YAML takes no tabs there"
    elif "quoted scalar" in context and "end of stream" in problem:
        at, remedy = opened, "close the quote that opens here"
    elif "flow" in context:
        remedy = f"close the bracket of line {lines[0] + opened}, or put the comma or colon that is missing"
    elif "document start" in problem and rows[at].startswith("%"):
        remedy = "take the line that begins with % out; kubectl reads no directives"
    elif "document start" in problem:
        remedy = "kubectl ignores what follows the end of a document; put a line `---` before the next one"
    else:
        remedy = f"this is not YAML: {', '.join(part for part in (context, problem) if part)}"
    return Unreadable(lines[0] + at, rows[at].strip(), remedy)


def _row(mark: Mark | None, rows: list[str], lines: Sequence[int]) -> int:
    """The index of the marked row; a mark behind the last character means the last row where something stands."""
    marked = min(mark.line, len(lines) - 1) if mark is not None else 0
    at = min(lines[marked] - lines[0], len(rows) - 1)
    while at > 0 and not rows[at].strip():
        at -= 1
    return at
