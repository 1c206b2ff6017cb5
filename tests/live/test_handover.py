"""Two provider processes and one Lease: boundaries that come while one hands over to the other, or is killed."""

import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import attrs

from fivespot.core.instant import format_instant, parse_instant
from tests import builders
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.waiting import wait_until
from tests.live import product
from tests.live.product import ADMINS, Process, World

TIMING = ("--lease-duration", "3", "--renew-deadline", "2", "--retry-period", "0.3")
LEAD_TIMES = tuple(timedelta(seconds=seconds) for seconds in (12, 30, 90))
"""From when schedules are made to the first boundary: until then all of them have been answered for. The first that suffices."""
IN_TIME = timedelta(seconds=4)
"""So long before the first boundary."""
SECONDS, EACH = 14, 4
"""A boundary every second, of so many schedules each."""


@attrs.frozen
class Replica:
    """One of the two."""

    user: str
    process: Process

    @property
    def pid(self) -> int:
        assert self.process.popen is not None
        return self.process.popen.pid

    def said(self, what: str) -> bool:
        """Whether it has logged a message that begins like this."""
        return any(entry["message"].startswith(what) for entry in self.process.logged())


@attrs.frozen
class Site:
    """A namespace, whose schedules either of two may answer for."""

    world: World
    namespace: str
    replicas: tuple[Replica, Replica]

    def leader(self) -> Replica | None:
        """Who has the Lease, and says so."""
        lease = self.world.get("5spot-system", "lease", self.namespace) or {"spec": {}}
        holder = str(lease["spec"].get("holderIdentity") or "").partition("_")[0]
        return next(
            (r for r in self.replicas if r.user.endswith(holder) and holder and r.said("leading")), None
        )

    def other(self, replica: Replica) -> Replica:
        return next(found for found in self.replicas if found is not replica)

    def schedules(self, seconds: int) -> dict[str, datetime]:
        """Schedules that say no until one of so many seconds, and yes from then on; each has been answered for in time.

        A machine that has much to do gets more time, and other schedules.
        """
        for lead in LEAD_TIMES:
            first = datetime.now(UTC).replace(microsecond=0) + lead
            due = self._answered(f"s{lead.seconds}", [first + timedelta(seconds=n) for n in range(seconds)])
            if datetime.now(UTC) + IN_TIME < first:
                return due
            self.world.plane.kubectl("delete", "mss", "--all", "-n", self.namespace)
        raise AssertionError("this machine is too slow for any boundary")

    def _answered(self, prefix: str, moments: list[datetime]) -> dict[str, datetime]:
        due = {f"{prefix}-{n}-{copy}": at for n, at in enumerate(moments) for copy in range(EACH)}
        bodies = []
        for name, at in due.items():
            body = builders.manual(name, active=False, until=format_instant(at), then="Active")
            body["metadata"]["namespace"] = self.namespace
            bodies.append(body)
        self.world.apply(*bodies)
        wait_until(lambda: None not in self.answers().values(), seconds=60, what="all are answered for")
        return due

    def answers(self) -> dict[str, bool | None]:
        """What each schedule says."""
        found = self.world.get(self.namespace, "mss")
        return {item["metadata"]["name"]: (item.get("status") or {}).get("active") for item in found}

    def open(self) -> set[str]:
        return {name for name, answer in self.answers().items() if answer}

    def told(self) -> Counter[str]:
        """How often it was told of each schedule that is there that it has opened."""
        there = self.answers().keys()
        found: Counter[str] = Counter()
        for event in self.world.get(self.namespace, "events.events.k8s.io"):
            if event["regarding"]["name"] not in there:
                continue
            assert event["reason"] == "WindowOpened"
            found[event["regarding"]["name"]] += (event.get("series") or {}).get("count", 1)
        return found

    def written(self, *replicas: Replica) -> dict[str, list[datetime]]:
        """When the server received each write of a status that was done, in order; of schedules that are there."""
        found: dict[str, list[datetime]] = {}
        there = {(self.namespace, name) for name in self.answers()}
        for event in self.world.writes(*(replica.user for replica in replicas or self.replicas)):
            about = event["objectRef"]
            done = about.get("subresource") == "status" and event["responseStatus"]["code"] < 300
            if done and (about["namespace"], about["name"]) in there:
                found.setdefault(about["name"], []).append(parse_instant(event["requestReceivedTimestamp"]))
        return found

    def right(self, due: dict[str, datetime]) -> None:
        """Every boundary was published once, not before its time, and told once."""
        wait_until(lambda: self.open() == due.keys(), seconds=60, what="all have opened")
        wait_until(lambda: self.told() == Counter(due.keys()), seconds=30, what="each is told once")
        written = self.written()
        assert {name: len(times) for name, times in written.items()} == dict.fromkeys(due, 2)
        for item in self.world.get(self.namespace, "mss"):
            name, status = item["metadata"]["name"], item["status"]
            changed = parse_instant(status["lastTransitionTime"])
            assert due[name] <= changed <= written[name][1], name


