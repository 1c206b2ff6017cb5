"""The kind that docs/providers.md writes for its reader works as the page says."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import attrs

from fivespot.core import zones
from fivespot.core.api import reasons
from fivespot.core.api.providers import ProviderStatus
from fivespot.core.provider.answer import Alone, Answer, Inputs, Unaided
from fivespot.core.provider.publish import publish

PAGE = Path(__file__).parents[3] / "docs" / "providers.md"


def test_the_kind_of_the_page_answers_until_midnight() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    known = {
        found.__name__: found
        for found in (Answer, Inputs, Unaided, ZoneInfo, attrs, datetime, reasons, timedelta)
        if hasattr(found, "__name__")
    }
    scope = {**known, "reasons": reasons, "UTC": UTC}
    exec(compile(code, str(PAGE), "exec"), scope)
    kind = scope["EvenDays"](zones.zone("Asia/Tokyo"))  # type: ignore[operator]
    # Half past eleven at night of the 2nd, in Tokyo.
    now = datetime(2026, 3, 2, 14, 30, tzinfo=UTC)
    made = publish(kind, Alone(), 1, ProviderStatus(), now)
    assert (made.status.active, made.wake_at) == (True, datetime(2026, 3, 2, 15, tzinfo=UTC))
    after = publish(kind, Alone(), 1, made.status, made.wake_at or now)
    assert after.status.active is False
