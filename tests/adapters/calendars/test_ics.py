"""iCalendar files in the dialects of the programs that write them."""

import hashlib
import re
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from fivespot.adapters.calendars.ics import EventFile, event_file
from fivespot.core import zones
from fivespot.core.errors import InvalidSpec

BERLIN = zones.zone("Europe/Berlin")
FIRST, LAST = date(2026, 1, 1), date(2026, 12, 31)

# Outlook: a zone by a name of its own, with its rules in the file; a meeting with exclusions.
OUTLOOK = """\
BEGIN:VTIMEZONE
TZID:W. Europe Standard Time
BEGIN:STANDARD
DTSTART:16010101T030000
TZOFFSETFROM:+0200
TZOFFSETTO:+0100
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10
END:STANDARD
BEGIN:DAYLIGHT
DTSTART:16010101T020000
TZOFFSETFROM:+0100
TZOFFSETTO:+0200
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3
END:DAYLIGHT
END:VTIMEZONE
BEGIN:VEVENT
UID:outlook-1
SUMMARY;LANGUAGE=de-de:Wartung
DTSTART;TZID="W. Europe Standard Time":20260316T180000
DTEND;TZID="W. Europe Standard Time":20260317T000000
RRULE:FREQ=WEEKLY;COUNT=4;BYDAY=MO
EXDATE;TZID="W. Europe Standard Time":20260323T180000
X-MICROSOFT-CDO-BUSYSTATUS:BUSY
END:VEVENT
"""
# Google: UTC, whole days, one of a series moved, another cancelled, folded lines.
GOOGLE = """\
BEGIN:VEVENT
UID:google-1@google.com
DTSTART;VALUE=DATE:20261221
DTEND;VALUE=DATE:20270104
SUMMARY:Year end freeze: nothing is touched until the books are closed and ev
 erybody is back
END:VEVENT
BEGIN:VEVENT
UID:google-2@google.com
DTSTART:20260601T000000Z
DTEND:20260601T060000Z
RRULE:FREQ=DAILY;UNTIL=20260603T235959Z
SUMMARY:nightly
END:VEVENT
BEGIN:VEVENT
UID:google-2@google.com
RECURRENCE-ID:20260602T000000Z
DTSTART:20260602T010000Z
DTEND:20260602T060000Z
SUMMARY:nightly, later
END:VEVENT
BEGIN:VEVENT
UID:google-3@google.com
DTSTART:20260701T000000Z
DTEND:20260702T000000Z
STATUS:CANCELLED
SUMMARY:not at all
END:VEVENT
"""
# Apple: a zone by its IANA name without rules, a duration, dates of their own, a day that leaves a person's time free.
APPLE = """\
BEGIN:VEVENT
UID:apple-1
DTSTART;TZID=America/New_York:20260401T180000
DURATION:PT6H
RDATE;TZID=America/New_York:20260408T180000
SUMMARY:quarter
END:VEVENT
BEGIN:VEVENT
UID:apple-2
DTSTART;VALUE=DATE:20260501
TRANSP:TRANSPARENT
SUMMARY:birthday
END:VEVENT
BEGIN:VEVENT
UID:apple-3
DTSTART:20260510T090000
DTEND:20260510T100000
SUMMARY:floating
END:VEVENT
BEGIN:VEVENT
UID:apple-4
DTSTART;VALUE=DATE:20260329
SUMMARY:the day on which the clocks change
END:VEVENT
"""


def written(tmp_path: Path, body: str) -> Path:
    path = tmp_path / "calendar.ics"
    text = f"BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//test//EN\n{body}END:VCALENDAR\n"
    path.write_bytes(text.replace("\n", "\r\n").encode())
    return path


def read(path: Path) -> EventFile:
    return event_file(path, BERLIN, FIRST, LAST)


def found(tmp_path: Path, body: str) -> list[tuple[str, object, object]]:
    events = read(written(tmp_path, body)).events
    return sorted(((event.name, event.start, event.end) for event in events), key=str)


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc, arg-type]


def test_outlook(tmp_path: Path) -> None:
    """18:00 by the wall, before and after the clocks changed on 29 March."""
    assert found(tmp_path, OUTLOOK) == [
        ("Wartung", utc(2026, 3, 16, 17), utc(2026, 3, 16, 23)),
        ("Wartung", utc(2026, 3, 30, 16), utc(2026, 3, 30, 22)),
        ("Wartung", utc(2026, 4, 6, 16), utc(2026, 4, 6, 22)),
    ]


