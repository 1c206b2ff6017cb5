"""A provider from outside: machines are lent while a lock file is absent. It needs Python, kubectl, and nothing of 5-Spot.

The contract is docs/providers.md: publish `status.active`, `observedGeneration` and a `Ready` condition; write only what changed.
"""

import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

PLURAL = "lockspotschedules.spotschedules.5spot.finos.org"


def kubectl(*arguments):
    return subprocess.run(["kubectl", *arguments], check=True, capture_output=True, text=True).stdout


def status_of(body):
    before, now = body.get("status") or {}, f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    path = body["spec"]["path"]
    lent = not Path(path).exists()
    since = before["lastTransitionTime"] if before.get("active") is lent else now
    ready = {"type": "Ready", "status": "True", "reason": "Unlocked" if lent else "Locked", "message": path}
    ready["lastTransitionTime"] = before["conditions"][0]["lastTransitionTime"] if before else now
    generation = body["metadata"]["generation"]
    return {
        "active": lent,
        "observedGeneration": generation,
        "lastTransitionTime": since,
        "conditions": [ready],
    }


def main(seconds=2.0):
    while True:
        for body in json.loads(kubectl("get", PLURAL, "--all-namespaces", "-o", "json"))["items"]:
            meta, status = body["metadata"], status_of(body)
            if status != body.get("status"):
                patch = json.dumps(
                    {"metadata": {"resourceVersion": meta["resourceVersion"]}, "status": status}
                )
                where = ("-n", meta["namespace"], "--subresource=status", "--type=merge", "-p", patch)
                kubectl("patch", PLURAL, meta["name"], *where)
        time.sleep(seconds)


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
