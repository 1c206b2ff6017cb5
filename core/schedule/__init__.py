"""Spot schedules: from a manifest's spec to "active now?" and "until when?", exact to the second.

Pure and without a clock: every question carries its instant. Input becomes values in `spec.py` (texts in `grammar.py` and
`dates.py`, bounds in `bounds.py`), values become a line of local clock readings in `plan.py` (`week.py`, `dated.py`), and
`engine.py` answers about instants by way of a zone's offsets (`offsets.py`). `lint.py` advises about specs that are
allowed and may still surprise. Writing status, sleeping to a boundary and reading files happen elsewhere.
"""

from fivespot.core.schedule.engine import Interval, Schedule, compile_schedule
from fivespot.core.schedule.lint import Advice, lint_schedule
from fivespot.core.schedule.spec import CAPITAL_MARKETS, KINDS, TIME_BASED, ScheduleSpec, read_spec

__all__ = [
    "CAPITAL_MARKETS",
    "KINDS",
    "TIME_BASED",
    "Advice",
    "Interval",
    "Schedule",
    "ScheduleSpec",
    "compile_schedule",
    "lint_schedule",
    "read_spec",
]
