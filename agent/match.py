"""`5spot-agent match`: which processes of this machine would fire now, and which nearly would."""

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs
import click

from fivespot.adapters.node.procfs import Procfs
from fivespot.agent.settings import load
from fivespot.core.agent.config import DEFAULT_PATH, AgentConfig
from fivespot.core.agent.match import Answer, Hit, Matcher, Miss, Undecided
from fivespot.core.agent.near import NearMiss, NearMisses
from fivespot.core.agent.process import Itself, ProcessFacts

_READINGS = 5
_BETWEEN_READINGS = 0.005
"""Seconds; a process in the middle of an exec is there long before the last reading."""


@attrs.frozen
class Found:
    """A process that fires, nearly does, or could not be told."""

    facts: ProcessFacts
    answer: Hit | NearMiss | Undecided


@attrs.frozen
class Survey:
    """What was found on a machine; `unreadable` counts processes whose executable may not be read."""

    processes: int
    unreadable: int
    found: tuple[Found, ...]


@click.command("match")
@click.option(
    "--config",
    type=click.Path(),
    default=DEFAULT_PATH,
    show_default=True,
    metavar="FILE",
    help="What to look for.",
)
@click.option(
    "--proc-root",
    type=click.Path(),
    default="/proc",
    show_default=True,
    metavar="DIR",
    help="Where the processes are read.",
)
@click.option(
    "--output",
    "-o",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="Form of the answer.",
)
def command(config: str, proc_root: str, output: str) -> None:
    """Which programs that run now would give the machine back, and which nearly would.

    Nothing is written anywhere. Arguments are looked at, but never shown: they may hold secrets.
    """
    settings = load(config)
    found = survey(settings, Procfs(proc_root))
    if output == "json":
        click.echo(json.dumps(_as_json(config, settings, found), indent=2))
        return
    for line in _table(found):
        click.echo(line)
    for line in _notes(config, settings, found):
        click.echo(line)


def survey(config: AgentConfig, procfs: Procfs) -> Survey:
    """Match every process as the installed agent would: of this command, only its own process is left out."""
    matcher, near_misses = Matcher(config), NearMisses(config)
    # Not its ancestors and its session: the owner's program may well be the terminal that this was typed in.
    running = procfs.itself()
    itself = Itself(pid=running.pid, family=frozenset(one for one in running.family if one[0] == running.pid))
    processes = unreadable = 0
    found = []
    for pid in _pids(procfs):
        examined = _examine(procfs, pid, matcher, itself)
        if examined is None:
            continue
        facts, answer = examined
        processes += 1
        unreadable += facts.exe is None and not facts.is_kernel_thread and not facts.is_dead
        near = near_misses.of(facts, itself) if isinstance(answer, Miss) else answer
        if near is not None:
            found.append(Found(facts, near))
    return Survey(processes, unreadable, tuple(sorted(found, key=_order)))


def _pids(procfs: Procfs) -> list[int]:
    try:
        pids = procfs.pids()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise click.ClickException(
            f"--proc-root {procfs.root}: {why}; name a folder where proc is mounted"
        ) from None
    if not pids:
        raise click.ClickException(
            f"--proc-root {procfs.root}: no process is in there; name a folder where proc is mounted"
        )
    return pids


def _examine(
    procfs: Procfs, pid: int, matcher: Matcher, itself: Itself
) -> tuple[ProcessFacts, Answer] | None:
    examined = None
    for reading in range(_READINGS):
        if reading:
            time.sleep(_BETWEEN_READINGS)
        facts = procfs.read(pid)
        if facts is None:
            return None
        examined = facts, matcher.match(facts, itself)
        if not isinstance(examined[1], Undecided):
            break
    return examined


def _order(found: Found) -> tuple[bool, bool, int]:
    """What fires first, then what nearly does."""
    return not isinstance(found.answer, Hit), not isinstance(found.answer, NearMiss), found.facts.pid


def _table(found: Survey) -> Iterator[str]:
    if not found.found:
        return
    rows = [("PID", "COMM", "ANSWER", "PATTERN", "FIELD", "EXECUTABLE")]
    for each in found.found:
        facts = each.facts
        exe = _text(facts.exe) if facts.exe is not None else "?"
        rows.append((str(facts.pid), _text(facts.comm), *_told(each.answer), exe))
    yield from _columns(rows)
    yield ""


def _told(answer: Hit | NearMiss | Undecided) -> tuple[str, str, str]:
    match answer:
        case Hit(pattern, field):
            return "fires", _text(pattern), field.value
        case NearMiss(pattern, why):
            return f"near miss: {why.value}", _text(pattern), "-"
        case Undecided():
            return "undecided", "-", "-"


def _notes(config: str, settings: AgentConfig, found: Survey) -> Iterator[str]:
    fires = sum(isinstance(each.answer, Hit) for each in found.found)
    near = sum(isinstance(each.answer, NearMiss) for each in found.found)
    yield (
        f"{_count(found.processes, 'process', 'processes')}: {_count(fires, 'fires', 'fire')}, "
        f"{_count(near, 'near miss', 'near misses')}."
    )
    if not settings.armed:
        yield f"Nothing can fire: match_commands and match_argv_substrings in {config} are empty."
    if found.unreadable:
        yield (
            f"The executable of {_count(found.unreadable, 'process', 'processes')} may not be read; "
            f"root, or CAP_SYS_PTRACE, sees more."
        )


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _as_json(config: str, settings: AgentConfig, found: Survey) -> dict[str, Any]:
    return {
        "config": config,
        "armed": settings.armed,
        "processes": found.processes,
        "unreadable": found.unreadable,
        "fires": [
            {**_process(each.facts), "pattern": each.answer.pattern, "field": each.answer.field.value}
            for each in found.found
            if isinstance(each.answer, Hit)
        ],
        "nearMisses": [
            {**_process(each.facts), "pattern": each.answer.pattern, "why": each.answer.why.value}
            for each in found.found
            if isinstance(each.answer, NearMiss)
        ],
        "undecided": [_process(each.facts) for each in found.found if isinstance(each.answer, Undecided)],
    }


def _process(facts: ProcessFacts) -> dict[str, Any]:
    return {
        "pid": facts.pid,
        "comm": _text(facts.comm),
        "exe": None if facts.exe is None else _text(facts.exe),
    }


def _text(name: bytes | str) -> str:
    """A name as a terminal may show it: any program may call itself by control characters."""
    text = name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else name
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def _columns(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    table = list(rows)
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    for row in table:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
