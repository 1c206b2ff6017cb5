"""How commands print: aligned columns, JSON, YAML. The same input gives the same bytes."""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import click


def echo_json(value: Any) -> None:
    """Print a value as JSON."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def echo_yaml(value: Any) -> None:
    """Print a value as YAML."""
    import yaml  # noqa: PLC0415 - only where YAML is asked for

    click.echo(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120), nl=False)


def columns(rows: Iterable[Sequence[str]], *, indent: str = "") -> Iterable[str]:
    """Rows as lines with aligned columns; the last column is not padded."""
    table = [list(row) for row in rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))] if table else []
    for row in table:
        cells = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        yield f"{indent}{'  '.join([*cells, row[-1]])}".rstrip()


def clock(at: datetime, zone: ZoneInfo) -> str:
    """An instant on a zone's clock, with its offset: `2026-03-02 09:00:00 +00:00`."""
    local = at.astimezone(zone)
    offset = local.strftime("%z")
    return f"{local:%Y-%m-%d %H:%M:%S} {offset[:3]}:{offset[3:5]}"


def hours(value: float) -> str:
    """Hours with one decimal: `64.9 h`."""
    return f"{value:.1f} h"
