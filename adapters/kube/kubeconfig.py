"""What a kubeconfig from a Secret may say: inline data, https, and nothing that makes us run or read anything.

Pure: text in, a kubeconfig with one context, one cluster and one user out, or `KubeconfigRejected`. A tenant of the
management cluster writes these Secrets, so everything that is not known to be harmless is refused. Values are never
repeated in a message: they are credentials.

Not here: the kubeconfig of the operator's own machine, which may say anything that kubectl understands.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import yaml

from fivespot.adapters.kube.resources import Object
from fivespot.adapters.network.addresses import LOCAL, is_local
from fivespot.adapters.network.words import is_one_word
from fivespot.core.errors import FivespotError

MAX_BYTES = 256 * 1024
"""A kubeconfig has a few KB, and a Secret's 1 MiB of YAML would keep a core busy for seconds."""

_INLINE = "put the value itself into the kubeconfig"
_CLUSTER_REFUSED = {
    "certificate-authority": f"a path means nothing here; {_INLINE}, as certificate-authority-data",
    "insecure-skip-tls-verify": "name the server's authority in certificate-authority-data instead",
    "proxy-url": "the API server has to be reachable directly",
}
_USER_REFUSED = {
    "exec": "a program is never run for a Secret; use a token or a client certificate",
    "auth-provider": "use a token or a client certificate",
    "tokenFile": f"a path means nothing here; {_INLINE}, as token",
    "client-certificate": f"a path means nothing here; {_INLINE}, as client-certificate-data",
    "client-key": f"a path means nothing here; {_INLINE}, as client-key-data",
    "username": "Kubernetes has no passwords since 1.19; use a token or a client certificate",
    "password": "Kubernetes has no passwords since 1.19; use a token or a client certificate",
}
_CLUSTER_FIELDS = {
    "server",
    "certificate-authority-data",
    "tls-server-name",
    "disable-compression",
    "extensions",
}
_USER_FIELDS = {"token", "client-certificate-data", "client-key-data", "extensions"}


class KubeconfigRejected(FivespotError):  # noqa: N818 - the design's public name
    """A kubeconfig from a Secret is not used.

    Attributes:
        field: path of the offending field, such as `users[0].user.exec`; empty for the whole.
        remedy: what to write instead, as one sentence without a full stop.
    """

    def __init__(self, field: str, remedy: str) -> None:
        super().__init__(field, remedy)
        self.field = field
        self.remedy = remedy

    def __str__(self) -> str:
        return f"kubeconfig {self.field or '(the whole text)'} is refused: {self.remedy}"


def inline_kubeconfig(text: str, *, allow_local: bool) -> Object:
    """The one cluster and user that `text` means, as a kubeconfig of the fields that were checked.

    A host name is judged as it is written; where DNS leads is not known here.

    Args:
        text: YAML or JSON.
        allow_local: whether the server may be this machine, a link-local neighbour or a cloud's metadata service.

    Raises:
        KubeconfigRejected: naming the field.
    """
    config = _parse(text)
    where, context = _current(config)
    cluster_at, cluster = _named(config, "clusters", "cluster", context.get("cluster"), f"{where}.cluster")
    user_at, user = _named(config, "users", "user", context.get("user"), f"{where}.user")
    _only(cluster_at, cluster, _CLUSTER_FIELDS, _CLUSTER_REFUSED)
    _only(user_at, user, _USER_FIELDS, _USER_REFUSED)
    _check_server(f"{cluster_at}.server", cluster.get("server"), allow_local=allow_local)
    if name := cluster.get("tls-server-name"):
        _text(f"{cluster_at}.tls-server-name", name)
    kept_cluster = _kept(cluster, "server", "tls-server-name")
    kept_cluster |= _pem(cluster_at, cluster, "certificate-authority-data", "CERTIFICATE")
    kept_user = _credentials(user_at, user)
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "child", "cluster": kept_cluster}],
        "users": [{"name": "child", "user": kept_user}],
        "contexts": [{"name": "child", "context": {"cluster": "child", "user": "child"}}],
        "current-context": "child",
    }


def _parse(text: str) -> Mapping[str, Any]:
    if len(text.encode(errors="surrogatepass")) > MAX_BYTES:
        raise KubeconfigRejected(
            "", f"it is larger than {MAX_BYTES} bytes; keep the one cluster and user that count"
        )
    try:
        config = yaml.safe_load(text)
    # PyYAML's constructors let ValueError and others through, for impossible dates and the like.
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark is not None else ""
        raise KubeconfigRejected(
            "", f"it is no YAML{where}; write a kubeconfig, as kubectl config view --raw"
        ) from error
    if not isinstance(config, Mapping):
        raise KubeconfigRejected("", "it is no mapping; write a kubeconfig, as kubectl config view --raw")
    return config


