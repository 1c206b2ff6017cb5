"""The API reference as Markdown, read off the same tree as the CRDs and the validator. Pure text; nothing is written."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from fivespot.core import names
from fivespot.core.api import duration, reasons
from fivespot.core.api.kinds import KINDS, SCHEDULED_MACHINE, Kind
from fivespot.core.api.openapi import forbidden_rule
from fivespot.core.api.providers import ProviderStatus
from fivespot.core.api.schema import Schema, Type, schema_of, walk

_Row = Sequence[str]

_INTRODUCTION: Final = """\
Every object that 5-Spot defines, field by field. A rule is checked by the API server when an object is written, and by
`5spot lint` when a file is read. `[]` in a path stands for each entry of a list or a mapping. A field whose default is
*required* must be there; one without a default may be left out, and null means the same.

Durations are ASCII digits and one of `s`, `m`, `h`, at most `24h`; `0s` means no time at all. Instants are RFC 3339 with
an offset.
"""

_CONTRACT: Final = f"""\
Any object in the group `{names.PROVIDER_GROUP}` can answer for a machine; the kinds above are those that 5-Spot ships.
Its CRD must have a status subresource. Of its status the following is read, and nothing else of it:

| field | need | meaning |
| --- | --- | --- |
| `status.active` | required | should the referencing machines exist now? A boolean |
| `status.conditions[type=Ready].status` | recommended | there and not `True`: `active` is not trusted now |
| `status.observedGeneration` | recommended | behind `metadata.generation`: the answer is stale |
| `status.lastTransitionTime`, `status.nextTransitionTime` | recommended | shown to people |

