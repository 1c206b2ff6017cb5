"""What the agent is told: `reclaim.toml` -> `AgentConfig`. A pure function of the file's bytes."""

import enum
import re
import tomllib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

import attrs

from fivespot.core.agent.toml_lines import Place, lines
from fivespot.core.errors import InvalidSpec

DEFAULT_PATH: Final = "/etc/5spot/reclaim.toml"

MAX_PATTERNS: Final = 100
MAX_PATTERN_BYTES: Final = 256
MIN_ARGV_BYTES: Final = 3
"""A shorter substring is found in nearly every command line."""
MAX_BYTES: Final = 2**20
"""A larger file is refused; 100 patterns of 256 bytes are a fortieth of that."""
MAX_INTERVAL: Final = timedelta(hours=1)

_AT = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


class InvalidConfig(InvalidSpec):
    """A configuration file is refused whole.

    Attributes:
        line: the line at fault, from 1; 0 when no single line is.
        field, value, remedy: as in InvalidSpec; the field is empty where the text is no TOML.
    """

    def __init__(self, line: int, field: str, value: Any, remedy: str) -> None:
        super().__init__(field, value, remedy)
        self.line = line
        self.args = (line, field, value, remedy)

    def __str__(self) -> str:
        return f"line {self.line}: {super().__str__()}" if self.line else super().__str__()

    def below(self, parent: str) -> "InvalidConfig":
        """The same error with `parent` put in front of its field."""
        return InvalidConfig(self.line, super().below(parent).field, self.value, self.remedy)


class Scope(enum.StrEnum):
    """Whose processes count."""

    HOST = "host"
    """Everything but the processes of pods: the cluster's own work is no owner at the keyboard."""
    ALL = "all"
    """Processes of pods too."""


@attrs.frozen(kw_only=True)
class AgentConfig:
    """What the agent looks for, and how.

    Attributes:
        match_commands: names of programs; looked for in everything that names the program of a process.
        match_argv_substrings: texts that are looked for inside every single argument.
        poll_interval: where the kernel does not announce programs, how often /proc is read.
        scope: whose processes count.
        ignore_case: whether `Java` and `java` are the same (ASCII letters only).
    """

    match_commands: tuple[str, ...] = ()
    match_argv_substrings: tuple[str, ...] = ()
    poll_interval: timedelta = timedelta(milliseconds=250)
    scope: Scope = Scope.HOST
    ignore_case: bool = False

    @property
    def armed(self) -> bool:
        """Whether anything can fire at all."""
        return bool(self.match_commands or self.match_argv_substrings)


def parse(data: bytes) -> AgentConfig:
    """Read a configuration file. A pattern that stands there twice counts once.

    Raises:
        InvalidConfig: it is no TOML, or says something that cannot be meant.
    """
    text = _text(data)
    file = _File(_document(text), lines(text))
    file.refuse_unknown_keys()
    commands = file.patterns("match_commands", at_least=1)
    substrings = file.patterns("match_argv_substrings", at_least=MIN_ARGV_BYTES)
    file.refuse_too_many(commands, substrings)
    return AgentConfig(
        match_commands=tuple(dict.fromkeys(commands)),
        match_argv_substrings=tuple(dict.fromkeys(substrings)),
        poll_interval=file.interval("poll_interval_ms"),
        scope=file.scope("scope"),
        ignore_case=file.flag("ignore_case"),
    )


def _text(data: bytes) -> str:
    if len(data) > MAX_BYTES:
        raise InvalidConfig(0, "", f"a file of {len(data)} bytes", f"write at most {MAX_BYTES}")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidConfig(line, "", data[error.start : error.end], "save the file as UTF-8") from None


def _document(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise InvalidConfig(0, "", "a list in a list in a list ...", "write flat lists of strings") from None
    except ValueError as error:  # TOMLDecodeError, and what Python says to numbers of thousands of digits
        at = _AT.search(str(error))
        last = text.rstrip("\n").count("\n") + 1
        line = int(at.group(1) or last) if at else 0
        what = _AT.sub("", str(error))
        wrong = text.split("\n")[line - 1].strip() if line else "the file"
        raise InvalidConfig(line, "", wrong, f"it is not TOML: {what[:1].lower()}{what[1:]}") from None


@attrs.frozen
class _File:
    """A parsed document and where its parts stand."""

    document: Mapping[str, Any]
    places: Mapping[Place, int]

    def refused(self, key: str, value: object, remedy: str, *, entry: int | None = None) -> InvalidConfig:
        line = self.places.get((key, entry), self.places.get((key, None), 0))
        return InvalidConfig(line, key if entry is None else f"{key}[{entry}]", value, remedy)

    def refuse_unknown_keys(self) -> None:
        for key, value in self.document.items():
            if key not in _KEYS:
                raise self.refused(key, value, f"there is no such key; there are {', '.join(_KEYS)}")

    def patterns(self, key: str, *, at_least: int) -> tuple[str, ...]:
        found = self.document.get(key, [])
        if not isinstance(found, list):
            raise self.refused(key, found, 'write a list of strings, such as ["java"]')
        for index, pattern in enumerate(found):
            remedy = (
                fault(pattern, at_least=at_least) if isinstance(pattern, str) else "write a string in quotes"
            )
            if remedy:
                raise self.refused(key, pattern, remedy, entry=index)
        return tuple(found)

    def refuse_too_many(self, commands: tuple[str, ...], substrings: tuple[str, ...]) -> None:
        if len(commands) + len(substrings) <= MAX_PATTERNS:
            return
        beyond = MAX_PATTERNS - len(commands)
        key, entry = ("match_argv_substrings", beyond) if beyond >= 0 else ("match_commands", MAX_PATTERNS)
        count = len(commands) + len(substrings)
        raise self.refused(
            key, f"{count} patterns", f"write at most {MAX_PATTERNS} in both lists", entry=entry
        )

    def interval(self, key: str) -> timedelta:
        found = self.document.get(key)
        if found is None:
            return AgentConfig().poll_interval
        if type(found) is not int or not 0 < found <= MAX_INTERVAL // timedelta(milliseconds=1):
            raise self.refused(key, found, "write a whole number of milliseconds from 1 to 3600000")
        return timedelta(milliseconds=found)

    def scope(self, key: str) -> Scope:
        found = self.document.get(key, Scope.HOST)
        if not isinstance(found, str) or found not in list(Scope):
            raise self.refused(key, found, 'write "host" (all but pods) or "all"')
        return Scope(found)

    def flag(self, key: str) -> bool:
        found = self.document.get(key, False)
        if not isinstance(found, bool):
            raise self.refused(key, found, "write true or false, without quotes")
        return found


_KEYS = ("match_commands", "match_argv_substrings", "poll_interval_ms", "scope", "ignore_case")


def fault(pattern: str, *, at_least: int) -> str:
    """What is wrong with a pattern, as a remedy; empty for a sound one."""
    size = len(pattern.encode("utf-8", "surrogatepass"))
    if not pattern.strip():
        return "a blank pattern would match everything or nothing; remove it"
    if "\0" in pattern:
        return "no name and no argument holds a NUL; remove it"
    if size > MAX_PATTERN_BYTES:
        return f"it has {size} bytes; write at most {MAX_PATTERN_BYTES}"
    if size < at_least:
        return f"it has {size} bytes and is found in nearly every command line; write at least {at_least}"
    return ""
