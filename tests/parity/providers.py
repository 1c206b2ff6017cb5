"""Manifests of the providers that are no schedules, good and bad."""

from tests.builders import ABSENT, reference
from tests.parity.common import provider_rows

MANUAL = provider_rows("ManualSpotSchedule")
COMPOSITE = provider_rows("CompositeSpotSchedule")
PROMETHEUS = provider_rows("PrometheusSpotSchedule")

# ManualSpotSchedule
MANUAL.accepts("active", "spec.active", True, False)
MANUAL.refuses("active that is none", "spec.active", ABSENT, None, "true", 1)
MANUAL.accepts(
    "until",
    "spec.until",
    "2026-03-02T09:00:00Z",
    "2026-03-02T09:00:00+01:00",
    "2026-03-02T09:00:00.123456789Z",
    "2026-03-02T09:00:00.5+05:30",
    "9999-12-31T23:59:59Z",
    "1000-01-01T00:00:00Z",
    also={"spec.then": "Inactive"},
)
MANUAL.refuses(
    "until that is no instant",
    "spec.until",
    "2026-03-02",
    "2026-03-02t09:00:00z",
    "2026-03-02T09:00:00",
    "2026-03-02 09:00:00Z",
    "2026-02-30T09:00:00Z",
    "2026-03-02T24:00:00Z",
    "2026-03-02T09:00:60Z",
    "2026-03-02T09:00:00x5Z",
    "2026-03-02T09:00:00.Z",
    "2026-03-02T09:00:00+99:00",
    "2026-03-02T09:00:00Z\n",
    "2026-03-02T09:00:00.1234567890Z",
    "0999-03-02T09:00:00Z",
    "9999-12-31T23:59:59-01:00",
    "\u0662026-03-02T09:00:00Z",
    "tomorrow",
    "",
    5,
    also={"spec.then": "Inactive"},
)
MANUAL.accepts(
    "then", "spec.then", "Active", "Inactive", "Abstain", also={"spec.until": "2026-03-02T09:00:00Z"}
)
MANUAL.refuses(
    "then that is none", "spec.then", "active", "", "Off", 5, also={"spec.until": "2026-03-02T09:00:00Z"}
)
MANUAL.refuses("until without then", "spec.until", "2026-03-02T09:00:00Z", at="spec.then")
MANUAL.refuses("then without until", "spec.then", "Active")
MANUAL.accepts("null until and then", "spec.until", None, also={"spec.then": None})

# CompositeSpotSchedule
_MEMBERS = [reference(f"member-{n}") for n in range(32)]
for _field in ("allOf", "anyOf", "firstOf"):
    COMPOSITE.accepts(_field, "spec", {_field: _MEMBERS[:1]}, {_field: _MEMBERS})
    COMPOSITE.refuses(f"{_field} without members", "spec", {_field: []}, at=f"spec.{_field}")
    COMPOSITE.refuses(
        f"{_field} with 33 members", "spec", {_field: [*_MEMBERS, reference()]}, at=f"spec.{_field}"
    )
    COMPOSITE.refuses(f"{_field} of another type", "spec", {_field: reference()}, at=f"spec.{_field}")
COMPOSITE.accepts("not", "spec", {"not": [reference()]}, {"not": [reference()], "allOf": None})
COMPOSITE.refuses("not with several members", "spec", {"not": _MEMBERS[:2]}, {"not": []}, at="spec.not")
COMPOSITE.refuses("no composition", "spec", {}, {"allOf": None})
COMPOSITE.refuses(
    "two compositions",
    "spec",
    {"allOf": _MEMBERS[:1], "anyOf": _MEMBERS[:1]},
    {"not": [reference()], "firstOf": _MEMBERS},
)
COMPOSITE.refuses("member of another group", "spec.allOf[1].apiVersion", "apps/v1")
COMPOSITE.refuses("member without kind", "spec.allOf[1].kind", ABSENT)
COMPOSITE.refuses("member with a name that is none", "spec.allOf[1].name", "A", "a\n")
COMPOSITE.refuses("member with a namespace", "spec.allOf[1].namespace", "x")
COMPOSITE.refuses("member of another type", "spec.allOf[1]", None, "nights")

# PrometheusSpotSchedule
PROMETHEUS.accepts(
    "url",
    "spec.url",
    "http://p",
    "https://p.example.com:9090/base/",
    "http://[::1]:9090",
    f"http://{'p' * 2041}",
)
PROMETHEUS.refuses(
    "url that is none",
    "spec.url",
    "",
    "p:9090",
    "ftp://p",
    "http://",
    "http://user:secret@p",
    "http://p?x=1",
    "http://p/#x",
    "http://p q",
    "http://p\n",
    "HTTP://p",
    f"http://{'p' * 2042}",
    5,
    None,
)
PROMETHEUS.accepts("query", "spec.query", "up", "x" * 8192, "sum(\n  up\n) > 0")
PROMETHEUS.refuses("query that is none", "spec.query", "", "x" * 8193, 5, None, ABSENT)
for _field in ("interval", "for"):
    PROMETHEUS.accepts(_field, f"spec.{_field}", "1s", "24h", None)
    PROMETHEUS.refuses(f"{_field} that is none", f"spec.{_field}", "25h", "1m30s", "5", 30, "30s\n")
PROMETHEUS.accepts("no time at all to hold", "spec.for", "0s")
PROMETHEUS.refuses("an interval of no time", "spec.interval", "0s", "0h", "00m")
PROMETHEUS.accepts(
    "tls",
    "spec.tls",
    None,
    {},
    {"caSecretRef": {"name": "ca", "key": "ca.crt"}},
    {"serverName": "p.example.com"},
)
PROMETHEUS.refuses("tls of another type", "spec.tls", True, [])
PROMETHEUS.refuses("tls that verifies nothing", "spec.tls.insecureSkipVerify", True)
PROMETHEUS.refuses("tls CA without name", "spec.tls.caSecretRef", {}, at="spec.tls.caSecretRef.name")
PROMETHEUS.refuses("tls server name that is none", "spec.tls.serverName", "x" * 254, "", 5)
PROMETHEUS.accepts(
    "bearer token", "spec.bearerTokenSecretRef", None, {"name": "token"}, {"name": "token", "key": "token"}
)
PROMETHEUS.refuses(
    "bearer token without name",
    "spec.bearerTokenSecretRef",
    {"key": "token"},
    at="spec.bearerTokenSecretRef.name",
)
PROMETHEUS.refuses(
    "bearer token over http",
    "spec",
    {"url": "http://p", "query": "up", "bearerTokenSecretRef": {"name": "token"}},
    at="spec.bearerTokenSecretRef",
)
PROMETHEUS.refuses("tls over http", "spec", {"url": "http://p", "query": "up", "tls": {}}, at="spec.tls")
PROMETHEUS.accepts("http", "spec", {"url": "http://p", "query": "up"})
PROMETHEUS.refuses("bearer token itself", "spec.bearerToken", "secret")

ROWS = (*MANUAL.rows, *COMPOSITE.rows, *PROMETHEUS.rows)
