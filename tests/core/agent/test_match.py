"""The answers of the matcher, on a corpus labelled by hand and rule by rule."""

import attrs
import pytest

from fivespot.core.agent.config import AgentConfig, Scope
from fivespot.core.agent.match import (
    MISS,
    UNDECIDED,
    Answer,
    Field,
    Hit,
    Matcher,
    Miss,
    reason,
)
from fivespot.core.agent.process import Exclusion, Itself, ProcessFacts, is_pod_cgroup
from tests.core.agent.corpus import CORPUS, PATTERNS, SYSTEMD_POD, Row, facts


def answer(process: ProcessFacts, *commands: str, argv: tuple[str, ...] = (), **options: object) -> Answer:
    config = AgentConfig(match_commands=commands, match_argv_substrings=argv)
    return Matcher(attrs.evolve(config, **options)).match(process)


JAVA = facts("java", "/usr/bin/java", "java -jar a.jar")


def test_the_corpus_is_large_and_its_labels_differ() -> None:
    assert len(CORPUS) >= 35
    assert len({row.label for row in CORPUS}) == len(CORPUS)


@pytest.mark.parametrize("row", CORPUS, ids=lambda row: row.label)
def test_every_hit_and_no_false_positive(row: Row) -> None:
    hits = {pattern for pattern in PATTERNS if isinstance(answer(row.facts, pattern), Hit)}
    assert hits == row.hits


@pytest.mark.parametrize("row", CORPUS, ids=lambda row: row.label)
def test_many_patterns_together_hit_what_one_of_them_hits(row: Row) -> None:
    found = answer(row.facts, *PATTERNS)
    assert isinstance(found, Hit) == bool(row.hits)
    assert not isinstance(found, Hit) or found.pattern in row.hits


@pytest.mark.parametrize(
    ("process", "pattern", "field"),
    [
        (JAVA, "java", Field.EXE),
        (facts("x", "/usr/bin/java (deleted)", "y"), "java", Field.EXE),
        (facts("steam", "/opt/game/run", "./run"), "steam", Field.COMM),
        (facts("sh", "/bin/dash", "sh /x/idea.sh"), "idea", Field.OPERAND),
        (facts("sh", "/bin/dash", "sh /x/idea.sh"), "idea.sh", Field.OPERAND),
        (facts("x", "/opt/intellij-idea/bin/x", "x"), "intellij", Field.EXE_WORD),
        (facts("java", "/usr/bin/java", "java com.intellij.idea.Main"), "idea", Field.OPERAND_WORD),
    ],
)
def test_a_hit_says_which_pattern_and_which_field(process: ProcessFacts, pattern: str, field: Field) -> None:
    assert answer(process, "nothing", pattern) == Hit(pattern, field)


def test_the_reason_names_the_pattern_and_nothing_of_the_process() -> None:
    assert reason(Hit("java", Field.EXE)) == "process-match: java"


def test_the_first_of_two_patterns_that_hit_the_same_name_is_reported() -> None:
    assert answer(facts("Java", "/bin/Java", "Java"), "JAVA", "java", ignore_case=True) == Hit(
        "JAVA", Field.EXE
    )


def test_case_is_ignored_where_that_is_asked_for() -> None:
    process = facts("IDEA", "/opt/IntelliJ/IDEA", "IDEA --Flag=Deep")
    for pattern in ("idea", "intellij"):
        assert answer(process, pattern) == MISS
        assert isinstance(answer(process, pattern, ignore_case=True), Hit)
    assert isinstance(answer(process, argv=("flag=DEEP",), ignore_case=True), Hit)


# argv


def test_an_argv_pattern_is_looked_for_inside_each_argument() -> None:
    process = facts("run", "/opt/run", ["/opt/run", "--scene=/home/ann/blender/a", "x"])
    assert answer(process, argv=("blender",)) == Hit("blender", Field.ARGV)


def test_an_argv_pattern_never_spans_two_arguments() -> None:
    assert answer(facts("run", "/opt/run", ["run", "--scene", "blender"]), argv=("scene blender",)) == MISS
    assert answer(facts("run", "/opt/run", ["run", "ble", "nder"]), argv=("blender",)) == MISS


@pytest.mark.parametrize(
    "process",
    [
        facts("sudo", "/usr/bin/sudo", "sudo blender"),
        facts("env", "/usr/bin/env", "env blender"),
        facts("timeout", "/usr/bin/timeout", "timeout 5 blender"),
        facts("vim", "/usr/bin/vim.basic", "vim blender.txt"),
        facts("emacs", "/usr/bin/emacs-29.1", "emacs blender.txt"),
        facts("less", "/usr/bin/less", "less blender.txt"),
        facts("grep", "/usr/bin/grep", "grep -r blender"),
        facts("kubelet", "/usr/bin/kubelet", "kubelet --x=blender"),
        facts("kubectl", "/usr/local/bin/kubectl", "kubectl logs blender"),
        facts("containerd-shim", "/usr/bin/containerd-shim-runc-v2", "containerd-shim-runc-v2 -id blender"),
        facts("sh", "/usr/bin/dash", ["sh", "-c", "blender -b"]),
        facts("bash", "/usr/bin/bash", ["bash", "-euc", "blender -b"]),
        facts("grep", "/bin/busybox", "grep blender"),
        facts("busybox", "/bin/busybox", "busybox less blender"),
        facts("sh", "/bin/busybox", ["sh", "-c", "blender"]),
        facts("sudo", None, "sudo blender"),
    ],
    ids=lambda process: b" ".join(process.argv).decode(),
)
def test_arguments_about_other_programs_do_not_count(process: ProcessFacts) -> None:
    assert answer(process, argv=("blender",)) == MISS


