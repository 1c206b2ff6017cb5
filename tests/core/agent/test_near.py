"""Near misses."""

import attrs
import pytest

from fivespot.core.agent.config import AgentConfig
from fivespot.core.agent.near import NearMiss, NearMisses, Nearness
from fivespot.core.agent.process import Itself, ProcessFacts
from tests.core.agent.corpus import SYSTEMD_POD, facts

NEAR = NearMisses(
    AgentConfig(match_commands=("java", "intellij-idea-ultimate"), match_argv_substrings=("blender",))
)
JAVA = facts("java", "/usr/bin/java", "java -jar a.jar")
WRAPPED = facts("sudo", "/usr/bin/sudo", "sudo /usr/bin/java -version")


@pytest.mark.parametrize(
    ("process", "expected"),
    [
        (facts("Java", "/opt/x/Java", "Java"), NearMiss("java", Nearness.CASE)),
        (facts("run", "/opt/run", "run --app=Blender"), NearMiss("blender", Nearness.CASE)),
        (
            facts("intellij-idea-u", "/opt/intellij-idea-ultra", "intellij-idea-ultra"),
            NearMiss("intellij-idea-ultimate", Nearness.TRUNCATED),
        ),
        (WRAPPED, NearMiss("java", Nearness.WRAPPER)),
        (facts("sh", "/bin/dash", ["sh", "-c", "exec java -jar x"]), NearMiss("java", Nearness.WRAPPER)),
        (attrs.evolve(JAVA, cgroup=SYSTEMD_POD), NearMiss("java", Nearness.POD)),
        (JAVA, None),
        (facts("grep", "/usr/bin/grep", "grep java"), None),
        (facts("sudo", "/usr/bin/sudo", "sudo ls"), None),
        (facts("Java", None, (), is_kernel_thread=True), None),
        (facts("bash", "/bin/bash", (), state="R"), None),
    ],
)
def test_what_a_person_may_have_expected_is_explained(
    process: ProcessFacts, expected: NearMiss | None
) -> None:
    assert NEAR.of(process) == expected


def test_the_agent_is_no_near_miss() -> None:
    assert (
        NEAR.of(WRAPPED, Itself(pid=WRAPPED.pid, family=frozenset({(WRAPPED.pid, WRAPPED.started)}))) is None
    )
