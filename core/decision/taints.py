"""Taints that we own on a Node: which to add, change and take off, without ever losing somebody else's.

Identity is (key, effect). What the Node's annotation `applied-taints` lists is ours; it is written in the same patch as
the taints, so that no crash can make the two disagree.
"""

import json
from collections.abc import Mapping, Sequence

import attrs

from fivespot.core.api.codec import encode
from fivespot.core.api.scheduled_machine import NodeTaint, Taint
from fivespot.core.names import APPLIED_TAINTS


@attrs.frozen(kw_only=True)
class TaintPlan:
    """The Node's new list of taints, which of them are ours, and those that we may not touch.

    `changed` tells whether anything has to be written.
    """

    taints: tuple[Taint, ...]
    applied: tuple[Taint, ...]
    conflicts: tuple[Taint, ...]
    changed: bool


def plan_taints(wanted: Sequence[NodeTaint], found: Sequence[Taint], applied: Sequence[Taint]) -> TaintPlan:
    """Merge `wanted` into what the Node has.

    Absent: add. Ours with another value wanted: update. Somebody else's with the same identity, or ours but changed by
    somebody: leave it and report it, and still apply the others. No longer wanted and unchanged: remove.
    """
    mine = {_identity(taint): taint for taint in applied}
    there = {_identity(taint): taint for taint in found}
    goal = {(taint.key, taint.effect.value): _as_taint(taint) for taint in wanted}
    conflicts = tuple(
        taint for key, taint in there.items() if key in goal and not _is_unchanged(taint, mine.get(key))
    )
    blocked = {_identity(taint) for taint in conflicts}
    kept = [
        taint
        for key, taint in there.items()
        if key in blocked or (key not in goal and not _is_unchanged(taint, mine.get(key)))
    ]
    ours = [taint for key, taint in goal.items() if key not in blocked]
    result, now_ours = (*kept, *ours), tuple(ours)
    changed = set(result) != set(there.values()) or set(now_ours) != set(applied)
    return TaintPlan(taints=result, applied=now_ours, conflicts=conflicts, changed=changed)


def _identity(taint: Taint) -> tuple[str, str]:
    return taint.key, taint.effect


def _as_taint(taint: NodeTaint) -> Taint:
    return Taint(key=taint.key, value=taint.value or None, effect=taint.effect.value)


def _is_unchanged(found: Taint, applied: Taint | None) -> bool:
    return applied is not None and (found.value or None) == (applied.value or None)


def applied_taints(annotations: Mapping[str, str]) -> tuple[Taint, ...]:
    """The taints that a Node's annotations record as ours; a malformed record is none."""
    try:
        entries = json.loads(annotations.get(APPLIED_TAINTS, "[]"))
        return tuple(
            Taint(key=entry["key"], value=entry.get("value") or None, effect=entry["effect"])
            for entry in entries
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return ()


def taints_annotation(applied: Sequence[Taint]) -> str:
    """The value of the annotation that records them."""
    return json.dumps([encode(taint) for taint in applied], separators=(",", ":"))
