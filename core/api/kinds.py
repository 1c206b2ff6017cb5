"""The kinds that this project defines, and the CustomResourceDefinition of each."""

import functools
from typing import Any, Final

import attrs

from fivespot.core.api import providers
from fivespot.core.api.allowed import DEFAULT_GROUPS, AllowedGroups, narrowed
from fivespot.core.api.openapi import openapi
from fivespot.core.api.scheduled_machine import ScheduledMachine
from fivespot.core.api.schema import Schema, schema_of
from fivespot.core.names import (
    MACHINE_GROUP,
    MACHINE_KIND,
    MACHINE_VERSION,
    PROVIDER_GROUP,
    PROVIDER_VERSION,
)


@attrs.frozen(kw_only=True)
class Column:
    """A column of `kubectl get`."""

    name: str
    path: str
    type: str = "string"


@attrs.frozen(kw_only=True)
class Kind:
    """One kind: how the API server knows it, and the attrs model that says what it may contain.

    Attributes:
        allowed: for the kind that embeds objects of others, of which groups.
    """

    group: str
    version: str
    name: str
    plural: str
    short: str
    model: type
    columns: tuple[Column, ...]
    allowed: AllowedGroups | None = None

    @property
    def api_version(self) -> str:
        """`group/version`."""
        return f"{self.group}/{self.version}"

    @property
    def schema(self) -> Schema:
        """The schema tree of the whole object, without `apiVersion`, `kind` and `metadata`."""
        return _schema(self.model, self.allowed)


@functools.cache
def _schema(model: type, allowed: AllowedGroups | None) -> Schema:
    schema = schema_of(model)
    return narrowed(schema, allowed) if allowed is not None else schema


_AGE: Final = Column(name="Age", path=".metadata.creationTimestamp", type="date")


def _provider(name: str, plural: str, short: str, model: type, *between: Column) -> Kind:
    return Kind(
        group=PROVIDER_GROUP,
        version=PROVIDER_VERSION,
        name=name,
        plural=plural,
        short=short,
        model=model,
        columns=(
            Column(name="Active", path=".status.active", type="boolean"),
            *between,
            Column(name="NextTransition", path=".status.nextTransitionTime"),
            _AGE,
        ),
    )


_ENABLED: Final = Column(name="Enabled", path=".spec.enabled", type="boolean")
_TIMEZONE: Final = Column(name="Timezone", path=".spec.timezone")

SCHEDULED_MACHINE: Final = Kind(
    group=MACHINE_GROUP,
    version=MACHINE_VERSION,
    name=MACHINE_KIND,
    plural="scheduledmachines",
    short="sm",
    model=ScheduledMachine,
    allowed=DEFAULT_GROUPS,
    columns=(
        Column(name="Phase", path=".status.phase"),
        Column(name="Ready", path=".status.ready", type="boolean"),
        Column(name="InSchedule", path=".status.inSchedule", type="boolean"),
        Column(name="Enabled", path=".spec.enabled", type="boolean"),
        Column(name="Schedule", path=".spec.schedule.kind"),
        Column(name="Reason", path=".status.decidedBy"),
        Column(name="Next", path=".status.nextTransition"),
        Column(name="KillSwitch", path=".spec.killSwitch", type="boolean"),
        _AGE,
    ),
)
TIME_BASED: Final = _provider(
    "TimeBasedSpotSchedule",
    "timebasedspotschedules",
    "tbss",
    providers.TimeBasedSpotSchedule,
    _ENABLED,
    _TIMEZONE,
)
CAPITAL_MARKETS: Final = _provider(
    "CapitalMarketsSchedule", "capitalmarketsschedules", "cms", providers.CapitalMarketsSchedule, _TIMEZONE
)
MANUAL: Final = _provider("ManualSpotSchedule", "manualspotschedules", "mss", providers.ManualSpotSchedule)
COMPOSITE: Final = _provider(
    "CompositeSpotSchedule", "compositespotschedules", "css", providers.CompositeSpotSchedule
)
PROMETHEUS: Final = _provider(
    "PrometheusSpotSchedule", "prometheusspotschedules", "pss", providers.PrometheusSpotSchedule
)

KINDS: Final = (SCHEDULED_MACHINE, TIME_BASED, CAPITAL_MARKETS, MANUAL, COMPOSITE, PROMETHEUS)
SCHEDULE_KINDS: Final = (TIME_BASED.name, CAPITAL_MARKETS.name)
"""The provider kinds whose answer the schedule engine computes."""


@functools.cache
def scheduled_machine(allowed: AllowedGroups) -> Kind:
    """The kind of machines, where these groups may be embedded."""
    return attrs.evolve(SCHEDULED_MACHINE, allowed=allowed)


@functools.cache
def kinds(allowed: AllowedGroups) -> tuple[Kind, ...]:
    """All of them, where these groups may be embedded."""
    return tuple(scheduled_machine(allowed) if kind is SCHEDULED_MACHINE else kind for kind in KINDS)


def kind_of(api_version: str, kind: str) -> Kind | None:
    """The kind of that name in that group, whatever the version; None when it is not ours."""
    group = api_version.rpartition("/")[0]
    return next((known for known in KINDS if known.group == group and known.name == kind), None)


def crd(kind: Kind) -> dict[str, Any]:
    """The CustomResourceDefinition of a kind, ready to be applied."""
    schema = openapi(kind.schema)
    schema["properties"] = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        # Named for the rules: a fieldPath may only point to what the schema knows.
        "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
        **schema["properties"],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "shortNames": [kind.short],
                "categories": ["fivespot"],
            },
            "versions": [
                {
                    "name": kind.version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [_column(column) for column in kind.columns],
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def _column(column: Column) -> dict[str, Any]:
    return {"name": column.name, "type": column.type, "jsonPath": column.path}