def test_google(tmp_path: Path) -> None:
    freeze = "Year end freeze: nothing is touched until the books are closed and everybody is back"
    assert found(tmp_path, GOOGLE) == [
        (freeze, date(2026, 12, 21), date(2027, 1, 4)),
        ("nightly", utc(2026, 6, 1, 0), utc(2026, 6, 1, 6)),
        ("nightly", utc(2026, 6, 3, 0), utc(2026, 6, 3, 6)),
        ("nightly, later", utc(2026, 6, 2, 1), utc(2026, 6, 2, 6)),
    ]


def test_apple(tmp_path: Path) -> None:
    assert found(tmp_path, APPLE) == [
        ("birthday", date(2026, 5, 1), date(2026, 5, 2)),
        ("floating", utc(2026, 5, 10, 7), utc(2026, 5, 10, 8)),
        ("quarter", utc(2026, 4, 1, 22), utc(2026, 4, 2, 4)),
        ("quarter", utc(2026, 4, 8, 22), utc(2026, 4, 9, 4)),
        ("the day on which the clocks change", date(2026, 3, 29), date(2026, 3, 30)),
    ]


DIALECTS = {
    "a zone that is nobody's, by its rules in the file": (
        """\
BEGIN:VTIMEZONE
TZID:Customized Time Zone 1
BEGIN:STANDARD
DTSTART:16010101T030000
TZOFFSETFROM:+0530
TZOFFSETTO:+0430
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10
END:STANDARD
BEGIN:DAYLIGHT
DTSTART:16010101T020000
TZOFFSETFROM:+0430
TZOFFSETTO:+0530
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3
END:DAYLIGHT
END:VTIMEZONE
BEGIN:VEVENT
SUMMARY:odd
DTSTART;TZID=Customized Time Zone 1:20260328T180000
DTEND;TZID=Customized Time Zone 1:20260328T190000
RRULE:FREQ=DAILY;COUNT=2
END:VEVENT
""",
        [
            ("odd", utc(2026, 3, 28, 13, 30), utc(2026, 3, 28, 14, 30)),
            ("odd", utc(2026, 3, 29, 12, 30), utc(2026, 3, 29, 13, 30)),
        ],
    ),
    "a zone's name behind a vendor's": (
        """\
BEGIN:VEVENT
SUMMARY:vendor
DTSTART;TZID=/freeassociation.sourceforge.net/Europe/Berlin:20260328T180000
DTEND;TZID=/freeassociation.sourceforge.net/Europe/Berlin:20260328T190000
END:VEVENT
""",
        [("vendor", utc(2026, 3, 28, 17), utc(2026, 3, 28, 18))],
    ),
    "a name of Windows without rules": (
        """\
BEGIN:VEVENT
SUMMARY:windows
DTSTART;TZID=Eastern Standard Time:20260328T180000
DURATION:PT1H
END:VEVENT
""",
        [("windows", utc(2026, 3, 28, 22), utc(2026, 3, 28, 23))],
    ),
    "times without a zone, by the clock of each day": (
        """\
BEGIN:VEVENT
SUMMARY:floating
DTSTART:20260328T180000
DURATION:PT1H
RRULE:FREQ=DAILY;COUNT=2
END:VEVENT
BEGIN:VEVENT
SUMMARY:in the gap
DTSTART:20260329T020000
DTEND:20260329T040000
END:VEVENT
""",
        [
            ("floating", utc(2026, 3, 28, 17), utc(2026, 3, 28, 18)),
            ("floating", utc(2026, 3, 29, 16), utc(2026, 3, 29, 17)),
            ("in the gap", utc(2026, 3, 29, 1), utc(2026, 3, 29, 2)),
        ],
    ),
    "whole days over both changes of the clocks, one left out and one moved": (
        """\
BEGIN:VEVENT
UID:days
SUMMARY:day
DTSTART;VALUE=DATE:20260328
DTEND;VALUE=DATE:20260329
RRULE:FREQ=DAILY;COUNT=4
EXDATE;VALUE=DATE:20260330
END:VEVENT
BEGIN:VEVENT
UID:days
RECURRENCE-ID;VALUE=DATE:20260331
SUMMARY:moved
DTSTART;VALUE=DATE:20260402
DTEND;VALUE=DATE:20260403
END:VEVENT
BEGIN:VEVENT
SUMMARY:weekend
DTSTART;VALUE=DATE:20261024
DURATION:P2D
END:VEVENT
""",
        [
            ("day", date(2026, 3, 28), date(2026, 3, 29)),
            ("day", date(2026, 3, 29), date(2026, 3, 30)),
            ("moved", date(2026, 4, 2), date(2026, 4, 3)),
            ("weekend", date(2026, 10, 24), date(2026, 10, 26)),
        ],
    ),
    "periods of their own": (
        """\
BEGIN:VEVENT
SUMMARY:period
DTSTART:20260401T100000Z
DTEND:20260401T110000Z
RDATE;VALUE=PERIOD:20260402T100000Z/PT3H,20260403T100000Z/20260403T120000Z
END:VEVENT
""",
        [
            ("period", utc(2026, 4, 1, 10), utc(2026, 4, 1, 11)),
            ("period", utc(2026, 4, 2, 10), utc(2026, 4, 2, 13)),
            ("period", utc(2026, 4, 3, 10), utc(2026, 4, 3, 12)),
        ],
    ),
    "one of a series moved with all that follow, and one cancelled": (
        """\
BEGIN:VEVENT
UID:moved
SUMMARY:before
DTSTART:20260401T100000Z
DTEND:20260401T110000Z
RRULE:FREQ=DAILY;COUNT=4
END:VEVENT
BEGIN:VEVENT
UID:moved
RECURRENCE-ID;RANGE=THISANDFUTURE:20260403T100000Z
SUMMARY:from now on
DTSTART:20260403T120000Z
DTEND:20260403T130000Z
END:VEVENT
BEGIN:VEVENT
UID:moved
RECURRENCE-ID:20260402T100000Z
STATUS:CANCELLED
SUMMARY:not this one
DTSTART:20260402T100000Z
DTEND:20260402T110000Z
END:VEVENT
""",
        [
            ("before", utc(2026, 4, 1, 10), utc(2026, 4, 1, 11)),
            ("from now on", utc(2026, 4, 3, 12), utc(2026, 4, 3, 13)),
            ("from now on", utc(2026, 4, 4, 12), utc(2026, 4, 4, 13)),
        ],
    ),
}


