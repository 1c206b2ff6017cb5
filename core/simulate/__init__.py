"""A world in virtual time, driven by the code that decides in production.

`world.py` jumps from event to event; `cell.py` is the in-memory cluster around one machine; `pace.py` says how fast hosts
come and go; `schedules.py` lets providers answer; `run.py` is what came out. Nothing here decides about machines.
"""