While the answer cannot be read, a machine keeps the last one that could. The providers that ship publish:
"""

_NAMES: Final[Sequence[tuple[str, str]]] = (
    (names.MACHINE_LABEL, "label on the bootstrap, infrastructure and Machine objects of a ScheduledMachine"),
    (names.CLUSTER_LABEL, "label on the same, for Cluster API"),
    (names.CREATED_FROM, "annotation on a Machine: digests of what of the spec it was created from"),
    (f"{names.AGENT_LABEL}={names.AGENT_LABEL_VALUE}", "label on a Node: the node agent belongs here"),
    (names.RECLAIM_REQUESTED, 'annotation on a Node: `"true"` asks for the machine back at once'),
    (names.RECLAIM_REASON, "annotation on a Node: why, at most 128 printable characters"),
    (names.RECLAIM_REQUESTED_AT, "annotation on a Node: since when, an instant"),
    (names.APPLIED_TAINTS, "annotation on a Node: the taints that are ours, as JSON"),
    (names.CORDONED_BY, "annotation on a Node: the cordon is ours"),
    (
        names.RECLAIM_RELEASE,
        "annotation on a ScheduledMachine: ends the hold whose `status.reclaim.observedAt` it repeats",
    ),
    (
        names.OVERRIDE_LABEL,
        "label on the two schedules of an override: the name of its machine, and the sign that `5spot override` may replace them",
    ),
    (names.PAUSED, "annotation on a ScheduledMachine or Machine: nothing is created, drained or deleted"),
    (names.UNPAUSED, "annotation that wakes a Machine after a pause"),
    (names.FINALIZER, "finalizer of a ScheduledMachine"),
    (
        f"<clusterName>{names.KUBECONFIG_SECRET_SUFFIX}",
        "Secret with the child cluster's kubeconfig, when a machine names none",
    ),
)


def api_reference() -> str:
    """The whole page."""
    parts = ["# API reference", _INTRODUCTION.rstrip(), _kinds()]
    parts.extend(_kind(kind) for kind in KINDS)
    parts.append("## What a provider publishes")
    parts.append(_CONTRACT.rstrip())
    parts.append(_fields("status", schema_of(ProviderStatus), with_rules=False))
    parts.append(_table(("reason of `Ready`", "meaning"), _code(reasons.PROVIDER_REASONS.items())))
    parts.append("## Names")
    parts.append(_table(("name", "what it is"), _code(_NAMES)))
    parts.append("## Conditions of a ScheduledMachine")
    parts.append(_table(("type", "meaning"), _code(reasons.CONDITION_TYPES.items())))
    parts.append("## Reasons of conditions and Events")
    parts.append(_table(("reason", "meaning"), _code(reasons.REASONS.items())))
    return "\n\n".join(parts) + "\n"


def _code(rows: Iterable[tuple[str, str]]) -> list[_Row]:
    return [(f"`{name}`", text) for name, text in rows]


def _kinds() -> str:
    rows = [
        (
            f"[{kind.name}](#{kind.name.lower()})",
            f"`{kind.api_version}`",
            f"`{kind.plural}`",
            f"`{kind.short}`",
        )
        for kind in KINDS
    ]
    return _table(("kind", "group and version", "plural", "short"), rows)


def _kind(kind: Kind) -> str:
    schema = kind.schema
    parts = [f"## {kind.name}", schema.description]
    parts.append(f"`kubectl get {kind.short}` shows {', '.join(column.name for column in kind.columns)}.")
    name_rules = [rule.remedy for rule in schema.bounds.rules if rule.field == "metadata.name"]
    if name_rules:
        parts.append(f"The name of the object: {'; '.join(name_rules)}.")
    parts.append(_fields("spec", schema.properties["spec"], with_rules=True, above=schema))
    if kind is SCHEDULED_MACHINE:
        parts.append("The controller writes the status; nobody else should.")
        parts.append(_fields("status", schema.properties["status"], with_rules=False))
    else:
        parts.append("Its status is [what every provider publishes](#what-a-provider-publishes).")
    return "\n\n".join(parts)


def _fields(root: str, schema: Schema, *, with_rules: bool, above: Schema | None = None) -> str:
    """The table of every field below `root`; `above` may have rules about them too."""
    outer = {
        rule.field: rule.remedy.removeprefix(f"{rule.field}: ")
        for rule in (above.bounds.rules if above else ())
    }
    required = set(_required(root, schema))
    rows = []
    for path, node in walk(schema, root):
        if path == root and not (with_rules and _rules(node)):
            continue
        if path.endswith("[]") and node.type in {Type.STRING, Type.INTEGER, Type.BOOLEAN}:
            continue  # said in the row of its list
        rule = "; ".join(dict.fromkeys([*_rules(node), *([outer[path]] if path in outer else [])]))
        default = "*required*" if path in required else _default(node)
        row = (f"`{path}`", _type(node), default, rule, _line(node.description))
        rows.append(row if with_rules else (row[0], row[1], row[4]))
    header = (
        ("field", "type", "default", "rule", "what it is") if with_rules else ("field", "type", "what it is")
    )
    return _table(header, rows)


def _required(path: str, schema: Schema) -> Iterator[str]:
    for below, node in walk(schema, path):
        # What has a default is never missing.
        yield from (f"{below}.{name}" for name in node.required if node.properties[name].default is None)


def _rules(node: Schema) -> list[str]:
    bounds = node.bounds
    found = [_words(node)] if not bounds.remedy else [bounds.remedy]
    if node.item is not None and node.item.type is not Type.OBJECT:
        found.extend(f"each: {rule}" for rule in _rules(node.item))
    found.extend(
        rule.remedy for rule in bounds.rules if not rule.transition and not rule.field.startswith("metadata")
    )
    found.extend(forbidden_rule(name).remedy for name in bounds.forbidden)
    return [text for text in dict.fromkeys(found) if text]


def _words(node: Schema) -> str:
    """Bounds that bring no words of their own."""
    bounds = node.bounds
    if bounds.enum:
        return f"one of {', '.join(f'`{value}`' for value in bounds.enum)}"
    if bounds.max_length is not None:
        return f"{bounds.min_length or 0} to {bounds.max_length} characters"
    if bounds.max_items is not None:
        return f"{bounds.min_items or 0} to {bounds.max_items} entries"
    if bounds.max_properties is not None:
        return f"at most {bounds.max_properties} keys"
    return ""


def _type(node: Schema) -> str:
    if node.bounds.pattern == duration.PATTERN:
        return "duration"
    if node.bounds.format == "date-time":
        return "instant"
    if node.item is not None:
        return f"{'list' if node.type is Type.ARRAY else 'mapping'} of {_type(node.item)}"
    return "any object" if node.type is Type.OPEN else node.type.value


def _default(node: Schema) -> str:
    if node.default is None:
        return ""
    return f"`{node.default if isinstance(node.default, str) else json.dumps(node.default)}`"


def _line(text: str) -> str:
    return " ".join(text.split())


def _table(header: _Row, rows: Sequence[_Row]) -> str:
    lines = [header, ["---"] * len(header), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
