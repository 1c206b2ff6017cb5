"""The end of a removal and the rest after it: nothing of ours exists any more.

What is concluded from that (references cleared, a reclaim held, the finalizer dropped) is concluded from live answers.
"""

from datetime import timedelta

import attrs

from fivespot.core.api import reasons
from fivespot.core.api.scheduled_machine import Reclaim
from fivespot.core.decision import reclaim as reclaims
from fivespot.core.decision.actions import ClearReclaimRequest, Event, Group, Part, RemoveFinalizer, Severity
from fivespot.core.decision.knowledge import Unknown, gone
from fivespot.core.decision.phase import Phase
from fivespot.core.decision.plan import Plan, ask, best_effort, groups_of, required
from fivespot.core.decision.scene import Scene, reclaim_record
from fivespot.core.decision.stray import Settlement, settle
from fivespot.core.decision.target import Decider
from fivespot.core.names import FINALIZER


def finish(scene: Scene) -> Plan:
    """Down, and nothing exists as far as was seen."""
    settled = settle(scene)
    confirm = (*_unconfirmed(scene), *settled.confirm)
    if confirm:
        return ask(*confirm)
    record, events = _reclaim(scene)
    phase, reason, message = _phase(scene)
    until = record.hold_until if record is not None else None
    return Plan(
        phase=phase,
        reason=reason,
        message=f"{settled.message or message}{_unread(scene, settled)}",
        groups=groups_of(*settled.groups, _clear_request(scene), drop_finalizer(scene)),
        events=events + settled.events,
        clear=True,
        reclaim=record,
        last_node=settled.last_node,
        node_ref=settled.node_ref,
        machine_ready=("False", reasons.MACHINE_DELETED, "no machine exists"),
        scheduled=message if reason == reasons.EMERGENCY_RECLAIM_DISABLED_SCHEDULE else "",
        wakes=(until,) if until is not None else (),
    )


def _unread(scene: Scene, settled: Settlement) -> str:
    """What keeps the last Node on record where a person has to grant something; a server that is down comes back."""
    unknown: object = settled.unknown or (scene.obs.cluster if scene.status.last_node is not None else None)
    if not isinstance(unknown, Unknown) or unknown.reason != reasons.PERMISSION_DENIED:
        return ""
    return f"; whether its last Node is still there could not be read: {unknown.why}"


def _unconfirmed(scene: Scene) -> tuple[Part, ...]:
    """What has to be read live before references are cleared, a hold begins or the finalizer is dropped."""
    status = scene.status
    recorded = status.machine_ref or status.bootstrap_ref or status.infrastructure_ref or status.shutdown
    if not recorded and not reclaims.in_progress(status.reclaim) and not _drops(scene):
        return ()
    return tuple(part for part, seen in scene.parts if not gone(seen))


def _reclaim(scene: Scene) -> tuple[Reclaim | None, tuple[Event, ...]]:
    """A reclaim in progress has got the machine out: it is held. One that is held may be released."""
    record = reclaim_record(scene)
    if record is None:
        return None, ()
    if reclaims.held(record):
        until = reclaims.hold_until(scene.machine)
        return record if until == record.hold_until else attrs.evolve(record, hold_until=until), ()
    if not reclaims.in_progress(record):
        return record, ()
    after = scene.machine.intent.rejoin_after
    held = reclaims.hold(record, scene.now, timedelta(seconds=after.seconds) if after else None)
    text = f"out after a reclaim ({record.reason}); {_release(scene)}"
    return held, (
        Event(severity=Severity.WARNING, reason=reasons.EMERGENCY_RECLAIM_DISABLED_SCHEDULE, message=text),
    )


def _release(scene: Scene) -> str:
    return f"release with: {reclaims.release_command(scene.machine)}"


def _clear_request(scene: Scene) -> Group | None:
    """The annotations are the last thing to go: after the hold is stored, or before the object itself goes."""
    record = scene.status.reclaim
    if record is None or record.node is None:
        return None
    if not reclaims.held(record) and not (reclaims.in_progress(record) and _drops(scene)):
        return None
    if not reclaims.names_node(record, scene.obs.last_node):
        return None
    return best_effort(ClearReclaimRequest(node=record.node, requested_at=record.requested_at))


def _drops(scene: Scene) -> bool:
    meta = scene.machine.metadata
    return meta.deleting and FINALIZER in meta.finalizers


def drop_finalizer(scene: Scene) -> Group | None:
    """Let the object go, if it is to go."""
    version = scene.machine.metadata.resource_version
    return required(RemoveFinalizer(resource_version=version)) if _drops(scene) else None


def _phase(scene: Scene) -> tuple[Phase | None, str, str]:
    """Phase, reason and message of a machine of which nothing exists; an object that goes comes to no rest."""
    intent, record = scene.machine.intent, scene.status.reclaim
    if scene.target.decider is Decider.DELETED:
        return None, reasons.MACHINE_DELETED, "nothing is left of the machine; the object goes"
    if intent.kill_switch:
        return (
            Phase.TERMINATED,
            reasons.KILL_SWITCH_ACTIVATED,
            "killed; set killSwitch to false to use it again",
        )
    if scene.target.decider is Decider.RECLAIM and record is not None:
        text = f"held after a reclaim ({record.reason}); {_release(scene)}"
        return Phase.DISABLED, reasons.EMERGENCY_RECLAIM_DISABLED_SCHEDULE, text
    if not intent.enabled:
        return Phase.DISABLED, reasons.SCHEDULE_DISABLED, "disabled: spec.enabled is false"
    if scene.target.decider is Decider.NEVER_RESOLVED:
        return Phase.INACTIVE, reasons.AWAITING_SCHEDULE, scene.target.why
    return Phase.INACTIVE, reasons.SCHEDULE_INACTIVE, scene.target.why
