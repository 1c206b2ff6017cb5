"""The hosts of a cluster whose kubelets are real: the stand-in provider says which join and which leave."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.errors import ControlPlaneFailed
from tests.node.binaries import NodePrograms
from tests.node.node import Node


class RealHosts:
    """One `Node` for each host that has joined, by its name; all are stopped at the end.

    Args:
        plane: the cluster that they join.
        programs: what they run.
        static_pods: manifests of what a host runs by itself, by its name.
    """

    def __init__(
        self,
        plane: ControlPlane,
        programs: NodePrograms,
        static_pods: Callable[[str], Sequence[Mapping[str, Any]]] = lambda _name: (),
    ) -> None:
        self._plane = plane
        self._programs = programs
        self._static_pods = static_pods
        self.nodes: dict[str, Node] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for name in tuple(self.nodes):
            self._stop(name)

    async def switch_on(self, name: str, provider_id: str) -> None:
        """Start its kubelet, unless it runs; the Node is registered then."""
        if name not in self.nodes:
            await asyncio.to_thread(self._start, name, provider_id)

    async def switch_off(self, name: str) -> None:
        """Stop what runs on it, if anything does."""
        await asyncio.to_thread(self._stop, name)

    def _start(self, name: str, provider_id: str) -> None:
        try:
            made = Node(
                self._plane,
                self._programs,
                name=name,
                provider_id=provider_id,
                static_pods=self._static_pods(name),
            )
        except ControlPlaneFailed as error:
            # The stand-in ends of it, and its tests with a time-out: let them say why.
            print(f"host {name}: {error}", file=sys.stderr)
            raise
        # Noted here, in the thread: it goes on when the task that waits for it is cancelled.
        self.nodes[name] = made

    def _stop(self, name: str) -> None:
        if node := self.nodes.pop(name, None):
            node.stop()
