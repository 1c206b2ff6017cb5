"""Whatever is observed, there is an answer, and the same one each time."""

from datetime import datetime, timedelta, timezone
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fivespot.core.api.scheduled_machine import (
    LastNode,
    Manner,
    Provisioning,
    Reclaim,
    ReclaimedNode,
    ReclaimState,
    ScheduledMachineStatus,
    SpotScheduleStatus,
)
from fivespot.core.decision.actions import Part
from fivespot.core.decision.decide import decide
from fivespot.core.decision.knowledge import Absent, Present
from fivespot.core.decision.observation import BlockedEviction, Failure, Observation, ProviderView, Slot
from fivespot.core.decision.policy import DEFAULT_POLICY
from fivespot.core.names import PAUSED
from tests.core.decision import laws
from tests.core.decision.observations import (
    BORN,
    CACHED,
    GONE,
    NOW,
    UNREACHABLE,
    UNREADABLE,
    bootstrap,
    capi,
    cluster,
    cordoned,
    infrastructure,
    machine,
    node,
    pod,
    provider,
    requested,
    shutdown,
    taint,
    up,
    young_capi,
)

_INSTANTS = st.sampled_from(
    [
        NOW - timedelta(hours=2),
        NOW - timedelta(seconds=2),
        NOW,
        NOW + timedelta(hours=2),
        datetime.max.replace(tzinfo=NOW.tzinfo),
        None,
    ]
)
_FLAGS = st.booleans()


@st.composite
def _statuses(draw: st.DrawFn) -> ScheduledMachineStatus:
    """Anything that a status can say, whether or not a pass would ever have written it."""
    refs = up().machine.status
    at = draw(_INSTANTS)
    return attrs.evolve(
        refs if draw(_FLAGS) else ScheduledMachineStatus(),
        phase=draw(
            st.sampled_from([None, "Pending", "Active", "ShuttingDown", "Inactive", "Error", "nonsense"])
        ),
        spot_schedule=draw(
            st.sampled_from(
                [
                    None,
                    SpotScheduleStatus(),
                    SpotScheduleStatus(active=True),
                    SpotScheduleStatus(active=False, resolved=True),
                ]
            )
        ),
        shutdown=draw(
            st.none()
            | st.builds(
                shutdown,
                manner=st.sampled_from(Manner),
                started_at=_INSTANTS,
                drain_deadline=_INSTANTS,
                deadline=_INSTANTS,
                drained_at=_INSTANTS,
                remaining_pods=st.sampled_from([None, 0, 2]),
            )
        ),
        reclaim=draw(
            st.none()
            | st.builds(
                Reclaim,
                state=st.sampled_from([None, *ReclaimState]),
                observed_at=_INSTANTS,
                pods_deleted_at=_INSTANTS,
                hold_until=_INSTANTS,
                node=st.none() | st.just(ReclaimedNode(name="node-1", uid="uid-node")),
            )
        ),
        provisioning=draw(
            st.none()
            | st.builds(
                Provisioning,
                attempt=st.integers(-3, 99),
                replacing=st.sampled_from([None, "uid-capi"]),
                not_before=st.just(at),
            )
        ),
        last_node=draw(
            st.none()
            | st.builds(
                LastNode,
                cluster=st.sampled_from(["grid", "x"]),
                name=st.just("node-1"),
                uid=st.just("uid-node"),
                system_uuid=st.sampled_from(["", "system-1"]),
            )
        ),
    )


_SPECS = st.fixed_dictionaries(
    {},
    optional={
        "enabled": _FLAGS,
        "killSwitch": _FLAGS,
        "reclaim": st.sampled_from([{}, {"rejoinAfter": "24h"}]),
        "nodeDrainTimeout": st.sampled_from(["0s", "24h"]),
        "onDrainTimeout": st.sampled_from(["Hold", "Force"]),
        "priority": st.sampled_from([50, 1000]),
        "nodeTaints": st.just([{"key": "example.com/lent", "effect": "NoSchedule"}]),
        "machineTemplate": st.just({"labels": {"team": "x"}}),
    },
)
_PROVIDERS = st.sampled_from(
    [provider(), provider(active=False), provider("x"), GONE, UNREADABLE, Present(ProviderView()),
     provider(nextTransitionTime="9999-12-31T23:59:59Z"), provider(generation=9, observedGeneration=1)]
)  # fmt: skip
_CAPI = st.sampled_from(
    [GONE, CACHED, UNREADABLE, capi(), capi(deleting=True), capi(ours=False), capi(owner="old"), young_capi(), young_capi(failure="x"),
     capi(annotations={PAUSED: ""}), capi(paused_condition=True), young_capi(created_at=None)]
)  # fmt: skip
_NODES = st.sampled_from(
    [GONE, CACHED, UNREACHABLE, node(), cordoned(), node(ready=False), node(provider_id="x"), node(provider_id=""),
     node(annotations=requested()), node(annotations=requested("2000-01-01T00:00:00Z")), node(taints=(taint(value="x"),))]
)  # fmt: skip


