"""Whom to believe: TLS contexts, made once for each certificate authority in use."""

import ssl

from fivespot.core.errors import FivespotError

_KEPT = 128


class CannotTrust(FivespotError):  # noqa: N818 - what it is, is a refusal
    """The text that should be a certificate authority is none."""


class Trust:
    """TLS contexts by authority; to make one takes longer than to ask a question."""

    def __init__(self) -> None:
        self._contexts: dict[str | None, ssl.SSLContext] = {}

    def context(self, ca: str | None) -> ssl.SSLContext:
        """The context for servers whose certificates come from `ca` (PEM), or from a publicly known authority for None.

        Raises:
            CannotTrust: it is no certificate.
        """
        found = self._contexts.get(ca)
        if found is None:
            if len(self._contexts) >= _KEPT:
                self._contexts.clear()
            found = self._contexts[ca] = _made(ca)
        return found


def _made(ca: str | None) -> ssl.SSLContext:
    try:
        # With None it takes the machine's own authorities.
        return ssl.create_default_context(cadata=ca)
    except (ssl.SSLError, ValueError) as error:
        message = (
            "spec.tls.caSecretRef: the value is no PEM certificate; put the authority's certificate there"
        )
        raise CannotTrust(message) from error
