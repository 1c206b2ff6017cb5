"""Where the API server is and who we are: inside a pod, pure but for reading what the kubelet put there.

The configuration inside a cluster is handed to the client library as a kubeconfig of its own: the library would let a
stray kubeconfig win over the ServiceAccount, and would not read the namespace.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import attrs

from fivespot.adapters.kube.resources import Object

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where the kubelet mounts a pod's token, authority and namespace."""


@attrs.frozen
class InCluster:
    """A pod's own access to its cluster.

    Attributes:
        kubeconfig: server and authority, without any credential.
        token_file: replaced by the kubelet about once an hour.
        namespace: the pod's own.
    """

    kubeconfig: Object
    token_file: Path
    namespace: str


def in_cluster(
    folder: Path = SERVICE_ACCOUNT, environment: Mapping[str, str] = os.environ
) -> InCluster | None:
    """The pod's own access, or None outside a pod, or in one without a ServiceAccount token."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    token, authority = folder / "token", folder / "ca.crt"
    if not host or not port or not token.is_file():
        return None
    host = f"[{host}]" if ":" in host else host
    cluster = {"server": f"https://{host}:{port}"}
    if authority.is_file():
        cluster["certificate-authority"] = str(authority)
    try:
        namespace = (folder / "namespace").read_text().strip()
    except OSError:
        namespace = ""
    return InCluster(one_cluster(cluster), token, namespace or "default")


def one_cluster(cluster: Mapping[str, str]) -> Object:
    """A kubeconfig with nothing but a cluster; whoever uses it brings the credential."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "here", "cluster": dict(cluster)}],
        "users": [{"name": "here", "user": {}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "here"}}],
        "current-context": "here",
    }


def impersonation(user: Mapping[str, Any]) -> list[tuple[bytes, bytes]]:
    """Who an operator's kubeconfig says to act as (`kubectl --as`), as headers in UTF-8.

    The source of the names: kubernetes.io/docs/reference/access-authn-authz/authentication, "User impersonation".
    """
    found = [("Impersonate-User", user.get("as")), ("Impersonate-Uid", user.get("as-uid"))]
    found += [("Impersonate-Group", group) for group in user.get("as-groups") or ()]
    for key, values in (user.get("as-user-extra") or {}).items():
        found += [(f"Impersonate-Extra-{quote(str(key), safe='')}", value) for value in values]
    return [(name.encode(), str(value).encode()) for name, value in found if value]


def stamps(paths: Iterable[Path]) -> tuple[tuple[int, int, int] | None, ...]:
    """What tells one state of some files from another: inode, when it was last changed in any way (ns), size."""
    return tuple(_stamp(path) for path in paths)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_ctime_ns, found.st_size
