"""What should happen to one machine: pure functions from what was observed to a decision.

The way through: `observation.py` (what was read) -> `verdict.py` (what the provider says) -> `target.py` (who decides,
and how a machine goes down) -> `scene.py` (all of that in one place) -> a plan -> `report.py` (the status) ->
`decide.py` (all of it, in order). Plans are made by `rising.py` with `upkeep.py` for a machine that is wanted, and by
`removal.py` for one that is not: `graceful.py` and `emergency.py` are its two manners, `steps.py` what they share,
`rest.py` the end. `remains.py` and `stray.py` deal with what is left of the life before. `phase.py` and `actions.py` hold
the vocabulary. Nothing here reads a clock or a cluster.
"""
