"""Taints that we own on a Node: which to add, change and take off, without ever losing somebody else's.

Identity is (key, effect). What the Node's annotation `applied-taints` lists is ours; it is written in the same patch as
the taints, so that no crash can make the two disagree.
"""

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from fivespot.core.api.codec import decode, encode
from fivespot.core.api.scheduled_machine import NodeTaint, Taint
from fivespot.core.decision.observation import FoundTaint
from fivespot.core.errors import InvalidSpec
from fivespot.core.names import APPLIED_TAINTS


@attrs.frozen(kw_only=True)
class TaintPlan:
    """The Node's new list of taints, which of them are ours, and those that we may not touch.

    `changed` tells whether anything has to be written.
    """

    taints: tuple[FoundTaint, ...]
    applied: tuple[Taint, ...]
    conflicts: tuple[FoundTaint, ...]
    changed: bool


def plan_taints(
    wanted: Sequence[NodeTaint], found: Sequence[FoundTaint], applied: Sequence[Taint]
) -> TaintPlan:
    """Merge `wanted` into what the Node has.

    Absent: add. Ours with another value wanted: update. Somebody else's with the same identity, or ours but changed by
    somebody: leave it and report it, and still apply the others. No longer wanted and unchanged: remove.
    """
    if _as_wanted(wanted, found, applied):
        return TaintPlan(taints=tuple(found), applied=tuple(applied), conflicts=(), changed=False)
    mine = {(taint.key, taint.effect): taint.value or None for taint in applied}
    goal = {(taint.key, taint.effect.value): taint.value or None for taint in wanted}
    there = {(taint.key, taint.effect): taint.value or None for taint in found}
    kept: list[FoundTaint] = []
    conflicts: list[FoundTaint] = []
    for taint, (identity, value) in zip(found, there.items(), strict=True):
        ours = identity in mine and mine[identity] == value
        if not ours and identity in goal:
            conflicts.append(taint)
        if not ours or (identity in goal and goal[identity] == value):
            kept.append(taint)
    blocked = {(taint.key, taint.effect) for taint in conflicts}
    owned = {identity: value for identity, value in goal.items() if identity not in blocked}
    added = {
        identity: value
        for identity, value in owned.items()
        if identity not in there or there[identity] != value
    }
    return TaintPlan(
        taints=(
            *kept,
            *[FoundTaint(key=key, effect=effect, value=added[key, effect]) for key, effect in added],
        ),
        applied=tuple([Taint(key=key, effect=effect, value=owned[key, effect]) for key, effect in owned]),
        conflicts=tuple(conflicts),
        changed=bool(added) or len(kept) != len(found) or owned != mine,
    )


def _as_wanted(wanted: Sequence[NodeTaint], found: Sequence[FoundTaint], applied: Sequence[Taint]) -> bool:
    """Whether the Node has, and records in this order, what is wanted: nearly always, and soon told."""
    if len(wanted) != len(applied):
        return False
    for goal, mine in zip(wanted, applied, strict=True):
        value = goal.value or None
        if mine.key != goal.key or mine.effect != goal.effect.value or mine.value != value:
            return False
        for taint in found:
            if taint.key == mine.key and taint.effect == mine.effect:
                if taint.value != value:
                    return False
                break
        else:
            return False
    return True


def applied_taints(annotations: Mapping[str, str]) -> tuple[Taint, ...]:
    """The taints that a Node's annotations record as ours; a malformed record is none."""
    text = annotations.get(APPLIED_TAINTS)
    return _recorded(text) if text is not None else ()


@functools.lru_cache(maxsize=1024)
def _recorded(text: str) -> tuple[Taint, ...]:
    try:
        return tuple([_taint(entry) for entry in json.loads(text)])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, InvalidSpec):
        return ()


def _taint(entry: Any) -> Taint:
    """An entry of the record; key and effect have to be there."""
    taint = decode(entry, Taint)
    if not taint.key or not taint.effect:
        message = "a taint has a key and an effect"
        raise ValueError(message)
    return attrs.evolve(taint, value=taint.value or None)


def taints_annotation(applied: Sequence[Taint]) -> str:
    """The value of the annotation that records them."""
    return json.dumps([encode(taint) for taint in applied], separators=(",", ":"))