def _current(config: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Where the context in use stands, and what it says; a single context needs no `current-context`."""
    name = config.get("current-context")
    if not name:
        contexts = config.get("contexts")
        if not isinstance(contexts, list) or len(contexts) != 1 or not isinstance(contexts[0], Mapping):
            raise KubeconfigRejected("current-context", "name the context to use")
        name = contexts[0].get("name")
    return _named(config, "contexts", "context", name, "current-context")


def _named(
    config: Mapping[str, Any], plural: str, singular: str, name: object, wanted_by: str
) -> tuple[str, Mapping[str, Any]]:
    entries = config.get(plural)
    if not isinstance(entries, list):
        raise KubeconfigRejected(plural, f"write a list of named {plural}")
    for number, entry in enumerate(entries):
        if isinstance(entry, Mapping) and isinstance(name, str) and name and entry.get("name") == name:
            where = f"{plural}[{number}].{singular}"
            if not isinstance(value := entry.get(singular), Mapping):
                raise KubeconfigRejected(where, "write a mapping")
            return where, value
    raise KubeconfigRejected(wanted_by, f"name one of the entries of {plural}")


def _only(where: str, value: Mapping[str, Any], known: set[str], refused: Mapping[str, str]) -> None:
    for field, content in value.items():
        # What kubectl writes for "not set" is harmless.
        if field in known or content in (None, "", False) or content in ({}, []):
            continue
        remedy = refused.get(str(field), "it is not one of the fields that are used here; leave it out")
        raise KubeconfigRejected(f"{where}.{str(field)[:60]}", remedy)


def _kept(value: Mapping[str, Any], *fields: str) -> Object:
    return {field: value[field] for field in fields if value.get(field)}


def _text(where: str, value: object) -> str:
    if not isinstance(value, str) or not is_one_word(value):
        raise KubeconfigRejected(where, "write one word of printable ASCII")
    return value


def _credentials(where: str, user: Mapping[str, Any]) -> Object:
    kept = _pem(where, user, "client-certificate-data", "CERTIFICATE")
    kept |= _pem(where, user, "client-key-data", "PRIVATE KEY")
    if len(kept) == 1:
        missing = "client-key-data" if "client-certificate-data" in kept else "client-certificate-data"
        raise KubeconfigRejected(
            f"{where}.{missing}", "a client certificate needs both its certificate and its key"
        )
    if token := user.get("token"):
        # A newline at the end is what `kubectl create token | base64` leaves.
        kept["token"] = _text(f"{where}.token", token.strip() if isinstance(token, str) else token)
    if not kept:
        raise KubeconfigRejected(where, "give a token, or client-certificate-data and client-key-data")
    return kept


def _pem(where: str, value: Mapping[str, Any], field: str, label: str) -> Object:
    if not (content := value.get(field)):
        return {}
    remedy = f"write base64 of a PEM {label}"
    if not isinstance(content, str):
        raise KubeconfigRejected(f"{where}.{field}", remedy)
    try:
        pem = base64.b64decode("".join(content.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise KubeconfigRejected(f"{where}.{field}", remedy) from error
    if not pem.lstrip().startswith(b"-----BEGIN ") or label.encode() not in pem:
        raise KubeconfigRejected(f"{where}.{field}", remedy)
    if b"ENCRYPTED" in pem:
        # OpenSSL would ask for the password, on the terminal.
        raise KubeconfigRejected(
            f"{where}.{field}", "nobody is there to type a password; give the key unencrypted"
        )
    return {field: base64.b64encode(pem).decode()}


def _check_server(where: str, server: object, *, allow_local: bool) -> None:
    remedy = "write an address such as https://api.example.com:6443"
    try:
        parts = urlsplit(_text(where, server))
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise KubeconfigRejected(where, remedy) from error
    if parts.scheme != "https":
        raise KubeconfigRejected(where, f"only https is used; {remedy}")
    if not host or parts.username is not None or parts.query or parts.fragment:
        raise KubeconfigRejected(where, remedy)
    if not allow_local and is_local(host):
        raise KubeconfigRejected(where, f"it is {LOCAL}; --allow-local-child permits that")
