"""The objects of the API: what they are called, what they may say, and how they travel.

Models are frozen attrs classes; `schema.py` reads their bounds, `codec.py` moves them to and from JSON values.
Nothing here decides anything.
"""
