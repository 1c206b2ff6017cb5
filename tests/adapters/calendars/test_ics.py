"""iCalendar files in the dialects of the programs that write them."""

from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from fivespot.adapters.calendars.ics import events_of
from fivespot.cli.main import cli
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
# Apple: a zone by its IANA name without rules, a duration, dates of their own, time that is left free.
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


def found(tmp_path: Path, body: str) -> list[tuple[str, object, object]]:
    events = events_of(written(tmp_path, body), BERLIN, FIRST, LAST)
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
        ("floating", utc(2026, 5, 10, 7), utc(2026, 5, 10, 8)),
        ("quarter", utc(2026, 4, 1, 22), utc(2026, 4, 2, 4)),
        ("quarter", utc(2026, 4, 8, 22), utc(2026, 4, 9, 4)),
        ("the day on which the clocks change", date(2026, 3, 29), date(2026, 3, 30)),
    ]


@pytest.mark.parametrize(
    "text", ["", "no calendar\n", "BEGIN:VCALENDAR\n", "BEGIN:VEVENT\nDTSTART:never\nEND:VEVENT\n"]
)
def test_what_is_no_calendar_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "calendar.ics"
    path.write_text(text)
    with pytest.raises(InvalidSpec) as refused:
        list(events_of(path, BERLIN, FIRST, LAST))
    assert refused.value.field == "FILE"


def test_an_event_that_cannot_be_read_is_refused_with_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "BEGIN:VEVENT\nUID:1\nDTSTART:20260132T000000Z\nEND:VEVENT\n")
    with pytest.raises(InvalidSpec, match="iCalendar"):
        list(events_of(path, BERLIN, FIRST, LAST))


def test_the_command_prints_overrides_for_a_schedule(tmp_path: Path) -> None:
    path = written(tmp_path, OUTLOOK)
    line = ["calendar", "--ics", str(path), "--years", "2026", "--timezone", "Europe/Berlin"]
    done = CliRunner().invoke(cli, line, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[1:] == [
        "overrides:",
        "- dates:",
        '  - "2026-03-16"',
        '  - "2026-03-30"',
        '  - "2026-04-06"',
        "  name: Wartung",
        '  close: "18:00"',
    ]


def test_no_event_in_these_years_is_said(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["calendar", "--ics", str(written(tmp_path, OUTLOOK)), "--years", "2030"])
    assert done.exit_code == 1
    assert "no event of" in done.output


def test_two_sources_are_one_too_many(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        cli, ["calendar", "XNYS", "--ics", str(written(tmp_path, OUTLOOK)), "--years", "2026"]
    )
    assert done.exit_code == 2