@pytest.mark.parametrize(("body", "expected"), DIALECTS.values(), ids=DIALECTS)
def test_what_other_programs_write(
    tmp_path: Path, body: str, expected: list[tuple[str, object, object]]
) -> None:
    assert found(tmp_path, body) == expected


@pytest.mark.parametrize("fold", [b"\r\n ", b"\r\n\t", b"\n "])
def test_a_line_may_be_folded_anywhere_even_in_a_character(tmp_path: Path, fold: bytes) -> None:
    path = written(tmp_path, "BEGIN:VEVENT\nSUMMARY:Zürich\nDTSTART;VALUE=DATE:20260401\nEND:VEVENT\n")
    whole = path.read_bytes()
    for place in (whole.index("ü".encode()) + 1, whole.index(b"20260401") + 3):
        path.write_bytes(whole[:place] + fold + whole[place:])
        (event,) = read(path).events
        assert (event.name, event.start) == ("Zürich", date(2026, 4, 1))


GUESSES = {
    "a zone that nobody knows": (
        "DTSTART;TZID=Nowhere Time:20260401T180000\n",
        "DTSTART is in the time zone 'Nowhere Time', which is not known; export it with its VTIMEZONE",
    ),
    "the same in what is left out": (
        "DTSTART:20260401T100000Z\nRRULE:FREQ=DAILY;COUNT=4\nEXDATE;TZID=Nowhere Time:20260402T100000\n",
        "EXDATE is in the time zone 'Nowhere Time'",
    ),
    "the same in one of several lines": (
        "DTSTART:20260401T100000Z\nEXDATE:20260401T100000Z\nEXDATE;TZID=Nowhere Time:20260402T100000\n",
        "EXDATE is in the time zone 'Nowhere Time'",
    ),
    "the same in what is added": (
        "DTSTART:20260401T100000Z\nRDATE;TZID=Nowhere Time:20260402T100000\n",
        "RDATE is in the time zone 'Nowhere Time'",
    ),
    "the same in a period": (
        "DTSTART:20260401T100000Z\nRDATE;VALUE=PERIOD;TZID=Nowhere Time:20260402T100000/PT3H\n",
        "RDATE is in the time zone 'Nowhere Time'",
    ),
    "a rule of what is left out": (
        "DTSTART:20260401T100000Z\nRRULE:FREQ=DAILY;COUNT=4\nEXRULE:FREQ=DAILY;INTERVAL=2;COUNT=2\n",
        "EXRULE is not read; export the days that are left out as EXDATE",
    ),
    "an end before the start": (
        "DTSTART:20260401T100000Z\nDTEND:20260401T090000Z\n",
        "is before DTSTART",
    ),
    "a day with a time for its end": (
        "DTSTART;VALUE=DATE:20260401\nDTEND:20260402T090000Z\n",
        "both dates, or both times",
    ),
    "a start in a zone and an end in none": (
        "DTSTART:20260401T100000Z\nDTEND:20260401T110000\n",
        "both in a zone, or both in none",
    ),
    "two events that say they are one": (
        "UID:1\nDTSTART:20260401T100000Z\nEND:VEVENT\nBEGIN:VEVENT\nUID:1\nSUMMARY:freeze\nDTSTART:20260501T100000Z\n",
        "two different events have the UID 1",
    ),
}


