"""The decision library: pure functions and frozen values. No I/O, no clock, no threads, no log, no client.

Everything public is exported here.
"""

from fivespot.core.decision.actions import Decision, Event, Group
from fivespot.core.decision.decide import decide
from fivespot.core.decision.knowledge import Absent, Present, Unknown
from fivespot.core.decision.observation import Observation
from fivespot.core.decision.phase import Phase
from fivespot.core.decision.policy import Policy
from fivespot.core.errors import FivespotError, InvalidSpec
from fivespot.core.explain import Explanation, explain, verdicts
from fivespot.core.fleet import Fleet, Problem
from fivespot.core.lint import Finding, lint
from fivespot.core.schedule import Interval, Schedule, compile_schedule
from fivespot.core.simulate.pace import Pace
from fivespot.core.simulate.run import Run, simulate
from fivespot.core.simulate.world import Change

__all__ = [
    "Absent",
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
    "Observation",
    "Pace",
    "Phase",
    "Policy",
    "Present",
    "Problem",
    "Run",
    "Schedule",
    "Unknown",
    "compile_schedule",
    "decide",
    "explain",
    "lint",
    "simulate",
    "verdicts",
]
