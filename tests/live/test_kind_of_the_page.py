"""The kind that docs/providers.md writes for its reader, in a real cluster: its CRD, its answers, its refusals."""

import asyncio
import json
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fivespot.adapters.kube.control.providers import ProviderController
from fivespot.adapters.kube.errors import ApiError
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.resources import NAMESPACES, Object
from fivespot.adapters.kube.watching import version_of
from fivespot.cli.leading import at_once
from fivespot.core.api.kinds import crd
from tests.controlplane.controlplane import ControlPlane
from tests.kind_of_the_page import kind_of_the_page
from tests.live import product
from tests.live.walking import SetClock

NAMESPACE, USER = "kind-of-the-page", "test:kind-of-the-page"
FIRST = datetime(1970, 1, 1, tzinfo=UTC)


async def _answered(gateway: Gateway, made: Object) -> Object:
    """The object, once it has an answer."""
    resource = await gateway.resolve(kind_of_the_page().kind.group, made["kind"])
    async with (
        asyncio.timeout(60),
        aclosing(
            gateway.watch(resource, NAMESPACE, resource_version=version_of(made), timeout_seconds=60)
        ) as events,
    ):
        async for event in events:
            if event.object.get("status"):
                return event.object
    raise AssertionError


def test_the_kind_of_the_page_runs_as_the_page_says(control_plane: ControlPlane, tmp_path: Path) -> None:
    of = kind_of_the_page()
    manifest = tmp_path / "crd.yaml"
    manifest.write_text(json.dumps(crd(of.kind)))
    control_plane.kubectl("apply", "-f", str(manifest))
    control_plane.kubectl(
        "wait", "--for=condition=Established", "--timeout=60s", f"crd/{of.kind.plural}.{of.kind.group}"
    )

    async def scenario() -> None:
        async with (
            await Gateway.connect(kubeconfig=control_plane.admin_kubeconfig) as admin,
            await Gateway.connect(kubeconfig=control_plane.kubeconfig(USER, product.ADMINS)) as gateway,
        ):
            await admin.create(NAMESPACES, None, {"metadata": {"name": NAMESPACE}})
            resource = await admin.resolve(of.kind.group, of.kind.name)
            with pytest.raises(ApiError, match=r"spec\.days"):
                await admin.create(resource, NAMESPACE, {"metadata": {"name": "daily"}, "spec": {"days": 1}})
            made = await admin.create(
                resource, NAMESPACE, {"metadata": {"name": "third"}, "spec": {"days": 3}}
            )
            clock = SetClock(datetime(2026, 3, 2, 12, tzinfo=UTC))
            controller = ProviderController(gateway, clock, of, clock_trusted_from=FIRST)
            working = asyncio.ensure_future(controller.run(at_once))
            try:
                status = (await _answered(admin, made))["status"]
            finally:
                working.cancel()
                await asyncio.gather(working, return_exceptions=True)
            day = (datetime(2026, 3, 2, tzinfo=UTC) - FIRST).days
            assert (status["active"], status["conditions"][0]["message"]) == (
                day % 3 == 0,
                f"day {day % 3 + 1} of 3",
            )
            assert status["nextTransitionTime"] == "2026-03-03T00:00:00Z"

    try:
        asyncio.run(scenario())
    finally:
        # Others share the cluster, and would be asked about the kind.
        control_plane.kubectl("delete", "-f", str(manifest))
