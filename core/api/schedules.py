"""What the two schedule kinds may say: hours, windows and dates, as fields.

The grammar itself lives in `core/schedule/`; patterns and bounds come from there, so that the API server and the engine
refuse the same texts. What only the engine can know (zone names, a date that two overrides claim) is refused by it, and
shows as `Ready=False` with reason InvalidSpec.
"""

from typing import Any, Final

import attrs

from fivespot.core.api.schema import Bounds, Rule, prop, rules
from fivespot.core.schedule import bounds as grammar


def _at_most(limit: int, item: Bounds, **more: Any) -> Bounds:
    return Bounds(max_items=limit, remedy=f"write at most {limit} entries", item=item, **more)


DAYS: Final = _at_most(
    grammar.MAX_TOKENS,
    Bounds(
        pattern=grammar.DAYS_PATTERN,
        min_length=1,
        max_length=grammar.MAX_TOKEN_LENGTH,
        remedy="write days as mon tue wed thu fri sat sun, ranges as mon-fri, several with commas",
    ),
)
HOURS: Final = _at_most(
    grammar.MAX_TOKENS,
    Bounds(
        pattern=grammar.HOURS_PATTERN,
        min_length=1,
        max_length=grammar.MAX_TOKEN_LENGTH,
        remedy="write whole hours 0 to 23, ranges as 9-17 (both included), several with commas; for minutes use windows",
    ),
)
_START: Final = Bounds(
    pattern=grammar.START_PATTERN, max_length=grammar.MAX_CLOCK_LENGTH, remedy="write HH:MM, 00:00 to 23:59"
)
_END: Final = Bounds(
    pattern=grammar.END_PATTERN, max_length=grammar.MAX_CLOCK_LENGTH, remedy="write HH:MM, 00:00 to 24:00"
)
# Real dates as a pattern: a rule in CEL over every date of a thousand overrides is more than the server's cost limit.
# Year 0 is Go's alone.
_YEAR: Final = "([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
_LEAP_YEAR: Final = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)"
_DAY_OF_MONTH: Final = (
    "((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
)
_REAL_DATE: Final = f"({_YEAR}-{_DAY_OF_MONTH}|{_LEAP_YEAR}-02-29)"

_DATE: Final = Bounds(
    pattern=f"^{_REAL_DATE}$",
    max_length=grammar.MAX_DATE_LENGTH,
    remedy='write a real date as YYYY-MM-DD, in quotes, such as "2026-12-25"',
)
_DATES: Final = Bounds(
    pattern=f"^{_REAL_DATE}(/{_REAL_DATE})?$",
    max_length=grammar.MAX_DATES_LENGTH,
    remedy='write real dates as YYYY-MM-DD or YYYY-MM-DD/YYYY-MM-DD, in quotes, such as "2026-12-24/2026-12-26"',
    rules=(
        Rule(
            cel="size(self) < 21 || self.substring(0, 10) <= self.substring(11)",
            holds=lambda value: len(value) < grammar.MAX_DATES_LENGTH or value[:10] <= value[11:],
            remedy="the range runs backwards: write the earlier date first",
        ),
    ),
)
_TIMEZONE: Final = Bounds(
    pattern="^[A-Za-z0-9_+/-]+$",
    min_length=1,
    max_length=grammar.MAX_TIMEZONE_LENGTH,
    remedy="write an IANA zone name such as Europe/London",
)


@attrs.frozen(kw_only=True)
class OverrideWindow:
    """A stretch of the overridden dates; as a window, without days."""

    start: str = prop("First minute, 00:00 to 23:59.", bounds=_START)
    end: str = prop("End, exclusive, 00:00 to 24:00; not later than the start: the next day.", bounds=_END)
    start_day: int = prop(
        "-1: starts on the evening before the date it belongs to.",
        default=0,
        server_default=0,
        bounds=Bounds(minimum=-1, maximum=0, remedy="write 0, or -1 for the evening before"),
    )


@attrs.frozen(kw_only=True)
class Window(OverrideWindow):
    """A stretch of every matching date, read on the local clock: half-open, the end moving to the next day if needed."""

    days: tuple[str, ...] = prop("The dates it belongs to, as day tokens.", bounds=DAYS)


@attrs.frozen(kw_only=True)
class Override:
    """What is different on some dates: other windows, or a clip of the usual ones."""

    dates: tuple[str, ...] = prop(
        "Dates and ranges of dates, both ends included.",
        bounds=_at_most(grammar.MAX_DATES, _DATES, min_items=1),
    )
    name: str | None = prop("For people.", default=None, bounds=Bounds(max_length=grammar.MAX_NAME_LENGTH))
    open: str | None = prop("Nothing before this local time.", default=None, bounds=_START)
    close: str | None = prop("Nothing from this local time on.", default=None, bounds=_END)
    windows: tuple[OverrideWindow, ...] | None = prop(
        "Instead of the usual windows; empty is closed.",
        default=None,
        bounds=Bounds(
            max_items=grammar.MAX_OVERRIDE_WINDOWS,
            remedy=f"write at most {grammar.MAX_OVERRIDE_WINDOWS} entries",
        ),
    )


