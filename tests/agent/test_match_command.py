"""`5spot-agent match`, as a process of its own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fivespot._version import VERSION
from tests.adapters.node.started import fake_process, program, running, script, started, unique
from tests.core.agent.corpus import SYSTEMD_POD

AGENT = Path(sys.executable).with_name("5spot-agent")


def agent(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([AGENT, *arguments], capture_output=True, text=True, timeout=30, check=False)


def config(folder: Path, *commands: str, more: str = "") -> Path:
    file = folder / "reclaim.toml"
    file.write_text(f"match_commands = {json.dumps(commands)}\n{more}")
    return file


def table(*arguments: str | Path) -> list[list[str]]:
    done = agent("match", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return [line.split() for line in done.stdout.splitlines()]


def answers(*arguments: str | Path) -> dict[str, Any]:
    done = agent("match", "-o", "json", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_version_is_the_distributions() -> None:
    assert agent("--version").stdout == f"5spot-agent {VERSION}\n"


def test_what_would_fire_is_shown_with_its_pattern_and_field(tmp_path: Path) -> None:
    name = unique()
    path = program(tmp_path, name)
    with running([path, "60"]) as pid:
        lines = table("--config", config(tmp_path, "unheard-of", name))
    assert lines[0] == ["PID", "COMM", "ANSWER", "PATTERN", "FIELD", "EXECUTABLE"]
    assert lines[1] == [str(pid), name, "fires", name, "exe", path.decode()]
    assert lines[3][1:] == ["processes:", "1", "fires,", "0", "near", "misses."]


def test_near_misses_are_shown_and_say_why(tmp_path: Path) -> None:
    name = unique()
    shouted = program(tmp_path, name.upper())
    path = program(tmp_path, name)
    with running([shouted, "60"]) as other_case, running(["timeout", "60", path, "60"]) as wrapper:
        started(path)
        found = answers("--config", config(tmp_path, name))
    assert [each["comm"] for each in found["fires"]] == [name], "the program that the wrapper started"
    assert {each["pid"]: each["why"] for each in found["nearMisses"]} == {
        other_case: "case",
        wrapper: "wrapper",
    }


def test_arguments_are_looked_at_and_never_shown(tmp_path: Path) -> None:
    name = unique()
    file = config(tmp_path, more='match_argv_substrings = ["password=hunter"]\n')
    with running([script(tmp_path, name), "--password=hunter2"]) as pid:
        found = answers("--config", file)
        shown = agent("match", "--config", file).stdout
    assert [(each["pid"], each["field"]) for each in found["fires"]] == [(pid, "argv")]
    assert "hunter2" not in json.dumps(found) + shown


def test_a_program_that_this_command_is_typed_in_would_fire_too(tmp_path: Path) -> None:
    name = unique()
    terminal = tmp_path / f"{name}.sh"
    terminal.write_text(f"#!/bin/sh\n'{AGENT}' match -o json --config '{config(tmp_path, name)}'; exit 0\n")
    done = subprocess.run(["sh", terminal], capture_output=True, text=True, check=True)
    assert [each["pattern"] for each in json.loads(done.stdout)["fires"]] == [name]


def test_this_command_itself_never_fires(tmp_path: Path) -> None:
    file = config(tmp_path, "5spot-agent")
    with subprocess.Popen(
        [AGENT, "match", "-o", "json", "--config", file], stdout=subprocess.PIPE
    ) as process:
        found = json.loads(process.communicate(timeout=30)[0])
    assert process.pid not in {each["pid"] for each in found["fires"] + found["nearMisses"]}


def test_another_proc_root_is_read_and_its_pods_are_near_misses(tmp_path: Path) -> None:
    root = tmp_path / "proc"
    fake_process(root, 5, comm=b"java", argv=[b"java"], exe="/usr/bin/java")
    fake_process(root, 6, comm=b"java", argv=[b"java"], exe="/usr/bin/java", cgroup=SYSTEMD_POD)
    fake_process(root, 7, comm=b"\x1b[31m\xff", argv=[b"\x1b"], exe="/opt/java\x1b[2J")
    fake_process(root, 8, comm=b"bash", exe="/usr/bin/bash", state=b"R")
    fake_process(root, 9, comm=b"init", argv=[b"init"])
    file = config(tmp_path, "java")
    lines = table("--config", file, "--proc-root", root)
    assert lines[1:6] == [
        ["5", "java", "fires", "java", "exe", "/usr/bin/java"],
        ["7", "\\x1b[31m\\xff", "fires", "java", "exe-word", "/opt/java\\x1b[2J"],
        ["6", "java", "near", "miss:", "inside", "a", "pod", "java", "-", "/usr/bin/java"],
        ["8", "bash", "undecided", "-", "-", "/usr/bin/bash"],
        [],
    ]
    assert " ".join(lines[6]) == "5 processes: 2 fire, 1 near miss."
    assert " ".join(lines[7]).startswith("The executable of 1 process may not be read")
    found = answers("--config", file, "--proc-root", root)
    assert (found["processes"], found["unreadable"], found["armed"]) == (5, 1, True)
    assert [each["pid"] for each in found["undecided"]] == [8]


def test_a_configuration_that_can_fire_nothing_says_so(tmp_path: Path) -> None:
    file = config(tmp_path)
    done = agent("match", "--config", file)
    assert done.returncode == 0
    assert f"Nothing can fire: match_commands and match_argv_substrings in {file} are empty." in done.stdout


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no configuration at {file}; write one there, such as\n  match_commands = "),
        ("\nscop = 'host'\n", "{file}, line 2: scop: 'host' is refused: there is no such key"),
        ("match_commands = [", "{file}, line 1: 'match_commands = [' is refused: it is not TOML"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_named_with_its_line(
    tmp_path: Path, content: str | None, message: str
) -> None:
    file = tmp_path / "reclaim.toml"
    if content is not None:
        file.write_text(content)
    done = agent("match", "--config", file)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: " + message.format(file=file))


def test_a_folder_in_place_of_the_configuration_is_no_traceback(tmp_path: Path) -> None:
    done = agent("match", "--config", tmp_path)
    assert done.returncode == 1
    assert (
        done.stderr
        == f"Error: {tmp_path} cannot be read: Is a directory; check the path and its permissions\n"
    )


@pytest.mark.parametrize("root", ["", "missing"])
def test_a_proc_root_that_is_none_is_refused(tmp_path: Path, root: str) -> None:
    done = agent("match", "--config", config(tmp_path, "java"), "--proc-root", tmp_path / root)
    assert done.returncode == 1
    assert "name a folder where proc is mounted" in done.stderr


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    command = f"'{AGENT}' match --config '{config(tmp_path, 'sh', 'python3')}' | true"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_nothing_heavy_is_imported_and_no_library_is_missed() -> None:
    program_text = (
        "import sys\n"
        "for name in ('psutil', 'pyroute2'):\n"
        "    sys.modules[name] = None\n"
        "import fivespot.agent.main\n"
        "heavy = {'cattrs', 'yaml', 'httpx', 'kr8s', 'msgspec', 'asyncio', 'zoneinfo', 'tzdata', 'ssl', 'logging'}\n"
        "print(sorted(heavy & set(sys.modules)), [name for name in sys.modules if name.startswith('fivespot.core.')\n"
        "    and not name.startswith(('fivespot.core.agent', 'fivespot.core.errors'))])\n"
    )
    done = subprocess.run([sys.executable, "-c", program_text], capture_output=True, text=True, check=True)
    assert done.stdout == "[] []\n"
