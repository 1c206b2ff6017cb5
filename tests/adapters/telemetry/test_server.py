"""/metrics, /healthz and /readyz over real sockets."""

import asyncio
import socket
from collections.abc import Coroutine, Sequence
from typing import Any

import httpx
import pytest

from fivespot.adapters.telemetry.health import Check
from fivespot.adapters.telemetry.metrics import Metrics, Sample, State
from fivespot.adapters.telemetry.server import PortInUse, serving

WELL = [Check("api"), Check("watch Node")]


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 20))


def ready(checks: Sequence[Check] = WELL) -> Any:
    async def ask() -> Sequence[Check]:
        return checks

    return ask


async def asked(port: int | None, path: str) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False) as client:
        return await client.get(f"http://127.0.0.1:{port}{path}")


def test_each_port_serves_what_it_is_for() -> None:
    async def scenario() -> None:
        async with serving(
            Metrics().registry, ready(), address="127.0.0.1", metrics_port=0, health_port=0
        ) as (metrics, health):
            found = await asked(metrics, "/metrics")
            assert found.headers["Content-Type"].startswith("text/plain; version=")
            assert "fivespot_queue_depth" in found.text
            assert (await asked(health, "/healthz")).text == "ok"
            assert (await asked(health, "/metrics")).status_code == 404
            assert (await asked(metrics, "/healthz")).status_code == 404

    run(scenario())


def test_one_port_may_serve_both() -> None:
    async def scenario() -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        async with serving(
            Metrics().registry, ready(), address="127.0.0.1", metrics_port=port, health_port=port
        ):
            assert (await asked(port, "/metrics")).status_code == 200
            assert (await asked(port, "/readyz")).status_code == 200

    run(scenario())


def test_what_is_not_asked_for_is_not_served() -> None:
    async def scenario() -> None:
        async with serving(
            Metrics().registry, ready(), address="127.0.0.1", metrics_port=None, health_port=None
        ) as ports:
            assert ports == (None, None)

    run(scenario())


def test_a_port_in_use_is_named_with_what_to_do() -> None:
    async def scenario() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(
                PortInUse, match=f"127.0.0.1 port {port} cannot be listened on: .*; choose another"
            ):
                async with serving(
                    Metrics().registry, ready(), address="127.0.0.1", metrics_port=port, health_port=None
                ):
                    pass

    run(scenario())


def test_ready_says_ok_and_with_verbose_each_check() -> None:
    async def scenario() -> None:
        async with serving(
            Metrics().registry, ready(), address="127.0.0.1", metrics_port=None, health_port=0
        ) as (_, port):
            assert (await asked(port, "/readyz")).text == "ok"
            found = await asked(port, "/readyz?verbose")
            assert (found.status_code, found.text) == (
                200,
                "[+]api ok\n[+]watch Node ok\nreadyz check passed\n",
            )

    run(scenario())


def test_what_is_wrong_is_said_without_being_asked() -> None:
    checks = [*WELL, Check("watch Machine.cluster.x-k8s.io", "the kind is not served")]

    async def scenario() -> None:
        async with serving(
            Metrics().registry, ready(checks), address="127.0.0.1", metrics_port=None, health_port=0
        ) as (_, port):
            found = await asked(port, "/readyz")
            assert found.status_code == 503
            assert found.text == (
                "[-]watch Machine.cluster.x-k8s.io failed: the kind is not served\nreadyz check failed\n"
            )

    run(scenario())


def test_the_open_metrics_format_is_served_to_who_asks_for_it() -> None:
    async def scenario() -> None:
        async with (
            serving(Metrics().registry, ready(), address="127.0.0.1", metrics_port=0, health_port=None) as (
                port,
                _,
            ),
            httpx.AsyncClient(trust_env=False) as client,
        ):
            accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
            found = await client.get(f"http://127.0.0.1:{port}/metrics", headers=accept)
            assert found.text.endswith("# EOF\n")

    run(scenario())


def test_counters_are_there_before_anything_has_happened() -> None:
    value = Metrics().registry.get_sample_value
    assert value("fivespot_reconciliations_total", {"phase": "Active", "result": "ok"}) == 0
    assert value("fivespot_node_drains_total", {"result": "timed_out"}) == 0
    assert value("fivespot_kill_switch_activations_total") == 0


def test_a_state_is_read_when_somebody_scrapes() -> None:
    metrics, found = Metrics(), [Sample(("a",), 1)]
    metrics.watch_state(State("things", "Things.", ("name",), lambda: found))
    assert metrics.registry.get_sample_value("fivespot_things", {"name": "a"}) == 1
    found[:] = [Sample(("b",), 2)]
    assert metrics.registry.get_sample_value("fivespot_things", {"name": "a"}) is None
    assert metrics.registry.get_sample_value("fivespot_things", {"name": "b"}) == 2
