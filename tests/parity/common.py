"""What is said of the manifests of every provider."""

from tests.builders import ABSENT
from tests.parity.row import Rows


def provider_rows(kind: str) -> Rows:
    """The rows of a provider's kind, with those that all of them share."""
    rows = Rows(kind)
    rows.accepts("name of 64 characters", "metadata.name", "a" * 64, "a" * 253)
    rows.refuses("name that is none", "metadata.name", "a" * 254, "A", "")
    rows.refuses("another version", "apiVersion", "spotschedules.5spot.finos.org/v1beta1")
    rows.refuses("no spec", "spec", ABSENT, None, [])
    rows.refuses("unknown field", "spec.nonsense", 1)
    rows.accepts("status is not the manifest's", "status", {"active": True})
    return rows
