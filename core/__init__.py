"""The decision library: pure functions and frozen values. No I/O, no clock, no threads, no log, no client.

Everything public is exported here. It is imported when it is asked for: the node agent runs on every machine and needs
the least part of it.
"""

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fivespot.core.decision.actions import Decision, Event, Group
    from fivespot.core.decision.decide import decide
    from fivespot.core.decision.knowledge import Absent, Present, Unknown
    from fivespot.core.decision.observation import Observation
    from fivespot.core.decision.phase import Phase
    from fivespot.core.decision.policy import Policy
    from fivespot.core.decision.target import Step, Target
    from fivespot.core.decision.verdict import Verdict
    from fivespot.core.errors import FivespotError, InvalidSpec
    from fivespot.core.explain import Answer, Explanation, answers, explain, verdicts
    from fivespot.core.fleet import Fleet, Machine, Problem, Provider
    from fivespot.core.lint import Finding, Level, lint
    from fivespot.core.schedule import Interval, Schedule, compile_schedule
    from fivespot.core.simulate.pace import Pace
    from fivespot.core.simulate.run import (
        AnswerInterval,
        MachineStory,
        PhaseInterval,
        ProviderStory,
        Run,
        simulate,
    )
    from fivespot.core.simulate.world import Change

__all__ = [
    "Absent",
    "Answer",
    "AnswerInterval",
    "Change",
    "Decision",
    "Event",
    "Explanation",
    "Finding",
    "FivespotError",
    "Fleet",
    "Group",
    "Interval",
    "InvalidSpec",
    "Level",
    "Machine",
    "MachineStory",
    "Observation",
    "Pace",
    "Phase",
    "PhaseInterval",
    "Policy",
    "Present",
    "Problem",
    "Provider",
    "ProviderStory",
    "Run",
    "Schedule",
    "Step",
    "Target",
    "Unknown",
    "Verdict",
    "answers",
    "compile_schedule",
    "decide",
    "explain",
    "lint",
    "simulate",
    "verdicts",
]

_HOMES = {
    "decision.actions": ("Decision", "Event", "Group"),
    "decision.decide": ("decide",),
    "decision.knowledge": ("Absent", "Present", "Unknown"),
    "decision.observation": ("Observation",),
    "decision.phase": ("Phase",),
    "decision.policy": ("Policy",),
    "decision.target": ("Step", "Target"),
    "decision.verdict": ("Verdict",),
    "errors": ("FivespotError", "InvalidSpec"),
    "explain": ("Answer", "Explanation", "answers", "explain", "verdicts"),
    "fleet": ("Fleet", "Machine", "Problem", "Provider"),
    "lint": ("Finding", "Level", "lint"),
    "schedule": ("Interval", "Schedule", "compile_schedule"),
    "simulate.pace": ("Pace",),
    "simulate.run": ("AnswerInterval", "MachineStory", "PhaseInterval", "ProviderStory", "Run", "simulate"),
    "simulate.world": ("Change",),
}
_HOME = {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names}


class _Library(ModuleType):
    """This package. `explain`, `lint` and `simulate` are functions here, whichever module of that name was imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if name not in _HOME or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Library


def __getattr__(name: str) -> object:
    if name not in _HOME:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    found = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
