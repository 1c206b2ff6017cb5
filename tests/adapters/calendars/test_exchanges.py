"""Every exchange of the package: the schedule that is printed opens and closes at exactly its instants."""

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import exchange_calendars
import pytest

from fivespot.adapters.calendars.exchanges import exchange_calendar
from fivespot.core.calendar.derive import spec_of
from fivespot.core.errors import InvalidSpec
from fivespot.core.schedule import CAPITAL_MARKETS, compile_schedule

GOLDEN = Path(__file__).parents[2] / "golden"
FIRST, LAST = date(2025, 1, 1), date(2027, 12, 31)
# Their holidays are announced year by year.
UNTIL_2026 = {"XBOM", "XSES", "XSHG"}


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (GOLDEN / name).read_text().splitlines()]


@pytest.mark.parametrize("name", sorted(exchange_calendars.get_calendar_names(include_aliases=False)))
def test_no_minute_is_wrong(name: str) -> None:
    """Compared minute by minute with the package's own answer, not with ours."""
    last = date(2026, 12, 31) if name in UNTIL_2026 else LAST
    found = exchange_calendar(name, FIRST, last)
    schedule = compile_schedule(CAPITAL_MARKETS, spec_of(found.calendar))
    package = exchange_calendars.get_calendar(name, start=FIRST.isoformat(), end=last.isoformat())
    minutes = package.minutes
    # A minute is called after its beginning; those of the first and the last days may lie outside of them.
    wanted = {int(stamp) // 60 for stamp in minutes.astype("int64") // 1_000_000_000}
    start = datetime.fromtimestamp(min(wanted) * 60, UTC)
    end = datetime.fromtimestamp((max(wanted) + 1) * 60, UTC)
    open_minutes = {
        minute
        for interval in schedule.intervals(start, end)
        for minute in range(int(interval.start.timestamp()) // 60, int(interval.end.timestamp()) // 60)
    }
    assert len(open_minutes ^ wanted) == 0


@pytest.mark.parametrize("row", rows("exchange_specs.jsonl"), ids=lambda row: row["exchange"])
def test_it_finds_the_published_spec(row: dict[str, Any]) -> None:
    found = spec_of(exchange_calendar(row["exchange"], FIRST, LAST).calendar)
    assert found == {key: value for key, value in row["spec"].items() if value != []}


@pytest.mark.parametrize("row", rows("exchange_truth.jsonl"), ids=lambda row: row["exchange"])
def test_it_opens_and_closes_at_the_published_seconds(row: dict[str, Any]) -> None:
    schedule = compile_schedule(
        CAPITAL_MARKETS, spec_of(exchange_calendar(row["exchange"], FIRST, LAST).calendar)
    )
    edges = [datetime.fromisoformat(row[key]) for key in ("from", "to")]
    found = [[int(at.timestamp()) for at in (span.start, span.end)] for span in schedule.intervals(*edges)]
    # Before the first and after the last session of the range the package was not asked.
    assert found[1:-1] == row["open"][1:-1]


def test_an_alias_is_the_exchange_that_it_stands_for() -> None:
    assert exchange_calendar("NYSE", FIRST, LAST).name == "XNYS"


@pytest.mark.parametrize(
    ("name", "first", "last", "field"),
    [
        ("NOWHERE", FIRST, LAST, "EXCHANGE"),
        ("XSHG", FIRST, LAST, "years"),
        ("XNYS", date(1600, 1, 1), LAST, "years"),
    ],
)
def test_what_the_package_does_not_know_is_refused(name: str, first: date, last: date, field: str) -> None:
    with pytest.raises(InvalidSpec) as refused:
        exchange_calendar(name, first, last)
    assert refused.value.field == field
