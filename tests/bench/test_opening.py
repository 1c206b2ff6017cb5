"""One machine, a hundred and a thousand on one provider, through the controller's own process on a real API server.

From the flip to the CAPI Machines, from the kill switch to the request to delete one, the requests of a machine's whole day,
and what a thousand machines take at rest.
"""

import asyncio
import statistics
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime

import pytest

from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.resources import NAMESPACES
from tests.bench import crowds, fleets
from tests.bench.crowds import Crowd
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.pytest_plugin import StartControlPlane
from tests.live import product
from tests.live.product import CONTROLLER, IN_CHILD
from tests.standins import crds

ROUNDS = {1: 40, 100: 5, 1000: 3}
KILLS = 30
REST_SECONDS = 60

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def plane(start_control_plane: StartControlPlane) -> Iterator[ControlPlane]:
    """A control plane without Cluster API: what is timed is our part."""
    plane = start_control_plane()
    crds.install(plane)
    product.install(plane)
    yield plane
    plane.stop()


@pytest.fixture(scope="module")
def running(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[fleets.Running]:
    with fleets.controller(plane, tmp_path_factory.mktemp("controller"), "--no-leader-elect") as found:
        found.wait(bool)
        yield found


def at_rest(running: fleets.Running) -> Awaitable[float]:
    """Until nothing waits, and no machine is on its way up or down."""

    def quiet(metrics: dict[str, float]) -> bool:
        return not metrics.get('fivespot_queue_depth{queue="machines"}') and not metrics.get(
            'fivespot_machines_by_phase{phase="ShuttingDown"}'
        )

    return asyncio.to_thread(running.wait, quiet)


def with_crowd(
    plane: ControlPlane, namespace: str, count: int, work: Callable[[Crowd], Awaitable[None]]
) -> None:
    async def scenario() -> None:
        async with (
            await Gateway.connect(kubeconfig=plane.admin_kubeconfig) as gateway,
            crowds.followed(gateway, namespace, count) as crowd,
        ):
            await work(crowd)

    asyncio.run(scenario())


async def populated(crowd: Crowd, plane: ControlPlane, running: fleets.Running) -> None:
    """The machines are there, and the controller has said so of each."""
    before = running.metrics().get('fivespot_machines_by_phase{phase="Inactive"}', 0)
    await crowds.populate(crowd.gateway, plane, crowd.namespace, crowd.count)
    await asyncio.to_thread(
        running.wait,
        lambda found: found.get('fivespot_machines_by_phase{phase="Inactive"}', 0) >= before + crowd.count,
    )
    await at_rest(running)


@pytest.mark.parametrize("count", ROUNDS)
def test_flip_to_machines(plane: ControlPlane, running: fleets.Running, count: int) -> None:
    firsts: list[float] = []
    every: list[float] = []
    lasts: list[float] = []
    alone: list[float] = []
    flips: list[datetime] = []

    async def rounds(crowd: Crowd) -> None:
        await populated(crowd, plane, running)
        for _ in range(ROUNDS[count]):
            flips.append(datetime.now(UTC))
            begun = await crowd.say(active=True)
            await crowd.all_there()
            took = sorted(at - begun for at in crowd.seen.values())
            firsts.append(took[0])
            lasts.append(took[-1])
            every.extend(took)
            await at_rest(running)
            await crowd.say(active=False)
            await crowd.none_left()
            await at_rest(running)
        alone.append(await writes_alone(crowd.gateway, 3 * count))

    with_crowd(plane, f"crowd-{count}", count, rounds)
    every.sort()
    actions = sorted(fleets.first_actions(plane, f"crowd-{count}", flips))
    p99 = every[min(int(len(every) * 0.99), len(every) - 1)]
    print(
        f"\none flip for {count}, {ROUNDS[count]} rounds: first action p50 {1000 * statistics.median(actions):.1f} ms, at most "
        f"{1000 * actions[-1]:.1f} ms; first Machine p50 {1000 * statistics.median(firsts):.1f} ms, at most "
        f"{1000 * max(firsts):.1f} ms; every Machine p50 {1000 * statistics.median(every):.1f} ms, p99 {1000 * p99:.1f} ms; "
        f"last p50 {1000 * statistics.median(lasts):.0f} ms, {statistics.median(lasts) / alone[0]:.2f} times what {3 * count} "
        f"creates by one client take ({1000 * alone[0]:.0f} ms)"
    )


async def writes_alone(gateway: Gateway, count: int) -> float:
    """Seconds that the server takes for so many creates of the same size, eight in flight, with nothing else to do."""
    namespace = f"alone-{count}"
    await gateway.create(NAMESPACES, None, {"metadata": {"name": namespace}})
    begun = time.monotonic()
    await fleets.in_parallel(
        [lambda n=n: fleets.create_host(gateway, namespace, f"host-{n}") for n in range(count)]
    )
    return time.monotonic() - begun


def test_kill_switch_to_deletion(plane: ControlPlane, running: fleets.Running) -> None:
    took: list[float] = []

    async def rounds(crowd: Crowd) -> None:
        await populated(crowd, plane, running)
        for _ in range(KILLS):
            await crowd.say(active=True)
            await crowd.all_there()
            await at_rest(running)
            crowd.going.clear()
            begun = time.monotonic()
            await kill(crowd.gateway, crowd.namespace, on=True)
            await crowd.until(lambda: bool(crowd.going))
            took.append(min(crowd.going.values()) - begun)
            await crowd.none_left()
            await crowd.say(active=False)
            await kill(crowd.gateway, crowd.namespace, on=False)
            await asyncio.to_thread(
                running.wait, lambda found: not found.get('fivespot_machines_by_phase{phase="Terminated"}')
            )
            await at_rest(running)

    with_crowd(plane, "killed", 1, rounds)
    took.sort()
    print(
        f"\nkill switch to Machine deletion seen, {KILLS} rounds: p50 {1000 * statistics.median(took):.1f} ms, "
        f"at most {1000 * took[-1]:.1f} ms (status stored, both exclude annotations, delete)"
    )


async def kill(gateway: Gateway, namespace: str, *, on: bool) -> None:
    await gateway.merge_patch(fleets.SM, namespace, "box-0", {"spec": {"killSwitch": on}})


def test_the_requests_of_one_day(plane: ControlPlane, running: fleets.Running) -> None:
    """A machine that comes, joins, is drained of nothing and goes; Events and the Lease aside."""
    namespace, count = "one-day", 20

    async def day(crowd: Crowd) -> None:
        await populated(crowd, plane, running)
        since = datetime.now(UTC)
        await crowd.say(active=True)
        await crowd.all_there()
        await fleets.in_parallel(
            [lambda n=n: fleets.join(crowd.gateway, namespace, f"box-{n}") for n in range(count)]
        )
        await asyncio.to_thread(running.wait, lambda found: found.get("fivespot_machines_active") == count)
        await at_rest(running)
        opened = calls(plane, since)
        since = datetime.now(UTC)
        await crowd.say(active=False)
        await crowd.none_left()
        await at_rest(running)
        closed = calls(plane, since)
        for what, found in (("opening", opened), ("closing", closed)):
            print(f"\n{what}, for each of {count} machines:")
            for name, number in sorted(found.items()):
                print(f"  {number / count:5.2f} {name}")
            print(f"  {sum(found.values()) / count:5.2f} in all")

    with_crowd(plane, namespace, count, day)


def calls(plane: ControlPlane, since: datetime) -> Counter[str]:
    """What the controller has asked of the server, but for the streams that it listens to."""
    start = f"{since:%Y-%m-%dT%H:%M:%S.%f}Z"
    found: Counter[str] = Counter()
    for event in plane.audit_events():
        about = event.get("objectRef", {})
        if (
            event["user"].get("username") in (CONTROLLER, IN_CHILD)
            and event["stage"] == "ResponseComplete"
            and event["requestReceivedTimestamp"] >= start
            and event["verb"] != "watch"
            and about.get("resource") not in ("events", "leases")
        ):
            sub = f"/{about['subresource']}" if about.get("subresource") else ""
            found[f"{event['verb']} {about.get('resource', event['requestURI'])}{sub}"] += 1
    return found


def test_a_thousand_machines_at_rest(plane: ControlPlane, running: fleets.Running) -> None:
    """All of them open, on the controller that has done all of the above."""

    async def rest(crowd: Crowd) -> None:
        await crowd.say(active=True)
        await crowd.all_there()
        await at_rest(running)
        cpu, passes = running.cpu(), running.passes()
        since = datetime.now(UTC)
        await asyncio.sleep(REST_SECONDS)
        requests = calls(plane, since)
        now, most = running.memory()
        print(
            f"\n1,000 machines with their Machines at rest for {REST_SECONDS} s: {sum(requests.values())} requests, "
            f"{running.passes() - passes:.0f} passes, CPU {100 * (running.cpu() - cpu) / REST_SECONDS:.2f} %, "
            f"memory {now:.0f} MB, at most {most:.0f} MB"
        )
        assert not requests

    with_crowd(plane, "crowd-1000", 1000, rest)