@pytest.mark.parametrize(("body", "words"), GUESSES.values(), ids=GUESSES)
def test_what_could_only_be_guessed_is_refused(tmp_path: Path, body: str, words: str) -> None:
    path = written(tmp_path, f"BEGIN:VEVENT\nSUMMARY:freeze\n{body}END:VEVENT\n")
    with pytest.raises(InvalidSpec, match=words) as refused:
        read(path)
    assert (refused.value.field, "freeze" in str(refused.value)) == ("FILE", True)


def test_the_same_event_twice_is_one(tmp_path: Path) -> None:
    body = "BEGIN:VEVENT\nUID:1\nSUMMARY:x\nDTSTART;VALUE=DATE:20260401\nEND:VEVENT\n"
    assert found(tmp_path, body * 2) == [("x", date(2026, 4, 1), date(2026, 4, 2))]


def test_a_file_that_names_its_zone_reads_times_without_one_by_that_clock(tmp_path: Path) -> None:
    """As Google exports them."""
    body = (
        "X-WR-TIMEZONE:America/New_York\n"
        "BEGIN:VEVENT\nSUMMARY:x\nDTSTART:20260401T100000\nDTEND:20260401T110000\nEND:VEVENT\n"
    )
    assert found(tmp_path, body) == [("x", utc(2026, 4, 1, 14), utc(2026, 4, 1, 15))]


def test_a_name_is_one_line_whatever_stands_in_it(tmp_path: Path) -> None:
    """It goes into comments and messages."""
    body = "BEGIN:VEVENT\nSUMMARY:first\\nspec: {}\nDTSTART;VALUE=DATE:20260401\nEND:VEVENT\n"
    assert found(tmp_path, body) == [("first spec: {}", date(2026, 4, 1), date(2026, 4, 2))]


def test_what_is_cancelled_is_named_and_the_source_is_told_by_its_bytes(tmp_path: Path) -> None:
    path = written(tmp_path, GOOGLE)
    file = read(path)
    assert file.cancelled == ("not at all",)
    assert file.name == "calendar.ics"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert re.fullmatch(
        rf"sha256:{digest}, read by icalendar [0-9.]+ and recurring-ical-events [0-9.]+", file.source
    )


@pytest.mark.parametrize(
    "text", ["", "no calendar\n", "BEGIN:VCALENDAR\n", "BEGIN:VEVENT\nDTSTART:never\nEND:VEVENT\n"]
)
def test_what_is_no_calendar_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "calendar.ics"
    path.write_text(text)
    with pytest.raises(InvalidSpec) as refused:
        read(path)
    assert refused.value.field == "FILE"


def test_an_event_that_cannot_be_read_is_refused_with_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "BEGIN:VEVENT\nUID:1\nDTSTART:20260132T000000Z\nEND:VEVENT\n")
    with pytest.raises(InvalidSpec, match="iCalendar"):
        read(path)
