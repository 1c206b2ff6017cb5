"""What should happen to one machine: pure functions from what was observed to a decision.

The way through: `observation.py` (what was read) -> `verdict.py` (what the provider says) -> `target.py` (who decides,
and how a machine goes down) -> `rising.py` or `removal.py` (the plan) -> `report.py` (the status) -> `decide.py`
(all of it, in order). `phase.py` and `actions.py` hold the vocabulary. Nothing here reads a clock or a cluster.
"""
