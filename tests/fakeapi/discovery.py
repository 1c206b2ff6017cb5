"""The documents by which a client finds out what is served where."""

from __future__ import annotations

from tests.fakeapi.kinds import POD, Kind, Kinds
from tests.fakeapi.refusals import NotServed, Object, no_such_path

_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]

VERSION: Object = {
    "major": "1",
    "minor": "37",
    "gitVersion": "v1.37.2+fake",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "none",
    "platform": "none",
}


def document(kinds: Kinds, path: str) -> Object:
    """The document at a path that names no resource.

    Raises:
        NotServed: there is none.
    """
    match path.strip("/").split("/"):
        case ["version"]:
            return VERSION
        case ["api"]:
            address = [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}]
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": address}
        case ["apis"]:
            groups = [_group(name, versions) for name, versions in kinds.groups().items()]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        case ["apis", group] if group in kinds.groups():
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, kinds.groups()[group])}
        case ["api", version]:
            return _resources(kinds, "", version)
        case ["apis", group, version]:
            return _resources(kinds, group, version)
    if path.startswith("/api/"):
        raise no_such_path()
    raise NotServed


def _group(name: str, versions: list[str]) -> Object:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _resources(kinds: Kinds, group: str, version: str) -> Object:
    found = kinds.in_version(group, version)
    if not found:
        raise (
            no_such_path() if any(kind.group == group and not kind.custom for kind in kinds) else NotServed()
        )
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": [entry for kind in found for entry in _entries(kind, version)],
    }


def _entries(kind: Kind, version: str) -> list[Object]:
    base = {"singularName": kind.singular, "namespaced": kind.namespaced, "kind": kind.kind}
    entries = [{"name": kind.plural, **base, "verbs": _VERBS}]
    if version in kind.status:
        status = {"name": f"{kind.plural}/status", **base, "singularName": ""}
        entries.append({**status, "verbs": ["get", "patch", "update"]})
    if kind is POD:
        eviction = {"singularName": "", "namespaced": True, "group": "policy", "version": "v1"}
        entries.append({"name": "pods/eviction", **eviction, "kind": "Eviction", "verbs": ["create"]})
    return entries