@st.composite
def _observations(draw: st.DrawFn) -> Observation:
    view = machine(
        draw(_statuses()),
        deleting=draw(_FLAGS),
        finalizer=draw(_FLAGS),
        annotations=draw(st.sampled_from([{}, {PAUSED: ""}])),
        **draw(_SPECS),
    )
    return Observation(
        machine=view,
        provider=draw(_PROVIDERS),
        cluster=draw(
            st.sampled_from(
                [cluster(), cluster(paused=True), cluster(deleting=True), GONE, CACHED, UNREADABLE]
            )
        ),
        capi_machine=draw(_CAPI),
        bootstrap=draw(
            st.sampled_from(
                [
                    GONE,
                    CACHED,
                    UNREADABLE,
                    bootstrap(),
                    bootstrap(taken=False),
                    bootstrap(deleting=True),
                    bootstrap(ours=False),
                ]
            )
        ),
        infrastructure=draw(
            st.sampled_from([GONE, CACHED, UNREADABLE, infrastructure(), infrastructure(taken=False)])
        ),
        node=draw(_NODES),
        last_node=draw(_NODES),
        last_node_claimed=draw(_FLAGS),
        pods=draw(
            st.sampled_from([CACHED, UNREACHABLE, Present(()), Present((pod(), pod("b", deleting=True)))])
        ),
        agent_present=draw(_FLAGS),
        blocked=draw(st.sampled_from([(), (BlockedEviction(uid="uid-web-1", by="pdb"),)])),
        slot=draw(st.sampled_from(Slot)),
        failure=draw(
            st.none()
            | st.builds(
                Failure,
                step=st.just("create machine"),
                reason=st.sampled_from(["Forbidden", "x", "NameConflict"]),
                message=st.just("m"),
                since=st.sampled_from([NOW, BORN]),
            )
        ),
        status_written_at=draw(_INSTANTS),
    )


@settings(max_examples=300, deadline=None)
@given(_observations())
def test_every_observation_has_one_answer(obs: Observation) -> None:
    made = decide(obs, NOW)
    assert decide(obs, NOW) == made
    seen = laws.Seen(obs=obs, now=NOW, decision=made)
    for law in (
        laws.status_round_trips,
        laws.every_action_is_preconditioned,
        laws.waking_lies_ahead,
        laws.a_question_is_all_that_is_asked,
        laws.nothing_on_an_unknown_node_is_touched,
    ):
        assert law(seen) is None


@settings(max_examples=150, deadline=None)
@given(_observations())
def test_questions_end_and_the_status_settles(obs: Observation) -> None:
    """Live answers end the asking; then a few writes later nothing about the status changes any more."""
    for _ in range(8):
        made = decide(obs, NOW)
        if made.confirm:
            answers: dict[str, Any] = {part.value: GONE for part in made.confirm}
            # The Node of the life before is asked for when it is seen, too: whether it is still there.
            known = set() if obs.last_node_confirmed else {Part.LAST_NODE.value}
            assert all(
                isinstance(getattr(obs, name), Absent) and not getattr(obs, name).live
                for name in answers.keys() - known
            )
            obs = attrs.evolve(
                obs,
                **answers,
                last_node_confirmed=obs.last_node_confirmed or Part.LAST_NODE in made.confirm,
            )
            continue
        if made.status == obs.machine.status:
            return
        obs = attrs.evolve(obs, machine=attrs.evolve(obs.machine, status=made.status))
    pytest.fail(f"does not settle: {obs.machine.status}")


def test_a_naive_instant_is_refused() -> None:
    with pytest.raises(TypeError, match="time zone"):
        decide(up(), NOW.replace(tzinfo=None))


def test_the_offset_of_an_instant_does_not_matter() -> None:
    assert decide(up(), NOW.astimezone(timezone(timedelta(hours=5))), DEFAULT_POLICY) == decide(up(), NOW)
