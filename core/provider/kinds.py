"""Which provider kinds there are, and how each reads its spec: the one place where a kind is registered."""

from typing import Final

import attrs

from fivespot.core.api.kinds import CAPITAL_MARKETS, COMPOSITE, MANUAL, PROMETHEUS, TIME_BASED, Kind
from fivespot.core.provider.answer import Reads
from fivespot.core.provider.composite import read_composite
from fivespot.core.provider.manual import read_manual
from fivespot.core.provider.prometheus import read_prometheus
from fivespot.core.provider.timed import read_capital_markets, read_time_based


@attrs.frozen(kw_only=True)
class ProviderKind:
    """A kind that a controller of ours answers for.

    Attributes:
        name: what `5spot provider run` calls it.
        kind: its objects.
        read: makes the logic of a spec.
    """

    name: str
    kind: Kind
    read: Reads


PROVIDER_KINDS: Final = (
    ProviderKind(name="time-based", kind=TIME_BASED, read=read_time_based),
    ProviderKind(name="capital-markets", kind=CAPITAL_MARKETS, read=read_capital_markets),
    ProviderKind(name="manual", kind=MANUAL, read=read_manual),
    ProviderKind(name="composite", kind=COMPOSITE, read=read_composite),
    ProviderKind(name="prometheus", kind=PROMETHEUS, read=read_prometheus),
)

BY_KIND: Final = {entry.kind.name: entry for entry in PROVIDER_KINDS}
"""The same, by the kind of their objects."""
