"""`5spot docs`: reference pages that are made from the models."""

from pathlib import Path

import click

from fivespot.cli.files import write
from fivespot.core.api.reference import api_reference

HEADER = (
    "<!-- Made from the models by `5spot docs api`; change them (core/api/) and run `make generate`. -->\n\n"
)


@click.group("docs")
def command() -> None:
    """Reference pages made from the models."""


@command.command("api")
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write to this file."
)
def api(output: Path | None) -> None:
    """Every kind and field, as Markdown."""
    text = HEADER + api_reference()
    if output is None:
        click.echo(text, nl=False)
    else:
        write(output, text)
