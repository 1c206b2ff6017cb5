"""Our verdict on every row of the parity table; the server's is asked in `tests/live/test_parity.py`."""

import pytest

from fivespot.core.api.admission import problems_of_document, problems_of_update
from tests.parity.row import Row
from tests.parity.table import ROWS


@pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
def test_the_verdict_is_that_of_the_table(row: Row) -> None:
    if row.before is None:
        problems = problems_of_document(row.document)
    else:
        status = {"machineRef": {"name": "desk-042"}} if row.machine_exists else {}
        problems = problems_of_update(row.document, {**row.stored, "status": status})
    found = [problem.field for problem in problems]
    assert found == ([row.refused_at] if row.refused_by("ours") else []), [
        str(problem) for problem in problems
    ]


def test_every_row_has_a_name_of_its_own() -> None:
    assert len({row.id for row in ROWS}) == len(ROWS) >= 150


def test_a_row_that_only_one_of_the_two_refuses_says_why() -> None:
    assert all(bool(row.only) == bool(row.because) for row in ROWS)
