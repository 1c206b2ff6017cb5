"""Manifests of ScheduledMachine, good and bad."""

from tests.builders import ABSENT, reference
from tests.parity.row import Rows

_M = Rows("ScheduledMachine")
_accepts, _refuses = _M.accepts, _M.refuses

ARABIC_FIVE = "\u0665"
LONG_LABEL = "a" * 63
LONG_PREFIX = ".".join(["a" * 63] * 3 + ["a" * 61])
EMBEDDED = ("spec.bootstrapSpec", "spec.infrastructureSpec")
RESERVED = (
    "5spot.finos.org/x",
    "kubernetes.io/x",
    "k8s.io/x",
    "cluster.x-k8s.io/x",
    "node.kubernetes.io/x",
    "bootstrap.cluster.x-k8s.io/x",
    "a.b.k8s.io/x",
    "spotschedules.5spot.finos.org/x",
)
NOT_RESERVED = (
    "example.com/x",
    "mykubernetes.io/x",
    "x-k8s.io/x",
    "finos.org/x",
    "kubernetes.io",
    "k8s.io.example.com/x",
)

# The whole
_accepts("as it stands", "metadata.name", "desk-042")
_refuses("another version", "apiVersion", "5spot.finos.org/v1alpha1", "5spot.finos.org/v2")
_refuses("another group", "apiVersion", "5spot.example.org/v1beta1", "v1beta1")
_refuses("no version", "apiVersion", ABSENT)
_refuses("another kind", "kind", "ScheduledMachines", "scheduledmachine", "TimeBasedSpotSchedule")
_refuses("no kind", "kind", ABSENT)
_refuses("unknown field at the root", "data", {})
_refuses("no spec", "spec", ABSENT, None)
_refuses("spec of another type", "spec", [], "x")
_accepts("status is not the manifest's", "status", None, {"phase": "Active"})
_refuses(
    "unknown field in status",
    "status.nonsense",
    1,
    only="server",
    because="we do not look at a manifest's status; nobody writes one, and the server drops it",
)

# metadata
_refuses("no metadata", "metadata", ABSENT)
_refuses("no name", "metadata.name", ABSENT, None, "")
_accepts("name of 63 characters", "metadata.name", "a" * 63, "a.b-c")
_refuses("name of 64 characters", "metadata.name", "a" * 64)
_refuses(
    "name that is no RFC 1123 name",
    "metadata.name",
    "Desk",
    "desk_1",
    "-desk",
    "desk-",
    "desk..1",
    "desk\n",
    "d\u00e9sk",
)
_refuses("name of another type", "metadata.name", 5)
_refuses(
    "generateName alone",
    "metadata.name",
    ABSENT,
    also={"metadata.generateName": "desk-"},
    only="ours",
    because="the server makes a name up; a file that is judged, simulated or applied needs one",
)
_refuses("namespace that is no RFC 1123 label", "metadata.namespace", "Trading", "a.b", "a" * 64)
_refuses(
    "namespace that does not exist",
    "metadata.namespace",
    "nowhere",
    only="server",
    because="which namespaces exist is the cluster's knowledge",
)
_accepts("labels", "metadata.labels", {}, None, {"a": "", "example.com/b": "x.y_z-1", "c": None})
_refuses("label of another type", "metadata.labels", [], at="metadata.labels")
_refuses("label value of another type", "metadata.labels", {"a": 5}, {"a": True}, at="metadata.labels.a")
_refuses(
    "label value that is none",
    "metadata.labels",
    {"a": "x y"},
    {"a": "x" * 64},
    {"a": "x\n"},
    at="metadata.labels.a",
)
_refuses(
    "label key that is none",
    "metadata.labels",
    {"": ""},
    {"-a": ""},
    {"a/b/c": ""},
    {"A.com/x": ""},
    {f"{'a' * 254}/x": ""},
)
_accepts("long label key", "metadata.labels", {f"{LONG_PREFIX}/{LONG_LABEL}": LONG_LABEL})
_accepts(
    "annotations",
    "metadata.annotations",
    {"Example.com/x": "anything\n \u00e9"},
    {"5spot.finos.org/reclaim-release": "x"},
)
_refuses("annotation of another type", "metadata.annotations", {"a": 5}, at="metadata.annotations.a")
_refuses("annotation key that is none", "metadata.annotations", {"a b": ""})
_refuses("annotations of more than 256 KiB", "metadata.annotations", {"a": "x" * (256 * 1024)})
_accepts("annotations of 256 KiB", "metadata.annotations", {"a": "x" * (256 * 1024 - 1)})
_accepts("finalizers", "metadata.finalizers", ["5spot.finos.org/scheduledmachine"])
_refuses("finalizer that is none", "metadata.finalizers", ["x y/z"], at="metadata.finalizers[0]")
_refuses("unknown field in metadata", "metadata.lables", {})
_refuses("creation time that is none", "metadata.creationTimestamp", "yesterday")
_refuses(
    "owner without uid",
    "metadata.ownerReferences",
    [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}],
    at="metadata.ownerReferences[0].uid",
)

