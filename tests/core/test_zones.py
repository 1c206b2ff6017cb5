"""Zone names: which are known, what is said about the others."""

import pytest

from fivespot.core import zones
from fivespot.core.errors import InvalidSpec


def test_every_listed_name_has_a_zone_that_is_loaded_once():
    for name in zones.names():
        assert zones.zone(name).key == name
        assert zones.zone(name) is zones.zone(name)


def test_the_release_is_a_year_and_a_letter():
    assert zones.tzdata_version()[:4].isdigit()
    assert zones.tzdata_version()[4:].isalpha()


@pytest.mark.parametrize(
    "name", ["UTC", "GMT", "EST", "CET", "US/Eastern", "Asia/Calcutta", "Etc/GMT+5", "America/Indiana/Knox"]
)
def test_listed_aliases_and_names_without_a_slash_are_accepted(name):
    assert zones.zone(name).key == name


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("Factory", "every replica"),
        ("localtime", "every replica"),
        ("right/Europe/London", "write Europe/London"),
        ("posix/UTC", "write UTC"),
        ("EDT", "abbreviation"),
        ("BST", "abbreviation"),
        ("+02:00", "offset"),
        ("UTC+2", "offset"),
        ("-0500", "offset"),
        ("europe/london", "write Europe/London"),
        ("utc", "write UTC"),
        (" UTC", "write UTC"),
        ("London", "write Europe/London"),
        ("New York", "write America/New_York"),
        ("Europe/Londn", "did you mean Europe/London"),
        ("Mars/Olympus", "IANA"),
        ("", "IANA"),
        ("../../../etc/passwd", "IANA"),
        ("\udcff", "IANA"),
        ("\x00", "IANA"),
        ("x" * 65, "64"),
        (None, "string"),
        (5, "string"),
        (["UTC"], "string"),
    ],
)
def test_another_name_is_refused_with_a_name_to_write(name, remedy):
    with pytest.raises(InvalidSpec) as refused:
        zones.zone(name)
    assert refused.value.field == "timezone"
    assert remedy in refused.value.remedy


@pytest.mark.parametrize(
    ("name", "preferred"),
    [
        ("US/Eastern", "America/New_York"),
        ("Asia/Calcutta", "Asia/Kolkata"),
        ("NZ", "Pacific/Auckland"),
        ("Europe/London", "Europe/London"),
        # Shares Brussels' rules since 1970, and is still what a person in Amsterdam should write.
        ("Europe/Amsterdam", "Europe/Amsterdam"),
        ("UTC", "UTC"),
        ("nowhere", "nowhere"),
    ],
)
def test_an_old_name_has_a_canonical_one(name, preferred):
    assert zones.canonical(name) == preferred


def test_a_canonical_name_is_a_listed_name_with_the_same_clock_today():
    from datetime import UTC, datetime

    for name in zones.names():
        preferred = zones.canonical(name)
        assert preferred in zones.names()
        for month in (1, 7):
            at = datetime(2026, month, 1, tzinfo=UTC)
            assert (
                at.astimezone(zones.zone(name)).utcoffset()
                == at.astimezone(zones.zone(preferred)).utcoffset()
            )
