"""Click parameter types for instants and spans of time."""

import re
from datetime import datetime, timedelta
from typing import Final

import click

from fivespot.core.errors import InvalidSpec
from fivespot.core.instant import parse_instant
from fivespot.core.zones import zone

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SPAN: Final = re.compile(r"\+?([0-9]{1,6})([smhdw])")
_SPAN_HELP: Final = "a number and one of s, m, h, d, w, such as 90s or 7d"

_SPAN_TOO: Final = f", nor {_SPAN_HELP}"


def parse_span(text: str) -> timedelta | None:
    """A span such as `7d`; None when it is not one."""
    match = _SPAN.fullmatch(text)
    return timedelta(seconds=int(match.group(1)) * _UNITS[match.group(2)]) if match else None


def _instant(text: str) -> datetime:
    """The instant that a text names; ValueError says what it is, and what to write where that can be guessed."""
    try:
        return parse_instant(text)
    except ValueError:
        for missing in ("Z", "T00:00:00Z"):
            try:
                parse_instant(text + missing)
            except ValueError:
                continue
            message = f"without an offset, so it names no instant; write {text}{missing} if UTC is meant"
            raise ValueError(message) from None
        raise


class Instant(click.ParamType[datetime]):
    """An RFC 3339 instant."""

    name = "instant"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Read it, or fail as a usage error."""
        if isinstance(value, datetime):
            return value
        try:
            return _instant(str(value))
        except ValueError as error:
            self.fail(f"{value!r} is {error}", param, ctx)


class Span(click.ParamType[timedelta]):
    """A span of time."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Read it, or fail as a usage error."""
        if isinstance(value, timedelta):
            return value
        span = parse_span(str(value))
        return span if span is not None else self.fail(f"{value!r} is not {_SPAN_HELP}", param, ctx)


class InstantOrSpan(click.ParamType[datetime | timedelta]):
    """An instant, or a span that counts from another one."""

    name = "instant|duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime | timedelta:
        """Read it, or fail as a usage error."""
        if isinstance(value, datetime | timedelta):
            return value
        span = parse_span(str(value))
        if span is not None:
            return span
        try:
            return _instant(str(value))
        except ValueError as error:
            self.fail(f"{value!r} is {error}{_SPAN_TOO if str(error).startswith('not ') else ''}", param, ctx)


class Zone(click.ParamType[str]):
    """An IANA zone of the pinned tzdata."""

    name = "zone"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check that it is listed, or fail as a usage error."""
        try:
            zone(str(value))
        except InvalidSpec as error:
            self.fail(f"{value!r}: {error.remedy}", param, ctx)
        return str(value)


INSTANT: Final = Instant()
SPAN: Final = Span()
INSTANT_OR_SPAN: Final = InstantOrSpan()
ZONE: Final = Zone()
