"""What our validator refuses in a manifest, the controller that reads it refuses too: a server may have let it in."""

import pytest

from fivespot.core.errors import InvalidSpec
from fivespot.core.provider.kinds import BY_KIND
from tests.parity.row import Row
from tests.parity.table import BROKEN


@pytest.mark.parametrize("row", BROKEN, ids=[row.id for row in BROKEN])
def test_a_spec_that_the_table_refuses_is_no_schedule(row: Row) -> None:
    with pytest.raises(InvalidSpec) as refused:
        BY_KIND[row.kind].read(row.document["spec"])
    assert refused.value.remedy


@pytest.mark.parametrize("kind", BY_KIND)
def test_there_are_a_dozen_ways_at_least_to_break_a_spec(kind: str) -> None:
    assert sum(row.kind == kind for row in BROKEN) >= 12
