"""Who leads: a pure state machine over one Lease, with the time handed in.

Theory of operation. No clock is ever compared with another one; each side measures by its own monotonic clock, and
each errs to its own disadvantage:

    holder       leads from before it SENT its last successful write, for renew_deadline
    contender    may take over from when it SAW the Lease change last, after lease_duration without another change

The server has applied the holder's write after it was sent and before anybody saw it, and renew_deadline is the shorter
time: the holder has always stopped when a contender begins, however slow the network is and however long either was
paused. A write replaces exactly the version that its author has seen, so a renewal that the contender has missed makes
its take-over fail, and a renewal that arrives late fails after a take-over.

    unknown --seen--> free ------write------> ours --write--> ours, longer
       ^               ^ time, or released
       |             theirs <--seen-- any
       +-- conflict, or outcome unknown: read again; leadership is neither longer nor shorter for it

An identity belongs to one process, for ever: what says our name was written by us.
"""

import math
from datetime import datetime
from typing import TypeAlias

import attrs

from fivespot.adapters.kube.lease import Record
from fivespot.adapters.kube.watching import older
from fivespot.core.errors import InvalidSpec

_NEVER = float("-inf")
_JITTER = 1.2
"""A renewal may be this much later than its period, and has to fit into the deadline all the same."""


@attrs.frozen(kw_only=True)
class Timing:
    """How long leadership lasts without a renewal; all in seconds. The defaults are Kubernetes' own.

    Attributes:
        lease_duration: others wait so long without a sign of the leader before they take over.
        renew_deadline: the leader stops so long after it sent its last successful renewal.
        retry_period: between renewals, and between tries to become leader.
    """

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __attrs_post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            InvalidSpec: the field, its value, and what it has to be.
        """
        for name, value in attrs.asdict(self).items():
            if not 0 < value < math.inf:
                raise InvalidSpec(name, value, "write a positive number of seconds")
        if self.lease_duration <= self.renew_deadline:
            remedy = (
                f"it has to be longer than renew_deadline ({self.renew_deadline:g} s), "
                "so that a leader has stopped before another one begins"
            )
            raise InvalidSpec("lease_duration", self.lease_duration, remedy)
        if self.renew_deadline <= _JITTER * self.retry_period:
            remedy = (
                f"it has to be longer than {_JITTER:g} times retry_period ({self.retry_period:g} s), "
                "so that a leader can renew in time"
            )
            raise InvalidSpec("renew_deadline", self.renew_deadline, remedy)


@attrs.frozen
class Read:
    """The Lease has to be read."""


@attrs.frozen
class Write:
    """The Lease has to be written, now.

    Attributes:
        record: what to write. Its version is the one that is to be replaced; without one the Lease is created.
        sent: the reading of the clock before it is sent.
    """

    record: Record
    sent: float


@attrs.frozen
class Wait:
    """There is nothing to do before a reading of the clock, unless the Lease changes."""

    until: float


Step: TypeAlias = Read | Write | Wait


class Electing:
    """One candidate. At most one write is under way at a time.

    Args:
        identity: who this process is; no other process, before or after, has the same.
        timing: how long things last.

    Attributes:
        record: the Lease as last seen; None when it is not there, or was never seen.
        led: whether this candidate has ever led.
        leads_until: the reading of the clock at which leadership ends if nothing is renewed; in the past when it has.
    """

    def __init__(self, identity: str, timing: Timing) -> None:
        self.identity = identity
        self.timing = timing
        self.record: Record | None = None
        self.led = False
        self.leads_until = _NEVER
        # The latest version ever seen: it outlives the Lease, which somebody may delete and others make again.
        self._newest = ""
        # Whether what is in `record` may be what the server has, for all we know.
        self._known = False
        self._free_at = _NEVER
        self._next_read = _NEVER
        self._next_write = _NEVER
        # Whether the Lease was seen in other hands since the last write was sent.
        self._overtaken = False

    def leads(self, now: float) -> bool:
        """Whether this candidate may act at this reading of its clock."""
        return now < self.leads_until

    def step(self, now: float, at: datetime) -> Step:
        """What to do next. A Write has to be sent, and what came of it told, before the next call.

        Args:
            now: the monotonic clock.
            at: the wall clock, for the people who read the Lease.
        """
        if not self._known:
            return Read() if now >= self._next_read else Wait(self._next_read)
        when = max(self._free_at, self._next_write)
        if now < when:
            return Wait(when)
        self._next_write = now + self.timing.retry_period
        self._overtaken = False
        return Write(self._claim(at), now)

    def seen(self, record: Record | None, now: float) -> None:
        """Take in a word about the Lease, from a read, a watch or an answer; None when it is not there.

        Args:
            record: what it says. Words older than what is known are not listened to.
            now: the monotonic clock *after* the word was received.
        """
        before = self.record
        if record is not None:
            if older(record.version, self._newest):
                return
            self._newest = record.version
        self._known = True
        if record is None:
            if before is not None:
                self._vanished(before, now)
        elif before is None or record.version != before.version:
            self._changed(record, now)

    def written(self, write: Write, record: Record, now: float) -> None:
        """A write succeeded; `record` is the server's answer."""
        overtaken = self._overtaken
        self.seen(record, now)
        if overtaken:
            # Somebody wrote after us, and the news of that was faster than our answer.
            self._known = False
            return
        self.leads_until = write.sent + self.timing.renew_deadline
        self.led = True

    def doubted(self) -> None:
        """A write met another version, or nobody knows whether it was done: read again before the next."""
        self._known = False

    def unread(self, now: float) -> None:
        """A read failed: again after a period."""
        self._next_read = now + self.timing.retry_period

    def resign(self, now: float) -> Write | None:
        """Lead no longer. The write that gives the Lease back; None when it is not ours."""
        self.leads_until = _NEVER
        if self.record is None or self.record.holder != self.identity:
            return None
        return Write(attrs.evolve(self.record, holder=""), now)

    def _claim(self, at: datetime) -> Record:
        before = self.record or Record()
        mine = before.holder == self.identity
        first = self.record is None
        return attrs.evolve(
            before,
            holder=self.identity,
            duration=math.ceil(self.timing.lease_duration),
            transitions=before.transitions + (0 if mine or first else 1),
            acquired=before.acquired if mine and before.acquired is not None else at,
            renewed=at,
        )

    def _changed(self, record: Record, now: float) -> None:
        self.record = record
        if record.holder == self.identity:
            self._free_at = _NEVER
            return
        self.leads_until = _NEVER
        self._overtaken = True
        self._free_at = now + self._patience(record) if record.holder else _NEVER

    def _vanished(self, before: Record, now: float) -> None:
        """Somebody has deleted the Lease. Who held it may not know yet: whoever else wants it has to wait."""
        self.record = None
        # One that was free when we saw it last may have been taken since.
        held = before.holder != self.identity
        self._free_at = now + self._patience(before) if held else _NEVER

    def _patience(self, record: Record) -> float:
        # The holder may run with other settings than ours.
        return max(float(record.duration), self.timing.lease_duration)