@contextmanager
def site(plane: ControlPlane, folder: Path, namespace: str) -> Iterator[Site]:
    """Two replicas, one of which leads, and the other stands by."""
    product.install(plane)
    with ExitStack() as started:
        replicas = []
        for name in ("left", "right"):
            user = f"test:{namespace}-{name}"
            line = [
                *(sys.executable, "-m", "fivespot", "provider", "run", "manual"),
                *("--kubeconfig", str(plane.kubeconfig(user, ADMINS)), "--lease-name", namespace, *TIMING),
            ]
            process = Process(line, folder / f"{name}.log", {"OPERATOR_INSTANCE_ID": f"{namespace}-{name}"})
            process.start()
            started.callback(process.kill)
            replicas.append(Replica(user, process))
        left, right = replicas
        world = World(plane, folder, left.process, left.process, right.process)
        world.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        made = Site(world, namespace, (left, right))
        leader = wait_until(made.leader, seconds=30, what="one leads")
        wait_until(lambda: made.other(leader).said("standing by: "), seconds=30, what="one stands by")
        yield made


def _leader(here: Site) -> Replica:
    found = here.leader()
    assert found is not None
    return found


def _span(times: dict[str, list[datetime]]) -> tuple[datetime, datetime]:
    every = [at for each in times.values() for at in each]
    return min(every), max(every)


def test_boundaries_of_every_second_survive_a_hand_over(control_plane: ControlPlane, tmp_path: Path) -> None:
    with site(control_plane, tmp_path, "handover-rolling") as here:
        leader = _leader(here)
        due = here.schedules(SECONDS)
        wait_until(here.open, seconds=60, what="the first have opened")
        assert leader.process.stop() == 0
        here.right(due)
        first, second = here.written(leader), here.written(here.other(leader))
        assert _span(first)[1] < _span(second)[0], "never two at once"
        assert leader.said("leadership is released")


def test_a_boundary_in_the_middle_of_a_hand_over_is_the_next_leaders(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    """The one that stands by stands still, until the boundary has passed while nobody leads."""
    with site(control_plane, tmp_path, "handover-between") as here:
        leader = _leader(here)
        follower = here.other(leader)
        due = here.schedules(1)
        (boundary,) = set(due.values())
        os.kill(follower.pid, signal.SIGSTOP)
        try:
            assert leader.process.stop() == 0
            assert datetime.now(UTC) < boundary, "this machine is too slow for this boundary"
            wait_until(lambda: datetime.now(UTC) > boundary, seconds=60, what="the boundary has passed")
            assert not here.open()
        finally:
            os.kill(follower.pid, signal.SIGCONT)
        here.right(due)
        assert here.written(follower).keys() == due.keys()


def test_boundaries_of_every_second_survive_a_leader_that_is_killed(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    with site(control_plane, tmp_path, "handover-killed") as here:
        leader = _leader(here)
        due = here.schedules(SECONDS)

        def killed_between_boundaries() -> bool:
            """Not between a status and its Event, which is lost then: so it stands still before it dies."""
            if not here.open():
                return False
            os.kill(leader.pid, signal.SIGSTOP)
            here.world.get(here.namespace, "mss")  # what it has sent is done by now
            if here.told().keys() == here.open():
                leader.process.kill()
                return True
            os.kill(leader.pid, signal.SIGCONT)
            return False

        wait_until(killed_between_boundaries, seconds=60, what="the leader is killed")
        died = datetime.now(UTC)
        here.right(due)
        took_over = _span(here.written(here.other(leader)))[0]
        missed = {name for name, at in due.items() if died < at < took_over}
        assert missed, "boundaries have passed while nobody led"
        late = max(took_over - due[name] for name in missed)
        print(
            f"{len(missed)} boundaries while nobody led, published {late.total_seconds():.1f} s late at most"
        )


def test_a_provider_without_an_election_that_was_paused_over_a_boundary_publishes_it_once(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    """As one whose machine was suspended."""
    product.install(control_plane)
    user = "test:handover-alone"
    line = [
        *(sys.executable, "-m", "fivespot", "provider", "run", "manual", "--no-leader-elect"),
        *("--kubeconfig", str(control_plane.kubeconfig(user, ADMINS))),
    ]
    process = Process(line, tmp_path / "alone.log")
    process.start()
    try:
        world = World(control_plane, tmp_path, process, process, process)
        world.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "handover-alone"}})
        replica = Replica(user, process)
        here = Site(world, "handover-alone", (replica, replica))
        due = here.schedules(1)
        (boundary,) = set(due.values())
        os.kill(replica.pid, signal.SIGSTOP)
        after = boundary + timedelta(seconds=2)
        wait_until(lambda: datetime.now(UTC) > after, seconds=60, what="the boundary has passed")
        assert not here.open()
        os.kill(replica.pid, signal.SIGCONT)
        here.right(due)
        assert all(times[1] > after for times in here.written().values())
        assert process.stop() == 0
    finally:
        process.kill()
