"""What a kubeconfig out of a Secret may say."""

import base64
import contextlib
import copy
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fivespot.adapters.kube.kubeconfig import MAX_BYTES, KubeconfigRejected, inline_kubeconfig
from fivespot.adapters.network.addresses import is_local


def pem(label: str) -> str:
    return base64.b64encode(f"-----BEGIN {label}-----\nAAAA\n-----END {label}-----\n".encode()).decode()


GOOD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [
        {
            "name": "c",
            "cluster": {
                "server": "https://api.example.com:6443",
                "certificate-authority-data": pem("CERTIFICATE"),
            },
        }
    ],
    "users": [{"name": "u", "user": {"token": "secret-token"}}],
    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "n"}}],
    "current-context": "x",
}
CERTIFICATE = {
    "client-certificate-data": pem("CERTIFICATE"),
    "client-key-data": pem("EC PRIVATE KEY"),
}


def variant(*, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, **top: Any) -> str:
    config = copy.deepcopy(GOOD)
    config["clusters"][0]["cluster"] |= cluster or {}
    if user is not None:
        config["users"][0]["user"] = user
    config |= top
    return yaml.safe_dump(config)


def rejected(text: str, *, allow_local: bool = False) -> KubeconfigRejected:
    with pytest.raises(KubeconfigRejected) as caught:
        inline_kubeconfig(text, allow_local=allow_local)
    return caught.value


def test_a_token_with_an_authority_is_accepted() -> None:
    config = inline_kubeconfig(variant(), allow_local=False)
    assert config["clusters"][0]["cluster"] == GOOD["clusters"][0]["cluster"]
    assert config["users"][0]["user"] == {"token": "secret-token"}


def test_a_client_certificate_is_accepted() -> None:
    config = inline_kubeconfig(variant(user=CERTIFICATE), allow_local=False)
    assert config["users"][0]["user"] == CERTIFICATE


def test_only_the_context_in_use_is_passed_on() -> None:
    config = copy.deepcopy(GOOD)
    config["users"].append({"name": "other", "user": {"exec": {"command": "/bin/false"}}})
    config["contexts"].append({"name": "y", "context": {"cluster": "c", "user": "other"}})
    passed = inline_kubeconfig(yaml.safe_dump(config), allow_local=False)
    assert len(passed["users"]) == len(passed["contexts"]) == 1
    assert rejected(yaml.safe_dump(config | {"current-context": "y"})).field == "users[1].user.exec"


def test_a_single_context_needs_no_current_context() -> None:
    inline_kubeconfig(variant(**{"current-context": ""}), allow_local=False)


def test_a_newline_after_the_token_is_cut_off() -> None:
    config = inline_kubeconfig(variant(user={"token": "t\n"}), allow_local=False)
    assert config["users"][0]["user"]["token"] == "t"


def test_empty_values_of_refused_fields_mean_not_set() -> None:
    text = variant(cluster={"insecure-skip-tls-verify": False, "proxy-url": ""})
    assert "proxy-url" not in inline_kubeconfig(text, allow_local=False)["clusters"][0]["cluster"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("certificate-authority", "/etc/ssl/ca.pem"),
        ("insecure-skip-tls-verify", True),
        ("insecure-skip-tls-verify", "true"),
        ("proxy-url", "http://proxy:3128"),
        ("certificate-authority-data", "not base64!"),
        ("certificate-authority-data", base64.b64encode(b"no PEM").decode()),
        ("certificate-authority-data", 7),
        ("tls-server-name", "two words"),
        ("something-new", "x"),
    ],
)
def test_a_field_of_the_cluster_is_refused_by_name(field: str, value: object) -> None:
    error = rejected(variant(cluster={field: value}))
    assert error.field == f"clusters[0].cluster.{field}"
    assert error.remedy


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("exec", {"command": "/bin/sh", "apiVersion": "client.authentication.k8s.io/v1"}),
        ("auth-provider", {"name": "oidc"}),
        ("tokenFile", "/etc/shadow"),
        ("client-certificate", "/etc/cert"),
        ("client-key", "/etc/key"),
        ("username", "root"),
        ("password", "hunter2"),
        ("as", "system:admin"),
        ("token", "line\nbreak"),
        ("token", ["a"]),
        ("client-key-data", pem("CERTIFICATE")),
        ("client-key-data", pem("ENCRYPTED PRIVATE KEY")),
    ],
)
def test_a_field_of_the_user_is_refused_by_name_and_its_value_is_not_repeated(
    field: str, value: object
) -> None:
    error = rejected(variant(user={**CERTIFICATE, "token": "t", field: value}))
    assert error.field == f"users[0].user.{field}"
    assert str(value) not in str(error)


