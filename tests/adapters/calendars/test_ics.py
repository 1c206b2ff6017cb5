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
    "an end long before the start": (
        "DTSTART:20260401T100000Z\nDTEND:20090401T090000Z\n",
        "is before DTSTART",
    ),
    "what is left out, unreadable": (
        "DTSTART:20260401T100000Z\nRRULE:FREQ=DAILY;COUNT=3\nEXDATE:never\n",
        "EXDATE cannot be read: .* 'never'",
    ),
    "an end, unreadable": (
        "DTSTART:20260401T100000Z\nDTEND:never\n",
        "DTEND cannot be read: .* 'never'",
    ),
    "a day with a time for its end": (
        "DTSTART;VALUE=DATE:20260401\nDTEND:20260402T090000Z\n",
        "both dates, or both times",
    ),
    "a start in a zone and an end in none": (
        "DTSTART:20260401T100000Z\nDTEND:20260401T110000\n",
        "both in a zone, or both in none",
    ),
    "a length that goes back": (
        "DTSTART:20260401T100000Z\nDURATION:-PT1H\n",
        "its DURATION is -1 day",
    ),
    "a day that lasts two hours": (
        "DTSTART;VALUE=DATE:20260401\nDURATION:PT2H\n",
        "which are no whole days",
    ),
    "an end and a length": (
        "DTSTART:20260401T100000Z\nDTEND:20260401T110000Z\nDURATION:PT2H\n",
        "both DTEND and DURATION",
    ),
    "no start": ("DTEND:20260401T110000Z\n", "it has no DTSTART"),
    "an end in the last of all years": (
        "DTSTART;VALUE=DATE:20260401\nDTEND;VALUE=DATE:99991231\n",
        "begins in the year 2026 and lasts 2912352 days; write dates that are meant",
    ),
    "a length beyond all years": (
        "DTSTART:20260401T100000Z\nDURATION:P9999999W\n",
        "lasts 69999993 days",
    ),
    "a start in the first of all years": (
        "DTSTART;TZID=Europe/Berlin:00010101T000000\nDTEND;TZID=Europe/Berlin:20260401T000000\n",
        "begins in the year 1 ",
    ),
    "two starts": ("DTSTART:20260401T110000Z\nDTSTART:20260402T110000Z\n", "more than one DTSTART"),
    "a series by no rule": ("DTSTART:20260401T110000Z\nRRULE:garbage\n", "has no FREQ"),
    "a series with an empty rule": ("DTSTART:20260401T110000Z\nRRULE:\n", "has no FREQ"),
    "a series of times that ends with a day": (
        "DTSTART;TZID=Europe/Berlin:20260401T100000\nRRULE:FREQ=DAILY;UNTIL=20260403\n",
        "UNTIL 2026-04-03; as its DTSTART is, that has to be a time in UTC",
    ),
    "a series in a zone that ends by no zone's clock": (
        "DTSTART;TZID=America/New_York:20260401T220000\nRRULE:FREQ=DAILY;UNTIL=20260403T220000\n",
        "that has to be a time in UTC",
    ),
    "a series without a zone that ends in UTC": (
        "DTSTART:20260401T220000\nRRULE:FREQ=DAILY;UNTIL=20260403T220000Z\n",
        "that has to be a time without a zone",
    ),
    "a series of days that ends in the middle of one": (
        "DTSTART;VALUE=DATE:20260401\nRRULE:FREQ=DAILY;UNTIL=20260403T220000Z\n",
        "that has to be a date",
    ),
    "a version without a number, and the first": (
        (
            "UID:1\nDTSTART:20260401T100000Z\nEND:VEVENT\n"
            "BEGIN:VEVENT\nUID:1\nSUMMARY:freeze\nSEQUENCE:0\nDTSTART:20260501T100000Z\n"
        ),
        "two different events have the UID 1",
    ),
    "one of a series changed twice, in two ways to write its time": (
        (
            "UID:1\nDTSTART:20260401T080000Z\nRRULE:FREQ=DAILY;COUNT=3\nEND:VEVENT\n"
            "BEGIN:VEVENT\nUID:1\nRECURRENCE-ID;TZID=Europe/Berlin:20260402T100000\nDTSTART:20260402T110000Z\nEND:VEVENT\n"
            "BEGIN:VEVENT\nUID:1\nSUMMARY:freeze\nRECURRENCE-ID:20260402T080000Z\nDTSTART:20260402T120000Z\n"
        ),
        "two different events have the UID 1",
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


def test_the_same_event_twice_is_one_whenever_it_was_exported(tmp_path: Path) -> None:
    body = (
        "BEGIN:VEVENT\nUID:1\nSUMMARY:x\nDTSTAMP:2026010{}T000000Z\nDTSTART;VALUE=DATE:20260401\nEND:VEVENT\n"
    )
    assert found(tmp_path, body.format(1) + body.format(2)) == [("x", date(2026, 4, 1), date(2026, 4, 2))]


def _zone(name: str, offset: str) -> str:
    standard = (
        f"BEGIN:STANDARD\nDTSTART:16010101T000000\nTZOFFSETFROM:{offset}\nTZOFFSETTO:{offset}\nEND:STANDARD\n"
    )
    return f"BEGIN:VTIMEZONE\nTZID:{name}\n{standard}END:VTIMEZONE\n"


OURS = "BEGIN:VEVENT\nSUMMARY:x\nDTSTART;TZID=Ours:20260401T100000\nDTEND;TZID=Ours:20260401T110000\nEND:VEVENT\n"


def test_what_a_file_says_of_a_zone_is_forgotten_with_it(tmp_path: Path) -> None:
    assert found(tmp_path, _zone("Ours", "+0300") + OURS)[0][1] == utc(2026, 4, 1, 7)
    assert found(tmp_path, _zone("Ours", "+0500") + OURS)[0][1] == utc(2026, 4, 1, 5)
    with pytest.raises(InvalidSpec, match="'Ours', which is not known"):
        found(tmp_path, OURS)


def test_two_zones_of_one_name_are_refused(tmp_path: Path) -> None:
    """As in a file that somebody has put together of two calendars."""
    other = "END:VCALENDAR\nBEGIN:VCALENDAR\nVERSION:2.0\n"
    with pytest.raises(InvalidSpec, match="two different zones are called 'Ours'"):
        found(tmp_path, _zone("Ours", "+0300") + OURS + other + _zone("Ours", "+0500") + OURS)
    assert len(found(tmp_path, (_zone("Ours", "+0300") + OURS) + other + _zone("Ours", "+0300") + OURS)) == 2


def test_a_series_of_days_may_end_with_the_midnight_of_its_last(tmp_path: Path) -> None:
    """As Outlook writes them."""
    body = "BEGIN:VEVENT\nSUMMARY:x\nDTSTART;VALUE=DATE:20260401\nRRULE:FREQ=DAILY;UNTIL=20260403T000000Z\nEND:VEVENT\n"
    assert [start for _, start, _ in found(tmp_path, body)] == [date(2026, 4, day) for day in (1, 2, 3)]


@pytest.mark.parametrize(
    "body",
    [
        "DTSTART;TZID=Nowhere Time:20090401T180000\nDTEND;TZID=Nowhere Time:20090401T190000\n",
        "DTSTART;TZID=Nowhere Time:20400401T180000\n",
        "DTSTART:20090401T100000Z\nDTEND:20090401T090000Z\n",
    ],
)
def test_what_is_long_past_or_far_away_may_be_odd(tmp_path: Path, body: str) -> None:
    assert found(tmp_path, f"BEGIN:VEVENT\n{body}END:VEVENT\n") == []


def test_an_event_on_the_other_side_of_the_date_line_is_found(tmp_path: Path) -> None:
    """The 30th of December there is the first of January here."""
    body = "DTSTART;TZID=Pacific/Pago_Pago:20251230T233000\nDTEND;TZID=Pacific/Pago_Pago:20251231T003000\n"
    path = written(tmp_path, f"BEGIN:VEVENT\nSUMMARY:x\n{body}END:VEVENT\n")
    (event,) = event_file(path, zones.zone("Pacific/Kiritimati"), FIRST, LAST).events
    assert event.start == utc(2025, 12, 31, 10, 30)


def test_an_occurrence_that_is_longer_than_its_event_is_found_by_its_own_length(tmp_path: Path) -> None:
    body = "DTSTART:20251201T100000Z\nDTEND:20251201T110000Z\nRDATE;VALUE=PERIOD:20251220T100000Z/P20D\n"
    assert found(tmp_path, f"BEGIN:VEVENT\nSUMMARY:x\n{body}END:VEVENT\n") == [
        ("x", utc(2025, 12, 20, 10), utc(2026, 1, 9, 10))
    ]


def test_neighbours_of_the_days_of_interest_are_nobodys_business(tmp_path: Path) -> None:
    body = "BEGIN:VEVENT\nSUMMARY:{0}\nDTSTART;VALUE=DATE:{0}\n{1}END:VEVENT\n"
    days = [
        ("20251231", ""),
        ("20270101", ""),
        ("20251230", "STATUS:CANCELLED\n"),
        ("20270102", "STATUS:CANCELLED\n"),
    ]
    file = read(written(tmp_path, "".join(body.format(*day) for day in days)))
    assert (file.events, file.cancelled) == ((), ())


def test_what_has_no_length_is_named(tmp_path: Path) -> None:
    file = read(written(tmp_path, "BEGIN:VEVENT\nSUMMARY:ping\nDTSTART:20260401T100000Z\nEND:VEVENT\n"))
    assert (file.events, file.moments) == ((), ("ping",))


def test_the_order_is_that_of_time_and_name(tmp_path: Path) -> None:
    body = (
        "BEGIN:VEVENT\nUID:1\nSUMMARY:s\nDTSTART;VALUE=DATE:20260401\nRRULE:FREQ=DAILY;COUNT=9\nEND:VEVENT\n"
    )
    change = "BEGIN:VEVENT\nUID:1\nSUMMARY:{0}\nRECURRENCE-ID;VALUE=DATE:2026040{0}\nDTSTART;VALUE=DATE:20260420\nEND:VEVENT\n"
    file = read(written(tmp_path, body + "".join(change.format(day) for day in range(9, 1, -1))))
    assert [event.name for event in file.events] == ["s", *"23456789"]


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


@pytest.mark.parametrize("name", ["Eastern Standard Time", "", "Nowhere"])
def test_a_zone_of_the_file_that_nobody_knows_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidSpec, match=f"X-WR-TIMEZONE is '{name}', which is no IANA name"):
        found(tmp_path, f"X-WR-TIMEZONE:{name}\n{OURS}")


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
