"""What an object has to be like, and what the server adds to it, kind by kind: no more than the product relies on."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from tests.fakeapi.kinds import CRD, NAMESPACE, NODE, POD, Kind
from tests.fakeapi.refusals import Cause, NotUnderstood, Object, Refused, bad_request, invalid

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_QUALIFIED = re.compile(rf"({_SUBDOMAIN.pattern}/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)")
_DATA_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")

_NO_NODE = {
    "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
    "nodeInfo": dict.fromkeys(
        (
            "machineID",
            "systemUUID",
            "bootID",
            "kernelVersion",
            "osImage",
            "containerRuntimeVersion",
            "kubeletVersion",
            "kubeProxyVersion",
            "operatingSystem",
            "architecture",
        ),
        "",
    ),
}

_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)


def wrong(field: str, value: Any, rule: str) -> Cause:
    """An Invalid cause."""
    shown = f'"{value}"' if isinstance(value, str) else value
    return "FieldValueInvalid", field, f"Invalid value: {shown}: {rule}"


def missing(field: str, rule: str = "") -> Cause:
    """A Required cause."""
    return "FieldValueRequired", field, f"Required value{f': {rule}' if rule else ''}"


def banned(field: str, rule: str) -> Cause:
    """A Forbidden cause."""
    return "FieldValueForbidden", field, f"Forbidden: {rule}"


def decodes(kind: Kind, item: Object) -> None:
    """Refuse what a typed decoder would not take."""
    if not kind.custom and (unknown := set(item) - {"apiVersion", "kind", "metadata"} - kind.fields):
        raise NotUnderstood(f"{unknown} at the top of a {kind.kind}")
    for part in ("metadata", *(() if kind.custom else kind.fields & {"spec", "status", "stringData"})):
        if not isinstance(item.get(part) or {}, dict):
            raise _undecodable(kind, f"json: cannot unmarshal into Go struct field {kind.kind}.{part}")
    metadata = item.get("metadata") or {}
    for part in ("labels", "annotations"):
        _only_text(kind, f"ObjectMeta.metadata.{part}", metadata.get(part))
    if kind.label in ("configmaps", "secrets"):
        if isinstance(item.get("data"), list):
            raise _undecodable(kind, f"json: cannot unmarshal array into Go struct field {kind.kind}.data")
        _only_text(kind, f"{kind.kind}.data", item.get("data"))
    spec, series = item.get("spec") or {}, item.get("series") or {}
    instants = {
        "leases": (spec.get("acquireTime"), spec.get("renewTime")),
        "events": (item.get("eventTime"), series.get("lastObservedTime")),
    }
    for text in instants.get(kind.plural, ()):
        if text is not None and not _INSTANT.fullmatch(str(text)):
            raise _undecodable(kind, f'parsing time "{text}" as "2006-01-02T15:04:05.000000Z07:00"')
    if kind.label == "secrets":
        try:
            for value in (item.get("data") or {}).values():
                base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError) as error:
            raise bad_request(f"Secret in version cannot be handled: illegal base64 data: {error}") from error


def _only_text(kind: Kind, field: str, values: Any) -> None:
    for value in (values or {}).values():
        if value is not None and not isinstance(value, str):
            found = {bool: "bool", int: "number", float: "number"}.get(type(value), "object")
            raise _undecodable(
                kind, f"json: cannot unmarshal {found} into Go struct field {field} of type string"
            )


def _undecodable(kind: Kind, why: str) -> Refused:
    return bad_request(f'{kind.kind} in version "v1" cannot be handled as a {kind.kind}: {why}')


def completed(kind: Kind, item: Object) -> Object:
    """A new object with what the server adds to it."""
    metadata, spec = item["metadata"], item.get("spec") or {}
    if kind is NAMESPACE:
        labels = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
        metadata = {**metadata, "labels": labels}
        return {
            **item,
            "metadata": metadata,
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        }
    if kind is NODE:
        # Admission's, so that nothing is scheduled before a controller knows the node's condition.
        taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
        spec = {**spec, "taints": [*(spec.get("taints") or []), taint]}
        return {**item, "spec": spec, "status": {**_NO_NODE, **(item.get("status") or {})}}
    if kind is POD:
        added = {"restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst"}
        return {**item, "spec": {**added, **spec}, "status": {"phase": "Pending", "qosClass": "BestEffort"}}
    if kind.plural == "poddisruptionbudgets":
        counts = dict.fromkeys(("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"), 0)
        return {**item, "status": counts}
    if kind is CRD:
        return {**item, "status": {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}}}
    if kind.label == "secrets":
        plain = {
            name: base64.b64encode(v.encode()).decode() for name, v in item.get("stringData", {}).items()
        }
        data = {**(item.get("data") or {}), **plain}
        rest = {key: value for key, value in item.items() if key not in ("stringData", "data")}
        return {"type": "Opaque", **rest, **({"data": data} if data else {})}
    return item


def check(kind: Kind, item: Object) -> None:
    """Refuse an object that is wrong.

    Raises:
        Refused: with every cause.
    """
    metadata = item["metadata"]
    causes: list[Cause] = []
    if item["kind"] != kind.kind:
        causes.append(wrong("kind", item["kind"], f"must be {kind.kind}"))
    if not (name := metadata.get("name")):
        causes.append(missing("metadata.name", "name or generateName is required"))
    elif kind is NAMESPACE and not _LABEL.fullmatch(name):
        causes.append(wrong("metadata.name", name, _LABEL_RULE))
    elif not _SUBDOMAIN.fullmatch(name) or len(name) > 253:
        causes.append(wrong("metadata.name", name, _SUBDOMAIN_RULE))
    labels = metadata.get("labels") or {}
    causes += [wrong("metadata.labels", v, _VALUE_RULE) for v in labels.values() if not _VALUE.fullmatch(v)]
    causes += _particular(kind, item)
    if causes:
        # Events are validated as the core group's.
        raise invalid("" if kind.plural == "events" else kind.group, item["kind"], name or "", *causes)


def check_event_change(kind: Kind, old: Object, new: Object) -> None:
    """Of an event nothing changes but its series."""
    fixed = kind.fields - {"series"}
    causes = [
        wrong(field, new.get(field), "field is immutable")
        for field in sorted(fixed)
        if old.get(field) != new.get(field)
    ]
    if causes:
        raise invalid("", kind.kind, new["metadata"]["name"], *causes)


def _particular(kind: Kind, item: Object) -> list[Cause]:
    spec = item.get("spec") or {}
    if kind.label in ("configmaps", "secrets"):
        return [
            wrong(f"data[{key}]", key, _KEY_RULE)
            for key in item.get("data") or {}
            if not _DATA_KEY.fullmatch(key)
        ]
    if kind is POD and not spec.get("containers"):
        return [missing("spec.containers")]
    if kind is CRD:
        wanted = f"{spec['names']['plural']}.{spec['group']}"
        if item["metadata"].get("name") != wanted:
            return [
                wrong(
                    "metadata.name", item["metadata"].get("name"), 'must be spec.names.plural+"."+spec.group'
                )
            ]
    if kind.plural == "leases":
        return _lease(spec)
    if kind.plural == "events":
        return _event(item)
    return []


def _lease(spec: Object) -> list[Cause]:
    causes = []
    if (seconds := spec.get("leaseDurationSeconds", 1)) <= 0:
        causes.append(wrong("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    if (count := spec.get("leaseTransitions", 0)) < 0:
        causes.append(wrong("spec.leaseTransitions", count, "must be greater than or equal to 0"))
    return causes


def _event(item: Object) -> list[Cause]:
    needed = ("eventTime", "reportingController", "reportingInstance", "action", "reason")
    causes = [missing(field) for field in needed if not item.get(field)]
    if not _QUALIFIED.fullmatch(item.get("reportingController") or ""):
        causes.append(
            wrong("reportingController", item.get("reportingController") or "", "name part must consist of")
        )
    if (kind := item.get("type") or "") not in ("Normal", "Warning"):
        causes.append(wrong("type", "", f"has invalid value: {kind}"))
    if len(item.get("note") or "") > 1024:
        causes.append(wrong("message", "", "can have at most 1024 characters"))
    if not (item.get("regarding") or {}).get("namespace") and item["metadata"].get("namespace") != "default":
        causes.append(wrong("involvedObject.namespace", "", "does not match event.namespace"))
    if (series := item.get("series")) is not None:
        if series.get("count", 0) < 2:
            causes.append(wrong("series.count", "", "should be at least 2"))
        if not series.get("lastObservedTime"):
            causes.append(missing("series.lastObservedTime"))
    return causes
