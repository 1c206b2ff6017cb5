"""Advice about schedules that are allowed and may still surprise whoever wrote them.

Nothing here refuses anything: what is refused is InvalidSpec, from `spec.py`. The advice is about the manifest as written,
so it reads the mapping beside the checked values. It knows no clock; what depends on the year needs `at`.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from attrs import frozen

from fivespot.core import zones
from fivespot.core.instant import FIRST_SECOND, format_instant, from_seconds, seconds
from fivespot.core.schedule import grammar
from fivespot.core.schedule.dates import Days, format_day
from fivespot.core.schedule.engine import Schedule
from fivespot.core.schedule.line import DAY, Line
from fivespot.core.schedule.offsets import offsets
from fivespot.core.schedule.plan import line_for
from fivespot.core.schedule.spec import TIME_BASED, ScheduleSpec, read_spec

_TWO_YEARS: Final = 731 * DAY
_LAST_HOUR: Final = 23


@frozen
class Advice:
    """One thing worth knowing: about which field, what stands there, and what it means.

    `usual` is advice that many a good schedule gets: it says how something is read, and asks for no change.
    """

    field: str
    value: object
    text: str
    usual: bool = False


def lint_schedule(kind: str, spec: object, *, at: datetime | None = None) -> list[Advice]:
    """What a person should know about a schedule's `spec`.

    Args:
        kind: `TimeBasedSpotSchedule` or `CapitalMarketsSchedule`.
        spec: the manifest's mapping.
        at: the present; without it, nothing is said about clock changes to come and about schedules that are over.

    Raises:
        InvalidSpec: as `compile_schedule` does.
    """
    checked = read_spec(kind, spec)
    assert isinstance(spec, Mapping)  # noqa: S101 - read_spec has seen to it
    line = line_for(checked)
    return [
        *_timezone(checked),
        *_hours(checked, spec),
        *_windows(spec),
        *_beside_windows(checked, spec),
        *_early_closes(checked, spec),
        *_overrides(checked, spec),
        *_never(checked, line, at),
        *_folds(checked, line, at),
    ]


def _timezone(spec: ScheduleSpec) -> Iterator[Advice]:
    name = spec.timezone
    preferred = zones.canonical(name)
    if "/" not in name and name != zones.DEFAULT:
        instead = (
            f"IANA's name for its clock is {preferred}"
            if preferred != name
            else "write a place, as Europe/London"
        )
        yield Advice("timezone", name, f"a name without a slash is kept for old systems only; {instead}")
    elif preferred != name:
        yield Advice("timezone", name, f"an old name; IANA's name for the same clock is {preferred}")


def _hours(checked: ScheduleSpec, spec: Mapping[str, Any]) -> Iterator[Advice]:
    if checked.windows is not None:
        return
    if checked.kind == TIME_BASED:
        written = [("", spec)]
    else:
        written = [(f"sessions[{index}].", session) for index, session in enumerate(spec["sessions"])]
    for (path, fields), session in zip(written, checked.sessions or (), strict=True):
        every_day = len(session.days) == len(grammar.DAY_NAMES)
        for index, entry in enumerate(fields["hoursOfDay"]):
            field = f"{path}hoursOfDay[{index}]"
            for first, last in grammar.ranges(entry, field, grammar.HOURS):
                if first < last < _LAST_HOUR:
                    text = f"both ends count: {first}-{last} runs to {last:02}:59:59"
                    yield Advice(field, entry, text, usual=True)
                elif last < first and not every_day:
                    yield Advice(
                        field,
                        entry,
                        f"days and hours are both read at the instant itself: hours 0 to {last} belong to the day on "
                        "which they are read, so the last evening ends at midnight and the first day begins at 00:00; "
                        'for whole nights write windows, such as start: "22:00", end: "06:00"',
                    )


def _windows(spec: Mapping[str, Any]) -> Iterator[Advice]:
    listed = [("windows", spec.get("windows", ()))]
    for index, override in enumerate(spec.get("overrides", ())):
        listed.append((f"overrides[{index}].windows", override.get("windows", ())))
    for path, windows in listed:
        for index, window in enumerate(windows):
            if window["start"] == window["end"]:
                text = "the end equals the start, which is 24 hours; if that is meant, all is well"
                yield Advice(f"{path}[{index}].end", window["end"], text, usual=True)


def _beside_windows(checked: ScheduleSpec, spec: Mapping[str, Any]) -> Iterator[Advice]:
    if checked.windows is None:
        return
    for name in ("daysOfWeek", "hoursOfDay", "sessions"):
        if name in spec:
            yield Advice(
                name, spec[name], "windows replace it; only readers that do not know windows go by it"
            )
    if checked.early_closes:
        text = "without effect beside windows, since it acts on sessions only; write overrides with close"
        yield Advice("earlyCloses", spec["earlyCloses"], text)


def _early_closes(checked: ScheduleSpec, spec: Mapping[str, Any]) -> Iterator[Advice]:
    first: dict[int, int] = {}
    for index, close in enumerate(checked.early_closes):
        if close.day in first:
            text = f"{format_day(close.day)} stands in earlyCloses[{first[close.day]}] already, and the first counts"
            yield Advice(f"earlyCloses[{index}].date", spec["earlyCloses"][index]["date"], text)
        first.setdefault(close.day, index)


def _overrides(checked: ScheduleSpec, spec: Mapping[str, Any]) -> Iterator[Advice]:
    for index, override in enumerate(checked.overrides):
        field = f"overrides[{index}]"
        entry = spec["overrides"][index]
        if override.windows is None and override.opens is None and override.closes is None:
            yield Advice(field, entry, "changes nothing; write windows: [] if the dates are closed")
        if override.opens is not None and override.closes is not None and override.closes <= override.opens:
            yield Advice(
                f"{field}.close", entry["close"], "not later than open, so nothing is left of the dates"
            )
        if override.windows is None:
            for position, days in enumerate(override.dates):
                if any(_overlap(days, holiday) for holiday in checked.holidays):
                    text = "a clip does not reopen a holiday; to open on one, give the override windows"
                    yield Advice(f"{field}.dates[{position}]", entry["dates"][position], text)


def _never(checked: ScheduleSpec, line: Line, at: datetime | None) -> Iterator[Advice]:
    if not checked.enabled:
        yield Advice("enabled", checked.enabled, "never active while this is false")
        return
    schedule = Schedule(checked.timezone, line)
    if not schedule.active_s(FIRST_SECOND) and schedule.next_transition_s(FIRST_SECOND) is None:
        yield Advice(_base_field(checked), None, "never active: no reading of the local clock is inside")
    elif at is not None and not schedule.active(at) and schedule.next_transition(at) is None:
        ended = schedule.prev_transition(at)
        since = "" if ended is None else f"; the last time ended at {format_instant(ended)}"
        yield Advice(
            "validThrough" if checked.valid_through is not None else "", None, f"never active again{since}"
        )


def _folds(checked: ScheduleSpec, line: Line, at: datetime | None) -> Iterator[Advice]:
    if at is None:
        return
    stretches = offsets(checked.timezone)
    second = seconds(at)
    end = second + _TWO_YEARS
    _, cut, before = stretches.at(second)
    while cut < end:
        _, following, after = stretches.at(cut)
        edge = line.after(cut + after)
        if edge is not None and edge < cut + before:
            text = (
                f"at {format_instant(from_seconds(cut))} the clock in {checked.timezone} goes back, and reads "
                f"{_clock(cut + after)} to {_clock(cut + before)} twice: the edge at {_clock(edge)} is passed twice, "
                "so it switches there and back and there again"
            )
            yield Advice(_base_field(checked), format_day(edge // DAY), text)
        cut, before = following, after


def _base_field(checked: ScheduleSpec) -> str:
    if checked.windows is not None:
        return "windows"
    return "hoursOfDay" if checked.kind == TIME_BASED else "sessions"


def _overlap(one: Days, other: Days) -> bool:
    return one.first <= other.last and other.first <= one.last


def _clock(reading: int) -> str:
    minutes, second = divmod(reading % DAY, 60)
    text = f"{minutes // 60:02}:{minutes % 60:02}"
    return f"{text}:{second:02}" if second else text
