"""The questions one can ask a schedule, and cases that a reader of the design would ask about."""

from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest

from fivespot.core import zones
from fivespot.core.schedule import CAPITAL_MARKETS, TIME_BASED, Interval, Schedule, compile_schedule

SECOND = timedelta(seconds=1)
ALWAYS = {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]}
OFFICE = {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]}
NIGHT = {"days": ["mon-sun"], "start": "22:00", "end": "06:00"}


def at(day: int, hour: int = 0, minute: int = 0, second: int = 0) -> datetime:
    """An instant of June 2026, whose 1st is a Monday."""
    return datetime(2026, 6, day, hour, minute, second, tzinfo=UTC)


def compiled(**spec) -> Schedule:
    return compile_schedule(TIME_BASED, spec)


def opened(schedule: Schedule, start: datetime, end: datetime) -> list[tuple[datetime, datetime]]:
    return [(interval.start, interval.end) for interval in schedule.intervals(start, end)]


def test_an_instant_of_another_zone_is_the_same_instant():
    schedule = compiled(**OFFICE)
    tokyo = zones.zone("Asia/Tokyo")
    assert schedule.active(at(1, 9).astimezone(tokyo))
    assert not schedule.active(at(1, 8, 59, 59).astimezone(tokyo))
    assert schedule.next_transition(at(1, 9).astimezone(timezone(timedelta(hours=-9)))) == at(1, 18)


@pytest.mark.parametrize("fold", [0, 1])
def test_both_readings_of_a_repeated_hour_are_told_apart(fold):
    schedule = compiled(timezone="UTC", daysOfWeek=["sun"], hoursOfDay=["5"])
    reading = datetime(2026, 11, 1, 1, 30, fold=fold, tzinfo=zones.zone("America/New_York"))
    assert schedule.active(reading) is (fold == 0)
    assert schedule.active(at(1)) is False
    assert schedule.active(reading) is (fold == 0)


def test_answers_are_in_utc():
    schedule = compiled(**OFFICE, timezone="Asia/Tokyo")
    answers = [schedule.next_transition(at(3)), schedule.prev_transition(at(3))]
    answers += [schedule.next_open(at(3)), schedule.next_close(at(3))]
    answers += [
        edge for interval in schedule.intervals(at(1), at(9)) for edge in (interval.start, interval.end)
    ]
    assert {answer.tzinfo for answer in answers} == {UTC}


def test_a_fraction_of_a_second_is_dropped():
    schedule = compiled(**OFFICE)
    almost = at(1, 9) - timedelta(microseconds=1)
    for moment in (almost, at(1, 18), almost):
        assert schedule.active(moment) is False
    assert schedule.next_transition(almost) == at(1, 9)
    assert schedule.active(at(1, 17, 59, 59) + timedelta(microseconds=999_999)) is True


def test_intervals_are_clipped_to_the_range_to_the_microsecond():
    schedule = compiled(**OFFICE)
    start, end = at(1, 10, 0, 0) + timedelta(microseconds=5), at(2, 9, 0, 0) + timedelta(microseconds=7)
    assert list(schedule.intervals(start, end)) == [Interval(start, at(1, 18)), Interval(at(2, 9), end)]


@pytest.mark.parametrize("end", [at(1, 10), at(1, 9)])
def test_a_range_that_is_empty_or_backwards_has_no_intervals(end):
    assert opened(compiled(**OFFICE), at(1, 10), end) == []


@pytest.mark.parametrize(
    "ask",
    [
        lambda schedule, moment: schedule.active(moment),
        lambda schedule, moment: schedule.next_transition(moment),
        lambda schedule, moment: schedule.prev_transition(moment),
        lambda schedule, moment: schedule.next_open(moment),
        lambda schedule, moment: schedule.next_close(moment),
        lambda schedule, moment: schedule.intervals(moment, at(2)),
        lambda schedule, moment: schedule.intervals(at(1), moment),
    ],
)
@pytest.mark.parametrize("warm", [False, True])
def test_a_naive_datetime_raises_type_error_saying_what_is_missing(ask, warm):
    schedule = compiled(**OFFICE)
    if warm:
        schedule.active(at(1, 12))
    with pytest.raises(TypeError, match="no time zone"):
        ask(schedule, datetime(2026, 6, 1, 12))  # noqa: DTZ001 - the point


class Nowhere(tzinfo):
    """A zone that does not know its offset makes a datetime as naive as none."""

    def utcoffset(self, moment):
        return None


def test_a_datetime_whose_zone_knows_no_offset_raises_type_error():
    with pytest.raises(TypeError):
        compiled(**OFFICE).active(datetime(2026, 6, 1, 12, tzinfo=Nowhere()))