# schedule
_refuses("no schedule", "spec.schedule", ABSENT, None)
_refuses("schedule of another type", "spec.schedule", "nights", [])
_refuses("schedule without a field", "spec.schedule.apiVersion", ABSENT)
_refuses("schedule without kind", "spec.schedule.kind", ABSENT)
_refuses("schedule without name", "spec.schedule.name", ABSENT)
_refuses("schedule in another namespace", "spec.schedule.namespace", "other")
_accepts(
    "schedule of another version",
    "spec.schedule.apiVersion",
    "spotschedules.5spot.finos.org/v1",
    "spotschedules.5spot.finos.org/v2beta1",
)
_refuses(
    "schedule of another group",
    "spec.schedule.apiVersion",
    "spotschedules.5spot.finos.org",
    "spotschedules.5spot.finos.org/",
    "v1",
    "spotschedulesX5spot.finos.org/v1",
    "x.spotschedules.5spot.finos.org/v1",
    "spotschedules.5spot.finos.org/v1/x",
    "spotschedules.5spot.finos.org/v1\n",
    "SPOTSCHEDULES.5spot.finos.org/v1",
    "spotschedules.5spot.finos.org/x1",
)
_accepts("schedule of somebody else's kind", "spec.schedule.kind", "A", "K" * 63)
_refuses(
    "schedule kind that is none", "spec.schedule.kind", "", "timeBased", "Time-Based", "K" * 64, "Kind\n", 5
)
_accepts("schedule name", "spec.schedule.name", "a", "a.b", "a" * 253, f"{'a' * 70}.b")
_refuses(
    "schedule name that is none", "spec.schedule.name", "", "A", "a_b", "a" * 254, "a\n", ".a", "a.", "a..b"
)

# enabled, killSwitch
for _field in ("enabled", "killSwitch"):
    _accepts(_field, f"spec.{_field}", True, False, None)
    _refuses(f"{_field} that is no boolean", f"spec.{_field}", "true", "false", 1, 0, [], {})

# clusterName
_accepts("cluster name", "spec.clusterName", "g", "G1._-", "g" * 63, "grid-")
_refuses(
    "cluster name that is none",
    "spec.clusterName",
    "",
    "-grid",
    ".g",
    "g" * 64,
    "gr id",
    "grid\n",
    "gr\u00efd",
    5,
)
_refuses("no cluster name", "spec.clusterName", ABSENT, None)

