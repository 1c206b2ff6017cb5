"""The stand-in for Cluster API in a thread of the tests."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Event, Thread

from tests.standins.clusterapi import StandIn
from tests.standins.kubelets import Hosts
from tests.standins.working import work


class InThread:
    """Started and stopped as a process is."""

    def __init__(self, management: Path, child: Path, hosts: Hosts) -> None:
        self._clusters = (management, child)
        self._hosts = hosts
        self._thread: Thread | None = None
        self._started = Event()

    def start(self) -> None:
        """Start it, and wait until it can be stopped."""
        self._started.clear()
        self._thread = Thread(target=lambda: asyncio.run(self._run()), name="stand-in", daemon=True)
        self._thread.start()
        self._started.wait()

    def stop(self) -> int:
        """Stop it, as a process that ends well. Hosts that have joined stay."""
        if self._thread is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()
            self._thread = None
        return 0

    async def _run(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        self._started.set()
        working = asyncio.ensure_future(
            work(*self._clusters, lambda gateway, child: [StandIn(gateway, child, self._hosts)])
        )
        stopping = asyncio.ensure_future(self._stopping.wait())
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        for task in (working, stopping):
            task.cancel()
        await asyncio.gather(working, stopping, return_exceptions=True)
