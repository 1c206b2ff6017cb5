"""The table that our validator and a real API server have to agree on, row by row.

`tests/core/api/test_admission.py` asks ours, `tests/live/test_parity.py` asks the server. A row that only one of them
can refuse says which, and why.
"""

from fivespot.core.provider.kinds import BY_KIND
from tests.parity import machines, providers, schedules

ROWS = (*machines.ROWS, *schedules.ROWS, *providers.ROWS)

BROKEN = tuple(
    row
    for row in ROWS
    if row.kind in BY_KIND and row.refused_by("ours") and isinstance(row.document.get("spec"), dict)
    # Of metadata the controller of a provider reads nothing.
    if str(row.refused_at).startswith("spec")
)
"""Those whose spec the controller of a provider has to refuse, should a server have let it in."""
