"""What was read of a cluster, judged: kinds, processes, machines, providers, Cluster API."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from fivespot.core.api.allowed import AllowedGroups
from fivespot.core.api.kinds import Kind, crd
from fivespot.core.api.scheduled_machine import ScheduleReference
from fivespot.core.decision.knowledge import Absent, Known, Unknown, value_of
from fivespot.core.decision.observation import CapiMachineView, ClusterView, MachineView, ProviderView
from fivespot.core.decision.verdict import overdue_at, verdict_of
from fivespot.core.doctor.finding import Finding, failed, ok, warning
from fivespot.core.names import CAPI_GROUP
from fivespot.core.text import counted

_INSTALL_CRDS: Final = "5spot crds | kubectl apply --server-side -f -"
_MANY: Final = 10
"""So many objects of one kind of trouble are named; a fleet has thousands."""
_ACTS_WITHIN: Final = timedelta(minutes=2)
"""Cluster API puts a phase on a new Machine within seconds."""
_CLOCKS: Final = timedelta(seconds=30)
"""Two machines' clocks may be so far apart."""

ProviderKey = tuple[str, ScheduleReference]
"""Namespace, and reference in it."""


def few(findings: Sequence[Finding]) -> Iterator[Finding]:
    """The first of many findings of one kind, and how many more there are."""
    yield from findings[:_MANY]
    if rest := findings[_MANY:]:
        last = rest[0]
        yield Finding(
            level=last.level, subject=last.subject, message=f"and {len(rest)} more like this", fix=last.fix
        )


def kind_served(kind: Kind) -> Finding:
    """A kind of ours that the cluster knows, and whose CRD may not be looked at."""
    return ok(kind.name, f"{kind.api_version} is served")


def kind_missing(kind: Kind, *, needed: bool) -> Finding:
    """A kind of ours that the cluster does not know; a kind of provider that nobody refers to need not be there."""
    found = failed if needed else warning
    return found(kind.name, f"{kind.api_version} is not served", f"install the CRDs: {_INSTALL_CRDS}")


def kind_installed(kind: Kind, installed: Mapping[str, Any]) -> Finding:
    """A CRD as it is installed: what its schema does not have, the server takes away from every object in silence."""
    wanted = _schema(crd(kind), kind.version)
    found = _schema(installed, kind.version)
    lacking = tuple(_lacking(wanted, found, ""))
    if not lacking:
        return kind_served(kind) if kind.allowed is None else _groups(kind, kind.allowed, wanted, found)
    shown = ", ".join(lacking[:_MANY]) + (f" and {len(lacking) - _MANY} more" if len(lacking) > _MANY else "")
    message = (
        f"the installed CRD is of another version: it lacks {shown}, which the server drops from every object"
    )
    return failed(kind.name, message, f"install the CRDs of this version: {_INSTALL_CRDS}")


def _groups(kind: Kind, allowed: AllowedGroups, wanted: Any, found: Any) -> Finding:
    """Whether the CRD lets in the API groups that this controller does, and no others."""
    options = " ".join(
        [f"--bootstrap-group {group}" for group in allowed.bootstrap]
        + [f"--infrastructure-group {group}" for group in allowed.infrastructure]
    )
    for template in ("bootstrapSpec", "infrastructureSpec"):
        path = ("spec", template, "apiVersion")
        if _at(found, path).get("pattern") != _at(wanted, path).get("pattern"):
            message = f"the installed CRD lets in other API groups at {'.'.join(path)} than this controller, or doctor, was told"
            fix = f"5spot crds {options} | kubectl apply --server-side -f -, or give the options of the controller here"
            return warning(kind.name, message, fix)
    return kind_served(kind)


def _at(schema: Any, path: Sequence[str]) -> Mapping[str, Any]:
    for name in path:
        schema = (schema.get("properties") or {}).get(name) or {}
    found: Mapping[str, Any] = schema
    return found


def _schema(definition: Mapping[str, Any], version: str) -> Any:
    versions = definition.get("spec", {}).get("versions", [])
    found: Mapping[str, Any] = next((entry for entry in versions if entry.get("name") == version), {})
    return found.get("schema", {}).get("openAPIV3Schema", {})


def _lacking(wanted: Any, found: Any, path: str) -> Iterator[str]:
    """The paths of properties that one schema has and the other does not; nothing below what keeps all fields."""
    if not isinstance(found, Mapping) or found.get("x-kubernetes-preserve-unknown-fields"):
        return
    for below in ("items", "additionalProperties"):
        if isinstance(wanted.get(below), Mapping) and isinstance(found.get(below), Mapping):
            yield from _lacking(wanted[below], found[below], path)
    has = found.get("properties") or {}
    for name, schema in (wanted.get("properties") or {}).items():
        at = f"{path}.{name}" if path else name
        if name not in has:
            yield at
        else:
            yield from _lacking(schema, has[name], at)


def leader(name: str, holder: str, renewed: datetime | None, lasts: timedelta, now: datetime) -> Finding:
    """A Lease: whether somebody leads.

    Args:
        name: of the Lease, with its namespace.
        holder: empty when it was given back.
        renewed: by the holder's clock.
        lasts: what the holder has promised.
        now: by ours.
    """
    subject = f"Lease {name}"
    fix = "is a controller running? see its pods and their logs"
    if not holder:
        return warning(subject, "nobody leads", fix)
    if renewed is None or now - renewed > lasts + _CLOCKS:
        since = f"since {renewed:%Y-%m-%dT%H:%M:%SZ}" if renewed is not None else "at any time"
        return warning(subject, f"{holder} leads, and has not renewed it {since}", fix)
    return ok(subject, f"{holder} leads")


