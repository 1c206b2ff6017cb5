"""docs/operating.md names every metric that there is, with its labels, and no other."""

import asyncio
import re
from datetime import UTC, datetime
from pathlib import Path

from fivespot.adapters.clock import FakeClock
from fivespot.adapters.kube.control.machines import MachineController
from fivespot.adapters.kube.control.providers import ProviderController
from fivespot.adapters.kube.electing import Timing
from fivespot.adapters.telemetry.metrics import Metrics
from fivespot.cli.leading import Election, lead
from fivespot.cli.serving import Process
from fivespot.core.provider.kinds import PROVIDER_KINDS
from tests.fakeapi import fake_api

PAGE = Path(__file__).parents[3] / "docs" / "operating.md"
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def _shown() -> set[str]:
    """The names that a process with every controller shows."""
    names: set[str] = set()

    async def scenario() -> None:
        async with fake_api() as server, server.gateway() as gateway:
            metrics, clock = Metrics(), FakeClock(NOON)
            MachineController(gateway, clock, metrics=metrics)
            for kind in PROVIDER_KINDS:
                ProviderController(gateway, clock, kind, clock_trusted_from=NOON, metrics=metrics)
            stop = asyncio.Event()
            stop.set()
            election = Election(enabled=False, name=None, namespace="x", timing=Timing())
            await lead(Process(gateway, stop, metrics), [], election=election, default_name="x")
            for family in metrics.registry.collect():
                suffix = "_total" if family.type == "counter" else "_info" if family.type == "info" else ""
                names.add(f"{family.name}{suffix}")

    asyncio.run(scenario())
    return {name for name in names if name.startswith("fivespot_")}


def test_the_page_names_every_metric_and_no_other() -> None:
    said = set(re.findall(r"`(fivespot_\w+)`", PAGE.read_text()))
    assert said == _shown()