# bootstrapSpec, infrastructureSpec
_accepts(
    "bootstrap of an allowed group",
    "spec.bootstrapSpec.apiVersion",
    "bootstrap.cluster.x-k8s.io/v1",
    "k0smotron.io/v1beta1",
)
_accepts(
    "infrastructure of an allowed group",
    "spec.infrastructureSpec.apiVersion",
    "infrastructure.cluster.x-k8s.io/v1",
    "k0smotron.io/v1beta1",
)
_refuses(
    "bootstrap of another group",
    "spec.bootstrapSpec.apiVersion",
    "infrastructure.cluster.x-k8s.io/v1beta1",
    "evil.k0smotron.io/v1beta1",
    "v1",
    "bootstrapXcluster.x-k8s.io/v1",
    "k0smotron.io/v1\n",
    "k0smotron.io",
    5,
)
_refuses(
    "infrastructure of another group",
    "spec.infrastructureSpec.apiVersion",
    "bootstrap.cluster.x-k8s.io/v1beta1",
    "apps/v1",
    "cluster.x-k8s.io/v1beta1",
    "k0smotron.io/v1/x",
)
for _part in EMBEDDED:
    _name = _part.removeprefix("spec.")
    _refuses(f"no {_name}", _part, ABSENT, None)
    _refuses(f"{_name} of another type", _part, "x", [])
    _refuses(f"{_name} kind that is none", f"{_part}.kind", "k0sWorkerConfig", "", "A" * 64, ABSENT)
    _refuses(f"{_name} without spec", f"{_part}.spec", ABSENT, None)
    _refuses(f"{_name} spec of another type", f"{_part}.spec", [], "x", 5)
    _accepts(
        f"{_name} spec is forwarded untouched",
        f"{_part}.spec",
        {},
        {"a": None, "b": [None, 1.5, {"c": {}}], "\u00e9 /": 2**63},
    )
    _accepts(
        f"{_name} metadata",
        f"{_part}.metadata",
        None,
        {},
        {"labels": {"a": "b"}, "annotations": {"example.com/c": "d e\n"}},
        {"labels": None},
    )
    _refuses(f"{_name} metadata of another type", f"{_part}.metadata", [], "x")
    _refuses(f"{_name} metadata with a name", f"{_part}.metadata.name", "x", "")
    _refuses(f"{_name} metadata with a namespace", f"{_part}.metadata.namespace", "x")
    _accepts(f"{_name} metadata with a null name", f"{_part}.metadata.name", None)
    _refuses(f"{_name} metadata with finalizers", f"{_part}.metadata.finalizers", [])
    _refuses(f"{_name} unknown field", f"{_part}.template", {})

# Labels and annotations of what we create
for _part in (*(f"{part}.metadata" for part in EMBEDDED), "spec.machineTemplate"):
    _where = _part.removeprefix("spec.")
    for _field in ("labels", "annotations"):
        _path = f"{_part}.{_field}"
        for _key in RESERVED:
            _refuses(
                f"{_where} {_field} in the reserved domain {_key}", _path, {"example.com/ok": "", _key: "x"}
            )
        _accepts(f"{_where} {_field} outside the reserved domains", _path, dict.fromkeys(NOT_RESERVED, "x"))
_accepts("machine template", "spec.machineTemplate", None, {}, {"labels": {}, "annotations": {}})
_accepts("template label null is no label", "spec.machineTemplate.labels", {"a": None})
_accepts(
    "template with long keys", "spec.machineTemplate.labels", {f"{LONG_PREFIX}/{LONG_LABEL}": LONG_LABEL}
)
_accepts("64 template labels", "spec.machineTemplate.labels", {f"a{n}": "" for n in range(64)})
_refuses("65 template labels", "spec.machineTemplate.labels", {f"a{n}": "" for n in range(65)})
_refuses("template of another type", "spec.machineTemplate", [], "x")
_refuses("template with a name", "spec.machineTemplate.name", "x")
_refuses(
    "template label value of another type",
    "spec.machineTemplate.labels",
    {"a": 5},
    {"a": True},
    {"a": {}},
    at="spec.machineTemplate.labels.a",
)
_refuses(
    "template label value that is none",
    "spec.machineTemplate.labels",
    {"a": "b c"},
    {"a": "b\n"},
    {"a": "x" * 64},
    {"a": "\u00e9"},
    at="spec.machineTemplate.labels.a",
)
_refuses(
    "template key that is none",
    "spec.machineTemplate.labels",
    {"": "x"},
    {"a b": "x"},
    {"a\n": "x"},
    {"/a": "x"},
    {"a/": "x"},
    {"A.com/x": "x"},
    {f"{'a' * 254}/x": "x"},
    {f"x/{'a' * 64}": "x"},
    {"a/b/c": "x"},
)
_accepts("template annotation of 8192 characters", "spec.machineTemplate.annotations", {"a": "\u00e9" * 8192})
_refuses(
    "template annotation of 8193 characters",
    "spec.machineTemplate.annotations",
    {"a": "x" * 8193},
    at="spec.machineTemplate.annotations.a",
)

# version, failureDomain
for _field in ("version", "failureDomain"):
    _accepts(_field, f"spec.{_field}", "v1.31.2", "x" * 256, None)
    _refuses(f"{_field} that is none", f"spec.{_field}", "", "x" * 257, 1.31, 5)

# priority
_accepts("priority", "spec.priority", 0, 255, 50, 50.0, None)
_refuses("priority that is none", "spec.priority", -1, 256, 50.5, "50", True, 2**63, 1e30)

