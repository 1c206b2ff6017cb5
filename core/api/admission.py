"""The whole verdict on one manifest: would the cluster take it, and if not, what is to be done?

What a server-side apply with strict field validation would refuse is refused here, with a message for people, and so is
what only the schedule engine can know: a zone that is not listed, a date that two overrides claim. The status is not
looked at, since no manifest decides it. No file is read here and no cluster asked.
"""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from fivespot.core.api.allowed import DEFAULT_GROUPS, AllowedGroups
from fivespot.core.api.kinds import KINDS, SCHEDULE_KINDS, Kind, kind_of, kinds
from fivespot.core.api.manifest import ManifestMetadata
from fivespot.core.api.pruning import without_nulls
from fivespot.core.api.schema import Schema, Type, schema_of
from fivespot.core.api.validate import broken_transitions, problems_of
from fivespot.core.errors import InvalidSpec
from fivespot.core.names import group_of
from fivespot.core.schedule import compile_schedule

_TEXT: Final = Schema(type=Type.STRING)
_GROUPS: Final = tuple(sorted({kind.group for kind in KINDS}))


def problems_of_document(
    document: object, allowed: AllowedGroups = DEFAULT_GROUPS
) -> tuple[InvalidSpec, ...]:
    """Everything about one manifest that has to be put right before a cluster takes it; empty when it does.

    Args:
        document: what a reader of JSON or YAML makes; whatever it holds, the answer is a verdict and no exception.
        allowed: the groups that the cluster lets machines be made of.
    """
    if not isinstance(document, Mapping):
        return (InvalidSpec("", document, "write a mapping with apiVersion, kind, metadata and spec"),)
    kind = _kind(document, kinds(allowed))
    if isinstance(kind, InvalidSpec):
        return (kind,)
    schema = _whole(kind)
    bare = without_nulls(schema, document)
    return problems_of(schema, bare) or _unreadable_schedule(kind, bare["spec"])


def problems_of_update(
    document: Mapping[str, Any], stored: Mapping[str, Any], allowed: AllowedGroups = DEFAULT_GROUPS
) -> tuple[InvalidSpec, ...]:
    """As `problems_of_document`, and what may not change about the `stored` object, as a cluster returned it."""
    problems = problems_of_document(document, allowed)
    kind = kind_of(stored["apiVersion"], stored["kind"])
    if problems or kind is None:
        return problems
    return broken_transitions(kind.schema, document, stored)


def _kind(document: Mapping[str, Any], known: Sequence[Kind]) -> Kind | InvalidSpec:
    """The kind that the manifest names, or why there is none."""
    api_version, name = document.get("apiVersion"), document.get("kind")
    if not isinstance(api_version, str) or group_of(api_version) not in _GROUPS:
        versions = " or ".join(sorted({kind.api_version for kind in known}))
        return InvalidSpec("apiVersion", api_version, f"write {versions}")
    of_group = [kind.name for kind in known if kind.group == group_of(api_version)]
    if not isinstance(name, str) or name not in of_group:
        near = difflib.get_close_matches(name, of_group, n=1) if isinstance(name, str) else []
        guess = f"did you mean {near[0]}? " if near else ""
        return InvalidSpec("kind", name, f"{guess}known in {api_version}: {', '.join(of_group)}")
    kind = next(kind for kind in known if kind.name == name and kind.group == group_of(api_version))
    if kind.api_version != api_version:
        return InvalidSpec("apiVersion", api_version, f"write {kind.api_version}, the version of {name}")
    return kind


def _whole(kind: Kind) -> Schema:
    """The schema of a manifest of this kind, `metadata` included and `status` left open."""
    properties = {
        "apiVersion": _TEXT,
        "kind": _TEXT,
        "metadata": attrs.evolve(schema_of(ManifestMetadata), description="At least the name of the object."),
        **kind.schema.properties,
        "status": Schema(type=Type.OPEN),
    }
    return attrs.evolve(kind.schema, properties=properties, required=("metadata", *kind.schema.required))


def _unreadable_schedule(kind: Kind, spec: Mapping[str, Any]) -> tuple[InvalidSpec, ...]:
    if kind.name not in SCHEDULE_KINDS:
        return ()
    try:
        compile_schedule(kind.name, spec)
    except InvalidSpec as problem:
        return (problem.below("spec"),)
    return ()
