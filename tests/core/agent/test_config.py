"""reclaim.toml."""

from datetime import timedelta

import pytest

from fivespot.core.agent.config import AgentConfig, InvalidConfig, Scope, parse
from fivespot.core.errors import InvalidSpec

WHOLE = b"""
match_commands = ["java", "idea", "steam", "java"]       # identity of the program
match_argv_substrings = ["intellij", "blender"]
poll_interval_ms = 100
scope = "all"
ignore_case = true
"""


def refusal(text: str) -> InvalidConfig:
    with pytest.raises(InvalidConfig) as refused:
        parse(text.encode())
    return refused.value


def test_every_key_is_read_and_duplicates_collapse() -> None:
    assert parse(WHOLE) == AgentConfig(
        match_commands=("java", "idea", "steam"),
        match_argv_substrings=("intellij", "blender"),
        poll_interval=timedelta(milliseconds=100),
        scope=Scope.ALL,
        ignore_case=True,
    )


def test_an_empty_file_is_sound_and_not_armed() -> None:
    assert parse(b"") == AgentConfig()
    assert not parse(b"match_commands = []\n").armed
    assert parse(b'match_argv_substrings = ["blender"]').armed


def test_windows_line_ends_and_a_byte_order_mark_are_no_fault() -> None:
    assert parse(b'\xef\xbb\xbfmatch_commands = ["java"]\r\nscope = "all"\r\n').scope is Scope.ALL


@pytest.mark.parametrize(
    ("text", "line", "field", "remedy"),
    [
        ('\nmatch_comands = ["java"]', 2, "match_comands", "there is no such key"),
        ("# x\n[match]\na = 1", 2, "match", "there is no such key"),
        ('scope = "all"\nmatch.x = 1', 2, "match", "there is no such key"),
        ('"odd\\u0020key" = 1', 1, "odd key", "there is no such key"),
        ('match_commands = "java"', 1, "match_commands", "write a list of strings"),
        ('match_commands = [\n  "java",\n  5,\n]', 3, "match_commands[1]", "write a string in quotes"),
        (
            'match_commands = [\n  "a,b]", # ]\n\n  ["x"],\n]',
            4,
            "match_commands[1]",
            "write a string in quotes",
        ),
        ('match_commands = [\n"""a\nb""",\n"",\n]', 4, "match_commands[1]", "blank"),
        ('match_commands = [" \\t"]', 1, "match_commands[0]", "blank"),
        ('match_commands = ["a\\u0000"]', 1, "match_commands[0]", "NUL"),
        (f'match_commands = ["{"é" * 129}"]', 1, "match_commands[0]", "it has 258 bytes; write at most 256"),
        ('match_argv_substrings = ["ab"]', 1, "match_argv_substrings[0]", "write at least 3"),
        ("poll_interval_ms = 0", 1, "poll_interval_ms", "from 1 to 3600000"),
        ("poll_interval_ms = -250", 1, "poll_interval_ms", "from 1 to 3600000"),
        ("poll_interval_ms = 250.0", 1, "poll_interval_ms", "whole number"),
        ("poll_interval_ms = true", 1, "poll_interval_ms", "whole number"),
        ('poll_interval_ms = "250"', 1, "poll_interval_ms", "whole number"),
        (f"poll_interval_ms = 1{'0' * 300}", 1, "poll_interval_ms", "from 1 to 3600000"),
        ('scope = "pods"', 1, "scope", '"host"'),
        ("scope = ['host']", 1, "scope", '"host"'),
        ('ignore_case = "true"', 1, "ignore_case", "without quotes"),
        ("ignore_case = 1", 1, "ignore_case", "without quotes"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_line_and_remedy(
    text: str, line: int, field: str, remedy: str
) -> None:
    refused = refusal(text)
    assert (refused.line, refused.field) == (line, field)
    assert remedy in refused.remedy
    assert str(refused).startswith(f"line {line}: {field}: ")


@pytest.mark.parametrize("lists", [(101, 0), (0, 101), (60, 41)])
def test_more_than_100_patterns_are_refused_at_the_one_too_many(lists: tuple[int, int]) -> None:
    def key(name: str, count: int) -> str:
        return "\n".join([f"{name} = [", *(f'  "{name[6]}{i:03}",' for i in range(count)), "]\n"])

    commands, substrings = lists
    text = key("match_commands", commands) + key("match_argv_substrings", substrings)
    refused = refusal(text)
    assert (
        text.split("\n")[refused.line - 1].strip()
        == f'"{"ca"[commands < 101]}{(100, 40)[commands == 60]:03}",'
    )
    assert "at most 100" in refused.remedy


def test_a_hundred_patterns_of_256_bytes_are_taken() -> None:
    patterns = [f"{i:03}" + "x" * 253 for i in range(100)]
    assert parse(f"match_commands = {patterns}".replace("'", '"').encode()).match_commands == tuple(patterns)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('match_commands = ["java"', 1),
        ('match_commands = ["java"]\nmatch_commands = ["idea"]', 2),
        ('a = 1\n\nmatch commands = ["java"]', 3),
        ("scope = host", 1),
        ("match_commands = [\n'java',\n", 2),
    ],
)
def test_what_is_no_toml_is_refused_at_its_line(text: str, line: int) -> None:
    refused = refusal(text)
    assert (refused.line, refused.field) == (line, "")
    assert "it is not TOML" in refused.remedy


@pytest.mark.parametrize(
    "data",
    [b"a = " + b"[" * 5000, b"a = " + b"9" * 5000, b"#" * (2**20 + 1), b'a = "\xff"'],
    ids=["deep", "wide", "big", "latin"],
)
def test_hostile_files_are_refused_as_politely(data: bytes) -> None:
    with pytest.raises(InvalidConfig) as refused:
        parse(data)
    assert refused.value.remedy
    assert len(str(refused.value)) < 400


def test_the_refusal_is_one_of_the_projects_own_and_can_be_put_below_a_parent() -> None:
    refused = refusal("scope = 5")
    assert isinstance(refused, InvalidSpec)
    assert (
        str(refused.below("data")) == 'line 1: data.scope: 5 is refused: write "host" (all but pods) or "all"'
    )
