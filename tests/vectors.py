"""The golden vectors, as tests of any tier read them."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from fivespot.core.schedule import CAPITAL_MARKETS, TIME_BASED

FOLDER = Path(__file__).parent / "golden"
HORIZON = timedelta(days=400)
"""How far the vectors' author looked: null means none within it."""
RELEASE = "2026f"
"""The tzdata release of the vectors that depend on one."""


def rows(name: str) -> list[dict[str, Any]]:
    """The rows of a file."""
    return [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def instants() -> list[dict[str, Any]]:
    """Every vector that says something about one instant of a spec."""
    return [row for name in ("time_based", "capital_markets", "exact_proposal") for row in rows(name)]


def kind_of(spec: dict[str, Any]) -> str:
    """The kind that a vector's spec is of."""
    return CAPITAL_MARKETS if "sessions" in spec or "earlyCloses" in spec else TIME_BASED
