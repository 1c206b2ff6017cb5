"""One row of the parity table: a manifest, and what has to be said about it."""

from collections.abc import Mapping
from typing import Any

import attrs

from tests import builders
from tests.builders import Manifest, changed

_DEFAULTS = {
    "ScheduledMachine": builders.scheduled_machine,
    "TimeBasedSpotSchedule": builders.time_based,
    "CapitalMarketsSchedule": builders.capital_markets,
    "ManualSpotSchedule": builders.manual,
    "CompositeSpotSchedule": builders.composite,
    "PrometheusSpotSchedule": builders.prometheus,
}


@attrs.frozen(kw_only=True)
class Row:
    """A valid manifest of `kind`, changed.

    Attributes:
        refused_at: the field that is refused; None when the manifest is accepted.
        only: who refuses it where one of the two cannot know (`ours` or `server`), else empty.
        because: why only one of them can.
        before: for an update, the changes that make the stored object; None for a creation.
        machine_exists: for an update, whether the stored status names a CAPI Machine.
    """

    id: str
    kind: str
    changes: Mapping[str, Any]
    refused_at: str | None = None
    only: str = ""
    because: str = ""
    before: Mapping[str, Any] | None = None
    machine_exists: bool = False

    @property
    def document(self) -> Manifest:
        """The manifest that is judged."""
        return changed(_DEFAULTS[self.kind](), self.changes)

    @property
    def stored(self) -> Manifest:
        """For an update, the object before it."""
        return changed(_DEFAULTS[self.kind](), self.before or {})

    def refused_by(self, who: str) -> bool:
        """Whether `who`, `ours` or `server`, refuses it."""
        return self.refused_at is not None and self.only in {"", who}


class Rows:
    """Collects the rows of one kind."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.rows: list[Row] = []

    def accepts(self, name: str, field: str, *values: Any, **more: Any) -> None:
        """Each value of `field` is accepted."""
        self._add(name, field, values, None, more)

    def refuses(self, name: str, field: str, *values: Any, at: str | None = None, **more: Any) -> None:
        """Each value of `field` is refused, at `at` or else the field itself."""
        self._add(name, field, values, at or field, more)

    def update(self, name: str, before: Mapping[str, Any], after: Mapping[str, Any], **more: Any) -> None:
        """An object that was created with `before` becomes one with `after`."""
        self.rows.append(Row(id=f"{self.kind}: {name}", kind=self.kind, before=before, changes=after, **more))

    def _add(
        self, name: str, field: str, values: tuple[Any, ...], at: str | None, more: dict[str, Any]
    ) -> None:
        for number, value in enumerate(values, start=1):
            suffix = f" {number}" if len(values) > 1 else ""
            changes = {field: value, **more.get("also", {})}
            rest = {key: item for key, item in more.items() if key != "also"}
            self.rows.append(
                Row(id=f"{self.kind}: {name}{suffix}", kind=self.kind, changes=changes, refused_at=at, **rest)
            )