def test_the_name_of_the_zone_in_use_can_be_read():
    assert compiled(**OFFICE).timezone == "UTC"
    assert compiled(**OFFICE, timezone="US/Eastern").timezone == "US/Eastern"


def test_the_integer_questions_are_the_same_questions():
    schedule = compiled(**OFFICE, timezone="America/New_York")
    for hour in range(0, 24 * 14, 5):
        moment = at(1) + timedelta(hours=hour)
        second = int(moment.timestamp())
        assert schedule.active_s(second) is schedule.active(moment)
        assert schedule.next_transition_s(second) == schedule.next_transition(moment).timestamp()
        assert schedule.prev_transition_s(second) == schedule.prev_transition(moment).timestamp()


# Nothing ever changes, or never again.


@pytest.mark.parametrize("timezone", ["UTC", "America/New_York", "Antarctica/Troll", "Africa/Monrovia"])
@pytest.mark.parametrize(
    ("spec", "answer"),
    [
        (ALWAYS, True),
        ({"windows": [{"days": ["mon-sun"], "start": "07:30", "end": "07:30"}]}, True),
        ({**OFFICE, "enabled": False}, False),
        ({**OFFICE, "daysOfWeek": []}, False),
        ({**OFFICE, "hoursOfDay": []}, False),
        ({**OFFICE, "windows": []}, False),
        ({"windows": [{**NIGHT, "days": []}]}, False),
        ({**OFFICE, "holidays": ["0001-01-01/9999-12-31"]}, False),
    ],
)
def test_what_never_changes_has_no_transition_before_or_after(timezone, spec, answer):
    schedule = compiled(**spec, timezone=timezone)
    for year in (1, 1850, 1972, 2026, 9999):
        moment = datetime(year, 7, 1, tzinfo=UTC)
        assert schedule.active(moment) is answer
        assert schedule.next_transition(moment) is None
        assert schedule.prev_transition(moment) is None
    assert len(opened(schedule, at(1), at(9))) == answer


def test_a_date_thousands_of_years_away_is_found_at_once():
    schedule = compiled(
        timezone="America/New_York", **OFFICE, validFrom="9000-01-01", validThrough="9000-01-01"
    )
    opens = datetime(9000, 1, 1, 14, tzinfo=UTC)
    assert schedule.next_transition(at(1)) == opens
    assert schedule.next_close(at(1)) == opens + timedelta(hours=9)
    assert schedule.next_transition(opens + timedelta(hours=9)) is None
    assert schedule.prev_transition(datetime(9999, 1, 1, tzinfo=UTC)) == opens + timedelta(hours=9)
    assert schedule.prev_transition(opens - SECOND) is None


def test_a_single_window_inside_a_gap_never_happens():
    spec = {"windows": [{"days": ["sun"], "start": "02:15", "end": "02:45"}], "timezone": "America/New_York"}
    schedule = compiled(**spec, validFrom="2026-03-08", validThrough="2026-03-08")
    assert schedule.next_transition(datetime(2000, 1, 1, tzinfo=UTC)) is None
    assert schedule.prev_transition(datetime(2100, 1, 1, tzinfo=UTC)) is None


def test_a_fold_after_the_last_edge_opens_the_last_window_once_more():
    spec = {"windows": [{"days": ["sun"], "start": "01:00", "end": "01:30"}], "timezone": "America/New_York"}
    schedule = compiled(**spec, validFrom="2026-11-01", validThrough="2026-11-01")
    fold = datetime(2026, 11, 1, 6, tzinfo=UTC)
    hour, half = timedelta(hours=1), timedelta(minutes=30)
    assert opened(schedule, at(1), datetime(2027, 1, 1, tzinfo=UTC)) == [
        (fold - hour, fold - half),
        (fold, fold + half),
    ]
    assert schedule.next_transition(fold + half) is None


# The ends of the calendar.


@pytest.mark.parametrize("timezone", ["UTC", "America/New_York", "Pacific/Kiritimati", "Pacific/Apia"])
@pytest.mark.parametrize(
    "spec", [ALWAYS, OFFICE, {**ALWAYS, "validThrough": "9999-12-31"}, {"windows": [NIGHT]}]
)
def test_the_first_and_the_last_second_of_the_calendar_have_answers(timezone, spec):
    schedule = compiled(**spec, timezone=timezone)
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    for moment in (first, last):
        assert schedule.active(moment) in {True, False}
        schedule.next_open(moment)
        schedule.next_close(moment)
    assert schedule.prev_transition(first) is None
    assert schedule.next_transition(last) is None
    for interval in [
        *schedule.intervals(first, first + timedelta(days=8)),
        *schedule.intervals(last - timedelta(days=8), last),
    ]:
        assert first <= interval.start < interval.end <= last


