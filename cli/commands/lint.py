"""`5spot lint`: what admission would refuse, and what a person should know."""

from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from fivespot.cli.fleets import load_fleet, paths_argument, require_something
from fivespot.cli.groups import group_options
from fivespot.cli.output import echo_json
from fivespot.core.errors import plain
from fivespot.core.lint import Finding, Level, lint
from fivespot.core.text import counted

if TYPE_CHECKING:
    from fivespot.core.api.allowed import AllowedGroups


@click.command("lint")
@paths_argument
@click.option("--strict", is_flag=True, help="Warnings fail too.  [default: only errors do]")
@click.option(
    "--output",
    "-o",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Form of the answer.",
)
@group_options
def command(paths: tuple[str, ...], strict: bool, output: str, allowed: "AllowedGroups") -> None:
    """Everything admission would refuse, and what it would not but a person should know.

    PATH is a file, a folder with all below it, or - for standard input. Each finding has file, line, object and
    field: an error would be refused by a cluster, a warning may surprise, a note says how something is read and asks
    for nothing.

    Exit status 0 when nothing would be refused, 1 when something would, or when nothing of ours was read.
    """
    fleet = load_fleet(paths, allowed)
    require_something(fleet, paths)
    findings = lint(fleet, at=datetime.now(UTC))
    if output == "json":
        echo_json([_as_json(finding) for finding in findings])
    else:
        for finding in findings:
            click.echo(str(finding))
    counts = Counter(finding.level for finding in findings)
    told = ", ".join(counted(counts[level], level.value) for level in Level)
    sound = f"{counted(len(fleet.machines), 'machine')} and {counted(len(fleet.providers), 'provider')}"
    click.echo(f"{told}; a cluster would take {sound}", err=True)
    if counts[Level.ERROR] or (strict and counts[Level.WARNING]):
        click.get_current_context().exit(1)


def _as_json(finding: Finding) -> dict[str, object]:
    return {
        "level": finding.level.value,
        "file": finding.file,
        "line": finding.line,
        "object": finding.object,
        "field": finding.field,
        "value": plain(finding.value),
        "text": finding.text,
    }
