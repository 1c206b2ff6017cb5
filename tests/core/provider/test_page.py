"""The kind that docs/providers.md writes for its reader works as the page says."""

from datetime import UTC, datetime, timedelta

import pytest

from fivespot.core.api.providers import ProviderStatus
from fivespot.core.errors import InvalidSpec
from fivespot.core.provider.answer import Alone
from fivespot.core.provider.publish import publish
from tests.kind_of_the_page import kind_of_the_page

DAY = timedelta(days=1)


def test_the_kind_of_the_page_answers_and_says_until_when() -> None:
    logic = kind_of_the_page().read({"days": 3})
    first = datetime(1970, 1, 1, tzinfo=UTC) + 6000 * DAY
    made = publish(logic, Alone(), 1, ProviderStatus(), first + DAY / 2)
    assert (made.status.active, made.wake_at) == (True, first + DAY)
    after = publish(logic, Alone(), 1, made.status, first + DAY)
    assert (after.status.active, after.status.next_transition_time) == (False, first + 3 * DAY)
    assert [event.reason for event in after.events] == ["WindowClosed"]


def test_its_model_refuses_what_the_page_says() -> None:
    with pytest.raises(InvalidSpec, match="write 2 to 366") as refused:
        kind_of_the_page().read({"days": 1})
    assert refused.value.field == "days"
