"""Trading calendars out of the exchange_calendars package, which the extra `5spot[exchanges]` brings."""

from datetime import UTC, date
from typing import Any

import attrs

from fivespot.core import zones
from fivespot.core.calendar.derive import Calendar
from fivespot.core.calendar.sessions import Interval
from fivespot.core.errors import FivespotError, InvalidSpec


class NoExchanges(FivespotError):  # noqa: N818 - a fact about the installation
    """The package is not installed."""


@attrs.frozen(kw_only=True)
class ExchangeCalendar:
    """A calendar, and where it came from.

    Attributes:
        name: as the package calls it, aliases resolved: `XNYS`.
        source: the package and its version.
    """

    name: str
    source: str
    calendar: Calendar


def exchange_calendar(name: str, first: date, last: date) -> ExchangeCalendar:
    """The sessions of an exchange from `first` to `last`, both included.

    Raises:
        NoExchanges: the package is not installed.
        InvalidSpec: it knows no such exchange, or not for these years.
    """
    try:
        import exchange_calendars  # type: ignore[import-untyped]  # noqa: PLC0415 - half a second, and an extra
    except ImportError as error:
        message = "calendars of exchanges need the package exchange_calendars: pip install '5spot[exchanges]'"
        raise NoExchanges(message) from error
    names = exchange_calendars.get_calendar_names(include_aliases=True)
    if name not in names:
        known = ", ".join(sorted(exchange_calendars.get_calendar_names(include_aliases=False)))
        raise InvalidSpec("EXCHANGE", name, f"write one of {known}")
    try:
        found = exchange_calendars.get_calendar(name, start=first.isoformat(), end=last.isoformat())
    except ValueError as error:
        raise InvalidSpec(
            "years", f"{first:%Y}-{last:%Y}", f"{name} has no data for them: {error}"
        ) from error
    sessions = {row.Index.date(): tuple(_intervals(row)) for row in found.schedule.itertuples()}
    return ExchangeCalendar(
        name=found.name,
        source=f"exchange_calendars {exchange_calendars.__version__}",
        calendar=Calendar(zone=zones.zone(str(found.tz)), first=first, last=last, sessions=sessions),
    )


def _intervals(row: Any) -> list[Interval]:
    """One session, or the two around its break; pandas says NaT for no break."""
    opens, closes = _instant(row.open), _instant(row.close)
    if row.break_start != row.break_start:  # NaT alone is not equal to itself
        return [(opens, closes)]
    return [(opens, _instant(row.break_start)), (_instant(row.break_end), closes)]


def _instant(value: Any) -> Any:
    return value.to_pydatetime().astimezone(UTC)
