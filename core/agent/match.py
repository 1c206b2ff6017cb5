"""Whether a process is a program that the owner cares about. Pure, on bytes: what Linux calls a process is no text.

A command pattern is compared with everything that *names the program*: the executable, `comm`, and the operand of an
interpreter. It is not looked for in other arguments: `grep java` and `vim java.txt` are no java. An argv pattern is looked
for inside each argument, but not in those of programs whose arguments are about other programs.
"""

import enum
import re
from collections.abc import Iterator, Sequence

import attrs

from fivespot.core.agent.config import AgentConfig, Scope
from fivespot.core.agent.process import Exclusion, Itself, ProcessFacts, excluded_by_nature, is_agent
from fivespot.core.agent.programs import (
    INTERPRETERS,
    bare,
    basename,
    interpreter,
    is_shell,
    only_mentions,
    started,
    undeleted,
)

COMM_BYTES = 15
"""The kernel keeps so much of a program's name (TASK_COMM_LEN, without the NUL)."""

_MAX_NESTING = 4
"""`env sh -c`, the dynamic linker before java, wrappers called java: nobody nests deeper, and a loop must end."""
_WORD_BYTE = rb"0-9A-Za-z\x80-\xff"
"""What a word is made of; letters beyond ASCII are several bytes, all above 127."""


class Field(enum.StrEnum):
    """What of a process a pattern hit."""

    EXE = "exe"
    COMM = "comm"
    OPERAND = "operand"
    EXE_WORD = "exe-word"
    OPERAND_WORD = "operand-word"
    ARGV = "argv"


@attrs.frozen
class Hit:
    """The owner's program: `pattern`, as the configuration writes it, names it in `field`."""

    pattern: str
    field: Field


@attrs.frozen
class Miss:
    """No program of the owner's; `excluded` says why it does not count although its name may be one."""

    excluded: Exclusion | None = None


@attrs.frozen
class Undecided:
    """Not to be told yet: the process is in the middle of an exec, or not all of it was read. To be read again."""


Answer = Hit | Miss | Undecided

MISS = Miss()
UNDECIDED = Undecided()
NOBODY = Itself()


def reason(hit: Hit) -> str:
    """The reason that a reclaim request carries."""
    return f"process-match: {hit.pattern}"


