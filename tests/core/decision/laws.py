"""What must hold of every single decision, as functions that say what is wrong, or None.

The model checker, the crash tests and the random runs share them. Each names the rule that it stands for.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import cached_property
from typing import Final, TypeAlias

import attrs

from fivespot.core.api.codec import decode, encode
from fivespot.core.api.reasons import CONDITION_TYPES, REASONS
from fivespot.core.api.scheduled_machine import (
    DrainTimeout,
    Manner,
    ReclaimState,
    ScheduledMachineStatus,
)
from fivespot.core.api.schema import schema_of
from fivespot.core.decision import actions as act
from fivespot.core.decision.knowledge import Absent, Present, Unknown, gone, value_of
from fivespot.core.decision.observation import Observation, owned_by
from fivespot.core.decision.phase import ALLOWED, Phase
from fivespot.core.names import FINALIZER, MACHINE_KIND, PAUSED

_KEYS: Final = frozenset(schema_of(ScheduledMachineStatus).properties)
_POD_ACTIONS: Final = (act.EvictPod, act.DeletePod)
_NODE_ACTIONS: Final = (act.Cordon, act.Uncordon, act.SetTaints, act.DeleteNode)
_FIRST: Final = (act.AdoptOwner, act.AddFinalizer)
_DESTRUCTIVE: Final = (act.Delete, act.DeleteNode, *_POD_ACTIONS)


@attrs.define(kw_only=True, slots=False)
class Seen:
    """An observation and what was decided about it."""

    obs: Observation
    now: datetime
    decision: act.Decision

    @cached_property
    def actions(self) -> tuple[act.Action, ...]:
        return tuple(action for group in self.decision.groups for action in group.actions)

    @property
    def stored(self) -> ScheduledMachineStatus:
        return self.obs.machine.status

    @property
    def status(self) -> ScheduledMachineStatus:
        return self.decision.status

    @property
    def killed(self) -> bool:
        return self.obs.machine.intent.kill_switch

    @property
    def now_stored(self) -> bool:
        """Whether a removal without grace is stored."""
        return self.stored.shutdown is not None and self.stored.shutdown.manner is Manner.NOW

    @property
    def reclaiming(self) -> bool:
        return self.stored.reclaim is not None and self.stored.reclaim.state is ReclaimState.IN_PROGRESS

    @property
    def paused(self) -> bool:
        """Whether something pauses the machine; the Machine's own annotation counts when it is ours."""
        cluster, capi = value_of(self.obs.cluster), value_of(self.obs.capi_machine)
        return (
            PAUSED in self.obs.machine.metadata.annotations
            or (cluster is not None and cluster.paused)
            or (capi is not None and PAUSED in capi.metadata.annotations)
        )

    def deleted(self, role: act.Role) -> Iterator[act.Delete]:
        return (a for a in self.actions if isinstance(a, act.Delete) and a.role is role)

    def some(self, *kinds: type) -> bool:
        return any(isinstance(action, kinds) for action in self.actions)


Law: TypeAlias = Callable[[Seen], str | None]


def only_allowed_phase_changes(seen: Seen) -> str | None:
    before, after = seen.stored.phase, seen.status.phase
    if before == after or after is None:
        return None if before == after else f"{before} -> None"
    known = Phase(before) if before is not None else None
    return None if Phase(after) in ALLOWED[known] else f"{before} -> {after}"


_ROUND_TRIPPED: set[int] = set()


def status_round_trips(seen: Seen) -> str | None:
    """Decoding what was encoded gives the same, and the keys are the schema's (invariant 8)."""
    if (key := hash(seen.status)) in _ROUND_TRIPPED:
        return None
    _ROUND_TRIPPED.add(key)
    wire = encode(seen.status, nulls=True)
    if wire.keys() != _KEYS:
        return f"keys differ: {wire.keys() ^ _KEYS}"
    return None if decode(wire, ScheduledMachineStatus) == seen.status else "it comes back different"


