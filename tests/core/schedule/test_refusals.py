"""Whatever is refused is refused with its field, its value and a remedy; nothing ever fails in another way."""

import copy
import datetime as dt
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fivespot.core.errors import InvalidSpec
from fivespot.core.schedule import CAPITAL_MARKETS, KINDS, TIME_BASED, bounds, compile_schedule
from tests import strategies

WINDOW = {"days": ["mon-fri"], "start": "09:30", "end": "16:00"}
TIME_BASED_SPEC: dict[str, Any] = {
    "timezone": "Europe/London",
    "enabled": True,
    "daysOfWeek": ["mon-fri", "sun"],
    "hoursOfDay": ["9-17", "20"],
    "windows": [WINDOW, {**WINDOW, "startDay": -1}],
    "holidays": ["2026-12-25", "2026-12-28/2026-12-30"],
    "overrides": [
        {"dates": ["2026-11-27", "2026-12-24"], "name": "half day", "open": "10:00", "close": "13:00"},
        {"dates": ["2026-11-30"], "windows": [{"start": "22:00", "end": "06:00", "startDay": 0}]},
    ],
    "validFrom": "2026-01-01",
    "validThrough": "2026-12-31",
}
SESSION = {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-15"]}
MARKETS_SPEC: dict[str, Any] = {
    "sessions": [SESSION, SESSION],
    "earlyCloses": [{"date": "2026-12-24", "closeHour": 12}],
    **{name: TIME_BASED_SPEC[name] for name in ("timezone", "windows", "holidays", "overrides")},
}


def deep() -> list[Any]:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    return nested


def laughs() -> list[Any]:
    nested: list[Any] = ["ha"]
    for _ in range(60):
        nested = [nested] * 9
    return nested


class Odd:
    """Something that no reader makes."""


GARBAGE: dict[str, Any] = {
    "null": None,
    "true": True,
    "zero": 0,
    "minus one": -1,
    "huge": 10**5000,
    "float": 9.5,
    "nan": float("nan"),
    "empty text": "",
    "blank": " ",
    "nul": "\x00",
    "surrogate": "\udcff",
    "arabic": "٩",
    "long text": "x" * 2_000_000,
    "long list": ["mon"] * 500_000,
    "deep": deep(),
    "aliases": laughs(),
    "empty list": [],
    "list of null": [None],
    "list of numbers": [9],
    "empty mapping": {},
    "odd keys": {None: 1, 2: 3, "\udcff": 4},
    "long key": {"x" * 1_000_000: None},
    "bytes": b"mon",
    "date": dt.date(2026, 12, 25),
    "datetime": dt.datetime(2026, 12, 25, tzinfo=dt.UTC),
    "set": {"mon"},
    "odd": Odd(),
}


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of every value inside `node`."""
    found = [path] if path else []
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        found += places(child, (*path, key))
    return found


def replaced(spec: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    changed: Any = copy.copy(spec)
    node = changed
    for key in path[:-1]:
        node[key] = copy.copy(node[key])
        node = node[key]
    node[path[-1]] = value
    return changed


def written(path: tuple[Any, ...]) -> str:
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")


def error_of(kind: Any, spec: Any) -> InvalidSpec | None:
    """The refusal of `spec`, or None when it is accepted; anything else that is raised fails the test."""
    try:
        compile_schedule(kind, spec)
    except InvalidSpec as error:
        if not error.remedy:
            raise
        return error
    return None


def refusal(kind: Any, spec: Any) -> InvalidSpec:
    error = error_of(kind, spec)
    assert error is not None
    assert len(str(error)) < 2000
    return error


@pytest.mark.parametrize("path", [*places(TIME_BASED_SPEC), *places(MARKETS_SPEC)[:11]], ids=written)
def test_garbage_is_refused_with_its_field_or_accepted_but_never_breaks_anything_at(path):
    kind, spec = (
        (TIME_BASED, TIME_BASED_SPEC) if path[0] in TIME_BASED_SPEC else (CAPITAL_MARKETS, MARKETS_SPEC)
    )
    refused = {name: error_of(kind, replaced(spec, path, value)) for name, value in GARBAGE.items()}
    errors = {name: error for name, error in refused.items() if error is not None}
    assert {name for name, error in errors.items() if not error.field.startswith(written(path))} == set()
    assert {name for name, error in errors.items() if len(str(error)) > 2000} == set()
    assert len(errors) > len(GARBAGE) - 6


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_instead_of_a_whole_spec_is_refused(name):
    error = refusal(TIME_BASED, GARBAGE[name])
    assert isinstance(error.field, str)


@pytest.mark.parametrize("kind", [None, "", "timeBasedSpotSchedule", "ManualSpotSchedule", 5, [], "\udcff"])
def test_another_kind_is_refused(kind):
    assert refusal(kind, TIME_BASED_SPEC).field == "kind"


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["mon", "9", "09:30"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=120, deadline=None)
@given(strategies.schedules(), st.data())
def test_one_random_value_anywhere_is_accepted_or_refused_with_a_field_that_leads_there(schedule, data):
    kind, spec = schedule
    path = data.draw(st.sampled_from(places(spec)))
    changed = replaced(spec, path, data.draw(json_values))
    error = error_of(kind, changed)
    # Some rules are about two fields, such as validFrom and validThrough; then either may be named.
    assert error is None or error.field.partition("[")[0].partition(".")[0] in changed


@settings(max_examples=120, deadline=None)
@given(
    st.sampled_from(KINDS),
    st.dictionaries(st.sampled_from([*TIME_BASED_SPEC, *MARKETS_SPEC, "x"]), json_values),
)
def test_a_random_mapping_is_accepted_or_refused_with_a_field(kind, spec):
    error = error_of(kind, spec)
    assert error is None or error.field


HOURS = {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]}


@pytest.mark.parametrize(
    ("kind", "spec", "field", "remedy"),
    [
        (TIME_BASED, {}, "daysOfWeek", "missing"),
        (TIME_BASED, {"daysOfWeek": ["mon"]}, "hoursOfDay", "missing"),
        (TIME_BASED, {"hoursOfDay": ["9"]}, "daysOfWeek", "missing"),
        (CAPITAL_MARKETS, {}, "sessions", "missing"),
        (CAPITAL_MARKETS, {"sessions": [{"daysOfWeek": ["mon"]}]}, "sessions[0].hoursOfDay", "missing"),
        (
            CAPITAL_MARKETS,
            {"sessions": [{"daysOfWeek": ["Mon"], "hoursOfDay": []}]},
            "sessions[0].daysOfWeek[0]",
            "days",
        ),
        (CAPITAL_MARKETS, {"sessions": [], "enabled": True}, "enabled", TIME_BASED),
        (CAPITAL_MARKETS, {"sessions": [], "hoursOfDay": ["9"]}, "hoursOfDay", "sessions"),
        (TIME_BASED, {**HOURS, "sessions": []}, "sessions", CAPITAL_MARKETS),
        (TIME_BASED, {**HOURS, "earlyCloses": []}, "earlyCloses", CAPITAL_MARKETS),
        (TIME_BASED, {**HOURS, "hoursOfDays": []}, "hoursOfDays", "hoursOfDay"),
        (TIME_BASED, {**HOURS, "months": ["jan"]}, "months", "reserved"),
        (TIME_BASED, {"windows": [{**WINDOW, "monthDays": [1]}]}, "windows[0].monthDays", "reserved"),
        (
            TIME_BASED,
            {**HOURS, "overrides": [{"dates": [], "months": []}]},
            "overrides[0].months",
            "reserved",
        ),
        (CAPITAL_MARKETS, {"sessions": [{**SESSION, "months": []}]}, "sessions[0].months", "reserved"),
        (TIME_BASED, {"daysOfWeek": ["mon#1"], "hoursOfDay": []}, "daysOfWeek[0]", "reserved"),
        (TIME_BASED, {"daysOfWeek": ["mon"], "hoursOfDay": ["9", 9]}, "hoursOfDay[1]", "quote it"),
        (TIME_BASED, {"daysOfWeek": "mon", "hoursOfDay": []}, "daysOfWeek", "list"),
        (TIME_BASED, {**HOURS, "enabled": "false"}, "enabled", "true or false"),
        (TIME_BASED, {**HOURS, "timezone": "EDT"}, "timezone", "abbreviation"),
        (TIME_BASED, {**HOURS, "timezone": ""}, "timezone", "IANA"),
        (TIME_BASED, {"windows": [{**WINDOW, "start": "9:30"}]}, "windows[0].start", "HH:MM"),
        (TIME_BASED, {"windows": [{**WINDOW, "start": "24:00"}]}, "windows[0].start", "23:59"),
        (TIME_BASED, {"windows": [{**WINDOW, "end": "24:01"}]}, "windows[0].end", "24:00"),
        (TIME_BASED, {"windows": [{**WINDOW, "end": 960}]}, "windows[0].end", "quotes"),
        (TIME_BASED, {"windows": [WINDOW, {"days": ["mon"], "end": "16:00"}]}, "windows[1].start", "missing"),
        (TIME_BASED, {"windows": [{"start": "09:00", "end": "16:00"}]}, "windows[0].days", "missing"),
        (TIME_BASED, {"windows": [{**WINDOW, "startDay": 1}]}, "windows[0].startDay", "-1 to 0"),
        (TIME_BASED, {"windows": [{**WINDOW, "startDay": False}]}, "windows[0].startDay", "whole number"),
        (TIME_BASED, {**HOURS, "windows": None}, "windows", "list"),
        (TIME_BASED, {**HOURS, "holidays": ["2026-02-30"]}, "holidays[0]", "calendar"),
        (TIME_BASED, {**HOURS, "holidays": [dt.date(2026, 12, 25)]}, "holidays[0]", "quote it"),
        (TIME_BASED, {**HOURS, "holidays": ["2026-12-26/2026-12-24"]}, "holidays[0]", "backwards"),
        (TIME_BASED, {**HOURS, "overrides": [{"name": "x"}]}, "overrides[0].dates", "missing"),
        (
            TIME_BASED,
            {**HOURS, "overrides": [{"dates": ["2026-01-01", "2026-01-01"]}]},
            "overrides[0].dates[1]",
            "one",
        ),
        (
            TIME_BASED,
            {
                **HOURS,
                "overrides": [{"dates": ["2026-01-01/2026-01-09"]}, {"dates": ["2026-02-01", "2026-01-05"]}],
            },
            "overrides[1].dates[1]",
            "2026-01-05 has an entry already",
        ),
        (
            TIME_BASED,
            {**HOURS, "overrides": [{"dates": ["2026-01-01"], "windows": [WINDOW]}]},
            "overrides[0].windows[0].days",
            "leave it out",
        ),
        (
            TIME_BASED,
            {**HOURS, "overrides": [{"dates": ["2026-01-01"], "open": "24:00"}]},
            "overrides[0].open",
            "23:59",
        ),
        (TIME_BASED, {**HOURS, "validFrom": "2026-01-01/2026-01-02"}, "validFrom", "10"),
        (
            TIME_BASED,
            {**HOURS, "validFrom": "2026-01-02", "validThrough": "2026-01-01"},
            "validThrough",
            "validFrom",
        ),
        (
            CAPITAL_MARKETS,
            {"sessions": [], "earlyCloses": [{"date": "2026-01-01"}]},
            "earlyCloses[0].closeHour",
            "missing",
        ),
        (
            CAPITAL_MARKETS,
            {"sessions": [], "earlyCloses": [{"date": "2026-01-01", "closeHour": 24}]},
            "earlyCloses[0].closeHour",
            "0 to 23",
        ),
        (
            CAPITAL_MARKETS,
            {"sessions": [], "earlyCloses": [{"date": "2026-01-01", "closeHour": 12.0}]},
            "earlyCloses[0].closeHour",
            "whole number",
        ),
        (
            CAPITAL_MARKETS,
            {"sessions": [], "earlyCloses": [{"date": "2026-01-01", "closeHour": True}]},
            "earlyCloses[0].closeHour",
            "whole number",
        ),
    ],
)
def test_a_fault_is_named_by_its_field_and_its_remedy(kind, spec, field, remedy):
    error = refusal(kind, spec)
    assert error.field == field
    assert remedy in error.remedy


@pytest.mark.parametrize(
    ("name", "limit", "entry"),
    [
        ("windows", bounds.MAX_WINDOWS, WINDOW),
        ("holidays", bounds.MAX_HOLIDAYS, "2026-12-25"),
        ("sessions", bounds.MAX_SESSIONS, SESSION),
        ("earlyCloses", bounds.MAX_EARLY_CLOSES, {"date": "2026-12-24", "closeHour": 12}),
    ],
)
def test_a_list_is_accepted_up_to_its_bound_and_refused_above_with_the_bound_in_the_remedy(
    name, limit, entry
):
    spec = {"sessions": [], name: [entry] * limit}
    compile_schedule(CAPITAL_MARKETS, spec)
    error = refusal(CAPITAL_MARKETS, {**spec, name: [entry] * (limit + 1)})
    assert error.field == name
    assert str(limit) in error.remedy


def test_hour_fields_are_checked_even_where_windows_replace_them():
    assert refusal(TIME_BASED, {"windows": [WINDOW], "hoursOfDay": ["24"]}).field == "hoursOfDay[0]"


def test_a_spec_as_large_as_a_server_stores_compiles_and_answers_without_reading_all_of_it():
    start = dt.date(1000, 1, 1)
    days = [str(start + dt.timedelta(days=2 * index)) for index in range(bounds.MAX_DATES * 60)]
    spec = {
        "windows": [
            {
                "days": ["mon-sun"],
                "start": f"{minute // 60:02}:{minute % 60:02}",
                "end": f"{minute // 60:02}:{minute % 60 + 1:02}",
            }
            for minute in range(0, 1440, 2)
        ],
        "overrides": [
            {"dates": days[index : index + bounds.MAX_DATES], "close": "13:00"}
            for index in range(0, len(days), bounds.MAX_DATES)
        ],
    }
    schedule = compile_schedule(TIME_BASED, spec)
    noon = dt.datetime(1111, 6, 11, 12, tzinfo=dt.UTC)
    assert schedule.next_transition(noon) == noon + dt.timedelta(minutes=1)
    assert schedule.prev_transition(noon + dt.timedelta(hours=2)) is not None
