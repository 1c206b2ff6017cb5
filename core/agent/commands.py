"""`spec.killIfCommands`, one list of words, -> the two lists of `reclaim.toml`, and that file's text.

A plain word names a program and is not looked for in arguments: read against whole command lines, `java` would fire on
`grep java` and `vim java.txt` too.
"""

import enum
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Final

import attrs

from fivespot.core.agent.config import MIN_ARGV_BYTES, AgentConfig, fault
from fivespot.core.agent.toml_lines import quoted

ARGV_PREFIX: Final = "argv:"
"""An entry that begins with this is looked for in every argument, whatever it looks like."""

_BLANK = re.compile(r"\s")


class Destination(enum.Enum):
    """Which list an entry belongs to."""

    COMMAND = "match_commands"
    ARGUMENT = "match_argv_substrings"
    NOWHERE = ""
    """It cannot be a pattern at all, although the API accepts it; the reason says why."""


@attrs.frozen(kw_only=True)
class Origin:
    """What one entry of `killIfCommands` became.

    Attributes:
        entry: the entry as it was written.
        destination: the list it went to.
        pattern: what stands in that list.
        reason: why, as the end of a sentence that begins with the entry.
    """

    entry: str
    destination: Destination
    pattern: str
    reason: str


def origins(entries: Iterable[str]) -> tuple[Origin, ...]:
    """What each entry becomes, in order; blanks around an entry do not count."""
    return tuple(_origin(entry) for entry in entries)


def config_from(found: Sequence[Origin], base: AgentConfig | None = None) -> AgentConfig:
    """`base` (by default the agent's defaults) with the patterns of these entries."""
    return attrs.evolve(
        base or AgentConfig(),
        match_commands=_patterns(found, Destination.COMMAND),
        match_argv_substrings=_patterns(found, Destination.ARGUMENT),
    )


def render(config: AgentConfig, found: Sequence[Origin] = ()) -> str:
    """The text of `reclaim.toml`; reading it gives `config` again. Comments say what each entry became, and why."""
    out = []
    if found:
        out.append(
            "# Made from spec.killIfCommands of the ScheduledMachine; what is changed here is put back."
        )
    out += [
        f"# Left out: {quoted(each.entry)} {each.reason}."
        for each in found
        if each.destination is Destination.NOWHERE
    ]
    out += _list(Destination.COMMAND, config.match_commands, found)
    out += _list(Destination.ARGUMENT, config.match_argv_substrings, found)
    out.append(f"poll_interval_ms = {config.poll_interval // timedelta(milliseconds=1)}")
    out.append(f"scope = {quoted(config.scope.value)}")
    out.append(f"ignore_case = {'true' if config.ignore_case else 'false'}")
    return "\n".join(out) + "\n"


def _origin(entry: str) -> Origin:
    word = entry.strip()
    explicit = word.startswith(ARGV_PREFIX)
    pattern = word.removeprefix(ARGV_PREFIX).strip()
    destination, reason = _destination(pattern, explicit=explicit)
    at_least = MIN_ARGV_BYTES if destination is Destination.ARGUMENT else 1
    try:
        pattern.encode()
    except UnicodeEncodeError:
        remedy = "it is no Unicode text; remove it"
    else:
        remedy = fault(pattern, at_least=at_least)
    if remedy:
        destination, reason = Destination.NOWHERE, f"cannot be looked for: {remedy}"
    return Origin(entry=entry, destination=destination, pattern=pattern, reason=reason)


def _destination(pattern: str, *, explicit: bool) -> tuple[Destination, str]:
    if explicit:
        why = f"is written {ARGV_PREFIX}"
    elif "/" in pattern:
        why = "contains a slash"
    elif _BLANK.search(pattern):
        why = "contains a blank"
    elif "=" in pattern:
        why = "contains ="
    elif pattern.startswith("-"):
        why = "begins with a dash"
    else:
        return Destination.COMMAND, "names a program"
    return Destination.ARGUMENT, f"{why}: looked for in every argument"


def _patterns(found: Sequence[Origin], destination: Destination) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.pattern for each in found if each.destination is destination))


def _list(destination: Destination, patterns: Sequence[str], found: Sequence[Origin]) -> Iterator[str]:
    if not patterns:
        yield f"{destination.value} = []"
        return
    yield f"{destination.value} = ["
    for pattern in patterns:
        sources = [each for each in found if each.destination is destination and each.pattern == pattern]
        comment = "; ".join(dict.fromkeys(f"{quoted(each.entry)} {each.reason}" for each in sources))
        yield f"    {quoted(pattern)},{f'  # {comment}' if comment else ''}"
    yield "]"
