"""What the machine controller needs of its clusters, and what follows from what was found there.

`rights` is the list of permissions; `finding` what a check says; the other modules judge what adapters have read.
"""
