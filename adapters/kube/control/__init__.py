"""The live controllers: what they watch, how they observe, and how they perform what the core decides.

`machines.py` drives ScheduledMachines (`observe.py`, `perform.py`, `children.py`, `watches.py` serve it); `schedules.py`
drives the provider kinds of the schedule engine. Nothing about *what to do* lives here.
"""