def nothing_is_destroyed_without_stored_intent(seen: Seen) -> str | None:
    """Section 6: destructive actions come only from a stored status that carries the intent."""
    stored = seen.stored
    removing = stored.shutdown is not None or seen.reclaiming
    stray = stored.last_node is not None
    replacing = stored.provisioning.replacing if stored.provisioning is not None else None
    for action in seen.actions:
        if not isinstance(action, _DESTRUCTIVE):
            continue
        if isinstance(action, act.Delete):
            failed = action.role is act.Role.MACHINE and replacing == action.target.uid
            left = action.role is not act.Role.MACHINE and _machine_is_gone(seen)
            if removing or failed or left:
                continue
        elif removing or (stray and _machine_is_out_of_sight(seen)):
            continue
        return repr(action)
    return None


def _machine_is_gone(seen: Seen) -> bool:
    """The CAPI Machine of the life before is gone (live), or what has its name is somebody else's."""
    return (
        gone(seen.obs.capi_machine)
        or _foreign(seen, seen.obs.capi_machine, seen.stored.machine_ref) is not None
    )


def _machine_is_out_of_sight(seen: Seen) -> bool:
    """Absent as far as a cache can tell: enough to settle a Node without its Machine."""
    return isinstance(seen.obs.capi_machine, Absent) or _machine_is_gone(seen)


def a_beginning_is_only_stored(seen: Seen) -> str | None:
    """A decision that starts a removal, or makes it more urgent, only stores status."""
    before, after = seen.stored.shutdown, seen.status.shutdown
    tighter = after is not None and after.manner is Manner.NOW
    begins = after is not None and (before is None or (tighter and before.manner is not Manner.NOW))
    reclaims = seen.status.reclaim is not None and seen.status.reclaim.state is ReclaimState.IN_PROGRESS
    # A reclaim that is asked for while a kill is stored is noted beside what the kill does.
    begins = begins or (reclaims and not seen.reclaiming and not (seen.killed and seen.now_stored))
    others = [action for action in seen.actions if not isinstance(action, _FIRST)]
    return f"begins with {others}" if begins and others else None


def nothing_is_created_on_account_of_an_unknown(seen: Seen) -> str | None:
    obs = seen.obs
    parts = (obs.capi_machine, obs.infrastructure, obs.bootstrap, obs.cluster)
    if any(isinstance(part, Unknown) for part in parts) and seen.some(act.Create):
        return "creates"
    return None


def nothing_on_an_unknown_node_is_touched(seen: Seen) -> str | None:
    """Neither pods nor the Node, whether it is the Node or its pods that could not be read."""
    obs = seen.obs
    stray = _machine_is_gone(seen)
    node = obs.last_node if stray else obs.node
    if isinstance(node, Unknown) and seen.some(*_POD_ACTIONS, *_NODE_ACTIONS):
        return f"touches {seen.actions}"
    if isinstance(obs.pods, Unknown) and seen.some(*_POD_ACTIONS):
        return f"touches pods {seen.actions}"
    return None


def an_unknown_machine_is_deleted_only_now_and_by_record(seen: Seen) -> str | None:
    """Nothing is deleted on account of an Unknown; a kill or a reclaim deletes what status recorded, by uid."""
    if not isinstance(seen.obs.capi_machine, Unknown):
        return None
    for action in seen.actions:
        if isinstance(action, act.Delete):
            recorded = seen.stored.machine_ref
            if not seen.now_stored or recorded is None or action.target.uid != recorded.uid:
                return repr(action)
    return None


def no_dependent_is_deleted_while_its_machine_may_exist(seen: Seen) -> str | None:
    """Section 5, step 6: only once the Machine is gone (live)."""
    deleted = [*seen.deleted(act.Role.INFRASTRUCTURE), *seen.deleted(act.Role.BOOTSTRAP)]
    if deleted and not _machine_is_gone(seen):
        return repr(deleted)
    infra = seen.obs.infrastructure
    if [*seen.deleted(act.Role.BOOTSTRAP)] and not (isinstance(infra, Absent) or _may_stay(seen)):
        return f"bootstrap before infrastructure {infra}"
    return None


