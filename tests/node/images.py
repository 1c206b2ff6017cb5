"""The one image of the tests, packed here: a registry is nobody's to ask."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from pathlib import Path

NAME = "localhost/busybox:test"
"""For pods, with `imagePullPolicy: Never`."""

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}

# Without a command it is the pause container of a pod; workloads bring their own.
_ENDLESS = ["/bin/sleep", "1000000000"]


def pack(busybox: Path, archive: Path) -> None:
    """Write the image of a static busybox as an archive that `ctr images import` takes."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as content:
        content.add(busybox, "bin/busybox")
        for name in ("sh", "sleep"):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            content.addfile(link)
    diff = f"sha256:{hashlib.sha256(layer.getvalue()).hexdigest()}"
    machine = platform.machine()
    config = {
        "architecture": _ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "config": {"Cmd": _ENDLESS, "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [diff]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [NAME], "Layers": ["layer.tar"]}]
    with tarfile.open(archive, mode="w") as whole:
        for name, body in (
            ("layer.tar", layer.getvalue()),
            ("config.json", json.dumps(config).encode()),
            ("manifest.json", json.dumps(manifest).encode()),
        ):
            entry = tarfile.TarInfo(name)
            entry.size = len(body)
            whole.addfile(entry, io.BytesIO(body))
