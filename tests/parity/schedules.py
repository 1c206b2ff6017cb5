"""Manifests of the two schedule kinds, good and bad."""

from tests.builders import ABSENT
from tests.parity.common import provider_rows
from tests.parity.row import Rows

_ENGINE_ONLY = (
    "the schedule engine knows it, a schema cannot; the provider then says Ready=False, InvalidSpec"
)

TIME_BASED = provider_rows("TimeBasedSpotSchedule")
CAPITAL_MARKETS = provider_rows("CapitalMarketsSchedule")
_SCHEDULES = (TIME_BASED, CAPITAL_MARKETS)

# The texts of days and hours
_DAYS = (
    [],
    ["mon"],
    ["mon-fri", "sun"],
    ["fri-mon"],
    [" mon - fri , sun\t"],
    ["mon"] * 100,
    ["mon" + " " * 253],
)
_BAD_DAYS = (
    "",
    " ",
    "monday",
    "Mon",
    "MON-FRI",
    "mon-",
    "-fri",
    "mon--fri",
    "mon,",
    ",mon",
    "mon-wed-fri",
    "mon#1",
    "mon\u00a0",
    "1",
    "mon" + " " * 254,
)
_HOURS = ([], ["0-23"], ["9-17", "20"], ["22-6"], ["17-16"], ["09", "+9", "+009 - 017"], ["9, 10"], ["9\n"])
_BAD_HOURS = (
    "",
    "24",
    "-1",
    "9-24",
    "9.5",
    "9:30",
    "\u0669",
    "++9",
    "9_0",
    "1e1",
    "0x9",
    "9-17-20",
    "9;10",
    "- 9",
)


def _tokens(rows: Rows, field: str, token: str, good: tuple[list[str], ...], bad: tuple[str, ...]) -> None:
    rows.accepts(field, field, *good)
    rows.refuses(f"{field}: a bad entry", field, *([token, entry] for entry in bad), at=f"{field}[1]")
    rows.refuses(
        f"{field}: an entry of another type", field, [9], [None], [True], [["mon"]], at=f"{field}[0]"
    )
    rows.refuses(f"{field}: no list", field, "mon-fri", 9, {})
    rows.accepts(f"{field}: 100 entries", field, [token] * 100)
    rows.refuses(f"{field}: 101 entries", field, [token] * 101)


_tokens(TIME_BASED, "spec.daysOfWeek", "mon", _DAYS, _BAD_DAYS)
_tokens(TIME_BASED, "spec.hoursOfDay", "9", _HOURS, _BAD_HOURS)
TIME_BASED.refuses("no hours", "spec.hoursOfDay", ABSENT, None, at="spec")
TIME_BASED.refuses("no days", "spec.daysOfWeek", ABSENT, None, at="spec")
TIME_BASED.accepts(
    "windows instead of hours",
    "spec.windows",
    [],
    also={"spec.hoursOfDay": ABSENT, "spec.daysOfWeek": ABSENT},
)
TIME_BASED.refuses(
    "null windows and no hours", "spec.windows", None, at="spec", also={"spec.hoursOfDay": ABSENT}
)
TIME_BASED.accepts("enabled", "spec.enabled", True, False, None)
TIME_BASED.refuses("enabled that is no boolean", "spec.enabled", "true", 1)
TIME_BASED.refuses("fields of the other kind", "spec.sessions", [])
TIME_BASED.refuses("early closes belong to the other kind", "spec.earlyCloses", [])

