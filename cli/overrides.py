"""What a person says of an override's end, and is told of the override: the words of `5spot override`."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

import attrs
import click

from fivespot.cli.output import span
from fivespot.core.instant import format_instant
from fivespot.core.override.plan import Override, Plan, Wish
from fivespot.core.override.situation import Situation

_ONE_SECOND: Final = timedelta(seconds=1)


@attrs.frozen
class Until:
    """What stands behind --until: as it was written, and what it means."""

    text: str
    value: datetime | timedelta

    def after(self, now: datetime) -> datetime:
        """The whole second from which on it is over.

        Raises:
            click.BadParameter: it is over already, or never within the calendar.
        """
        try:
            at = now + self.value if isinstance(self.value, timedelta) else self.value
            whole = at.replace(microsecond=0) + (_ONE_SECOND if at.microsecond else timedelta())
        except OverflowError as error:
            message = f"{self.text!r} is after the year 9999; leave it out for an override without an end"
            raise click.BadParameter(message, param_hint="'--until'") from error
        if at <= now:
            message = (
                f"{self.text!r} is not in the future: it is {format_instant(now.replace(microsecond=0))} now"
            )
            raise click.BadParameter(message, param_hint="'--until'")
        return whole


def told(seen: Situation, wish: Wish, made: Plan, until: Until | None) -> Iterator[str]:
    """What a person is told before anything is done: what happens now, until when, what then, what to know, each step."""
    meta = seen.machine.metadata
    shown = f"sm/{meta.name} in namespace {meta.namespace}"
    if made.steps and isinstance(wish, Override):
        yield f"{shown}: {_effect(seen, wish)}"
        yield f"until: {_end(wish, until)}"
    elif made.steps:
        yield f"{shown}: the override goes"
    elif isinstance(wish, Override):
        yield f"{shown}: nothing to do, the override stands as it is wished"
    else:
        yield f"{shown}: nothing to clear"
    if made.steps and made.schedule is not None:
        after = "then" if isinstance(wish, Override) else "now"
        yield f"{after}: {made.schedule.label} decides"
    yield from (f"note: {note}" for note in made.notes)
    if made.reverted:
        yield f"note: it will be undone by {', '.join(dict.fromkeys(trace.tool for trace in made.reverted))}"
    yield from (f"  {number}. {step}" for number, step in enumerate(made.steps, 1))


def _effect(seen: Situation, wish: Override) -> str:
    """What happens now. `machineRef` tells whether there is a Machine; the phase is told as it is."""
    status = seen.machine.status
    phase = f"{status.phase} now" if status.phase else "without a status yet"
    if status.machine_ref is not None:
        return f"it is {phase}, and {'stays in' if wish.active else 'is drained and goes out'}"
    return f"it is {phase}, and {'comes in' if wish.active else 'stays out'}"


def _end(wish: Override, until: Until | None) -> str:
    if wish.until is None or until is None:
        return "somebody takes it away"
    given = f" ({until.text})" if until.text != format_instant(wish.until) else ""
    return f"{format_instant(wish.until)}{given}, in {span(wish.until - datetime.now(UTC))}"
