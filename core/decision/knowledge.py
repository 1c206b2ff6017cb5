"""Three-valued knowledge: what was read, what is not there, and what could not be read.

*Unknown is never read as absent*: a 401, a time-out, a 403 or an undecodable object says nothing about the world, and
nothing is created, drained or deleted on its account.
"""

from typing import Final, Generic, TypeAlias, TypeVar

import attrs

T = TypeVar("T")


@attrs.frozen
class Present(Generic[T]):
    """It was read; `value` is what it says."""

    value: T


@attrs.frozen
class Absent:
    """It is not there.

    Attributes:
        live: whether an API server said so just now; a cache lags, so four conclusions ask for this
            (dropping the finalizer, clearing references, creating again, skipping node steps).
        why: for providers, the reason of the verdict (kind not served, or object not found).
    """

    live: bool = False
    why: str = ""


@attrs.frozen
class Unknown:
    """It could not be read; `reason` is a condition reason and `why` one sentence for people."""

    reason: str
    why: str = ""


CHILD_OUT_OF_REACH: Final = frozenset(
    {"KubeconfigMissing", "KubeconfigRejected", "ChildClusterUnreachable", "PermissionDenied"}
)
"""Reasons of an Unknown that say that the child cluster does not answer; any other is a matter of moments."""

Known: TypeAlias = Present[T] | Absent | Unknown


def value_of(known: "Known[T] | None") -> T | None:
    """The value when present, else None; for reads where absent, unknown and not kept at all lead to the same."""
    return known.value if isinstance(known, Present) else None


def gone(known: object) -> bool:
    """Whether a part of an observation is absent for sure (live)."""
    return isinstance(known, Absent) and known.live
