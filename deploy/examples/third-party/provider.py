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
    path, generation = body["spec"]["path"], body["metadata"]["generation"]
    lent = not Path(path).exists()
    since = before.get("lastTransitionTime", now) if before.get("active") is lent else now
    ready = {"type": "Ready", "status": "True", "reason": "Unlocked" if lent else "Locked", "message": path}
    ready["lastTransitionTime"] = (before.get("conditions") or [{}])[0].get("lastTransitionTime", now)
    found = {"active": lent, "observedGeneration": generation, "lastTransitionTime": since}
    return {**found, "conditions": [ready]}


def look():
    for body in json.loads(kubectl("get", PLURAL, "--all-namespaces", "-o", "json"))["items"]:
        meta, status = body["metadata"], status_of(body)
        if status != body.get("status"):
            patch = {"metadata": {"resourceVersion": meta["resourceVersion"]}, "status": status}
            where = ("-n", meta["namespace"], "--subresource=status", "--type=merge", "-p", json.dumps(patch))
            kubectl("patch", PLURAL, meta["name"], *where)


while __name__ == "__main__":
    try:
        look()
    except (
        subprocess.CalledProcessError
    ) as error:  # a server that is away, an object that has changed: look again
        print(error.stderr, file=sys.stderr)
    time.sleep(float(sys.argv[1]) if len(sys.argv) > 1 else 2)