# Durations
for _field in ("spec.gracefulShutdownTimeout", "spec.nodeDrainTimeout", "spec.reclaim.rejoinAfter"):
    _accepts(f"{_field}", _field, "0s", "0h", "5m", "86400s", "1440m", "24h", "005m", "00000024h", None)
    _refuses(
        f"{_field} that is none",
        _field,
        "",
        "5",
        "m",
        "25h",
        "1441m",
        "86401s",
        "99999999h",
        "99999999999999999999h",
        "000000005m",
        "+5m",
        "-5m",
        "5 m",
        " 5m",
        "5m ",
        "5m\n",
        "\n5m",
        "1h30m",
        "1.5h",
        "5M",
        "5d",
        "5ms",
        f"{ARABIC_FIVE}m",
        "5\u217f",
        "1_0m",
        300,
        True,
        ["5m"],
    )

# onDrainTimeout
_accepts("onDrainTimeout", "spec.onDrainTimeout", "Force", "Hold", None)
_refuses("onDrainTimeout that is none", "spec.onDrainTimeout", "force", "", "Hold ", True)

# killIfCommands
_accepts(
    "killIfCommands",
    "spec.killIfCommands",
    None,
    [],
    ["java"],
    ["java", "java"],
    ["x"] * 100,
    ["x" * 256],
    ["\u00e9" * 256],
    [" java "],
    ["a\nb"],
)
_refuses("101 killIfCommands", "spec.killIfCommands", ["x"] * 101)
_refuses("killIfCommands of another type", "spec.killIfCommands", "java", {"0": "java"}, 5)
_refuses(
    "killIfCommands with a bad entry",
    "spec.killIfCommands",
    ["java", ""],
    ["java", " "],
    ["java", "\t\n\v\f\r "],
    ["java", "x" * 257],
    ["java", None],
    ["java", 5],
    ["java", []],
    at="spec.killIfCommands[1]",
)

# reclaim
_accepts("reclaim", "spec.reclaim", None, {})
_refuses("reclaim of another type", "spec.reclaim", True, "1h", [])
_refuses("reclaim with an unknown field", "spec.reclaim.rejoin", "1h")

# nodeTaints
_TAINT = {"key": "example.com/spot", "value": "yes", "effect": "NoSchedule"}
_accepts(
    "node taints",
    "spec.nodeTaints",
    None,
    [],
    [_TAINT],
    [{"key": "spot", "effect": "NoExecute"}],
    [_TAINT, {**_TAINT, "effect": "PreferNoSchedule"}],
    [{**_TAINT, "value": ""}],
    [{**_TAINT, "value": None}],
    [{**_TAINT, "value": "x" * 63}],
    [{**_TAINT, "key": f"{LONG_PREFIX}/{LONG_LABEL}"}],
    [{"key": f"k{n}", "effect": "NoSchedule"} for n in range(100)],
)
_refuses("101 node taints", "spec.nodeTaints", [{"key": f"k{n}", "effect": "NoSchedule"} for n in range(101)])
_refuses("node taints of another type", "spec.nodeTaints", _TAINT, "spot")
_refuses("node taint of another type", "spec.nodeTaints", [None], ["spot"], at="spec.nodeTaints[0]")
_refuses(
    "node taint twice",
    "spec.nodeTaints",
    [_TAINT, {**_TAINT, "value": "no"}],
    [_TAINT, _TAINT],
    at="spec.nodeTaints[1]",
)
_refuses(
    "node taint key that is none",
    "spec.nodeTaints",
    *(
        [{**_TAINT, "key": key}]
        for key in ("", "a b", "a/b/c", "spot\n", "A.com/x", "x" * 64, f"{'a' * 254}/x", 5, [], True)
    ),
    at="spec.nodeTaints[0].key",
)
_refuses(
    "node taint in a reserved domain",
    "spec.nodeTaints",
    *([{**_TAINT, "key": key}] for key in RESERVED),
    at="spec.nodeTaints[0].key",
)
_accepts(
    "node taints outside the reserved domains",
    "spec.nodeTaints",
    [{**_TAINT, "key": key} for key in NOT_RESERVED],
)
_refuses(
    "node taint value that is none",
    "spec.nodeTaints",
    *([{**_TAINT, "value": value}] for value in ("a b", "-a", "x" * 64, "x\n", 5)),
    at="spec.nodeTaints[0].value",
)
_refuses(
    "node taint effect that is none",
    "spec.nodeTaints",
    *([{**_TAINT, "effect": effect}] for effect in ("noSchedule", "", "NoSchedule\n", 5)),
    at="spec.nodeTaints[0].effect",
)
_refuses(
    "node taint without effect",
    "spec.nodeTaints",
    [{"key": "spot"}],
    [{"key": "spot", "effect": None}],
    at="spec.nodeTaints[0].effect",
)
_refuses("node taint without key", "spec.nodeTaints", [{"effect": "NoSchedule"}], at="spec.nodeTaints[0].key")
_refuses(
    "node taint with an unknown field",
    "spec.nodeTaints",
    [{**_TAINT, "timeAdded": "x"}],
    at="spec.nodeTaints[0].timeAdded",
)

