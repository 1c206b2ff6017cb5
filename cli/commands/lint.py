"""`5spot lint`: what admission would refuse, and what a person should know."""

from datetime import UTC, datetime

import click

from fivespot.cli.fleets import load_fleet, paths_argument
from fivespot.cli.output import echo_json
from fivespot.core.lint import Level, lint


@click.command("lint")
@paths_argument
@click.option("--strict", is_flag=True, help="Warnings fail too.")
@click.option(
    "--output",
    "-o",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Form of the answer.",
)
def command(paths: tuple[str, ...], strict: bool, output: str) -> None:
    """Everything admission would refuse, and what it would not but a person should know.

    Each finding has file, line and field. Exit status 1 when anything would be refused.
    """
    fleet = load_fleet(paths)
    findings = lint(fleet, at=datetime.now(UTC))
    if output == "json":
        echo_json(
            [
                {
                    "level": finding.level.value,
                    "file": finding.file,
                    "line": finding.line,
                    "object": finding.object,
                    "field": finding.field,
                    "value": finding.value,
                    "text": finding.text,
                }
                for finding in findings
            ]
        )
    else:
        for finding in findings:
            click.echo(str(finding))
    errors = sum(finding.level is Level.ERROR for finding in findings)
    warnings = len(findings) - errors
    looked = f"{len(fleet.machines)} machines and {len(fleet.providers)} providers are sound"
    click.echo(f"{errors} errors, {warnings} warnings; {looked}", err=True)
    if errors or (strict and warnings):
        click.get_current_context().exit(1)