def test_an_instant_that_utc_cannot_write_still_has_an_answer():
    schedule = compiled(**ALWAYS)
    for moment in (
        datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-12))),
    ):
        assert schedule.active(moment)
        assert schedule.next_transition(moment) is None
        assert schedule.prev_transition(moment) is None


def test_an_instant_that_utc_cannot_write_counts_as_the_nearest_that_it_can():
    schedule = compiled(daysOfWeek=["mon-sun"], hoursOfDay=["9-17"])
    beyond = datetime.max.replace(tzinfo=timezone(timedelta(hours=-12)))
    before = datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))
    assert not schedule.active(beyond)
    assert not schedule.active(before)
    assert schedule.next_transition(beyond) is None
    assert schedule.prev_transition(beyond) == datetime(9999, 12, 31, 18, tzinfo=UTC)
    assert schedule.next_transition(before) == datetime(1, 1, 1, 9, tzinfo=UTC)
    assert schedule.prev_transition(before) is None


def test_intervals_of_a_range_that_utc_cannot_write_end_where_utc_does():
    first = datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))
    last = datetime.max.replace(tzinfo=timezone(timedelta(hours=-12)))
    (interval,) = compiled(**ALWAYS).intervals(first, last)
    assert interval == Interval(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))


def test_the_last_transition_that_a_datetime_can_write_is_given_and_the_next_is_not():
    schedule = compiled(daysOfWeek=["mon-sun"], hoursOfDay=["23"])
    eve = datetime(9999, 12, 31, 12, tzinfo=UTC)
    opens = datetime(9999, 12, 31, 23, tzinfo=UTC)
    assert schedule.next_transition(eve) == opens
    assert schedule.next_transition(opens) is None


# Additions beside the golden vectors.


def test_windows_of_an_override_keep_to_their_date_though_others_run_into_it():
    schedule = compiled(windows=[NIGHT], overrides=[{"dates": ["2026-06-10"], "windows": []}])
    assert opened(schedule, at(9, 12), at(12)) == [(at(9, 22), at(10, 6)), (at(11, 22), at(12))]


def test_an_override_with_a_night_opens_the_morning_of_the_next_days_holiday():
    spec = {**OFFICE, "holidays": ["2026-06-11"]}
    spec["overrides"] = [{"dates": ["2026-06-10"], "windows": [{"start": "22:00", "end": "06:00"}]}]
    assert opened(compiled(**spec), at(10), at(12)) == [(at(10, 22), at(11, 6))]


def test_a_clip_acts_on_the_windows_of_its_own_override():
    override = {
        "dates": ["2026-06-10"],
        "windows": [{"start": "08:00", "end": "20:00"}],
        "open": "09:00",
        "close": "12:30",
    }
    assert opened(compiled(**OFFICE, overrides=[override]), at(10), at(11)) == [(at(10, 9), at(10, 12, 30))]


def test_a_close_before_the_evening_empties_a_night():
    schedule = compiled(windows=[NIGHT], overrides=[{"dates": ["2026-06-10"], "close": "02:00"}])
    assert opened(schedule, at(10, 12), at(11, 12)) == []


def test_an_open_clips_the_evening_before_of_a_trading_day():
    window = {"days": ["mon-fri"], "start": "17:00", "end": "16:00", "startDay": -1}
    schedule = compiled(windows=[window], overrides=[{"dates": ["2026-06-10"], "open": "08:00"}])
    assert opened(schedule, at(9, 16), at(10, 17)) == [(at(10, 8), at(10, 16))]


def test_a_window_from_the_evening_before_with_equal_ends_is_a_day_long():
    window = {"days": ["wed"], "start": "17:00", "end": "17:00", "startDay": -1}
    assert opened(compiled(windows=[window]), at(8), at(12)) == [(at(9, 17), at(10, 17))]


def test_a_window_from_the_evening_before_may_last_two_days():
    window = {"days": ["wed"], "start": "00:00", "end": "24:00", "startDay": -1}
    assert opened(compiled(windows=[window]), at(8), at(12)) == [(at(9), at(11))]


def test_validity_beats_an_override_and_an_override_beats_a_holiday():
    spec = {**OFFICE, "holidays": ["2026-06-10"], "validThrough": "2026-06-10"}
    reopened = {"dates": ["2026-06-10/2026-06-11"], "windows": [{"start": "12:00", "end": "13:00"}]}
    assert opened(compiled(**spec, overrides=[reopened]), at(10), at(13)) == [(at(10, 12), at(10, 13))]