def _may_stay(seen: Seen) -> bool:
    """Infrastructure that is a stranger's, or a half-done create that is used as soon as what is left is gone."""
    view = value_of(seen.obs.infrastructure)
    if view is None:
        return False
    foreign = _foreign(seen, seen.obs.infrastructure, None) is not None
    return foreign or not (
        view.metadata.deleting or any(owner.kind == "Machine" for owner in view.metadata.owners)
    )


def kill_switch_wins(seen: Seen) -> str | None:
    """Invariant 2: with it nothing comes up, and the phase is Terminated or as stored."""
    if not seen.killed or _waits_for_first_things(seen):
        return None
    if seen.some(act.Create, act.Uncordon, act.SetTaints, act.LabelMachine):
        return f"comes up: {seen.actions}"
    if seen.status.phase not in (Phase.TERMINATED.value, Phase.ERROR.value, seen.stored.phase):
        return f"phase {seen.status.phase}"
    decided = "Deleted" if seen.obs.machine.metadata.deleting else "KillSwitch"
    written = seen.status != seen.stored
    return f"decided by {seen.status.decided_by}" if written and seen.status.decided_by != decided else None


def a_killed_machine_is_deleted_at_once(seen: Seen) -> str | None:
    """Once the intent is stored, a standing Machine of ours is deleted, whatever else was seen."""
    capi = value_of(seen.obs.capi_machine)
    if not seen.killed or not seen.now_stored or capi is None or _waits_for_first_things(seen):
        return None
    if capi.metadata.deleting or _foreign(seen, seen.obs.capi_machine, seen.stored.machine_ref) is not None:
        return None
    if seen.some(act.Cordon, *_POD_ACTIONS):
        return "touches the node first"
    return None if [*seen.deleted(act.Role.MACHINE)] else "is not deleted"


def nothing_foreign_is_touched(seen: Seen) -> str | None:
    """Invariant 11."""
    stored = seen.stored
    obs = seen.obs
    strangers = {
        _foreign(seen, obs.capi_machine, stored.machine_ref),
        _foreign(seen, obs.infrastructure, stored.infrastructure_ref),
        _foreign(seen, obs.bootstrap, stored.bootstrap_ref),
    } - {None}
    for action in seen.actions:
        if getattr(action, "target", None) is not None and action.target.uid in strangers:  # type: ignore[union-attr]
            return repr(action)
    for node in (value_of(obs.node), value_of(obs.last_node)):
        if node is not None and "foreign" in node.uid:
            names = {
                getattr(action, "node", None) for action in seen.actions if isinstance(action, _NODE_ACTIONS)
            }
            if node.uid in {getattr(action, "uid", None) for action in seen.actions} or (
                node.name in names and node.name not in _our_nodes(seen)
            ):
                return f"touches Node {node.name}"
    return None


def _our_nodes(seen: Seen) -> set[str]:
    seen_nodes = (value_of(seen.obs.node), value_of(seen.obs.last_node))
    return {node.name for node in seen_nodes if node is not None and "foreign" not in node.uid}


def _foreign(seen: Seen, known: object, recorded: object) -> str | None:
    """The uid of a part that is neither recorded nor labelled and owned by our name; test uids of strangers say so."""
    view = value_of(known)  # type: ignore[arg-type]
    return view.metadata.uid if view is not None and "foreign" in view.metadata.uid else None


