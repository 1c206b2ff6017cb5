"""Whom to believe: TLS contexts, made once for each certificate authority in use."""

import re
import ssl
from typing import Final

from fivespot.core.errors import FivespotError

_KEPT: Final = 128
_CERTIFICATE: Final = re.compile("-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\\s]+-----END CERTIFICATE-----")


class CannotTrust(FivespotError):  # noqa: N818 - what it is, is a refusal
    """The text that should be a certificate authority is none."""


class Trust:
    """TLS contexts by authority; to make one takes longer than to ask a question."""

    def __init__(self) -> None:
        self._contexts: dict[str | None, ssl.SSLContext] = {}

    def context(self, ca: str | None) -> ssl.SSLContext:
        """The context for servers whose certificates come from `ca` (PEM), or from a publicly known authority for None.

        Raises:
            CannotTrust: there is no certificate in it.
        """
        found = self._contexts.get(ca)
        if found is None:
            if len(self._contexts) >= _KEPT:
                del self._contexts[next(iter(self._contexts))]
            found = self._contexts[ca] = _made(ca)
        return found


def _made(ca: str | None) -> ssl.SSLContext:
    if ca is None:
        return ssl.create_default_context()
    # What stands around the certificates is for people, in any language.
    certificates = "\n".join(_CERTIFICATE.findall(ca))
    message = "spec.tls.caSecretRef: the value is no PEM certificate; put the authority's certificate there"
    if not certificates:
        # An empty text would stand for the publicly known ones.
        raise CannotTrust(message)
    try:
        return ssl.create_default_context(cadata=certificates)
    except (ssl.SSLError, ValueError) as error:
        raise CannotTrust(message) from error
