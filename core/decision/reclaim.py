"""Emergency reclaim as far as it lives in status: requests, the hold, and what releases it.

The hold is in status only: `spec` is never written, so a GitOps controller has nothing to revert and cannot start a loop
of eject and rejoin.
"""

from datetime import datetime, timedelta
from typing import Final

import attrs

from fivespot.core.api.scheduled_machine import Reclaim, ReclaimedNode, ReclaimRecord, ReclaimState
from fivespot.core.decision.knowledge import Present
from fivespot.core.decision.observation import CapiMachineView, MachineView, NodeView
from fivespot.core.instant import format_instant, later, parse_instant
from fivespot.core.names import RECLAIM_REASON, RECLAIM_RELEASE, RECLAIM_REQUESTED, RECLAIM_REQUESTED_AT

_REASON_LENGTH: Final = 128
_HISTORY: Final = 10
RAPID: Final = 3
"""The reclaim of this number inside the policy's window is reported."""


@attrs.frozen(kw_only=True)
class Request:
    """A reclaim request on the node; `requested_at` is the text of its time, if any."""

    reason: str
    requested_at: str | None


def request_on(node: NodeView | None) -> Request | None:
    """The request that the Node's annotations carry."""
    if node is None or node.annotations.get(RECLAIM_REQUESTED) != "true":
        return None
    reason = "".join(char for char in node.annotations.get(RECLAIM_REASON, "") if char.isprintable())
    return Request(
        reason=reason[:_REASON_LENGTH] or "no reason given",
        requested_at=node.annotations.get(RECLAIM_REQUESTED_AT),
    )


def is_stale(request: Request, machine: MachineView, capi: CapiMachineView | None) -> bool:
    """Whether a request was meant for the life before.

    Only one that is found before a Node was ever recorded can be; afterwards every request is live, and a missing or
    malformed time counts as now, since workstation clocks are wrong. While the Machine cannot be read, what status
    remembers of it counts. A request is cleared once for each Machine: one that is written again after that is live.
    """
    status = machine.status
    if status.node_ref is not None:
        return False
    created = capi.metadata.created_at if capi is not None else status.last_scheduled_time
    asked = _asked_at(request)
    if created is None or asked is None or asked >= created:
        return False
    record = status.reclaim
    cleared = record is not None and record.stale_cleared_for == _machine_uid(machine, capi)
    return not cleared or (record is not None and record.requested_at == request.requested_at)


def _asked_at(request: Request) -> datetime | None:
    try:
        return parse_instant(request.requested_at or "")
    except ValueError:
        return None


def _machine_uid(machine: MachineView, capi: CapiMachineView | None) -> str | None:
    if capi is not None:
        return capi.metadata.uid
    recorded = machine.status.machine_ref
    return recorded.uid if recorded is not None else None


def is_awaited(machine: MachineView) -> bool:
    """Whether a request on the Node is for us to look at: enabled for this machine, and none in progress or held."""
    stored = machine.status.reclaim
    return machine.intent.reclaim_enabled and not (in_progress(stored) or held(stored))


def clear_stale(stored: Reclaim | None, request: Request, uid: str) -> Reclaim:
    """What remembers that a stale request is being cleared, and which: another one is not the same."""
    return attrs.evolve(stored or Reclaim(), stale_cleared_for=uid, requested_at=request.requested_at)


def begin(request: Request, stored: Reclaim | None, node: NodeView, now: datetime) -> Reclaim:
    """The record of a reclaim that begins; its `observedAt` is later than every one before it."""
    history = stored.history if stored else ()
    latest = max((entry.observed_at for entry in history if entry.observed_at), default=None)
    observed = now if latest is None or now > latest else latest + timedelta(microseconds=1)
    return Reclaim(
        state=ReclaimState.IN_PROGRESS,
        reason=request.reason,
        requested_at=request.requested_at,
        observed_at=observed,
        node=ReclaimedNode(name=node.name, uid=node.uid),
        history=history,
        stale_cleared_for=stored.stale_cleared_for if stored else None,
    )


def hold(stored: Reclaim, now: datetime, rejoin_after: timedelta | None) -> Reclaim:
    """The record once the machine is out: held, and remembered."""
    record = ReclaimRecord(observed_at=stored.observed_at, held_at=now, reason=stored.reason)
    return attrs.evolve(
        stored,
        state=ReclaimState.HELD,
        history=(*stored.history, record)[-_HISTORY:],
        hold_until=later(now, rejoin_after) if rejoin_after is not None else None,
    )


def hold_until(machine: MachineView) -> datetime | None:
    """When the hold ends by itself, as the spec says now; None for never."""
    stored = machine.status.reclaim
    after = machine.intent.rejoin_after
    if stored is None or stored.state is not ReclaimState.HELD or after is None or not stored.history:
        return None
    held_at = stored.history[-1].held_at
    return later(held_at, timedelta(seconds=after.seconds)) if held_at else None


def is_released(machine: MachineView, now: datetime) -> bool:
    """Whether the hold is over: by the annotation that names it, by `enabled: false`, or by `rejoinAfter`."""
    stored = machine.status.reclaim
    if stored is None or stored.state is not ReclaimState.HELD:
        return False
    named = machine.metadata.annotations.get(RECLAIM_RELEASE)
    until = hold_until(machine)
    return (
        (stored.observed_at is not None and named == format_instant(stored.observed_at))
        or not machine.intent.enabled
        or (until is not None and now >= until)
    )


def release(stored: Reclaim) -> Reclaim:
    """What is left in status after a release: the history only."""
    return Reclaim(history=stored.history, stale_cleared_for=stored.stale_cleared_for)


def release_command(machine: MachineView) -> str:
    """The command that releases the hold, as the condition shows it."""
    stored = machine.status.reclaim
    when = format_instant(stored.observed_at) if stored and stored.observed_at else ""
    meta = machine.metadata
    return f"kubectl annotate sm -n {meta.namespace} {meta.name} --overwrite {RECLAIM_RELEASE}={when}"


def is_rapid(reclaim: Reclaim, window: timedelta) -> bool:
    """Whether this is the third reclaim within the window."""
    if reclaim.observed_at is None:
        return False
    recent = [
        entry
        for entry in reclaim.history
        if entry.observed_at is not None and reclaim.observed_at - entry.observed_at <= window
    ]
    return len(recent) >= RAPID - 1


def in_progress(reclaim: Reclaim | None) -> bool:
    """Whether a stored reclaim has not got the machine out yet."""
    return reclaim is not None and reclaim.state is ReclaimState.IN_PROGRESS


def held(reclaim: Reclaim | None) -> bool:
    """Whether a stored reclaim keeps the machine out."""
    return reclaim is not None and reclaim.state is ReclaimState.HELD


def names_node(reclaim: Reclaim | None, node: object) -> bool:
    """Whether the request that was acted on is still on the Node that it came from."""
    if reclaim is None or reclaim.node is None or not isinstance(node, Present):
        return False
    view: NodeView = node.value
    if view.uid != reclaim.node.uid or RECLAIM_REQUESTED not in view.annotations:
        return False
    return view.annotations.get(RECLAIM_REQUESTED_AT) == reclaim.requested_at
