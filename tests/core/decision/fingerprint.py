"""What of a life can matter to what comes next: two lives of one fingerprint have one future.

Without times and names: instants count as passed or not, uids as whose they are, and what only reports is left out.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import attrs

from fivespot.core.decision.knowledge import Known, Present
from fivespot.core.decision.observation import CapiMachineView, DependentView, NodeView
from fivespot.core.instant import format_instant
from fivespot.core.names import PAUSED, RECLAIM_RELEASE
from tests.core.decision import model
from tests.core.decision.life import Life


def fingerprint(life: Life) -> Any:
    """All that can matter, without times and names: instants as passed or not, uids as whose they are."""
    cell, now = life.cell, life.now
    machine, capi, node = cell.machine, cell.capi, cell.node
    status = machine.status
    return (
        cell.gone,
        life.says,
        life.enabled,
        life.kill,
        life.child,
        life.budget,
        life.refused,
        life.theirs,
        life.unrecorded,
        life.unreadable,
        life.failure is not None,
        life.fault,
        tuple(
            (part.value, _seen_mark(seen, capi))
            for part, seen in sorted(life.cache.items(), key=lambda i: i[0].value)
        ),
        attrs.evolve(cell.cluster.value, generation=0) if isinstance(cell.cluster, Present) else None,
        machine.metadata.deleting,
        machine.metadata.finalizers,
        PAUSED in machine.metadata.annotations,
        _capi_mark(capi, now),
        _taken_by(cell.infrastructure, capi),
        _taken_by(cell.bootstrap, capi),
        _node_mark(node, capi),
        tuple((pod.uid, pod.deleting) for pod in cell.pods),
        life.wake is not None and life.wake > now,
        *_status_mark(life, status, now),
    )


def _seen_mark(seen: Known[Any], capi: CapiMachineView | None) -> Any:
    if not isinstance(seen, Present):
        return type(seen).__name__
    view = seen.value
    if isinstance(view, CapiMachineView):
        return _capi_mark(view, model.NOW), capi is not None and capi.metadata.uid == view.metadata.uid
    return _taken_by(view, capi)


def _past(at: datetime | None, now: datetime, more: float = 0) -> bool | None:
    return None if at is None else at + timedelta(seconds=more) <= now


def _capi_mark(capi: CapiMachineView | None, now: datetime) -> Any:
    if capi is None:
        return None
    meta = capi.metadata
    return (
        meta.deleting, capi.phase, capi.provider_id, capi.failure,
        frozenset(meta.annotations), _past(meta.created_at, now, 900),
    )  # fmt: skip


def _taken_by(view: DependentView | None, capi: CapiMachineView | None) -> Any:
    if view is None:
        return None
    owners = [owner.uid for owner in view.metadata.owners if owner.kind == "Machine"]
    return view.metadata.deleting, bool(owners), capi is not None and capi.metadata.uid in owners


def _node_mark(node: NodeView | None, capi: CapiMachineView | None) -> Any:
    if node is None:
        return None
    return (
        node.ready, node.reachable, node.unschedulable, frozenset(node.annotations), len(node.taints),
        capi is not None and capi.provider_id == node.provider_id,
    )  # fmt: skip


def _same(uid: str | None, view: Any) -> Any:
    if uid is None or view is None:
        return uid is not None
    found = view.uid if isinstance(view, NodeView) else view.metadata.uid
    return "same" if found == uid else "other"


def _status_mark(life: Life, status: Any, now: datetime) -> Iterator[Any]:
    cell = life.cell
    shutdown, reclaim, provisioning = status.shutdown, status.reclaim, status.provisioning
    yield status.phase, status.provider_id is not None
    yield tuple(
        _same(ref.uid if ref else None, view)
        for ref, view in (
            (status.machine_ref, cell.capi),
            (status.bootstrap_ref, cell.bootstrap),
            (status.infrastructure_ref, cell.infrastructure),
            (status.node_ref, cell.node),
            (status.last_node, cell.node),
        )
    )
    spot = status.spot_schedule
    yield (spot.resolved, spot.active, spot.reason) if spot is not None else None
    if shutdown is not None:
        yield (
            shutdown.manner.value, shutdown.cordoned, shutdown.remaining_pods, bool(shutdown.blocked_by),
            _past(shutdown.started_at, now), _past(shutdown.drain_deadline, now), _past(shutdown.deadline, now),
            _past(shutdown.deadline, now, 600), _past(shutdown.drained_at, now, 30),
        )  # fmt: skip
    if reclaim is not None:
        released = reclaim.observed_at is not None and (
            cell.machine.metadata.annotations.get(RECLAIM_RELEASE) == format_instant(reclaim.observed_at)
        )
        yield (
            reclaim.state, min(len(reclaim.history), 1), released,
            _same(reclaim.node.uid if reclaim.node else None, cell.node),
            _past(reclaim.observed_at, now, 3.5), _past(reclaim.pods_deleted_at, now, 3.5),
            _same(reclaim.stale_cleared_for, cell.capi),
        )  # fmt: skip
    if provisioning is not None:
        yield (
            min(provisioning.attempt or 0, 1), _same(provisioning.replacing, cell.capi),
            _past(provisioning.not_before, now),
        )  # fmt: skip