@attrs.frozen(kw_only=True)
class Session:
    """Hours of a trading day."""

    days_of_week: tuple[str, ...] = prop("Day tokens.", bounds=DAYS)
    hours_of_day: tuple[str, ...] = prop("Hour tokens.", bounds=HOURS)


@attrs.frozen(kw_only=True)
class EarlyClose:
    """A date on which trading ends after the end of an hour."""

    date: str = prop("The date.", bounds=_DATE)
    close_hour: int = prop(
        "Closed after the end of this hour.",
        bounds=Bounds(
            minimum=grammar.MIN_CLOSE_HOUR,
            maximum=grammar.MAX_CLOSE_HOUR,
            remedy="write a whole hour 0 to 23",
        ),
    )


_VALIDITY: Final = Rule(
    cel="!has(self.validFrom) || !has(self.validThrough) || self.validFrom <= self.validThrough",
    holds=lambda value: (value.get("validFrom") or "") <= (value.get("validThrough") or "9999-99-99"),
    remedy="validFrom must not be after validThrough",
    field="validFrom",
)


def _timezone() -> Any:
    return prop(
        "IANA zone name; rules come from the pinned tzdata.",
        default="UTC",
        server_default="UTC",
        bounds=_TIMEZONE,
    )


def _windows() -> Any:
    return prop(
        "Windows to the minute; when present, they replace the hour fields.",
        default=None,
        bounds=Bounds(max_items=grammar.MAX_WINDOWS, remedy=f"write at most {grammar.MAX_WINDOWS} entries"),
    )


def _holidays() -> Any:
    return prop(
        "Dates without windows, single or as ranges a/b.",
        default=(),
        bounds=_at_most(grammar.MAX_HOLIDAYS, _DATES),
    )


def _overrides() -> Any:
    return prop(
        "Dates that are different.",
        default=(),
        bounds=Bounds(
            max_items=grammar.MAX_OVERRIDES, remedy=f"write at most {grammar.MAX_OVERRIDES} entries"
        ),
    )


@rules(
    Rule(
        cel="has(self.windows) || (has(self.daysOfWeek) && has(self.hoursOfDay))",
        holds=lambda value: (
            value.get("windows") is not None
            or (value.get("daysOfWeek") is not None and value.get("hoursOfDay") is not None)
        ),
        remedy="write daysOfWeek and hoursOfDay, or windows",
    ),
    _VALIDITY,
)
@attrs.frozen(kw_only=True)
class TimeBasedSpec:
    """Hours or windows of a week, with dates that differ."""

    enabled: bool = prop("False: never active.", default=True, server_default=True)
    timezone: str = _timezone()
    days_of_week: tuple[str, ...] | None = prop("Day tokens; empty: never.", default=None, bounds=DAYS)
    hours_of_day: tuple[str, ...] | None = prop(
        "Hour tokens, both ends included.", default=None, bounds=HOURS
    )
    windows: tuple[Window, ...] | None = _windows()
    holidays: tuple[str, ...] = _holidays()
    overrides: tuple[Override, ...] = _overrides()
    valid_from: str | None = prop("First date.", default=None, bounds=_DATE)
    valid_through: str | None = prop("Last date, included.", default=None, bounds=_DATE)


@rules(
    Rule(
        cel="has(self.windows) || has(self.sessions)",
        holds=lambda value: value.get("windows") is not None or value.get("sessions") is not None,
        remedy="write sessions, or windows",
    ),
    _VALIDITY,
)
@attrs.frozen(kw_only=True)
class CapitalMarketsSpec:
    """Sessions of a market, with holidays and early closes."""

    timezone: str = _timezone()
    sessions: tuple[Session, ...] | None = prop(
        "Any of them.",
        default=None,
        bounds=Bounds(max_items=grammar.MAX_SESSIONS, remedy=f"write at most {grammar.MAX_SESSIONS} entries"),
    )
    early_closes: tuple[EarlyClose, ...] = prop(
        "Dates on which the hours end early.",
        default=(),
        bounds=Bounds(
            max_items=grammar.MAX_EARLY_CLOSES, remedy=f"write at most {grammar.MAX_EARLY_CLOSES} entries"
        ),
    )
    windows: tuple[Window, ...] | None = _windows()
    holidays: tuple[str, ...] = _holidays()
    overrides: tuple[Override, ...] = _overrides()
    valid_from: str | None = prop("First date.", default=None, bounds=_DATE)
    valid_through: str | None = prop("Last date, included.", default=None, bounds=_DATE)
