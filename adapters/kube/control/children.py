"""Child clusters: where Nodes and Pods live. One client and one Node stream per kubeconfig, for as long as it is used.

There is no fall-back: a Secret that is missing or refused means that the child cannot be seen, never that another
cluster is asked instead.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final

import attrs

from fivespot.adapters.clock import event_or_time
from fivespot.adapters.kube.control.secrets import SecretMissing, Secrets
from fivespot.adapters.kube.control.streams import NODES
from fivespot.adapters.kube.control.watches import Stream, Watches
from fivespot.adapters.kube.errors import ApiError, Forbidden, Unauthorized
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.kubeconfig import KubeconfigRejected
from fivespot.adapters.kube.reflector import Reflector
from fivespot.adapters.kube.watching import Key
from fivespot.adapters.telemetry.metrics import Metrics
from fivespot.core.api import reasons
from fivespot.core.decision.knowledge import Known, Unknown
from fivespot.core.decision.observation import MachineView, NodeView
from fivespot.core.errors import FivespotError
from fivespot.core.names import KUBECONFIG_SECRET_KEY, KUBECONFIG_SECRET_SUFFIX
from fivespot.core.ports import Clock

_LOG: Final = logging.getLogger(__name__)
_SWAP: Final = 5.0
"""Seconds that a new connection gets to read the Nodes before it takes the place of the old one."""
_SILENT: Final = 15.0
"""Seconds for which the stream of a child cluster has been failing, after which it cannot be seen."""
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


class Child:
    """A child cluster: its client and its streams; `heard` is set once its Nodes have been read."""

    def __init__(self, gateway: Gateway, watches: Watches, heard: asyncio.Event) -> None:
        self.gateway = gateway
        self.watches = watches
        self.heard = heard

    @property
    def nodes(self) -> Reflector[Known[NodeView]] | None:
        """The Nodes, None until they are being read."""
        return self.watches.reflector(NODES)

    @property
    def silence(self) -> ApiError | None:
        """Why it has not been reached for so long that what is known of it is not to be relied on; None when all is well."""
        nodes = self.nodes
        return nodes.failing if nodes is not None and nodes.failing_for > _SILENT else None

    async def close(self) -> None:
        """Stop the streams and close the client."""
        await self.watches.close()
        await self.gateway.close()

    async def retire(self) -> None:
        """Stop the streams, and close the client once what is under way has come to its end.

        What is given up half way has an outcome that nobody knows.
        """
        await self.watches.close()
        await self.gateway.retire()


@attrs.define(kw_only=True, eq=False)
class _Entry:
    users: set[str] = attrs.field(factory=set)
    task: "asyncio.Task[None] | None" = None
    news: asyncio.Event = attrs.field(factory=asyncio.Event)
    child: Child | None = None
    text: str | None = None
    told: bool = False
    why: Unknown = Unknown(reasons.CHILD_CLUSTER_UNREACHABLE, "it is being connected")


class Children:
    """The child clusters in use, by where their kubeconfig is. The Secret is watched, and what is in it now counts."""

    def __init__(
        self,
        gateway: Gateway,
        clock: Clock,
        *,
        allow_local: bool,
        on_change: Callable[[ChildKey, Stream[Any], Key, Any, Any], None],
        on_state: Callable[[ChildKey, frozenset[str]], None],
        metrics: Metrics | None = None,
    ) -> None:
        self._gateway = gateway
        self._metrics = metrics or Metrics()
        self._clock = clock
        self._allow_local = allow_local
        self._on_change = on_change
        self._on_state = on_state
        self._entries: dict[ChildKey, _Entry] = {}
        self._by_user: dict[str, ChildKey] = {}
        self._secrets: Secrets[ChildKey] = Secrets(
            gateway, clock, on_news=self._secret_news, metrics=self._metrics
        )
        self._ending: set[asyncio.Task[None]] = set()
        self._closed = False

    def want(self, user: str, key: ChildKey | None) -> None:
        """Say which child a machine needs; None releases it."""
        before = self._by_user.get(user)
        if before == key or self._closed:
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
            if key.secret:
                self._secrets.want(key, key.namespace, [key.secret])
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
        return entry.child is None or entry.child.watches.pending(NODES)

    async def close(self) -> None:
        """Leave every child cluster, for good."""
        self._closed = True
        entries = list(self._entries.values())
        self._entries.clear()
        self._by_user.clear()
        await self._secrets.close()
        stopping = (self._stop(entry) for entry in entries)
        await asyncio.gather(*stopping, *self._ending, return_exceptions=True)

    def _leave(self, user: str, key: ChildKey) -> None:
        entry = self._entries[key]
        entry.users.discard(user)
        if entry.child is not None:
            entry.child.watches.want(user, ())
        if not entry.users:
            del self._entries[key]
            self._secrets.want(key, key.namespace, ())
            self._end(self._stop(entry))

    async def _stop(self, entry: _Entry) -> None:
        if entry.task is not None:
            entry.task.cancel()
            await asyncio.gather(entry.task, return_exceptions=True)
        if entry.child is not None:
            await entry.child.close()

    def _end(self, ending: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(ending)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _secret_news(self, keys: Iterable[ChildKey]) -> None:
        for key in keys:
            if (entry := self._entries.get(key)) is not None:
                entry.news.set()

    async def _keep(self, key: ChildKey, entry: _Entry) -> None:
        """Follow the Secret, and listen to the child, for as long as it is used."""
        silent = False
        while True:
            entry.news.clear()
            await self._follow(key, entry)
            if entry.child is not None and (entry.child.silence is not None) is not silent:
                # A child that falls silent, and one that comes back without any change, have no event of their own.
                silent = not silent
                self._on_state(key, frozenset(entry.users))
            await event_or_time(entry.news, self._clock, self._clock.monotonic() + _LISTEN)

    async def _follow(self, key: ChildKey, entry: _Entry) -> None:
        """Be connected as the Secret says now; what is wrong is told to whoever waits.

        Nothing is raised: nobody waits for this task, and what ended it would never be seen.
        """
        try:
            text = self._kubeconfig(key)
        except FivespotError as error:
            self._refuse(key, entry, None, unreachable(error, ""))
            return
        # What was refused is not looked at again before it says something else.
        if text is None or text == entry.text:
            return
        try:
            gateway = await Gateway.from_kubeconfig(
                text,
                allow_local=self._allow_local,
                fence=self._gateway.fence,
                answered=self._gateway.answered,
            )
        except FivespotError as error:
            self._refuse(key, entry, text, unreachable(error, ""))
        except Exception as error:  # noqa: BLE001 - anything may be in a Secret
            _LOG.exception("no way to connect", extra={"secret": f"{key.namespace}/{key.secret}"})
            why = str(error) or type(error).__name__
            self._refuse(key, entry, text, Unknown(reasons.CHILD_CLUSTER_UNREACHABLE, why))
        else:
            self._metrics.child_resolved(None)
            await self._swap(key, entry, self._made(key, entry, gateway), text)

    def _refuse(self, key: ChildKey, entry: _Entry, text: str | None, found: Unknown) -> None:
        why = Unknown(found.reason, f"Secret {key.namespace}/{key.secret}: {found.why}")
        before, entry.child, entry.text = entry.child, None, text
        if why == entry.why and before is None:
            return
        self._metrics.child_resolved(why.reason)
        entry.why, entry.told = why, True
        if before is not None:
            self._end(before.close())
        self._on_state(key, frozenset(entry.users))

    async def _swap(self, key: ChildKey, entry: _Entry, child: Child, text: str) -> None:
        """Put a connection in the place of the one before, which is left once the new one has read the Nodes.

        A token or certificate that was renewed is no reason not to see the child for a moment. One that does not work
        takes the place of one that did all the same: it is what the Secret says.
        """
        before = entry.child
        if before is not None:
            try:
                await event_or_time(child.heard, self._clock, self._clock.monotonic() + _SWAP)
            except asyncio.CancelledError:
                await child.close()
                raise
            _LOG.info(
                "the kubeconfig has changed: the child cluster is connected anew",
                extra={"secret": f"{key.namespace}/{key.secret}"},
            )
        entry.child, entry.text, entry.told = child, text, False
        if before is not None:
            self._end(before.retire())
        self._on_state(key, frozenset(entry.users))

    def _made(self, key: ChildKey, entry: _Entry, gateway: Gateway) -> Child:
        heard = asyncio.Event()

        def state(stream: Stream[Any], users: frozenset[str]) -> None:
            # Nodes matter to all of them; the pods of one Node to whoever asked for them.
            if stream == NODES:
                heard.set()
                users = frozenset(entry.users)
            self._on_state(key, users)

        watches = Watches(
            gateway,
            self._clock,
            on_change=lambda stream, of, old, new: self._on_change(key, stream, of, old, new),
            on_state=state,
            metrics=self._metrics,
        )
        watches.want("nodes", [NODES])
        return Child(gateway, watches, heard)

    def _kubeconfig(self, key: ChildKey) -> str | None:
        """What the Secret says; None while it is being read.

        Raises:
            SecretMissing: it, or its key, is not there.
            FivespotError: it cannot be read.
        """
        if not key.secret:
            message = "spec.kubeconfigSecretRef cannot be read"
            raise SecretMissing(message)
        return self._secrets.text(key.namespace, key.secret, key.entry)


def unreachable(fault: FivespotError | None, otherwise: str) -> Unknown:
    """Why a child, or a part of it, cannot be seen, in the words of conditions."""
    known = (
        (SecretMissing, reasons.KUBECONFIG_MISSING),
        (KubeconfigRejected, reasons.KUBECONFIG_REJECTED),
        (Unauthorized, reasons.KUBECONFIG_REJECTED),
        (Forbidden, reasons.PERMISSION_DENIED),
    )
    found = next(
        (reason for kind, reason in known if isinstance(fault, kind)), reasons.CHILD_CLUSTER_UNREACHABLE
    )
    return Unknown(found, str(fault or otherwise))