def a_machine_is_deleted_only_for_a_reason(seen: Seen) -> str | None:
    """Invariant 4."""
    if not [*seen.deleted(act.Role.MACHINE)]:
        return None
    obs, shutdown = seen.obs, seen.stored.shutdown
    capi, cluster = value_of(obs.capi_machine), value_of(obs.cluster)
    hold = obs.machine.intent.on_drain_timeout is DrainTimeout.HOLD
    known = value_of(obs.node) is not None and not isinstance(obs.pods, Unknown)
    bound = (shutdown.drain_deadline if known else shutdown.deadline) if shutdown is not None else None
    stored = seen.stored.provisioning
    reasons = (
        shutdown is not None and shutdown.drained_at is not None,
        not hold and bound is not None and seen.now >= bound,
        seen.killed or seen.reclaiming or seen.now_stored,
        capi is not None
        and bool(capi.failure)
        and stored is not None
        and stored.replacing == capi.metadata.uid,
        gone(obs.cluster) or (cluster is not None and cluster.deleting),
        shutdown is not None and _has_no_node(seen),
    )
    return None if any(reasons) else "without a reason"


def _has_no_node(seen: Seen) -> bool:
    """Nothing to drain: no Node (live), or one that is somebody else's."""
    node, capi = value_of(seen.obs.node), value_of(seen.obs.capi_machine)
    foreign = (
        node is not None
        and bool(node.provider_id)
        and capi is not None
        and node.provider_id != capi.provider_id
    )
    return gone(seen.obs.node) or foreign


def hold_outlasts_every_bound(seen: Seen) -> str | None:
    """Section 5, step 4: under Hold only an empty node, kill, reclaim, or a Cluster that goes, ends a drain."""
    if seen.obs.machine.intent.on_drain_timeout is not DrainTimeout.HOLD:
        return None
    shutdown, cluster = seen.stored.shutdown, value_of(seen.obs.cluster)
    if shutdown is None or shutdown.manner is Manner.NOW or shutdown.drained_at is not None:
        return None
    if gone(seen.obs.cluster) or (cluster is not None and cluster.deleting) or _has_no_node(seen):
        return None
    return "deletes" if [*seen.deleted(act.Role.MACHINE)] else None


def a_pause_stops_everything_but_kill_and_reclaim(seen: Seen) -> str | None:
    """Section 3: nothing is created, drained or deleted during a pause."""
    if not seen.paused or seen.killed or seen.reclaiming or seen.now_stored:
        return None
    return repr(seen.actions) if seen.some(act.Create, act.Cordon, *_DESTRUCTIVE) else None


def a_reclaimed_machine_is_not_created(seen: Seen) -> str | None:
    """Invariant 5."""
    return "creates" if seen.reclaiming and seen.some(act.Create) else None


def a_reclaim_in_progress_goes_on(seen: Seen) -> str | None:
    """Invariant 5: it stays stored until the machine is out, and then it is held."""
    if not seen.reclaiming or seen.status.reclaim is None:
        return "is dropped" if seen.reclaiming else None
    state = seen.status.reclaim.state
    if state is ReclaimState.IN_PROGRESS:
        return None
    parts = (seen.obs.capi_machine, seen.obs.infrastructure, seen.obs.bootstrap)
    left = any(
        not gone(part) and _foreign(seen, part, None) is None
        for part in parts
        if not isinstance(part, Absent)
    )
    return None if state is ReclaimState.HELD and not left else f"becomes {state} too early"


def the_request_is_the_last_thing_to_go(seen: Seen) -> str | None:
    """Invariant 5, section 6 step 6: after the hold is stored, or before the object itself goes.

    A stale one is cleared while its Machine comes up.
    """
    if not seen.some(act.ClearReclaimRequest):
        return None
    obs, capi = seen.obs, value_of(seen.obs.capi_machine)
    before, after = seen.stored.reclaim, seen.status.reclaim
    if capi is not None and after is not None and after.stale_cleared_for == capi.metadata.uid:
        return None
    parts = (obs.capi_machine, obs.infrastructure, obs.bootstrap)
    left = [part for part in parts if not isinstance(part, Absent) and _foreign(seen, part, None) is None]
    held = before is not None and before.state is ReclaimState.HELD
    fine = held or (seen.reclaiming and seen.some(act.RemoveFinalizer))
    return None if fine and not left else f"before {left or 'the hold is stored'}"


