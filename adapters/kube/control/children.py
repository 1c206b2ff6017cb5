"""Child clusters: where Nodes and Pods live. One client and one Node stream per kubeconfig, for as long as it is used.

There is no fall-back: a Secret that is missing or refused means that the child cannot be seen, never that another
cluster is asked instead.
"""

import asyncio
import base64
import binascii
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from fivespot.adapters.kube.control.watches import Stream, Watches
from fivespot.adapters.kube.errors import ApiError, Forbidden, NotFound, Unauthorized
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.kubeconfig import KubeconfigRejected
from fivespot.adapters.kube.reflector import Reflector
from fivespot.adapters.kube.resources import SECRETS, Object
from fivespot.core.api import reasons
from fivespot.core.decision.knowledge import Unknown
from fivespot.core.decision.observation import MachineView
from fivespot.core.errors import FivespotError
from fivespot.core.names import KUBECONFIG_SECRET_KEY, KUBECONFIG_SECRET_SUFFIX
from fivespot.core.ports import Clock

NODES_STREAM: Final = Stream(group="", kind="Node", version="v1")
_LOG: Final = logging.getLogger(__name__)
_AGAIN: Final = 10.0
_SILENT: Final = 15.0
"""Seconds without a word from a child cluster whose stream fails, after which it cannot be seen."""
_LISTEN: Final = 5.0
"""Seconds between looks at whether a child is silent; nothing is asked of it."""


@attrs.frozen(kw_only=True)
class ChildKey:
    """Where a child cluster's kubeconfig is."""

    namespace: str
    secret: str
    entry: str


def child_key(machine: MachineView) -> ChildKey:
    """The Secret that a machine names, else Cluster API's `<clusterName>-kubeconfig`."""
    named = machine.intent.kubeconfig_secret_ref
    namespace = machine.metadata.namespace
    if named is not None:
        return ChildKey(namespace=namespace, secret=named.name, entry=named.key)
    secret = f"{machine.intent.cluster_name}{KUBECONFIG_SECRET_SUFFIX}"
    return ChildKey(namespace=namespace, secret=secret, entry=KUBECONFIG_SECRET_KEY)


class KubeconfigMissing(FivespotError):  # noqa: N818 - the condition's reason
    """The Secret, or its key, is not there or not readable text."""


class Child:
    """A child cluster that answers: its client and its streams."""

    def __init__(self, gateway: Gateway, watches: Watches) -> None:
        self.gateway = gateway
        self.watches = watches

    @property
    def nodes(self) -> Reflector | None:
        """The Nodes, None until they are being read."""
        return self.watches.reflector(NODES_STREAM)

    @property
    def silence(self) -> ApiError | None:
        """Why nothing has been heard for so long that what is known of it is not to be relied on; None when all is well."""
        nodes = self.nodes
        return nodes.failing if nodes is not None and nodes.age > _SILENT else None

    async def close(self) -> None:
        """Stop the streams and close the client."""
        await self.watches.close()
        await self.gateway.close()


@attrs.define(kw_only=True, eq=False)
class _Entry:
    users: set[str] = attrs.field(factory=set)
    task: "asyncio.Task[None] | None" = None
    child: Child | None = None
    told: bool = False
    why: Unknown = Unknown(reasons.CHILD_CLUSTER_UNREACHABLE, "it is being connected")


