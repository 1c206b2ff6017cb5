"""The files that containerd, its CNI plugins and the kubelet of one node read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from zlib import crc32

from tests.node import images
from tests.node.binaries import NodePrograms

LEASE_SECONDS = 8
"""How long a kubelet's Lease holds; it is renewed four times meanwhile."""


def containerd(folder: Path, programs: NodePrograms) -> str:
    """config.toml, version 3. Everything below `folder`, and nothing that the tests do not need."""
    cri = "plugins.'io.containerd.cri.v1"
    return f"""\
version = 3
root = '{folder}/containerd'
state = '{folder}/containerd-state'
# It would make folders in /opt.
disabled_plugins = ['io.containerd.internal.v1.opt']

[grpc]
address = '{folder}/containerd.sock'

[plugins.'io.containerd.nri.v1.nri']
disable = true

[{cri}.images']
# Copies; an overlay cannot be on every file system.
snapshotter = 'native'

[{cri}.images'.pinned_images]
sandbox = '{images.NAME}'

[{cri}.runtime']
# Where CAP_SYS_RESOURCE is missing, runc dies of what it may not set.
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true

[{cri}.runtime'.cni]
bin_dirs = ['{programs.cni}']
conf_dir = '{folder}/cni'
use_internal_loopback = true

[{cri}.runtime'.containerd.runtimes.runc]
runtime_type = 'io.containerd.runc.v2'
runtime_path = '{programs.containerd}/containerd-shim-runc-v2'

[{cri}.runtime'.containerd.runtimes.runc.options]
BinaryName = '{programs.runc}'
Root = '{folder}/runc'
SystemdCgroup = false
"""


def network(folder: Path) -> str:
    """A link for each pod to the host, which goes with the pod: no bridge, no rule, nothing that is left."""
    # Of 198.18.0.0/15, which is for benchmarks of networks (RFC 2544), so nobody's; nodes of one machine seldom share it.
    second, third = divmod(crc32(folder.name.encode()) % 512, 256)
    addresses = {
        "type": "host-local",
        "ranges": [[{"subnet": f"198.{18 + second}.{third}.0/24"}]],
        "dataDir": str(folder / "addresses"),
    }
    plugins = [{"type": "ptp", "ipam": addresses}]
    return json.dumps({"cniVersion": "1.0.0", "name": "test", "plugins": plugins})


def kubelet(folder: Path, *, port: int, authority: Path) -> str:
    """KubeletConfiguration; JSON, which is YAML."""
    settings: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": "127.0.0.1",
        "port": port,
        "healthzPort": 0,
        "readOnlyPort": 0,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": False},
            "x509": {"clientCAFile": str(authority)},
        },
        "authorization": {"mode": "AlwaysAllow"},
        "containerRuntimeEndpoint": f"unix://{folder}/containerd.sock",
        "staticPodPath": str(folder / "static-pods"),
        "podLogsDir": str(folder / "pod-logs"),
        "volumePluginDir": str(folder / "volume-plugins"),
        "resolvConf": "",
        "cgroupDriver": "cgroupfs",
        # Its cgroups are in that of our own, not beside those of another kubelet.
        "cgroupRoot": f"/{folder.name}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "enforceNodeAllocatable": [],
        "oomScoreAdj": 0,
        # No rules in the machine's own network: nobody has to take them away again.
        "makeIPTablesUtilChains": False,
        # However full the machine's disk and memory are, no pod goes but by the tests.
        "localStorageCapacityIsolation": False,
        "evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%"},
        "imageGCHighThresholdPercent": 100,
        "nodeLeaseDurationSeconds": LEASE_SECONDS,
        # A Node that changes again and again without anything new, which is minutes apart in a cluster.
        "nodeStatusUpdateFrequency": "5s",
    }
    return json.dumps(settings)
