"""What a namespace cannot reach, and what a manifest cannot claim: refused by the schema, and by the controller without it."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.controlplane.errors import KubectlFailed
from tests.controlplane.pytest_plugin import StartControlPlane
from tests.controlplane.waiting import wait_until
from tests.live import product
from tests.live.product import ADMINS, CONTROLLER, IN_CHILD, ROOT, World, machine

OWN, OTHER = "tenant", "neighbour"
CRD = ROOT / "deploy" / "crds" / "scheduledmachines.5spot.finos.org.yaml"
STATUS = "status"


def embedded(group: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": f"{group}/v1beta1", "kind": kind, "spec": {}, **more}


CLAIMS = {
    "infrastructure-group": {"infrastructureSpec": embedded("apps.example.com", "RemoteMachine")},
    "infrastructure-core": {"infrastructureSpec": {"apiVersion": "v1", "kind": "Secret", "spec": {}}},
    "bootstrap-group": {
        "bootstrapSpec": embedded("infrastructure.cluster.x-k8s.io.example.com", "K0sWorkerConfig")
    },
    "provider-group": {
        "schedule": {
            "apiVersion": "schedules.example.com/v1",
            "kind": "TimeBasedSpotSchedule",
            "name": "nights",
        }
    },
    "other-namespace": {
        "infrastructureSpec": embedded(
            "infrastructure.cluster.x-k8s.io", "RemoteMachine", metadata={"namespace": OTHER}
        )
    },
    "another-name": {
        "bootstrapSpec": embedded(
            "bootstrap.cluster.x-k8s.io", "K0sWorkerConfig", metadata={"name": "theirs"}
        )
    },
    "path-in-name": {
        "schedule": {
            "apiVersion": "spotschedules.5spot.finos.org/v1alpha1",
            "kind": "TimeBasedSpotSchedule",
            "name": f"../../{OTHER}/timebasedspotschedules/nights",
        }
    },
    "our-label": {"machineTemplate": {"labels": {"5spot.finos.org/scheduled-machine": "another"}}},
    "sub-domain": {"machineTemplate": {"annotations": {"controller.cluster.x-k8s.io/pre-drain.delete": "x"}}},
    "node-role": {"machineTemplate": {"labels": {"node-role.kubernetes.io/control-plane": ""}}},
    "template-label": {
        "infrastructureSpec": embedded(
            "infrastructure.cluster.x-k8s.io",
            "RemoteMachine",
            metadata={"labels": {"cluster.x-k8s.io/cluster-name": "theirs"}},
        )
    },
    "taint": {"nodeTaints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]},
}


@pytest.fixture(scope="module")
def world(
    start_control_plane: StartControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """A cluster of its own, since its CRD is replaced by one that refuses nothing."""
    plane = start_control_plane()
    with product.world(plane, tmp_path_factory.mktemp("product")) as running:
        product.namespace_with_cluster(running, OWN, "grid")
        product.namespace_with_cluster(running, OTHER, "grid")
        running.apply(product.open_now(OTHER))
        yield running
    plane.stop()


@pytest.fixture(scope="module")
def lax(world: World) -> World:
    """The same, after an administrator has installed a CRD that lets everything in."""
    definition = yaml.safe_load(CRD.read_text())
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    del schema["x-kubernetes-validations"]
    world.plane.kubectl("replace", "-f", "-", input=json.dumps(definition))
    probe = machine(OWN, "probe", **CLAIMS["our-label"])

    def lets_in() -> bool:
        try:
            world.plane.kubectl("create", "--dry-run=server", "-f", "-", input=json.dumps(probe))
        except KubectlFailed:
            return False
        return True

    wait_until(lets_in, seconds=30, what="the lax CRD counts")
    return world


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_schema_refuses(world: World, claim: str) -> None:
    with pytest.raises(KubectlFailed, match=r"Invalid value|Unsupported value|strict decoding|is invalid"):
        world.plane.kubectl(
            "create", "-f", "-", input=json.dumps(machine(OWN, f"s-{claim}", **CLAIMS[claim]))
        )


def test_a_provider_and_a_secret_of_another_namespace_are_not_there(world: World) -> None:
    """Both exist under these names next door, and nowhere else."""
    config = world.plane.kubeconfig_text(IN_CHILD, ADMINS)
    world.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "elsewhere", "namespace": OTHER},
            "data": {"value": base64.b64encode(config.encode()).decode()},
        },
        machine(OWN, "no-provider"),
        machine(OTHER, "well"),
    )
    world.wait_for_phases(OTHER, {"well": "Active"})
    world.wait_for_phases(OWN, {"no-provider": "Inactive"})
    assert world.condition(OWN, "no-provider", "SpotScheduleResolved")["reason"] == "ProviderNotFound"
    world.apply(product.open_now(OWN), machine(OWN, "no-secret", kubeconfigSecretRef={"name": "elsewhere"}))
    wait_until(
        lambda: (
            world.condition(OWN, "no-secret", "ChildClusterReachable").get("reason") == "KubeconfigMissing"
        ),
        seconds=30,
        what="the Secret is missing",
    )
    world.wait_for_phases(OWN, {"no-provider": "Active"})
    assert world.get(OWN, "sm", "no-secret")[STATUS]["phase"] == "Pending"


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_controller_refuses_what_got_past_the_schema(lax: World, claim: str) -> None:
    """Its schedule is open: but for the claim it would be created."""
    name = f"c-{claim}"
    lax.apply(product.open_now(OWN), machine(OWN, name, **CLAIMS[claim]))

    def refused() -> bool:
        reasons = {
            lax.condition(OWN, name, of_type).get("reason")
            for of_type in ("ReferencesValid", "SpotScheduleResolved")
        }
        return "ReferencesInvalid" in reasons

    wait_until(refused, seconds=30, what=f"{claim} is refused")
    lax.patch(OWN, "sm", name, {"metadata": {"labels": {"touched": "again"}}})
    wait_until(
        lambda: lax.get(OWN, "sm", name)[STATUS].get("observedGeneration") is not None,
        seconds=20,
        what="a pass",
    )
    created = [
        event["objectRef"]
        for event in lax.writes(CONTROLLER)
        if event["verb"] == "create" and event["objectRef"].get("name") == name
    ]
    assert created == []
    lax.plane.kubectl("delete", "sm", name, "-n", OWN, "--timeout=30s")