_SESSION = {"daysOfWeek": ["mon"], "hoursOfDay": ["9"]}
CAPITAL_MARKETS.accepts("sessions", "spec.sessions", [], [_SESSION, _SESSION], [_SESSION] * 1000)
CAPITAL_MARKETS.refuses("1001 sessions", "spec.sessions", [_SESSION] * 1001)
CAPITAL_MARKETS.refuses("no sessions", "spec.sessions", ABSENT, None, at="spec")
CAPITAL_MARKETS.refuses("sessions of another type", "spec.sessions", _SESSION, "mon")
CAPITAL_MARKETS.refuses("session of another type", "spec.sessions", [None], ["mon"], at="spec.sessions[0]")
CAPITAL_MARKETS.refuses(
    "session without hours",
    "spec.sessions",
    [{"daysOfWeek": ["mon"]}],
    [{"daysOfWeek": ["mon"], "hoursOfDay": None}],
    at="spec.sessions[0].hoursOfDay",
)
CAPITAL_MARKETS.refuses(
    "session without days", "spec.sessions", [{"hoursOfDay": ["9"]}], at="spec.sessions[0].daysOfWeek"
)
CAPITAL_MARKETS.refuses(
    "session with a bad day",
    "spec.sessions",
    [{**_SESSION, "daysOfWeek": ["Mon"]}],
    at="spec.sessions[0].daysOfWeek[0]",
)
CAPITAL_MARKETS.refuses(
    "session with a bad hour",
    "spec.sessions",
    [{**_SESSION, "hoursOfDay": ["24"]}],
    at="spec.sessions[0].hoursOfDay[0]",
)
CAPITAL_MARKETS.refuses(
    "session with an unknown field",
    "spec.sessions",
    [{**_SESSION, "timezone": "UTC"}],
    at="spec.sessions[0].timezone",
)
CAPITAL_MARKETS.accepts("windows instead of sessions", "spec.windows", [], also={"spec.sessions": ABSENT})
CAPITAL_MARKETS.refuses("enabled belongs to the other kind", "spec.enabled", True)
_CLOSE = {"date": "2026-12-24", "closeHour": 12}
CAPITAL_MARKETS.accepts(
    "early closes",
    "spec.earlyCloses",
    None,
    [],
    [_CLOSE, _CLOSE],
    [{**_CLOSE, "closeHour": 0}],
    [{**_CLOSE, "closeHour": 23}],
    [_CLOSE] * 1000,
)
CAPITAL_MARKETS.refuses("1001 early closes", "spec.earlyCloses", [_CLOSE] * 1001)
CAPITAL_MARKETS.refuses(
    "early close hour that is none",
    "spec.earlyCloses",
    *([{**_CLOSE, "closeHour": hour}] for hour in (-1, 24, "12", 12.5, None, True)),
    at="spec.earlyCloses[0].closeHour",
)
CAPITAL_MARKETS.refuses(
    "early close date that is none",
    "spec.earlyCloses",
    *(
        [{**_CLOSE, "date": date}]
        for date in ("2026-02-30", "2026-12-24/2026-12-25", "24.12.2026", "", 20261224, None)
    ),
    at="spec.earlyCloses[0].date",
)
CAPITAL_MARKETS.refuses(
    "early close with an unknown field",
    "spec.earlyCloses",
    [{**_CLOSE, "close": "12:00"}],
    at="spec.earlyCloses[0].close",
)

_DATES = ("2026-12-25", "2028-02-29", "2000-02-29", "0001-01-01", "9999-12-31")
_BAD_DATES = (
    "2026-02-30",
    "2026-02-29",
    "1900-02-29",
    "2026-04-31",
    "2026-13-01",
    "2026-00-01",
    "2026-01-00",
    "2026-01-32",
    "0000-01-01",
    "2026-1-1",
    "20261225",
    "2026-W01-1",
    "2026-12-25T00:00:00Z",
    "2026-12-25\n",
    "\u0662026-12-25",
    " 2026-12-25",
    "",
)
_WINDOW = {"days": ["mon-fri"], "start": "09:30", "end": "16:00"}
_OVERRIDE = {"dates": ["2026-11-27"], "close": "13:00"}

