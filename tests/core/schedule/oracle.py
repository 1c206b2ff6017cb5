"""A second opinion: the same semantics by asking zoneinfo for the local reading of every single instant.

Slow and plain on purpose, and without a line of the engine: naive local datetimes, sets of dates, no integers.
"""

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from typing import Any

from fivespot.core import zones

_NAMES = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


def active(spec: dict[str, Any], at: datetime) -> bool:
    """Whether the local clock's reading at `at` lies in a window of yesterday, today or tomorrow."""
    if spec.get("enabled") is False:
        return False
    reading = at.astimezone(zones.zone(spec.get("timezone", "UTC"))).replace(tzinfo=None)
    today = reading.date()
    return any(
        start <= reading < end
        for day in (today - timedelta(days=1), today, today + timedelta(days=1))
        for start, end in _windows(spec, day)
    )


def _windows(spec: dict[str, Any], day: date) -> Iterator[tuple[datetime, datetime]]:
    if str(day) < spec.get("validFrom", "0000") or str(day) > spec.get("validThrough", "9999-99"):
        return
    override = next((entry for entry in spec.get("overrides", []) if _named(entry["dates"], day)), {})
    if "windows" in override:
        found = [_window(window, day) for window in override["windows"]]
    elif _named(spec.get("holidays", []), day):
        return
    elif "windows" in spec:
        found = [_window(window, day) for window in spec["windows"] if day.weekday() in _days(window["days"])]
    else:
        found = [(_at(day, hour), _at(day, hour + 1)) for hour in _hours_of(spec, day)]
    opens = _clock(day, override["open"]) if "open" in override else _clock(date.min, "00:00")
    closes = _clock(day, override["close"]) if "close" in override else _clock(date.max, "00:00")
    for start, end in found:
        if max(start, opens) < min(end, closes):
            yield max(start, opens), min(end, closes)


def _window(window: dict[str, Any], day: date) -> tuple[datetime, datetime]:
    start = _clock(day, window["start"]) + timedelta(days=window.get("startDay", 0))
    end = _clock(day, window["end"])
    return start, end if end > start else end + timedelta(days=1)


def _hours_of(spec: dict[str, Any], day: date) -> set[int]:
    hours: set[int] = set()
    for session in spec.get("sessions", [spec]):
        if day.weekday() in _days(session.get("daysOfWeek", [])):
            hours |= _cycle(session["hoursOfDay"], [str(hour) for hour in range(24)])
    for close in spec.get("earlyCloses", []):
        if close["date"] == str(day):
            return {hour for hour in hours if hour <= close["closeHour"]}
    return hours


def _days(tokens: list[str]) -> set[int]:
    return _cycle(tokens, _NAMES)


def _cycle(tokens: list[str], names: list[str]) -> set[int]:
    found = set()
    for token in tokens:
        for part in token.replace(" ", "").split(","):
            first, _, last = part.partition("-")
            index = names.index(first)
            found.add(index)
            while names[index] != (last or first):
                index = (index + 1) % len(names)
                found.add(index)
    return found


def _named(ranges: list[str], day: date) -> bool:
    return any(
        first <= str(day) <= (last or first) for first, _, last in (text.partition("/") for text in ranges)
    )


def _clock(day: date, text: str) -> datetime:
    return datetime.combine(day, time()) + timedelta(hours=int(text[:2]), minutes=int(text[3:]))


def _at(day: date, hour: int) -> datetime:
    return datetime.combine(day, time()) + timedelta(hours=hour)
