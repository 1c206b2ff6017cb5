"""`killIfCommands` -> reclaim.toml."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.core.agent.commands import Destination, config_from, origins, render
from fivespot.core.agent.config import AgentConfig, Scope, parse


@pytest.mark.parametrize(
    ("entry", "destination", "pattern", "reason"),
    [
        ("java", Destination.COMMAND, "java", "names a program"),
        (" java ", Destination.COMMAND, "java", "names a program"),
        ("com.intellij.idea.Main", Destination.COMMAND, "com.intellij.idea.Main", "names a program"),
        ("x", Destination.COMMAND, "x", "names a program"),
        ("/opt/idea", Destination.ARGUMENT, "/opt/idea", "contains a slash: looked for in every argument"),
        ("jupyter lab", Destination.ARGUMENT, "jupyter lab", "contains a blank"),
        ("profile=work", Destination.ARGUMENT, "profile=work", "contains ="),
        ("--blender", Destination.ARGUMENT, "--blender", "begins with a dash"),
        ("argv:intellij", Destination.ARGUMENT, "intellij", "is written argv:"),
        (" argv:intellij", Destination.ARGUMENT, "intellij", "is written argv:"),
        ("argv: intellij", Destination.ARGUMENT, "intellij", "is written argv:"),
        ("-x", Destination.NOWHERE, "-x", "write at least 3"),
        ("argv:", Destination.NOWHERE, "", "blank"),
        ("é" * 200, Destination.NOWHERE, "é" * 200, "write at most 256"),
        ("a\0b", Destination.NOWHERE, "a\0b", "NUL"),
        ("a\ud800", Destination.NOWHERE, "a\ud800", "Unicode"),
    ],
)
def test_each_entry_goes_to_one_list_for_a_reason(
    entry: str, destination: Destination, pattern: str, reason: str
) -> None:
    (found,) = origins([entry])
    assert (found.entry, found.destination, found.pattern) == (entry, destination, pattern)
    assert reason in found.reason


def test_the_file_says_what_each_entry_became() -> None:
    found = origins(["java", "argv:java", " java", "--profile=work", "-x", 'a"\n# b'])
    assert render(config_from(found), found) == (
        "# Made from spec.killIfCommands of the ScheduledMachine; what is changed here is put back.\n"
        '# Left out: "-x" cannot be looked for: it has 2 bytes and is found in nearly every command line; '
        "write at least 3.\n"
        "match_commands = [\n"
        '    "java",  # "java" names a program; " java" names a program\n'
        "]\n"
        "match_argv_substrings = [\n"
        '    "java",  # "argv:java" is written argv:: looked for in every argument\n'
        '    "--profile=work",  # "--profile=work" contains =: looked for in every argument\n'
        '    "a\\"\\u000A# b",  # "a\\"\\u000A# b" contains a blank: looked for in every argument\n'
        "]\n"
        "poll_interval_ms = 250\n"
        'scope = "host"\n'
        "ignore_case = false\n"
    )


@given(
    entries=st.lists(
        st.text(max_size=300) | st.text("-=/ \"'\\#\n\r\t\x7f\x85\u2028a]", max_size=9), max_size=8
    ),
    scope=st.sampled_from(Scope),
    ignore_case=st.booleans(),
    milliseconds=st.integers(1, 3_600_000),
)
def test_any_list_gives_a_file_that_reads_back_as_the_same_configuration(
    entries: list[str], scope: Scope, ignore_case: bool, milliseconds: int
) -> None:
    base = AgentConfig(
        scope=scope, ignore_case=ignore_case, poll_interval=timedelta(milliseconds=milliseconds)
    )
    found = origins(entries)
    config = config_from(found, base)
    text = render(config, found)
    assert parse(text.encode()) == config
    assert parse(render(config).encode()) == config
    assert len(text.splitlines()) == text.count("\n"), "nothing in an entry begins a line"


def test_a_list_that_holds_nothing_to_look_for_is_not_armed() -> None:
    assert not config_from(origins(["-x", "argv:"])).armed
    assert not config_from(origins([])).armed
    assert parse(render(config_from(()), ()).encode()) == AgentConfig()