def specs(machines: Iterable[MachineView]) -> Iterator[Finding]:
    """Machines that the controller cannot create since their spec is invalid; a lax or older CRD let them in."""
    found = [
        failed(
            "specs",
            f"{_named(machine)}: {machine.problems[0]}",
            "correct it; until then nothing is created for it",
        )
        for machine in machines
        if machine.problems
    ]
    yield from few(found)


def clusters(
    machines: Iterable[MachineView], found: Mapping[tuple[str, str], Known[ClusterView]]
) -> Iterator[Finding]:
    """The Clusters that machines name: whether there are such."""
    users = Counter(
        (machine.metadata.namespace, machine.intent.cluster_name)
        for machine in machines
        # A name that cannot be read is among what is wrong with the spec.
        if machine.intent.cluster_name
    )
    missing, others = [], []
    for (namespace, name), count in sorted(users.items()):
        known, subject = found.get((namespace, name)), f"Cluster {namespace}/{name}"
        cluster = value_of(known)
        if known is None:
            text = f"does not exist, and {counted(count, 'machine names', 'machines name')} it"
            missing.append(
                failed(subject, text, "create it, or correct spec.clusterName; nothing is created meanwhile")
            )
        elif isinstance(known, Unknown):
            others.append(warning(subject, known.why, "correct it"))
        elif cluster is not None and cluster.deleting:
            others.append(
                warning(
                    subject,
                    f"is being deleted, and {counted(count, 'machine goes', 'machines go')} with it",
                    "nothing, if it is meant",
                )
            )
        elif cluster is not None and cluster.paused:
            others.append(
                warning(
                    subject,
                    f"is paused, and so {'is 1 machine' if count == 1 else f'are {count} machines'}",
                    "set spec.paused to false when done",
                )
            )
    yield from few(missing)
    yield from few(others)
    if users and not missing and not others:
        yield ok("Clusters", f"{len(users)} in use")


def cluster_api_acts(machines: Iterable[CapiMachineView], now: datetime) -> Finding:
    """Whether Cluster API's manager is alive: it gives every Machine a phase."""
    views = list(machines)
    waiting = [
        view
        for view in views
        if not view.phase
        and view.metadata.created_at is not None
        and now - view.metadata.created_at > _ACTS_WITHIN
    ]
    if not waiting:
        seen = (
            f"it has taken up {len(views)} of our Machines"
            if views
            else "there is no Machine of ours to tell by"
        )
        return ok("Cluster API", seen)
    first = f"{waiting[0].metadata.namespace}/{waiting[0].metadata.name}"
    among = "" if len(waiting) == 1 else " among them"
    text = f"{counted(len(waiting), 'Machine has', 'Machines have')} had no phase for minutes: {first}{among}"
    return failed(
        "Cluster API", text, "is its manager running? kubectl get deployments -A -l cluster.x-k8s.io/provider"
    )


def contract(definition: Mapping[str, Any]) -> Finding | None:
    """The CRD of a bootstrap or infrastructure kind: Cluster API finds the version to read by a label; None when it can."""
    metadata = definition.get("metadata", {})
    if any(label.startswith(f"{CAPI_GROUP}/v1") for label in metadata.get("labels") or {}):
        return None
    text = (
        f"its CRD has no label {CAPI_GROUP}/<contract>=<versions>, without which Cluster API does not read it"
    )
    return failed(
        f"{metadata.get('name', '')}",
        text,
        "install the provider as its release manifests do, labels included",
    )


def providers(found: Mapping[ProviderKey, Known[ProviderView]], now: datetime) -> Iterator[Finding]:
    """The schedules that machines refer to: whether each gives an answer, and whether somebody is there to change it."""
    wrong, late, well = [], [], Counter[str]()
    for (namespace, reference), provider in sorted(
        found.items(), key=lambda entry: (entry[0][0], str(entry[0][1]))
    ):
        subject = f"{reference.kind} {namespace}/{reference.name}"
        verdict = verdict_of(provider, reference)
        due = overdue_at(verdict)
        if not verdict.resolved:
            wrong.append(
                failed(
                    subject, verdict.message, f"{_remedy(provider)}; its machines stay as they are meanwhile"
                )
            )
        elif due is not None and now >= due:
            text = f"should have changed at {verdict.next_transition:%Y-%m-%dT%H:%M:%SZ}, and has not"
            late.append(failed(subject, text, f"is the controller of {reference.kind} running?"))
        else:
            well[reference.kind] += 1
    yield from few(wrong)
    yield from few(late)
    for kind, count in sorted(well.items()):
        yield ok(kind, f"{count} in use {'answers' if count == 1 else 'answer'}")


def _remedy(provider: Known[ProviderView]) -> str:
    if isinstance(provider, Absent):
        return "create it, or correct spec.schedule"
    if isinstance(provider, Unknown):
        return "let the controller read it"
    return "see its conditions, and whether its controller is running"


def _named(machine: MachineView) -> str:
    return f"{machine.metadata.namespace}/{machine.metadata.name}"
