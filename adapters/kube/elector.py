"""Stands for election, leads, and gives leadership back: `electing` with a Lease, a clock and an event loop.

The Lease is watched as well as written, so that one that is released is taken at once. It is replaced by PUT rather
than patched: the API server refuses a PUT of a Lease that names no version, where a patch without one would win.
"""

import asyncio
import contextlib
import logging

from fivespot.adapters.clock import event_or_time
from fivespot.adapters.kube.electing import Electing, Read, Timing, Wait, Write
from fivespot.adapters.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    LeadershipLost,
    NotFound,
    Unauthorized,
    Unavailable,
)
from fivespot.adapters.kube.lease import Record, lease_body, read_lease
from fivespot.adapters.kube.operations import Operations
from fivespot.adapters.kube.reflector import Reflector
from fivespot.adapters.kube.resources import LEASES, Object
from fivespot.adapters.kube.watching import Key, whole
from fivespot.core.errors import FivespotError
from fivespot.core.ports import Clock

_LOG = logging.getLogger(__name__)
_RELEASE_SECONDS = 2.0
"""What giving back may take: the others get it without us, only later."""


class NoPlaceForLease(FivespotError):  # noqa: N818 - a fact about the cluster
    """The namespace that the Lease should be in does not exist."""


class Elector:
    """One candidate for one Lease; for one life of one process.

    Args:
        gateway: the operations that wait for no others (`Gateway.urgent`).
        clock: its `monotonic` should go on while the machine is suspended: others take over meanwhile.
        identity: of this process alone.
        namespace: of the Lease.
        name: of the Lease.
        timing: how long things last.
    """

    def __init__(
        self,
        gateway: Operations,
        clock: Clock,
        *,
        identity: str,
        namespace: str,
        name: str,
        timing: Timing,
    ) -> None:
        self._gateway = gateway
        self._clock = clock
        self._namespace, self._name = namespace, name
        self._electing = Electing(identity, timing)
        self._standing = asyncio.Event()
        self._won = asyncio.Event()
        self._news = asyncio.Event()
        self._leader = ""
        self._fault = ""
        self._reflector: Reflector[Object] = Reflector(
            gateway,
            LEASES,
            clock=clock,
            read=whole,
            namespace=namespace,
            field_selector=f"metadata.name={name}",
            on_change=self._changed,
        )

    def leads(self) -> bool:
        """Whether this process may act, now."""
        return self._electing.leads(self._clock.monotonic())

    def left(self) -> float:
        """Seconds of leadership that are left, as a fence for writes.

        Raises:
            LeadershipLost: none.
        """
        left = self._electing.leads_until - self._clock.monotonic()
        if left <= 0:
            raise self._lost()
        return left

    async def won(self) -> None:
        """Stand for election, and return when this process leads. Until somebody calls this, `run` does nothing."""
        self._standing.set()
        await self._won.wait()

    async def run(self) -> None:
        """Win, and renew for as long as that succeeds; cancel it to stop.

        A missing permission, and a server that does not answer, are logged and tried again.

        Raises:
            LeadershipLost: this process led, and does not any more.
            NoPlaceForLease: the namespace does not exist.
        """
        await self._standing.wait()
        _LOG.info("standing for election as %s", self._electing.identity, extra={"lease": self._shown})
        following = asyncio.create_task(self._reflector.run(), name=f"follow Lease {self._shown}")
        try:
            while True:
                self._news.clear()
                until = await self._step()
                if self.leads():
                    until = min(until, self._electing.leads_until)
                elif self._electing.led:
                    raise self._lost()
                await self._wait(until)
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    async def release(self) -> None:
        """Give leadership back, so that the next one begins at once. Nothing may be under way any more, nor `run`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_RELEASE_SECONDS):
                while (write := self._electing.resign(self._clock.monotonic())) is not None:
                    try:
                        await self._put(write)
                    except Conflict:
                        # A renewal that nobody waited for has been done after all.
                        await self._read()
                    except ApiError as error:
                        _LOG.info("the Lease is left to expire: %s", error, extra={"lease": self._shown})
                        return
                    else:
                        _LOG.info("leadership is released", extra={"lease": self._shown})
                        return

    @property
    def _shown(self) -> str:
        return f"{self._namespace}/{self._name}"

    def _changed(self, _key: Key, _old: Object | None, new: Object | None) -> None:
        self._seen(read_lease(new) if new is not None else None)
        self._news.set()

    def _seen(self, record: Record | None) -> None:
        self._electing.seen(record, self._clock.monotonic())
        self._tell()

    async def _step(self) -> float:
        """One thing to do about the Lease. Returns when to look again, on the monotonic clock."""
        match step := self._electing.step(self._clock.monotonic(), self._clock.now()):
            case Wait():
                return step.until
            case Read():
                await self._read()
            case Write():
                await self._write(step)
        return self._clock.monotonic()

    async def _read(self) -> None:
        try:
            async with asyncio.timeout(self._patience()):
                body = await self._gateway.get(LEASES, self._namespace, self._name)
        except NotFound:
            self._seen(None)
        except (ApiError, TimeoutError) as error:
            self._electing.unread(self._clock.monotonic())
            self._failed(error)
        else:
            self._seen(read_lease(body))

    async def _write(self, write: Write) -> None:
        try:
            async with asyncio.timeout(self._patience()):
                answer = await self._put(write)
        except (Conflict, AlreadyExists):
            self._electing.doubted()
        except NotFound as error:
            if not write.record.version:
                message = (
                    f"Lease {self._shown} has no place to be: {error.message}; create the namespace, "
                    "or name another one with --lease-namespace"
                )
                raise NoPlaceForLease(message) from error
            self._electing.doubted()
        except (Unavailable, TimeoutError) as error:
            self._electing.doubted()
            self._failed(error)
        except ApiError as error:
            self._failed(error)
        else:
            self._fault = ""
            self._electing.written(write, read_lease(answer), self._clock.monotonic())
            self._tell()

    async def _put(self, write: Write) -> Object:
        body = lease_body(write.record, self._namespace, self._name)
        if write.record.version:
            return await self._gateway.update(LEASES, self._namespace, body)
        return await self._gateway.create(LEASES, self._namespace, body)

    def _patience(self) -> float:
        """Seconds that one request may take: a connection that is dead must leave time for another one."""
        half = self._electing.timing.renew_deadline / 2
        left = self._electing.leads_until - self._clock.monotonic()
        return min(half, left) if left > 0 else half

    async def _wait(self, until: float) -> None:
        if until <= self._clock.monotonic():
            return
        await event_or_time(self._news, self._clock, until)

    def _tell(self) -> None:
        """Say who leads, when that has changed."""
        if self.leads():
            if not self._won.is_set():
                _LOG.info("leading", extra={"lease": self._shown})
            self._won.set()
        holder = self._electing.record.holder if self._electing.record is not None else ""
        if holder not in ("", self._leader, self._electing.identity):
            _LOG.info("standing by: %s leads", holder, extra={"lease": self._shown})
        self._leader = holder

    def _failed(self, error: ApiError | TimeoutError) -> None:
        said = str(error) or "no answer in time"
        # A standby asks every few seconds; what a person has to put right is said once.
        level = logging.WARNING if isinstance(error, Forbidden | Unauthorized) else logging.INFO
        _LOG.log(level if said != self._fault else logging.DEBUG, "%s", said, extra={"lease": self._shown})
        self._fault = said

    def _lost(self) -> LeadershipLost:
        record, deadline = self._electing.record, self._electing.timing.renew_deadline
        if not self._electing.led:
            why = "it was never won"
        elif record is not None and record.holder not in ("", self._electing.identity):
            why = f"{record.holder} leads now"
        elif record is not None and not record.holder:
            why = "it was released"
        else:
            why = f"it could not be renewed within {deadline:g} s"
            why += f": {self._fault}" if self._fault else ""
        return LeadershipLost(f"leadership is lost (Lease {self._shown}): {why}; start again to stand by")
