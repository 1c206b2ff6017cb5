"""Ten thousand schedules whose boundaries are the same second: how long after it the last of them has said so.

A real server does some hundred writes a second, so that the figure by itself is that server's; it is told beside what the same
ten thousand writes take without us, before it and after it in the same run: by a client with nothing else to do, while somebody
watches the kind, since whoever answers for a kind has to. The server has a processor to itself, where there is one, so that its
speed does not depend on what its clients do. Nothing here fails on a time; what has to be true (no write at rest, every boundary
published once, the leader still leads) does.
"""

import asyncio
import itertools
import json
import os
import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.resources import NAMESPACES
from fivespot.core.instant import format_instant, parse_instant
from fivespot.core.names import SYSTEM_NAMESPACE
from tests.bench.fleets import PROVIDERS, Fleet, Running, in_parallel, provider
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.pytest_plugin import StartControlPlane
from tests.live import product
from tests.live.product import PROVIDER

FLEET = Fleet(namespaces=20, providers=10_000, machines=0)
NAMES = [(FLEET.namespace(n), f"nights-{n}") for n in range(FLEET.providers)]
PREPARING, REST_SECONDS = 480.0, 60
"""Seconds from the first schedule that is made to the boundary at least, of which so many are rest."""
LEASE = "5spot-provider-time-based"

pytestmark = pytest.mark.timeout(3600)


@pytest.fixture(scope="module")
def plane(start_control_plane: StartControlPlane) -> Iterator[ControlPlane]:
    """A control plane of its own, on a processor of its own; the rest of the module runs on the others."""
    processors = os.sched_getaffinity(0)
    one = {min(processors)}
    try:
        os.sched_setaffinity(0, one)
        plane = start_control_plane()
        os.sched_setaffinity(0, processors - one or processors)
        product.install(plane)
        yield plane
        plane.stop()
    finally:
        os.sched_setaffinity(0, processors)


async def _populate(plane: ControlPlane, opens: datetime) -> None:
    """Schedules that all open at this minute, and close long after."""
    spec = product.schedule("", opens, opens + timedelta(hours=6))["spec"]
    async with await Gateway.connect(kubeconfig=plane.admin_kubeconfig) as gateway:
        for number in range(FLEET.namespaces):
            await gateway.create(NAMESPACES, None, {"metadata": {"name": FLEET.namespace(number)}})
        bodies = [(ns, {"metadata": {"name": name}, "spec": spec}) for ns, name in NAMES]
        await in_parallel(lambda at=at: gateway.create(PROVIDERS, *at) for at in bodies)


async def _alone(plane: ControlPlane) -> list[float]:
    """Seconds from a moment to the end of each of as many writes of the same size, by a client with nothing else to do."""
    now = format_instant(datetime.now(UTC).replace(microsecond=0))
    ready = {"type": "Ready", "status": "True", "reason": "WindowOpen", "message": f"open until {now}"}
    ready |= {"lastTransitionTime": now, "observedGeneration": 1}
    status = {"active": True, "observedGeneration": 1, "lastTransitionTime": now, "nextTransitionTime": now}
    body = {"status": {**status, "effectiveTimezone": "UTC", "conditions": [ready]}}
    took: list[float] = []
    async with await Gateway.connect(kubeconfig=plane.admin_kubeconfig) as gateway:
        begun = time.monotonic()

        async def write(namespace: str, name: str) -> None:
            await gateway.merge_patch(PROVIDERS, namespace, name, body, subresource="status")
            took.append(time.monotonic() - begun)

        await in_parallel(lambda at=at: write(*at) for at in NAMES)
    return took


@contextmanager
def _watched(plane: ControlPlane, programs: Path) -> Iterator[None]:
    """Somebody listens to the kind, and does nothing with what comes."""
    path = f"/apis/{PROVIDERS.group}/{PROVIDERS.version}/{PROVIDERS.plural}"
    now = json.loads(plane.kubectl("get", "--raw", f"{path}?limit=1"))["metadata"]["resourceVersion"]
    watch = f"{path}?watch=1&allowWatchBookmarks=true&resourceVersion={now}"
    line = [programs / "kubectl", "--kubeconfig", plane.admin_kubeconfig, "get", "--raw", watch]
    with subprocess.Popen(line, stdout=subprocess.DEVNULL) as listening:
        try:
            yield
        finally:
            listening.terminate()


def _requests(plane: ControlPlane, since: datetime) -> list[dict[str, Any]]:
    """What the provider has asked for since then, in order; but for the streams that it listens to."""
    start = f"{since:%Y-%m-%dT%H:%M:%S.%f}Z"
    return [
        event
        for event in plane.audit_events()
        if event["user"].get("username") == PROVIDER
        and event["stage"] == "ResponseComplete"
        and event["verb"] != "watch"
        and event["requestReceivedTimestamp"] >= start
    ]