# kubeconfigSecretRef
_accepts(
    "kubeconfig Secret",
    "spec.kubeconfigSecretRef",
    None,
    {"name": "grid"},
    {"name": "a" * 253, "key": "-._aZ9"},
    {"name": "grid", "key": None},
    {"name": "grid", "key": "k" * 253},
)
_refuses(
    "kubeconfig Secret without name",
    "spec.kubeconfigSecretRef",
    {},
    {"key": "value"},
    at="spec.kubeconfigSecretRef.name",
)
_refuses("kubeconfig Secret of another type", "spec.kubeconfigSecretRef", "grid", [])
_refuses(
    "kubeconfig Secret name that is none", "spec.kubeconfigSecretRef.name", "", "Grid", "a" * 254, "grid\n", 5
)
_refuses(
    "kubeconfig Secret key that is none",
    "spec.kubeconfigSecretRef.key",
    "",
    "a/b",
    "k" * 254,
    "value\n",
    5,
    also={"spec.kubeconfigSecretRef.name": "grid"},
)
_refuses(
    "kubeconfig Secret in another namespace",
    "spec.kubeconfigSecretRef.namespace",
    "x",
    also={"spec.kubeconfigSecretRef.name": "grid"},
)

# Names that a typing mistake makes
_refuses("unknown field", "spec.killifCommands", ["java"])
_refuses("field of the status", "spec.phase", "Active")

# Updates
_SECRET = {"name": "grid"}
_KEYED = {"name": "grid", "key": "value"}
_CHANGES = (
    ("cluster name", "clusterName", {"spec.clusterName": "grid"}, {"spec.clusterName": "other"}),
    (
        "kubeconfig Secret",
        "kubeconfigSecretRef",
        {"spec.kubeconfigSecretRef": _SECRET},
        {"spec.kubeconfigSecretRef": {"name": "other"}},
    ),
    (
        "kubeconfig Secret's key",
        "kubeconfigSecretRef",
        {"spec.kubeconfigSecretRef": _SECRET},
        {"spec.kubeconfigSecretRef": {"name": "grid", "key": "other"}},
    ),
    ("kubeconfig Secret, added", "kubeconfigSecretRef", {}, {"spec.kubeconfigSecretRef": _SECRET}),
    ("kubeconfig Secret, removed", "kubeconfigSecretRef", {"spec.kubeconfigSecretRef": _SECRET}, {}),
)
for _what, _field, _before, _after in _CHANGES:
    _M.update(f"{_what} may change while no machine exists", _before, _after)
    _M.update(
        f"{_what} may not change while a machine exists",
        _before,
        _after,
        machine_exists=True,
        refused_at=f"spec.{_field}",
    )
_M.update(
    "the default key may be written out",
    {"spec.kubeconfigSecretRef": _SECRET},
    {"spec.kubeconfigSecretRef": _KEYED},
    machine_exists=True,
)
_M.update(
    "the default key may be left out",
    {"spec.kubeconfigSecretRef": _KEYED},
    {"spec.kubeconfigSecretRef": {"name": "grid", "key": None}},
    machine_exists=True,
)
_M.update(
    "the schedule may change while a machine exists",
    {},
    {"spec.schedule": reference("days")},
    machine_exists=True,
)
_M.update(
    "the kill switch may be thrown while a machine exists", {}, {"spec.killSwitch": True}, machine_exists=True
)

ROWS = tuple(_M.rows)
