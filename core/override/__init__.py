"""A person's override of one machine's schedule: what has to be written and in which order, and who would undo it."""
