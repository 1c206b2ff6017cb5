"""The provider kinds that ship with 5-Spot, and the status that any provider publishes."""

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final

import attrs

from fivespot.core.api.common import Condition, Metadata
from fivespot.core.api.duration import Duration
from fivespot.core.api.scheduled_machine import ScheduleReference, SecretKeyReference
from fivespot.core.api.schedules import CapitalMarketsSpec, TimeBasedSpec
from fivespot.core.api.schema import Bounds, Rule, prop, rules
from fivespot.core.instant import parse_instant


class Then(Enum):
    """What a ManualSpotSchedule says after `until`."""

    ACTIVE = "Active"
    INACTIVE = "Inactive"
    ABSTAIN = "Abstain"


@rules(
    Rule(
        cel="has(self.until) == has(self.then)",
        holds=lambda value: (value.get("until") is None) == (value.get("then") is None),
        remedy="write `until` and `then` together: what should hold after that instant?",
        field="then",
    ),
)
@attrs.frozen(kw_only=True)
class ManualSpec:
    """A toggle, for ever or until an instant."""

    active: bool = prop("The answer.")
    until: datetime | None = prop(
        "Until when it holds.",
        default=None,
        bounds=Bounds(
            rules=(
                Rule(
                    cel="self < timestamp('9999-12-31T23:59:59.999999999Z')",
                    holds=lambda value: parse_instant(value) <= datetime.max.replace(tzinfo=UTC),
                    remedy="write an instant before the year 10000 in UTC",
                ),
            )
        ),
    )
    then: Then | None = prop("What holds after `until`.", default=None)


_MEMBERS: Final = Bounds(min_items=1, max_items=32, remedy="write 1 to 32 provider references")
_COMPOSITIONS: Final = ("allOf", "anyOf", "not", "firstOf")


@rules(
    Rule(
        cel="[has(self.allOf), has(self.anyOf), has(self.not), has(self.firstOf)].filter(given, given).size() == 1",
        holds=lambda value: sum(value.get(name) is not None for name in _COMPOSITIONS) == 1,
        remedy="write exactly one of allOf, anyOf, not, firstOf",
    ),
)
@attrs.frozen(kw_only=True)
class CompositeSpec:
    """Logic over other providers of the same namespace."""

    all_of: tuple[ScheduleReference, ...] | None = prop("Active when all are.", default=None, bounds=_MEMBERS)
    any_of: tuple[ScheduleReference, ...] | None = prop("Active when any is.", default=None, bounds=_MEMBERS)
    not_: tuple[ScheduleReference, ...] | None = prop(
        "Active when this one is not.",
        default=None,
        wire="not",
        bounds=Bounds(min_items=1, max_items=1, remedy="write one provider reference"),
    )
    first_of: tuple[ScheduleReference, ...] | None = prop(
        "The first that does not abstain.", default=None, bounds=_MEMBERS
    )


_URL: Final = Bounds(
    pattern=r"^https?://[^/?#@\x00-\x20]+(/[^?#\x00-\x20]*)?$",
    max_length=2048,
    remedy="write the base URL of Prometheus, http or https, without credentials",
)


@attrs.frozen(kw_only=True)
class PrometheusTls:
    """How the server is verified."""

    ca_secret_ref: SecretKeyReference | None = prop("Secret with the CA certificate.", default=None)
    server_name: str | None = prop(
        "Name in its certificate.",
        default=None,
        bounds=Bounds(
            pattern="^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?([.][A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)*$",
            min_length=1,
            max_length=253,
            remedy="write a host name, such as prometheus.example.com",
        ),
    )


def _plain(value: Mapping[str, Any]) -> bool:
    return str(value.get("url", "")).startswith("http:")


@rules(
    Rule(
        cel="!has(self.bearerTokenSecretRef) || !self.url.startsWith('http:')",
        holds=lambda value: value.get("bearerTokenSecretRef") is None or not _plain(value),
        remedy="a token goes over https only: write an https url, or leave bearerTokenSecretRef out",
        field="bearerTokenSecretRef",
    ),
    Rule(
        cel="!has(self.tls) || !self.url.startsWith('http:')",
        holds=lambda value: value.get("tls") is None or not _plain(value),
        remedy="over http nothing is verified: write an https url, or leave tls out",
        field="tls",
    ),
)
@attrs.frozen(kw_only=True)
class PrometheusSpec:
    """The truth of a PromQL query."""

    url: str = prop("Base URL of the server.", bounds=_URL)
    query: str = prop(
        "PromQL; true while any sample is not zero, so compare with bool: `sum(load) < bool 1`.",
        bounds=Bounds(min_length=1, max_length=8192),
    )
    interval: Duration = prop(
        "How often it is asked.",
        default=Duration.parse("30s"),
        server_default="30s",
        bounds=Bounds(
            rules=(
                Rule(
                    cel="!self.matches('^0+[smh]$')",
                    holds=lambda value: value.strip("0") not in {"s", "m", "h"},
                    remedy="write at least 1s",
                ),
            )
        ),
    )
    for_: Duration = prop(
        "How long a change must hold before it is published.",
        default=Duration.parse("0s"),
        server_default="0s",
        wire="for",
    )
    tls: PrometheusTls | None = prop("How the server is verified.", default=None)
    bearer_token_secret_ref: SecretKeyReference | None = prop("Secret with a bearer token.", default=None)


@attrs.frozen(kw_only=True)
class ProviderStatus:
    """What any provider publishes, and all that is ever read of one."""

    active: bool | None = prop("Should the referencing machines exist now?", default=None)
    observed_generation: int | None = prop("The generation of the spec this answers for.", default=None)
    last_transition_time: datetime | None = prop("When `active` last changed.", default=None)
    next_transition_time: datetime | None = prop("When it changes next; null: never.", default=None)
    effective_timezone: str | None = prop("The zone that was used.", default=None)
    conditions: tuple[Condition, ...] = prop(
        "Ready tells whether `active` can be trusted.",
        default=(),
        bounds=Bounds(map_keys=("type",), max_items=64),
    )


@attrs.frozen(kw_only=True)
class TimeBasedSpotSchedule:
    """Active in hours or windows of the week."""

    metadata: Metadata
    spec: TimeBasedSpec = prop("What is wanted.")
    status: ProviderStatus = prop("What is.", default=attrs.Factory(ProviderStatus))


@attrs.frozen(kw_only=True)
class CapitalMarketsSchedule:
    """Active in the sessions of a market."""

    metadata: Metadata
    spec: CapitalMarketsSpec = prop("What is wanted.")
    status: ProviderStatus = prop("What is.", default=attrs.Factory(ProviderStatus))


@attrs.frozen(kw_only=True)
class ManualSpotSchedule:
    """A person's toggle."""

    metadata: Metadata
    spec: ManualSpec = prop("What is wanted.")
    status: ProviderStatus = prop("What is.", default=attrs.Factory(ProviderStatus))


@attrs.frozen(kw_only=True)
class CompositeSpotSchedule:
    """Logic over other providers."""

    metadata: Metadata
    spec: CompositeSpec = prop("What is wanted.")
    status: ProviderStatus = prop("What is.", default=attrs.Factory(ProviderStatus))


@attrs.frozen(kw_only=True)
class PrometheusSpotSchedule:
    """The truth of a PromQL query."""

    metadata: Metadata
    spec: PrometheusSpec = prop("What is wanted.")
    status: ProviderStatus = prop("What is.", default=attrs.Factory(ProviderStatus))
