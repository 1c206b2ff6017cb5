"""Real processes of this machine, read from its own /proc, and what only a made-up one can show."""

import os
import resource
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest

from fivespot.adapters.node.procfs import MAX_CMDLINE, Procfs
from fivespot.core.agent.config import AgentConfig
from fivespot.core.agent.match import MISS, NOBODY, UNDECIDED, Answer, Field, Hit, Matcher, Miss
from fivespot.core.agent.process import Exclusion
from tests.adapters.node.started import fake_process, program, running, script, settled, unique
from tests.core.agent.corpus import SYSTEMD_POD

PROC = Procfs()
JAVA = shutil.which("java")


def looking_for(*commands: str) -> Matcher:
    return Matcher(AgentConfig(match_commands=commands))


def test_a_program_is_read_whole_and_hit_by_its_name(tmp_path: Path) -> None:
    name = unique()
    path = program(tmp_path, name)
    with running([path, "60"]) as pid:
        assert settled(PROC, pid, looking_for(name)) == Hit(name, Field.EXE)
        found = PROC.read(pid)
    assert found is not None
    assert (found.pid, found.ppid, found.comm) == (pid, os.getpid(), name.encode())
    assert (found.exe, found.argv) == (path, (path, b"60"))
    assert found.lineage is not None
    assert found.lineage[:2] == (os.getpid(), os.getppid())
    assert found.cgroup == Path("/proc/self/cgroup").read_bytes()
    assert not found.is_kernel_thread


def test_a_program_whose_file_has_gone_is_hit_by_its_name(tmp_path: Path) -> None:
    name = unique()
    path = program(tmp_path, name)
    with running([path, "60"]) as pid:
        (tmp_path / name).unlink()
        assert settled(PROC, pid, looking_for(name)) == Hit(name, Field.EXE)
        found = PROC.read(pid)
    assert found is not None
    assert found.exe == path + b" (deleted)"


@pytest.mark.parametrize("name", [b"\xff\xfe\x80", b"a) R 1 (\nb", b"(", b") ", b" x\t"])
def test_a_name_of_any_bytes_is_read_as_it_is(tmp_path: Path, name: bytes) -> None:
    with running([program(tmp_path, name), "60"]) as pid:
        settled(PROC, pid, looking_for("nothing"))
        found = PROC.read(pid)
    assert found is not None
    assert (found.comm, found.ppid) == (name, os.getpid())
    assert found.exe is not None
    assert found.exe.rpartition(b"/")[2] == name


def test_a_name_longer_than_the_kernel_keeps_is_hit_by_its_executable(tmp_path: Path) -> None:
    name = f"{unique()}-and-more-than-fifteen"
    with running([program(tmp_path, name), "60"]) as pid:
        assert settled(PROC, pid, looking_for(name)) == Hit(name, Field.EXE)


def test_a_script_is_hit_by_its_name_started_either_way(tmp_path: Path) -> None:
    name = unique()
    file = script(tmp_path, f"{name}.sh")
    with running(["sh", file]) as pid:
        assert settled(PROC, pid, looking_for(name)) == Hit(name, Field.OPERAND)
    with running([file]) as pid:
        assert settled(PROC, pid, looking_for(name)) == Hit(name, Field.COMM)


def test_a_module_of_python_is_hit_by_its_name(tmp_path: Path) -> None:
    name = unique()
    (tmp_path / f"{name}.py").write_text("input()\n")
    with running([sys.executable, "-um", name], cwd=tmp_path) as pid:
        assert settled(PROC, pid, looking_for(name)) == Hit(name, Field.OPERAND)


def test_a_name_among_the_arguments_of_another_program_is_no_hit(tmp_path: Path) -> None:
    name = unique()
    (tmp_path / name).touch()
    with running(["tail", "-f", tmp_path / name]) as pid:
        assert settled(PROC, pid, looking_for(name)) == MISS