def test_arguments_of_a_script_count() -> None:
    assert isinstance(answer(facts("sh", "/bin/dash", "sh run.sh --app=blender"), argv=("blender",)), Hit)
    assert isinstance(answer(facts("sh", "/bin/busybox", "sh run.sh --app=blender"), argv=("blender",)), Hit)


# never


def test_the_agent_and_its_relatives_never_count() -> None:
    itself = Itself(
        pid=50,
        family=frozenset({(50, 7), (1, 0)}),
        cgroup=b"0::/system.slice/5spot-agent.service\n",
        exe=b"/a",
    )
    matcher = Matcher(AgentConfig(match_commands=("java",)))
    relatives = {
        "itself": attrs.evolve(JAVA, pid=50, started=7),
        "an ancestor": attrs.evolve(JAVA, pid=1, started=0),
        "a child": attrs.evolve(JAVA, ppid=50, lineage=(50, 1)),
        "a grandchild": attrs.evolve(JAVA, lineage=(60, 50, 1)),
        "its cgroup": attrs.evolve(JAVA, cgroup=b"0::/system.slice/5spot-agent.service\n"),
        "its executable": attrs.evolve(JAVA, exe=b"/a"),
    }
    assert {name: matcher.match(process, itself) for name, process in relatives.items()} == dict.fromkeys(
        relatives, Miss(Exclusion.AGENT)
    )
    later = attrs.evolve(JAVA, pid=50, started=8)
    assert isinstance(matcher.match(later, itself), Hit), "a later process with the pid of one that has gone"


def test_a_zombie_counts_only_when_it_was_just_announced() -> None:
    zombie = facts("java", None, (), state="Z")
    matcher = Matcher(AgentConfig(match_commands=("java",)))
    assert matcher.match(zombie) == Miss(Exclusion.DEAD)
    assert matcher.match(zombie, announced=True) == Hit("java", Field.COMM)


def test_a_pod_counts_when_everything_does() -> None:
    process = attrs.evolve(JAVA, cgroup=SYSTEMD_POD)
    assert answer(process, "java") == Miss(Exclusion.POD)
    assert isinstance(answer(process, "java", scope=Scope.ALL), Hit)


@pytest.mark.parametrize(
    "text",
    [
        b"0::/\n",
        b"",
        b"0::/system.slice/kubepods.service\n",
        b"0::/machine.slice/machine-libpod_pod_" + b"a" * 64 + b".slice/libpod-" + b"b" * 64 + b".scope\n",
        b"0::/user.slice/pod.scope\n",
        b"0::/user.slice/pod" + b"a" * 31 + b"/x\n",
        b"0::/user.slice/pod" + b"a" * 64 + b"/x\n",
        b"0::/tripod0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9\n",
        b"0::/kubepods/pod0a1b2c3d-4e5f_6071-8293-a4b5c6d7e8f9/x\n",
    ],
)
def test_what_only_looks_like_a_pod_is_none(text: bytes) -> None:
    assert not is_pod_cgroup(text)


# undecided


def test_a_process_in_the_middle_of_an_exec_is_undecided() -> None:
    for state in "RD":
        assert answer(facts("bash", "/usr/bin/x", (), state=state), "java") == UNDECIDED
    assert answer(facts("bash", "/usr/bin/x", (), state="S"), "java") == MISS


def test_in_the_middle_of_an_exec_the_new_executable_counts_and_the_old_comm_does_not() -> None:
    assert answer(facts("bash", "/usr/bin/java", (), state="R"), "java") == Hit("java", Field.EXE)
    assert answer(facts("java", "/usr/bin/x", (), state="R"), "java") == UNDECIDED


def test_an_announced_process_is_past_its_exec() -> None:
    matcher = Matcher(AgentConfig(match_commands=("java",)))
    assert matcher.match(facts("java", None, (), state="R"), announced=True) == Hit("java", Field.COMM)


@pytest.mark.parametrize("unread", [{"cgroup": None}, {"lineage": None}])
def test_a_hit_needs_the_whole_process_and_a_miss_does_not(unread: dict[str, None]) -> None:
    assert answer(attrs.evolve(JAVA, **unread), "java") == UNDECIDED
    assert answer(attrs.evolve(JAVA, **unread), "idea") == MISS


def test_nothing_is_hit_when_nothing_is_looked_for() -> None:
    assert answer(JAVA) == MISS


def test_interpreters_that_run_each_other_for_ever_come_to_an_end() -> None:
    assert answer(facts("sh", "/bin/sh", ["sh"] * 1000 + ["idea"]), "idea") == MISS