@pytest.mark.parametrize("missing", ["client-certificate-data", "client-key-data"])
def test_half_a_client_certificate_is_refused(missing: str) -> None:
    user = {field: value for field, value in CERTIFICATE.items() if field != missing}
    assert rejected(variant(user=user)).field == f"users[0].user.{missing}"


def test_a_user_without_a_credential_is_refused() -> None:
    assert rejected(variant(user={})).field == "users[0].user"


LOCAL = [
    "https://localhost:6443",
    "https://LOCALHOST.:6443",
    "https://api.localhost",
    "https://127.0.0.1:6443",
    "https://127.9.9.9",
    "https://127.1",
    "https://2130706433",
    "https://0x7f.1",
    "https://0.0.0.0",
    "https://169.254.169.254",
    "https://[::1]:6443",
    "https://[::]",
    "https://[fe80::1]",
    "https://[fe80::1%25eth0]",
    "https://[::ffff:127.0.0.1]",
]


@pytest.mark.parametrize("server", LOCAL)
def test_a_local_server_needs_permission(server: str) -> None:
    error = rejected(variant(cluster={"server": server}))
    assert error.field == "clusters[0].cluster.server"
    assert "--allow-local-child" in error.remedy
    inline_kubeconfig(variant(cluster={"server": server}), allow_local=True)


@pytest.mark.parametrize(
    "host", ["api.example.com", "10.0.0.1", "192.168.1.1", "2001:db8::1", "localhost.example.com"]
)
def test_other_hosts_are_not_local(host: str) -> None:
    assert not is_local(host)


@pytest.mark.parametrize(
    "server",
    [
        "http://api.example.com",
        "ftp://api.example.com",
        "api.example.com:6443",
        "https://",
        "https://user:password@api.example.com",
        "https://api.example.com:notaport",
        "https://api.example.com?x=1",
        "https://[::1",
        "https://a b",
        7,
        None,
    ],
)
def test_only_a_plain_https_address_is_a_server(server: object) -> None:
    assert (
        rejected(variant(cluster={"server": server}), allow_local=True).field == "clusters[0].cluster.server"
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "just text",
        "{",
        "a: b: c",
        "\t- x",
        "\x00",
        "2026-13-45",
        "!!python/object:os.system {}",
        "[" * 5000,
    ],
)
def test_garbage_is_refused_as_a_whole(text: str) -> None:
    assert rejected(text).field == ""


@pytest.mark.parametrize(
    ("top", "field"),
    [
        ({"current-context": "nope"}, "current-context"),
        ({"current-context": 3}, "current-context"),
        ({"contexts": None}, "contexts"),
        ({"contexts": [], "current-context": None}, "current-context"),
        ({"contexts": [{"name": "x"}]}, "contexts[0].context"),
        (
            {"contexts": [{"name": "x", "context": {"cluster": "no", "user": "u"}}]},
            "contexts[0].context.cluster",
        ),
        ({"contexts": [{"name": "x", "context": {"cluster": "c"}}]}, "contexts[0].context.user"),
        ({"clusters": "c"}, "clusters"),
        ({"users": [{"name": "u", "user": "root"}]}, "users[0].user"),
    ],
)
def test_a_broken_structure_names_the_place(top: dict[str, Any], field: str) -> None:
    assert rejected(variant(**top)).field == field


def test_a_huge_text_is_refused_unread() -> None:
    assert rejected("#" * (MAX_BYTES + 1)).field == ""


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
FIELDS = (
    "server",
    "certificate-authority-data",
    "token",
    "client-key-data",
    "exec",
    "name",
    "cluster",
    "user",
)


@given(st.data())
def test_any_change_to_a_good_kubeconfig_is_accepted_or_refused_by_our_error(data: st.DataObject) -> None:
    config: Any = copy.deepcopy(GOOD)
    place = config
    while isinstance(place, dict | list) and place:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if data.draw(st.booleans()) or not isinstance(place[key], dict | list):
            place[key] = data.draw(VALUES)
            break
        place = place[key]
    if isinstance(place, dict):
        place[data.draw(st.sampled_from(FIELDS))] = data.draw(VALUES)
    with contextlib.suppress(KubeconfigRejected):
        inline_kubeconfig(yaml.safe_dump(config), allow_local=False)


@given(st.text())
def test_any_text_is_accepted_or_refused_by_our_error(text: str) -> None:
    with pytest.raises(KubeconfigRejected):
        inline_kubeconfig(text, allow_local=False)
