"""A kubeconfig with everything inline, so that its text alone is enough, in a file or in a Secret."""

from __future__ import annotations

import json
from base64 import b64encode

from tests.controlplane.certs import Credential

_TEMPLATE = """\
apiVersion: v1
kind: Config
clusters:
- name: test
  cluster:
    server: {server}
    certificate-authority-data: {authority}
users:
- name: {user}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: test
  context:
    cluster: test
    user: {user}
current-context: test
"""


def render(*, server: str, authority: bytes, user: str, credential: Credential) -> str:
    """The text, YAML, for one cluster at the URL `server` and one user."""
    return _TEMPLATE.format(
        server=server,
        authority=b64encode(authority).decode(),
        # User names have colons; a JSON string is a YAML string.
        user=json.dumps(user),
        certificate=b64encode(credential.certificate).decode(),
        key=b64encode(credential.key).decode(),
    )