def _of(requests: list[dict[str, Any]], resource: str) -> list[dict[str, Any]]:
    return [event for event in requests if event["objectRef"]["resource"] == resource]


def _told(took: list[float]) -> str:
    took = sorted(took)
    return (
        f"p50 {statistics.median(took):.2f} s, p99 {took[int(len(took) * 0.99)]:.2f} s, last {took[-1]:.2f} s"
    )


def _boundary(plane: ControlPlane, running: Running, at: datetime) -> list[float]:
    """Wait for a boundary and for what comes of it; returns the seconds after it at which each status was written."""
    time.sleep(max(0.0, (at - datetime.now(UTC)).total_seconds()))
    time.sleep(1)
    cpu = running.cpu()
    running.at_rest()
    found = _requests(plane, at - timedelta(seconds=5))
    written = [e for e in _of(found, PROVIDERS.plural) if parse_instant(e["requestReceivedTimestamp"]) >= at]
    assert len({(e["objectRef"]["namespace"], e["objectRef"]["name"]) for e in written}) == len(NAMES)
    assert len(written) == len(NAMES), "each once"
    took = [(parse_instant(event["stageTimestamp"]) - at).total_seconds() for event in written]
    renewals = [parse_instant(event["requestReceivedTimestamp"]) for event in _of(found, "leases")]
    gaps = [(b - a).total_seconds() for a, b in itertools.pairwise(renewals)]
    events = [event for event in _of(found, "events") if event["responseStatus"]["code"] < 300]
    print(
        f"\n{len(NAMES)} that open in one second: {_told(took)}; {len(events)} Events after it, the last "
        f"{max((parse_instant(e['stageTimestamp']) - at).total_seconds() for e in events):.1f} s after; processor "
        f"{running.cpu() - cpu:.1f} s; the Lease renewed every {max(gaps):.2f} s at most"
    )
    return took


def test_ten_thousand_boundaries_in_one_second(
    plane: ControlPlane, control_plane_programs: Path, tmp_path: Path
) -> None:
    def same_writes(when: str) -> list[float]:
        with _watched(plane, control_plane_programs):
            took = asyncio.run(_alone(plane))
        print(f"\nthe same writes without us, watched, {when}: {_told(took)}")
        return took

    opens = product.next_full_minute(PREPARING)
    begun = time.monotonic()
    asyncio.run(_populate(plane, opens))
    print(f"\n{FLEET.providers} schedules made in {time.monotonic() - begun:.0f} s", end="")
    before = same_writes("before")
    with provider(plane, tmp_path) as running:
        begun = time.monotonic()
        running.at_rest()
        print(f"all of them answered for, and told of, after {time.monotonic() - begun:.0f} s")
        assert datetime.now(UTC) + timedelta(seconds=REST_SECONDS + 5) < opens, "the boundary is too near"

        cpu, since = running.cpu(), datetime.now(UTC)
        time.sleep(REST_SECONDS)
        used = running.cpu() - cpu
        asked = [event for event in _requests(plane, since) if event["objectRef"]["resource"] != "leases"]
        now, most = running.memory()
        print(
            f"at rest for {REST_SECONDS} s: {len(asked)} requests, CPU {100 * used / REST_SECONDS:.2f} %, memory {now:.0f} MB, "
            f"at most {most:.0f} MB"
        )
        assert not asked

        took = _boundary(plane, running, opens)
        metrics = running.metrics()
        dropped = sum(value for name, value in metrics.items() if name == "fivespot_events_dropped_total")
        now, most = running.memory()
        print(f"memory after it {now:.0f} MB, at most {most:.0f} MB; {dropped:.0f} Events dropped")
        assert metrics["fivespot_is_leader"] == 1
        lease = plane.kubectl(
            "get", "lease", LEASE, "-n", SYSTEM_NAMESPACE, "-o", "jsonpath={.spec.leaseTransitions}"
        )
        assert lease in ("", "0"), "nobody has lost it"
    after = same_writes("after")
    print(f"the same, with nobody watching: {_told(asyncio.run(_alone(plane)))}")
    late, *own = (sorted(each)[int(len(each) * 0.99)] for each in (took, before, after))
    print(
        f"p99 {late - statistics.mean(own):+.2f} s beside the server's own speed ({own[0]:.1f} s before, {own[1]:.1f} s after), "
        f"{late / statistics.mean(own):.2f} times it"
    )