def what_cannot_be_read_stays_as_stored(seen: Seen) -> str | None:
    """Section 1: references stay while the Machine is Unknown.

    So does the phase, unless a removal now goes on blindly, one that is stored is what is wanted again, or one begins
    since something else of ours exists.
    """
    if not isinstance(seen.obs.capi_machine, Unknown):
        return None
    stored, status = seen.stored, seen.status
    if (status.machine_ref, status.provider_id) != (stored.machine_ref, stored.provider_id):
        return "references change"
    blindly = status.shutdown is not None and status.shutdown.manner is Manner.NOW
    begins = status.shutdown is not None and status.phase == Phase.SHUTTING_DOWN.value
    dependents = (seen.obs.infrastructure, seen.obs.bootstrap)
    exists = stored.shutdown is not None or any(isinstance(part, Present) for part in dependents)
    reported = seen.obs.failure is not None and status.phase == Phase.ERROR.value
    fine = blindly or reported or (begins and exists) or status.phase == stored.phase
    return None if fine else f"phase becomes {status.phase}"


def every_action_is_preconditioned(seen: Seen) -> str | None:
    """Section 8: a uid or a resourceVersion wherever a choice is encoded; creates are POSTs of our own name."""
    for action in seen.actions:
        match action:
            case act.Create():
                named = action.name == seen.obs.machine.metadata.name
                fine = named and action.manifest["metadata"]["name"] == action.name
            case act.Delete() | act.AnnotateMachine() | act.LabelMachine():
                fine = bool(action.target.uid)
            case act.AdoptOwner():
                fine = bool(action.target.uid and action.resource_version)
            case act.EvictPod() | act.DeletePod() | act.DeleteNode():
                fine = bool(action.uid)
            case act.ClearReclaimRequest():
                fine = bool(action.node.uid)
            case _:
                fine = bool(action.resource_version)
        if not fine:
            return repr(action)
    return None


def nothing_that_exists_is_created(seen: Seen) -> str | None:
    """Invariant 10: everything created has the machine's name, and no second one is asked for."""
    seen_parts: Mapping[act.Role, object] = {
        act.Role.MACHINE: seen.obs.capi_machine,
        act.Role.INFRASTRUCTURE: seen.obs.infrastructure,
        act.Role.BOOTSTRAP: seen.obs.bootstrap,
    }
    for action in seen.actions:
        if isinstance(action, act.Create):
            part = seen_parts[action.role]
            if isinstance(part, Present) and _foreign(seen, part, None) is None:
                return repr(action.role)
    return None


def every_word_is_listed(seen: Seen) -> str | None:
    """Types and reasons of conditions, and reasons of Events, stand in `core/api/reasons.py` with what they mean."""
    words = [entry.reason for entry in seen.status.conditions] + [
        event.reason for event in seen.decision.events
    ]
    types = [entry.type for entry in seen.status.conditions]
    unknown = {word for word in words if word not in REASONS} | {
        word for word in types if word not in CONDITION_TYPES
    }
    return str(sorted(unknown)) if unknown else None


def what_was_begun_is_held(seen: Seen) -> str | None:
    """Invariant 1: a create writes no status first, so what it left behind keeps its verdict, whatever the provider."""
    stored = seen.stored
    if stored.machine_ref is not None or stored.shutdown is not None or seen.decision.confirm:
        return None
    capi = value_of(seen.obs.capi_machine)
    begun = (
        capi is not None
        and not capi.metadata.deleting
        and _foreign(seen, seen.obs.capi_machine, None) is None
    )
    if not begun or seen.status == stored:
        return None
    spot = seen.status.spot_schedule
    if spot is None or spot.resolved or spot.active is not False:
        return None
    return "a create that was under way is held inactive"


def what_vanished_is_created_again_only_when_seen_live(seen: Seen) -> str | None:
    """Section 1: a recorded Machine is believed gone only by a live read."""
    if seen.stored.machine_ref is None or not seen.some(act.Create):
        return None
    return None if _machine_is_gone(seen) else "believes a cache"


