"""A Lease as the election sees it, and as the API server wants it (coordination.k8s.io/v1)."""

from datetime import datetime
from typing import Any

import attrs

from fivespot.adapters.kube.resources import Object
from fivespot.adapters.kube.watching import version_of
from fivespot.core.instant import parse_instant, require_aware


@attrs.frozen(kw_only=True)
class Record:
    """What a Lease says.

    The two times are by the holder's wall clock and are for people: no decision reads them.

    Attributes:
        holder: identity of who holds it; empty when it was released.
        version: resourceVersion; empty for a Lease that is not there yet.
        duration: seconds that the holder promises to be gone after, without a renewal.
        transitions: how often the holder has changed.
        acquired: when the holder took it.
        renewed: when the holder renewed it last.
        body: the object as it was read, whose other fields go back as they came.
    """

    holder: str = ""
    version: str = ""
    duration: int = 0
    transitions: int = 0
    acquired: datetime | None = None
    renewed: datetime | None = None
    body: Object = attrs.field(factory=dict, eq=False, repr=False)


def read_lease(body: Object) -> Record:
    """The record in a Lease; what is missing or no such value counts as empty."""
    found = body.get("spec")
    spec: dict[str, Any] = found if isinstance(found, dict) else {}
    holder = spec.get("holderIdentity")
    return Record(
        holder=holder if isinstance(holder, str) else "",
        version=version_of(body),
        duration=_whole(spec.get("leaseDurationSeconds")),
        transitions=_whole(spec.get("leaseTransitions")),
        acquired=_instant(spec.get("acquireTime")),
        renewed=_instant(spec.get("renewTime")),
        body=body,
    )


def lease_body(record: Record, namespace: str, name: str) -> Object:
    """The whole Lease, to be created or to replace the version in the record."""
    metadata = {**record.body.get("metadata", {}), "namespace": namespace, "name": name}
    if record.version:
        metadata["resourceVersion"] = record.version
    said: dict[str, Any] = {
        "holderIdentity": record.holder or None,
        "leaseDurationSeconds": record.duration or None,
        "acquireTime": micro_time(record.acquired) if record.acquired is not None else None,
        "renewTime": micro_time(record.renewed) if record.renewed is not None else None,
        "leaseTransitions": record.transitions,
    }
    spec = {**(record.body.get("spec") or {}), **said}
    return {**record.body, "metadata": metadata, "spec": {k: v for k, v in spec.items() if v is not None}}


def micro_time(at: datetime) -> str:
    """Kubernetes' MicroTime, which insists on six digits after the second."""
    return f"{require_aware(at):%Y-%m-%dT%H:%M:%S.%f}Z"


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _instant(value: object) -> datetime | None:
    try:
        return parse_instant(value) if isinstance(value, str) else None
    except ValueError:
        return None