for _rows in _SCHEDULES:
    _rows.accepts(
        "time zone",
        "spec.timezone",
        "UTC",
        "Europe/London",
        "America/Argentina/Buenos_Aires",
        "Etc/GMT+2",
        "EST",
        None,
    )
    _rows.refuses(
        "time zone that is none",
        "spec.timezone",
        "",
        " UTC",
        "UTC\n",
        "Europe/Z\u00fcrich",
        "x" * 65,
        5,
        "UTC;",
        "GMT+02:00",
    )
    _rows.refuses(
        "time zone that is not listed",
        "spec.timezone",
        "Europe/Nowhere",
        "EDT",
        "europe/london",
        "posix/Europe/London",
        "localtime",
        "Factory",
        only="ours",
        because=_ENGINE_ONLY,
    )
    # Windows
    _rows.accepts(
        "windows",
        "spec.windows",
        None,
        [],
        [_WINDOW],
        [{**_WINDOW, "days": []}],
        [{**_WINDOW, "start": "00:00", "end": "24:00"}],
        [{**_WINDOW, "start": "22:00", "end": "06:00"}],
        [{**_WINDOW, "start": "09:00", "end": "09:00"}],
        [{**_WINDOW, "startDay": -1}, {**_WINDOW, "startDay": 0}, {**_WINDOW, "startDay": None}],
        [_WINDOW] * 1000,
    )
    _rows.refuses("1001 windows", "spec.windows", [_WINDOW] * 1001)
    _rows.refuses("windows of another type", "spec.windows", _WINDOW, "09:30-16:00")
    _rows.refuses("window of another type", "spec.windows", [None], ["09:30-16:00"], at="spec.windows[0]")
    _rows.refuses(
        "window start that is none",
        "spec.windows",
        *(
            [{**_WINDOW, "start": text}]
            for text in (
                "9:30",
                "+09:30",
                "24:00",
                "09:60",
                "09:30:00",
                "09:30\n",
                "0\u0669:30",
                "",
                930,
                None,
            )
        ),
        at="spec.windows[0].start",
    )
    _rows.refuses(
        "window end that is none",
        "spec.windows",
        *([{**_WINDOW, "end": text}] for text in ("24:01", "25:00", "4pm", "16:00 ", 960, None)),
        at="spec.windows[0].end",
    )
    _rows.refuses(
        "window start day that is none",
        "spec.windows",
        *([{**_WINDOW, "startDay": day}] for day in (-2, 1, "0", 0.5)),
        at="spec.windows[0].startDay",
    )
    _rows.refuses(
        "window without days", "spec.windows", [{"start": "09:30", "end": "16:00"}], at="spec.windows[0].days"
    )
    _rows.refuses(
        "window with a bad day",
        "spec.windows",
        [{**_WINDOW, "days": ["mon#2"]}],
        at="spec.windows[0].days[0]",
    )
    _rows.refuses(
        "window with an unknown field",
        "spec.windows",
        [{**_WINDOW, "months": [1]}],
        at="spec.windows[0].months",
    )
    # Holidays and validity
    _rows.accepts(
        "holidays",
        "spec.holidays",
        None,
        [],
        list(_DATES),
        ["2026-12-24/2026-12-26"],
        ["2026-12-25/2026-12-25"],
        ["2026-12-25"] * 1000,
    )
    _rows.refuses("1001 holidays", "spec.holidays", ["2026-12-25"] * 1001)
    _rows.refuses(
        "holiday that is no date",
        "spec.holidays",
        *([date] for date in _BAD_DATES),
        [20261225],
        [None],
        at="spec.holidays[0]",
    )
    _rows.refuses(
        "holidays whose range is none",
        "spec.holidays",
        *(
            [text]
            for text in (
                "2026-12-26/2026-12-24",
                "2026-12-24/",
                "/2026-12-24",
                "2026-12-24/2026-12-25/2026-12-26",
                "2026-02-28/2026-02-30",
                "2026-12-24 / 2026-12-26",
            )
        ),
        at="spec.holidays[0]",
    )
    for _field in ("spec.validFrom", "spec.validThrough"):
        _rows.accepts(_field, _field, *_DATES, None)
        _rows.refuses(f"{_field} that is no date", _field, *_BAD_DATES, "2026-01-01/2026-01-02", 2026)
    _rows.accepts(
        "validity of one day", "spec.validFrom", "2026-03-02", also={"spec.validThrough": "2026-03-02"}
    )
    _rows.refuses(
        "validity that ends before it begins",
        "spec.validFrom",
        "2026-03-03",
        also={"spec.validThrough": "2026-03-02"},
    )
    # Overrides
    _rows.accepts(
        "overrides",
        "spec.overrides",
        None,
        [],
        [_OVERRIDE],
        [{**_OVERRIDE, "name": "half day"}],
        [{**_OVERRIDE, "name": "x" * 253}],
        [{**_OVERRIDE, "open": "10:00", "close": "24:00"}],
        [{**_OVERRIDE, "open": None, "close": None, "windows": None, "name": None}],
        [{"dates": ["2026-11-27"], "windows": []}],
        [
            {
                "dates": ["2026-11-27"],
                "windows": [{"start": "22:00", "end": "02:00", "startDay": -1}],
                "close": "01:00",
            }
        ],
        [{"dates": ["2026-12-24/2026-12-26", "2026-11-27"]}],
        [{"dates": [f"{2000 + n}-12-25"]} for n in range(1000)],
        [{"dates": [f"{2000 + n}-12-25" for n in range(300)]}],
    )
    _rows.refuses("1001 overrides", "spec.overrides", [{"dates": [f"{2000 + n}-12-25"]} for n in range(1001)])
    _rows.refuses(
        "override with 301 dates",
        "spec.overrides",
        [{"dates": [f"{2000 + n}-12-25" for n in range(301)]}],
        at="spec.overrides[0].dates",
    )
    _rows.refuses(
        "override without dates",
        "spec.overrides",
        [{"close": "13:00"}],
        [{"dates": None}],
        [{"dates": []}],
        at="spec.overrides[0].dates",
    )
    _rows.refuses(
        "override of a date that is none",
        "spec.overrides",
        *([{**_OVERRIDE, "dates": [date]}] for date in ("2026-02-30", "2026-12-26/2026-12-24", "", 5, None)),
        at="spec.overrides[0].dates[0]",
    )
    _rows.refuses(
        "override with a name that is none",
        "spec.overrides",
        [{**_OVERRIDE, "name": "x" * 254}],
        [{**_OVERRIDE, "name": 5}],
        at="spec.overrides[0].name",
    )
    _rows.refuses(
        "override with a clip that is none",
        "spec.overrides",
        *([{**_OVERRIDE, "close": text}] for text in ("1pm", "13:0", 780)),
        at="spec.overrides[0].close",
    )
    _rows.refuses(
        "override that opens at 24:00",
        "spec.overrides",
        [{**_OVERRIDE, "open": "24:00"}],
        at="spec.overrides[0].open",
    )
    _rows.refuses(
        "override window with days",
        "spec.overrides",
        [{**_OVERRIDE, "windows": [_WINDOW]}],
        at="spec.overrides[0].windows[0].days",
    )
    _rows.refuses(
        "override window without end",
        "spec.overrides",
        [{**_OVERRIDE, "windows": [{"start": "09:00"}]}],
        at="spec.overrides[0].windows[0].end",
    )
    _rows.refuses(
        "override with 101 windows",
        "spec.overrides",
        [{**_OVERRIDE, "windows": [{"start": "09:00", "end": "10:00"}] * 101}],
        at="spec.overrides[0].windows",
    )
    _rows.refuses(
        "override with an unknown field",
        "spec.overrides",
        [{**_OVERRIDE, "closed": True}],
        at="spec.overrides[0].closed",
    )
    _rows.refuses(
        "date in two overrides",
        "spec.overrides",
        [_OVERRIDE, _OVERRIDE],
        at="spec.overrides[1].dates[0]",
        only="ours",
        because=_ENGINE_ONLY,
    )
    _rows.refuses(
        "date twice in one override",
        "spec.overrides",
        [{"dates": ["2026-12-24/2026-12-26", "2026-12-25"]}],
        at="spec.overrides[0].dates[1]",
        only="ours",
        because=_ENGINE_ONLY,
    )
    _rows.refuses("reserved fields", "spec.months", [1])
    _rows.refuses("reserved days of the month", "spec.monthDays", [1])

ROWS = (*TIME_BASED.rows, *CAPITAL_MARKETS.rows)