class Children:
    """The child clusters in use, by where their kubeconfig is."""

    def __init__(
        self,
        gateway: Gateway,
        clock: Clock,
        *,
        allow_local: bool,
        on_change: Callable[[ChildKey, Stream, Object | None, Object | None], None],
        on_state: Callable[[ChildKey, frozenset[str]], None],
    ) -> None:
        self._gateway = gateway
        self._clock = clock
        self._allow_local = allow_local
        self._on_change = on_change
        self._on_state = on_state
        self._entries: dict[ChildKey, _Entry] = {}
        self._by_user: dict[str, ChildKey] = {}
        self._stopping: set[asyncio.Task[None]] = set()

    def want(self, user: str, key: ChildKey | None) -> None:
        """Say which child a machine needs; None releases it."""
        before = self._by_user.get(user)
        if before == key:
            return
        if before is not None:
            self._leave(user, before)
        if key is None:
            self._by_user.pop(user, None)
            return
        self._by_user[user] = key
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry()
            entry.task = asyncio.get_running_loop().create_task(
                self._keep(key, entry), name=f"child {key.namespace}/{key.secret}"
            )
        entry.users.add(user)

    def get(self, key: ChildKey) -> Child | Unknown:
        """The child, or why it cannot be seen."""
        entry = self._entries.get(key)
        if entry is None:
            return Unknown(reasons.CHILD_CLUSTER_UNREACHABLE, "it is not connected")
        return entry.child if entry.child is not None else entry.why

    def pending(self, key: ChildKey) -> bool:
        """Whether the first answer about a child is still under way."""
        entry = self._entries.get(key)
        if entry is None or entry.told:
            return False
        return entry.child is None or entry.child.watches.pending(NODES_STREAM)

    async def close(self) -> None:
        """Leave every child cluster."""
        entries = list(self._entries.values())
        self._entries.clear()
        self._by_user.clear()
        stopping = (self._stop(entry) for entry in entries)
        await asyncio.gather(*stopping, *self._stopping, return_exceptions=True)

    def _leave(self, user: str, key: ChildKey) -> None:
        entry = self._entries[key]
        entry.users.discard(user)
        if entry.child is not None:
            entry.child.watches.want(user, ())
        if not entry.users:
            del self._entries[key]
            task = asyncio.get_running_loop().create_task(self._stop(entry))
            self._stopping.add(task)
            task.add_done_callback(self._stopping.discard)

    async def _stop(self, entry: _Entry) -> None:
        if entry.task is not None:
            entry.task.cancel()
            await asyncio.gather(entry.task, return_exceptions=True)
        if entry.child is not None:
            await entry.child.close()

    async def _keep(self, key: ChildKey, entry: _Entry) -> None:
        """Connect, then listen for as long as the child is used."""
        gateway = await self._connected(key, entry)
        entry.child = child = self._made(key, entry, gateway)
        entry.told = False
        self._on_state(key, frozenset(entry.users))
        silent = False
        while True:
            # A child that falls silent, and one that comes back without any change, have no event of their own.
            await self._clock.sleep_until(self._clock.monotonic() + _LISTEN)
            if (child.silence is not None) is not silent:
                silent = not silent
                self._on_state(key, frozenset(entry.users))

    async def _connected(self, key: ChildKey, entry: _Entry) -> Gateway:
        """Read the kubeconfig until it can be used; what is wrong is told to whoever waits."""
        while True:
            try:
                return await Gateway.from_kubeconfig(
                    await self._kubeconfig(key), allow_local=self._allow_local, fence=self._gateway.fence
                )
            except FivespotError as error:
                found = unreachable(error, "")
            except Exception as error:  # noqa: BLE001 - see below
                # Anything may be in a Secret; nobody waits for this task, and what ended it would never be seen.
                _LOG.exception("Secret %s/%s: no way to connect", key.namespace, key.secret)
                found = Unknown(reasons.CHILD_CLUSTER_UNREACHABLE, str(error) or type(error).__name__)
            why = Unknown(found.reason, f"Secret {key.namespace}/{key.secret}: {found.why}")
            if why != entry.why:
                entry.why, entry.told = why, True
                self._on_state(key, frozenset(entry.users))
            await self._clock.sleep_until(self._clock.monotonic() + _AGAIN)

    def _made(self, key: ChildKey, entry: _Entry, gateway: Gateway) -> Child:
        watches = Watches(
            gateway,
            self._clock,
            on_change=lambda stream, old, new: self._on_change(key, stream, old, new),
            # Nodes matter to all of them; the pods of one Node to whoever asked for them.
            on_state=lambda stream, users: self._on_state(
                key, frozenset(entry.users) if stream == NODES_STREAM else users
            ),
        )
        watches.want("nodes", [NODES_STREAM])
        return Child(gateway, watches)

    async def _kubeconfig(self, key: ChildKey) -> str:
        if not key.secret:
            message = "spec.kubeconfigSecretRef cannot be read"
            raise KubeconfigMissing(message)
        try:
            secret = await self._gateway.get(SECRETS, key.namespace, key.secret)
        except NotFound as error:
            message = "it does not exist"
            raise KubeconfigMissing(message) from error
        return kubeconfig_in(secret, key.entry)


def kubeconfig_in(secret: Mapping[str, Any], entry: str) -> str:
    """The kubeconfig text in a Secret's data.

    Raises:
        KubeconfigMissing: the key is not there, or its value is not base64 of UTF-8 text.
    """
    data = secret.get("data")
    encoded = data.get(entry) if isinstance(data, Mapping) else None
    if not isinstance(encoded, str):
        message = f"it has no key {entry!r}"
        raise KubeconfigMissing(message)
    try:
        return base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        message = f"the value of key {entry!r} is not text"
        raise KubeconfigMissing(message) from error


def unreachable(fault: FivespotError | None, otherwise: str) -> Unknown:
    """Why a child, or a part of it, cannot be seen, in the words of conditions."""
    known = (
        (KubeconfigMissing, reasons.KUBECONFIG_MISSING),
        (KubeconfigRejected, reasons.KUBECONFIG_REJECTED),
        (Unauthorized, reasons.KUBECONFIG_REJECTED),
        (Forbidden, reasons.PERMISSION_DENIED),
    )
    found = next(
        (reason for kind, reason in known if isinstance(fault, kind)), reasons.CHILD_CLUSTER_UNREACHABLE
    )
    return Unknown(found, str(fault or otherwise))
