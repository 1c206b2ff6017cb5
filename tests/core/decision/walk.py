"""Breadth-first through everything that can become of a small closed world.

From each state there are three kinds of edge: a whole pass, a pass that is cut by a crash right after its first write, and
every move that is possible. After a move comes a pass: moves without a pass in between would only be one bigger move.
"""

from collections import Counter, deque
from collections.abc import Sequence
from typing import Any

import attrs

from fivespot.core.decision.phase import Phase
from tests.core.decision import life as lives
from tests.core.decision.fingerprint import fingerprint
from tests.core.decision.life import LawBroken, Life
from tests.core.decision.moves import Move, behave

Change = tuple[Phase | None, Phase | None]


@attrs.define(kw_only=True)
class Walk:
    """What was seen on the way.

    Attributes:
        states: fingerprints, each with the way that led there first.
        complete: whether every reachable state was visited.
        broken: laws that were broken in a pass, with the way there.
        stranded: states from which a machine does not get where it is wanted.
        restless: states from which it does not come to rest by passes alone.
        changes: phase changes that were written.
    """

    states: dict[Any, tuple[str, ...]] = attrs.field(factory=dict)
    edges: int = 0
    at_rest: int = 0
    complete: bool = True
    broken: list[str] = attrs.field(factory=list)
    stranded: list[str] = attrs.field(factory=list)
    restless: list[str] = attrs.field(factory=list)
    changes: set[Change] = attrs.field(factory=set)


def walk(moves: Sequence[Move], *, crashes: bool = False, limit: int = 1_000_000) -> Walk:
    """Walk from a machine that was just created through at most `limit` states."""
    return _Walker(moves=moves, cuts=(None, 1) if crashes else (None,), limit=limit).walk(lives.start())


@attrs.define(kw_only=True)
class _Walker:
    moves: Sequence[Move]
    cuts: Sequence[int | None]
    limit: int
    found: Walk = attrs.field(factory=Walk)
    written: "Counter[tuple[str | None, str | None]]" = attrs.field(factory=Counter)
    queue: "deque[tuple[Any, Life, bool]]" = attrs.field(factory=deque)
    moved: set[Any] = attrs.field(factory=set)
    good: set[Any] = attrs.field(factory=set)
    after: dict[Any, Any] = attrs.field(factory=dict)

    def walk(self, first: Life) -> Walk:
        first = first.copy()
        first.changes = self.written
        self._reach(first, (), moved=False)
        while self.queue:
            mark, life, again = self.queue.popleft()
            if life.cell.gone:
                continue
            if not again:
                self._passes(mark, life)
                self._ends_well(mark, life)
            if mark not in self.moved:
                self._moves(mark, life)
        self._all_settle()
        self.found.changes = {(_phase(before), _phase(after)) for before, after in self.written}
        return self.found

    def _reach(self, life: Life, way: tuple[str, ...], *, moved: bool) -> Any:
        mark = fingerprint(life)
        if mark not in self.found.states:
            if len(self.found.states) >= self.limit:
                self.found.complete = False
                return mark
            self.found.states[mark] = way
            if moved:
                self.moved.add(mark)
            self.queue.append((mark, life, False))
        elif not moved and mark in self.moved:
            self.moved.discard(mark)
            self.queue.append((mark, life, True))
        return mark

    def _passes(self, mark: Any, life: Life) -> None:
        way = self.found.states[mark]
        for cut in self.cuts:
            child = life.copy()
            self.found.edges += 1
            try:
                changed = child.step(cut)
                if not changed:
                    child.keeps_still()
            except LawBroken as error:
                self.found.broken.append(f"{' > '.join(way)}: {error}")
                return
            reached = self._reach(child, (*way, "pass" if cut is None else "crash"), moved=False)
            if cut is None:
                self.found.at_rest += not changed
                self.after[mark] = self._beyond(mark, child, reached) if changed else None

    def _beyond(self, mark: Any, life: Life, reached: Any) -> Any:
        """Where passes lead on from a state; a pass that only rewrites the report leads to one that looks the same."""
        beyond = life.copy()
        for _ in range(lives.PASSES):
            if reached != mark:
                return reached
            if not beyond.step():
                return None
            reached = fingerprint(beyond)
        return mark

    def _moves(self, mark: Any, life: Life) -> None:
        way = self.found.states[mark]
        for move in self.moves:
            child = life.copy()
            if move(child):
                self.found.edges += 1
                self._reach(child, (*way, move.__name__), moved=True)

    def _ends_well(self, mark: Any, life: Life) -> None:
        try:
            behave(life.copy(), self.good)
        except LawBroken as error:
            self.found.stranded.append(f"{' > '.join(self.found.states[mark])}: {error}")

    def _all_settle(self) -> None:
        for mark in self.after:
            here: Any = mark
            for _ in range(lives.PASSES):
                here = self.after.get(here)
                if here is None:
                    break
            else:
                self.found.restless.append(" > ".join(self.found.states[mark]))


def _phase(text: str | None) -> Phase | None:
    return Phase(text) if text is not None else None