def test_an_early_close_acts_on_the_hours_and_not_on_an_overrides_windows():
    sessions = [{"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]}]
    closes = [{"date": f"2026-06-{day}", "closeHour": 11} for day in (10, 11, 12)]
    overrides = [
        {"dates": ["2026-06-10"], "windows": [{"start": "08:00", "end": "20:00"}]},
        {"dates": ["2026-06-11"], "close": "14:00"},
        {"dates": ["2026-06-12"], "close": "10:30"},
    ]
    spec = {"sessions": sessions, "earlyCloses": closes, "overrides": overrides}
    schedule = compile_schedule(CAPITAL_MARKETS, spec)
    assert opened(schedule, at(10), at(13)) == [
        (at(10, 8), at(10, 20)),
        (at(11, 9), at(11, 12)),
        (at(12, 9), at(12, 10, 30)),
    ]


def test_an_early_close_does_nothing_beside_windows():
    window = {"days": ["mon-fri"], "start": "09:30", "end": "16:00"}
    spec = {"windows": [window], "earlyCloses": [{"date": "2026-06-10", "closeHour": 11}]}
    assert opened(compile_schedule(CAPITAL_MARKETS, spec), at(10), at(11)) == [(at(10, 9, 30), at(10, 16))]


def test_a_midnight_edge_of_the_week_beside_a_special_date_is_an_edge_only_where_the_answer_differs():
    spec = {"daysOfWeek": ["wed", "sat"], "hoursOfDay": ["0-23"], "holidays": ["2026-06-13", "2026-06-20"]}
    spec["overrides"] = [{"dates": ["2026-06-09"], "windows": [{"start": "00:00", "end": "24:00"}]}]
    schedule = compiled(**spec)
    assert opened(schedule, at(4), at(25)) == [
        (at(6), at(7)),
        (at(9), at(11)),
        (at(17), at(18)),
        (at(24), at(25)),
    ]
    assert schedule.prev_transition(at(17)) == at(17)
    assert schedule.prev_transition(at(16, 23)) == at(11)
    assert schedule.prev_transition(at(10, 12)) == at(9)


def test_an_override_that_begins_on_the_evening_before_joins_the_day_before_that():
    spec = {"windows": [{"days": ["wed"], "start": "00:00", "end": "24:00"}]}
    spec["overrides"] = [
        {"dates": ["2026-06-12"], "windows": [{"start": "00:00", "end": "06:00", "startDay": -1}]}
    ]
    assert opened(compiled(**spec), at(8), at(15)) == [(at(10), at(12, 6))]
    assert compiled(**spec).next_transition(at(10, 12)) == at(12, 6)
    assert compiled(**spec).prev_transition(at(12, 5)) == at(10)


def test_neighbouring_special_dates_each_follow_their_own_rule():
    spec = {**ALWAYS, "holidays": ["2026-06-10", "2026-06-12/2026-06-14", "2026-06-13"]}
    spec["overrides"] = [
        {"dates": ["2026-06-11"], "close": "13:00"},
        {"dates": ["2026-06-15"], "open": "07:00"},
    ]
    assert opened(compiled(**spec), at(9), at(17)) == [
        (at(9), at(10)),
        (at(11), at(11, 13)),
        (at(15, 7), at(17)),
    ]


def test_yesterday_tomorrow_and_a_week_of_holidays_are_counted_by_local_dates():
    schedule = compiled(**ALWAYS, timezone="Pacific/Auckland", holidays=["2026-06-10"])
    midnight = datetime(2026, 6, 10, tzinfo=zones.zone("Pacific/Auckland")).astimezone(UTC)
    assert schedule.next_close(at(1)) == midnight
    assert schedule.next_open(at(1)) == midnight + timedelta(days=1)
    assert schedule.next_transition(midnight + timedelta(days=1)) is None


def test_a_year_of_windows_belongs_to_every_date_that_its_days_name():
    schedule = compiled(windows=[{"days": ["sat"], "start": "12:00", "end": "12:15"}])
    starts = [interval.start.date() for interval in schedule.intervals(at(1), at(1) + timedelta(days=364))]
    assert starts == [date(2026, 6, 6) + timedelta(weeks=week) for week in range(52)]


def test_the_operating_systems_zones_are_not_asked():
    schedule = compiled(**OFFICE, timezone="America/New_York")
    assert zones.zone("America/New_York") is not ZoneInfo("America/New_York")
    assert schedule.next_transition(at(1)) == at(1, 13)
