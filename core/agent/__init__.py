"""What the node agent decides: which programs of a machine its owner cares about. Pure, on bytes.

The agent runs on every opted-in machine all day, so nothing here imports more than attrs and the standard library.
"""