class Matcher:
    """A configuration, made ready for many processes."""

    def __init__(self, config: AgentConfig) -> None:
        self.config = config
        self._fold = bytes.lower if config.ignore_case else bytes
        commands = {self._fold(pattern.encode()): pattern for pattern in reversed(config.match_commands)}
        self._commands = dict(reversed(commands.items()))
        self._longer = [pattern for pattern in self._commands if len(pattern) > COMM_BYTES]
        # Folders are called after runtimes: /usr/lib/jvm/java-17/bin/javac is no java.
        runtimes = [pattern for pattern in self._commands if interpreter(pattern) in INTERPRETERS]
        self._in_names = _words(runtimes)
        self._in_paths = _words([pattern for pattern in self._commands if pattern not in runtimes])
        self._substrings = [
            (self._fold(pattern.encode()), pattern) for pattern in config.match_argv_substrings
        ]

    def match(self, facts: ProcessFacts, itself: Itself = NOBODY, *, announced: bool = False) -> Answer:
        """Whether the owner's program is running as this process.

        A miss by name needs neither `cgroup` nor `lineage`; a hit without them is undecided.

        Args:
            facts: the process.
            itself: the agent, which never counts.
            announced: whether the kernel has just said that this process became another program.
        """
        excluded = excluded_by_nature(facts, announced=announced)
        if excluded is not None:
            return Miss(excluded)
        in_exec = facts.in_exec and not announced
        hit = self._hit(facts, comm_is_old=in_exec)
        if hit is None:
            return UNDECIDED if in_exec else MISS
        if facts.cgroup is None or facts.lineage is None:
            return UNDECIDED
        if is_agent(facts, itself):
            return Miss(Exclusion.AGENT)
        if self.config.scope is Scope.HOST and facts.in_pod:
            return Miss(Exclusion.POD)
        return hit

    def _hit(self, facts: ProcessFacts, *, comm_is_old: bool) -> Hit | None:
        exe, operands = names_of(facts)
        if self._commands:
            comm = b"" if comm_is_old else self._fold(facts.comm)
            hit = self._by_name(facts, comm, exe, operands) or self._by_word(exe, operands)
            if hit is not None:
                return hit
        return self._by_argument(facts, exe) if self._substrings else None

    def _by_name(self, facts: ProcessFacts, comm: bytes, exe: bytes, operands: Sequence[bytes]) -> Hit | None:
        executable = self._fold(basename(exe))
        if pattern := self._named(executable):
            return Hit(pattern, Field.EXE)
        if pattern := self._named(comm):
            return Hit(pattern, Field.COMM)
        for long in self._longer:
            if long[:COMM_BYTES] == comm and facts.argv and self._fold(basename(facts.argv[0])) == long:
                return Hit(self._commands[long], Field.COMM)
        for operand in operands:
            if pattern := self._named(self._fold(basename(operand))):
                return Hit(pattern, Field.OPERAND)
        return None

    def _named(self, name: bytes) -> str | None:
        return self._commands.get(name) or self._commands.get(bare(name))

    def _by_word(self, exe: bytes, operands: Sequence[bytes]) -> Hit | None:
        for field, path in ((Field.EXE_WORD, exe), *((Field.OPERAND_WORD, operand) for operand in operands)):
            folded = self._fold(path)
            found = (self._in_paths and self._in_paths.search(folded)) or (
                self._in_names and self._in_names.search(basename(folded))
            )
            if found:
                return Hit(self._commands[found.group()], field)
        return None

    def _by_argument(self, facts: ProcessFacts, exe: bytes) -> Hit | None:
        if mentions_only(facts, exe):
            return None
        for argument in facts.argv:
            folded = self._fold(argument)
            for substring, pattern in self._substrings:
                if substring in folded:
                    return Hit(pattern, Field.ARGV)
        return None

    def words_in(self, arguments: Sequence[bytes]) -> Iterator[str]:
        """The command patterns that stand in arguments as whole words; that alone is no hit."""
        for argument in arguments:
            for words in (self._in_paths, self._in_names):
                for found in words.finditer(self._fold(argument)) if words else ():
                    yield self._commands[found.group()]


def _words(patterns: Sequence[bytes]) -> re.Pattern[bytes] | None:
    if not patterns:
        return None
    either = b"|".join(re.escape(pattern) for pattern in patterns)
    return re.compile(rb"(?<![" + _WORD_BYTE + rb"])(?:" + either + rb")(?![" + _WORD_BYTE + rb"])")


def names_of(facts: ProcessFacts) -> tuple[bytes, list[bytes]]:
    """The path of the executable (empty: unknown), and what it runs, if it is an interpreter; and what that runs."""
    exe = undeleted(facts.exe) if facts.exe is not None else _claimed(facts.argv)
    operands: list[bytes] = []
    argv, name = facts.argv, interpreter(basename(exe))
    while name in INTERPRETERS and len(operands) < _MAX_NESTING:
        found = started(name, argv)
        if found.operand is None:
            break
        operands.append(found.operand)
        argv, name = found.argv, interpreter(basename(found.operand))
    return exe, operands


def _claimed(argv: tuple[bytes, ...]) -> bytes:
    """What a process calls itself, for want of its executable; titles such as `nginx: worker` are no paths."""
    first = argv[0] if argv else b""
    return b"" if any(byte <= ord(" ") for byte in first) else first.removeprefix(b"-")


def mentions_only(facts: ProcessFacts, exe: bytes) -> bool:
    """Whether the arguments are about other programs: `sudo`, `less`, `kubectl`, `sh -c`, and what busybox does as them."""
    name = basename(exe)
    kind = interpreter(name)
    if kind not in INTERPRETERS:
        return only_mentions(name, facts.comm)
    found = started(kind, facts.argv)
    if is_shell(kind):
        return found.from_code
    return only_mentions(kind, facts.comm) or (
        kind == b"busybox" and found.operand is not None and _applet_mentions(found.operand, found.argv)
    )


def _applet_mentions(applet: bytes, argv: tuple[bytes, ...]) -> bool:
    name = basename(applet)
    return started(name, argv).from_code if is_shell(name) else only_mentions(name, b"")
