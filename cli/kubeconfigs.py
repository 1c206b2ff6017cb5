"""The operator's own kubeconfig: its options, and what is wrong with it, said before the client library stumbles over it.

Not here: what a kubeconfig out of a Secret may say (`adapters/kube/kubeconfig.py`).
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import click
import yaml

from fivespot.adapters.kube.connecting import in_cluster

F = TypeVar("F", bound=Callable[..., Any])
_HOME: Final = "~/.kube/config"


def cluster_options(command: F) -> F:
    """`--kubeconfig` and `--context`."""
    context = click.option(
        "--context",
        metavar="NAME",
        envvar="FIVESPOT_CONTEXT",
        show_envvar=True,
        help="Context of the kubeconfig.  [default: its current one]",
    )
    kubeconfig = click.option(
        "--kubeconfig",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        envvar="FIVESPOT_KUBECONFIG",
        show_envvar=True,
        help="The management cluster.  [default: the pod's own, else as kubectl finds it]",
    )
    return kubeconfig(context(command))


acting_as_option: Final = click.option(
    "--as",
    "acting_as",
    metavar="USER",
    help="Ask as this user, whom one has to be allowed to impersonate.  [default: who the kubeconfig says]",
)
"""For whoever may want to see what another account would."""


local_child_option: Final = click.option(
    "--allow-local-child",
    is_flag=True,
    envvar="FIVESPOT_ALLOW_LOCAL_CHILD",
    show_envvar=True,
    help="Accept child clusters on loopback, link-local and metadata addresses (tests, one-machine set-ups).  [default: no]",
)
"""For whoever connects to child clusters."""


def check_kubeconfig(kubeconfig: str | None, context: str | None) -> None:
    """Look whether there is a cluster to talk to, as kubectl would find it.

    Raises:
        click.ClickException: no kubeconfig, one that cannot be read, or none with the context; says which and what to do.
    """
    if kubeconfig is None and context is None and in_cluster() is not None:
        return
    files = _files(kubeconfig)
    configs = [_read(file) for file in files]
    shown = ", ".join(str(file) for file in files)
    contexts = {str(entry.get("name")) for config in configs for entry in _entries(config, "contexts")}
    has = f"it has {', '.join(sorted(contexts))}" if contexts else "it has none"
    current = next(
        (str(config["current-context"]) for config in configs if config.get("current-context")), ""
    )
    if not (context or current):
        raise click.ClickException(f"{shown}: no current-context; choose one with --context: {has}")
    if (context or current) not in contexts:
        raise click.ClickException(f"{shown}: no context {context or current!r}; {has}")


def _files(kubeconfig: str | None) -> list[Path]:
    if kubeconfig is not None:
        return [Path(kubeconfig)]
    listed = os.environ.get("KUBECONFIG")
    named = [part for part in (listed or _HOME).split(os.pathsep) if part]
    found = [path for path in (Path(part).expanduser() for part in named) if path.is_file()]
    if not found:
        where = f"$KUBECONFIG names no file ({listed})" if listed else f"there is no {_HOME}"
        message = f"no cluster to talk to: {where}, and this is no pod; name a kubeconfig with --kubeconfig"
        raise click.ClickException(message)
    return found


def _read(file: Path) -> Mapping[str, Any]:
    try:
        config = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise click.ClickException(f"{file}: it cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{file}: it is no kubeconfig: not UTF-8") from error
    # PyYAML's constructors let ValueError and others through, for impossible dates and the like.
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{file}:{mark.line + 1}" if mark is not None else str(file)
        raise click.ClickException(f"{place}: it is no YAML, so no kubeconfig") from error
    if not isinstance(config, Mapping):
        message = f"{file}: it is no kubeconfig; write a mapping with clusters, users and contexts"
        raise click.ClickException(message)
    return config


def _entries(config: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    found = config.get(name)
    return [entry for entry in found if isinstance(entry, Mapping)] if isinstance(found, list) else []
