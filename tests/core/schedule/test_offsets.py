"""The table of offsets against zoneinfo itself, in every zone."""

import itertools
import random
from datetime import UTC, datetime, timedelta

import pytest

from fivespot.core import zones
from fivespot.core.instant import FIRST_SECOND, LAST_SECOND
from fivespot.core.schedule.offsets import Offsets, offsets

YEARS = 3
"""How many years of 1900 to 2100 are tried for each zone; each costs a table of that year."""


def by_zoneinfo(timezone: str, second: int) -> int:
    local = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second)).astimezone(zones.zone(timezone))
    return int(local.utcoffset().total_seconds())


@pytest.mark.parametrize("timezone", sorted(zones.names()))
def test_the_offset_is_zoneinfos_at_random_instants_and_around_every_change_in(timezone):
    chance = random.Random(timezone)
    table = Offsets(zones.zone(timezone))
    for _ in range(YEARS):
        second = int(datetime(chance.randint(1900, 2100), 1, 1, tzinfo=UTC).timestamp())
        end = second + 365 * 86400
        for _ in range(25):
            probe = chance.randrange(second, end)
            assert table.at(probe)[2] == by_zoneinfo(timezone, probe)
        while second < end:
            start, second, offset = table.at(second)
            assert by_zoneinfo(timezone, start) == by_zoneinfo(timezone, second - 1) == offset


@pytest.mark.parametrize(
    ("timezone", "at", "before", "after"),
    [
        ("Africa/Monrovia", datetime(1972, 1, 7, 0, 44, 30, tzinfo=UTC), -2670, 0),
        ("America/New_York", datetime(1883, 11, 18, 17, tzinfo=UTC), -17762, -18000),
        ("Pacific/Apia", datetime(2011, 12, 30, 10, tzinfo=UTC), -36000, 50400),
        ("Australia/Lord_Howe", datetime(2400, 9, 30, 15, 30, tzinfo=UTC), 37800, 39600),
    ],
)
def test_a_change_is_found_to_the_second(timezone, at, before, after):
    second = int(at.timestamp())
    assert offsets(timezone).at(second - 1)[1:] == (second, before)
    assert offsets(timezone).at(second)[0] == second
    assert offsets(timezone).at(second)[2] == after


@pytest.mark.parametrize(
    "timezone", ["UTC", "America/New_York", "Pacific/Apia", "Pacific/Kiritimati", "Asia/Tokyo"]
)
@pytest.mark.parametrize("second", [FIRST_SECOND, FIRST_SECOND - 86400, LAST_SECOND, LAST_SECOND + 86400])
def test_the_ends_of_the_calendar_have_an_offset_though_zoneinfo_has_none(timezone, second):
    start, end, offset = offsets(timezone).at(second)
    assert start <= second < end
    inside = min(max(second, FIRST_SECOND + 2 * 86400), LAST_SECOND - 2 * 86400)
    assert offset == by_zoneinfo(timezone, inside)


@pytest.mark.parametrize(
    ("timezone", "year", "years"),
    # The two closest changes on record, 6.96 days; then Ramadan, five weeks, twice within some years.
    [("America/Boa_Vista", 2000, 1), ("Africa/Tunis", 1943, 1), ("Africa/Casablanca", 2012, 15)],
)
def test_no_change_hides_behind_another(timezone, year, years):
    second, end = (int(datetime(day, 1, 1, tzinfo=UTC).timestamp()) for day in (year, year + years))
    hours = [by_zoneinfo(timezone, hour) for hour in range(second, end, 3600)]
    expected = sum(before != after for before, after in itertools.pairwise(hours))
    found, offset = 0, offsets(timezone).at(second)[2]
    while second < end:
        _, second, after = offsets(timezone).at(second)
        found += after != offset
        offset = after
    assert found == expected


def test_local_mean_time_holds_before_the_first_change():
    assert offsets("Europe/Paris").at(int(datetime(1850, 1, 1, tzinfo=UTC).timestamp()))[2] == 561
