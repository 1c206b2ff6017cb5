"""The table that our validator and a real API server have to agree on, row by row.

`tests/core/api/test_admission.py` asks ours, `tests/live/test_parity.py` asks the server. A row that only one of them
can refuse says which, and why.
"""

from tests.parity import machines, providers, schedules

ROWS = (*machines.ROWS, *schedules.ROWS, *providers.ROWS)
