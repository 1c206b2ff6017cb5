"""How commands print: aligned columns, JSON, YAML, instants and spans. The same input gives the same bytes."""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import click

_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_UNITS: Final = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))


def echo_json(value: Any) -> None:
    """Print a value as JSON."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def echo_yaml(value: Any) -> None:
    """Print a value as YAML."""
    import yaml  # noqa: PLC0415 - only where YAML is asked for

    click.echo(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120), nl=False)


def echo_manifest(document: Any, comment: str = "") -> None:
    """Print a manifest as a document of a YAML stream that kubectl reads as it is; `comment` is a line above it."""
    import yaml  # noqa: PLC0415 - only where YAML is asked for

    from fivespot.adapters.files import scalar  # noqa: PLC0415

    class Dumper(yaml.SafeDumper):
        """Puts into quotes what kubectl would not take for text: it reads more words as numbers than PyYAML does."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        style = None if isinstance(scalar.plain(value), str) else '"'
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    head = f"---\n{comment}\n" if comment else "---\n"
    click.echo(
        head + yaml.dump(document, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120), nl=False
    )


def columns(rows: Iterable[Sequence[str]], *, indent: str = "") -> Iterable[str]:
    """Rows as lines with aligned columns; the last column is not padded."""
    table = [list(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        cells = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        yield f"{indent}{'  '.join([*cells, row[-1]])}".rstrip()


def clock(at: datetime, zone: ZoneInfo) -> str:
    """An instant on a zone's clock, with weekday and offset: `Mon 2026-03-02 09:00:00 +00:00`.

    Years that the local calendar does not reach are told in UTC.
    """
    try:
        local = at.astimezone(zone)
    except OverflowError:
        local = at
    # By hand, since strftime is slow and writes the year 900 as three digits.
    moved = round((local.utcoffset() or timedelta()).total_seconds())
    minutes, rest = divmod(abs(moved), 60)
    offset = f"{'-' if moved < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}" + (
        f":{rest:02}" if rest else ""
    )
    day = f"{_DAYS[local.weekday()]} {local.year:04}-{local.month:02}-{local.day:02}"
    return f"{day} {local.hour:02}:{local.minute:02}:{local.second:02} {offset}"


def span(length: timedelta) -> str:
    """A span of time to the second, without the units of which there are none: `3d4h`, `11h59m30s`, `0s`."""
    rest = round(length.total_seconds())
    text = ""
    for unit, size in _UNITS:
        count, rest = divmod(rest, size)
        text += f"{count}{unit}" if count else ""
    return text or "0s"


def hours(value: float) -> str:
    """Hours with one decimal: `64.9 h`."""
    return f"{value:.1f} h"
