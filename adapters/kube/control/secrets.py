"""The Secrets in use: each watched by its name for as long as somebody uses it, and no other."""

import base64
import binascii
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from fivespot.adapters.kube.control.streams import secret_stream
from fivespot.adapters.kube.control.watches import Stream, Watches
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.index import ReverseIndex
from fivespot.adapters.kube.resources import Object
from fivespot.adapters.telemetry.metrics import Metrics
from fivespot.core.errors import FivespotError
from fivespot.core.ports import Clock

K = TypeVar("K", bound=Hashable)


class SecretMissing(FivespotError):  # noqa: N818 - what it is, is a fact
    """The Secret, or its key, is not there or not readable text."""


class Secrets(Generic[K]):
    """What is in the Secrets that somebody uses.

    Args:
        on_news: told who uses a Secret that has changed, or of which something is known now.
    """

    def __init__(
        self, gateway: Gateway, clock: Clock, *, on_news: Callable[[Iterable[K]], None], metrics: Metrics
    ) -> None:
        self._users: ReverseIndex[K, Stream[Object]] = ReverseIndex()
        self._watches = Watches(
            gateway,
            clock,
            on_change=lambda stream, *_: on_news(self._users.of(stream)),
            on_state=lambda stream, _users: on_news(self._users.of(stream)),
            metrics=metrics,
        )

    def want(self, user: K, namespace: str, names: Iterable[str]) -> None:
        """Say which Secrets of a namespace somebody uses from now on; none, when it is gone."""
        streams = [secret_stream(namespace, name) for name in names]
        self._users.put(user, streams)
        self._watches.want(str(user), streams)

    def text(self, namespace: str, name: str, entry: str) -> str | None:
        """The value of a Secret's key, None while the Secret is being read.

        Raises:
            SecretMissing: it, or the key, is not there, or is no text.
            FivespotError: it cannot be read.
        """
        stream = secret_stream(namespace, name)
        reflector = self._watches.reflector(stream)
        secret = reflector.get(namespace, name) if reflector is not None else None
        if secret is not None:
            return text_in(secret, entry)
        if (fault := self._watches.fault(stream)) is not None:
            raise fault
        if self._watches.pending(stream):
            return None
        message = "it does not exist"
        raise SecretMissing(message)

    async def close(self) -> None:
        """Stop every stream, for good."""
        await self._watches.close()


def text_in(secret: Mapping[str, Any], entry: str) -> str:
    """The text of one key of a Secret's data.

    Raises:
        SecretMissing: the key is not there, or its value is not base64 of UTF-8 text.
    """
    data = secret.get("data")
    encoded = data.get(entry) if isinstance(data, Mapping) else None
    if not isinstance(encoded, str):
        message = f"it has no key {entry!r}"
        raise SecretMissing(message)
    try:
        return base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        message = f"the value of key {entry!r} is not text"
        raise SecretMissing(message) from error