@pytest.mark.skipif(JAVA is None, reason="there is no java on this machine")
def test_a_real_java_is_hit_by_java_and_by_its_main_class() -> None:
    # The debugger's agent stops it before the class, which does not exist, is loaded.
    debug = "-agentlib:jdwp=transport=dt_socket,server=y,suspend=y,address=127.0.0.1:0"
    with running([str(JAVA), debug, "-cp", "/opt/steam", "com.intellij.idea.Main"]) as pid:
        assert settled(PROC, pid, looking_for("java")) == Hit("java", Field.EXE)
        assert settled(PROC, pid, looking_for("idea")) == Hit("idea", Field.OPERAND_WORD)
        assert settled(PROC, pid, looking_for("steam", "javac", "jdwp")) == MISS


def test_empty_arguments_are_kept() -> None:
    with running([b"", "60"], executable=shutil.which("sleep")) as pid:
        settled(PROC, pid, looking_for("nothing"))
        found = PROC.read(pid)
    assert found is not None
    assert found.argv == (b"", b"60")


def test_a_zombie_has_a_name_and_nothing_else(tmp_path: Path) -> None:
    name = unique()
    with subprocess.Popen([program(tmp_path, name), "0"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert settled(PROC, process.pid, looking_for(name)) == Miss(Exclusion.DEAD)
        assert settled(PROC, process.pid, looking_for(name), announced=True) == Hit(name, Field.COMM)
        found = PROC.read(process.pid)
    assert found is not None
    assert (found.state, found.exe, found.argv) == ("Z", None, ())
    assert PROC.read(process.pid) is None
    assert PROC.examine(process.pid, looking_for(name)) is None


def test_every_process_is_read_as_psutil_reads_it() -> None:
    compared = 0
    for facts in PROC.read_all():
        try:
            process = psutil.Process(facts.pid)
            with process.oneshot():
                ppid, cmdline = process.ppid(), process.cmdline()
        except psutil.Error:
            continue
        again = PROC.read(facts.pid)
        if again == facts and facts.argv and b"" not in facts.argv:
            assert facts.ppid == ppid
            assert [os.fsdecode(argument) for argument in facts.argv] == cmdline
            compared += 1
        assert not facts.is_kernel_thread or facts.exe is None
    assert compared


def test_processes_that_come_and_go_disturb_nothing() -> None:
    stop = threading.Event()

    def storm() -> None:
        while not stop.is_set():
            subprocess.run(["true"], check=True)

    thread = threading.Thread(target=storm)
    before = len([*Path("/proc/self/fd").iterdir()])
    thread.start()
    try:
        matcher = looking_for("nothing")
        for _ in range(30):
            for pid in PROC.pids():
                found = PROC.examine(pid, matcher)
                assert found is None or found[1] in {MISS, UNDECIDED} or isinstance(found[1], Miss)
    finally:
        stop.set()
        thread.join()
    assert len([*Path("/proc/self/fd").iterdir()]) == before


def test_the_reader_knows_itself_its_threads_and_its_ancestors() -> None:
    ready, done = threading.Event(), threading.Event()
    numbers: list[int] = []

    def wait() -> None:
        numbers.append(threading.get_native_id())
        ready.set()
        done.wait()

    thread = threading.Thread(target=wait)
    thread.start()
    ready.wait()
    try:
        itself = PROC.itself()
    finally:
        done.set()
        thread.join()
    assert itself.pid == os.getpid()
    assert {os.getpid(), os.getppid(), *numbers} <= {pid for pid, _ in itself.family}
    assert itself.exe is None, "this interpreter runs other programs too"
    own = Path(sys.executable).resolve().name
    assert settled(PROC, os.getpid(), looking_for(own), itself=itself) == Miss(Exclusion.AGENT)
    assert isinstance(settled(PROC, os.getpid(), looking_for(own)), Hit)


def test_a_child_of_the_reader_never_counts(tmp_path: Path) -> None:
    name = unique()
    with running([program(tmp_path, name), "60"]) as pid:
        assert settled(PROC, pid, looking_for(name), itself=PROC.itself()) == Miss(Exclusion.AGENT)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give up its rights")
def test_without_rights_the_executable_is_unknown_and_the_name_still_hits(tmp_path: Path) -> None:
    name = unique()
    reader = (
        "import os, sys\n"
        "from fivespot.adapters.node.procfs import Procfs\n"
        "from fivespot.core.agent.config import AgentConfig\n"
        "from fivespot.core.agent.match import Matcher\n"
        "os.setgroups([])\nos.setresgid(65534, 65534, 65534)\nos.setresuid(65534, 65534, 65534)\n"
        "print(Procfs().examine(int(sys.argv[1]), Matcher(AgentConfig(match_commands=(sys.argv[2],)))))\n"
    )
    with running([program(tmp_path, name), "60"]) as pid:
        settled(PROC, pid, looking_for(name))
        done = subprocess.run(
            [sys.executable, "-c", reader, str(pid), name], capture_output=True, text=True, check=True
        )
    assert "exe=None" in done.stdout
    assert f"Hit(pattern={name!r}" in done.stdout


def test_lack_of_descriptors_is_no_process_that_has_gone() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            PROC.read(os.getpid())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_long_command_line_is_read_up_to_a_bound() -> None:
    many = ["x" * 120_000] * 4
    with running([sys.executable, "-c", "input()", *many]) as pid:
        settled(PROC, pid, looking_for("nothing"))
        found = PROC.read(pid)
    assert found is not None
    assert sum(len(argument) + 1 for argument in found.argv) == MAX_CMDLINE + 1


# What no test can start.


def test_a_process_of_another_proc_root_is_found_there_and_the_reader_is_not(tmp_path: Path) -> None:
    fake_process(tmp_path, 5, comm=b"java", argv=[b"java"], exe="/usr/bin/java")
    fake_process(tmp_path, 7, comm=b"java", argv=[b"java"], exe="/usr/bin/java", cgroup=SYSTEMD_POD, ppid=5)
    (tmp_path / "meminfo").touch()
    there = Procfs(str(tmp_path))
    assert there.pids() == [5, 7]
    assert there.itself() == NOBODY
    assert settled(there, 5, looking_for("java")) == Hit("java", Field.EXE)
    assert settled(there, 7, looking_for("java")) == Miss(Exclusion.POD)
    assert [facts.lineage for facts in there.read_all()] == [(1,), (5, 1)]


def test_a_machine_without_cgroups_has_no_pods(tmp_path: Path) -> None:
    fake_process(tmp_path, 5, comm=b"java", argv=[b"java"], exe="/usr/bin/java", cgroup=None)
    assert settled(Procfs(str(tmp_path)), 5, looking_for("java")) == Hit("java", Field.EXE)


def test_names_that_an_exec_changed_while_they_were_read_are_undecided(tmp_path: Path) -> None:
    fake_process(tmp_path, 5, comm=b"sh", argv=[b"vim", b"/x/idea.sh"], exe="/bin/sh")

    class Execs(Matcher):
        def match(self, *arguments: Any, **options: Any) -> Answer:
            link = tmp_path / "5" / "exe"
            link.unlink()
            link.symlink_to("/usr/bin/vim")
            return super().match(*arguments, **options)

    found = Procfs(str(tmp_path)).examine(5, Execs(AgentConfig(match_commands=("idea",))))
    assert found is not None
    assert found[1] == UNDECIDED
    assert settled(Procfs(str(tmp_path)), 5, looking_for("idea")) == MISS


def test_parents_that_form_a_loop_come_to_an_end(tmp_path: Path) -> None:
    fake_process(tmp_path, 5, comm=b"a", ppid=7)
    fake_process(tmp_path, 7, comm=b"b", ppid=5)
    facts = Procfs(str(tmp_path)).read(5)
    assert facts is not None
    assert facts.lineage == (7, 5)


@pytest.mark.parametrize(
    "stat", [b"", b"5", b"5 (java", b"5 (java) S 1", b"5 (java) S x" + b" 0" * 40, b")(" + b" 0" * 40]
)
def test_a_process_that_says_nothing_sensible_is_left_out(tmp_path: Path, stat: bytes) -> None:
    fake_process(tmp_path, 5, comm=b"java")
    (tmp_path / "5" / "stat").write_bytes(stat)
    assert Procfs(str(tmp_path)).read(5) is None
