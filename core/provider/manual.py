"""ManualSpotSchedule: a person's toggle, for ever or until an instant, after which it says something else or abstains."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import attrs

from fivespot.core.api import reasons
from fivespot.core.api.providers import ManualSpec, Then
from fivespot.core.instant import later
from fivespot.core.provider.answer import Answer, Inputs, Unaided
from fivespot.core.provider.reading import read

_THEN: Final = {Then.ACTIVE: True, Then.INACTIVE: False, Then.ABSTAIN: None}


@attrs.frozen
class Manual(Unaided):
    """The toggle; `until` is a whole second, the first at which `then` holds."""

    active: bool
    until: datetime | None
    then: bool | None

    def answer(self, now: datetime, inputs: Inputs) -> Answer:  # noqa: ARG002 - it needs none
        """What the person has set, and after `until` what `then` says."""
        if self.until is None or now < self.until:
            return self._set(self.active, self.until, changes=self.active is not self.then)
        if self.then is None:
            text = f"it held until {self.until:%Y-%m-%dT%H:%M:%SZ}, and abstains since"
            return Answer(active=None, reason=reasons.EXPIRED, message=text)
        return self._set(self.then, None, changes=False)

    def _set(self, active: bool, until: datetime | None, *, changes: bool) -> Answer:  # noqa: FBT001 - a value
        word = "active" if active else "inactive"
        return Answer(
            active=active,
            reason=reasons.SWITCHED_ON if active else reasons.SWITCHED_OFF,
            message=f"{word} until {until:%Y-%m-%dT%H:%M:%SZ}"
            if until
            else f"{word} until somebody changes it",
            # To abstain is a change too: whoever asks next gets another answer.
            next_transition=until if changes else None,
            wake_at=until,
        )


def read_manual(spec: Mapping[str, Any]) -> Manual:
    """Read a ManualSpotSchedule's spec; InvalidSpec when it is refused."""
    found = read(spec, ManualSpec)
    until = found.until
    if until is not None and until.microsecond:
        # Statuses have whole seconds: the first at which it has passed.
        until = later(until.replace(microsecond=0), timedelta(seconds=1))
    return Manual(found.active, until, _THEN[found.then] if found.then is not None else None)
