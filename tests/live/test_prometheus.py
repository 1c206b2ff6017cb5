"""PrometheusSpotSchedules against a real Prometheus: whatever happens to it, no answer ever flips a machine."""

import base64
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from fivespot.core.names import SYSTEM_NAMESPACE
from tests import builders
from tests.controlplane.certs import CertificateAuthority
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.waiting import wait_until
from tests.live import product
from tests.live.product import Process, World
from tests.prometheus.around import Gate
from tests.prometheus.server import PrometheusServer

NAMESPACE = "prometheus"
USER = "test:prometheus-provider"
BUSY = "desk_busy > 0"


@attrs.frozen
class Site:
    """A cluster with the provider process, and the Prometheus that it asks."""

    world: World
    server: PrometheusServer
    ca: CertificateAuthority
    process: Process

    def ask(self, name: str, query: str = BUSY, **spec: Any) -> None:
        """Create, or change, a schedule that asks every second."""
        made = builders.prometheus(name)
        made["metadata"]["namespace"] = NAMESPACE
        tls = {"caSecretRef": {"name": "ca"}}
        made["spec"] = {"url": self.server.url, "query": query, "interval": "1s", "tls": tls, **spec}
        self.world.apply(made)

    def secret(self, name: str, value: bytes) -> None:
        """Create, or change, a Secret with one value."""
        data = {"value": base64.b64encode(value).decode()}
        metadata = {"name": name, "namespace": NAMESPACE}
        self.world.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})

    def until(self, name: str, holds: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """The status, once it holds."""
        found: dict[str, Any] = {}

        def check() -> bool:
            found.clear()
            found.update((self.world.get(NAMESPACE, "pss", name) or {}).get("status") or {})
            return bool(found) and bool(holds(found))

        try:
            wait_until(check, seconds=60, what=name, every=0.1)
        except TimeoutError as error:
            log = self.process.log.read_text()[-2000:]
            raise AssertionError(f"{name} says {found}\n{log}") from error
        return found

    def until_ready(self, name: str, *, active: bool) -> dict[str, Any]:
        """The status, once it has an answer."""
        return self.until(
            name, lambda status: status.get("active") is active and ready(status)["status"] == "True"
        )

    def until_failed(self, name: str, reason: str, told: str) -> dict[str, Any]:
        """The status, once it says why there is no answer."""
        return self.until(
            name,
            lambda status: (
                ready(status)["status"] == "False"
                and ready(status)["reason"] == reason
                and told in ready(status)["message"]
            ),
        )

    def sit(self, busy: int) -> None:
        """Somebody sits down at the desk, or leaves, and Prometheus has seen it."""
        self.server.desk.busy = busy
        wait_until(
            lambda: self.server.value("desk_busy") == str(busy), seconds=20, what="it is scraped", every=0.1
        )


def ready(status: dict[str, Any]) -> dict[str, Any]:
    return next(entry for entry in status["conditions"] if entry["type"] == "Ready")


def provider(world: World, *more: str) -> Process:
    kubeconfig = world.plane.kubeconfig(USER)
    line = [sys.executable, "-m", "fivespot", "provider", "run", "prometheus", *more]
    return Process([*line, "--kubeconfig", str(kubeconfig)], world.folder / "prometheus-provider.log")


@pytest.fixture(scope="module")
def site(
    control_plane: ControlPlane, prometheus_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    product.install(control_plane)
    # Under the shipped roles, and no others.
    deployed = product.ROOT / "deploy" / "providers"
    control_plane.kubectl("apply", "-k", str(deployed))
    control_plane.kubectl("apply", "-f", str(deployed / "prometheus-secrets.yaml"))
    for binding, of, role in (
        ("clusterrolebinding", "clusterrole", "5spot-provider"),
        ("clusterrolebinding", "clusterrole", "5spot-provider-prometheus-secrets"),
        ("rolebinding", "role", "5spot-provider"),
    ):
        control_plane.kubectl(
            *("create", binding, f"{role}-of-prometheus", f"--{of}={role}", f"--user={USER}"),
            *("-n", SYSTEM_NAMESPACE),
        )
    folder = tmp_path_factory.mktemp("provider")
    idle = Process([], folder / "none.log")
    world = World(control_plane, folder, idle, idle, idle)
    process = provider(world, "--allow-local-prometheus")
    world.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    ca = CertificateAuthority()
    with PrometheusServer(prometheus_program, ca.server(), ca.certificate) as server:
        process.start()
        running = Site(world, server, ca, process)
        running.secret("ca", ca.certificate)
        running.sit(0)
        yield running
        assert process.stop() == 0


@pytest.fixture(autouse=True)
def _empty_desk(site: Site) -> Iterator[None]:
    """Each test begins with an empty desk, and leaves nothing that would be asked on."""
    site.sit(0)
    yield
    site.world.plane.kubectl("delete", "pss", "--all", "-n", NAMESPACE)


def test_the_truth_of_a_query_is_published_and_follows_it(site: Site) -> None:
    site.ask("follows")
    first = site.until_ready("follows", active=False)
    assert ready(first)["reason"] == "QueryFalse"
    assert first["observedGeneration"] == 1
    assert "nextTransitionTime" not in first or first["nextTransitionTime"] is None
    site.sit(3)
    second = site.until_ready("follows", active=True)
    assert ready(second)["reason"] == "QueryTrue"
    assert second["lastTransitionTime"] > first["lastTransitionTime"]
    events = site.world.get(NAMESPACE, "events.v1.events.k8s.io")
    told = [event["reason"] for event in events if event["regarding"]["name"] == "follows"]
    assert told == ["WindowOpened"]


def test_while_the_answer_is_the_same_nothing_is_written(site: Site) -> None:
    """Though it is asked every second."""
    site.ask("quiet")
    site.until_ready("quiet", active=False)
    before, asked = site.world.get(NAMESPACE, "pss", "quiet"), site.server.questions()
    wait_until(lambda: site.server.questions() >= asked + 5, seconds=30, what="five questions", every=0.2)
    assert site.world.get(NAMESPACE, "pss", "quiet") == before


def test_a_flip_waits_until_it_has_held(site: Site) -> None:
    site.ask("patient", **{"for": "1h"})
    first = site.until_ready("patient", active=False)
    site.sit(1)
    asked = site.server.questions()
    site.ask("hasty")
    site.until_ready("hasty", active=True)
    wait_until(lambda: site.server.questions() >= asked + 6, seconds=30, what="both are asked", every=0.2)
    assert site.world.get(NAMESPACE, "pss", "patient")["status"] == first
    site.ask("patient", **{"for": "2s"})
    site.until_ready("patient", active=True)


@pytest.mark.parametrize(
    ("query", "reason", "told"),
    [
        ("desk_busy[5m]", "QueryUnusable", "matrix"),
        ('"text"', "QueryUnusable", "string"),
        ("vector(0) / 0", "QueryUnusable", "NaN"),
        ("sum(", "QueryFailed", "bad_data"),
    ],
)
def test_what_is_no_truth_is_no_answer_and_changes_nothing(
    site: Site, query: str, reason: str, told: str
) -> None:
    site.sit(1)
    site.ask("bad")
    before = site.until_ready("bad", active=True)
    site.ask("bad", query)
    status = site.until_failed("bad", reason, told)
    assert (status["active"], status["observedGeneration"]) == (True, 2)
    assert status["lastTransitionTime"] == before["lastTransitionTime"]
    site.ask("bad")
    site.until_ready("bad", active=True)


def test_a_server_that_goes_and_comes_back_is_asked_again(site: Site) -> None:
    site.sit(1)
    site.ask("restarted")
    site.until_ready("restarted", active=True)
    site.server.kill()
    try:
        status = site.until_failed("restarted", "QueryFailed", "no connection")
        assert status["active"] is True
    finally:
        site.server.start()
    site.until_ready("restarted", active=True)


def test_a_server_that_says_nothing_is_not_waited_for(site: Site) -> None:
    site.sit(1)
    site.ask("slow")
    site.until_ready("slow", active=True)
    site.server.stall()
    try:
        assert site.until_failed("slow", "QueryFailed", "no answer")["active"] is True
    finally:
        site.server.go_on()
    site.until_ready("slow", active=True)


def test_a_certificate_of_another_authority_is_not_believed_until_the_secret_says_so(site: Site) -> None:
    other = CertificateAuthority()
    site.ask("cert")
    site.until_ready("cert", active=False)
    try:
        site.server.present(other.server())
        site.until_failed("cert", "QueryFailed", "certificate is not trusted")
        site.secret("ca", other.certificate + site.ca.certificate)
        site.until_ready("cert", active=False)
    finally:
        site.server.present(site.ca.server())
        site.secret("ca", site.ca.certificate)


def test_a_name_that_is_not_in_the_certificate_is_not_believed(site: Site) -> None:
    site.ask("name", tls={"caSecretRef": {"name": "ca"}, "serverName": "prometheus.example.com"})
    site.until_failed("name", "QueryFailed", "prometheus.example.com")


def test_without_the_right_to_read_secrets_it_says_which_one_it_cannot_read(site: Site) -> None:
    """The role for that is one of its own, which not every site gives."""
    binding = "5spot-provider-prometheus-secrets-of-prometheus"
    saved = site.world.plane.kubectl("get", "clusterrolebinding", binding, "-o", "json")
    site.world.plane.kubectl("delete", "clusterrolebinding", binding)
    try:
        site.secret("unread", site.ca.certificate)
        site.ask("unread", tls={"caSecretRef": {"name": "unread"}})
        site.until_failed("unread", "QueryFailed", "spec.tls.caSecretRef: Secret prometheus/unread: ")
    finally:
        site.world.plane.kubectl("create", "-f", "-", input=saved)
    site.until_ready("unread", active=False)


def test_a_token_is_taken_from_its_secret_and_a_rotated_one_at_once(site: Site, tmp_path: Path) -> None:
    with Gate(site.server.url, "first", site.ca.server(), site.ca.certificate, tmp_path) as gate:
        token = {"bearerTokenSecretRef": {"name": "token"}}
        site.ask("token", url=gate.url, **token)
        site.until_failed("token", "QueryFailed", "Secret prometheus/token: it does not exist")
        site.secret("token", b"wrong\n")
        site.until_failed("token", "QueryFailed", "401")
        # A newline at the end is what `echo | base64` leaves.
        site.secret("token", b"first\n")
        site.until_ready("token", active=False)
        gate.token = "second"
        site.until_failed("token", "QueryFailed", "401")
        site.secret("token", b"second")
        site.until_ready("token", active=False)


def test_a_secret_that_is_no_certificate_says_so(site: Site) -> None:
    site.secret("none", b"hello")
    site.ask("none", tls={"caSecretRef": {"name": "none"}})
    site.until_failed("none", "QueryFailed", "spec.tls.caSecretRef: the value is no PEM certificate")


def test_without_permission_no_url_leads_to_this_machine(site: Site) -> None:
    """Whatever it is called there."""
    assert site.process.stop() == 0
    strict = provider(site.world)
    strict.start()
    try:
        for number, host in enumerate(("localhost", "127.0.0.1", "127.1", "[::1]", "0", "169.254.169.254")):
            site.ask(f"local-{number}", url=f"http://{host}:9090", tls=None)
            site.until_failed(f"local-{number}", "AddressRefused", "--allow-local-prometheus")
    finally:
        assert strict.stop() == 0
        site.process.start()
    site.ask("local-0")
    site.until_ready("local-0", active=False)
