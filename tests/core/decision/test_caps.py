"""Who may begin when there are caps."""

from datetime import UTC, datetime, timedelta

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.core.api.scheduled_machine import Manner, Provisioning, ScheduledMachineStatus, Shutdown
from fivespot.core.decision.caps import Caps, Claim, Stage, UnderWay, admit, begins, under_way
from fivespot.core.decision.decide import decide
from fivespot.core.decision.observation import Slot
from fivespot.core.decision.policy import DEFAULT_POLICY
from tests.core.decision.observations import NOW, down, machine, provider, up

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
A, B = ("ns", "a"), ("ns", "b")


def claim(key: str, priority: int = 50, age: int = 0, cluster: tuple[str, str] = A) -> Claim:
    return Claim(key=key, cluster=cluster, priority=priority, created_at=NOON - timedelta(hours=age))


def test_without_caps_everybody_begins() -> None:
    assert admit([claim("x"), claim("y")], [claim("z")], Caps()) == ("x", "y")


def test_the_higher_priority_is_first_and_then_the_older_machine() -> None:
    waiting = [claim("young"), claim("old", age=9), claim("urgent", 90), claim("idle", 10, age=99)]
    assert admit(waiting, [], Caps(overall=3)) == ("urgent", "old", "young")


def test_what_is_under_way_counts() -> None:
    assert admit([claim("x"), claim("y")], [claim("z")], Caps(overall=2)) == ("x",)
    assert admit([claim("x")], [claim("y"), claim("z")], Caps(overall=1)) == ()


def test_a_full_cluster_holds_no_other_up() -> None:
    waiting = [claim("x", 90), claim("y", 50, cluster=B)]
    assert admit(waiting, [claim("z")], Caps(overall=9, per_cluster=1)) == ("y",)


claims = st.lists(
    st.builds(
        Claim,
        key=st.text("abcdefgh", min_size=1, max_size=4),
        cluster=st.sampled_from([A, B, ("ns", "c")]),
        priority=st.integers(0, 255),
        created_at=st.none() | st.datetimes(timezones=st.just(UTC)),
    ),
    unique_by=lambda made: made.key,
    max_size=12,
)
limits = st.none() | st.integers(1, 6)


@given(claims, claims, limits, limits)
def test_no_cap_is_ever_passed_and_no_slot_is_left_to_nobody(
    waiting: list[Claim], busy: list[Claim], overall: int | None, per_cluster: int | None
) -> None:
    caps = Caps(overall=overall, per_cluster=per_cluster)
    granted = set(admit(waiting, busy, caps))
    after = [*busy, *(entry for entry in waiting if entry.key in granted)]

    def full(cluster: tuple[str, str], among: list[Claim]) -> bool:
        inside = sum(entry.cluster == cluster for entry in among)
        return (overall is not None and len(among) >= overall) or (
            per_cluster is not None and inside >= per_cluster
        )

    for entry in waiting:
        if entry.key not in granted:
            assert full(entry.cluster, after), "it waits only where there is no room"
        elif granted:
            assert len(after) <= (overall if overall is not None else len(after))
            inside = sum(other.cluster == entry.cluster for other in after)
            assert per_cluster is None or inside <= per_cluster


def test_a_machine_that_would_be_created_begins_to_come_up() -> None:
    fresh = down(provider=provider(active=True))
    decision = decide(fresh, NOW, DEFAULT_POLICY)
    assert begins(fresh.machine.status, decision) is Stage.PROVISIONING
    assert begins(up().machine.status, decide(up(), NOW, DEFAULT_POLICY)) is None
    waiting = decide(attrs.evolve(fresh, slot=Slot.WAITING), NOW, DEFAULT_POLICY)
    assert begins(fresh.machine.status, waiting) is None
    assert waiting.status.message == "waits for a slot: --max-provisioning is reached"


def test_a_drain_begins_when_its_bounds_are_set() -> None:
    obs = attrs.evolve(up(), provider=provider(active=False))
    decision = decide(obs, NOW, DEFAULT_POLICY)
    assert begins(obs.machine.status, decision) is Stage.DRAINING
    waiting = decide(attrs.evolve(obs, slot=Slot.WAITING), NOW, DEFAULT_POLICY)
    assert begins(obs.machine.status, waiting) is None
    assert waiting.status.shutdown is not None
    assert waiting.status.shutdown.started_at is None


def test_a_kill_begins_nothing_that_a_cap_is_about() -> None:
    obs = up(machine(killSwitch=True))
    assert begins(obs.machine.status, decide(obs, NOW, DEFAULT_POLICY)) is None


COMING = ScheduledMachineStatus(phase="Pending", provisioning=Provisioning(started_at=NOON))
LEAVING = ScheduledMachineStatus(
    phase="ShuttingDown",
    shutdown=Shutdown(manner=Manner.GRACEFUL, started_at=NOON, drain_deadline=NOON + timedelta(minutes=5)),
)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (COMING, UnderWay(Stage.PROVISIONING, NOON + timedelta(minutes=15))),
        (attrs.evolve(COMING, phase="Active"), None),
        (ScheduledMachineStatus(phase="Pending"), None),
        (LEAVING, UnderWay(Stage.DRAINING, NOON + timedelta(minutes=5))),
        (ScheduledMachineStatus(shutdown=Shutdown()), None),
        (
            ScheduledMachineStatus(shutdown=Shutdown(started_at=NOON, drain_deadline=NOON, drained_at=NOON)),
            None,
        ),
        (ScheduledMachineStatus(), None),
    ],
)
def test_what_a_machine_is_at_is_read_off_its_status(
    status: ScheduledMachineStatus, expected: UnderWay | None
) -> None:
    assert under_way(status, DEFAULT_POLICY) == expected