def the_finalizer_goes_only_when_nothing_is_left(seen: Seen) -> str | None:
    if not seen.some(act.RemoveFinalizer):
        return None
    if not seen.obs.machine.metadata.deleting:
        return "the object stays"
    for part in (seen.obs.capi_machine, seen.obs.infrastructure, seen.obs.bootstrap):
        if not gone(part) and _foreign(seen, part, None) is None:
            return f"left: {part}"
    return None


def references_are_cleared_only_when_seen_live(seen: Seen) -> str | None:
    before, after = seen.stored.machine_ref, seen.status.machine_ref
    if before is None or after is not None:
        return None
    return None if _machine_is_gone(seen) else "believes a cache"


def a_question_is_all_that_is_asked(seen: Seen) -> str | None:
    """A decision that wants a live read wants nothing else."""
    decision = seen.decision
    if not decision.confirm:
        return None
    other = decision.groups or decision.events or decision.wake_at or decision.status != seen.stored
    return repr(decision) if other else None


def waking_lies_ahead(seen: Seen) -> str | None:
    at = seen.decision.wake_at
    return None if at is None or at > seen.now else f"{at}"


def owners_are_put_right_first(seen: Seen) -> str | None:
    """Section 1: before anything else, paused or not; while that fails the rest goes on after it."""
    firsts = [isinstance(action, _FIRST) for action in seen.actions]
    if any(firsts) and not all(firsts) and seen.obs.failure is None:
        return repr(seen.actions)
    return None if firsts == sorted(firsts, reverse=True) else f"not first: {seen.actions}"


def ready_means_active_with_a_ready_node(seen: Seen) -> str | None:
    if not seen.status.ready or seen.decision.confirm or seen.some(*_FIRST):
        return None
    node = value_of(seen.obs.node)
    fine = seen.status.phase == Phase.ACTIVE.value and (node is None or node.ready)
    return None if fine else f"ready in {seen.status.phase}"


def _waits_for_first_things(seen: Seen) -> bool:
    """The finalizer and the owners come before anything else; without either nothing is ours to do."""
    meta = seen.obs.machine.metadata
    if FINALIZER not in meta.finalizers:
        return True
    return any(
        (owner := owned_by(view.metadata, meta, MACHINE_KIND)) is not None and owner.uid != meta.uid
        for view in map(value_of, (seen.obs.capi_machine, seen.obs.infrastructure, seen.obs.bootstrap))
        if view is not None
    )


LAWS: Final[tuple[Law, ...]] = (
    only_allowed_phase_changes,
    status_round_trips,
    nothing_is_destroyed_without_stored_intent,
    a_beginning_is_only_stored,
    nothing_is_created_on_account_of_an_unknown,
    nothing_on_an_unknown_node_is_touched,
    an_unknown_machine_is_deleted_only_now_and_by_record,
    no_dependent_is_deleted_while_its_machine_may_exist,
    kill_switch_wins,
    a_killed_machine_is_deleted_at_once,
    nothing_foreign_is_touched,
    a_machine_is_deleted_only_for_a_reason,
    hold_outlasts_every_bound,
    a_pause_stops_everything_but_kill_and_reclaim,
    a_reclaimed_machine_is_not_created,
    a_reclaim_in_progress_goes_on,
    the_request_is_the_last_thing_to_go,
    what_cannot_be_read_stays_as_stored,
    every_action_is_preconditioned,
    nothing_that_exists_is_created,
    every_word_is_listed,
    what_was_begun_is_held,
    what_vanished_is_created_again_only_when_seen_live,
    the_finalizer_goes_only_when_nothing_is_left,
    references_are_cleared_only_when_seen_live,
    a_question_is_all_that_is_asked,
    waking_lies_ahead,
    owners_are_put_right_first,
    ready_means_active_with_a_ready_node,
)


def broken(seen: Seen) -> Iterator[str]:
    """Every law that the decision breaks, and how."""
    for law in LAWS:
        wrong = law(seen)
        if wrong is not None:
            yield f"{law.__name__}: {wrong}"
