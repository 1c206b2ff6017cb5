"""How long one decision takes: a machine at rest, and a pass of a removal. Printed, never asserted."""

from typing import Any

import pytest

from fivespot.core.decision.decide import decide
from fivespot.core.decision.observation import Observation
from fivespot.core.names import APPLIED_TAINTS
from tests.core.decision.observations import (
    NOW,
    at_rest,
    leaving,
    machine,
    node,
    pod,
    provider,
    standing,
    taint,
)

_TAINTED = machine(nodeTaints=[{"key": "example.com/lent", "effect": "NoSchedule"}])
_RECORD = '[{"key":"example.com/lent","effect":"NoSchedule"}]'
_TIMES = {"nextTransitionTime": "2026-03-02T18:00:00Z", "lastTransitionTime": "2026-03-02T09:00:00Z"}
_ANSWER = provider(observedGeneration=1, conditions=[{"type": "Ready", "status": "True"}], **_TIMES)

_PASSES = {
    "active machine at rest": at_rest(
        standing(
            _TAINTED, provider=_ANSWER, node=node(taints=(taint(),), annotations={APPLIED_TAINTS: _RECORD})
        )
    ),
    "drain of ten pods": at_rest(leaving(*(pod(f"web-{number}") for number in range(10)))),
}


@pytest.mark.parametrize("name", _PASSES)
def test_a_decision(benchmark: Any, name: str) -> None:
    obs: Observation = _PASSES[name]
    made = benchmark(decide, obs, NOW)
    assert made.status == obs.machine.status
    print(
        f"\ndecide, {name}: {benchmark.stats.stats.min * 1e6:.1f} us at best, {benchmark.stats.stats.median * 1e6:.1f} us median"
    )
