"""`5spot crds`: the CustomResourceDefinitions that the models make."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
import yaml

from fivespot.cli.files import write
from fivespot.cli.groups import group_options
from fivespot.core.api.kinds import Kind, crd, kinds

if TYPE_CHECKING:
    from fivespot.core.api.allowed import AllowedGroups

HEADER = "# Made from the models by `5spot crds`; change them (core/api/) and run `make generate`.\n"


@click.command("crds")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write one file for each kind into this folder.",
)
@group_options
def command(output: Path | None, allowed: "AllowedGroups") -> None:
    """The CustomResourceDefinitions, as YAML.

    Without --output they are printed as one stream, ready for `kubectl apply --server-side -f -`.
    """
    if output is None:
        click.echo("---\n".join(text_of(kind) for kind in kinds(allowed)), nl=False)
        return
    for kind in kinds(allowed):
        write(output / file_name(kind), text_of(kind))


def file_name(kind: Kind) -> str:
    """`<plural>.<group>.yaml`, after the name of the object in it."""
    return f"{kind.plural}.{kind.group}.yaml"


def text_of(kind: Kind) -> str:
    """The file of one kind."""
    return HEADER + yaml.safe_dump(crd(kind), sort_keys=False, allow_unicode=True, width=1000)
