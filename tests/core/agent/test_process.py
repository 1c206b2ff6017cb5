"""What the agent counts as itself."""

import pytest

from fivespot.core.agent.process import exclusive_cgroup, exclusive_exe
from tests.core.agent.corpus import SESSION, SYSTEMD_POD


@pytest.mark.parametrize(
    ("own", "first", "alone"),
    [
        (b"0::/system.slice/5spot-agent.service\n", b"0::/init.scope\n", True),
        (SYSTEMD_POD, b"0::/init.scope\n", True),
        (b"0::/\n", b"0::/../../../../init.scope\n", True),
        (b"0::/\n", b"0::/\n", False),
        (SESSION, b"0::/init.scope\n", False),
        (b"", b"", False),
    ],
)
def test_a_cgroup_is_the_agents_own_only_if_no_owner_can_be_in_it(
    own: bytes, first: bytes, alone: bool
) -> None:
    assert exclusive_cgroup(own, first) == (own if alone else None)


@pytest.mark.parametrize(
    ("exe", "alone"),
    [
        (b"/usr/local/bin/5spot-agent", True),
        (b"/usr/bin/python3.11", False),
        (None, False),
    ],
)
def test_an_interpreter_is_not_the_agents_own_executable(exe: bytes | None, alone: bool) -> None:
    assert exclusive_exe(exe) == (exe if alone else None)
